//! The evidence of a Gaussian process on Branin data: batches of Bayesian quadrature beside parallel Markov chains.
//!
//! A batch is one evaluation by each of `n` machines. Two accounts are kept of what chains cost: the paper's, in which burn-in is free
//! and a draw is one batch whatever its trajectory took, and one in which every evaluation counts. A bridge pays for its proposal's
//! evaluations in both.

mod pictures;
mod readings;

pub use readings::{Estimator, Mixing, Reading, Sampled, Spec, sample};

use anyhow::Result;
use serde::Serialize;

use crate::{
    arms::{self, Arm},
    branin::{Evaluation, committed, log_marginal, log_marginal_gradient, standardise},
    convergence, figures,
    in_model::RULES,
    mcmc::{Sampler, Target},
    output::{Output, csv},
    plan::Plan,
    problems::{Choice, EVIDENCE_PRIOR},
    runs::{Task, Workshop},
    stats::{Spread, quantile},
    table::{Table, number},
    trace::for_good,
};

/// The runs of the paper.
pub const RUNS: u64 = 50;

/// Batch sizes and numbers of chains.
pub const BATCHES: [usize; 4] = [1, 4, 8, 16];

/// Draws while burning in: the paper's, and a tenth of it, which is kinder to chains where everything counts.
pub const BURN_IN: [usize; 2] = [500, 50];

/// The draws of a chain after which evidences are read.
pub const READ_AT: [usize; 14] = [2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];

/// Errors of log Z whose first lasting attainment is reported.
const TOLERANCES: [f64; 2] = [0.1, 0.02];

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

/// The runs of the library.
#[must_use]
pub fn arms(plan: &Plan) -> Vec<Arm> {
    convergence::grid(Choice::GpEvidence, "", &RULES, &BATCHES, &plan.as_in_the_paper())
}

/// A method, in whose curve runs are averaged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// A batch rule or a sampler.
    pub method: String,
    /// How the evidence was made of draws; absent for Bayesian quadrature.
    pub estimator: Option<Estimator>,
    /// Draws while burning in; absent for Bayesian quadrature.
    pub burn_in: Option<usize>,
    /// Batch size, or number of chains.
    pub batch: usize,
    /// The errors on the way.
    pub curve: Vec<Point>,
    /// What it took for the mean error to come below each tolerance for good.
    pub needed: Vec<Needed>,
}

/// Errors over all runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Batches by the paper's account.
    pub batches: f64,
    /// Batches when every evaluation counts; the median over runs, as trajectories differ.
    pub batches_in_all: f64,
    /// Every evaluation; the median over runs.
    pub evaluations: f64,
    /// `|log Ẑ − log Z|`.
    pub log_error: Spread,
}

/// The first point from which on the mean error stays below a tolerance; absent if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Needed {
    /// In log Z.
    pub tolerance: f64,
    /// Batches by the paper's account.
    pub batches: Option<f64>,
    /// Batches when every evaluation counts.
    pub batches_in_all: Option<f64>,
    /// Every evaluation.
    pub evaluations: Option<f64>,
}

impl Row {
    fn new(method: &str, of: Option<(Estimator, usize)>, batch: usize, curve: Vec<Point>) -> Self {
        let needed = TOLERANCES.map(|tolerance| needed(&curve, tolerance)).to_vec();
        let (estimator, burn_in) = (of.map(|o| o.0), of.map(|o| o.1));
        Self { method: method.into(), estimator, burn_in, batch, curve, needed }
    }

    /// The method and, of chains, how the evidence was made.
    #[must_use]
    pub fn name(&self) -> String {
        match (self.estimator, self.burn_in) {
            (Some(Estimator::BridgeFromBurnIn), Some(b)) => format!("{}, bridge fitted to burn-in of {b}", self.method),
            (Some(estimator), Some(b)) => format!("{}, {}, burn-in {b}", self.method, estimator.name()),
            _ => self.method.clone(),
        }
    }
}

fn needed(curve: &[Point], tolerance: f64) -> Needed {
    let at = for_good(curve, |p| p.log_error.mean.is_none_or(|m| m > tolerance));
    Needed {
        tolerance,
        batches: at.map(|p| p.batches),
        batches_in_all: at.map(|p| p.batches_in_all),
        evaluations: at.map(|p| p.evaluations),
    }
}

