//! Families of problems: for every seed a new one, with data, shape and prior of its own and a true log Z that was made
//! independently of the library. Nothing was tuned on them.

mod climb;
mod curves;
mod dice;
mod glm;
mod hierarchical;
mod importance;
mod linear;
mod peaks;
mod periodic;
mod shapes;
mod shells;
mod simulators;

use anyhow::{Context, Result};
use batchquad::prior::{Distribution, Prior};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

pub use importance::STANDARD_ERROR;

use self::{climb::Joint, dice::Dice};
use super::{LogLikelihood, Problem};

/// A problem with its truth.
#[derive(Debug)]
pub struct Member {
    /// The problem.
    pub problem: Problem,
    /// The standard error of its log Z; zero where that has a closed form or is a one-dimensional integral.
    pub error: f64,
    /// Values of the parameters at or near the peaks of the posterior.
    pub places: Vec<Vec<f64>>,
    /// How many problems were drawn before, whose truths would have been doubtful.
    pub redrawn: u64,
}

/// Where a truth comes from.
enum Truth {
    /// A formula or an integral in one dimension.
    Exact(f64),
    /// [`importance::log_z`] with at most so many draws.
    Sampled(usize),
}

/// Most draws behind a truth where the likelihood is a matter of microseconds, and where it is solved step by step.
const DRAWS: usize = 1 << 18;
const SIMULATED_DRAWS: usize = 1 << 17;

/// A problem that was drawn, before its truth is known.
struct Draft {
    prior: Prior,
    log_likelihood: Box<LogLikelihood>,
    truth: Truth,
    places: Vec<Vec<f64>>,
}

/// Problems drawn for one seed before giving up.
const ATTEMPTS: u64 = 50;

/// Random numbers of families begin here; each family has as many addresses.
const ADDRESS: u64 = 100_000;

/// Each family with its name, its number, which is part of the address of its random numbers and never changes, and what draws it.
macro_rules! families {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $number:literal => $make:expr;)+) => {
        /// The families.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
        pub enum Family {
            $($(#[$doc])* #[serde(rename = $name)] #[value(name = $name)] $variant,)+
        }

        impl Family {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// What it is called.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            fn number(self) -> u64 {
                match self {
                    $(Self::$variant => $number,)+
                }
            }

            fn draft(self, dice: &mut Dice) -> Result<Draft> {
                match self {
                    $(Self::$variant => $make(dice),)+
                }
            }
        }
    };
}

families! {
    /// Logistic regressions with 3 to 6 parameters.
    Logistic = "logistic", 1 => glm::logistic;
    /// Poisson regressions with 2 to 5 parameters.
    Poisson = "poisson", 2 => glm::poisson;
    /// Regressions with the complementary log-log link, with 2 to 5 parameters.
    LogLog = "log-log", 3 => glm::log_log;
    /// Linear regressions with unknown noise, 3 to 6 parameters.
    LinearNoise = "linear-noise", 4 => linear::linear_noise;
    /// Logistic and Gompertz growth with unknown noise, 4 parameters.
    Growth = "growth", 5 => curves::growth;
    /// Sums of two exponentials with unknown noise, 5 parameters.
    Decay = "decay", 6 => curves::decay;
    /// Damped oscillations with unknown noise, 5 parameters.
    Damped = "damped", 7 => curves::damped;
    /// Epidemics with and without a latent period, 3 or 4 parameters.
    Epidemic = "epidemic", 8 => simulators::epidemic;
    /// Lotka–Volterra with 4 parameters.
    Predators = "predators", 9 => simulators::predators;
    /// Means of groups around a common one, 5 to 8 parameters.
    Hierarchical = "hierarchical", 10 => hierarchical::hierarchical;
    /// Products of log-gamma and skew-normal densities along rotated axes, 3 to 6 parameters.
    Skewed = "skewed", 11 => shapes::skewed;
    /// Student's t with 3 to 6 degrees of freedom, 2 to 5 parameters.
    Heavy = "heavy", 12 => shapes::heavy;
    /// Bent normal densities along rotated axes, 2 to 5 parameters.
    Bent = "bent", 13 => shapes::bent;
    /// Densities that narrow along one axis, 2 to 4 parameters.
    FunnelLike = "funnel-like", 14 => shapes::funnel;
    /// Two normal densities far apart, 2 to 4 parameters.
    TwoPeaks = "two-peaks", 15 => peaks::two;
    /// Three to five normal densities far apart, 2 to 4 parameters.
    SeveralPeaks = "several-peaks", 16 => peaks::several;
    /// Five to twelve normal densities that overlap, 3 to 5 parameters.
    Overlapping = "overlapping", 17 => peaks::overlapping;
    /// One or two spherical shells in 2 or 3 dimensions.
    Shell = "shell", 18 => shells::shell;
    /// Sinusoids of unknown frequency, 3 or 4 parameters.
    PeriodicSignal = "periodic-signal", 19 => periodic::signal;
    /// Correlated normal densities, 3 to 8 parameters.
    Normal = "normal", 20 => shapes::normal;
}

