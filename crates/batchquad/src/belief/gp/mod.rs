//! Gaussian-process regression with the squared-exponential kernel and zero mean: [`MATH.md` §1](crate::math).

mod fit;
mod predict;
mod sums;

pub(crate) use fit::kept;
pub use fit::{Fit, FitOptions, MarginalLikelihood, fit, log_marginal_likelihood};
pub use predict::Prediction;
pub(crate) use sums::{covariance_sums, squared_covariance_sums};

use crate::{
    belief::kernel::{Kernel, SquaredExponential, require_dims},
    error::{Error, Result},
    numeric::{
        linalg::{Factor, Jitter, Matrix},
        pairs::Columns,
    },
    points::Points,
};

/// The posterior of a Gaussian process given its values at the nodes.
///
/// `m(x) = k(x, X) w` with `w = K⁻¹ g`, `C(x, x') = k(x, x') − k(x, X) K⁻¹ k(X, x')`, `K = k(X, X) + jitter`.
#[derive(Debug, Clone)]
pub struct Gp {
    kernel: SquaredExponential,
    nodes: Points,
    targets: Vec<f64>,
    white: Columns,
    factor: Factor,
    weights: Vec<f64>,
}

impl Gp {
    /// The posterior given values at nodes. Cost: `n³/3`.
    ///
    /// # Errors
    /// [`Error::Length`] for no nodes or lengths that differ, [`Error::Invalid`] for values that are not finite,
    /// [`Error::NotPositiveDefinite`] when even the largest jitter does not help.
    pub fn new(kernel: SquaredExponential, nodes: Points, targets: Vec<f64>, jitter: Jitter) -> Result<Self> {
        require_targets(&nodes, &targets)?;
        if nodes.is_empty() {
            return Err(Error::length("list of nodes", 1, 0));
        }
        require_dims(kernel.dim(), &[("nodes", nodes.dim())])?;
        let white = kernel.whiten(&nodes);
        // As the search for hyperparameters does it, so that a belief made anew from what it found has the same bits.
        let unit = SquaredExponential::new(1.0, kernel.lengthscales().to_vec())?;
        let factor = Factor::new(|| unit.form(&white, &white).lower(), 1.0, jitter)?.scaled(kernel.sigma2());
        Ok(Self::assemble(kernel, nodes, targets, white, factor))
    }

    fn assemble(kernel: SquaredExponential, nodes: Points, targets: Vec<f64>, white: Columns, factor: Factor) -> Self {
        let weights = factor.solve_vec(&targets);
        Self { kernel, nodes, targets, white, factor, weights }
    }

    /// The posterior given `q` further values, as a new object; this one stays as it is. Cost: `n²q`.
    ///
    /// # Errors
    /// As [`Gp::new`].
    pub fn condition(&self, nodes: &Points, targets: &[f64]) -> Result<Self> {
        require_targets(nodes, targets)?;
        let all = self.nodes.concat(nodes)?;
        let new = self.kernel.whiten(nodes);
        let factor =
            self.factor.append(self.kernel.form(&self.white, &new).matrix(), self.kernel.form(&new, &new).lower())?;
        let white = self.kernel.whiten(&all);
        Ok(Self::assemble(self.kernel.clone(), all, [&self.targets, targets].concat(), white, factor))
    }

    /// The kernel.
    #[must_use]
    pub fn kernel(&self) -> &SquaredExponential {
        &self.kernel
    }

    /// The nodes `X`.
    #[must_use]
    pub fn nodes(&self) -> &Points {
        &self.nodes
    }

    /// The values `g(X)`.
    #[must_use]
    pub fn targets(&self) -> &[f64] {
        &self.targets
    }

    /// `w = K⁻¹ g`.
    #[must_use]
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The factor of `K`.
    #[must_use]
    pub fn factor(&self) -> &Factor {
        &self.factor
    }

    /// `k(X, x)`, one column per point.
    pub(crate) fn cross(&self, white: &Columns) -> Matrix {
        self.kernel.form(&self.white, white).matrix()
    }
}

pub(crate) fn require_targets(nodes: &Points, targets: &[f64]) -> Result<()> {
    if nodes.len() != targets.len() {
        return Err(Error::length("values at the nodes", nodes.len(), targets.len()));
    }
    match targets.iter().position(|v| !v.is_finite()) {
        Some(i) => {
            Err(Error::invalid(format!("value at node {i}, {:?},", nodes.row(i)), targets[i], "a finite number"))
        }
        None => Ok(()),
    }
}
