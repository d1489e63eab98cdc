//! Where the likelihood is not zero, when it is zero in the midst of the posterior. `MATH.md` §15.

use super::{
    fit::{Limits, fit},
    integral::{Integral, resample},
    process::{Data, Hyper, Process},
};
use crate::{
    error::Result,
    numeric::{
        linalg::{Factor, Jitter, Matrix, transpose_mul},
        normal::log_cdf,
        rng::{Purpose, Stream},
    },
    points::Points,
};

/// A process on the signed distance from the likelihood's edge: the likelihood is zero where it is negative.
#[derive(Debug, Clone)]
pub(crate) struct Support(Process);

/// A probability of less than this counts as this: the logarithm stays finite.
const LEAST_LOG: f64 = -60.0;

/// The most that the process may be off at nodes, in standard deviations of the posterior.
const MOST_NOISE: f64 = 0.03;

/// Points of the posterior, and draws of the edge, that tell what the edge leaves open.
const POINTS: usize = 256;
const DRAWS: usize = 64;

impl Support {
    /// Fits the distances.
    pub(crate) fn fit(data: &Data, warm: Option<&Hyper>) -> Result<Self> {
        Ok(Self(fit(data, warm, warm.is_none(), Limits::of_noise(MOST_NOISE))?.process))
    }

    /// With hyperparameters that are known.
    pub(crate) fn new(hyper: Hyper, data: Data) -> Result<Self> {
        Ok(Self(Process::new(hyper, data)?))
    }

    pub(crate) fn hyper(&self) -> &Hyper {
        &self.0.hyper
    }

    /// `log Φ(c/√v)` at points: the logarithm of the probability that the likelihood is not zero, from the mean `c` and the variance `v` of the
    /// distance. Cost: `n²` per point.
    pub(crate) fn log_probability(&self, points: &Points) -> Vec<f64> {
        let p = self.0.predict(points);
        let noise = self.0.hyper.noise.powi(2);
        let log = |(c, v): (&f64, &f64)| log_cdf(c / (v + noise + 1e-6).sqrt()).max(LEAST_LOG);
        p.mean.iter().zip(&p.variance).map(log).collect()
    }

    /// The standard deviation of `log Z` that the edge leaves open: of `log Σ wᵢ [gᵢ > 0]` over joint draws `g` of the distance, `wᵢ` the posterior as
    /// if there were no edge. Cost: `q³/3` for the points.
    pub(crate) fn spread(&self, integral: &Integral, seed: u64) -> Result<f64> {
        // The posterior as if there were no edge, where there is any.
        let chosen = resample(&integral.weights, POINTS, 0.5);
        let points = integral.points.select(&chosen);
        let weights: Vec<f64> = self.log_probability(&points).iter().map(|l| (-l).min(5.0).exp()).collect();
        let mean = self.0.mean(&points);
        let placed = self.0.place(&points);
        let half = self.0.half(&placed);
        let (prior, explained) = (self.0.prior_cross(&placed, &placed), transpose_mul(&half, &half));
        let noise = self.0.hyper.noise.powi(2) + 1e-6;
        let covariance = Matrix::from_fn(POINTS, POINTS, |i, j| {
            prior.get(i, j) - explained.get(i, j) + if i == j { noise } else { 0.0 }
        });
        let largest = self.0.prior_variance(&points).into_iter().fold(0.0, f64::max);
        let factor = Factor::new(|| covariance.clone(), 1e-4 * largest, Jitter { nugget: 1e-10, rungs: 8 })?;
        let mut stream = Stream::new(seed, Purpose::Select, u64::MAX);
        let shares: Vec<f64> = (0..DRAWS)
            .map(|_| {
                let draw = factor.lower_mul(&stream.normals(POINTS));
                let inside = mean.iter().zip(&draw).zip(&weights).filter(|((m, g), _)| *m + *g > 0.0);
                inside.map(|(_, w)| w).sum::<f64>().max(1e-12).ln()
            })
            .collect();
        let centre = shares.iter().sum::<f64>() / DRAWS as f64;
        Ok((shares.iter().map(|s| (s - centre).powi(2)).sum::<f64>() / (DRAWS - 1) as f64).sqrt())
    }
}
