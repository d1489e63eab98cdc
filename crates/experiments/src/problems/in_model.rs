//! Integrands that the model itself could have drawn.

use std::f64::consts::TAU;

use anyhow::Result;
use batchquad::numeric::{Purpose, Stream};

use super::{Problem, normal_prior};
use crate::grid::log_integral_2d;

/// One random feature: a plane wave.
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    /// Its wave vector, `N(0, I/λ²)`.
    pub wave: [f64; 2],
    /// Its phase, uniform on a turn.
    pub phase: f64,
}

/// A draw `g(x) = m₀ + √(2/M) Σⱼ cos(wⱼ·x + bⱼ)`, which tends to one from a Gaussian process with unit variance and SE kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureDraw {
    /// `m₀`.
    pub mean: f64,
    /// The waves.
    pub features: Vec<Feature>,
}

/// The lengthscale of the draws, in prior standard deviations.
pub const LENGTHSCALE: f64 = 0.8;

/// The offset of the warp.
pub const ALPHA: f64 = 0.05;

/// Enough that the draw's distribution at a point differs from a normal one by a kurtosis of −1.5/M.
const FEATURES: usize = 300;

/// The mean of draws: zero, or four standard deviations where they are to stay positive.
#[must_use]
pub fn draw_mean(positive: bool) -> f64 {
    if positive { 4.0 } else { 0.0 }
}

impl FeatureDraw {
    /// Draw number `seed`.
    #[must_use]
    pub fn new(seed: u64, mean: f64) -> Self {
        let mut stream = Stream::new(seed, Purpose::Experiment, 1);
        let features = (0..FEATURES)
            .map(|_| Feature {
                wave: [stream.normal() / LENGTHSCALE, stream.normal() / LENGTHSCALE],
                phase: TAU * stream.uniform(),
            })
            .collect();
        Self { mean, features }
    }

    /// `g(x)`.
    #[must_use]
    pub fn at(&self, x: &[f64]) -> f64 {
        let sum: f64 = self.features.iter().map(|f| (f.wave[0] * x[0] + f.wave[1] * x[1] + f.phase).cos()).sum();
        self.mean + (2.0 / self.features.len() as f64).sqrt() * sum
    }
}

/// The step of the grid behind the truth: a quarter of a lengthscale, where the trapezoidal rule has converged to rounding.
const STEP: f64 = 0.2;

/// `ℓ = α + ½ g²` under `N(0, I)` in two dimensions, with `g` a draw around zero or, if `positive`, around four.
///
/// # Errors
/// None in practice: the prior is a fixed one.
pub fn in_model(seed: u64, positive: bool) -> Result<Problem> {
    let draw = FeatureDraw::new(seed, draw_mean(positive));
    let log_likelihood = move |x: &[f64]| (ALPHA + 0.5 * draw.at(x).powi(2)).ln();
    Ok(Problem {
        name: if positive { "in-model-positive" } else { "in-model" }.into(),
        prior: normal_prior(&[(0.0, 1.0); 2])?,
        log_z: log_integral_2d(STEP, |u| log_likelihood(u)),
        log_likelihood: Box::new(log_likelihood),
    })
}
