//! The evidence of a Gaussian process on Branin data: batches of Bayesian quadrature beside parallel Markov chains.
//!
//! A batch is one evaluation by each of `n` machines. Two accounts are kept of what chains cost: the paper's, in which burn-in is free
//! and a draw is one batch whatever its trajectory took, and one in which every evaluation counts. A bridge pays for its proposal's
//! evaluations in both.

use std::fmt::Write;

use anyhow::Result;
use batchquad::{Settings, select::BatchRule};
use serde::{Deserialize, Serialize};

use crate::{
    branin::{Evaluation, committed, log_marginal, log_marginal_gradient, standardise},
    mcmc::{
        Chain, Draw, Length, Sampler, Target, address,
        diagnose::{effective_size, split_r_hat},
        evidence::{Gaussian, bridge, harmonic_mean, propose, reciprocal},
    },
    problems::{Choice, EVIDENCE_PRIOR, gp_evidence},
    runs::{Task, Workshop, write},
    stats::{Quartiles, mean},
    trace::{self, trace},
};

/// The likelihood of (log lengthscale, log variance) in latent coordinates, with its exact gradient.
#[derive(Debug, Clone)]
pub struct GpLikelihood {
    data: Vec<Evaluation>,
    targets: Vec<f64>,
}

impl GpLikelihood {
    /// On the committed data.
    ///
    /// # Errors
    /// When these cannot be read.
    pub fn new() -> Result<Self> {
        let data = committed()?;
        Ok(Self { targets: standardise(&data), data })
    }

    fn theta(u: &[f64]) -> [f64; 2] {
        [0, 1].map(|a| EVIDENCE_PRIOR[a].0 + EVIDENCE_PRIOR[a].1 * u[a])
    }
}

impl Target for GpLikelihood {
    fn dim(&self) -> usize {
        2
    }

    fn log_likelihood(&self, u: &[f64]) -> f64 {
        let [lengthscale, variance] = Self::theta(u);
        log_marginal(&self.data, &self.targets, lengthscale, variance)
    }

    fn log_likelihood_gradient(&self, u: &[f64]) -> Option<(f64, Vec<f64>)> {
        let [lengthscale, variance] = Self::theta(u);
        let (value, slope) = log_marginal_gradient(&self.data, &self.targets, lengthscale, variance)?;
        Some((value, (0..2).map(|a| slope[a] * EVIDENCE_PRIOR[a].1).collect()))
    }
}

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

    /// What it is called in tables and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::HarmonicMean => "harmonic-mean",
            Self::Reciprocal => "reciprocal",
            Self::Bridge => "bridge",
            Self::BridgeFromBurnIn => "bridge-from-burn-in",
        }
    }

    /// `log Ẑ`, none where there are too few draws for it, and the evaluations it took beyond the chains'.
    fn estimate(self, target: &impl Target, chains: &[Chain], draws: usize, seed: u64) -> (Option<f64>, usize) {
        let span = |from: usize, to: usize| chains.iter().flat_map(move |c| &c.draws[from..to]).collect::<Vec<&Draw>>();
        let half = draws / 2;
        let bridged = |fitted: &[&Draw], rest: &[&Draw]| {
            let Some(proposal) = Gaussian::fit(fitted) else { return (None, 0) };
            let mut stream = address(seed, PROPOSALS + self as u64, (chains.len() << 20) | draws);
            let proposed = propose(target, &proposal, &mut stream, rest.len());
            (bridge(&proposal, rest, &proposed), proposed.len())
        };
        match self {
            Self::HarmonicMean => (harmonic_mean(&span(0, draws)), 0),
            Self::Reciprocal => {
                let proposal = Gaussian::fit(&span(0, half));
                (proposal.and_then(|q| reciprocal(&q, &span(half, draws))), 0)
            }
            Self::Bridge => bridged(&span(0, half), &span(half, draws)),
            Self::BridgeFromBurnIn => {
                let settled = |c: &'_ Chain| c.burn_in.len() / 2;
                let fitted: Vec<&Draw> = chains.iter().flat_map(|c| &c.burn_in[settled(c)..]).collect();
                bridged(&fitted, &span(0, draws))
            }
        }
    }
}

/// What is run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Runs of each kind.
    pub runs: u64,
    /// The seed of the first run; the others follow.
    pub seed: u64,
    /// The batch sizes, which are also the numbers of chains.
    pub batches: Vec<usize>,
    /// Evaluations of a run of Bayesian quadrature.
    pub budget: usize,
    /// Draws of a chain during which it is tuned.
    pub burn_in: usize,
    /// Every other choice of Bayesian quadrature.
    pub settings: Settings,
}

