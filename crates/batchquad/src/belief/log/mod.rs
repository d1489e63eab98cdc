//! A belief about the logarithm of the posterior density. `MATH.md` §15.
//!
//! A Gaussian process on `log ℓ + log φ` (`φ` the prior density in latent coordinates): a rational quadratic kernel, a shrunk quadratic and noise. It climbs
//! from values of −10⁶, is exact for normal posteriors, and carries noise. Its integral has no closed form; importance sampling of the
//! surrogate stands for it, with an error that is known and small.

mod approach;
mod bar;
mod bend;
mod cells;
mod chart;
mod climb;
mod controls;
mod density;
mod fit;
mod integral;
mod known;
mod link;
mod own;
mod peak;
mod process;
mod proposal;
mod recipe;
mod sampled;
mod scale;
mod scout;
mod settle;
mod support;
mod twins;
mod uncertainty;
mod view;

pub use self::recipe::Recipe;
pub(crate) use self::{
    approach::Search,
    bar::NOT_ARRIVED,
    integral::{Integral, resample, root_weights},
    known::{Known, coefficients, log_prior},
    peak::Peak,
    process::{Placed, Process},
    recipe::{Predictor, recall, search},
    scale::Scale,
    scout::{Scout, UNKNOWN, prior_points},
};

use self::cells::Cells;
use crate::{
    belief::{residuals::Residual, surrogate::Predicted},
    error::{Error, Result},
    numeric::linalg::Matrix,
    points::Points,
};

/// A peak with fewer draws than this is left out of a sample.
const LEAST_DRAWS: usize = 16;

/// A value that was found where one was predicted, and what is known of its noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    pub(crate) value: f64,
    /// The standard deviation of its noise, beside the fitted one unless it was given with the value.
    pub(crate) noise: f64,
    pub(crate) given: bool,
}

/// What is believed about the logarithm of the posterior density, and what follows for the evidence.
#[derive(Debug, Clone)]
pub struct LogBelief {
    pub(crate) log_z: f64,
    /// The largest first.
    pub(crate) peaks: Vec<Peak>,
    cells: Cells,
    /// The nodes behind the processes, in the coordinates of the main peak.
    nodes: Points,
    /// On the way to a further peak.
    pub(crate) climb: Option<Peak>,
    /// A point that would tell noise from structure, if that is in doubt.
    pub(crate) twin: Option<Vec<f64>>,
    /// What looks for what the others cannot see.
    pub(crate) scout: Scout,
    pub(crate) known: Known,
    pub(crate) recipe: Recipe,
}

/// A peak with more than this share of `Z` must have arrived before the run has.
const MATTERS: f64 = 0.05;

/// Chosen by measurement: where the likelihood at a place of the prior is larger than all that were seen with this probability, something is still to be
/// found.
pub(crate) const HIDDEN: f64 = 0.1;

impl LogBelief {
    /// Whether the run has arrived: the surrogate's posterior is where the values are, it has stopped moving, and nothing higher is expected elsewhere.
    #[must_use]
    pub fn arrived(&self) -> bool {
        self.settled() && self.chance() <= HIDDEN
    }

    /// Whether the surrogate's posterior is where the values are and has stopped moving, and no other peak is known to exist.
    pub(crate) fn settled(&self) -> bool {
        !self.recipe.promising() && self.peaks_arrived()
    }

    /// Whether every peak that matters has arrived.
    fn peaks_arrived(&self) -> bool {
        self.shares().zip(&self.peaks).all(|(share, peak)| share < MATTERS || peak.recipe.arrived)
    }

    /// Whether values lie beyond a valley, or may do so, and what is there is not known yet.
    pub(crate) fn beyond(&self) -> bool {
        self.recipe.beyond()
    }

    /// Whether to ask now where values belong that no peak explains: not before the posterior that was found is known a little, or has been for some time.
    /// With noise it may not be known so well for long.
    pub(crate) fn asks(&self) -> bool {
        let process = &self.main().process;
        let noisy = process.data.doubt(process.hyper.noise) >= 1.0;
        self.recipe.asking() && (noisy || self.process_sd() <= climb::KNOWN[0] || self.recipe.seasoned())
    }

    /// Whether there are several peaks, too little is known about further ones, and nothing else keeps the run from arriving.
    pub(crate) fn exploring(&self) -> bool {
        self.recipe.exploring() && !self.recipe.beyond() && self.peaks_arrived()
    }

    /// How many peaks have a process of their own.
    #[must_use]
    pub fn peaks(&self) -> usize {
        self.peaks.len()
    }

    /// The share of `Z` in each peak.
    pub(crate) fn shares(&self) -> impl Iterator<Item = f64> {
        self.peaks.iter().map(|p| (p.log_z - self.log_z).exp())
    }