/// Runs of a sampler with one burn-in, one for each seed.
struct Chains {
    sampler: Sampler,
    burn_in: usize,
    runs: Vec<Sampled>,
}

fn chains(plan: &Plan, workshop: &Workshop) -> Result<Vec<Chains>> {
    let kinds: Vec<(Sampler, usize)> = Sampler::ALL.into_iter().flat_map(|s| BURN_IN.map(|b| (s, b))).collect();
    let task = |(sampler, burn_in): (Sampler, usize), seed: u64| Task {
        key: format!("gp-evidence-{}-burn-in-{burn_in}-s{seed:04}", arms::word(sampler)),
        spec: Spec { sampler, seed, chains: BATCHES.to_vec(), burn_in, read_at: READ_AT.to_vec() },
    };
    let tasks: Vec<Task<Spec>> = kinds.iter().flat_map(|&k| plan.seeds(RUNS).map(move |s| task(k, s))).collect();
    let mut all = workshop.all("model-evidence: chains", &tasks, sample)?.into_iter();
    let runs = plan.seeds(RUNS).count();
    let kind = |(sampler, burn_in)| Chains { sampler, burn_in, runs: all.by_ref().take(runs).collect() };
    Ok(kinds.into_iter().map(kind).collect())
}

/// One row for each estimator and number of chains.
fn chain_rows(chains: &Chains) -> Vec<Row> {
    let row = |estimator: Estimator, n: usize| {
        let point = |draws: usize| {
            let there: Vec<&Reading> = chains
                .runs
                .iter()
                .flat_map(|r| &r.readings)
                .filter(|r| r.estimator == estimator && r.chains == n && r.draws == draws)
                .collect();
            let median =
                |of: fn(&Reading) -> usize| quantile(&there.iter().map(|r| of(r) as f64).collect::<Vec<_>>(), 0.5);
            let errors: Vec<f64> = there.iter().map(|r| r.error.map_or(f64::INFINITY, f64::abs)).collect();
            Point {
                batches: median(|r| r.batches),
                batches_in_all: median(|r| r.batches_in_all),
                evaluations: median(|r| r.evaluations),
                log_error: Spread::of(&errors),
            }
        };
        let curve = READ_AT.map(point).to_vec();
        Row::new(chains.sampler.name(), Some((estimator, chains.burn_in)), n, curve)
    };
    Estimator::ALL.into_iter().flat_map(|e| BATCHES.map(|n| row(e, n))).collect()
}

/// What the rules are called in tables and figures.
const RULE_NAMES: [&str; 2] = ["Kriging Believer", "local penalisation"];

fn quadrature_row(row: &convergence::Row) -> Row {
    let name =
        RULES.iter().zip(RULE_NAMES).find(|(rule, _)| arms::word(rule) == row.rule).map_or(&row.rule[..], |n| n.1);
    let point = |p: &convergence::Point| Point {
        batches: p.batches as f64,
        batches_in_all: p.batches as f64,
        evaluations: p.evaluations as f64,
        log_error: p.log_error,
    };
    Row::new(name, None, row.batch, row.curve.iter().map(point).collect())
}

fn to_csv(all: &[Chains], first_seed: u64) -> Result<String> {
    let head = [
        "sampler",
        "burn_in",
        "estimator",
        "chains",
        "seed",
        "draws",
        "batches",
        "batches_in_all",
        "evaluations",
        "error",
    ];
    let rows = all.iter().flat_map(|chains| {
        let row = move |seed: u64, r: &Reading| {
            let how = (arms::word(chains.sampler), chains.burn_in, arms::word(r.estimator), r.chains, seed);
            (how, (r.draws, r.batches, r.batches_in_all, r.evaluations, r.error))
        };
        let runs = (first_seed..).zip(&chains.runs);
        runs.flat_map(move |(seed, run)| run.readings.iter().map(move |r| row(seed, r)))
    });
    csv(&head, rows)
}

