//! From log-likelihoods to the values that a Gaussian process can model, and back: [`MATH.md` §1](crate::math).
//!
//! One file says all about one warp. A new one is a file that implements [`Warp`], a name in [`Model`] and a line in
//! [`Model::warp`].

mod linear;
mod moments;
mod plain;
mod root;

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

pub use self::root::ALPHA_SHARE;
use crate::{
    belief::{
        estimate::Estimate,
        gp::{Gp, Prediction},
        measure::Mixture,
    },
    error::{Error, Result},
    numeric::{
        jets::{Jets, Order, run},
        linalg::Matrix,
    },
    points::Points,
};

/// Which belief about the integrand is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// A Gaussian process on the integrand itself.
    Plain,
    /// A Gaussian process `g` on the square root, `f = α + ½ g²`, linearised: the paper's model.
    #[default]
    WsabiL,
    /// The same with the exact first two moments of `g²`.
    WsabiM,
}

impl Model {
    /// All that this model says. This is the list of warps.
    pub(crate) fn warp(self) -> &'static dyn Warp {
        match self {
            Self::Plain => &plain::Plain,
            Self::WsabiL => &linear::Linear,
            Self::WsabiM => &moments::ExactMoments,
        }
    }
}

/// What a Gaussian process `g` is to the integrand `f`.
///
/// Values are in units of `eᶜ`, with `c` the largest log value. `α` is the offset that [`Warp::enter`] has found.
/// Nothing has a default: a warp that leaves something out does not compile.
pub(crate) trait Warp: Debug + Sync {
    /// What `g` is the process of. Warps on the same scale read the same process differently.
    fn scale(&self) -> Scale;

    /// `α` and the values `g(xᵢ)` from `fᵢ`, of which the largest is one.
    fn enter(&self, values: &[f64]) -> (f64, Vec<f64>);

    /// `f` where the process is `g`.
    fn value(&self, alpha: f64, g: f64) -> f64;

    /// The `g` at which the integrand is `f`; of two, the one with the sign of `like`.
    fn target(&self, alpha: f64, f: f64, like: f64) -> f64;

    /// A predicted `g` as it compares with [`Warp::target`] of a positive `like`.
    fn comparable(&self, g: f64) -> f64;

    /// The `g` that is believed at a point where nothing was measured: it gives the integrand its mean. `mean` is `m`,
    /// `expected` is `E[f]`.
    fn believed(&self, alpha: f64, mean: f64, expected: f64) -> f64;

    /// `log` of the unit of the kernel's variance where likelihoods are in units of `eᶜ`.
    fn log_variance_unit(&self, c: f64) -> f64;

    /// Whether `E[f]` is nowhere negative.
    fn is_positive(&self) -> bool;

    /// `E[f]` and `Var[f]` from the mean and the variance of `g`.
    fn moments(&self, alpha: f64, mean: f64, variance: f64) -> (f64, f64);

    /// `E[f]` at each point.
    fn expected(&self, of: Process<'_>, x: &Points) -> Result<Vec<f64>>;

    /// Adds `log E[f]` with derivatives at point `at`.
    fn add_log_mean(&self, alpha: f64, site: Site<'_>, at: usize, jets: &mut Jets);

    /// Adds `log Var[f]` with derivatives at point `at`.
    fn add_log_variance(&self, site: Site<'_>, at: usize, jets: &mut Jets);

    /// `Σₛₜ aₛ Cov[f(xₛ), f(xₜ)] bₜ` for all pairs of columns `a`, `b`.
    fn covariance_sums(&self, gp: &Gp, x: &Points, columns: &Matrix) -> Result<Matrix>;

    /// `∫ k(x, x') ∂f/∂g(x') dμ(x')`, what the covariance of `g(x)` with `Z` would be without any values, at each node.
    fn nodes_with_z(&self, of: Process<'_>) -> Result<Vec<f64>>;

    /// The same at any points, with derivatives.
    fn points_with_z(&self, of: Process<'_>, x: &Points, order: Order) -> Result<Jets>;

    /// The same at the nodes, added up as [`Warp::points_with_z`] does, so that the two cancel there.
    fn correction(&self, of: Process<'_>) -> Result<Vec<f64>>;

    /// The belief about `Z`.
    fn estimate(&self, of: Process<'_>, c: f64) -> Result<Estimate>;

    /// Whether `E[f] = α + ½m²`, a signed mixture of Gaussians: then the posterior has closed forms.
    fn is_closed(&self) -> bool;
}

/// What a Gaussian process models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// The integrand.
    Itself,
    /// Its square root.
    Root,
}

/// A Gaussian process with what its integral depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process<'a> {
    pub(crate) gp: &'a Gp,
    pub(crate) measure: &'a Mixture,
    pub(crate) alpha: f64,
}

/// A prediction at one point; derivatives that were not asked for are empty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site<'a> {
    dim: usize,
    mean: f64,
    variance: f64,
    mean_gradient: &'a [f64],
    variance_gradient: &'a [f64],
    mean_hessian: &'a [f64],
    variance_hessian: &'a [f64],
}

impl<'a> Site<'a> {
    pub(crate) fn new(p: &'a Prediction, at: usize) -> Self {
        let d = p.mean_gradient.len() / p.mean.len();
        Self {
            dim: d,
            mean: p.mean[at],
            variance: p.variance[at],
            mean_gradient: run(&p.mean_gradient, at, d),
            variance_gradient: run(&p.variance_gradient, at, d),
            mean_hessian: run(&p.mean_hessian, at, d * d),
            variance_hessian: run(&p.variance_hessian, at, d * d),
        }
    }

    /// Adds `power · log C`.
    pub(crate) fn add_log_variance(self, power: f64, at: usize, jets: &mut Jets) {
        jets.add_log(at, power, self.variance, self.variance_gradient, self.variance_hessian);
    }
}

/// The values of an integrand, scaled so that the largest is one, as a Gaussian process sees them.
#[derive(Debug, Clone, PartialEq)]
pub struct Warped {
    /// `c`, the largest log value: everything below is in units of `eᶜ`.
    pub scale: f64,
    /// The offset `α` of the square-root warp; zero for [`Model::Plain`].
    pub alpha: f64,
    /// `g(xᵢ)`.
    pub targets: Vec<f64>,
}

impl Warped {
    /// `fᵢ = exp(log fᵢ − c)`; then `g = f` (plain) or `g = √(2(f − α))` with `α = 0.8 min f`.
    ///
    /// −∞ is a legal value: the integrand is zero there.
    ///
    /// # Errors
    /// [`Error::Length`] for lengths that differ, [`Error::NonFiniteValue`] for NaN and +∞, [`Error::NoFiniteValue`]
    /// when all values are −∞.
    pub fn new(model: Model, nodes: &Points, log_values: &[f64]) -> Result<Self> {
        if nodes.len() != log_values.len() {
            return Err(Error::length("log-likelihoods", nodes.len(), log_values.len()));
        }
        if let Some(i) = log_values.iter().position(|v| v.is_nan() || *v == f64::INFINITY) {
            return Err(Error::NonFiniteValue { index: i, point: nodes.row(i).to_vec(), value: log_values[i] });
        }
        let scale = log_values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if scale == f64::NEG_INFINITY {
            return Err(Error::NoFiniteValue { count: log_values.len() });
        }
        let values: Vec<f64> = log_values.iter().map(|l| (l - scale).exp()).collect();
        let (alpha, targets) = model.warp().enter(&values);
        Ok(Self { scale, alpha, targets })
    }
}
