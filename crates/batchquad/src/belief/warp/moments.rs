//! WSABI-M: a process on the square root, with the exact first two moments of its square.

use super::{
    Process, Scale, Site, Warp,
    linear::Linear,
    root::{self, Linearised},
};
use crate::{
    belief::{
        embed::EmbedProducts,
        estimate::Estimate,
        gp::{Gp, squared_covariance_sums},
    },
    error::Result,
    numeric::{
        jets::{Jets, Order},
        linalg::Matrix,
        simd::dot,
    },
    points::Points,
};

/// `E[f] = α + ½(m² + C)`, `Var[f] = m²C + ½C²`.
#[derive(Debug)]
pub(crate) struct ExactMoments;

impl Warp for ExactMoments {
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

    fn comparable(&self, g: f64) -> f64 {
        Linear.comparable(g)
    }

    fn believed(&self, alpha: f64, mean: f64, expected: f64) -> f64 {
        root::target(alpha, expected, mean)
    }

    fn log_variance_unit(&self, c: f64) -> f64 {
        Linear.log_variance_unit(c)
    }

    fn is_positive(&self) -> bool {
        true
    }

    fn moments(&self, alpha: f64, m: f64, c: f64) -> (f64, f64) {
        (alpha + 0.5 * (m * m + c), m * m * c + 0.5 * c * c)
    }

    fn expected(&self, of: Process<'_>, x: &Points) -> Result<Vec<f64>> {
        let p = of.gp.predict(x, Order::Value)?;
        Ok(p.mean.iter().zip(&p.variance).map(|(&m, &c)| self.moments(of.alpha, m, c).0).collect())
    }

    fn add_log_mean(&self, alpha: f64, site: Site<'_>, at: usize, jets: &mut Jets) {
        root::add_log_mean(alpha, 0.5, site, at, jets);
    }

    /// `log C + log(m² + ½C)`.
    fn add_log_variance(&self, site: Site<'_>, at: usize, jets: &mut Jets) {
        let Site { dim: d, mean: m, variance: c, .. } = site;
        let (gm, gc, hm, hc) = (site.mean_gradient, site.variance_gradient, site.mean_hessian, site.variance_hessian);
        site.add_log_variance(1.0, at, jets);
        let value = m * m + 0.5 * c;
        let gradient: Vec<f64> = gm.iter().zip(gc).map(|(gm, gc)| 2.0 * m * gm + 0.5 * gc).collect();
        let hessian: Vec<f64> =
            (0..hm.len()).map(|i| 2.0 * gm[i / d] * gm[i % d] + 2.0 * m * hm[i] + 0.5 * hc[i]).collect();
        jets.add_log(at, 1.0, value, &gradient, &hessian);
    }

    fn covariance_sums(&self, gp: &Gp, x: &Points, columns: &Matrix) -> Result<Matrix> {
        let (linear, squared) = (Linear.covariance_sums(gp, x, columns)?, squared_covariance_sums(gp, x, columns)?);
        Ok(Matrix::from_fn(columns.cols(), columns.cols(), |i, j| linear.get(i, j) + 0.5 * squared.get(i, j)))
    }

    /// The linearised form: the further term has no simple update.
    fn nodes_with_z(&self, of: Process<'_>) -> Result<Vec<f64>> {
        root::nodes_with_z(of)
    }

    fn points_with_z(&self, of: Process<'_>, x: &Points, order: Order) -> Result<Jets> {
        root::points_with_z(of, x, order)
    }

    fn correction(&self, of: Process<'_>) -> Result<Vec<f64>> {
        root::correction(of)
    }

    /// `E = E_L + ½(σ² − tr K⁻¹P)`, `V = V_L + ½(∬k² − 2 tr K⁻¹D + tr K⁻¹PK⁻¹P)`. Cost: `3n³`, and `3n²` numbers of
    /// memory besides the factor.
    fn estimate(&self, of: Process<'_>, c: f64) -> Result<Estimate> {
        let Linearised { mean, variance, rounding } = Linearised::new(of)?;
        let (gp, measure) = (of.gp, of.measure);
        let (kernel, nodes, n) = (gp.kernel(), gp.nodes(), gp.nodes().len());
        // Q = L⁻¹ P L⁻ᵀ is symmetric with tr Q = tr K⁻¹P and ‖Q‖² = tr K⁻¹PK⁻¹P.
        let mut half = kernel.product(measure, nodes, nodes)?;
        gp.factor().half_solve(&mut half);
        let mut q = Matrix::from_fn(n, n, |i, j| half.get(j, i));
        drop(half);
        gp.factor().half_solve(&mut q);
        let trace: f64 = (0..n).map(|i| q.get(i, i)).sum();
        let squares: f64 = (0..n).map(|j| dot(q.col(j), q.col(j))).sum();
        drop(q);
        let inverse = gp.factor().inverse_lower();
        let chain = kernel.chain_lower(measure, nodes)?;
        let chain_trace: f64 = (0..n)
            .map(|j| 2.0 * dot(&inverse.col(j)[j..], &chain.col(j)[j..]) - inverse.get(j, j) * chain.get(j, j))
            .sum();
        let extra = 0.5 * (kernel.squared(measure)? - 2.0 * chain_trace + squares);
        // The exact value of `extra` is a variance: what rounding takes below zero is rounding.
        let mean = mean + 0.5 * (kernel.sigma2() - trace).max(0.0);
        Ok(Estimate::new(c, mean, variance + extra.max(0.0), rounding))
    }

    fn is_closed(&self) -> bool {
        false
    }
}
