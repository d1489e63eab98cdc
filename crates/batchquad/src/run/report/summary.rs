//! What is believed about a parameter, in a few numbers.

use serde::{Serialize, Serializer, ser::SerializeMap};

use super::words::rounded;
use crate::{
    error::Result,
    infer::posterior::{Marginal, Method},
};

/// The mass of the intervals.
const MASS: f64 = 0.95;

/// The posterior of one parameter; mean and sd are absent where its tails are too heavy to have any.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Its mean.
    pub mean: Option<f64>,
    /// Its standard deviation.
    pub sd: Option<f64>,
    /// As much of the posterior is below as is above `high`.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// How much of the posterior is between the two.
    pub mass: f64,
    /// Where the numbers come from.
    pub method: Method,
}

impl Summary {
    /// The numbers of a marginal.
    ///
    /// # Errors
    /// As [`Marginal::interval`].
    pub fn new(marginal: &Marginal) -> Result<Self> {
        let (low, high) = marginal.interval(MASS)?;
        let finite = |v: f64| Some(v).filter(|v| v.is_finite());
        let (mean, sd) = (finite(marginal.mean()), finite(marginal.sd()));
        Ok(Self { mean, sd, low, high, mass: MASS, method: marginal.method() })
    }

    /// Mean, sd and interval with as many digits as the width makes meaningful.
    #[must_use]
    pub fn cells(&self) -> [String; 4] {
        let width = self.sd.unwrap_or(0.25 * (self.high - self.low));
        let cell = |v: Option<f64>| v.map_or_else(|| "none".into(), |v| rounded(v, width));
        [cell(self.mean), cell(self.sd), rounded(self.low, width), rounded(self.high, width)]
    }
}

/// Values by name: a JSON object whose keys stay in order.
#[derive(Debug, Clone, PartialEq)]
pub struct ByName<T>(pub Vec<(String, T)>);

impl<T: Serialize> Serialize for ByName<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
