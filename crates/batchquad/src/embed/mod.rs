//! Closed-form integrals of kernels against measures: `MATH.md` §2.
//!
//! A pair of kernel and measure without a closed form has no [`Embed`] and does not compile.

mod box_brownian;
mod box_matern;
mod box_product;
mod box_se;

use crate::{error::Result, kernel::Kernel, points::Points};

/// The integrals that plain Bayesian quadrature needs.
pub trait Embed<M>: Kernel {
    /// The kernel mean `zᵢ = ∫ k(x, xᵢ) dμ(x)` at each node.
    ///
    /// # Errors
    /// [`crate::Error::Length`] when the dimensions of kernel, measure and nodes differ.
    fn mean(&self, measure: &M, nodes: &Points) -> Result<Vec<f64>>;

    /// The prior variance of the integral, `∬ k(x, x') dμ(x) dμ(x')`.
    ///
    /// # Errors
    /// [`crate::Error::Length`] when the dimensions of kernel and measure differ.
    fn variance(&self, measure: &M) -> Result<f64>;
}
