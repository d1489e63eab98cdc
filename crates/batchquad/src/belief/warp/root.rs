//! What the two readings of a process on the square root share: `f = α + ½ g²`.

use super::{Process, Site};
use crate::{
    belief::embed::{EmbedProducts, chain_quadratic, product_mul, product_sums},
    error::Result,
    numeric::{
        jets::{Jets, Order},
        simd::dot,
    },
    points::Points,
};

/// `α` as a share of the smallest value (Gunter et al. 2014).
pub const ALPHA_SHARE: f64 = 0.8;

/// `α = 0.8 min f`, `g = √(2(f − α))`.
pub(super) fn enter(values: &[f64]) -> (f64, Vec<f64>) {
    let alpha = ALPHA_SHARE * values.iter().copied().fold(f64::INFINITY, f64::min);
    (alpha, values.iter().map(|f| (2.0 * (f - alpha)).sqrt()).collect())
}

/// `α + ½ g²`.
pub(super) fn value(alpha: f64, g: f64) -> f64 {
    alpha + 0.5 * g * g
}

/// `√(2(f − α))`, with the sign of `like`.
pub(super) fn target(alpha: f64, f: f64, like: f64) -> f64 {
    (2.0 * (f - alpha).max(0.0)).sqrt().copysign(like)
}

/// `α + ½(m² + 2sC)` with derivatives, as a logarithm; `s` is the share of the variance that counts.
pub(super) fn add_log_mean(alpha: f64, spread: f64, site: Site<'_>, at: usize, jets: &mut Jets) {
    let Site { dim: d, mean: m, variance: c, .. } = site;
    let (gm, gc, hm, hc) = (site.mean_gradient, site.variance_gradient, site.mean_hessian, site.variance_hessian);
    let value = alpha + 0.5 * m * m + spread * c;
    let gradient: Vec<f64> = gm.iter().zip(gc).map(|(gm, gc)| m * gm + spread * gc).collect();
    let hessian: Vec<f64> = (0..hm.len()).map(|i| gm[i / d] * gm[i % d] + m * hm[i] + spread * hc[i]).collect();
    jets.add_log(at, 1.0, value, &gradient, &hessian);
}

/// `Pw` at the nodes. Cost: `n²/2` exponentials, half of what [`points_with_z`] takes.
pub(super) fn nodes_with_z(of: Process<'_>) -> Result<Vec<f64>> {
    Ok(product_mul(of.gp.kernel(), of.measure, of.gp.nodes(), of.gp.weights())?.0)
}

/// `P(x, X) w`.
pub(super) fn points_with_z(of: Process<'_>, x: &Points, order: Order) -> Result<Jets> {
    product_sums(of.gp.kernel(), of.measure, x, (of.gp.nodes(), of.gp.weights()), order)
}

/// `Pw` at the nodes, row by row.
pub(super) fn correction(of: Process<'_>) -> Result<Vec<f64>> {
    let (kernel, nodes) = (of.gp.kernel(), of.gp.nodes());
    Ok(kernel.product(of.measure, nodes, nodes)?.mul_vec(of.gp.weights()))
}

/// The linearised moments of `Z`, in units of `eᶜ`, and a bound on the rounding error of the mean.
pub(super) struct Linearised {
    pub(super) mean: f64,
    pub(super) variance: f64,
    pub(super) rounding: f64,
}

impl Linearised {
    /// `E = α + ½ wᵀPw`, `V = wᵀDw − (Pw)ᵀK⁻¹(Pw)`. Cost: `n²` exponentials, and no matrix besides the factor.
    pub(super) fn new(of: Process<'_>) -> Result<Self> {
        let (kernel, nodes, w) = (of.gp.kernel(), of.gp.nodes(), of.gp.weights());
        let (pw, sizes) = product_mul(kernel, of.measure, nodes, w)?;
        let half = of.gp.factor().half_solve_vec(&pw);
        Ok(Self {
            mean: of.alpha + 0.5 * dot(w, &pw),
            variance: chain_quadratic(kernel, of.measure, nodes, w)? - dot(&half, &half),
            rounding: 0.5 * f64::EPSILON * sizes,
        })
    }
}
