//! No warp: the process is the integrand itself, `f = g`.

use super::{Process, Scale, Site, Warp};
use crate::{
    belief::{
        embed::{Embed, mean_jets},
        estimate::Estimate,
        gp::{Gp, covariance_sums},
    },
    error::Result,
    numeric::{
        jets::{Jets, Order},
        linalg::Matrix,
        simd::dot,
    },
    points::Points,
};

/// `E[f] = m`, `Var[f] = C`.
#[derive(Debug)]
pub(crate) struct Plain;

impl Warp for Plain {
    fn scale(&self) -> Scale {
        Scale::Itself
    }

    fn enter(&self, values: &[f64]) -> (f64, Vec<f64>) {
        (0.0, values.to_vec())
    }

    fn value(&self, _: f64, g: f64) -> f64 {
        g
    }

    fn target(&self, _: f64, f: f64, _: f64) -> f64 {
        f
    }

    fn comparable(&self, g: f64) -> f64 {
        g
    }

    fn believed(&self, _: f64, mean: f64, _: f64) -> f64 {
        mean
    }

    fn log_variance_unit(&self, c: f64) -> f64 {
        2.0 * c
    }

    fn is_positive(&self) -> bool {
        false
    }

    fn moments(&self, _: f64, mean: f64, variance: f64) -> (f64, f64) {
        (mean, variance)
    }

    fn expected(&self, of: Process<'_>, x: &Points) -> Result<Vec<f64>> {
        of.gp.mean(x)
    }

    fn add_log_mean(&self, _: f64, site: Site<'_>, at: usize, jets: &mut Jets) {
        jets.add_log(at, 1.0, site.mean, site.mean_gradient, site.mean_hessian);
    }

    fn add_log_variance(&self, site: Site<'_>, at: usize, jets: &mut Jets) {
        site.add_log_variance(1.0, at, jets);
    }

    fn covariance_sums(&self, gp: &Gp, x: &Points, columns: &Matrix) -> Result<Matrix> {
        covariance_sums(gp, x, columns)
    }

    /// `z`.
    fn nodes_with_z(&self, of: Process<'_>) -> Result<Vec<f64>> {
        of.gp.kernel().mean(of.measure, of.gp.nodes())
    }

    /// `z(x)`.
    fn points_with_z(&self, of: Process<'_>, x: &Points, order: Order) -> Result<Jets> {
        mean_jets(of.gp.kernel(), of.measure, x, order)
    }

    fn correction(&self, of: Process<'_>) -> Result<Vec<f64>> {
        self.nodes_with_z(of)
    }

    /// `E = zᵀw`, `V = ∬k − zᵀK⁻¹z`. Cost: `n²`.
    fn estimate(&self, of: Process<'_>, c: f64) -> Result<Estimate> {
        let (gp, measure) = (of.gp, of.measure);
        let z = gp.kernel().mean(measure, gp.nodes())?;
        let half = gp.factor().half_solve_vec(&z);
        let variance = gp.kernel().variance(measure)? - dot(&half, &half);
        let sizes: f64 = z.iter().zip(gp.weights()).map(|(z, w)| z.abs() * w.abs()).sum();
        Ok(Estimate::new(c, dot(&z, gp.weights()), variance, f64::EPSILON * sizes))
    }

    fn is_closed(&self) -> bool {
        false
    }
}
