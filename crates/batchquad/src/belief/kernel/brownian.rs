//! The Brownian (linear-spline) kernel, whose Bayesian quadrature is the trapezoid rule.

use super::Kernel;
use crate::error::{Error, Result, require_finite, require_positive};

/// `k(x, y) = σ² Πⱼ max(0, min(xⱼ, yⱼ) − startⱼ)`: a Wiener process (in more dimensions a Brownian sheet) that is
/// pinned to zero at `start` and before it.
///
/// On `x, y ≥ low` with `start = low − c` this is `σ² (c + min(x − low, y − low))`: a Wiener process from `low` plus a
/// constant of variance `σ²c`. So `start < low` says that the value at the lower face is unknown, `start = low` that it
/// is known to be zero.
///
/// # The trapezoid rule
///
/// The Wiener process is Markov and its bridges have linear means, so the posterior mean given values `fᵢ` at nodes
/// `x₁ < … < xₙ` is the broken line through them. When `x₁ = low`, `xₙ = high` and `start < low`, that line covers the
/// whole interval and its integral is the trapezoid rule, whatever σ² and the start are:
///
/// `E[∫f] = Σᵢ hᵢ (fᵢ + fᵢ₊₁)/2`, `V[∫f] = σ² Σᵢ hᵢ³/12`, `hᵢ = xᵢ₊₁ − xᵢ`
///
/// (against the uniform *probability* measure: divided by `high − low` and its square). The variance is that of the
/// independent bridges between nodes. With `start = low` the same holds for nodes in `(low, high]` and `f(low) = 0`; a
/// node at the start itself has variance zero and makes the Gram matrix singular. On a tensor grid in d dimensions the
/// estimate is the product trapezoid rule.
///
/// ```
/// use batchquad::belief::{Brownian, Kernel};
/// let kernel = Brownian::new(2.0, vec![-1.0])?;
/// assert_eq!(kernel.value(&[0.25], &[0.5]), 2.0 * (1.0 + 0.25));
/// # Ok::<(), batchquad::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Brownian {
    sigma2: f64,
    start: Vec<f64>,
}

impl Brownian {
    /// A kernel from its variance per unit length (volume) σ² and the point where the process starts from zero.
    ///
    /// # Errors
    /// [`Error::Length`] when `start` is empty; [`Error::Invalid`] when σ² is not finite and positive or a coordinate
    /// of `start` is not finite.
    pub fn new(sigma2: f64, start: Vec<f64>) -> Result<Self> {
        require_positive("variance of the Brownian kernel", sigma2)?;
        if start.is_empty() {
            return Err(Error::length("start of the Brownian kernel", 1, 0));
        }
        for (j, &s) in start.iter().enumerate() {
            require_finite(&format!("start {j} of the Brownian kernel"), s)?;
        }
        Ok(Self { sigma2, start })
    }

    /// The variance σ² gained per unit length (volume).
    #[must_use]
    pub fn sigma2(&self) -> f64 {
        self.sigma2
    }

    /// Where the process starts from zero.
    #[must_use]
    pub fn start(&self) -> &[f64] {
        &self.start
    }
}

impl Kernel for Brownian {
    fn dim(&self) -> usize {
        self.start.len()
    }

    fn value(&self, x: &[f64], y: &[f64]) -> f64 {
        let factor = |((x, y), s): ((&f64, &f64), &f64)| (x.min(*y) - s).max(0.0);
        self.sigma2 * x.iter().zip(y).zip(&self.start).map(factor).product::<f64>()
    }
}
