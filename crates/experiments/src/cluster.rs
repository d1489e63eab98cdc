//! Evaluations and wall time to an error of 0.02 on a simulated cluster, by the number of workers: what the default belief makes of many machines.

use anyhow::{Context, Result};
use batchquad::{
    Engine, Error, Settings,
    choose::BatchRule,
    journal::{Event, Told},
    numeric::{Purpose, Stream},
    run::Schedule,
    types::{Job, Outcome},
};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::{
    arms::word,
    calibration,
    convergence::TOLERANCE,
    output::{Output, csv},
    plan::Plan,
    problems::{Choice, zoo::Animal},
    runs::{Task, Workshop},
    stats::{Spread, quantile},
    table::{Table, number},
    trace::for_good,
};

/// The usual problems, with the evaluations that each is given.
pub const PROBLEMS: [(Choice, usize); 4] = [
    (Choice::Mixture, 256),
    (Choice::GpEvidence, 128),
    (Choice::Zoo(Animal::Banana), 160),
    (Choice::Zoo(Animal::Gaussian6), 160),
];

/// What every other problem is given.
const OTHERS: usize = 224;

/// The problems of these names, or the usual ones, with the evaluations that each is given.
///
/// # Errors
/// For a name that no problem has.
pub fn problems(names: &[String]) -> Result<Vec<(Choice, usize)>> {
    if names.is_empty() {
        return Ok(PROBLEMS.to_vec());
    }
    let usual = |p: &Choice| PROBLEMS.iter().any(|u| u.0 == *p);
    let others = calibration::problems().into_iter().filter(|p| !usual(p)).map(|p| (p, OTHERS));
    let all: Vec<(Choice, usize)> = PROBLEMS.into_iter().chain(others).collect();
    let named = |name: &String| {
        let known = || all.iter().map(|p| p.0.name()).collect::<Vec<_>>().join(", ");
        all.iter()
            .find(|p| p.0.name() == name)
            .copied()
            .with_context(|| format!("--only {name:?}: expected {}", known()))
    };
    names.iter().map(named).collect()
}

/// Workers.
pub const WORKERS: [usize; 5] = [1, 4, 16, 64, 256];

/// The largest ratio of evaluations to those of one worker.
const BARS: [(usize, f64); 2] = [(16, 1.15), (64, 1.5)];

/// Of an evaluation's mean time, how long a driver that gives free workers points at once waits for others to become free.
const TOGETHER: f64 = 0.02;

/// How long evaluations take; one on average.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// All the same.
    Constant,
    /// The logarithm is normal with a standard deviation of one.
    LogNormal,
    /// The logarithm is uniform, the longest ten times the shortest.
    OneToTen,
}

impl Law {
    /// How long a job takes.
    fn time(self, job: &Job) -> f64 {
        let mut stream = Stream::new(job.seed, Purpose::Experiment, 0);
        match self {
            Self::Constant => 1.0,
            Self::LogNormal => (stream.normals(1)[0] - 0.5).exp(),
            Self::OneToTen => 10_f64.powf(stream.uniform()) * 10_f64.ln() / 9.0,
        }
    }
}

/// Everything that determines a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The problem.
    pub problem: Choice,
    /// The seed of the problem and of the run.
    pub seed: u64,
    /// How long evaluations take.
    pub law: Law,
    /// All choices of the run: `batch` workers, `max_evaluations` and whether they wait for each other.
    pub settings: Settings,
}

/// What was believed when points were chosen, and at the end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Evaluations that were known.
    pub evaluations: usize,
    /// When, in evaluations' mean times; choosing takes none.
    pub time: f64,
    /// `log Ẑ − log Z`; absent where there was no estimate.
    pub error: Option<f64>,
}

