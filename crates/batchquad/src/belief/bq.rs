//! Plain Bayesian quadrature for any kernel and measure that have closed forms: [`MATH.md` §3](crate::math).

use crate::{
    belief::embed::Embed,
    error::{Error, Result},
    numeric::linalg::{Factor, Jitter},
    points::Points,
};

/// The belief about an integral whose integrand is a Gaussian process.
#[derive(Debug, Clone, PartialEq)]
pub struct Quadrature {
    /// `E = zᵀK⁻¹f`.
    pub mean: f64,
    /// `V = ∬k dμdμ − zᵀK⁻¹z`, not below zero.
    pub variance: f64,
    /// The quadrature weights `K⁻¹z`: the mean is their product with the values.
    pub weights: Vec<f64>,
    /// Whether rounding had taken the variance below zero.
    pub clamped: bool,
    /// How many rungs of the jitter ladder were climbed.
    pub repairs: usize,
}

/// The belief about `∫ f dμ` given the values of `f` at the nodes. Cost: `n³/3`.
///
/// ```
/// use batchquad::{Points, belief::{bq, SquaredExponential, Gaussian}, numeric::Jitter};
/// // ∫ x² N(x; 0, 1) dx = 1
/// let nodes = Points::new(1, (-6..=6).map(|i| f64::from(i) * 0.5).collect())?;
/// let values: Vec<f64> = nodes.rows().map(|x| x[0] * x[0]).collect();
/// let kernel = SquaredExponential::isotropic(100.0, 2.0, 1)?;
/// let belief = bq::integrate(&kernel, &Gaussian::standard(1)?, &nodes, &values, Jitter::default())?;
/// assert!((belief.mean - 1.0).abs() < 2.0 * belief.variance.sqrt());
/// assert!(belief.variance.sqrt() < 1e-2);
/// # Ok::<(), batchquad::Error>(())
/// ```
///
/// # Errors
/// [`Error::Length`] for no nodes, other dimensions or a different number of values, [`Error::Invalid`] for values that
/// are not finite, [`Error::NotPositiveDefinite`] when even the largest jitter does not help.
pub fn integrate<M, K: Embed<M>>(
    kernel: &K,
    measure: &M,
    nodes: &Points,
    values: &[f64],
    jitter: Jitter,
) -> Result<Quadrature> {
    if nodes.is_empty() {
        return Err(Error::length("list of nodes", 1, 0));
    }
    crate::belief::gp::require_targets(nodes, values)?;
    let z = kernel.mean(measure, nodes)?;
    let gram = kernel.gram(nodes, nodes)?;
    let scale = (0..nodes.len()).map(|i| gram.get(i, i)).fold(0.0, f64::max);
    let factor = Factor::new(|| gram.clone(), scale, jitter)?;
    let half = factor.half_solve_vec(&z);
    let weights = factor.solve_vec(&z);
    let variance = kernel.variance(measure)? - half.iter().map(|v| v * v).sum::<f64>();
    Ok(Quadrature {
        mean: weights.iter().zip(values).map(|(w, f)| w * f).sum(),
        variance: variance.max(0.0),
        weights,
        clamped: variance < 0.0,
        repairs: factor.repairs(),
    })
}
