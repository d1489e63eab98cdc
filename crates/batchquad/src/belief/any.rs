//! One belief or another: what everything above `belief` may ask of either.

use std::sync::Arc;

use crate::{
    belief::{
        estimate::Estimate,
        log::{self, Found, Known, LogBelief, Recipe},
        nodes::Nodes,
        surrogate::{Predicted, Surrogate},
    },
    error::Result,
    numeric::linalg::Matrix,
    points::Points,
};

/// What is believed about the likelihood.
#[derive(Debug, Clone)]
pub enum Belief {
    /// A process on the likelihood or on its square root, integrated in closed form.
    Warped(Box<Surrogate>),
    /// A process on the logarithm of the posterior density.
    Log(Box<LogBelief>),
}

impl From<Surrogate> for Arc<Belief> {
    fn from(surrogate: Surrogate) -> Self {
        Self::new(Belief::Warped(Box::new(surrogate)))
    }
}

impl From<LogBelief> for Arc<Belief> {
    fn from(belief: LogBelief) -> Self {
        Self::new(Belief::Log(Box::new(belief)))
    }
}

impl Belief {
    /// What log-likelihoods at latent nodes say about the logarithm of the posterior density.
    ///
    /// `noise_sd` is the standard deviation of the noise of values that came without their own, where it is known. The
    /// search for hyperparameters begins with those of `last`, an earlier belief from fewer values.
    ///
    /// Cost: for `n` nodes, `n³` per step of the search and 16 384 predictions for the integral.
    ///
    /// # Errors
    /// [`crate::Error::NonFiniteValue`] for NaN and +∞, [`crate::Error::NoFiniteValue`] when every value is −∞;
    /// numerical errors when the values cannot be fitted.
    pub fn about_log(nodes: Nodes, noise_sd: Option<f64>, last: Option<&Self>, seed: u64) -> Result<Self> {
        let last = last.and_then(Self::log).map(|belief| &belief.recipe);
        Ok(Self::Log(Box::new(log::search(&known(nodes, noise_sd)?, last, seed)?)))
    }

    /// The process on the likelihood or its square root, if it is one.
    #[must_use]
    pub fn warped(&self) -> Option<&Surrogate> {
        match self {
            Self::Warped(surrogate) => Some(surrogate),
            Self::Log(_) => None,
        }
    }

    /// The belief about the logarithm, if it is one.
    #[must_use]
    pub fn log(&self) -> Option<&LogBelief> {
        match self {
            Self::Warped(_) => None,
            Self::Log(belief) => Some(belief),
        }
    }

    /// The nodes, in the belief's own coordinates.
    #[must_use]
    pub fn nodes(&self) -> &Points {
        match self {
            Self::Warped(surrogate) => surrogate.nodes(),
            Self::Log(belief) => belief.nodes(),
        }
    }

    /// Over what distance the process varies in each of its coordinates.
    #[must_use]
    pub fn lengthscales(&self) -> &[f64] {
        match self {
            Self::Warped(surrogate) => surrogate.lengthscales(),
            Self::Log(belief) => belief.lengthscales(),
        }
    }

    /// The affine map from its own coordinates to latent ones: the shift and the rows of the matrix.
    #[must_use]
    pub fn affine(&self) -> (Vec<f64>, Vec<Vec<f64>>) {
        match self {
            Self::Warped(surrogate) => surrogate.frame().affine(),
            Self::Log(belief) => belief.main().view.affine(),
        }
    }

    /// A lower bound on the condition number of the kernel matrix.
    #[must_use]
    pub fn condition_number(&self) -> f64 {
        match self {
            Self::Warped(surrogate) => surrogate.condition_number(),
            Self::Log(belief) => belief.condition_number(),
        }
    }

    /// The belief about the evidence by the model alone.
    ///
    /// # Errors
    /// As [`Surrogate::estimate`].
    pub fn estimate(&self) -> Result<Estimate> {
        match self {
            Self::Warped(surrogate) => surrogate.estimate(),
            Self::Log(belief) => Ok(belief.estimate()),
        }
    }

    /// `Σₛₜ aₛ Cov[f(xₛ), f(xₜ)] bₜ` for all pairs of columns, `f` being the integrand in the belief's own units and
    /// coordinates.
    pub(crate) fn covariance_sums(&self, x: &Points, columns: &Matrix) -> Result<Matrix> {
        match self {
            Self::Warped(surrogate) => surrogate.covariance_sums(x, columns),
            Self::Log(belief) => belief.covariance_sums(x, columns),
        }
    }
}

/// Nodes as a belief about the logarithm sees them, with what is known of the noise of each.
pub(crate) fn known(nodes: Nodes, noise_sd: Option<f64>) -> Result<Known> {
    let sd = noise_sd.unwrap_or(0.0);
    let own = nodes.counts.iter().map(|&n| sd / (n as f64).sqrt());
    let fallback = own.zip(&nodes.scatter).map(|(own, scatter)| own.max(*scatter));
    let sds = nodes.sds.iter().zip(fallback).map(|(given, fallback)| given.unwrap_or(fallback)).collect();
    let given = nodes.sds.iter().map(Option::is_some).collect();
    Known::new(nodes.points, &nodes.log_means, sds, given)
}

/// A belief as it was before a batch: enough to predict its values.
pub(crate) enum Earlier {
    Warped(Box<Surrogate>),
    Log { known: Box<Known>, recipe: Box<Recipe> },
}

impl Earlier {
    /// What was predicted at latent points, as log-likelihoods, beside those that were found.
    pub(crate) fn forecast(&self, latent: &Points, found: &[Found]) -> Result<Vec<Predicted>> {
        match self {
            Self::Warped(surrogate) => {
                let frame = surrogate.frame();
                let gains: Vec<f64> = latent.rows().map(|u| frame.log_ratio(u)).collect();
                let seen: Vec<f64> = found.iter().zip(&gains).map(|(f, g)| f.value + g).collect();
                let mut predicted = surrogate.predicted(&frame.enter(latent)?, &seen)?;
                for (p, gain) in predicted.iter_mut().zip(gains) {
                    p.mean -= gain;
                    p.low -= gain;
                    p.high -= gain;
                }
                Ok(predicted)
            }
            Self::Log { known, recipe } => LogBelief::forecast(&log::Predictor::new(known, recipe)?, latent, found),
        }
    }
}