/// A run on a simulated cluster, to the end of its budget.
///
/// # Errors
/// When no belief can be formed.
pub fn simulate(spec: &Spec) -> Result<Vec<Reading>> {
    let problem = spec.problem.build(spec.seed).with_context(|| format!("building {:?}", spec.problem))?;
    let Settings { batch: workers, max_evaluations: budget, schedule, .. } = spec.settings;
    let mut engine = Engine::new(problem.prior.clone(), spec.settings.clone(), spec.seed)?;
    let mut readings = Vec::new();
    // What is being evaluated, by when it ends.
    let mut running: Vec<(f64, Job)> = Vec::new();
    let mut now = 0.0;
    loop {
        let left = budget - engine.ledger().entries().len();
        let free = match schedule {
            Schedule::Batch if !running.is_empty() => 0,
            Schedule::Batch => engine.next_batch(),
            Schedule::Async => workers - running.len(),
        };
        if free.min(left) > 0 {
            let asked = engine.ask(free.min(left))?;
            running.extend(asked.jobs.iter().map(|job| (now + spec.law.time(job), job.clone())));
            engine.apply(&Event::Asked(asked))?;
            continue;
        }
        if running.is_empty() {
            return Ok(readings);
        }
        let first = running.iter().map(|r| r.0).fold(f64::INFINITY, f64::min);
        let until = match schedule {
            Schedule::Batch => f64::INFINITY,
            Schedule::Async => first + TOGETHER,
        };
        let (mut done, rest): (Vec<_>, Vec<_>) = running.into_iter().partition(|r| r.0 <= until);
        running = rest;
        done.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.id.cmp(&b.1.id)));
        for (end, job) in done {
            now = end;
            let outcome = Outcome::from_log_likelihood(&job.theta, (problem.log_likelihood)(&job.theta));
            engine.apply(&Event::Told(Told::new(job.id, outcome)))?;
        }
        let evaluations = engine.ledger().entries().len() - running.len();
        if evaluations < engine.initial_size() {
            continue;
        }
        let error = match engine.current() {
            Err(Error::NoFiniteValue { .. }) => None,
            current => Some(current?.estimate.log_z - problem.log_z).filter(|e| e.is_finite()),
        };
        readings.push(Reading { evaluations, time: now, error });
    }
}

/// All runs of a kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The problem.
    pub problem: String,
    /// How points are kept apart.
    pub rule: String,
    /// How long evaluations take.
    pub law: Law,
    /// Whether workers wait for each other.
    pub schedule: Schedule,
    /// How many there are.
    pub workers: usize,
    /// Evaluations to 0.02 for good.
    pub evaluations: Spread,
    /// The wall time to the same, in evaluations' mean times.
    pub time: Spread,
    /// The median of `evaluations` over that of the fewest workers.
    pub ratio: Option<f64>,
    /// How many times sooner than with the fewest workers, by medians.
    pub sooner: Option<f64>,
    /// How many runs got there.
    pub reached: usize,
    /// Of how many.
    pub runs: usize,
}

/// What is to be compared.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Problems with their budgets.
    pub problems: Vec<(Choice, usize)>,
    /// Batch rules.
    pub rules: Vec<BatchRule>,
    /// Laws of evaluation times.
    pub laws: Vec<Law>,
    /// Numbers of workers, the fewest first.
    pub workers: Vec<usize>,
}

/// Makes all runs and writes `readings.csv`, `summary.json` and `table.md`. Workers wait for each other where evaluations take equally long.
///
/// # Errors
/// When a run fails or a file cannot be written.
pub fn run(comparison: &Comparison, plan: &Plan, workshop: &Workshop) -> Result<String> {
    let seeds = plan.seeds(20);
    let mut kinds = Vec::new();
    for &(problem, budget) in &comparison.problems {
        for &batch_rule in &comparison.rules {
            for &law in &comparison.laws {
                let schedule = if law == Law::Constant { Schedule::Batch } else { Schedule::Async };
                for &batch in &comparison.workers {
                    let max_evaluations = plan.budget(budget);
                    let settings = Settings { batch, batch_rule, max_evaluations, schedule, ..plan.settings.clone() };
                    kinds.push(Spec { problem, seed: 0, law, settings });
                }
            }
        }
    }
    let task = |spec: Spec| {
        let Settings { batch, batch_rule, .. } = spec.settings;
        let (name, law, seed) = (spec.problem.name(), word(spec.law), spec.seed);
        Task { key: format!("cluster-{name}-{}-{law}-w{batch:03}-s{seed:04}", word(batch_rule)), spec }
    };
    let tasks: Vec<Task<Spec>> =
        kinds.iter().flat_map(|kind| seeds.clone().map(move |seed| task(Spec { seed, ..kind.clone() }))).collect();
    let all = workshop.all("cluster", &tasks, simulate)?;
    let runs = (seeds.end - seeds.start) as usize;
    let rows = rows(&kinds, &all, runs, comparison.workers.len());
    let mut output = Output::new(workshop, "cluster")?;
    let lines = tasks.iter().zip(&all).flat_map(|(task, readings)| {
        let Spec { problem, seed, law, settings } = &task.spec;
        let of = (problem.name(), word(settings.batch_rule), word(law), settings.batch, *seed);
        readings.iter().map(move |r| (of.clone(), r.evaluations, r.time, r.error))
    });
    output.csv(
        "readings",
        &csv(&["problem", "rule", "law", "workers", "seed", "evaluations", "time", "error"], lines)?,
    )?;
    output.summary(plan, runs as u64, &serde_json::json!({ "rows": rows }))?;
    let title = "Evaluations and wall time (in mean times of an evaluation) to an error of 0.02 for good, on a simulated cluster";
    output.table("table", title, &table(&rows))?;
    Ok(output.said())
}

