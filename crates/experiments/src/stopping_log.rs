//! When the default belief stops at a target, beside when its error was small for good.

use anyhow::{Context, Result};
use batchquad::{
    Engine, Settings,
    journal::{Event, Told},
    run::{Level, diagnose, target_met},
    types::Outcome,
};
use serde::{Deserialize, Serialize};

use crate::{
    output::{Output, csv},
    plan::Plan,
    problems::{Choice, world::World, zoo::Animal},
    runs::{Task, Workshop},
    stats::quantile,
    table::{Table, number, percent, scientific},
    trace::{Spec, for_good},
};

/// Runs of each problem.
pub const RUNS: u64 = 6;

/// The evaluations that a run may have.
const BUDGET: usize = 256;

/// The target for the standard deviation of log Z, and the error that is to stay small.
const TARGET: f64 = 0.05;

/// An error at the stop that is still all right.
const TOLERABLE: f64 = 0.1;

/// All problems without noise.
fn problems() -> Vec<Choice> {
    World::ALL.iter().copied().map(Choice::World).chain(Animal::ALL.map(Choice::Zoo)).collect()
}

/// What was believed after a batch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Evaluations behind it.
    pub evaluations: usize,
    /// `log Ẑ − log Z`; absent where there was no estimate.
    pub error: Option<f64>,
    /// The standard deviation that was stated.
    pub sd: Option<f64>,
    /// Whether the rule would have stopped here: the target met twice in a row, and a number that is not to be distrusted.
    pub stops: bool,
}

impl Reading {
    fn distance(&self) -> f64 {
        self.error.map_or(f64::INFINITY, f64::abs)
    }
}

/// Runs to the end of the budget whatever the target, and reads after every batch. Past the first stop nothing is diagnosed any more.
fn readings(spec: &Spec) -> Result<Vec<Reading>> {
    let problem = spec.problem.build(spec.seed).with_context(|| format!("building {:?}", spec.problem))?;
    let mut engine = Engine::new(problem.prior.clone(), spec.settings.clone(), spec.seed)?;
    let mut found: Vec<Reading> = Vec::new();
    let mut stopped = false;
    while engine.left() > 0 {
        let asked = engine.ask(engine.next_batch().min(engine.left()))?;
        let jobs = asked.jobs.clone();
        engine.apply(&Event::Asked(asked))?;
        for job in jobs {
            let outcome = Outcome::from_log_likelihood(&job.theta, (problem.log_likelihood)(&job.theta));
            engine.apply(&Event::Told(Told::new(job.id, outcome)))?;
        }
        let Ok(current) = engine.current() else { continue };
        let finite = |v: f64| Some(v).filter(|v| v.is_finite());
        let (error, sd) = (finite(current.estimate.log_z - problem.log_z), finite(current.estimate.log_z_sd));
        let evaluations = engine.ledger().entries().len();
        found.push(Reading { evaluations, error, sd, stops: false });
        // The rule looks at what was believed when batches were chosen, so not at the initial design.
        let met = evaluations >= engine.initial_size() && target_met(TARGET, found.iter().map(|r| r.sd));
        if met && !stopped && diagnose(&engine)?.verdict < Level::DoNotTrust {
            stopped = true;
            if let Some(last) = found.last_mut() {
                last.stops = true;
            }
        }
    }
    Ok(found)
}

/// What became of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ended {
    /// The evaluations at the stop; infinite where it did not stop.
    pub stop: f64,
    /// `|log Ẑ − log Z|` at the stop.
    pub error: Option<f64>,
    /// The evaluations after which the error stays below the target to the end of the budget; infinite where it does not.
    pub good: f64,
}

impl Ended {
    /// Of a run that was read after every batch.
    #[must_use]
    pub fn of(readings: &[Reading]) -> Self {
        let at = readings.iter().find(|r| r.stops);
        let good = for_good(readings, |r| r.distance() > TARGET);
        let evaluations = |r: Option<&Reading>| r.map_or(f64::INFINITY, |r| r.evaluations as f64);
        Self { stop: evaluations(at), error: at.map(Reading::distance), good: evaluations(good) }
    }

    /// How many times the evaluations that were needed it took; none where the error did not become small in the budget.
    fn ratio(&self) -> Option<f64> {
        self.good.is_finite().then(|| self.stop / self.good)
    }
}

/// What became of the runs on a problem, or on all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The problem.
    pub problem: String,
    /// How many runs.
    pub runs: usize,
    /// How many stopped within the budget.
    pub stopped: usize,
    /// How many had an error that stayed small within the budget.
    pub good: usize,
    /// The median of the evaluations at the stop.
    pub stop: f64,
    /// The median of the evaluations after which the error stayed small.
    pub needed: f64,
    /// The median of the ratios of the two, over runs whose error became small; a run that did not stop counts as infinite.
    pub ratio: f64,
    /// The share of the stopped runs whose error was below 0.1 then.
    pub tolerable: f64,
    /// The largest error at a stop.
    pub worst: f64,
}

