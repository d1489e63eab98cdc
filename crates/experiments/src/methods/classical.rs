//! Laplace's approximation, its iteration, and averages over draws.

use anyhow::Result;
use batchquad::{
    belief::laplace::{IteratedLaplace, Iteration, Laplace, ModeSearch},
    choose::InitialDesign,
    prior::Distribution,
    run::initial_size,
};
use serde::{Deserialize, Serialize};

use super::Sample;
use crate::{
    grid::log_sum_exp,
    problems::{Choice, Problem},
    trace::Judged,
};

/// The methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Classical {
    /// The curvature at the mode.
    Laplace,
    /// A mixture of Gaussians grown where that leaves something over.
    IteratedLaplace,
    /// The mean over draws from the prior.
    MonteCarlo,
    /// The mean over Owen-scrambled Sobol points.
    Sobol,
}

/// Everything that determines a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The problem.
    pub problem: Choice,
    /// The seed of the problem and of the run.
    pub seed: u64,
    /// The method.
    pub method: Classical,
    /// Evaluations.
    pub budget: usize,
}

/// Estimates are read every so many evaluations.
const EVERY: usize = 8;

/// One run, read at multiples of eight evaluations.
///
/// # Errors
/// When the problem cannot be built. A method that fails has no estimate, which is a result.
pub fn classical(spec: &Spec) -> Result<Vec<Sample>> {
    let problem = spec.problem.build(spec.seed)?;
    let ends = || (EVERY..=spec.budget).step_by(EVERY);
    match spec.method {
        Classical::Laplace => laplace(&problem, spec),
        Classical::IteratedLaplace => {
            // With a larger budget it would have begun differently, so each budget is a run of its own.
            ends().map(|budget| iterated(&problem, spec.seed, budget)).collect()
        }
        Classical::MonteCarlo => {
            let draws = InitialDesign::Draws.latent(problem.prior.dim(), spec.budget, spec.seed)?;
            let logs = evaluate(&problem, draws.rows().map(<[f64]>::to_vec))?;
            Ok(ends().map(|n| average(&problem, &logs[..n], true)).collect())
        }
        Classical::Sobol => {
            let logs = evaluate(&problem, sobol(problem.prior.dim(), spec.budget, spec.seed)?)?;
            // One scrambling says nothing about its own error.
            Ok(ends().map(|n| average(&problem, &logs[..n], false)).collect())
        }
    }
}

fn evaluate(problem: &Problem, latent: impl IntoIterator<Item = Vec<f64>>) -> Result<Vec<f64>> {
    latent.into_iter().map(|u| Ok((problem.log_likelihood)(&problem.prior.to_theta(&u)?))).collect()
}

/// Owen-scrambled Sobol points carried to `N(0, I)`; each is the middle of its cell of width 2⁻²⁴, which keeps it off zero.
fn sobol(dim: usize, n: usize, seed: u64) -> Result<Vec<Vec<f64>>> {
    let unit = Distribution::uniform(0.0, 1.0)?;
    let coordinate = |i: usize, a: usize| -> Result<f64> {
        let cell = f64::from(sobol_burley::sample(i as u32, a as u32, seed as u32));
        Ok(unit.to_latent(cell + (-25.0_f64).exp2())?)
    };
    (0..n).map(|i| (0..dim).map(|a| coordinate(i, a)).collect()).collect()
}

/// `log (1/n) Σ ℓᵢ`, with the standard error of independent draws.
fn average(problem: &Problem, logs: &[f64], independent: bool) -> Sample {
    let n = logs.len() as f64;
    let first = log_sum_exp(logs.iter().copied()) - n.ln();
    let second = log_sum_exp(logs.iter().map(|l| 2.0 * l)) - n.ln();
    let relative = ((second - 2.0 * first).exp() - 1.0).max(0.0) / (n - 1.0);
    let finite = |v: f64| Some(v).filter(|v| v.is_finite());
    let sd = if independent { finite(relative.ln_1p().sqrt()) } else { None };
    Sample { evaluations: logs.len(), judged: Judged { error: finite(first - problem.log_z), sd } }
}

/// The latent points of the initial design that a quadrature would have, best first, and the log-joint.
fn design(problem: &Problem, seed: u64) -> Result<Vec<Vec<f64>>> {
    let dim = problem.prior.dim();
    let points = InitialDesign::Sobol.latent(dim, initial_size(dim), seed)?;
    let mut ranked: Vec<(f64, Vec<f64>)> = points.rows().map(|u| (log_joint(problem, u), u.to_vec())).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    Ok(ranked.into_iter().map(|(_, u)| u).collect())
}

/// `log ℓ(θ(u)) + log N(u; 0, I)`; zero density where the map to θ ends.
fn log_joint(problem: &Problem, u: &[f64]) -> f64 {
    let square: f64 = u.iter().map(|v| v * v).sum();
    let log_likelihood = problem.prior.to_theta(u).map_or(f64::NEG_INFINITY, |theta| (problem.log_likelihood)(&theta));
    log_likelihood - 0.5 * (square + u.len() as f64 * std::f64::consts::TAU.ln())
}

fn sample(problem: &Problem, evaluations: usize, log_z: Option<f64>, sd: Option<f64>) -> Sample {
    Sample { evaluations, judged: Judged { error: log_z.map(|z| z - problem.log_z), sd } }
}

/// From the best point of the design. There is one estimate, when the search is over.
fn laplace(problem: &Problem, spec: &Spec) -> Result<Vec<Sample>> {
    let starts = design(problem, spec.seed)?;
    let Some(left) = spec.budget.checked_sub(starts.len()) else { return Ok(Vec::new()) };
    let search = ModeSearch { max_evaluations: left, ..ModeSearch::default() };
    let found = Laplace::search(&starts[0], search, |u| log_joint(problem, u));
    Ok(found.iter().map(|l| sample(problem, starts.len() + l.evaluations, Some(l.log_z), None)).collect())
}

/// From the two best points of the design, or from the best one where the budget does not suffice for two, with an eighth of the budget
/// as support of each component: the usual support would take all of it.
fn iterated(problem: &Problem, seed: u64, budget: usize) -> Result<Sample> {
    let starts = design(problem, seed)?;
    let options = Iteration {
        search: ModeSearch { max_evaluations: budget.saturating_sub(starts.len()), ..ModeSearch::default() },
        support: Some((budget / 8).max(2 * problem.prior.dim())),
        seed,
        ..Iteration::default()
    };
    let from = |count: usize| IteratedLaplace::new(&starts[..count], options, |u| log_joint(problem, u)).ok();
    let found = from(2).or_else(|| from(1));
    Ok(sample(problem, budget, found.as_ref().map(|f| f.log_z), found.as_ref().map(|f| f.misfit)))
}