/// The rules that are compared.
pub const RULES: [(BatchRule, &str); 2] =
    [(BatchRule::KrigingBeliever, "kriging-believer"), (BatchRule::LocalPenalisation, "local-penalisation")];

/// The draws of a chain after which evidences are read.
pub const READ_AT: [usize; 14] = [2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];

/// Everything that determines a run of chains; the smaller numbers of chains are the first of the largest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChainSpec {
    /// The sampler.
    pub sampler: Sampler,
    /// The seed.
    pub seed: u64,
    /// The numbers of chains.
    pub batches: Vec<usize>,
    /// The draws of each.
    pub length: Length,
    /// The draws after which evidences are read.
    pub read_at: Vec<usize>,
}

/// An evidence and what it cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// A batch rule or a sampler.
    pub method: String,
    /// How the evidence was made.
    pub estimator: String,
    /// Batch size, or number of chains.
    pub batch: usize,
    /// The draws of each chain after burn-in; absent for Bayesian quadrature.
    pub draws: Option<usize>,
    /// Batches by the paper's account.
    pub batches: usize,
    /// Batches when every evaluation counts.
    pub batches_in_all: usize,
    /// Every evaluation.
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

/// A run of chains, read at all numbers of chains and draws by all estimators.
///
/// # Errors
/// As [`Sampler::chains`].
pub fn sample(spec: &ChainSpec) -> Result<(Vec<Reading>, Mixing)> {
    let (target, log_z) = (GpLikelihood::new()?, gp_evidence()?.log_z);
    let most = spec.batches.iter().copied().max().unwrap_or(0);
    let chains = spec.sampler.chains(&target, spec.seed, most, spec.length)?;
    let mut readings = Vec::new();
    for estimator in Estimator::ALL {
        for &batch in &spec.batches {
            for &draws in &spec.read_at {
                let chains = &chains[..batch];
                let (estimate, extra) = estimator.estimate(&target, chains, draws, spec.seed);
                let slowest = chains.iter().map(|c| c.evaluations(draws)).max().unwrap_or(0);
                let all: usize = chains.iter().map(|c| c.evaluations(draws)).sum();
                readings.push(Reading {
                    method: spec.sampler.name().into(),
                    estimator: estimator.name().into(),
                    batch,
                    draws: Some(draws),
                    batches: draws + extra.div_ceil(batch),
                    batches_in_all: slowest + extra.div_ceil(batch),
                    evaluations: all + extra,
                    error: estimate.map(|e| e - log_z).filter(|e| e.is_finite()),
                });
            }
        }
    }
    Ok((readings, mixing(&chains)))
}

fn mixing(chains: &[Chain]) -> Mixing {
    let coordinate =
        |a: usize| -> Vec<Vec<f64>> { chains.iter().map(|c| c.draws.iter().map(|d| d.u[a]).collect()).collect() };
    let (x, y) = (coordinate(0), coordinate(1));
    let draws = chains.iter().map(|c| c.draws.len()).sum::<usize>() as f64;
    let burnt: usize = chains.iter().map(|c| c.evaluations(0)).sum();
    let made: usize = chains.iter().map(|c| c.evaluations(c.draws.len())).sum();
    Mixing {
        r_hat: split_r_hat(&x).max(split_r_hat(&y)),
        efficiency: effective_size(&x).min(effective_size(&y)) / draws,
        evaluations: (made - burnt) as f64 / draws,
        burn_in: burnt as f64 / chains.len() as f64,
    }
}

/// A run of Bayesian quadrature. The initial design keeps `n` machines busy for as many batches as it fills.
///
/// # Errors
/// As [`trace()`].
pub fn integrate(spec: &trace::Spec, rule: &str) -> Result<Vec<Reading>> {
    let batch = spec.settings.batch;
    let readings = trace(spec)?;
    let initial = readings.first().map_or(0, |r| r.evaluations.div_ceil(batch));
    let reading = |r: &trace::Reading| {
        let batches = initial + r.batches - 1;
        Reading {
            method: rule.into(),
            estimator: "wsabi-l".into(),
            batch,
            draws: None,
            batches,
            batches_in_all: batches,
            evaluations: r.evaluations,
            error: r.own.error,
        }
    };
    Ok(readings.iter().map(reading).collect())
}
