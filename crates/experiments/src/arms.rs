//! Runs of the library that differ in nothing but their seed, and many of these.

use std::ops::Range;

use anyhow::Result;
use batchquad::{Settings, choose::BatchRule};

use crate::{
    output::csv,
    problems::Choice,
    runs::{Task, Workshop},
    trace::{Judged, Reading, Spec, trace},
};

/// What is repeated with many seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Arm {
    /// The problem.
    pub problem: Choice,
    /// What is special about it, for tables; often nothing.
    pub variant: String,
    /// All choices, the budget among them.
    pub settings: Settings,
}

impl Arm {
    /// The name of the batch rule, as settings have it.
    #[must_use]
    pub fn rule(&self) -> String {
        word(self.settings.batch_rule)
    }

    /// The run with one seed.
    #[must_use]
    pub fn spec(&self, seed: u64) -> Spec {
        let mut settings = self.settings.clone();
        if settings.batch == 1 {
            // A rule of the square root's belief means that belief, also where the rule makes no difference.
            if let Some(model) = settings.model(1) {
                settings.surrogate = model.into();
            }
            // Single points have nobody to be kept away from: all rules are one, and so are their runs.
            settings.batch_rule = BatchRule::default();
            settings.penalisation = Default::default();
        }
        Spec { problem: self.problem, seed, settings }
    }

    fn task(&self, seed: u64) -> Task<Spec> {
        let spec = self.spec(seed);
        let (rule, batch) = (word(spec.settings.batch_rule), spec.settings.batch);
        Task { key: format!("{}-{rule}-b{batch:02}-s{seed:04}", self.problem.name()), spec }
    }
}

/// The word for a choice that serialises as one.
#[must_use]
pub fn word(choice: impl serde::Serialize) -> String {
    serde_json::to_value(choice).ok().and_then(|v| v.as_str().map(String::from)).unwrap_or_default()
}

/// An arm with all its runs, one for each seed.
#[derive(Debug, Clone)]
pub struct Group {
    /// What was repeated.
    pub arm: Arm,
    /// The readings of each run.
    pub traces: Vec<Vec<Reading>>,
}

/// Makes all runs of all arms.
///
/// # Errors
/// When a run fails or cannot be kept.
pub fn make(label: &str, arms: &[Arm], seeds: Range<u64>, workshop: &Workshop) -> Result<Vec<Group>> {
    let tasks: Vec<Task<Spec>> = arms.iter().flat_map(|arm| seeds.clone().map(|seed| arm.task(seed))).collect();
    let mut traces = workshop.all(label, &tasks, trace)?.into_iter();
    let runs = seeds.count();
    Ok(arms.iter().map(|arm| Group { arm: arm.clone(), traces: traces.by_ref().take(runs).collect() }).collect())
}

/// Every reading of every run, one per line.
///
/// # Errors
/// None in practice: memory is written to.
pub fn to_csv(groups: &[Group], first_seed: u64) -> Result<String> {
    let head = [
        "problem",
        "variant",
        "rule",
        "batch",
        "seed",
        "batches",
        "evaluations",
        "initial",
        "error",
        "sd",
        "sd_model",
        "error_m",
        "sd_m",
        "sigma2",
        "lengthscale",
        "fallbacks",
    ];
    let rows = groups.iter().flat_map(|Group { arm, traces }| {
        let row = move |seed: u64, r: &Reading| {
            let moments = r.moments.unwrap_or(Judged { error: None, sd: None });
            let of = (arm.problem.name(), arm.variant.clone(), arm.rule(), arm.settings.batch, seed);
            let judged = (r.own.error, r.own.sd, r.model.sd, moments.error, moments.sd);
            (of, (r.batches, r.evaluations, r.initial), judged, (r.sigma2, r.lengthscale, r.fallbacks))
        };
        let runs = (first_seed..).zip(traces);
        runs.flat_map(move |(seed, readings)| readings.iter().map(move |r| row(seed, r)))
    });
    csv(&head, rows)
}
