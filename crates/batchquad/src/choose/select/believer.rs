//! Kriging Believer and its variants: a chosen point is given a value that nobody has measured, and the next one is
//! chosen as if it had been: [`MATH.md` §5](crate::math).1.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{
    belief::surrogate::Surrogate,
    choose::select::{Rule, Search, Selection, climb::Climb},
    error::Result,
    points::Points,
};

/// Which value the constant liar tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lie {
    /// The smallest value seen.
    Min,
    /// The mean of the values seen.
    #[default]
    Mean,
    /// The largest value seen.
    Max,
}

/// What a chosen point is believed to be worth until it is evaluated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fantasy {
    /// The posterior mean of the integrand there: Kriging Believer.
    Mean,
    /// Two standard deviations above it: Kriging Optimist.
    Optimistic,
    /// A constant: Constant Liar.
    Constant(Lie),
}

impl Fantasy {
    /// The value of `g` at `x` that makes the integrand take its fantasised value: `g = √(2(f − α))`, with the sign
    /// that the process has there.
    ///
    /// The density of the measure does not enter: it is the integrand `f` that is modelled, not `fπ`.
    ///
    /// # Errors
    /// [`crate::Error::Length`] for a point of another dimension.
    pub fn target(self, belief: &Surrogate, x: &Points) -> Result<Vec<f64>> {
        let lie = match self {
            Self::Constant(lie) => Some(lie.value(belief)),
            Self::Mean | Self::Optimistic => None,
        };
        belief.believed(x, |mean, variance| match self {
            Self::Mean => None,
            Self::Optimistic => Some(mean + 2.0 * variance.sqrt()),
            Self::Constant(_) => lie,
        })
    }
}

impl Lie {
    fn value(self, belief: &Surrogate) -> f64 {
        let values = belief.node_values();
        let count = values.len() as f64;
        match self {
            Self::Min => values.into_iter().fold(f64::INFINITY, f64::min),
            Self::Max => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
            Self::Mean => values.into_iter().sum::<f64>() / count,
        }
    }
}

/// The belief after fantasies at `points`, one after the other.
pub(crate) fn fantasise(belief: &Surrogate, points: &Points, fantasy: Fantasy) -> Result<Surrogate> {
    let mut believed = Cow::Borrowed(belief);
    for row in points.rows() {
        let x = Points::new(points.dim(), row.to_vec())?;
        believed = Cow::Owned(believed.condition(&x, &fantasy.target(&believed, &x)?)?);
    }
    Ok(believed.into_owned())
}

impl Rule for Fantasy {
    fn select(&self, belief: &Surrogate, pending: &Points, n: usize, search: Search<'_>) -> Result<Selection> {
        let mut climb = Climb::new(belief, pending, search)?;
        let mut believed = fantasise(belief, pending, *self)?;
        for k in 0..n {
            let point = climb.choose(&believed, &*search.criterion.of(&believed)?)?;
            if k + 1 < n {
                believed = fantasise(&believed, &Points::new(point.len(), point)?, *self)?;
            }
        }
        climb.finish()
    }
}
