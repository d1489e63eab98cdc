//! Curves through noisy measurements; the last parameter is the logarithm of the noise.

use std::f64::consts::TAU;

use anyhow::Result;
use batchquad::prior::Distribution;

use super::{super::LogLikelihood, super::world::simulators::finite, DRAWS, Dice, Draft, Truth, dice::dot, prior_of};
use crate::dense::Cholesky;

/// Measurements.
struct Seen {
    times: Vec<f64>,
    values: Vec<f64>,
}

impl Seen {
    /// A curve with normal noise on it.
    fn of(dice: &mut Dice, times: Vec<f64>, sigma: f64, curve: impl Fn(f64) -> f64) -> Self {
        let values = times.iter().map(|t| curve(*t) + sigma * dice.normal()).collect();
        Self { times, values }
    }

    /// `Σ log N(y; curve(t), σ²)`, σ being the exponential of the last parameter.
    fn log_likelihood(self, curve: impl Fn(&[f64], f64) -> f64 + Send + Sync + 'static) -> Box<LogLikelihood> {
        let n = self.times.len() as f64;
        Box::new(move |theta: &[f64]| {
            let log_sigma = theta[theta.len() - 1];
            let square: f64 = self.times.iter().zip(&self.values).map(|(t, y)| (y - curve(theta, *t)).powi(2)).sum();
            finite(-0.5 * (square * (-2.0 * log_sigma).exp() + n * (TAU.ln() + 2.0 * log_sigma)))
        })
    }
}

/// A wide prior of a positive parameter, from which `truth` is a draw.
fn positive(dice: &mut Dice, truth: f64, sds: (f64, f64)) -> Result<Distribution> {
    let sd = dice.uniform(sds.0, sds.1);
    Ok(Distribution::log_normal(truth.ln() + sd * dice.normal(), sd)?)
}

/// The same of any parameter.
fn real(dice: &mut Dice, truth: f64, sds: (f64, f64)) -> Result<Distribution> {
    let sd = dice.uniform(sds.0, sds.1);
    Ok(Distribution::normal(truth + sd * dice.normal(), sd)?)
}

fn draft(parameters: &[Distribution], log_likelihood: Box<LogLikelihood>, places: Vec<Vec<f64>>) -> Result<Draft> {
    Ok(Draft { prior: prior_of(parameters)?, log_likelihood, truth: Truth::Sampled(DRAWS), places })
}

/// `K/(1 + e^{−r(t − m)})` or, if the member is odd, Gompertz' `K exp(−e^{−r(t − m)})`, with `K`, `r`, `m` and `log σ` unknown.
pub fn growth(dice: &mut Dice) -> Result<Draft> {
    let (rows, logistic) = (dice.whole(12, 40), dice.even);
    let times = dice.times(rows, 10.0);
    let truth = [dice.log_uniform(5.0, 100.0), dice.log_uniform(0.5, 2.0), dice.uniform(3.0, 7.0)];
    let sigma = truth[0] * dice.log_uniform(0.01, 0.1);
    let curve = move |theta: &[f64], t: f64| {
        let past = (-theta[1] * (t - theta[2])).exp();
        theta[0] * if logistic { (1.0 + past).recip() } else { (-past).exp() }
    };
    let seen = Seen::of(dice, times, sigma, |t| curve(&truth, t));
    let parameters = [
        positive(dice, truth[0], (0.5, 1.5))?,
        positive(dice, truth[1], (0.5, 1.2))?,
        real(dice, truth[2], (2.0, 5.0))?,
        real(dice, sigma.ln(), (0.7, 1.5))?,
    ];
    let place = truth.into_iter().chain([sigma.ln()]).collect();
    draft(&parameters, seen.log_likelihood(curve), vec![place])
}

/// `a e^{−bt} + c e^{−dt}`; the two terms may change places, where the priors let them.
pub fn decay(dice: &mut Dice) -> Result<Draft> {
    let rows = dice.whole(15, 40);
    let times = dice.times(rows, 10.0);
    let truth = [
        dice.log_uniform(2.0, 10.0),
        dice.log_uniform(1.0, 3.0),
        dice.log_uniform(2.0, 10.0),
        dice.log_uniform(0.1, 0.4),
    ];
    let sigma = dice.log_uniform(0.03, 0.3);
    let curve = |theta: &[f64], t: f64| theta[0] * (-theta[1] * t).exp() + theta[2] * (-theta[3] * t).exp();
    let seen = Seen::of(dice, times, sigma, |t| curve(&truth, t));
    let mut parameters = truth.iter().map(|v| positive(dice, *v, (0.5, 1.0))).collect::<Result<Vec<Distribution>>>()?;
    parameters.push(real(dice, sigma.ln(), (0.7, 1.5))?);
    let [a, b, c, d] = truth;
    let places = vec![vec![a, b, c, d, sigma.ln()], vec![c, d, a, b, sigma.ln()]];
    draft(&parameters, seen.log_likelihood(curve), places)
}

