//! The paper's synthetic integrand: a mixture of isotropic Gaussians in four dimensions.

use std::f64::consts::TAU;

use anyhow::Result;
use batchquad::numeric::{Purpose, Stream};

use super::{Problem, normal_prior};
use crate::{dense::square_distance, grid::log_sum_exp};

/// The dimension.
const DIM: usize = 4;

/// The variance of the prior, which the paper does not name.
const PRIOR_VARIANCE: f64 = 4.0;

/// One Gaussian of the mixture.
#[derive(Debug, Clone, PartialEq)]
pub struct Component {
    /// Its mean.
    pub mean: Vec<f64>,
    /// Its variance in every direction.
    pub variance: f64,
}

impl Component {
    /// `log N(x; mean, (variance + extra) I)`.
    #[must_use]
    pub fn log_density(&self, x: &[f64], extra: f64) -> f64 {
        let variance = self.variance + extra;
        -0.5 * (square_distance(x, &self.mean) / variance + x.len() as f64 * (TAU * variance).ln())
    }
}

/// The components of mixture number `seed`: 10 to 15, with variances U(1, 4) and means U[−3, 3]⁴.
#[must_use]
pub fn components(seed: u64) -> Vec<Component> {
    let mut stream = Stream::new(seed, Purpose::Experiment, 0);
    let count = 10 + stream.index(6).unwrap_or(0);
    (0..count)
        .map(|_| Component {
            variance: 1.0 + 3.0 * stream.uniform(),
            mean: (0..DIM).map(|_| 6.0 * stream.uniform() - 3.0).collect(),
        })
        .collect()
}

/// `ℓ(x) = (1/K) Σₖ N(x; μₖ, vₖ I)` under `N(0, 4I)`; `Z = (1/K) Σₖ N(0; μₖ, (vₖ + 4) I)`.
///
/// # Errors
/// None in practice: the prior is a fixed one.
pub fn mixture(seed: u64) -> Result<Problem> {
    let components = components(seed);
    let log_share = -(components.len() as f64).ln();
    let log_z = log_share + log_sum_exp(components.iter().map(|c| c.log_density(&[0.0; DIM], PRIOR_VARIANCE)));
    Ok(Problem {
        name: "mixture".into(),
        prior: normal_prior(&[(0.0, PRIOR_VARIANCE.sqrt()); DIM])?,
        log_likelihood: Box::new(move |x| log_share + log_sum_exp(components.iter().map(|c| c.log_density(x, 0.0)))),
        log_z,
    })
}