/// A row for each kind; each `sizes` of them are compared with the first.
fn rows(kinds: &[Spec], all: &[Vec<Reading>], runs: usize, sizes: usize) -> Vec<Row> {
    let reached = |k: usize, of: fn(&Reading) -> f64| -> Vec<f64> {
        let outside = |r: &Reading| r.error.is_none_or(|e| e.abs() > TOLERANCE);
        all[k * runs..(k + 1) * runs].iter().map(|r| for_good(r, outside).map_or(f64::INFINITY, of)).collect()
    };
    let finite = |v: f64| Some(v).filter(|v| v.is_finite());
    let row = |(k, spec): (usize, &Spec)| {
        let first = k - k % sizes;
        let (evaluations, time) = (reached(k, |r| r.evaluations as f64), reached(k, |r| r.time));
        let over = |own: &[f64], other: Vec<f64>| quantile(own, 0.5) / quantile(&other, 0.5);
        Row {
            problem: spec.problem.name().into(),
            rule: word(spec.settings.batch_rule),
            law: spec.law,
            schedule: spec.settings.schedule,
            workers: spec.settings.batch,
            ratio: finite(over(&evaluations, reached(first, |r| r.evaluations as f64))),
            sooner: finite(over(&time, reached(first, |r| r.time)).recip()),
            reached: evaluations.iter().filter(|n| n.is_finite()).count(),
            runs,
            evaluations: Spread::of(&evaluations),
            time: Spread::of(&time),
        }
    };
    kinds.iter().enumerate().map(row).collect()
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "problem",
        "rule",
        "times",
        "workers",
        "evaluations",
        "75 %",
        "ratio",
        "bar",
        "wall time",
        "sooner",
        "reached",
    ]);
    for r in rows {
        let bar = BARS.iter().find(|b| b.0 == r.workers).map(|b| r.ratio.is_some_and(|ratio| ratio <= b.1));
        let verdict = match bar {
            None => "",
            Some(true) => "met",
            Some(false) => "missed",
        };
        table.push([
            r.problem.clone(),
            r.rule.clone(),
            word(r.law),
            r.workers.to_string(),
            number(r.evaluations.median, 0),
            number(r.evaluations.p75, 0),
            number(r.ratio, 2),
            verdict.into(),
            number(r.time.median, 1),
            number(r.sooner, 1),
            format!("{}/{}", r.reached, r.runs),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(law: Law, workers: usize, schedule: Schedule) -> Spec {
        // Full batches from the beginning, so that everybody works all the time.
        let batch_growth = Some(1.0);
        let settings = Settings { batch: workers, batch_growth, max_evaluations: 32, schedule, ..Settings::default() };
        Spec { problem: Choice::Zoo(Animal::Banana), seed: 3, law, settings }
    }

    #[test]
    fn times_are_one_on_average() {
        for law in [Law::Constant, Law::LogNormal, Law::OneToTen] {
            let job = |seed: u64| Job { id: batchquad::types::JobId(0), theta: Vec::new(), seed };
            let mean = (0..20_000).map(|seed| law.time(&job(seed))).sum::<f64>() / 20_000.0;
            // A log-normal time has a standard deviation of 1.31, its mean here of 0.0093.
            assert!((mean - 1.0).abs() < 0.04, "{law:?} {mean}");
        }
    }

    #[test]
    fn all_is_evaluated_and_time_is_what_it_takes() {
        let equal = simulate(&spec(Law::Constant, 4, Schedule::Batch)).unwrap();
        let last = equal.last().unwrap();
        assert_eq!((last.evaluations, last.time), (32, 8.0));
        // Nobody waits: all are done when the work of all is, but for the last of each.
        let busy = simulate(&spec(Law::OneToTen, 4, Schedule::Async)).unwrap();
        let last = busy.last().unwrap();
        assert_eq!(last.evaluations, 32);
        assert!(last.time < 8.0 + 4.0, "{}", last.time);
    }
}
