//! Shapes beyond the paper's, each with an exact log Z, under `N(0, I)` unless said otherwise.

use std::f64::consts::TAU;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::{
    Problem, normal_prior,
    real::{nile, orings},
};
use crate::grid::{log_integral_1d, log_sum_exp};

/// The members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Animal {
    /// A bent ridge in two dimensions.
    Banana,
    /// A correlated Gaussian in six dimensions.
    Gaussian6,
    /// A correlated Gaussian in ten dimensions.
    Gaussian10,
    /// A Gaussian of width 0.02 in two dimensions.
    Needle,
    /// A Gaussian in two dimensions, all log-likelihoods 500 lower.
    Offset500,
    /// The same, a million lower.
    OffsetMillion,
    /// Two modes in two dimensions, eight prior standard deviations apart.
    TwoModes,
    /// A funnel in three dimensions.
    Funnel,
    /// A product of Student-t densities in four dimensions.
    StudentT,
    /// [`orings`]: a logistic regression on real data, in two dimensions.
    ORings,
    /// [`nile`]: a Gaussian process on real data, in three dimensions.
    Nile,
}

/// A step at which the one-dimensional integrals behind some of the truths have converged to rounding.
const STEP: f64 = 0.005;

impl Animal {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Banana,
        Self::Gaussian6,
        Self::Gaussian10,
        Self::Needle,
        Self::Offset500,
        Self::OffsetMillion,
        Self::TwoModes,
        Self::Funnel,
        Self::StudentT,
        Self::ORings,
        Self::Nile,
    ];

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Banana => "banana",
            Self::Gaussian6 => "gaussian-6",
            Self::Gaussian10 => "gaussian-10",
            Self::Needle => "needle",
            Self::Offset500 => "offset-500",
            Self::OffsetMillion => "offset-million",
            Self::TwoModes => "two-modes",
            Self::Funnel => "funnel",
            Self::StudentT => "student-t",
            Self::ORings => "o-rings",
            Self::Nile => "nile",
        }
    }

    /// The problem.
    ///
    /// # Errors
    /// When committed data cannot be read.
    pub fn build(self) -> Result<Problem> {
        match self {
            Self::Banana => banana(),
            Self::Gaussian6 => correlated(self.name(), 6),
            Self::Gaussian10 => correlated(self.name(), 10),
            Self::Needle => round(self.name(), [0.7, -0.4], 0.02, 0.0),
            Self::Offset500 => round(self.name(), [0.5, -1.0], 0.5, -500.0),
            Self::OffsetMillion => round(self.name(), [0.5, -1.0], 0.5, -1e6),
            Self::TwoModes => two_modes(),
            Self::Funnel => funnel(),
            Self::StudentT => student_t(),
            Self::ORings => orings(),
            Self::Nile => nile(),
        }
    }
}

/// `log N(x; mean, variance)`.
pub(super) fn log_normal(x: f64, mean: f64, variance: f64) -> f64 {
    -0.5 * ((x - mean).powi(2) / variance + (TAU * variance).ln())
}

/// `ℓ = N(x₁; ½, 0.8²) N(x₂; x₁² − 1, 0.2²)`; given `x₁`, the integral over `x₂` is `N(x₁² − 1; 0, 1 + 0.2²)`.
fn banana() -> Result<Problem> {
    let first = |x: f64| log_normal(x, 0.5, 0.64);
    let ridge = |x: f64| x * x - 1.0;
    Ok(Problem {
        name: "banana".into(),
        prior: normal_prior(&[(0.0, 1.0); 2])?,
        log_likelihood: Box::new(move |x| first(x[0]) + log_normal(x[1], ridge(x[0]), 0.04)),
        log_z: log_integral_1d(STEP, |x| first(x) + log_normal(ridge(x), 0.0, 1.04)),
    })
}

