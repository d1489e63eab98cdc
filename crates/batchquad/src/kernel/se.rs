//! The squared-exponential kernel.

use super::Kernel;
use crate::error::{Error, Result, require_positive};

/// `k(x, y) = σ² exp(−½ Σⱼ (xⱼ − yⱼ)²/λⱼ²)`.
#[derive(Debug, Clone, PartialEq)]
pub struct SquaredExponential {
    sigma2: f64,
    lengthscales: Vec<f64>,
}

impl SquaredExponential {
    /// A kernel from its variance σ² and one lengthscale λⱼ for each dimension.
    ///
    /// # Errors
    /// [`Error::Length`] without lengthscales; [`Error::Invalid`] when σ² or a lengthscale is not finite and positive.
    pub fn new(sigma2: f64, lengthscales: Vec<f64>) -> Result<Self> {
        require_positive("variance of the SE kernel", sigma2)?;
        if lengthscales.is_empty() {
            return Err(Error::length("lengthscales of the SE kernel", 1, 0));
        }
        for (j, &lengthscale) in lengthscales.iter().enumerate() {
            require_positive(&format!("lengthscale {j} of the SE kernel"), lengthscale)?;
        }
        Ok(Self { sigma2, lengthscales })
    }

    /// The variance σ² = k(x, x).
    #[must_use]
    pub fn sigma2(&self) -> f64 {
        self.sigma2
    }

    /// The lengthscales λⱼ.
    #[must_use]
    pub fn lengthscales(&self) -> &[f64] {
        &self.lengthscales
    }
}

impl Kernel for SquaredExponential {
    fn dim(&self) -> usize {
        self.lengthscales.len()
    }

    fn value(&self, x: &[f64], y: &[f64]) -> f64 {
        let square = |((x, y), l): ((&f64, &f64), &f64)| ((x - y) / l).powi(2);
        self.sigma2 * (-0.5 * x.iter().zip(y).zip(&self.lengthscales).map(square).sum::<f64>()).exp()
    }
}
