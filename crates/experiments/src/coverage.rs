//! How often the truth lies where it was said to lie.

use serde::{Deserialize, Serialize};

use crate::{
    stats::{mean, quantile},
    trace::Judged,
};

/// Shares of readings whose error is within the claimed standard deviation, and within twice that.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// How many readings were judged.
    pub readings: usize,
    /// 68 % if the claim were right.
    pub one: f64,
    /// 95 % if the claim were right.
    pub two: f64,
    /// The median of |error|/sd, 0.67 if the claim were right.
    pub median_z: f64,
}

/// `|error|/sd`; infinite where there was no estimate.
#[must_use]
pub fn z_score(judged: &Judged) -> f64 {
    judged.sd.map_or(f64::INFINITY, |sd| judged.distance() / sd)
}

/// The share of the scores that are at most `k`.
#[must_use]
pub fn within(scores: &[f64], k: f64) -> f64 {
    mean(&scores.iter().map(|v| f64::from(u8::from(*v <= k))).collect::<Vec<_>>())
}

impl Coverage {
    /// Over all readings given.
    #[must_use]
    pub fn of<'a>(judged: impl IntoIterator<Item = &'a Judged>) -> Self {
        let z: Vec<f64> = judged.into_iter().map(z_score).collect();
        Self { readings: z.len(), one: within(&z, 1.0), two: within(&z, 2.0), median_z: quantile(&z, 0.5) }
    }
}
