//! Where the likelihood is not zero, when it is zero in the midst of the posterior. `MATH.md` §15.

use super::{
    fit::fit,
    process::{Data, Hyper, Process},
};
use crate::{error::Result, numeric::normal::log_cdf, points::Points};

/// A process on labels: `+1` at nodes with a likelihood, `−1` at nodes without.
#[derive(Debug, Clone)]
pub(crate) struct Support(Process);

/// A probability of less than this counts as this: the logarithm stays finite.
const LEAST_LOG: f64 = -60.0;

impl Support {
    /// Fits the labels.
    pub(crate) fn fit(data: &Data, warm: Option<&Hyper>) -> Result<Self> {
        Ok(Self(fit(data, warm, warm.is_none(), 0.1)?.process))
    }

    /// With hyperparameters that are known.
    pub(crate) fn new(hyper: Hyper, data: Data) -> Result<Self> {
        Ok(Self(Process::new(hyper, data)?))
    }

    pub(crate) fn hyper(&self) -> &Hyper {
        &self.0.hyper
    }

    /// `log Φ(c/√v)` at points: the logarithm of the probability that the likelihood is not zero, from the mean `c` and the variance `v` of the labels'
    /// process. Cost: `n²` per point.
    pub(crate) fn log_probability(&self, points: &Points) -> Vec<f64> {
        let p = self.0.predict(points);
        let noise = self.0.hyper.noise.powi(2);
        let log = |(c, v): (&f64, &f64)| log_cdf(c / (v + noise + 1e-6).sqrt()).max(LEAST_LOG);
        p.mean.iter().zip(&p.variance).map(log).collect()
    }
}
