//! Closed-form integrals of kernels against measures: [`MATH.md` §2](crate::math).
//!
//! A pair of kernel and measure without a closed form has no [`Embed`] and does not compile.

mod box_brownian;
mod box_matern;
mod box_product;
mod box_se;
mod se_gaussian;
mod se_sums;

pub(crate) use se_sums::{kernel_sums, mean_jets, product_sums};

pub(crate) use se_gaussian::{Product, chain_quadratic, product_mul};

use crate::{belief::kernel::Kernel, error::Result, numeric::linalg::Matrix, points::Points};

/// The integrals that plain Bayesian quadrature needs.
pub trait Embed<M>: Kernel {
    /// The kernel mean `zᵢ = ∫ k(x, xᵢ) dμ(x)` at each node.
    ///
    /// # Errors
    /// [`crate::Error::Length`] when the dimensions of kernel, measure and nodes differ; [`crate::Error::Numerical`]
    /// when a value would overflow.
    fn mean(&self, measure: &M, nodes: &Points) -> Result<Vec<f64>>;

    /// The prior variance of the integral, `∬ k(x, x') dμ(x) dμ(x')`.
    ///
    /// # Errors
    /// [`crate::Error::Length`] when the dimensions of kernel and measure differ; [`crate::Error::Numerical`] when the
    /// value would overflow.
    fn variance(&self, measure: &M) -> Result<f64>;
}

/// The further integrals that a squared (square-root warped) Gaussian process needs.
pub trait EmbedProducts<M>: Embed<M> {
    /// `P(x, y)ᵢⱼ = ∫ k(xᵢ, t) k(t, yⱼ) dμ(t)`.
    ///
    /// # Errors
    /// [`crate::Error::Length`] when the dimensions of kernel, measure and points differ.
    fn product(&self, measure: &M, x: &Points, y: &Points) -> Result<Matrix>;

    /// The lower triangle of `Dᵢⱼ = ∬ k(xᵢ, t) k(t, t') k(t', xⱼ) dμ(t) dμ(t')`; the upper one is zero.
    ///
    /// # Errors
    /// [`crate::Error::Length`] when the dimensions of kernel, measure and nodes differ.
    fn chain_lower(&self, measure: &M, nodes: &Points) -> Result<Matrix>;

    /// `∬ k(t, t')² dμ(t) dμ(t')`.
    ///
    /// # Errors
    /// [`crate::Error::Length`] when the dimensions of kernel and measure differ.
    fn squared(&self, measure: &M) -> Result<f64>;
}