/// What every method needs to come below a tolerance, one column for each batch size and account.
fn needed_table(rows: &[Row], tolerance: usize) -> Table {
    let heads = BATCHES.map(|n| format!("n = {n}")).into_iter().chain(BATCHES.map(|n| format!("n = {n}, all")));
    let mut table = Table::new(std::iter::once("method".to_string()).chain(heads));
    let mut names: Vec<String> = rows.iter().map(Row::name).collect();
    names.dedup();
    for name in names {
        let of = |n: usize| rows.iter().find(|r| r.name() == name && r.batch == n).map(|r| r.needed[tolerance]);
        let paper = BATCHES.map(|n| number(of(n).and_then(|x| x.batches), 0));
        let counted = BATCHES.map(|n| number(of(n).and_then(|x| x.batches_in_all), 0));
        table.push(std::iter::once(name.clone()).chain(paper).chain(counted));
    }
    table
}

/// How the chains of a sampler have mixed, over all runs.
#[derive(Debug, Clone, Serialize)]
struct Mixed {
    sampler: Sampler,
    burn_in: usize,
    r_hat: Spread,
    efficiency: Spread,
    evaluations_a_draw: Spread,
    burn_in_evaluations: Spread,
}

fn mixed(chains: &Chains) -> Mixed {
    let of = |f: fn(&Mixing) -> f64| Spread::of(&chains.runs.iter().map(|r| f(&r.mixing)).collect::<Vec<_>>());
    Mixed {
        sampler: chains.sampler,
        burn_in: chains.burn_in,
        r_hat: of(|m| m.r_hat),
        efficiency: of(|m| m.efficiency),
        evaluations_a_draw: of(|m| m.evaluations),
        burn_in_evaluations: of(|m| m.burn_in),
    }
}

fn mixing_table(mixed: &[Mixed]) -> Table {
    let mut table = Table::new([
        "sampler",
        "burn-in",
        "R̂, median",
        "R̂, 90 %",
        "effective draws a draw",
        "evaluations a draw",
        "evaluations of a burn-in",
    ]);
    for m in mixed {
        table.push([
            m.sampler.name().into(),
            m.burn_in.to_string(),
            number(m.r_hat.median, 3),
            number(m.r_hat.p90, 3),
            number(m.efficiency.median, 2),
            number(m.evaluations_a_draw.median, 1),
            number(m.burn_in_evaluations.median, 0),
        ]);
    }
    table
}

/// Makes all runs and writes `readings.csv`, `chains.csv`, `summary.json`, tables and figures.
///
/// # Errors
/// When a run fails or a file cannot be written.
pub fn run(plan: &Plan, workshop: &Workshop) -> Result<String> {
    let seeds = plan.seeds(RUNS);
    let groups = arms::make("model-evidence", &arms(plan), seeds.clone(), workshop)?;
    let chains = chains(plan, workshop)?;
    let efficiency = convergence::rows(&groups);
    let rows: Vec<Row> = efficiency.iter().map(quadrature_row).chain(chains.iter().flat_map(chain_rows)).collect();
    let mixed: Vec<Mixed> = chains.iter().map(mixed).collect();
    let mut output = Output::new(workshop, "model-evidence")?;
    output.csv("readings", &arms::to_csv(&groups, seeds.start)?)?;
    output.csv("chains", &to_csv(&chains, seeds.start)?)?;
    let results = serde_json::json!({
        "methods": rows,
        "mixing": mixed,
        "arms": efficiency,
        "batch_efficiency": convergence::efficiencies(&efficiency),
    });
    output.summary(plan, seeds.end - seeds.start, &results)?;
    output.table(
        "table",
        "Evaluations to within 2 % of Z for good, by batch size and rule",
        &convergence::table(&efficiency),
    )?;
    for (k, tolerance) in TOLERANCES.into_iter().enumerate() {
        let title = format!(
            "Batches until the mean of |log Ẑ − log Z| stays below {tolerance}; burn-in and trajectories free, or all counted"
        );
        output.table(&format!("needed-{tolerance}"), &title, &needed_table(&rows, k))?;
    }
    output.table("mixing", "How the chains have mixed", &mixing_table(&mixed))?;
    for (name, figure) in figures::convergence(&efficiency) {
        output.figure(&name, &figure)?;
    }
    output.figure("chains-paper", &pictures::paper(&rows))?;
    output.figure("chains-counted", &pictures::counted(&rows))?;
    Ok(output.said())
}
