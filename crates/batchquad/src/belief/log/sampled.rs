//! The integral of the surrogate of one peak, and how far it can be believed. `MATH.md` §15.

use super::{
    integral::{Adapted, Integral, Target, integrate},
    known::{Known, coefficients},
    process::Process,
    uncertainty::{Uncertainty, uncertainty},
    view::View,
};
use crate::error::Result;

/// Draws that integrate the surrogate of a peak that is found, and those that do where the first leave too much open.
const DRAWS: [usize; 2] = [4_096, 16_384];

/// Points of the sample behind the covariances of the process.
const COVARIANCES: usize = 384;

/// The sampling may leave open so much of what the process does, which counts as no less than [`fine`].
const SAMPLING: f64 = 0.3;

/// What the process leaves open of `log Z` counts as no less. In up to three dimensions draws are cheap.
fn fine(dim: usize) -> f64 {
    if dim <= 3 { 5e-4 } else { 2e-3 }
}

/// Chosen by measurement: so many values that are as surprising as the process expects stand beside those that there are.
const DOUBT: f64 = 2.0;

/// An integral of the surrogate, what the process does not know about it, and how far it can be believed.
pub(super) struct Sampled {
    pub(super) integral: Integral,
    pub(super) uncertain: Uncertainty,
    /// The variance of `log Z` by the jackknife, and its [ratio](surprise) to what the process expects.
    pub(super) jackknife: f64,
    pub(super) surprise: f64,
}

impl Sampled {
    pub(super) fn new(process: &Process, integral: Integral) -> Result<Self> {
        let uncertain = uncertainty(process, &integral, COVARIANCES)?;
        let (jackknife, surprise) = surprise(process, &uncertain.influence);
        Ok(Self { integral, uncertain, jackknife, surprise })
    }
}

/// The integral of the surrogate of a peak that is found, with so many draws that the sampling leaves little open beside the process; for a `rough` one
/// with the fewest.
pub(super) fn many_draws(aim: &Target<'_>, adapted: &Adapted, rough: bool, seed: u64) -> Result<Sampled> {
    let sd = |sampled: &Sampled| sampled.uncertain.model_variance.sqrt().max(fine(aim.process.dim()));
    let mut sampled = Sampled::new(aim.process, integrate(aim, adapted, DRAWS[0], seed)?)?;
    if !rough && sampled.integral.monte_carlo > SAMPLING * sd(&sampled) {
        sampled = Sampled::new(aim.process, integrate(aim, adapted, DRAWS[1], seed)?)?;
        let wanted = (SAMPLING, sd(&sampled));
        sampled.integral.sharpen(aim, wanted, seed)?;
    }
    Ok(sampled)
}

/// The logarithm of the expected integral. Where values are less surprising than the process expects, its variances are too large, and so is what they add.
pub(super) fn log_evidence(known: &Known, view: &View, sampled: &Sampled) -> f64 {
    let inflation = sampled.surprise.min(1.0) * sampled.uncertain.inflation.0;
    known.best + sampled.integral.log_mass + view.log_volume + inflation
}

/// The variance of `log Z` by the jackknife, `J = Σᵢ (bᵢrᵢ)²`, and its ratio to what the process expects it to be, `E = Σᵢ bᵢ²/pᵢ` with precisions
/// `pᵢ = [K⁻¹]ᵢᵢ`. It is told by `m = E²/Σᵢ(bᵢ²/pᵢ)²` independent values, less the share that a quadratic takes. So its logarithm counts `m/(m + k)` times,
/// where `k` is [`DOUBT`]: few values that happen to be unsurprising say little.
fn surprise(process: &Process, influence: &[f64]) -> (f64, f64) {
    let precision = process.factor.inverse_diagonal();
    let (mut jackknife, mut expected, mut squares) = (0.0, 0.0, 0.0);
    for ((w, p), b) in process.weights.iter().zip(&precision).zip(influence) {
        let share = b * b / p;
        jackknife += (b * w / p).powi(2);
        expected += share;
        squares += share * share;
    }
    let free = (1.0 - coefficients(process.dim()) as f64 / process.len() as f64).max(0.0);
    let count = free * expected * expected / squares.max(f64::MIN_POSITIVE);
    let ratio = jackknife / expected.max(f64::MIN_POSITIVE);
    (jackknife, ratio.powf(count / (count + DOUBT)))
}
