//! Evidences of models of real data.

use std::sync::OnceLock;

use anyhow::{Context, Result};

use super::{Problem, normal_prior};
use crate::{
    dense::{Cholesky, log_normal_density},
    grid::log_integral_2d,
};

/// Rows of numbers below a head.
pub(super) fn numbers<const N: usize>(csv: &str) -> Result<Vec<[f64; N]>> {
    let row = |line: &str| -> Result<[f64; N]> {
        let values = line.split(',').map(|v| v.trim().parse()).collect::<Result<Vec<f64>, _>>()?;
        values.try_into().map_err(|_| anyhow::anyhow!("expected {N} numbers"))
    };
    csv.lines().skip(1).map(|line| row(line).with_context(|| format!("in {line:?}"))).collect()
}

/// `log σ(z) = −log(1 + e⁻ᶻ)`, without overflow for large negative `z`.
pub(super) fn log_sigmoid(z: f64) -> f64 {
    if z > 0.0 { -(-z).exp().ln_1p() } else { z - z.exp().ln_1p() }
}

/// The standard deviation of the normal priors on intercept and slope.
const COEFFICIENT_SD: f64 = 5.0;

/// A logistic regression: whether any O-ring was damaged on the 23 shuttle flights before the Challenger accident, on
/// `t = (temperature − 70 °F)/10`. `log p = Σ log σ(±(a + bt))`, with `a, b ~ N(0, 5²)`.
///
/// # Errors
/// When the committed data cannot be read.
pub fn orings() -> Result<Problem> {
    static TRUTH: OnceLock<f64> = OnceLock::new();
    let flights = numbers::<2>(include_str!("../../data/orings.csv"))?;
    let log_likelihood = move |theta: &[f64]| -> f64 {
        let log_probability = |[temperature, incidents]: &[f64; 2]| {
            let logit = theta[0] + theta[1] * (temperature - 70.0) / 10.0;
            log_sigmoid(if *incidents > 0.0 { logit } else { -logit })
        };
        flights.iter().map(log_probability).sum()
    };
    // Widths of the posterior are 0.1 prior widths and more; halving the step changes log Z by less than 1e-9.
    let log_z = *TRUTH
        .get_or_init(|| log_integral_2d(0.05, |u| log_likelihood(&[COEFFICIENT_SD * u[0], COEFFICIENT_SD * u[1]])));
    Ok(Problem {
        name: "o-rings".into(),
        prior: normal_prior(&[(0.0, COEFFICIENT_SD); 2])?,
        log_likelihood: Box::new(log_likelihood),
        log_z,
    })
}

/// Means and standard deviations of the normal priors on the log lengthscale (in decades), the log variance and the log noise
/// variance, of standardised flows.
const NILE_PRIOR: [(f64, f64); 3] = [(0.5, 1.0), (-0.5, 1.0), (-0.5, 1.0)];

/// `data/nile_evidence.py`: a grid of a tenth of a prior width, 6·10⁶ nodes.
const NILE_LOG_Z: f64 = -129.781_517;

/// The evidence of a Gaussian process with SE kernel and noise on the yearly flow of the Nile at Aswan, 1871 to 1970, over
/// (log lengthscale, log variance, log noise variance).
///
/// # Errors
/// When the committed data cannot be read.
pub fn nile() -> Result<Problem> {
    let rows = numbers::<2>(include_str!("../../data/nile.csv"))?;
    let decades: Vec<f64> = rows.iter().map(|r| (r[0] - 1920.5) / 10.0).collect();
    let n = rows.len() as f64;
    let mean = rows.iter().map(|r| r[1]).sum::<f64>() / n;
    let sd = (rows.iter().map(|r| (r[1] - mean).powi(2)).sum::<f64>() / n).sqrt();
    let flows: Vec<f64> = rows.iter().map(|r| (r[1] - mean) / sd).collect();
    let log_likelihood = move |theta: &[f64]| {
        let (precision, variance, noise) = ((-2.0 * theta[0]).exp(), theta[1].exp(), theta[2].exp());
        let entry = |i: usize, j: usize| {
            let kernel = variance * (-0.5 * precision * (decades[i] - decades[j]).powi(2)).exp();
            kernel + if i == j { noise } else { 0.0 }
        };
        Cholesky::new(flows.len(), entry).map_or(f64::NEG_INFINITY, |factor| log_normal_density(&factor, &flows))
    };
    Ok(Problem {
        name: "nile".into(),
        prior: normal_prior(&NILE_PRIOR)?,
        log_likelihood: Box::new(log_likelihood),
        log_z: NILE_LOG_Z,
    })
}