/// `log N(x; mean 1, a I + b 11ᵀ)`, by its eigenvalues `a + db` (once, along the diagonal) and `a`.
fn log_equicorrelated(x: &[f64], mean: f64, a: f64, b: f64) -> f64 {
    let d = x.len() as f64;
    let sum: f64 = x.iter().map(|v| v - mean).sum();
    let all: f64 = x.iter().map(|v| (v - mean).powi(2)).sum();
    let along = sum * sum / d;
    let (large, small) = (a + d * b, a);
    -0.5 * (along / large + (all - along) / small + large.ln() + (d - 1.0) * small.ln() + d * TAU.ln())
}

/// A Gaussian at (0.4, …, 0.4) with standard deviations 0.4 and correlations one half; `Z` adds the prior's covariance.
fn correlated(name: &str, dim: usize) -> Result<Problem> {
    let (a, b) = (0.08, 0.08);
    Ok(Problem {
        name: name.into(),
        prior: normal_prior(&vec![(0.0, 1.0); dim])?,
        log_likelihood: Box::new(move |x| log_equicorrelated(x, 0.4, a, b)),
        log_z: log_equicorrelated(&vec![0.0; dim], 0.4, a + 1.0, b),
    })
}

/// A round Gaussian of some width in two dimensions, with a constant added to its logarithm.
fn round(name: &str, mean: [f64; 2], width: f64, offset: f64) -> Result<Problem> {
    let at = move |x: &[f64], variance: f64| {
        offset + log_normal(x[0], mean[0], variance) + log_normal(x[1], mean[1], variance)
    };
    Ok(Problem {
        name: name.into(),
        prior: normal_prior(&[(0.0, 1.0); 2])?,
        log_likelihood: Box::new(move |x| at(x, width * width)),
        log_z: at(&[0.0, 0.0], 1.0 + width * width),
    })
}

/// Gaussians of width one half at (±4, 0), the left with a weight of 0.3.
fn two_modes() -> Result<Problem> {
    let at = |x: &[f64], variance: f64| {
        let mode =
            |centre: f64, share: f64| share.ln() + log_normal(x[0], centre, variance) + log_normal(x[1], 0.0, variance);
        log_sum_exp([mode(-4.0, 0.3), mode(4.0, 0.7)].into_iter())
    };
    Ok(Problem {
        name: "two-modes".into(),
        prior: normal_prior(&[(0.0, 1.0); 2])?,
        log_likelihood: Box::new(move |x| at(x, 0.25)),
        log_z: at(&[0.0, 0.0], 1.25),
    })
}

/// `ℓ = N(x₂; 0, eˣ¹) N(x₃; 0, eˣ¹)` with `x₁ ~ N(0, 2²)`; given `x₁`, the others integrate to `N(0; 0, 1 + eˣ¹)` each.
fn funnel() -> Result<Problem> {
    Ok(Problem {
        name: "funnel".into(),
        prior: normal_prior(&[(0.0, 2.0), (0.0, 1.0), (0.0, 1.0)])?,
        log_likelihood: Box::new(|x| log_normal(x[1], 0.0, x[0].exp()) + log_normal(x[2], 0.0, x[0].exp())),
        log_z: log_integral_1d(STEP, |u| 2.0 * log_normal(0.0, 0.0, 1.0 + (2.0 * u).exp())),
    })
}

/// Student-t densities with three degrees of freedom and scale one half, at −0.6, −0.2, 0.2 and 0.6.
fn student_t() -> Result<Problem> {
    // Γ(2)/(Γ(3/2) √(3π)) = 2/(π√3), over the scale.
    let log_t = |x: f64| (2.0 / (std::f64::consts::PI * 3.0_f64.sqrt() * 0.5)).ln() - 2.0 * (x * x / 0.75).ln_1p();
    let centres = [-0.6, -0.2, 0.2, 0.6];
    Ok(Problem {
        name: "student-t".into(),
        prior: normal_prior(&[(0.0, 1.0); 4])?,
        log_likelihood: Box::new(move |x| x.iter().zip(centres).map(|(x, c)| log_t(x - c)).sum()),
        log_z: centres.iter().map(|c| log_integral_1d(STEP, |u| log_t(u - c))).sum(),
    })
}
