//! The data of the GP-evidence problem: twenty iterations of Bayesian optimisation on the Branin–Hoo function.

use std::f64::consts::{PI, SQRT_2, TAU};

use anyhow::{Context, Result};

use crate::{
    dense::{Cholesky, log_normal_density, square_distance},
    output::csv,
};

/// The Branin–Hoo function on the unit square, which stands for its usual domain `[−5, 10] × [0, 15]`.
///
/// `(x₂ − 5.1 x₁²/4π² + 5x₁/π − 6)² + 10 (1 − 1/8π) cos x₁ + 10`; its three minima are 0.397887.
#[must_use]
pub fn branin(u: &[f64; 2]) -> f64 {
    let (x, y) = (15.0 * u[0] - 5.0, 15.0 * u[1]);
    let bend = y - 5.1 / (4.0 * PI * PI) * x * x + 5.0 / PI * x - 6.0;
    bend * bend + 10.0 * (1.0 - 1.0 / (8.0 * PI)) * libm::cos(x) + 10.0
}

/// One evaluation of an objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Where, in the unit square.
    pub point: [f64; 2],
    /// What was found.
    pub value: f64,
}

/// The noise variance of the model whose evidence is sought, in units of the standardised targets.
pub const NOISE: f64 = 1e-4;

/// The objective has no noise: while optimising, this share of the variance only keeps matrices regular.
const NUGGET: f64 = 1e-6;

/// Candidates of the search are the nodes of a grid with this many intervals a side.
const INTERVALS: usize = 100;

/// Expected improvement with an isotropic SE Gaussian process, from the centre of the unit square on.
///
/// Targets are standardised. The lengthscale has the highest marginal likelihood on a grid of 40 from 0.05 to 2, with the variance at
/// its own maximum given the lengthscale. The next point is the best of 101 × 101 grid points that were not evaluated yet; the first of
/// equals wins, so everything is determined.
///
/// # Errors
/// When a covariance matrix is not positive definite.
pub fn optimise(objective: impl Fn(&[f64; 2]) -> f64, iterations: usize) -> Result<Vec<Evaluation>> {
    let mut data: Vec<Evaluation> = Vec::new();
    for _ in 0..iterations {
        let point = if data.is_empty() { [0.5, 0.5] } else { most_promising(&data)? };
        data.push(Evaluation { point, value: objective(&point) });
    }
    Ok(data)
}

/// Targets with mean zero and (population) variance one; a single one becomes zero.
#[must_use]
pub fn standardise(data: &[Evaluation]) -> Vec<f64> {
    let n = data.len() as f64;
    let mean = data.iter().map(|e| e.value).sum::<f64>() / n;
    let variance = data.iter().map(|e| (e.value - mean).powi(2)).sum::<f64>() / n;
    let sd = if variance > 0.0 { variance.sqrt() } else { 1.0 };
    data.iter().map(|e| (e.value - mean) / sd).collect()
}

fn correlation(x: &[f64; 2], y: &[f64; 2], lengthscale: f64) -> f64 {
    libm::exp(-0.5 * square_distance(x, y) / (lengthscale * lengthscale))
}

fn most_promising(data: &[Evaluation]) -> Result<[f64; 2]> {
    let y = standardise(data);
    let best = y.iter().copied().fold(f64::INFINITY, f64::min);
    let (lengthscale, variance, factor) =
        fitted(data, &y).context("no lengthscale gives a positive-definite matrix")?;
    let white = factor.half_solve(&y);
    let mut top = (f64::NEG_INFINITY, [0.5, 0.5]);
    for i in 0..=INTERVALS {
        for j in 0..=INTERVALS {
            let x = [i as f64 / INTERVALS as f64, j as f64 / INTERVALS as f64];
            if data.iter().any(|e| e.point == x) {
                continue;
            }
            let cross: Vec<f64> = data.iter().map(|e| correlation(&e.point, &x, lengthscale)).collect();
            let half = factor.half_solve(&cross);
            let mean: f64 = half.iter().zip(&white).map(|(a, b)| a * b).sum();
            let explained: f64 = half.iter().map(|v| v * v).sum();
            let gain = expected_improvement(best - mean, (variance * (1.0 - explained)).max(0.0).sqrt());
            if gain > top.0 {
                top = (gain, x);
            }
        }
    }
    Ok(top.1)
}

