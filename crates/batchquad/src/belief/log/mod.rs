//! A belief about the logarithm of the posterior density. `MATH.md` §15.
//!
//! A Gaussian process on `log ℓ + log φ` (`φ` the prior density in latent coordinates): a squared-exponential part, a shrunk quadratic and noise. It climbs
//! from values of −10⁶, is exact for normal posteriors, and carries noise. Its integral has no closed form; importance sampling of the
//! surrogate stands for it, with an error that is known and small.

mod fit;
mod integral;
mod known;
mod process;
mod proposal;
mod recipe;
mod scout;
mod support;
mod view;

pub use self::recipe::Recipe;
pub(crate) use self::{
    integral::{Integral, resample},
    known::{Known, log_prior},
    process::{Placed, Process},
    recipe::{predictor, recall, search},
    scout::{Scout, UNKNOWN, prior_points},
    support::Support,
    view::View,
};

use crate::{
    belief::{estimate::Estimate, residuals::Residual, surrogate::Predicted},
    error::{Error, Result},
    numeric::linalg::Matrix,
    points::Points,
};

/// The standard deviation of `log Z` that is stated at the least before a run has arrived: where the posterior is has not been seen, so
/// nothing smaller would be honest. It is more where the best values still differ by more.
const NOT_ARRIVED: f64 = 20.0;

/// Chosen by measurement: the variances of process and jackknife count to `a + b/n` with `n` values, at least the process's.
const CALIBRATION: (f64, f64) = (0.25, 15.0);

/// The share at the least where the noise is above this.
const NOISY: f64 = 0.02;
const NOISY_SHARE: f64 = 0.75;

/// Chosen by measurement: draws of the edge differ a little less than the edge does from the truth.
const EDGE_CALIBRATION: f64 = 1.5;

/// A value that was found where one was predicted, and what is known of its noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    pub(crate) value: f64,
    /// The standard deviation of its noise, beside the fitted one unless it was given with the value.
    pub(crate) noise: f64,
    pub(crate) given: bool,
}

/// What is looked at while the posterior is not found: all values, around the best nodes, compressed where they are far below.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    pub(crate) view: View,
    pub(crate) process: Process,
    pub(crate) integral: Integral,
}

/// What is believed about the logarithm of the posterior density, and what follows for the evidence.
#[derive(Debug, Clone)]
pub struct LogBelief {
    pub(crate) log_z: f64,
    pub(crate) model_sd: f64,
    pub(crate) jackknife_sd: f64,
    pub(crate) monte_carlo_sd: f64,
    /// What is not known about where the likelihood becomes zero.
    pub(crate) edge_sd: f64,
    pub(crate) support: Option<Support>,
    /// A point that would tell noise from structure, if that is in doubt.
    pub(crate) twin: Option<Vec<f64>>,
    pub(crate) view: View,
    pub(crate) process: Process,
    pub(crate) integral: Integral,
    /// What looks for what the others cannot see.
    pub(crate) scout: Scout,
    pub(crate) search: Option<Search>,
    pub(crate) known: Known,
    pub(crate) recipe: Recipe,
}

impl LogBelief {
    /// Whether the run has arrived: the surrogate's posterior is where the values are, and it has stopped moving.
    #[must_use]
    pub fn arrived(&self) -> bool {
        self.recipe.arrived
    }

    /// The standard deviation of the noise of single log-likelihoods, as fitted.
    #[must_use]
    pub fn noise(&self) -> f64 {
        self.process.hyper.noise
    }

    /// What may be where nobody has looked, relative to `Z`: what a process on all values expects at draws from the prior at which it knows
    /// next to nothing.
    #[must_use]
    pub fn unseen(&self) -> f64 {
        self.scout.unseen
    }

    /// The share of the prior in the largest ball, in probabilities, in which there is no value: a peak that fills more would have been seen.
    #[must_use]
    pub fn empty(&self) -> f64 {
        self.scout.empty
    }

    /// The standard deviation of `log Z` by the process alone.
    #[must_use]
    pub fn model_sd(&self) -> f64 {
        self.model_sd
    }

