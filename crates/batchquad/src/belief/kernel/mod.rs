//! Covariance functions.

mod brownian;
mod matern;
mod se;

pub use brownian::Brownian;
pub use matern::{Matern, Smoothness};
pub use se::SquaredExponential;

use crate::{
    error::{Error, Result},
    numeric::linalg::Matrix,
    points::Points,
};

/// A covariance function `k(x, x')` on `ℝᵈ`.
pub trait Kernel {
    /// The dimension `d ≥ 1` of its arguments.
    fn dim(&self) -> usize;

    /// `k(x, y)`. Both slices have length [`Kernel::dim`].
    fn value(&self, x: &[f64], y: &[f64]) -> f64;

    /// The matrix `k(xᵢ, yⱼ)`, one row for each point of `x`, one column for each of `y`.
    ///
    /// # Errors
    /// [`Error::Length`] when a dimension differs from the kernel's.
    fn gram(&self, x: &Points, y: &Points) -> Result<Matrix> {
        require_dims(self.dim(), &[("first points", x.dim()), ("second points", y.dim())])?;
        Ok(Matrix::from_fn(x.len(), y.len(), |i, j| self.value(x.row(i), y.row(j))))
    }
}

/// Checks that each of the named dimensions equals `dim`.
pub(crate) fn require_dims(dim: usize, found: &[(&str, usize)]) -> Result<()> {
    match found.iter().find(|(_, d)| *d != dim) {
        Some((what, d)) => Err(Error::length(format!("dimension of the {what}"), dim, *d)),
        None => Ok(()),
    }
}
