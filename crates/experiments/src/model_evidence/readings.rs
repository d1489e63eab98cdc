//! One run of parallel chains, read after more and more draws.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::GpLikelihood;
use crate::{
    mcmc::{
        Chain, Draw, Length, Sampler, Target, address,
        diagnose::{effective_size, split_r_hat},
        evidence::{Gaussian, bridge, harmonic_mean, propose, reciprocal},
    },
    problems::gp_evidence,
};

/// Where the random numbers of proposals begin, behind those of the samplers.
const PROPOSALS: u64 = 16;

/// How draws become an evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// The harmonic mean of the likelihoods of all draws.
    HarmonicMean,
    /// Reciprocal importance sampling: a Gaussian fitted to the first half of the draws, read at the second.
    Reciprocal,
    /// A bridge from a Gaussian fitted to the first half of the draws to the second half, and as many evaluations of that Gaussian.
    Bridge,
    /// A bridge from a Gaussian fitted to the second half of the burn-in to all draws, and as many evaluations of that Gaussian.
    BridgeFromBurnIn,
}

impl Estimator {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::HarmonicMean, Self::Reciprocal, Self::Bridge, Self::BridgeFromBurnIn];

    /// What it is called in tables and figures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::HarmonicMean => "harmonic mean",
            Self::Reciprocal => "reciprocal importance",
            Self::Bridge => "bridge fitted to draws",
            Self::BridgeFromBurnIn => "bridge fitted to burn-in",
        }
    }

    /// `log Ẑ`, none where there are too few draws for it, and the evaluations it took beyond the chains'.
    pub fn estimate(self, target: &impl Target, chains: &[Chain], draws: usize, seed: u64) -> (Option<f64>, usize) {
        let span = |from: usize, to: usize| -> Vec<&Draw> { chains.iter().flat_map(|c| &c.draws[from..to]).collect() };
        let half = draws / 2;
        let bridged = |fitted: &[&Draw], rest: &[&Draw]| {
            let Some(proposal) = Gaussian::fit(fitted) else { return (None, 0) };
            let mut stream = address(seed, PROPOSALS + self as u64, (chains.len() << 20) | draws);
            let proposed = propose(target, &proposal, &mut stream, rest.len());
            (bridge(&proposal, rest, &proposed), proposed.len())
        };
        match self {
            Self::HarmonicMean => (harmonic_mean(&span(0, draws)), 0),
            Self::Reciprocal => (Gaussian::fit(&span(0, half)).and_then(|q| reciprocal(&q, &span(half, draws))), 0),
            Self::Bridge => bridged(&span(0, half), &span(half, draws)),
            Self::BridgeFromBurnIn => {
                let settled: Vec<&Draw> = chains.iter().flat_map(|c| &c.burn_in[c.burn_in.len() / 2..]).collect();
                bridged(&settled, &span(0, draws))
            }
        }
    }
}

/// Everything that determines a run; the smaller numbers of chains are the first of the largest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The sampler.
    pub sampler: Sampler,
    /// The seed.
    pub seed: u64,
    /// The numbers of chains.
    pub chains: Vec<usize>,
    /// The draws of each before any count.
    pub burn_in: usize,
    /// The draws of each, in rising order, after which evidences are read.
    pub read_at: Vec<usize>,
}

/// An evidence and what it cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// How it was made.
    pub estimator: Estimator,
    /// Of how many chains.
    pub chains: usize,
    /// Draws of each after burn-in.
    pub draws: usize,
    /// Batches by the paper's account: burn-in is free, and a draw is one whatever its trajectory took.
    pub batches: usize,
    /// Batches when every evaluation counts, as if no machine ever waited for a chain with longer trajectories than its own.
    pub batches_in_all: usize,
    /// Every evaluation of every chain.
    pub evaluations: usize,
    /// `log Ẑ − log Z`; absent where there is no estimate.
    pub error: Option<f64>,
}

/// How the chains of a run have mixed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mixing {
    /// The larger split R̂ of the two coordinates, over all chains.
    pub r_hat: f64,
    /// The smaller effective size, as a share of the draws.
    pub efficiency: f64,
    /// Evaluations a draw after burn-in.
    pub evaluations: f64,
    /// Evaluations of a chain's burn-in.
    pub burn_in: f64,
}

/// What is kept of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// By estimator, number of chains and draws, in this order.
    pub readings: Vec<Reading>,
    /// How the chains have mixed.
    pub mixing: Mixing,
}

/// Runs the chains and reads them by all estimators. A bridge pays for the evaluations of its proposal, `n` at a time.
///
/// # Errors
/// As [`Sampler::chains`].
pub fn sample(spec: &Spec) -> Result<Sampled> {
    let (target, log_z) = (GpLikelihood::new()?, gp_evidence()?.log_z);
    let most = |of: &[usize]| of.iter().copied().max().unwrap_or(0);
    let length = Length { burn_in: spec.burn_in, draws: most(&spec.read_at) };
    let chains = spec.sampler.chains(&target, spec.seed, most(&spec.chains), length)?;
    let mut readings = Vec::new();
    for estimator in Estimator::ALL {
        for &n in &spec.chains {
            for &draws in &spec.read_at {
                let (estimate, extra) = estimator.estimate(&target, &chains[..n], draws, spec.seed);
                let evaluations = chains[..n].iter().map(|c| c.evaluations(draws)).sum::<usize>() + extra;
                readings.push(Reading {
                    estimator,
                    chains: n,
                    draws,
                    batches: draws + extra.div_ceil(n),
                    batches_in_all: evaluations.div_ceil(n),
                    evaluations,
                    error: estimate.map(|e| e - log_z).filter(|e| e.is_finite()),
                });
            }
        }
    }
    Ok(Sampled { readings, mixing: mixing(&chains) })
}

fn mixing(chains: &[Chain]) -> Mixing {
    let coordinate =
        |a: usize| -> Vec<Vec<f64>> { chains.iter().map(|c| c.draws.iter().map(|d| d.u[a]).collect()).collect() };
    let (x, y) = (coordinate(0), coordinate(1));
    let draws: usize = chains.iter().map(|c| c.draws.len()).sum();
    let burnt: usize = chains.iter().map(|c| c.evaluations(0)).sum();
    let spent: usize = chains.iter().map(|c| c.evaluations(c.draws.len())).sum();
    Mixing {
        r_hat: split_r_hat(&x).max(split_r_hat(&y)),
        efficiency: effective_size(&x).min(effective_size(&y)) / draws as f64,
        evaluations: (spent - burnt) as f64 / draws as f64,
        burn_in: burnt as f64 / chains.len() as f64,
    }
}