    /// A standard deviation of `log Z` from those of the peaks, which know nothing of each other: `Σ pₖ²sₖ²` with shares `pₖ` of `Z`.
    fn together(&self, sd: impl Fn(&Peak) -> f64) -> f64 {
        self.shares().zip(&self.peaks).map(|(share, peak)| (share * sd(peak)).powi(2)).sum::<f64>().sqrt()
    }

    /// The peak whose coordinates are the belief's own.
    pub(crate) fn main(&self) -> &Peak {
        &self.peaks[0]
    }

    /// The standard deviation of the noise of single log-likelihoods, as fitted.
    #[must_use]
    pub fn noise(&self) -> f64 {
        self.main().process.hyper.noise
    }

    /// What may be where nobody has looked, relative to `Z`: what a process on all values expects at draws from the prior at which it knows
    /// next to nothing.
    #[must_use]
    pub fn unseen(&self) -> f64 {
        self.scout.unseen
    }

    /// The probability that the likelihood at a draw from the prior is larger than all that were seen, by a process on all values.
    #[must_use]
    pub fn chance(&self) -> f64 {
        self.scout.chance
    }

    /// The share of the prior in the largest ball, in probabilities, in which there is no value: a peak that fills more would have been seen.
    #[must_use]
    pub fn empty(&self) -> f64 {
        self.scout.empty
    }

    /// How many values lie away from the peaks: no process of theirs needs them.
    pub(crate) fn away(&self) -> usize {
        self.known.len() - self.peaks.iter().map(|peak| peak.process.len()).sum::<usize>().min(self.known.len())
    }

    /// The standard deviation of `log Z` by the process alone.
    #[must_use]
    pub fn model_sd(&self) -> f64 {
        self.together(|peak| peak.model_sd)
    }

    /// The standard deviation of `log Z` by leaving out single values.
    pub(crate) fn jackknife_sd(&self) -> f64 {
        self.together(|peak| peak.jackknife_sd)
    }

    /// How each value is predicted from all the others, in the order of the nodes. Cost: `n³/3`.
    #[must_use]
    pub fn residuals(&self) -> Vec<Residual> {
        let mut all = Vec::new();
        for Peak { process, .. } in &self.peaks {
            let precision = process.factor.inverse_diagonal();
            let residual = |((w, t), p): ((&f64, &f64), f64)| Residual {
                value: *t,
                predicted: t - w / p,
                sd: p.sqrt().recip(),
                standardised: w / p.sqrt(),
            };
            all.extend(process.weights.iter().zip(&process.data.targets).zip(precision).map(residual));
        }
        all
    }

    /// The nodes behind the process, in its coordinates.
    #[must_use]
    pub fn nodes(&self) -> &Points {
        &self.nodes
    }

    /// Over what distance the process varies in each of its coordinates, beside the quadratic.
    #[must_use]
    pub fn lengthscales(&self) -> &[f64] {
        &self.main().process.hyper.lengthscales
    }

    /// The variance `σ²` of the part that is not quadratic.
    pub(crate) fn sigma2(&self) -> f64 {
        self.main().process.hyper.sigma.powi(2)
    }

    /// A sample of the surrogate's posterior with about `n` points: the points, the logarithm of the integrand with respect to `dx`, and
    /// minus the logarithm of the density that they were drawn from.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than 64.
    pub(crate) fn sample(&self, n: usize, seed: u64) -> Result<(Points, Vec<f64>, Vec<f64>)> {
        if n < 64 {
            return Err(Error::invalid("number of posterior draws", n, "at least 64"));
        }
        let mut flat = Vec::new();
        let (mut levels, mut ratios) = (Vec::new(), Vec::new());
        for (k, (share, peak)) in self.shares().zip(&self.peaks).enumerate() {
            let own = if k == 0 { n } else { (share / self.main_share() * n as f64).round() as usize };
            if own < LEAST_DRAWS {
                continue;
            }
            let proposal = peak.integral.proposal.clone().rounded(own);
            let draws = proposal.draw(own, 1, seed, u64::from(u32::MAX))?;
            let points = &draws.points;
            // Densities are per volume of the main peak's coordinates; the draws of each peak stand for its own cell.
            let volume = peak.view.log_volume - self.main().view.log_volume;
            let count = (own as f64 / n as f64).ln();
            levels.extend(
                peak.target(self.cells.cell(k)).levels(points)?.iter().map(|l| l + peak.known.best - self.known.best),
            );
            ratios.extend(proposal.log_densities(&draws).iter().map(|q| volume - q - count));
            flat.extend(points.rows().flat_map(|x| self.main().view.enter(&peak.view.leave(x))));
        }
        Ok((Points::new(self.known.dim(), flat)?, levels, ratios))
    }

    fn main_share(&self) -> f64 {
        (self.main().log_z - self.log_z).exp()
    }

