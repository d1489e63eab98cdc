//! Reference measures: what an integrand is integrated against. [`MATH.md` §6](crate::math).

mod gaussian;
mod mixture;
mod uniform_box;

pub use gaussian::Gaussian;
pub use mixture::Mixture;
pub use uniform_box::UniformBox;

/// A function's value, gradient and Hessian at one point.
#[derive(Debug, Clone, PartialEq)]
pub struct Jet {
    /// `f(x)`.
    pub value: f64,
    /// `∂f/∂xₐ`.
    pub gradient: Vec<f64>,
    /// `∂²f/∂xₐ∂x_b`, row by row.
    pub hessian: Vec<f64>,
}
