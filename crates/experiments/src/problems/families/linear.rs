//! Linear regressions with unknown noise.

use std::f64::consts::TAU;

use anyhow::Result;

use super::{
    super::normal_prior,
    Dice, Draft, Truth, around,
    dice::dot,
    glm::{design, posterior_sds},
};
use crate::{
    dense::{Cholesky, log_normal_density},
    grid::log_integral_1d,
};

/// The step of the integral over the log noise, in standard deviations of its prior. The width of the posterior is 0.09/1.5 at least.
const STEP: f64 = 0.02;

/// `y ~ N(Xb, σ² I)`; the parameters are `b` and `log σ`. For one σ, `Z = N(y − Xm; 0, σ²I + X S Xᵀ)` with the prior `N(m, S)` of `b`.
pub fn linear_noise(dice: &mut Dice) -> Result<Draft> {
    let (dim, rows) = (dice.whole(2, 5), dice.whole(15, 60));
    let x = design(dice, rows, dim)?;
    let truth: Vec<f64> = dice.normals(dim).iter().map(|v| 2.0 * v).collect();
    let sigma = dice.log_uniform(0.3, 3.0);
    let y: Vec<f64> = x.iter().map(|x| dot(x, &truth) + sigma * dice.normal()).collect();
    let sds = posterior_sds(&x, &vec![sigma.powi(-2); rows])?;
    let mut parameters = around(dice, &truth, &sds);
    let noise_sd = dice.uniform(0.7, 1.5);
    parameters.push((sigma.ln() + noise_sd * dice.normal(), noise_sd));
    let log_z = log_z(&x, &y, &parameters);
    let n = rows as f64;
    let log_likelihood = move |theta: &[f64]| {
        let (b, log_sigma) = (&theta[..dim], theta[dim]);
        let square: f64 = x.iter().zip(&y).map(|(x, y)| (y - dot(x, b)).powi(2)).sum();
        -0.5 * (square * (-2.0 * log_sigma).exp() + n * (TAU.ln() + 2.0 * log_sigma))
    };
    Ok(Draft {
        prior: normal_prior(&parameters)?,
        log_likelihood: Box::new(log_likelihood),
        truth: Truth::Exact(log_z),
        places: vec![truth.into_iter().chain([sigma.ln()]).collect()],
    })
}

fn log_z(x: &[Vec<f64>], y: &[f64], parameters: &[(f64, f64)]) -> f64 {
    let (coefficients, noise) = parameters.split_at(parameters.len() - 1);
    let (mean, sd) = noise[0];
    let away: Vec<f64> =
        x.iter().zip(y).map(|(x, y)| y - x.iter().zip(coefficients).map(|(x, c)| x * c.0).sum::<f64>()).collect();
    let signal = |i: usize, j: usize| -> f64 {
        coefficients.iter().enumerate().map(|(k, c)| x[i][k] * c.1 * c.1 * x[j][k]).sum()
    };
    log_integral_1d(STEP, |u| {
        let variance = (2.0 * (mean + sd * u)).exp();
        let entry = |i: usize, j: usize| signal(i, j) + if i == j { variance } else { 0.0 };
        Cholesky::new(y.len(), entry).map_or(f64::NEG_INFINITY, |factor| log_normal_density(&factor, &away))
    })
}
