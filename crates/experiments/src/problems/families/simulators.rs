//! Models that are solved step by step: epidemics, and predators with their prey.

use std::f64::consts::TAU;

use anyhow::{Result, ensure};
use batchquad::prior::Distribution;

use super::{
    super::world::simulators::{finite, step},
    Dice, Draft, SIMULATED_DRAWS, Truth,
    dice::log_factorial,
    prior_of,
};

/// A log-normal prior with a median that is a draw around `truth`.
fn positive(dice: &mut Dice, truth: f64, sds: (f64, f64)) -> Result<Distribution> {
    let sd = dice.uniform(sds.0, sds.1);
    Ok(Distribution::log_normal(truth.ln() + sd * dice.normal(), sd)?)
}

/// Steps a day.
const DAY: usize = 3;

/// An epidemic of which the new cases of every day are seen.
#[derive(Clone, Copy)]
struct Epidemic {
    people: f64,
    days: usize,
    /// The rate at which the infected become infectious; none where they are so at once.
    latent: Option<f64>,
}

impl Epidemic {
    /// `s′ = −b s i/n`, `e′ = b s i/n − k e`, `i′ = k e − g i`, or without `e`; the fall of `s` on each day. The parameters begin with
    /// b, g and the number of infected on the first day.
    fn expected(self, theta: &[f64]) -> Vec<f64> {
        let (b, g, first) = (theta[0], theta[1], theta[2]);
        let slope = |[s, e, i]: [f64; 3]| {
            let new = b * s * i / self.people;
            match self.latent {
                Some(k) => [-new, new - k * e, k * e - g * i],
                None => [-new, 0.0, new - g * i],
            }
        };
        let mut state = [self.people - first, 0.0, first];
        let mut cases = Vec::with_capacity(self.days);
        for _ in 0..self.days {
            let before = state[0];
            for _ in 0..DAY {
                state = step(state, 1.0 / DAY as f64, slope);
            }
            cases.push(before - state[0]);
        }
        cases
    }
}

/// What is expected is never exactly nothing: somebody may come from elsewhere.
const ELSEWHERE: f64 = 1e-6;

/// With or without a latent period, by parity. Cases are Poisson, or negative binomial with an unknown size: the variance is
/// `mean + mean²/size`.
pub fn epidemic(dice: &mut Dice) -> Result<Draft> {
    let latent = if dice.even { Some(dice.uniform(0.2, 0.6)) } else { None };
    let epidemic = Epidemic { people: dice.log_uniform(500.0, 5000.0).round(), days: dice.whole(20, 45), latent };
    let g = dice.log_uniform(0.1, 0.4);
    let mut truth = vec![g * dice.uniform(1.6, 4.0), g, dice.log_uniform(2.0, 15.0)];
    let mut parameters = vec![
        positive(dice, truth[0], (0.5, 1.0))?,
        positive(dice, g, (0.5, 1.0))?,
        positive(dice, truth[2], (0.7, 1.5))?,
    ];
    let scattered = dice.happens(0.5);
    if scattered {
        let size = dice.log_uniform(3.0, 50.0);
        truth.push(size);
        parameters.push(positive(dice, size, (0.5, 1.0))?);
    }
    let expected = epidemic.expected(&truth);
    let cases: Vec<f64> = expected
        .iter()
        .map(|mean| {
            let by = if scattered { dice.gamma(truth[3]) / truth[3] } else { 1.0 };
            dice.poisson(by * mean.max(0.0))
        })
        .collect();
    ensure!(cases.iter().sum::<f64>() > 50.0, "no epidemic");
    let constant: f64 = cases.iter().map(|y| log_factorial(*y)).sum();
    let log_likelihood = move |theta: &[f64]| {
        let mut total = -constant;
        for (y, mean) in cases.iter().zip(epidemic.expected(theta)) {
            let mean = mean + ELSEWHERE;
            total += if scattered {
                let size = theta[3];
                libm::lgamma(y + size) - libm::lgamma(size) + size * size.ln() + y * mean.ln()
                    - (size + y) * (size + mean).ln()
            } else {
                y * mean.ln() - mean
            };
        }
        finite(total)
    };
    Ok(Draft {
        prior: prior_of(&parameters)?,
        log_likelihood: Box::new(log_likelihood),
        truth: Truth::Sampled(SIMULATED_DRAWS),
        places: vec![truth],
    })
}

/// Steps between two censuses.
const CENSUS: usize = 20;

/// Prey `u′ = (a − bv)u` and predators `v′ = (du − c)v`, counted once a year; the logarithms of the counts are normal around those of
/// the numbers. The initial numbers and the noise are known.
pub fn predators(dice: &mut Dice) -> Result<Draft> {
    let years = dice.whole(8, 16);
    // Centres of the cycles around 30 prey and 8 predators, with a period of 2π/√(ac), 6 to 15 years.
    let (a, c) = (dice.log_uniform(0.4, 1.0), dice.log_uniform(0.4, 1.0));
    let truth = vec![a, a / dice.uniform(5.0, 12.0), c / dice.uniform(20.0, 40.0), c];
    let start = [dice.uniform(15.0, 40.0), dice.uniform(4.0, 12.0)];
    let noise = dice.log_uniform(0.08, 0.25);
    let numbers = move |theta: &[f64]| {
        let (a, b, d, c) = (theta[0], theta[1], theta[2], theta[3]);
        let slope = |[u, v]: [f64; 2]| [(a - b * v) * u, (d * u - c) * v];
        let mut state = start;
        let mut all = Vec::with_capacity(years);
        for _ in 0..years {
            for _ in 0..CENSUS {
                state = step(state, 1.0 / CENSUS as f64, slope);
            }
            all.push(state.map(f64::ln));
        }
        all
    };
    let seen: Vec<[f64; 2]> =
        numbers(&truth).into_iter().map(|logs| logs.map(|log| log + noise * dice.normal())).collect();
    ensure!(seen.iter().flatten().all(|v| v.is_finite()), "numbers that cannot be had");
    let parameters = truth.iter().map(|v| positive(dice, *v, (0.4, 0.9))).collect::<Result<Vec<_>>>()?;
    let log_likelihood = move |theta: &[f64]| {
        let logs = numbers(theta);
        let square: f64 =
            seen.iter().flatten().zip(logs.iter().flatten()).map(|(y, log)| ((y - log) / noise).powi(2)).sum();
        finite(-0.5 * square - 2.0 * years as f64 * (0.5 * TAU.ln() + noise.ln()))
    };
    Ok(Draft {
        prior: prior_of(&parameters)?,
        log_likelihood: Box::new(log_likelihood),
        truth: Truth::Sampled(SIMULATED_DRAWS),
        places: vec![truth],
    })
}
