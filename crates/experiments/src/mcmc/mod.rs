//! Markov chains, and the evidences that can be made of them: what the paper compares with.
//!
//! A chain evaluates one point after another; `n` machines are kept busy by `n` chains. Each chain has random numbers of its own, named
//! by (seed, sampler, chain), so that the first chains of sixteen are the chains of eight, and nothing depends on threads.

pub mod diagnose;
pub mod evidence;
pub mod metropolis;
pub mod nuts;

use std::f64::consts::TAU;

use anyhow::{Context, Result};
use batchquad::numeric::{Purpose, Stream};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// A likelihood over latent coordinates, whose prior is `u ~ N(0, I)`.
pub trait Target: Sync {
    /// The number of coordinates.
    fn dim(&self) -> usize;

    /// `log ℓ(u)`; −∞ where the likelihood is zero, never NaN.
    fn log_likelihood(&self, u: &[f64]) -> f64;

    /// `log ℓ(u)` and its gradient; none where the likelihood is zero.
    fn log_likelihood_gradient(&self, u: &[f64]) -> Option<(f64, Vec<f64>)>;
}

/// `log N(u; 0, I)`.
#[must_use]
pub fn log_prior(u: &[f64]) -> f64 {
    -0.5 * u.iter().map(|v| v * v + TAU.ln()).sum::<f64>()
}

/// A state of a chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Draw {
    /// Where.
    pub u: Vec<f64>,
    /// `log ℓ(u)`.
    pub log_likelihood: f64,
    /// Evaluations, with or without gradient, that its chain had made when it was drawn.
    pub evaluations: usize,
}

impl Draw {
    /// `log ℓ(u) + log N(u; 0, I)`.
    #[must_use]
    pub fn log_joint(&self) -> f64 {
        self.log_likelihood + log_prior(&self.u)
    }
}

/// What a chain has visited.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// While the sampler was still being tuned.
    pub burn_in: Vec<Draw>,
    /// Afterwards.
    pub draws: Vec<Draw>,
}

impl Chain {
    /// Evaluations spent when the first `draws` draws after burn-in were there.
    #[must_use]
    pub fn evaluations(&self, draws: usize) -> usize {
        let made = self.burn_in.iter().chain(self.draws.iter().take(draws));
        made.last().map_or(0, |d| d.evaluations)
    }
}

/// How long chains are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Length {
    /// Draws during which the sampler is tuned.
    pub burn_in: usize,
    /// Draws that count.
    pub draws: usize,
}

/// The samplers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampler {
    /// [`metropolis`].
    MetropolisHastings,
    /// [`nuts`].
    Nuts,
}

impl Sampler {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::MetropolisHastings, Self::Nuts];

    /// What it is called in tables and figures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MetropolisHastings => "Metropolis–Hastings",
            Self::Nuts => "NUTS",
        }
    }

    /// `count` chains from independent draws of the prior, in parallel.
    ///
    /// # Errors
    /// When the likelihood is zero wherever a chain could start, or the sampler gives up.
    pub fn chains(self, target: &impl Target, seed: u64, count: usize, length: Length) -> Result<Vec<Chain>> {
        let one = |chain: usize| {
            let mut stream = address(seed, self as u64, chain);
            match self {
                Self::MetropolisHastings => metropolis::chain(target, &mut stream, length),
                Self::Nuts => nuts::chain(target, &mut stream, length),
            }
        };
        (0..count).into_par_iter().map(one).collect()
    }
}

/// The random numbers of one `user` (a sampler, or an estimator) for one of its parts. Problems draw from addresses below 2³².
pub(crate) fn address(seed: u64, user: u64, part: usize) -> Stream {
    Stream::new(seed, Purpose::Experiment, ((user + 1) << 32) | part as u64)
}

/// Draws of the prior that a chain may try to find a first state.
const STARTS: usize = 1_000;

/// The first draw of the prior whose likelihood is not zero.
fn start(target: &impl Target, stream: &mut Stream) -> Result<Draw> {
    let mut tries = (1..=STARTS).map(|evaluations| {
        let u = stream.normals(target.dim());
        Draw { log_likelihood: target.log_likelihood(&u), u, evaluations }
    });
    tries
        .find(|d| d.log_likelihood > f64::NEG_INFINITY)
        .with_context(|| format!("the likelihood is zero at {STARTS} draws of the prior: expected a place to start"))
}
