//! Integrals with known answers.

pub mod families;
mod gp_evidence;
mod in_model;
mod mixture;
pub mod real;
pub mod world;
pub mod zoo;

pub use gp_evidence::{PRIOR as EVIDENCE_PRIOR, evidence_at, gp_evidence};
pub use in_model::{Feature, FeatureDraw, LENGTHSCALE as DRAW_LENGTHSCALE, draw_mean, in_model};
pub use mixture::{Component, components, mixture};

use anyhow::Result;
use batchquad::prior::{Distribution, Prior};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A log-likelihood.
pub type LogLikelihood = dyn Fn(&[f64]) -> f64 + Send + Sync;

/// A log-likelihood, a prior and the evidence they have.
pub struct Problem {
    /// What it is called in tables.
    pub name: String,
    /// The prior.
    pub prior: Prior,
    /// The log-likelihood, in the prior's units.
    pub log_likelihood: Box<LogLikelihood>,
    /// The true `log Z`.
    pub log_z: f64,
}

impl std::fmt::Debug for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Problem").field("name", &self.name).field("log_z", &self.log_z).finish_non_exhaustive()
    }
}

/// Independent normal parameters `x1, x2, …`, each with a mean and a standard deviation.
///
/// # Errors
/// As [`Prior::independent`].
pub fn normal_prior(parameters: &[(f64, f64)]) -> Result<Prior> {
    let named: Vec<(String, Distribution)> = parameters
        .iter()
        .enumerate()
        .map(|(i, &(mean, sd))| Ok((format!("x{}", i + 1), Distribution::normal(mean, sd)?)))
        .collect::<Result<_>>()?;
    Ok(Prior::independent(named)?)
}

/// The problems by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// [`mixture`].
    Mixture,
    /// [`gp_evidence`], the same for every seed.
    GpEvidence,
    /// [`in_model`] around zero.
    InModel,
    /// [`in_model`] kept positive.
    InModelPositive,
    /// A member of the [`zoo`], the same for every seed.
    #[value(skip)]
    Zoo(zoo::Animal),
    /// A problem of the [`world`], the same for every seed.
    #[value(skip)]
    World(world::World),
    /// The same with noise, which is another one for every seed.
    #[value(skip)]
    Noisy(world::World, world::Noise),
    /// A member of one of the [`families`], another one for every seed.
    #[value(skip)]
    Family(families::Family),
}

impl Choice {
    /// The problem with number `seed`.
    ///
    /// # Errors
    /// As the function that makes it.
    pub fn build(self, seed: u64) -> Result<Problem> {
        match self {
            Self::Mixture => mixture(seed),
            Self::GpEvidence => gp_evidence(),
            Self::InModel => in_model(seed, false),
            Self::InModelPositive => in_model(seed, true),
            Self::Zoo(animal) => animal.build(),
            Self::World(world) => world.build(),
            Self::Family(family) => family.build(seed),
            Self::Noisy(world, noise) => {
                let name = self.name().into();
                Ok(Problem { name, ..world::noisy(world.build()?, noise.sd(), seed) })
            }
        }
    }

    /// What it is called in tables and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mixture => "mixture",
            Self::GpEvidence => "gp-evidence",
            Self::InModel => "in-model",
            Self::InModelPositive => "in-model-positive",
            Self::Zoo(animal) => animal.name(),
            Self::World(world) => world.name(),
            Self::Noisy(world, noise) => world.noisy_name(noise),
            Self::Family(family) => family.name(),
        }
    }
}
