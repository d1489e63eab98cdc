//! What a run may be told: every choice with its default.

mod start;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    belief::{gp::FitOptions, kernel::SquaredExponential, log::coefficients, warp::Model},
    choose::{
        acquire::AcquisitionKind,
        design::InitialDesign,
        select::{BatchRule, Constants, Lie, Penalisation, Rule, Search},
    },
    error::{Error, Result, require_finite, require_positive},
};

/// A point to begin with: the value of every parameter, by name.
pub type Start = BTreeMap<String, f64>;

/// The most parameters for which [`SurrogateChoice::Auto`] is a belief about the logarithm: a quadratic in more has
/// more coefficients than a run has values.
pub const MOST_FOR_LOG: usize = 12;

/// Which belief about the likelihood a run holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SurrogateChoice {
    /// [`SurrogateChoice::Log`] for up to [`MOST_FOR_LOG`] parameters, unless a kernel, a batch rule, an acquisition or
    /// a reference measure is chosen, which only the others have: then [`SurrogateChoice::WsabiL`].
    #[default]
    Auto,
    /// A Gaussian process on the logarithm of the posterior density: it arrives from far away, is exact for normal
    /// posteriors and carries noise. Its integral is by importance sampling.
    Log,
    /// A Gaussian process on the likelihood itself ([`Model::Plain`]).
    Plain,
    /// A Gaussian process on the square root, linearised: the paper's model ([`Model::WsabiL`]).
    WsabiL,
    /// The same with the exact first two moments ([`Model::WsabiM`]).
    WsabiM,
}

impl From<Model> for SurrogateChoice {
    fn from(model: Model) -> Self {
        match model {
            Model::Plain => Self::Plain,
            Model::WsabiL => Self::WsabiL,
            Model::WsabiM => Self::WsabiM,
        }
    }
}

/// The kernel of the Gaussian process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelChoice {
    /// Squared exponential with one lengthscale for all latent coordinates, as in the paper.
    Isotropic,
    /// Squared exponential with a lengthscale for each.
    #[default]
    Ard,
}

/// What the likelihood is integrated against. [`MATH.md` §6](crate::math).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// A measure that follows the posterior: half the prior, half a normal distribution around what has been found, in
    /// whose coordinates the belief lives. It needs far fewer values where the posterior is narrow or tilted. A plain
    /// surrogate, which has no positive posterior to follow, and a known kernel stay with the prior.
    #[default]
    Moving,
    /// The prior, as in the paper.
    Prior,
}

/// Hyperparameters that are known beforehand and not fitted: those of the Gaussian process in units of the likelihood
/// itself ([`Model::Plain`]) or of its square root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownKernel {
    /// The logarithm of the variance `σ²`.
    pub log_sigma2: f64,
    /// The lengthscales, in latent coordinates.
    pub lengthscales: Vec<f64>,
}

impl KnownKernel {
    fn validate(&self) -> Result<()> {
        require_finite("known_kernel.log_sigma2", self.log_sigma2)?;
        self.lengthscales.iter().try_for_each(|&l| require_positive("known_kernel.lengthscales", l).map(drop))
    }

    /// The kernel where likelihoods are in units of `eᶜ`: a square root has the unit `e^(c/2)`.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the variance is not a positive number in these units.
    pub(crate) fn scaled(&self, model: Model, scale: f64) -> Result<SquaredExponential> {
        let unit = model.warp().log_variance_unit(scale);
        SquaredExponential::new((self.log_sigma2 - unit).exp(), self.lengthscales.clone())
    }
}

/// What becomes of a point whose evaluation failed for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// It is left out of the belief and not asked again.
    #[default]
    Exclude,
    /// The likelihood is taken to be zero there: the user says so, nobody has measured it.
    AsZero,
    /// The run ends.
    Abort,
}

/// When workers are given new points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// When the whole batch is back, as in the paper: reproducible to the bit.
    #[default]
    Batch,
    /// As soon as one is free, with the running points as pending. Where choosing takes long compared with an evaluation,
    /// points are chosen ahead, while others are evaluated: no worker waits.
    Async,
}

