//! Ways to an evidence, each read at the same numbers of evaluations.

mod classical;

pub use classical::{Classical, Spec, classical};

use std::ops::Range;

use anyhow::Result;
use batchquad::{Settings, belief::Model, choose::BatchRule, run::KernelChoice};
use serde::{Deserialize, Serialize};

use crate::{
    arms::{self, Arm},
    figures::Look,
    output::csv,
    plan::Plan,
    problems::{Choice, zoo::Animal},
    runs::{Task, Workshop},
    stats::quantile,
    trace::{Judged, Reading},
};

/// The numbers of evaluations in tables.
pub const CHECKPOINTS: [usize; 4] = [32, 64, 128, 256];

/// Runs of each method on each problem.
pub const RUNS: u64 = 20;

/// A method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// One that is not a quadrature by Gaussian process.
    Classical(Classical),
    /// A run of the library against the prior and with one lengthscale, as in the paper.
    Quadrature(Model, BatchRule),
    /// A run of the library as it is by default, WSABI-L against a measure that follows the posterior, with this kernel.
    Default(KernelChoice),
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Classical(Classical::Laplace),
        Self::Classical(Classical::IteratedLaplace),
        Self::Classical(Classical::MonteCarlo),
        Self::Classical(Classical::Sobol),
        Self::Quadrature(Model::Plain, BatchRule::KrigingBeliever),
        Self::Quadrature(Model::WsabiL, BatchRule::KrigingBeliever),
        Self::Quadrature(Model::WsabiL, BatchRule::LocalPenalisation),
        Self::Quadrature(Model::WsabiM, BatchRule::KrigingBeliever),
        Self::Default(KernelChoice::Ard),
        Self::Default(KernelChoice::Isotropic),
    ];

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Classical(Classical::Laplace) => "Laplace",
            Self::Classical(Classical::IteratedLaplace) => "iterated Laplace",
            Self::Classical(Classical::MonteCarlo) => "Monte Carlo",
            Self::Classical(Classical::Sobol) => "scrambled Sobol",
            Self::Quadrature(Model::Plain, _) => "plain BQ",
            Self::Quadrature(Model::WsabiL, BatchRule::LocalPenalisation) => "WSABI-L (penalised)",
            Self::Quadrature(Model::WsabiL, _) => "WSABI-L",
            Self::Quadrature(Model::WsabiM, _) => "WSABI-M",
            Self::Default(KernelChoice::Ard) => "batchquad",
            Self::Default(KernelChoice::Isotropic) => "batchquad (isotropic)",
        }
    }

    /// Its look in figures; kinds of one method share a colour.
    #[must_use]
    pub fn look(self) -> Look {
        match self {
            Self::Classical(Classical::Laplace) => Look::numbered(0),
            Self::Classical(Classical::IteratedLaplace) => Look::numbered(1),
            Self::Classical(Classical::MonteCarlo) => Look::numbered(2),
            Self::Classical(Classical::Sobol) => Look::numbered(3),
            Self::Quadrature(Model::Plain, _) => Look::numbered(4),
            Self::Quadrature(Model::WsabiL, BatchRule::LocalPenalisation) => Look { colour: 5, shape: 1 },
            Self::Quadrature(Model::WsabiL, _) => Look { colour: 5, shape: 0 },
            Self::Quadrature(Model::WsabiM, _) => Look { colour: 4, shape: 1 },
            Self::Default(KernelChoice::Ard) => Look { colour: 6, shape: 0 },
            Self::Default(KernelChoice::Isotropic) => Look { colour: 6, shape: 2 },
        }
    }

    /// The arm of a quadrature; none for the others.
    #[must_use]
    pub fn arm(self, problem: Choice, plan: &Plan) -> Option<Arm> {
        let max_evaluations = plan.budget(CHECKPOINTS[CHECKPOINTS.len() - 1]);
        let settings = match self {
            Self::Classical(_) => return None,
            Self::Quadrature(surrogate, batch_rule) => {
                let surrogate = surrogate.into();
                Settings { surrogate, batch_rule, max_evaluations, ..plan.as_in_the_paper().settings }
            }
            Self::Default(kernel) => {
                let surrogate = Model::WsabiL.into();
                Settings { surrogate, kernel, max_evaluations, ..plan.settings.clone() }
            }
        };
        Some(Arm { problem, variant: self.name().into(), settings })
    }
}

