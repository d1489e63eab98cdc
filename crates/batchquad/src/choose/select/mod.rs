//! Batch rules: `n` points that are informative together, given those that are still being evaluated. [`MATH.md`
//! §5](crate::math).
//!
//! Every rule has the same signature, leaves the belief as it is, and keeps scale, `α` and hyperparameters frozen.
//! Randomness is addressed by (seed, jobs asked so far), so a rule can be asked twice and answers the same.

mod believer;
mod climb;
mod gonzalez;
mod penalise;
mod random;
mod top;

pub use believer::{Fantasy, Lie};
pub use climb::MIN_SEPARATION;
pub(crate) use climb::scaled_square;
pub use gonzalez::{GonzalezPenalty, Penalised as GonzalezPenalised};
pub use penalise::{Cone, Penalisation, SoftMinimum, log_lipschitz};

use serde::{Deserialize, Serialize};

use crate::{
    belief::surrogate::Surrogate,
    choose::acquire::{AcquisitionKind, Criterion},
    error::{Error, Result},
    points::Points,
};

/// How a batch is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BatchRule {
    /// Each chosen point is given the value that the model expects there.
    #[default]
    KrigingBeliever,
    /// Each chosen point is given that value plus two standard deviations.
    KrigingOptimist,
    /// Each chosen point is given the same value.
    ConstantLiar,
    /// The acquisition is cut by a Lipschitz cone around each chosen point: the paper's own rule.
    LocalPenalisation,
    /// The multiplicative penaliser of González et al. (2016), made for optimisation: a baseline.
    GonzalezPenalisation,
    /// The `n` highest points, which huddle around the maximum: the strawman of the paper, kept for comparison only.
    NaiveTop,
    /// Draws from the measure: no choice at all, kept for comparison only.
    Random,
}

/// How the acquisition is maximised.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// What is maximised.
    pub criterion: &'a dyn Criterion,
    /// Starts drawn from the measure for the first point of a batch, for each dimension.
    pub starts_per_dim: usize,
    /// The seed of the run.
    pub seed: u64,
    /// How many jobs were asked before this batch.
    pub asked: u64,
}

impl Default for Search<'_> {
    fn default() -> Self {
        Self { criterion: &AcquisitionKind::Uncertainty, starts_per_dim: 10, seed: 0, asked: 0 }
    }
}

/// A chosen batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// The points, in the order of choice.
    pub points: Points,
    /// How many of them are space-filling draws, because the acquisition was zero everywhere or had no point of its own
    /// to offer.
    pub fallbacks: usize,
    /// How many times the search looked at the acquisition at a point (the constants of local penalisation not
    /// counted). Zero where no acquisition was searched.
    pub evaluations: usize,
}

/// A way of choosing a batch.
pub trait Rule {
    /// Chooses `n` points to evaluate at once, while `pending` ones are still being evaluated.
    ///
    /// # Errors
    /// Numerical errors as for [`Surrogate::condition`]; constants out of range.
    fn select(&self, belief: &Surrogate, pending: &Points, n: usize, search: Search<'_>) -> Result<Selection>;

    /// How it keeps points apart when the belief is about the logarithm of the likelihood.
    fn apart(&self) -> Apart {
        Apart::Conditioned
    }
}

/// How the points of a batch are kept apart when the belief is about the logarithm of the likelihood ([`MATH.md` §15](crate::math)).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Apart {
    /// Each choice counts on the values of those before it. What is not known does not depend on them, so there is nothing to believe.
    #[default]
    Conditioned,
    /// Each is cut by cones around those before it.
    Cones(Penalisation),
}

/// The constants of all rules that have any; each is described where its rule is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Constants {
    /// Of [`BatchRule::LocalPenalisation`].
    pub penalisation: Penalisation,
    /// What [`BatchRule::ConstantLiar`] says.
    pub lie: Lie,
}

impl BatchRule {
    /// The rule of this name. This is the list of rules.
    #[must_use]
    pub fn with(self, constants: Constants) -> Box<dyn Rule> {
        match self {
            Self::KrigingBeliever => Box::new(Fantasy::Mean),
            Self::KrigingOptimist => Box::new(Fantasy::Optimistic),
            Self::ConstantLiar => Box::new(Fantasy::Constant(constants.lie)),
            Self::LocalPenalisation => Box::new(constants.penalisation),
            Self::GonzalezPenalisation => Box::new(gonzalez::Gonzalez),
            Self::NaiveTop => Box::new(top::NaiveTop),
            Self::Random => Box::new(random::Random),
        }
    }

    /// [`select`] with the rule of this name and the default constants.
    ///
    /// # Errors
    /// As [`select`].
    pub fn select(self, belief: &Surrogate, pending: &Points, n: usize, search: Search<'_>) -> Result<Selection> {
        select(&*self.with(Constants::default()), belief, pending, n, search)
    }
}

/// Chooses `n` points to evaluate at once, while `pending` ones are still being evaluated.
///
/// No two of them, of the pending points and of the nodes are closer than [`MIN_SEPARATION`] lengthscales, unless the
/// space is so full that even space-filling draws cannot keep that distance.
///
/// # Errors
/// [`Error::Length`] for pending points of another dimension, [`Error::Invalid`] for `n = 0`, no starts or constants
/// out of range; numerical errors as for [`Surrogate::condition`].
pub fn select(
    rule: &dyn Rule,
    belief: &Surrogate,
    pending: &Points,
    n: usize,
    search: Search<'_>,
) -> Result<Selection> {
    if n == 0 {
        return Err(Error::invalid("size of the batch", n, "at least 1"));
    }
    if search.starts_per_dim == 0 {
        return Err(Error::invalid("starts per dimension", 0, "at least 1"));
    }
    belief.nodes().require_dim("pending points", pending.dim())?;
    rule.select(belief, pending, n, search)
}
