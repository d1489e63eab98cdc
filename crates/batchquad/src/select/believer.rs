//! Kriging Believer and its variants: a chosen point is given a value that nobody has measured, and the next one is chosen as if it
//! had been: `MATH.md` §5.1.

use serde::{Deserialize, Serialize};

use crate::{
    acquire::integrand_moments,
    error::Result,
    gp::Order,
    points::Points,
    select::{Search, Selection, climb::Climb},
    surrogate::Surrogate,
    warp::Model,
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
    /// The value of `g` at `x` that makes the integrand take its fantasised value: `g = √(2(f − α))`, with the sign that the
    /// process has there.
    ///
    /// The density of the measure does not enter: it is the integrand `f` that is modelled, not `fπ`.
    ///
    /// # Errors
    /// [`crate::Error::Length`] for a point of another dimension.
    pub fn target(self, belief: &Surrogate, x: &Points) -> Result<Vec<f64>> {
        let means = belief.gp().predict(x, Order::Value)?.mean;
        let moments = integrand_moments(belief, x)?;
        let alpha = belief.alpha();
        Ok(means
            .iter()
            .zip(moments)
            .map(|(&m, (mean, variance))| {
                let value = match self {
                    // Exactly m: no digits lost on the way through the square.
                    Self::Mean if belief.model() != Model::WsabiM => return m,
                    Self::Mean => mean,
                    Self::Optimistic => mean + 2.0 * variance.sqrt(),
                    Self::Constant(lie) => lie.value(belief),
                };
                match belief.model() {
                    Model::Plain => value,
                    _ => (2.0 * (value - alpha).max(0.0)).sqrt().copysign(m),
                }
            })
            .collect())
    }
}

impl Lie {
    fn value(self, belief: &Surrogate) -> f64 {
        let values = belief.gp().targets().iter().map(|g| match belief.model() {
            Model::Plain => *g,
            _ => belief.alpha() + 0.5 * g * g,
        });
        match self {
            Self::Min => values.fold(f64::INFINITY, f64::min),
            Self::Max => values.fold(f64::NEG_INFINITY, f64::max),
            Self::Mean => values.sum::<f64>() / belief.gp().targets().len() as f64,
        }
    }
}

/// The belief after fantasies at `points`, one after the other.
pub(crate) fn fantasise(belief: &Surrogate, points: &Points, fantasy: Fantasy) -> Result<Surrogate> {
    let mut believed = belief.clone();
    for row in points.rows() {
        let x = Points::new(points.dim(), row.to_vec())?;
        believed = believed.condition(&x, &fantasy.target(&believed, &x)?)?;
    }
    Ok(believed)
}

pub(crate) fn select(
    belief: &Surrogate,
    pending: &Points,
    n: usize,
    search: Search,
    fantasy: Fantasy,
) -> Result<Selection> {
    let mut climb = Climb::new(belief, pending, search)?;
    let mut believed = fantasise(belief, pending, fantasy)?;
    for k in 0..n {
        let point = climb.choose(&believed, &*search.acquisition.of(&believed)?)?;
        if k + 1 < n {
            believed = fantasise(&believed, &Points::new(point.len(), point)?, fantasy)?;
        }
    }
    climb.finish()
}
