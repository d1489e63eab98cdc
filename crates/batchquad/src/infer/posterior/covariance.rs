//! The covariance of the parameters, in the user's units.

use super::{Draws, Posterior};
use crate::error::Result;

impl Posterior {
    /// The rows of the covariance of the parameters: standard deviations as of the marginals, correlations from draws.
    ///
    /// # Errors
    /// As [`Posterior::marginal`] and [`Posterior::draws`].
    pub fn covariance(&self) -> Result<Vec<Vec<f64>>> {
        let sd = self.moments()?.sd;
        let mut rows = self.own_draws()?.correlations();
        for (i, row) in rows.iter_mut().enumerate() {
            for (j, entry) in row.iter_mut().enumerate() {
                *entry *= sd[i] * sd[j];
            }
        }
        Ok(rows)
    }
}

impl Draws {
    /// The rows of the correlations of the parameters over the draws.
    #[must_use]
    pub fn correlations(&self) -> Vec<Vec<f64>> {
        let (moments, weights) = (self.moments(), self.weights());
        let d = moments.mean.len();
        let entry = |i: usize, j: usize| {
            if i == j {
                return 1.0;
            }
            let scaled = |theta: &[f64], k: usize| (theta[k] - moments.mean[k]) / moments.sd[k];
            self.theta().rows().zip(&weights).map(|(theta, w)| w * scaled(theta, i) * scaled(theta, j)).sum()
        };
        (0..d).map(|i| (0..d).map(|j| entry(i, j)).collect()).collect()
    }
}
