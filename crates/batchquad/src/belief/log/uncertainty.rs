//! What the process does not know about the integral. `MATH.md` §15.

use super::{
    integral::{Integral, resample, root_weights},
    process::Process,
};
use crate::{
    error::Result,
    numeric::{linalg::transpose_mul, simd::exponentials},
};

/// Where the variance of the process is larger than this, its mean of the integrand is no estimate yet.
const VARIANCE_CAP: f64 = 4.0;

/// What the process does not know about the logarithm of the integral, over a few points of the sample.
///
/// With weights `aᵢ ∝ wᵢ e^{vᵢ/2}` that sum to one, `log(1 + Σᵢⱼ aᵢaⱼ(e^{cᵢⱼ} − 1))`, `cᵢⱼ` the covariances of the process, capped as the variance is. Half of the
/// points are of the posterior and half of its square root, reweighted: where the integrand is small and little is known, it may not be small. Cost: `n·count²`.
pub(crate) struct Uncertainty {
    pub(crate) model_variance: f64,
    /// `log E_w[e^{v/2}]`, by which the mean of the integral exceeds the integral of the mean's exponential, and its standard error.
    pub(crate) inflation: (f64, f64),
    /// `E_a[k(u)ᵀK⁻¹]`: what one unit of a value does to the logarithm of the integral.
    pub(crate) influence: Vec<f64>,
}

pub(crate) fn uncertainty(process: &Process, integral: &Integral, count: usize) -> Result<Uncertainty> {
    let root = root_weights(integral);
    let total: f64 = root.iter().sum();
    let mut chosen = resample(&integral.weights, count / 2, 0.5);
    chosen.extend(resample(&root, count / 2, 0.5));
    let count = chosen.len();
    let points = integral.points.select(&chosen);
    // Each point stands for the posterior's share of the mixture that it was drawn from.
    let share = |i: usize| integral.weights[i] / (0.5 * integral.weights[i] + 0.5 * root[i] / total);
    let mut share: Vec<f64> = chosen.iter().map(|&i| share(i)).collect();
    let sum: f64 = share.iter().sum();
    share.iter_mut().for_each(|s| *s /= sum);
    let placed = process.place(&points);
    let mut half = process.half(&placed);
    let prior = process.prior_cross(&placed, &placed);
    let explained = transpose_mul(&half, &half);
    let before = process.prior_variance(&points);
    let variance: Vec<f64> = before.iter().enumerate().map(|(i, v)| (v - explained.get(i, i)).max(0.0)).collect();
    let factors: Vec<f64> = variance.iter().map(|v| (0.5 * v.min(VARIANCE_CAP)).exp()).collect();
    let factor: f64 = share.iter().zip(&factors).map(|(s, f)| s * f).sum();
    let scatter: f64 = share.iter().zip(&factors).map(|(s, f)| (s * (f - factor)).powi(2)).sum();
    let inflation = (factor.ln(), scatter.sqrt() / factor);
    let weights: Vec<f64> = share.iter().zip(&factors).map(|(s, f)| s * f / factor).collect();
    // The weights sum to one, so that what is lost by taking one from each exponential and not from its logarithm is nothing beside a bar.
    let sds: Vec<f64> = variance.iter().map(|v| v.min(VARIANCE_CAP).sqrt()).collect();
    let mut total = 0.0;
    let mut row = vec![0.0; count];
    for j in 0..count {
        for ((c, (k, e)), sd) in row.iter_mut().zip(prior.col(j).iter().zip(explained.col(j))).zip(&sds) {
            let cap = sd * sds[j];
            *c = (k - e).clamp(-cap, cap);
        }
        exponentials(&mut row);
        total += weights[j] * weights.iter().zip(&row).map(|(w, e)| w * (e - 1.0)).sum::<f64>();
    }
    let model_variance = total.max(0.0).ln_1p();
    process.factor.half_solve_transposed(&mut half);
    let influence = (0..process.len()).map(|i| (0..count).map(|j| weights[j] * half.get(i, j)).sum::<f64>()).collect();
    Ok(Uncertainty { model_variance, inflation, influence })
}