impl Family {
    /// The member number `seed`.
    ///
    /// # Errors
    /// As [`Family::member`].
    pub fn build(self, seed: u64) -> Result<Problem> {
        Ok(self.member(seed)?.problem)
    }

    /// The member number `seed`, with how well its truth is known. A problem whose truth would be doubtful is drawn anew, from the next
    /// address.
    ///
    /// # Errors
    /// When none of several problems has a truth, with the reason of the last.
    pub fn member(self, seed: u64) -> Result<Member> {
        let mut last = None;
        for redrawn in 0..ATTEMPTS {
            let address = ADDRESS * self.number() + redrawn;
            match self.draft(&mut Dice::new(seed, address)).and_then(|draft| self.finish(draft, seed, redrawn)) {
                Ok(member) => return Ok(member),
                Err(error) => last = Some(error),
            }
        }
        let error = last.unwrap_or_else(|| anyhow::anyhow!("nothing was drawn"));
        Err(error).with_context(|| format!("no member {seed} of {}", self.name()))
    }

    fn finish(self, draft: Draft, seed: u64, redrawn: u64) -> Result<Member> {
        let Draft { prior, log_likelihood, truth, places } = draft;
        let (log_z, error) = match truth {
            Truth::Exact(log_z) => (log_z, 0.0),
            Truth::Sampled(most) => {
                let joint = Joint { prior: &prior, log_likelihood: &log_likelihood };
                // Any seed does: every scrambling is another.
                let key = seed.wrapping_add(ADDRESS * self.number());
                let sampled = importance::log_z(&joint, &places, key, most)?;
                (sampled.log_z, sampled.error)
            }
        };
        anyhow::ensure!(log_z.is_finite(), "log Z is {log_z}");
        let problem = Problem { name: self.name().into(), prior, log_likelihood, log_z };
        Ok(Member { problem, error, places, redrawn })
    }
}

/// `log Z` of a problem by importance sampling from the peaks above `places`, and its standard error: a check of truths that come from
/// elsewhere.
///
/// # Errors
/// When the standard error is too large or something seems to be missing.
pub fn sampled_log_z(problem: &Problem, places: &[Vec<f64>], seed: u64) -> Result<(f64, f64)> {
    let joint = Joint { prior: &problem.prior, log_likelihood: &problem.log_likelihood };
    let sampled = importance::log_z(&joint, places, seed, DRAWS)?;
    Ok((sampled.log_z, sampled.error))
}

/// Independent parameters, each with its own distribution, called `x1, x2, …`.
fn prior_of(distributions: &[Distribution]) -> Result<Prior> {
    Ok(Prior::independent(distributions.iter().enumerate().map(|(i, d)| (format!("x{}", i + 1), *d)))?)
}

/// How many times wider than the posterior priors of regressions are.
const WIDTHS: (f64, f64) = (5.0, 60.0);

/// Means and standard deviations of priors so many times wider than `sds`, from which `truth` is a draw.
fn around(dice: &mut Dice, truth: &[f64], sds: &[f64]) -> Vec<(f64, f64)> {
    let width = dice.log_uniform(WIDTHS.0, WIDTHS.1);
    truth.iter().zip(sds).map(|(t, sd)| (t + width * sd * dice.normal(), width * sd)).collect()
}