/// All choices of a run. Every field has a default; unknown fields are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Points chosen together.
    pub batch: usize,
    /// A batch is at most this share of the values known when it is chosen: a large first batch would be chosen on a
    /// poor model. At least one point is always chosen, and the initial design and points for workers that are free in
    /// the asynchronous schedule are not held back; those that are chosen ahead are. By default [`log_batch_growth`],
    /// for the other beliefs [`BATCH_GROWTH`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_growth: Option<f64>,
    /// The run ends after this many evaluations were asked.
    pub max_evaluations: usize,
    /// Stop after this many batches.
    pub max_batches: Option<usize>,
    /// Stop after this many seconds.
    pub max_seconds: Option<f64>,
    /// Stop when the standard deviation of `log Z` is at most this (after two batches in a row).
    pub target_sd: Option<f64>,
    /// Stop when `log Z` has moved by less than a tenth of this in each of five batches although the target is not met.
    pub stall: Option<f64>,
    /// … or when another batch is forecast to reduce the standard deviation of `log Z` by less than this share of it (after two batches in a row).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_gain: Option<f64>,
    /// How many independent runs there are, each with the limits above: other seeds, the same store, and all values together at the end. One by
    /// default, and as many as before where a store is resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<usize>,
    /// The belief about the integrand.
    pub surrogate: SurrogateChoice,
    /// The standard deviation of the noise of every log-likelihood, where it is known; otherwise the belief about the
    /// logarithm fits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_sd: Option<f64>,
    /// What it is integrated against.
    pub reference: Reference,
    /// Its kernel.
    pub kernel: KernelChoice,
    /// Its hyperparameters, if they are known; otherwise they are fitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_kernel: Option<KnownKernel>,
    /// Hyperparameters are refitted with every batch. While there are at most 40 values, and whenever these have grown
    /// by this factor since the last time, the search has several starts; otherwise only the last hyperparameters.
    pub refit_growth: f64,
    /// How a batch is chosen.
    pub batch_rule: BatchRule,
    /// What is maximised to choose it.
    pub acquisition: AcquisitionKind,
    /// Starts of that search for each dimension.
    pub starts_per_dim: usize,
    /// The constants of local penalisation.
    pub penalisation: Penalisation,
    /// What the constant liar says.
    pub lie: Lie,
    /// How the first points are laid out.
    pub initial_design: InitialDesign,
    /// How many they are; by default [`log_initial_size`], for the other beliefs [`initial_size`].
    pub initial_size: Option<usize>,
    /// Points that are evaluated first, before the initial design: guesses at where the posterior is. A wrong one costs
    /// its evaluation and may slow the search at first. They are fixed when a run begins.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "start::one_or_several")]
    pub start: Vec<Start>,
    /// When workers are given new points.
    pub schedule: Schedule,
    /// What becomes of failed evaluations.
    pub on_failure: OnFailure,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            batch: 8,
            batch_growth: None,
            max_evaluations: 128,
            max_batches: None,
            max_seconds: None,
            target_sd: None,
            stall: None,
            stop_gain: None,
            repeats: None,
            surrogate: SurrogateChoice::default(),
            noise_sd: None,
            reference: Reference::default(),
            kernel: KernelChoice::default(),
            known_kernel: None,
            refit_growth: 1.5,
            batch_rule: BatchRule::default(),
            acquisition: AcquisitionKind::default(),
            starts_per_dim: 10,
            penalisation: Penalisation::default(),
            lie: Lie::default(),
            initial_design: InitialDesign::default(),
            initial_size: None,
            start: Vec::new(),
            schedule: Schedule::default(),
            on_failure: OnFailure::default(),
        }
    }
}

/// More points than anybody evaluates together; beyond it a typing error is the likely cause.
const MOST_TOGETHER: usize = 10_000;
/// More independent runs than anybody makes.
const MOST_REPEATS: usize = 100;
/// More starts than any acquisition has summits: what they need is worked out at once, so they must fit into memory.
const MOST_STARTS: usize = 1_000;

/// The default size of the initial design in `dim` dimensions.
///
/// Measured in batches of 16 (`crates/experiments/RESULTS.md`, ablation): half of it has 0.74 times the error on the GP
/// evidence and 1.36 times on mixtures in four dimensions, double of it 1.51 and 1.26 times.
#[must_use]
pub fn initial_size(dim: usize) -> usize {
    4 * dim + 4
}

/// The default size of the initial design for a belief about the logarithm: it searches by itself, so a few values to
/// begin with are enough.
#[must_use]
pub fn log_initial_size(dim: usize) -> usize {
    2 * dim + 4
}