/// Lengthscale, variance and the factor of the correlation matrix (with noise) of the highest marginal likelihood.
fn fitted(data: &[Evaluation], y: &[f64]) -> Option<(f64, f64, Cholesky)> {
    let n = y.len();
    let mut best: Option<(f64, f64, f64, Cholesky)> = None;
    for k in 0..40 {
        let lengthscale = 0.05 * libm::pow(40.0, f64::from(k) / 39.0);
        let entry = |i: usize, j: usize| {
            correlation(&data[i].point, &data[j].point, lengthscale) + if i == j { NUGGET } else { 0.0 }
        };
        let Some(factor) = Cholesky::new(n, entry) else { continue };
        let energy: f64 = factor.half_solve(y).iter().map(|v| v * v).sum();
        // One pseudo-observation of size one keeps the variance positive while there is a single target.
        let variance = (energy + 1.0) / (n as f64 + 1.0);
        let fit = -0.5 * ((n as f64 + 1.0) * libm::log(variance) + factor.log_det());
        if best.as_ref().is_none_or(|b| fit > b.0) {
            best = Some((fit, lengthscale, variance, factor));
        }
    }
    best.map(|(_, lengthscale, variance, factor)| (lengthscale, variance, factor))
}

/// `E[max(δ + s ε, 0)] = δ Φ(δ/s) + s φ(δ/s)` for `ε ~ N(0, 1)`.
fn expected_improvement(delta: f64, sd: f64) -> f64 {
    if sd == 0.0 {
        return delta.max(0.0);
    }
    let z = delta / sd;
    delta * 0.5 * libm::erfc(-z / SQRT_2) + sd * libm::exp(-0.5 * z * z) / TAU.sqrt()
}

/// The log marginal likelihood of a Gaussian process with isotropic SE kernel and noise [`NOISE`]; −∞ where rounding has left the
/// covariance matrix singular.
#[must_use]
pub fn log_marginal(data: &[Evaluation], targets: &[f64], log_lengthscale: f64, log_variance: f64) -> f64 {
    factor(data, log_lengthscale, log_variance).map_or(f64::NEG_INFINITY, |factor| log_normal_density(&factor, targets))
}

/// [`log_marginal`] with its gradient in (log lengthscale, log variance), none where rounding has left the matrix singular.
///
/// `∂ = ½ Σᵢⱼ (αᵢαⱼ − C⁻¹ᵢⱼ) ∂kᵢⱼ` with `α = C⁻¹y`, `∂k/∂log σ² = k` and `∂k/∂log λ = k |xᵢ − xⱼ|²/λ²`. Cost: `2n³`.
#[must_use]
pub fn log_marginal_gradient(
    data: &[Evaluation],
    targets: &[f64],
    log_lengthscale: f64,
    log_variance: f64,
) -> Option<(f64, [f64; 2])> {
    let factor = factor(data, log_lengthscale, log_variance)?;
    let (n, inverse) = (data.len(), factor.inverse());
    let alpha: Vec<f64> = inverse.chunks(n).map(|row| row.iter().zip(targets).map(|(a, b)| a * b).sum()).collect();
    let precision = (-2.0 * log_lengthscale).exp();
    let mut gradient = [0.0; 2];
    for i in 0..n {
        for j in 0..n {
            let scaled = precision * square_distance(&data[i].point, &data[j].point);
            let slope = 0.5 * (alpha[i] * alpha[j] - inverse[i * n + j]) * (log_variance - 0.5 * scaled).exp();
            gradient[0] += slope * scaled;
            gradient[1] += slope;
        }
    }
    Some((log_normal_density(&factor, targets), gradient))
}

/// The factor of the targets' covariance matrix.
fn factor(data: &[Evaluation], log_lengthscale: f64, log_variance: f64) -> Option<Cholesky> {
    let (precision, variance) = ((-2.0 * log_lengthscale).exp(), log_variance.exp());
    Cholesky::new(data.len(), |i, j| {
        let square = square_distance(&data[i].point, &data[j].point);
        variance * (-0.5 * precision * square).exp() + if i == j { NOISE } else { 0.0 }
    })
}

/// The evaluations as CSV, every digit.
///
/// # Errors
/// None in practice: memory is written to.
pub fn to_csv(data: &[Evaluation]) -> Result<String> {
    csv(&["u1", "u2", "branin"], data.iter().map(|e| (e.point, e.value)))
}

/// Evaluations from such CSV.
///
/// # Errors
/// When a row does not hold three numbers.
pub fn from_csv(text: &str) -> Result<Vec<Evaluation>> {
    let rows = csv::Reader::from_reader(text.as_bytes()).into_deserialize::<([f64; 2], f64)>();
    rows.map(|row| row.map(|(point, value)| Evaluation { point, value }).context("expected three numbers")).collect()
}

/// The committed evaluations.
///
/// # Errors
/// When the file was damaged.
pub fn committed() -> Result<Vec<Evaluation>> {
    from_csv(include_str!("../data/branin.csv"))
}