    /// `Σₛₜ aₛ Cov[f(xₛ), f(xₜ)] bₜ` for all pairs of columns, the integrand linearised: `Cov ≈ e^{mₛ + mₜ} cₛₜ`, times
    /// the factor by which the process's part of the bar is larger than the process alone says. Cost: `q²` kernel values
    /// and `n²q`.
    pub(crate) fn covariance_sums(&self, x: &Points, columns: &Matrix) -> Result<Matrix> {
        let latent: Vec<Vec<f64>> = x.rows().map(|x| self.main().view.leave(x)).collect();
        let mut sums = Matrix::zeros(columns.cols(), columns.cols());
        for (k, peak) in self.peaks.iter().enumerate() {
            let own: Vec<usize> = (0..x.len()).filter(|&s| self.cells.at(&latent[s]) == k).collect();
            if own.is_empty() {
                continue;
            }
            let flat: Vec<f64> = own.iter().flat_map(|&s| peak.view.enter(&latent[s])).collect();
            let points = Points::new(x.dim(), flat)?;
            let mean = peak.process.mean(&points);
            let scale = |s: usize| (mean[s] + peak.known.best - self.known.best).exp();
            let scaled = Matrix::from_fn(own.len(), columns.cols(), |s, j| columns.get(own[s], j) * scale(s));
            let part = peak.process.covariance_sums(&points, &scaled);
            sums = Matrix::from_fn(sums.rows(), sums.cols(), |i, j| sums.get(i, j) + part.get(i, j));
        }
        // As sure of them as of log Z.
        let wider = (self.process_sd() / self.model_sd().max(f64::MIN_POSITIVE)).powi(2);
        Ok(Matrix::from_fn(sums.rows(), sums.cols(), |i, j| wider * sums.get(i, j)))
    }

    /// What was predicted at latent points, as log-likelihoods, beside those that were found.
    pub(crate) fn forecast(predictor: &Predictor, latent: &Points, found: &[Found]) -> Result<Vec<Predicted>> {
        let predicted = |(u, found): (&[f64], &Found)| -> Result<Predicted> {
            let (known, view, process) = predictor.at(u);
            let p = process.predict(&Points::new(u.len(), view.enter(u))?);
            let common = process.hyper.noise.powi(2);
            let shift = known.best - log_prior(u);
            let Found { value, noise: own, given } = *found;
            let (mean, depth) = (p.mean[0] + shift, known.best - (value + log_prior(u)));
            let depth = if depth.is_finite() { depth } else { f64::MAX.sqrt() };
            let noise = if given { own * own } else { common + own * own };
            let sd = (p.variance[0] + noise + known.tolerance(depth)).sqrt();
            let standardised = if value.is_finite() { (value - mean) / sd } else { 0.0 };
            Ok(Predicted { mean, low: mean - 2.0 * sd, high: mean + 2.0 * sd, standardised })
        };
        latent.rows().zip(found).map(predicted).collect()
    }

    /// A lower bound on the condition number of the kernel matrix.
    #[must_use]
    pub fn condition_number(&self) -> f64 {
        self.peaks.iter().map(|p| p.process.factor.condition()).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `log ℓ = −8(u − 0.3)²` at some places.
    fn known(n: u32) -> Known {
        let nodes: Vec<Vec<f64>> = (0..n).map(|i| vec![0.3 + 1.5 * (1.7 * f64::from(i)).sin()]).collect();
        let logs: Vec<f64> = nodes.iter().map(|u| -8.0 * (u[0] - 0.3).powi(2)).collect();
        let count = logs.len();
        Known::new(Points::from_rows(&nodes).unwrap(), &logs, vec![0.0; count], vec![false; count]).unwrap()
    }

    #[test]
    fn a_run_that_expects_something_higher_has_not_arrived() {
        // Found, then found where it was, then it stays there.
        let mut belief = search(&known(12), None, 1).unwrap();
        for n in [16, 20] {
            belief = search(&known(n), Some(&belief.recipe), 1).unwrap();
        }
        assert!(belief.arrived() && belief.chance() < 1e-3 && belief.estimate().log_z_sd < 0.01);
        let stated = belief.estimate();
        assert!(stated.below.one <= stated.log_z_sd && stated.above.one >= stated.log_z_sd && stated.above.one < 0.02);
        belief.scout.chance = 1.01 * HIDDEN;
        assert!(belief.settled() && !belief.arrived());
        let stated = belief.estimate();
        assert!(stated.log_z_sd >= NOT_ARRIVED);
        // Such a run is mostly right, and never much too high.
        let (low, high) = stated.interval(0.95).unwrap();
        assert!(stated.log_z - low < 0.03 && (5.0..40.0).contains(&(high - stated.log_z)), "{low} {high}");
    }
}
