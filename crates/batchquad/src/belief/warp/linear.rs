//! WSABI-L: a process on the square root, linearised around its mean.

use super::{
    Process, Scale, Site, Warp,
    root::{self, Linearised},
};
use crate::{
    belief::{
        estimate::Estimate,
        gp::{Gp, covariance_sums},
    },
    error::Result,
    numeric::{
        jets::{Jets, Order},
        linalg::Matrix,
    },
    points::Points,
};

/// `E[f] = α + ½m²`, `Var[f] = m²C`.
#[derive(Debug)]
pub(crate) struct Linear;

impl Warp for Linear {
    fn scale(&self) -> Scale {
        Scale::Root
    }

    fn enter(&self, values: &[f64]) -> (f64, Vec<f64>) {
        root::enter(values)
    }

    fn value(&self, alpha: f64, g: f64) -> f64 {
        root::value(alpha, g)
    }

    fn target(&self, alpha: f64, f: f64, like: f64) -> f64 {
        root::target(alpha, f, like)
    }

    /// The square does not know the sign of its root: the mean's is as good as the other.
    fn comparable(&self, g: f64) -> f64 {
        g.abs()
    }

    /// Exactly `m`: no digits are lost on the way through the square.
    fn believed(&self, _: f64, mean: f64, _: f64) -> f64 {
        mean
    }

    fn log_variance_unit(&self, c: f64) -> f64 {
        c
    }

    fn is_positive(&self) -> bool {
        true
    }

    fn moments(&self, alpha: f64, m: f64, c: f64) -> (f64, f64) {
        (alpha + 0.5 * m * m, m * m * c)
    }

    fn expected(&self, of: Process<'_>, x: &Points) -> Result<Vec<f64>> {
        Ok(of.gp.mean(x)?.iter().map(|m| of.alpha + 0.5 * m * m).collect())
    }

    fn add_log_mean(&self, alpha: f64, site: Site<'_>, at: usize, jets: &mut Jets) {
        root::add_log_mean(alpha, 0.0, site, at, jets);
    }

    /// `log C + log m²`, the latter through `|m|`, whose derivatives have the sign of `m`: a square would underflow far
    /// from the data.
    fn add_log_variance(&self, site: Site<'_>, at: usize, jets: &mut Jets) {
        site.add_log_variance(1.0, at, jets);
        jets.add_log_square(at, site.mean, site.mean_gradient, site.mean_hessian);
    }

    fn covariance_sums(&self, gp: &Gp, x: &Points, columns: &Matrix) -> Result<Matrix> {
        let slope = gp.mean(x)?;
        covariance_sums(gp, x, &Matrix::from_fn(x.len(), columns.cols(), |s, k| slope[s] * columns.get(s, k)))
    }

    fn nodes_with_z(&self, of: Process<'_>) -> Result<Vec<f64>> {
        root::nodes_with_z(of)
    }

    fn points_with_z(&self, of: Process<'_>, x: &Points, order: Order) -> Result<Jets> {
        root::points_with_z(of, x, order)
    }

    fn correction(&self, of: Process<'_>) -> Result<Vec<f64>> {
        root::correction(of)
    }

    fn estimate(&self, of: Process<'_>, c: f64) -> Result<Estimate> {
        let Linearised { mean, variance, rounding } = Linearised::new(of)?;
        Ok(Estimate::new(c, mean, variance, rounding))
    }

    fn is_closed(&self) -> bool {
        true
    }
}