/// The share of the values known that a batch has at most, unless the belief is about the logarithm.
///
/// Measured in batches of 16 (`crates/experiments/RESULTS.md`, ablation): full batches at once have 1.2 to 1.4 times the
/// error.
pub const BATCH_GROWTH: f64 = 0.5;

/// … and at most in large batches of a belief about the logarithm.
const LARGEST_GROWTH: f64 = 0.4;

/// The same for a belief about the logarithm: `√batch/16`, between 0.25 and 0.4. `MATH.md` §5.4.
///
/// The smaller the share, the fewer evaluations a run needs and the more rounds. Those who evaluate many points at
/// a time count rounds, others count evaluations (`crates/experiments/RESULTS.md`, many workers).
#[must_use]
pub fn log_batch_growth(batch: usize) -> f64 {
    ((batch as f64).sqrt() / 16.0).clamp(0.25, LARGEST_GROWTH)
}

impl Settings {
    /// Checks every choice.
    ///
    /// # Errors
    /// [`Error::Invalid`] naming the field.
    pub fn validate(&self) -> Result<()> {
        let at_least_one = |name: &str, value: usize| {
            if value == 0 { Err(Error::invalid(name, value, "at least 1")) } else { Ok(()) }
        };
        let at_most = |name: &str, value: usize, most: usize| {
            if value > most { Err(Error::invalid(name, value, format!("at most {most}"))) } else { Ok(()) }
        };
        at_most("batch", self.batch, MOST_TOGETHER)?;
        at_most("initial_size", self.initial_size.unwrap_or(0), MOST_TOGETHER)?;
        at_most("repeats", self.repeats.unwrap_or(1), MOST_REPEATS)?;
        at_most("starts_per_dim", self.starts_per_dim, MOST_STARTS)?;
        at_most("number of points in start", self.start.len(), MOST_TOGETHER)?;
        for (i, start) in self.start.iter().enumerate() {
            for (name, value) in start {
                require_finite(&format!("{}.{name}", self.start_name(i)), *value)?;
            }
        }
        at_least_one("batch", self.batch)?;
        at_least_one("max_evaluations", self.max_evaluations)?;
        at_least_one("starts_per_dim", self.starts_per_dim)?;
        self.max_batches.map_or(Ok(()), |n| at_least_one("max_batches", n))?;
        self.repeats.map_or(Ok(()), |n| at_least_one("repeats", n))?;
        self.initial_size.map_or(Ok(()), |n| at_least_one("initial_size", n))?;
        let positive = [
            ("max_seconds", self.max_seconds),
            ("target_sd", self.target_sd),
            ("stall", self.stall),
            ("noise_sd", self.noise_sd),
            ("batch_growth", self.batch_growth),
        ];
        for (name, value) in positive {
            if let Some(value) = value {
                require_positive(name, value)?;
            }
        }
        if let Some(share) = self.stop_gain.filter(|share| !(*share > 0.0 && *share < 1.0)) {
            return Err(Error::invalid("stop_gain", share, "a share between 0 and 1"));
        }
        if !(self.refit_growth.is_finite() && self.refit_growth >= 1.0) {
            return Err(Error::invalid("refit_growth", self.refit_growth, "a finite number ≥ 1"));
        }
        self.known_kernel.as_ref().map_or(Ok(()), KnownKernel::validate)?;
        if self.surrogate == SurrogateChoice::Log && self.known_kernel.is_some() {
            return Err(Error::invalid(
                "known_kernel",
                &self.known_kernel,
                "none with surrogate = \"log\", which has a kernel of its own",
            ));
        }
        if let (Some(sd), Some(model)) = (self.noise_sd, self.model(1)) {
            return Err(Error::invalid(
                "noise_sd",
                sd,
                format!(
                    "none with surrogate = {}, which does not allow for noise; \"log\" does",
                    serde_json::json!(model)
                ),
            ));
        }
        require_positive("penalisation.slope", self.penalisation.slope)?;
        require_positive("penalisation.power", self.penalisation.power)?;
        Ok(())
    }

