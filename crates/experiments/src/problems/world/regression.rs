//! Regressions on simulated data with correlated regressors.

use anyhow::{Context, Result};

use super::{
    super::{
        normal_prior,
        real::{log_sigmoid, numbers},
    },
    Parts,
};
use crate::dense::{Cholesky, log_normal_density};

/// The columns of `linear.csv`: seven regressors and nine responses.
const LINEAR_COLUMNS: usize = 16;

/// The standard deviations of the posterior under a flat prior, to two digits; the prior's are 10, 30 or 100 times as large.
fn posterior_sds(dim: usize) -> &'static [f64] {
    match dim {
        4 => &[0.13, 0.21, 0.28, 0.25],
        6 => &[0.13, 0.22, 0.30, 0.29, 0.36, 0.33],
        _ => &[0.14, 0.23, 0.30, 0.29, 0.36, 0.37, 0.28, 0.25],
    }
}

/// `y ~ N(Xb, I)` with `b ~ N(0, S)`, `X` an intercept and `dim − 1` regressors; `Z = N(y; 0, I + X S Xᵀ)`.
pub fn linear(dim: usize, width: u32) -> Result<Parts> {
    let csv = include_str!("../../../data/linear.csv");
    let response = format!("y_{dim}_{width}");
    let head = csv.lines().next().unwrap_or_default();
    let column = head.split(',').position(|h| h == response).with_context(|| format!("no column {response}"))?;
    let rows: Vec<(Vec<f64>, f64)> = numbers::<LINEAR_COLUMNS>(csv)?
        .iter()
        .map(|row| (std::iter::once(1.0).chain(row[..dim - 1].iter().copied()).collect(), row[column]))
        .collect();
    let sds: Vec<f64> = posterior_sds(dim).iter().map(|s| f64::from(width) * s).collect();
    let covariance = |i: usize, j: usize| {
        let inner: f64 = (0..dim).map(|k| rows[i].0[k] * sds[k] * sds[k] * rows[j].0[k]).sum();
        inner + f64::from(u8::from(i == j))
    };
    let factor = Cholesky::new(rows.len(), covariance).context("the covariance of the responses is not positive")?;
    let log_z = log_normal_density(&factor, &rows.iter().map(|(_, y)| *y).collect::<Vec<_>>());
    let constant = 0.5 * rows.len() as f64 * std::f64::consts::TAU.ln();
    let prior = normal_prior(&sds.iter().map(|s| (0.0, *s)).collect::<Vec<_>>())?;
    let log_likelihood = move |theta: &[f64]| {
        let residual = |(x, y): &(Vec<f64>, f64)| y - dot(x, theta);
        -0.5 * rows.iter().map(|row| residual(row).powi(2)).sum::<f64>() - constant
    };
    Ok((prior, Box::new(log_likelihood), log_z))
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| a * b).sum()
}

/// Fifty times the standard deviations of the posterior, to two digits.
const LOGISTIC_PRIOR: [f64; 5] = [10.0, 15.0, 13.0, 14.0, 11.0];

/// By importance sampling; the standard error is 0.0004.
const LOGISTIC_LOG_Z: f64 = -102.858_65;

/// `log p = Σ log σ(±(b₁ + b₂x₁ + … + b₅x₄))` on 150 rows.
pub fn logistic() -> Result<Parts> {
    let rows = numbers::<5>(include_str!("../../../data/logistic.csv"))?;
    let log_likelihood = move |theta: &[f64]| {
        let towards = |row: &[f64; 5]| {
            let logit = theta[0] + dot(&row[..4], &theta[1..]);
            if row[4] > 0.5 { logit } else { -logit }
        };
        rows.iter().map(|row| log_sigmoid(towards(row))).sum()
    };
    Ok((normal_prior(&LOGISTIC_PRIOR.map(|sd| (0.0, sd)))?, Box::new(log_likelihood), LOGISTIC_LOG_Z))
}
