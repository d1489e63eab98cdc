//! Shapes with closed forms.

use anyhow::Result;
use batchquad::prior::{Distribution, Prior};

use super::{
    super::{normal_prior, zoo::log_normal},
    Parts,
};
use crate::grid::{log_integral_1d, log_sum_exp};

/// `Φ(x)`.
fn cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

/// `log N(x; mean, variance I)` in two dimensions.
fn log_round(x: &[f64], mean: [f64; 2], variance: f64) -> f64 {
    log_normal(x[0], mean[0], variance) + log_normal(x[1], mean[1], variance)
}

/// `N(x; (1/2, −1), (1/4) I)` under `N(0, I)`.
pub fn gaussian() -> Result<Parts> {
    let mean = [0.5, -1.0];
    let log_likelihood = move |x: &[f64]| log_round(x, mean, 0.25);
    Ok((normal_prior(&[(0.0, 1.0); 2])?, Box::new(log_likelihood), log_round(&[0.0, 0.0], mean, 1.25)))
}

/// Weights, centres and widths.
const FOUR_MODES: [(f64, [f64; 2], f64); 4] =
    [(0.4, [-5.0, -4.0], 1.0), (0.3, [4.0, 5.5], 0.7), (0.2, [5.0, -3.0], 0.5), (0.1, [-4.0, 4.5], 0.8)];

/// `Σ w N(x; c, s² I)` under a uniform prior on [−10, 10]²; each weighs its mass within the square, over the area.
pub fn four_modes() -> Result<Parts> {
    let uniform = Distribution::uniform(-10.0, 10.0)?;
    let log_likelihood = |x: &[f64]| log_sum_exp(FOUR_MODES.iter().map(|(w, c, s)| w.ln() + log_round(x, *c, s * s)));
    let within = |c: f64, s: f64| cdf((10.0 - c) / s) - cdf((-10.0 - c) / s);
    let mass: f64 = FOUR_MODES.iter().map(|(w, c, s)| w * within(c[0], *s) * within(c[1], *s)).sum();
    Ok((Prior::independent([("x1", uniform), ("x2", uniform)])?, Box::new(log_likelihood), (mass / 400.0).ln()))
}

/// `−((1 − x)² + 100 (y − x²)²)/20` under `N(0, 4I)`; given `x`, the integral over `y` is `√(2π/10) N(x²; 0, 4 + 1/10)`.
pub fn rosenbrock() -> Result<Parts> {
    let log_likelihood = |x: &[f64]| -((1.0 - x[0]).powi(2) + 100.0 * (x[1] - x[0] * x[0]).powi(2)) / 20.0;
    let across = 0.5 * (0.1 * std::f64::consts::TAU).ln();
    let log_z = log_integral_1d(0.005, |u| {
        let x = 2.0 * u;
        -(1.0 - x).powi(2) / 20.0 + across + log_normal(x * x, 0.0, 4.1)
    });
    Ok((normal_prior(&[(0.0, 2.0); 2])?, Box::new(log_likelihood), log_z))
}

/// The unit normal of the line along which [`jump`] and [`half_space`] break.
const NORMAL: [f64; 2] = [0.6, 0.8];

/// How far beyond the line `n·x = offset` a point is.
fn beyond(x: &[f64], offset: f64) -> f64 {
    NORMAL[0] * x[0] + NORMAL[1] * x[1] - offset
}

/// The mass beyond the line of the posterior of `N(x; mean, v I)` under `N(0, I)`: its mean is `mean/(1 + v)`, its variance
/// `v/(1 + v)`.
fn mass_beyond(mean: [f64; 2], v: f64, offset: f64) -> f64 {
    cdf(beyond(&mean.map(|m| m / (1.0 + v)), offset) / (v / (1.0 + v)).sqrt())
}

/// `N(x; (1/2, −1), (1/4) I)`, `e²` times larger beyond the line through (0.4, −0.7) with normal (0.6, 0.8), under `N(0, I)`.
pub fn jump() -> Result<Parts> {
    let (mean, v, offset) = ([0.5, -1.0], 0.25, -0.32);
    let log_likelihood = move |x: &[f64]| log_round(x, mean, v) + if beyond(x, offset) > 0.0 { 2.0 } else { 0.0 };
    let raised = mass_beyond(mean, v, offset) * 2.0_f64.exp_m1();
    let log_z = log_round(&[0.0, 0.0], mean, 1.0 + v) + raised.ln_1p();
    Ok((normal_prior(&[(0.0, 1.0); 2])?, Box::new(log_likelihood), log_z))
}

/// A Gaussian of width 0.1, zero on the near side of the line through the origin with normal (0.6, 0.8), half a width from its
/// centre; under `N(0, I)`.
pub fn half_space() -> Result<Parts> {
    let (mean, v) = ([0.83, -0.56], 0.01);
    let log_likelihood = move |x: &[f64]| if beyond(x, 0.0) > 0.0 { log_round(x, mean, v) } else { f64::NEG_INFINITY };
    let log_z = log_round(&[0.0, 0.0], mean, 1.0 + v) + mass_beyond(mean, v, 0.0).ln();
    Ok((normal_prior(&[(0.0, 1.0); 2])?, Box::new(log_likelihood), log_z))
}
