//! The squared-exponential kernel.

use crate::{
    belief::kernel::{Kernel, require_dims},
    error::{Error, Result, require_positive},
    numeric::{
        linalg::Matrix,
        pairs::{Columns, Fall, PairForm},
    },
    points::Points,
};

/// `k(x, y) = σ² exp(−½ Σₐ (xₐ − yₐ)²/λₐ²)`, isotropic or with one lengthscale per dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct SquaredExponential {
    sigma2: f64,
    lengthscales: Vec<f64>,
}

impl SquaredExponential {
    /// A kernel with one lengthscale per dimension ("ARD").
    ///
    /// # Errors
    /// [`Error::Invalid`] for a variance or lengthscale that is not finite and positive, or for no dimension at all.
    pub fn new(sigma2: f64, lengthscales: Vec<f64>) -> Result<Self> {
        require_positive("variance of the squared-exponential kernel", sigma2)?;
        if lengthscales.is_empty() {
            return Err(Error::invalid("dimension of the squared-exponential kernel", 0, "at least 1"));
        }
        for &l in &lengthscales {
            require_positive("lengthscale of the squared-exponential kernel", l)?;
        }
        Ok(Self { sigma2, lengthscales })
    }

    /// A kernel with the same lengthscale in each of `dim` dimensions.
    ///
    /// # Errors
    /// As [`SquaredExponential::new`].
    pub fn isotropic(sigma2: f64, lengthscale: f64, dim: usize) -> Result<Self> {
        Self::new(sigma2, vec![lengthscale; dim])
    }

    /// The variance `σ²`.
    #[must_use]
    pub fn sigma2(&self) -> f64 {
        self.sigma2
    }

    /// The lengthscales `λ`.
    #[must_use]
    pub fn lengthscales(&self) -> &[f64] {
        &self.lengthscales
    }

    /// Points divided by `√2 λ`, whose squared distances are the exponents of the kernel.
    pub(crate) fn whiten(&self, points: &Points) -> Columns {
        let scale: Vec<f64> = self.lengthscales.iter().map(|l| l * std::f64::consts::SQRT_2).collect();
        Columns::scaled(points, &scale)
    }

    /// The kernel between whitened points.
    pub(crate) fn form<'a>(&self, left: &'a Columns, right: &'a Columns) -> PairForm<'a> {
        PairForm { fall: Fall::Exponential { log_scale: self.sigma2.ln() }, differences: (left, right), sums: None }
    }
}

impl Kernel for SquaredExponential {
    fn dim(&self) -> usize {
        self.lengthscales.len()
    }

    fn value(&self, x: &[f64], y: &[f64]) -> f64 {
        let r2: f64 = x.iter().zip(y).zip(&self.lengthscales).map(|((x, y), l)| ((x - y) / l).powi(2)).sum();
        self.sigma2 * (-0.5 * r2).exp()
    }

    fn gram(&self, x: &Points, y: &Points) -> Result<Matrix> {
        require_dims(self.dim(), &[("first points", x.dim()), ("second points", y.dim())])?;
        Ok(self.form(&self.whiten(x), &self.whiten(y)).matrix())
    }
}
