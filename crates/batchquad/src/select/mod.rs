//! Batch rules: `n` points that are informative together, given those that are still being evaluated. `MATH.md` §5.
//!
//! Every rule has the same signature, leaves the belief as it is, and keeps scale, `α` and hyperparameters frozen. Randomness is
//! addressed by (seed, jobs asked so far), so a rule can be asked twice and answers the same.

mod believer;
mod climb;
mod gonzalez;
mod penalise;
mod random;
mod top;

pub use believer::{Fantasy, Lie};
pub use climb::MIN_SEPARATION;
pub use gonzalez::{GonzalezPenalty, Penalised as GonzalezPenalised};
pub use penalise::{Cone, SoftMinimum, log_lipschitz};

use serde::{Deserialize, Serialize};

use crate::{
    acquire::AcquisitionKind,
    error::{Error, Result, require_positive},
    points::Points,
    surrogate::Surrogate,
};

/// How a batch is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BatchRule {
    /// Each chosen point is given the value that the model expects there.
    #[default]
    KrigingBeliever,
    /// … or two standard deviations more.
    KrigingOptimist,
    /// … or the same value everywhere.
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

/// The two constants of local penalisation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Penalisation {
    /// The share of the Lipschitz constant that is the slope of a cone.
    pub slope: f64,
    /// `p` of the soft minimum, as a positive number: the `ℓ₋ₚ`-norm is taken.
    pub power: f64,
}

impl Penalisation {
    /// What the paper found by hand.
    pub const PAPER: Self = Self { slope: 0.5, power: 6.0 };
}

/// Gentler cones than the paper's: 0.61 times its error on the GP evidence and 0.86 times on the mixtures (`crates/experiments`, ablation).
impl Default for Penalisation {
    fn default() -> Self {
        Self { slope: 0.25, ..Self::PAPER }
    }
}

/// How the acquisition is maximised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// What is maximised.
    pub acquisition: AcquisitionKind,
    /// Starts drawn from the measure for the first point of a batch, for each dimension.
    pub starts_per_dim: usize,
    /// The seed of the run.
    pub seed: u64,
    /// How many jobs were asked before this batch.
    pub asked: u64,
    /// The constants of [`BatchRule::LocalPenalisation`].
    pub penalisation: Penalisation,
    /// What [`BatchRule::ConstantLiar`] says.
    pub lie: Lie,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            acquisition: AcquisitionKind::default(),
            starts_per_dim: 10,
            seed: 0,
            asked: 0,
            penalisation: Penalisation::default(),
            lie: Lie::default(),
        }
    }
}

/// A chosen batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// The points, in the order of choice.
    pub points: Points,
    /// How many of them are space-filling draws, because the acquisition was zero everywhere or had no point of its own to offer.
    pub fallbacks: usize,
    /// How many times the search looked at the acquisition at a point (the constants of local penalisation not counted).
    pub evaluations: usize,
}

impl BatchRule {
    /// Chooses `n` points to evaluate at once, while `pending` ones are still being evaluated.
    ///
    /// No two of them, of the pending points and of the nodes are closer than [`MIN_SEPARATION`] lengthscales, unless the space is so
    /// full that even space-filling draws cannot keep that distance.
    ///
    /// # Errors
    /// [`Error::Length`] for pending points of another dimension, [`Error::Invalid`] for `n = 0`, no starts or constants out of
    /// range; numerical errors as for [`Surrogate::condition`].
    pub fn select(self, belief: &Surrogate, pending: &Points, n: usize, search: Search) -> Result<Selection> {
        if n == 0 {
            return Err(Error::invalid("size of the batch", n, "at least 1"));
        }
        if search.starts_per_dim == 0 {
            return Err(Error::invalid("starts per dimension", 0, "at least 1"));
        }
        belief.gp().nodes().require_dim("pending points", pending.dim())?;
        match self {
            Self::KrigingBeliever => believer::select(belief, pending, n, search, Fantasy::Mean),
            Self::KrigingOptimist => believer::select(belief, pending, n, search, Fantasy::Optimistic),
            Self::ConstantLiar => believer::select(belief, pending, n, search, Fantasy::Constant(search.lie)),
            Self::LocalPenalisation => {
                require_positive("slope of the cones", search.penalisation.slope)?;
                require_positive("power of the soft minimum", search.penalisation.power)?;
                penalise::select(belief, pending, n, search)
            }
            Self::GonzalezPenalisation => gonzalez::select(belief, pending, n, search),
            Self::NaiveTop => top::select(belief, pending, n, search),
            Self::Random => random::select(belief, pending, n, search),
        }
    }
}