/// The problems of the paper.
pub const PAPER: [Choice; 4] = [Choice::InModel, Choice::InModelPositive, Choice::Mixture, Choice::GpEvidence];

/// The problems beyond it, with the evidence of a Gaussian process on the paper's own data among those on real data.
#[must_use]
pub fn beyond() -> Vec<Choice> {
    Animal::ALL.into_iter().map(Choice::Zoo).chain([Choice::GpEvidence]).collect()
}

/// An estimate after so many evaluations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Evaluations spent.
    pub evaluations: usize,
    /// The estimate against the truth.
    pub judged: Judged,
}

impl From<&Reading> for Sample {
    fn from(reading: &Reading) -> Self {
        Self { evaluations: reading.evaluations, judged: reading.own }
    }
}

/// A method on a problem: the samples of each run.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The problem.
    pub problem: Choice,
    /// The method.
    pub method: Method,
    /// One for each seed.
    pub runs: Vec<Vec<Sample>>,
}

impl Trial {
    /// |Δ log Z| of every run with so many evaluations: that of its last estimate within them; infinite before the first.
    #[must_use]
    pub fn errors_at(&self, evaluations: usize) -> Vec<f64> {
        let last = |run: &Vec<Sample>| run.iter().rev().find(|s| s.evaluations <= evaluations).copied();
        self.runs.iter().map(|run| last(run).map_or(f64::INFINITY, |s| s.judged.distance())).collect()
    }

    /// Their median.
    #[must_use]
    pub fn median_at(&self, evaluations: usize) -> f64 {
        quantile(&self.errors_at(evaluations), 0.5)
    }
}

/// Every method on every problem given.
///
/// # Errors
/// When a run fails or cannot be kept.
pub fn make(
    label: &str,
    problems: &[Choice],
    plan: &Plan,
    seeds: Range<u64>,
    workshop: &Workshop,
) -> Result<Vec<Trial>> {
    let pairs: Vec<(Choice, Method)> = problems.iter().flat_map(|&p| Method::ALL.map(|m| (p, m))).collect();
    let arms: Vec<Arm> = pairs.iter().filter_map(|(p, m)| m.arm(*p, plan)).collect();
    let mut groups = arms::make(label, &arms, seeds.clone(), workshop)?.into_iter();
    let budget = plan.budget(CHECKPOINTS[CHECKPOINTS.len() - 1]);
    let mut tasks = Vec::new();
    for &(problem, method) in &pairs {
        let Method::Classical(method) = method else { continue };
        for seed in seeds.clone() {
            let key = format!("{}-{}-s{seed:04}", problem.name(), arms::word(method));
            tasks.push(Task { key, spec: Spec { problem, seed, method, budget } });
        }
    }
    let mut samples = workshop.all(label, &tasks, classical)?.into_iter();
    let runs = seeds.count();
    let trial = |(problem, method)| {
        let runs = match method {
            Method::Classical(_) => samples.by_ref().take(runs).collect(),
            Method::Quadrature(..) | Method::Default(_) => {
                let traces = groups.next().map(|g| g.traces).unwrap_or_default();
                traces.iter().map(|t| t.iter().map(Sample::from).collect()).collect()
            }
        };
        Trial { problem, method, runs }
    };
    Ok(pairs.into_iter().map(trial).collect())
}

/// Every sample, one per line.
///
/// # Errors
/// None in practice: memory is written to.
pub fn to_csv(trials: &[Trial], first_seed: u64) -> Result<String> {
    let rows = trials.iter().flat_map(|trial| {
        let (problem, method) = (trial.problem.name(), trial.method.name());
        let runs = (first_seed..).zip(&trial.runs);
        runs.flat_map(move |(seed, run)| {
            run.iter().map(move |s| (problem, method, seed, s.evaluations, s.judged.error, s.judged.sd))
        })
    });
    csv(&["problem", "method", "seed", "evaluations", "error", "sd"], rows)
}