/// `e^{−gt} (p sin ωt + q cos ωt)`, the parameters being p, q, g, ω and `log σ`.
pub fn damped(dice: &mut Dice) -> Result<Draft> {
    let rows = dice.whole(20, 50);
    let times = dice.times(rows, 10.0);
    let (amplitude, phase) = (dice.log_uniform(1.0, 5.0), dice.uniform(0.0, TAU));
    let (g, omega) = (dice.log_uniform(0.05, 0.4), dice.log_uniform(1.0, 5.0));
    let sigma = amplitude * dice.log_uniform(0.03, 0.3);
    let curve = |theta: &[f64], t: f64| {
        let (sin, cos) = (theta[3] * t).sin_cos();
        (-theta[2] * t).exp() * (theta[0] * sin + theta[1] * cos)
    };
    let truth = [amplitude * phase.cos(), amplitude * phase.sin(), g, omega];
    let seen = Seen::of(dice, times, sigma, |t| curve(&truth, t));
    let sd = amplitude * dice.log_uniform(1.0, 4.0);
    let parameters = [
        Distribution::normal(0.0, sd)?,
        Distribution::normal(0.0, sd)?,
        positive(dice, g, (0.5, 1.2))?,
        positive(dice, omega, (0.3, 0.7))?,
        real(dice, sigma.ln(), (0.7, 1.5))?,
    ];
    let mut places = vec![truth.into_iter().chain([sigma.ln()]).collect()];
    places.extend(oscillations(&seen, sd));
    draft(&parameters, seen.log_likelihood(curve), places)
}

/// Frequencies up to 20, a fifth of the width of a peak apart, and dampings at which they are tried.
const FREQUENCIES: usize = 1000;
const DAMPINGS: [f64; 5] = [0.01, 0.05, 0.15, 0.4, 1.2];

/// How many of the best frequencies are climbed.
const CLIMBED: usize = 25;

/// The frequencies at which the least squares, amplitudes and damping fitted, are a local minimum; the best first.
fn oscillations(seen: &Seen, amplitude_sd: f64) -> Vec<Vec<f64>> {
    let n = seen.times.len() as f64;
    let ridge = (0.1 / amplitude_sd).powi(2);
    let total = dot(&seen.values, &seen.values);
    let fit = |omega: f64, g: f64| -> Option<(f64, Vec<f64>)> {
        let waves: Vec<[f64; 2]> = seen
            .times
            .iter()
            .map(|t| {
                let (sin, cos) = (omega * t).sin_cos();
                [sin, cos].map(|wave| wave * (-g * t).exp())
            })
            .collect();
        let inner =
            |i: usize, j: usize| waves.iter().map(|w| w[i] * w[j]).sum::<f64>() + f64::from(u8::from(i == j)) * ridge;
        let outer: Vec<f64> = (0..2).map(|i| waves.iter().zip(&seen.values).map(|(w, y)| w[i] * y).sum()).collect();
        let inverse = Cholesky::new(2, inner)?.inverse();
        let (p, q) = (dot(&inverse[..2], &outer), dot(&inverse[2..], &outer));
        let left = (total - p * outer[0] - q * outer[1]).max(1e-12 * total);
        Some((left, vec![p, q, g, omega, 0.5 * (left / n).ln()]))
    };
    let best: Vec<Option<(f64, Vec<f64>)>> = (1..=FREQUENCIES)
        .map(|i| {
            let omega = 20.0 * i as f64 / FREQUENCIES as f64;
            DAMPINGS.iter().filter_map(|g| fit(omega, *g)).min_by(|a, b| a.0.total_cmp(&b.0))
        })
        .collect();
    let left = |i: usize| best.get(i).and_then(Option::as_ref).map_or(f64::INFINITY, |b| b.0);
    let mut lows: Vec<usize> =
        (0..best.len()).filter(|&i| left(i) <= left(i + 1) && (i == 0 || left(i) <= left(i - 1))).collect();
    lows.sort_by(|a, b| left(*a).total_cmp(&left(*b)));
    lows.truncate(CLIMBED);
    lows.into_iter().filter_map(|i| best[i].clone()).map(|b| b.1).collect()
}