    /// The settings as a JSON object, as they stand in a store.
    ///
    /// # Errors
    /// As [`Settings::validate`].
    pub fn to_map(&self) -> Result<serde_json::Map<String, serde_json::Value>> {
        self.validate()?;
        match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(map)) => Ok(map),
            _ => Err(Error::invalid("settings", self, "values that JSON can hold")),
        }
    }

    /// The warp of the belief about `dim` parameters; none where it is about the logarithm.
    #[must_use]
    pub fn model(&self, dim: usize) -> Option<Model> {
        let plain = Self::default();
        match self.surrogate {
            SurrogateChoice::Log => None,
            SurrogateChoice::Plain => Some(Model::Plain),
            SurrogateChoice::WsabiL => Some(Model::WsabiL),
            SurrogateChoice::WsabiM => Some(Model::WsabiM),
            SurrogateChoice::Auto => {
                let asked = dim > MOST_FOR_LOG
                    || self.known_kernel.is_some()
                    || self.batch_rule != plain.batch_rule
                    || self.acquisition != plain.acquisition
                    || self.reference != plain.reference
                    || self.kernel != plain.kernel;
                asked.then_some(Model::WsabiL)
            }
        }
    }

    /// How many independent runs there are.
    #[must_use]
    pub fn repeats(&self) -> usize {
        self.repeats.unwrap_or(1)
    }

    /// How many evaluations all independent runs may ask together.
    #[must_use]
    pub fn most_evaluations(&self) -> usize {
        self.max_evaluations.saturating_mul(self.repeats())
    }

    /// How many points the initial design has in `dim` dimensions.
    #[must_use]
    pub fn design_size(&self, dim: usize) -> usize {
        let by_default = if self.model(dim).is_some() { initial_size(dim) } else { log_initial_size(dim) };
        self.initial_size.unwrap_or(by_default)
    }

    /// The share of the values known that a batch has at most in `dim` dimensions.
    #[must_use]
    pub fn growth(&self, dim: usize) -> f64 {
        let by_default = if self.model(dim).is_some() { BATCH_GROWTH } else { log_batch_growth(self.batch) };
        self.batch_growth.unwrap_or(by_default)
    }

    /// How many points follow when there are so many `values` in `dim` dimensions: the whole batch, or as many as [`Settings::growth`] allows.
    ///
    /// A belief about the logarithm has a quadratic. A batch that would end with fewer than `d` values beyond its `q` coefficients, which say next to
    /// nothing about it, goes on to `q + d` if [`log_batch_growth`] allows for that in large batches.
    pub(crate) fn batch_after(&self, values: usize, dim: usize) -> usize {
        let least = self.batch.min((self.growth(dim) * values as f64) as usize).max(1);
        let coefficients = coefficients(dim);
        let enough = (coefficients + dim).saturating_sub(values);
        let most = self.batch.min((LARGEST_GROWTH * values as f64) as usize);
        let by_default = self.batch_growth.is_none() && self.model(dim).is_none();
        if by_default && values + least >= coefficients && least < enough && enough <= most { enough } else { least }
    }

    pub(crate) fn fit_options(&self) -> FitOptions {
        FitOptions { ard: self.kernel == KernelChoice::Ard, ..FitOptions::default() }
    }

    /// How the acquisition is maximised after `asked` jobs.
    pub(crate) fn search(&self, seed: u64, asked: u64) -> Search<'_> {
        Search { criterion: &self.acquisition, starts_per_dim: self.starts_per_dim, seed, asked }
    }

    /// The batch rule with its constants.
    pub(crate) fn rule(&self) -> Box<dyn Rule> {
        self.batch_rule.with(Constants { penalisation: self.penalisation, lie: self.lie })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_does_not_end_just_where_a_quadratic_is_determined() {
        let sixteen = Settings { batch: 16, ..Settings::default() };
        // Six parameters, 28 coefficients: a quarter of 25 would end at 31, where nothing is left over to contradict a quadratic.
        assert_eq!(sixteen.batch_after(25, 6), 9);
        // Before and afterwards it is a quarter.
        assert_eq!((sixteen.batch_after(20, 6), sixteen.batch_after(34, 6)), (5, 8));
        // No batch is larger than asked for, or than the largest share allows.
        assert_eq!(Settings { batch: 8, ..sixteen.clone() }.batch_after(25, 6), 6);
        assert_eq!(sixteen.batch_after(12, 4), 3);
        // A share that was set is kept, and other beliefs have no quadratic.
        assert_eq!(Settings { batch_growth: Some(0.25), ..sixteen.clone() }.batch_after(25, 6), 6);
        let wsabi = Settings { surrogate: SurrogateChoice::WsabiL, ..sixteen };
        assert_eq!(wsabi.batch_after(25, 6), 12);
    }
}
