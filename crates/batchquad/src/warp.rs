//! From log-likelihoods to the values that a Gaussian process can model, and back: `MATH.md` §1.

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
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

/// `α` as a share of the smallest value (Gunter et al. 2014).
pub const ALPHA_SHARE: f64 = 0.8;

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
    /// [`Error::Length`] for lengths that differ, [`Error::NonFiniteValue`] for NaN and +∞, [`Error::NoFiniteValue`] when all
    /// values are −∞.
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
        if model == Model::Plain {
            return Ok(Self { scale, alpha: 0.0, targets: values });
        }
        let alpha = ALPHA_SHARE * values.iter().copied().fold(f64::INFINITY, f64::min);
        let targets = values.iter().map(|f| (2.0 * (f - alpha)).sqrt()).collect();
        Ok(Self { scale, alpha, targets })
    }
}