impl Row {
    /// Of some runs.
    #[must_use]
    pub fn of(problem: &str, ends: &[Ended]) -> Self {
        let median =
            |of: &dyn Fn(&Ended) -> Option<f64>| quantile(&ends.iter().filter_map(of).collect::<Vec<_>>(), 0.5);
        let errors: Vec<f64> = ends.iter().filter_map(|e| e.error).collect();
        let tolerable = errors.iter().filter(|e| **e < TOLERABLE).count();
        Self {
            problem: problem.into(),
            runs: ends.len(),
            stopped: errors.len(),
            good: ends.iter().filter(|e| e.good.is_finite()).count(),
            stop: median(&|e| Some(e.stop)),
            needed: median(&|e| Some(e.good)),
            ratio: median(&Ended::ratio),
            tolerable: tolerable as f64 / errors.len() as f64,
            worst: errors.iter().copied().fold(f64::NAN, f64::max),
        }
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "problem",
        "runs",
        "stopped",
        "evaluations",
        "below 0.05 for good",
        "after",
        "ratio",
        "error below 0.1 at the stop",
        "worst",
    ]);
    for r in rows {
        let finite = |v: f64, digits: usize| number(Some(v).filter(|v| v.is_finite()), digits);
        table.push([
            r.problem.clone(),
            r.runs.to_string(),
            r.stopped.to_string(),
            finite(r.stop, 0),
            r.good.to_string(),
            finite(r.needed, 0),
            finite(r.ratio, 2),
            if r.stopped > 0 { percent(r.tolerable) } else { "–".into() },
            if r.stopped > 0 { scientific(r.worst) } else { "–".into() },
        ]);
    }
    table
}

/// Makes all runs, or those of some problems, and writes `runs.csv`, `summary.json` and a table.
///
/// # Errors
/// As the runs, or when the results cannot be written.
pub fn run(plan: &Plan, workshop: &Workshop, only: &[String]) -> Result<String> {
    let mut problems = problems();
    if let Some(unknown) = only.iter().find(|name| problems.iter().all(|p| p.name() != name.as_str())) {
        let names: Vec<&str> = problems.iter().map(|p| p.name()).collect();
        anyhow::bail!("--only {unknown}: expected one of {}", names.join(", "));
    }
    problems.retain(|p| only.is_empty() || only.iter().any(|name| name == p.name()));
    let seeds = plan.seeds(RUNS);
    let runs = seeds.end - seeds.start;
    let mut tasks = Vec::new();
    for &problem in &problems {
        for seed in seeds.clone() {
            let settings = Settings { max_evaluations: plan.budget(BUDGET), ..plan.settings.clone() };
            let key = format!("stopping-log-{}-{seed}", problem.name());
            tasks.push(Task { key, spec: Spec { problem, seed, settings } });
        }
    }
    let all = workshop.all("stopping-log", &tasks, readings)?;
    let ends: Vec<Ended> = all.iter().map(|readings| Ended::of(readings)).collect();
    let per_problem = usize::try_from(runs)?;
    let mut rows: Vec<Row> =
        problems.iter().zip(ends.chunks(per_problem)).map(|(problem, ends)| Row::of(problem.name(), ends)).collect();
    rows.push(Row::of("all", &ends));
    let mut output = Output::new(workshop, "stopping-log")?;
    let lines = tasks.iter().zip(&ends).map(|(t, e)| (t.spec.problem.name(), t.spec.seed, e.stop, e.error, e.good));
    output.csv("runs", &csv(&["problem", "seed", "stop", "error", "good"], lines)?)?;
    output.summary(plan, runs, &rows)?;
    output.table("stops", "Stopping at target_sd = 0.05 beside the error that stays below 0.05", &table(&rows))?;
    Ok(output.said())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(evaluations: usize, error: f64, stops: bool) -> Reading {
        Reading { evaluations, error: Some(error), sd: Some(0.1), stops }
    }

    #[test]
    fn stops_are_set_against_the_error_that_stays_small() {
        // Small by luck at 16, for good from 32 on; stopped at 48.
        let run = [
            reading(8, 1.0, false),
            reading(16, 0.01, false),
            reading(24, -0.2, false),
            reading(32, 0.04, false),
            reading(40, -0.03, false),
            reading(48, 0.02, true),
        ];
        let late = Ended::of(&run);
        assert_eq!((late.stop, late.error, late.good), (48.0, Some(0.02), 32.0));
        assert_eq!(late.ratio(), Some(1.5));
        let never = Ended::of(&[reading(8, 0.3, true), reading(16, 0.2, false)]);
        assert_eq!((never.stop, never.error, never.good, never.ratio()), (8.0, Some(0.3), f64::INFINITY, None));
        let open = Ended::of(&[reading(8, 0.01, false)]);
        assert_eq!((open.stop, open.error, open.good), (f64::INFINITY, None, 8.0));
        let row = Row::of("all", &[late, never, open]);
        assert_eq!((row.runs, row.stopped, row.good, row.tolerable, row.worst), (3, 2, 2, 0.5, 0.3));
    }
}
