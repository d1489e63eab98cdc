//! Draws from the posterior.

use rayon::prelude::*;

use super::{coordinates::Coordinates, proposal::Sample};
use crate::{
    error::{Error, Result},
    numeric::rng::{Purpose, Stream},
    points::Points,
    prior::Prior,
};

/// Weighted draws from the posterior: importance draws, a function of the belief and the seed alone.
#[derive(Debug, Clone)]
pub struct Draws {
    latent: Points,
    theta: Points,
    own: Points,
    log_weights: Vec<f64>,
    log_ratio: Vec<f64>,
    effective: f64,
    negative: usize,
    mass: f64,
    seed: u64,
}

/// Means and standard deviations of the parameters, in the user's own units.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// The mean of each parameter.
    pub mean: Vec<f64>,
    /// The standard deviation of each.
    pub sd: Vec<f64>,
    /// `(Σw)²/Σw²`: how many independent draws the weighted ones are worth.
    pub effective_samples: f64,
}

/// Draws of less than this share of all weight are left out.
const NEGLIGIBLE: f64 = 1e-18;

impl Draws {
    pub(super) fn new(sample: &Sample, coordinates: &Coordinates, prior: &Prior, seed: u64) -> Result<Self> {
        let weights = sample.weights(1.0);
        let total: f64 = weights.iter().sum();
        let kept: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > NEGLIGIBLE * total).collect();
        let rows: Vec<&[f64]> = kept.iter().map(|&i| sample.points.row(i)).collect();
        let own = Points::from_rows(&rows)?;
        let latent = coordinates.latent(&own)?;
        let rows: Vec<Vec<f64>> =
            latent.as_slice().par_chunks(latent.dim()).map(|u| prior.to_theta(u)).collect::<Result<_>>()?;
        Ok(Self {
            theta: Points::from_rows(&rows)?,
            latent,
            own,
            log_weights: kept.iter().map(|&i| (weights[i] / total).ln()).collect(),
            log_ratio: kept.iter().map(|&i| sample.log_ratio[i] - (weights.len() as f64).ln()).collect(),
            effective: sample.effective(1.0),
            negative: sample.negative,
            mass: sample.mass(),
            seed,
        })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.log_weights.len()
    }

    /// Whether there are none, which does not happen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.log_weights.is_empty()
    }

    /// The draws in the user's units.
    #[must_use]
    pub fn theta(&self) -> &Points {
        &self.theta
    }

    /// The draws in latent coordinates.
    #[must_use]
    pub fn latent(&self) -> &Points {
        &self.latent
    }

    /// The logarithm of each draw's share of the posterior; the shares sum to one.
    #[must_use]
    pub fn log_weights(&self) -> &[f64] {
        &self.log_weights
    }

    /// `(Σw)²/Σw²`: how many independent draws the weighted ones are worth.
    #[must_use]
    pub fn effective(&self) -> f64 {
        self.effective
    }

    /// At how many proposed points the belief was negative, which only the plain model can be: they are not among the
    /// draws.
    #[must_use]
    pub fn negative(&self) -> usize {
        self.negative
    }

    /// The draws in the coordinates of the surrogate.
    pub(crate) fn own(&self) -> &Points {
        &self.own
    }

    /// `log(μ/(n q))`: with these weights sums over the draws are integrals against the measure.
    pub(super) fn log_ratio(&self) -> &[f64] {
        &self.log_ratio
    }

    /// The integral of the positive part of the belief, in units of `e^scale`.
    pub(super) fn mass(&self) -> f64 {
        self.mass
    }

    pub(super) fn weights(&self) -> Vec<f64> {
        self.log_weights.iter().map(|l| l.exp()).collect()
    }

    /// The numbers of `n` draws, each as often as its weight asks for, in random order: equally weighted, and as many
    /// different ones as there can be (systematic resampling).
    ///
    /// # Errors
    /// [`Error::Invalid`] for `n = 0`.
    pub fn resample(&self, n: usize) -> Result<Vec<usize>> {
        if n == 0 {
            return Err(Error::invalid("number of draws", n, "at least 1"));
        }
        let mut stream = Stream::new(self.seed, Purpose::Posterior, u64::MAX);
        let offset = stream.uniform();
        let weights = self.weights();
        let total: f64 = weights.iter().sum();
        let (mut chosen, mut draw, mut passed) = (Vec::with_capacity(n), 0, weights[0]);
        for i in 0..n {
            let place = (i as f64 + offset) / n as f64 * total;
            while passed < place && draw + 1 < weights.len() {
                draw += 1;
                passed += weights[draw];
            }
            chosen.push(draw);
        }
        for i in (1..n).rev() {
            if let Some(j) = stream.index(i + 1) {
                chosen.swap(i, j);
            }
        }
        Ok(chosen)
    }

    /// Means and standard deviations of the parameters over the draws.
    #[must_use]
    pub fn moments(&self) -> Moments {
        let w = self.weights();
        let average = |of: &dyn Fn(&[f64]) -> f64| self.theta.rows().zip(&w).map(|(t, w)| w * of(t)).sum::<f64>();
        let mean: Vec<f64> = (0..self.theta.dim()).map(|k| average(&|t| t[k])).collect();
        let sd = (0..self.theta.dim()).map(|k| average(&|t| (t[k] - mean[k]).powi(2)).sqrt()).collect();
        Moments { mean, sd, effective_samples: self.effective }
    }
}
