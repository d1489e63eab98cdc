//! Where the circles of periodic parameters are cut open: opposite to where the likelihood is. [`MATH.md` §10](crate::math).

use std::f64::consts::TAU;

use super::{Engine, basis::Believed};
use crate::{
    error::{Error, Result},
    prior::{Axis, Prior},
    types::JobId,
};

/// `κ` of the kernel `exp(κ cos)` by which a value counts around its place: it is half of its maximum at an eighth of the circle.
const SHARPNESS: f64 = 4.0;

/// `I₀(κ)`, the mean of that kernel over the circle.
const MEAN: f64 = 11.301_921_952_136_33;

/// Of so many places, evenly spread, the best is taken.
const PLACES: usize = 64;

impl Engine {
    /// Where the belief given all values cuts the circles, as shares of them; empty without periodic parameters.
    ///
    /// They stay where the last belief had them unless the likelihood has turned out to be there: then its hyperparameters are of no use.
    pub(super) fn cuts(&self, last: Option<&Believed>) -> Vec<f64> {
        let circles = self.prior.circles();
        if circles.is_empty() {
            return Vec::new();
        }
        let told = self.ledger.entries().filter_map(|entry| Some((&entry.job.theta, entry.value()?)));
        let imported = self.ledger.imported().iter().map(|row| (&row.theta, row.log_likelihood.get()));
        let values: Vec<(&Vec<f64>, f64)> = imported.chain(told).filter(|(_, log)| log.is_finite()).collect();
        let top = values.iter().map(|(_, log)| *log).fold(f64::NEG_INFINITY, f64::max);
        let cut = |(nth, &(k, low, length)): (usize, &(usize, f64, f64))| {
            let weighted = values.iter().map(|(theta, log)| ((theta[k] - low) / length, (log - top).exp()));
            let weighted: Vec<(f64, f64)> = weighted.collect();
            let before = last.and_then(|b| b.cuts.get(nth).copied());
            before.filter(|&share| density(share, &weighted) <= 1.0).unwrap_or_else(|| emptiest(&weighted))
        };
        circles.iter().enumerate().map(cut).collect()
    }

    /// The latent coordinates of a job under the prior with its circles cut elsewhere.
    pub(super) fn latent_in(&self, cut: &Cut, id: JobId) -> Result<Vec<f64>> {
        let mut latent = self.latent_of(id)?.to_vec();
        for &k in &cut.circles {
            if let Axis::Scalar(angle) = cut.prior.axis(k) {
                latent[k] = angle.to_latent(self.ledger.entry(id)?.job.theta[k])?;
            }
        }
        Ok(latent)
    }

    /// The prior with its circles cut at shares of them.
    pub(super) fn cut(&self, shares: &[f64]) -> Result<Cut> {
        let circles = if shares.is_empty() { Vec::new() } else { self.prior.circles() };
        Ok(Cut { prior: self.prior.cut_at(shares)?, circles: circles.iter().map(|(k, _, _)| *k).collect() })
    }
}

/// A prior with circles that are cut, by the numbers of their parameters.
pub(super) struct Cut {
    pub(super) prior: Prior,
    circles: Vec<usize>,
}

/// `Σᵢ wᵢ exp(κ cos 2π(s − sᵢ)) / (I₀(κ) Σᵢ wᵢ)`: one on average over the circle.
fn density(share: f64, values: &[(f64, f64)]) -> f64 {
    let near = |place: f64| (SHARPNESS * (TAU * (share - place)).cos()).exp();
    let all: f64 = values.iter().map(|(_, weight)| weight).sum();
    values.iter().map(|(place, weight)| weight * near(*place)).sum::<f64>() / (MEAN * all)
}

/// The place where the density is least; one of them where there are several.
fn emptiest(values: &[(f64, f64)]) -> f64 {
    let places = (0..PLACES).map(|i| i as f64 / PLACES as f64);
    let densities = places.map(|share| (share, density(share, values)));
    densities.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0.0, |(share, _)| share)
}

/// Refuses cuts that are not one per circle of the prior, which only a journal from elsewhere can have.
pub(super) fn require_cuts(prior: &Prior, cuts: &[f64]) -> Result<()> {
    prior.cut_at(cuts).map(drop).map_err(|e| Error::invalid("cuts of a batch", e.to_string(), "what `ask` recorded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_density_has_mean_one() {
        let values = [(0.1, 1.0), (0.4, 0.2), (0.9, 0.01)];
        let mean = (0..1000).map(|i| density(f64::from(i) / 1000.0, &values)).sum::<f64>() / 1000.0;
        // A trapezoidal rule over a whole period: exact but for rounding.
        assert!((mean - 1.0).abs() < 1e-12, "{mean}");
    }

    #[test]
    fn the_cut_is_opposite_to_one_peak_and_between_two() {
        assert_eq!(emptiest(&[(0.0, 1.0), (0.25, 1e-9)]), 0.5);
        // Both places between them are equally empty; rounding decides.
        assert!([0.25, 0.75].contains(&emptiest(&[(0.0, 1.0), (0.5, 1.0)])));
        let three = emptiest(&[(0.0, 1.0), (0.25, 1.0), (0.5, 1.0)]);
        assert!((three - 0.75).abs() < 0.02, "{three}");
    }
}