    /// The standard deviations of `log Z` of which the stated one is made: of the process and of the jackknife, of which `process` is made; of
    /// the sampling; of the likelihood's edge; of what may be unseen.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, f64); 6] {
        // Both tell of the same ignorance. Where the values are noisy the process knows it best; where they are not, both together state too
        // much, and the less so the fewer values there are to find hyperparameters from.
        let share = CALIBRATION.0 + CALIBRATION.1 / self.known.len() as f64;
        let share = if self.noise() > NOISY { share.max(NOISY_SHARE) } else { share };
        let both = share * (self.model_sd.powi(2) + self.jackknife_sd.powi(2));
        [
            ("model", self.model_sd),
            ("jackknife", self.jackknife_sd),
            ("process", both.sqrt().max(self.model_sd)),
            ("sampling", self.monte_carlo_sd),
            ("edge", EDGE_CALIBRATION * self.edge_sd),
            ("unseen", (2.0 * self.unseen()).ln_1p()),
        ]
    }

    /// The belief about the evidence: the variances of the last four [parts](Self::parts) together; before the run has arrived no less than twenty nats.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        let known = self.parts()[2..].iter().map(|(_, sd)| sd * sd).sum::<f64>().sqrt();
        let sd = if self.arrived() { known } else { known.max(NOT_ARRIVED).max(self.known.unrest()) };
        Estimate::from_log(self.log_z, sd, self.known.largest_likelihood)
    }

    /// How each value is predicted from all the others, in the order of the nodes. Cost: `n³/3`.
    #[must_use]
    pub fn residuals(&self) -> Vec<Residual> {
        let precision = self.process.factor.inverse_diagonal();
        let residual = |((w, t), p): ((&f64, &f64), f64)| Residual {
            value: *t,
            predicted: t - w / p,
            sd: p.sqrt().recip(),
            standardised: w / p.sqrt(),
        };
        self.process.weights.iter().zip(&self.process.data.targets).zip(precision).map(residual).collect()
    }

    /// The nodes behind the process, in its coordinates.
    #[must_use]
    pub fn nodes(&self) -> &Points {
        &self.process.data.nodes
    }

    /// Over what distance the process varies in each of its coordinates, beside the quadratic.
    #[must_use]
    pub fn lengthscales(&self) -> &[f64] {
        &self.process.hyper.lengthscales
    }

    /// The variance `σ²` of the squared-exponential part.
    pub(crate) fn sigma2(&self) -> f64 {
        self.process.hyper.sigma.powi(2)
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
        let proposal = self.integral.proposal.clone().rounded(n);
        let points = proposal.draw(n, 1, seed, u64::from(u32::MAX))?;
        let target = integral::Target {
            process: &self.process,
            prior: &self.view.prior,
            ceiling: self.known.ceiling(&self.view),
            support: self.support.as_ref(),
        };
        let levels = target.levels(&points)?;
        let ratio = points.rows().map(|x| -proposal.log_density(x)).collect();
        Ok((points, levels, ratio))
    }

    /// `Σₛₜ aₛ Cov[f(xₛ), f(xₜ)] bₜ` for all pairs of columns, the integrand linearised: `Cov ≈ e^{mₛ + mₜ} cₛₜ`. Cost: `q²` kernel values
    /// and `n²q`.
    pub(crate) fn covariance_sums(&self, x: &Points, columns: &Matrix) -> Matrix {
        let mean = self.process.mean(x);
        let scaled = Matrix::from_fn(x.len(), columns.cols(), |s, k| columns.get(s, k) * mean[s].exp());
        self.process.covariance_sums(x, &scaled)
    }

    /// What was predicted at latent points, as log-likelihoods, beside those that were found.
    pub(crate) fn forecast(
        view: &View,
        process: &Process,
        known: &Known,
        latent: &Points,
        found: &[Found],
    ) -> Result<Vec<Predicted>> {
        let flat: Vec<f64> = latent.rows().flat_map(|u| view.enter(u)).collect();
        let p = process.predict(&Points::new(latent.dim(), flat)?);
        let noise = process.hyper.noise.powi(2);
        let predicted = |(i, u): (usize, &[f64])| {
            let shift = known.best - log_prior(u);
            let Found { value, noise: own, given } = found[i];
            let (mean, depth) = (p.mean[i] + shift, known.best - (value + log_prior(u)));
            let depth = if depth.is_finite() { depth } else { f64::MAX.sqrt() };
            let noise = if given { own * own } else { noise + own * own };
            let sd = (p.variance[i] + noise + known.tolerance(depth)).sqrt();
            let standardised = if value.is_finite() { (value - mean) / sd } else { 0.0 };
            Predicted { mean, low: mean - 2.0 * sd, high: mean + 2.0 * sd, standardised }
        };
        Ok(latent.rows().enumerate().map(predicted).collect())
    }

    /// A lower bound on the condition number of the kernel matrix.
    #[must_use]
    pub fn condition_number(&self) -> f64 {
        self.process.factor.condition()
    }
}
