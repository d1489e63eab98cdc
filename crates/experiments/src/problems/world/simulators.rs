//! Models that are solved step by step, on simulated data. Where the solution blows up the log-likelihood is −∞.

use std::f64::consts::TAU;

use anyhow::Result;
use batchquad::prior::{Distribution, Prior};

use super::{super::real::numbers, Parts};

/// Independent log-normal parameters by name, median and the standard deviation of the logarithm.
fn log_normal_prior(parameters: &[(&str, f64, f64)]) -> Result<Prior> {
    let named: Vec<(&str, Distribution)> = parameters
        .iter()
        .map(|&(name, median, sd)| Ok((name, Distribution::log_normal(median.ln(), sd)?)))
        .collect::<Result<_>>()?;
    Ok(Prior::independent(named)?)
}

/// One step of Runge–Kutta of order four.
pub fn step<const N: usize>(state: [f64; N], h: f64, slope: impl Fn([f64; N]) -> [f64; N]) -> [f64; N] {
    let ahead = |k: [f64; N], h: f64| -> [f64; N] { std::array::from_fn(|a| state[a] + h * k[a]) };
    let k1 = slope(state);
    let k2 = slope(ahead(k1, 0.5 * h));
    let k3 = slope(ahead(k2, 0.5 * h));
    let k4 = slope(ahead(k3, h));
    std::array::from_fn(|a| state[a] + h / 6.0 * (k1[a] + 2.0 * k2[a] + 2.0 * k3[a] + k4[a]))
}

/// What a simulator returns for a value that is not a number.
pub fn finite(log_likelihood: f64) -> f64 {
    if log_likelihood.is_finite() { log_likelihood } else { f64::NEG_INFINITY }
}

/// Steps a year.
const LOTKA_STEPS: usize = 20;

/// The standard deviation of the noise, where it is known.
const LOTKA_NOISE: f64 = 0.15;

/// Names, medians and widths of the log-normal priors.
const LOTKA_PRIOR: [(&str, f64, f64); 8] = [
    ("birth", 1.0, 1.0),
    ("predation", 0.05, 1.0),
    ("growth", 0.05, 1.0),
    ("death", 1.0, 1.0),
    ("prey", 20.0, 1.0),
    ("predators", 20.0, 1.0),
    ("prey_sd", 0.5, 1.5),
    ("predators_sd", 0.5, 1.5),
];

/// By importance sampling; the standard errors are 0.0005 and 0.0007.
const LOTKA_LOG_Z: [f64; 2] = [-137.174_35, -142.152_36];

/// Prey `u′ = (a − bv)u` and predators `v′ = (du − c)v` on 24 years, `log` of what was seen is normal around `log u` and `log v`.
/// The parameters are a, b, d, c, the two initial values and the two standard deviations of the noise, which are known if `dim` is 6.
pub fn lotka_volterra(dim: usize) -> Result<Parts> {
    let seen: Vec<[f64; 2]> = numbers::<3>(include_str!("../../../data/lotka_volterra.csv"))?
        .iter()
        .map(|r| [r[1].ln(), r[2].ln()])
        .collect();
    let log_likelihood = move |theta: &[f64]| {
        let (a, b, d, c) = (theta[0], theta[1], theta[2], theta[3]);
        let sds = if dim == 8 { [theta[6], theta[7]] } else { [LOTKA_NOISE; 2] };
        let slope = |[u, v]: [f64; 2]| [(a - b * v) * u, (d * u - c) * v];
        let mut state = [theta[4], theta[5]];
        let mut total = 0.0;
        for (year, logs) in seen.iter().enumerate() {
            if year > 0 {
                for _ in 0..LOTKA_STEPS {
                    state = step(state, 1.0 / LOTKA_STEPS as f64, slope);
                }
            }
            for k in 0..2 {
                let z = (logs[k] - state[k].ln()) / sds[k];
                total -= 0.5 * (z * z + TAU.ln()) + sds[k].ln() + logs[k];
            }
        }
        finite(total)
    };
    let log_z = LOTKA_LOG_Z[usize::from(dim == 8)];
    Ok((log_normal_prior(&LOTKA_PRIOR[..dim])?, Box::new(log_likelihood), log_z))
}

/// The population.
const PEOPLE: f64 = 2000.0;

/// Steps a day.
const SIR_STEPS: usize = 4;

/// The size of the negative binomial: the variance is `mean + mean²/size`.
const SIZE: f64 = 50.0;

/// By the trapezoidal rule; halving the step changes it by less than 1e-6, and sampling agrees within its error of 0.0004.
const SIR_LOG_Z: f64 = -175.953_218;

/// Susceptible `s′ = −b s i/n` and infected `i′ = b s i/n − g i`; the new cases of a day are negative binomial around
/// `s(t) − s(t + 1)`. The parameters are b, g and `i(0)`.
pub fn sir() -> Result<Parts> {
    let cases: Vec<f64> = numbers::<2>(include_str!("../../../data/sir.csv"))?.iter().map(|r| r[1]).collect();
    let constant: f64 = cases
        .iter()
        .map(|y| libm::lgamma(y + SIZE) - libm::lgamma(SIZE) - libm::lgamma(y + 1.0) + SIZE * SIZE.ln())
        .sum();
    let log_likelihood = move |theta: &[f64]| {
        let slope = |[s, i]: [f64; 2]| {
            let new = theta[0] * s * i / PEOPLE;
            [-new, new - theta[1] * i]
        };
        let mut state = [PEOPLE - theta[2], theta[2]];
        let mut total = constant;
        for y in &cases {
            let before = state[0];
            for _ in 0..SIR_STEPS {
                state = step(state, 1.0 / SIR_STEPS as f64, slope);
            }
            let mean = before - state[0];
            total += y * mean.ln() - (SIZE + y) * (SIZE + mean).ln();
        }
        finite(total)
    };
    let prior = log_normal_prior(&[("infection", 0.3, 1.0), ("recovery", 0.3, 1.0), ("infected", 10.0, 1.5)])?;
    Ok((prior, Box::new(log_likelihood), SIR_LOG_Z))
}
