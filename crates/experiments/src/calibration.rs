//! How often the stated intervals hold the truth, on every problem, with noise, jumps and constraints among them.

use anyhow::Result;
use batchquad::{Settings, run::Level};
use batchquad_plot::{Axis, Chart, Figure, Line};
use serde::Serialize;

use crate::{
    output::{Output, csv},
    plan::Plan,
    problems::{
        Choice,
        world::{Noise, World},
        zoo::Animal,
    },
    runs::{Task, Workshop},
    stats::quantile,
    table::{Table, scientific},
    trace::Spec,
    verdicts::{self, Judgement},
};

/// The numbers of evaluations at which runs are read.
pub const CHECKPOINTS: [usize; 4] = [32, 64, 128, 256];

/// Batch sizes.
pub const BATCHES: [usize; 3] = [1, 8, 16];

/// Runs of each kind.
const RUNS: u64 = 40;

/// The truths are known to this many nats, so a smaller error is none.
const KNOWN_TO: f64 = 5e-4;

/// Nominal coverage in percent, with the number of standard deviations that it means.
const NOMINAL: [(f64, f64); 5] =
    [(50.0, 0.674_49), (68.0, 0.994_46), (90.0, 1.644_85), (95.0, 1.959_96), (99.0, 2.575_83)];

/// All problems of the project, some of them also with noise.
#[must_use]
pub fn problems() -> Vec<Choice> {
    let mut all: Vec<Choice> = Animal::ALL.map(Choice::Zoo).to_vec();
    all.extend([Choice::Mixture, Choice::GpEvidence, Choice::InModel, Choice::InModelPositive]);
    all.extend(World::ALL.iter().copied().map(Choice::World));
    for world in [World::Gaussian2, World::Rosenbrock, World::Linear4By10, World::Logistic5] {
        all.extend([Noise::Low, Noise::Middle, Noise::High].map(|noise| Choice::Noisy(world, noise)));
    }
    all
}

/// A reading with where it comes from.
#[derive(Debug, Clone)]
struct Reading {
    problem: Choice,
    seed: u64,
    batch: usize,
    judged: Judgement,
}

impl Reading {
    fn error(&self) -> f64 {
        if self.judged.error.is_finite() { self.judged.error.abs() } else { f64::INFINITY }
    }

    /// The error in stated standard deviations.
    fn far(&self) -> f64 {
        let beyond = (self.error() - KNOWN_TO).max(0.0);
        if beyond == 0.0 { 0.0 } else { beyond / self.judged.sd }
    }

    fn within(&self, bars: f64) -> bool {
        self.far() <= bars
    }
}

/// What is said of some of the readings.
#[derive(Debug, Clone, Serialize)]
struct Row {
    readings: String,
    count: usize,
    /// In percent, for each of [`NOMINAL`].
    coverage: [f64; 5],
    median_error: f64,
    median_sd: f64,
    /// Readings that state less than a nat.
    stated: usize,
    /// Errors above 0.2 and above five stated standard deviations.
    wrong: usize,
    /// "fine" with an error beyond three bars and above 0.02, of how many "fine".
    fine: (usize, usize),
    /// "do not trust" within two bars.
    slandered: usize,
    /// Errors above a nat, and how many of them were not to be trusted.
    gross: (usize, usize),
}

fn row(name: &str, readings: &[&Reading]) -> Row {
    let count = readings.len();
    let number = |which: &dyn Fn(&Reading) -> bool| readings.iter().filter(|r| which(r)).count();
    let percent = |n: usize| 100.0 * n as f64 / count.max(1) as f64;
    let fine = |r: &Reading| r.judged.verdict == Level::Fine;
    let distrusted = |r: &Reading| r.judged.verdict == Level::DoNotTrust;
    let gross = |r: &Reading| r.error() > 1.0;
    Row {
        readings: name.into(),
        count,
        coverage: NOMINAL.map(|(_, bars)| percent(number(&|r| r.within(bars)))),
        median_error: quantile(&readings.iter().map(|r| r.error()).collect::<Vec<_>>(), 0.5),
        median_sd: quantile(&readings.iter().map(|r| r.judged.sd).collect::<Vec<_>>(), 0.5),
        stated: number(&|r| r.judged.sd < 1.0),
        wrong: number(&|r| r.error() > 0.2 && !r.within(5.0)),
        fine: (number(&|r| fine(r) && r.error() > 0.02 && !r.within(3.0)), number(&fine)),
        slandered: number(&|r| distrusted(r) && r.within(2.0)),
        gross: (number(&gross), number(&|r| gross(r) && distrusted(r))),
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "readings",
        "number",
        "50 %",
        "68 %",
        "90 %",
        "95 %",
        "99 %",
        "median error",
        "median sd",
        "sd < 1",
        "wrong",
        "bad of fine",
        "distrusted within 2 sd",
        "distrusted of > 1 nat",
    ]);
    for r in rows {
        let mut cells = vec![r.readings.clone(), r.count.to_string()];
        cells.extend(r.coverage.map(|c| format!("{c:.0}")));
        cells.extend([scientific(r.median_error), scientific(r.median_sd), r.stated.to_string(), r.wrong.to_string()]);
        cells.push(format!("{}/{}", r.fine.0, r.fine.1));
        cells.push(r.slandered.to_string());
        cells.push(format!("{}/{}", r.gross.1, r.gross.0));
        table.push(cells);
    }
    table
}

/// Errors by problem and number of evaluations: the median, the worst, and how many state less than a nat.
fn errors(problems: &[Choice], checkpoints: &[usize], readings: &[Reading]) -> Table {
    let mut head = vec!["problem".to_owned()];
    head.extend(checkpoints.iter().map(|n| format!("at {n}: median (worst), sd < 1")));
    let mut table = Table::new(head);
    for &problem in problems {
        let mut cells = vec![problem.name().to_owned()];
        for &n in checkpoints {
            let here: Vec<&Reading> =
                readings.iter().filter(|r| r.problem == problem && r.judged.evaluations == n).collect();
            let all: Vec<f64> = here.iter().map(|r| r.error()).collect();
            let stated = here.iter().filter(|r| r.judged.sd < 1.0).count();
            let (median, worst) = (quantile(&all, 0.5), quantile(&all, 1.0));
            cells.push(format!("{} ({}), {stated}/{}", scientific(median), scientific(worst), here.len()));
        }
        table.push(cells);
    }
    table
}

/// Observed against nominal coverage, overall and for each batch size.
fn figure(rows: &[Row]) -> Figure {
    let axis = |label: &str| Axis::linear(label).unit("%").range(40.0, 100.0);
    let mut chart = Chart::new(axis("nominal coverage"), axis("observed coverage"))
        .title("How often the stated intervals hold the truth")
        .with(Line::new([(40.0, 40.0), (100.0, 100.0)]).named("as stated").style(3).colour(3));
    for (k, row) in rows.iter().enumerate() {
        let points = NOMINAL.iter().zip(row.coverage).map(|((nominal, _), observed)| (*nominal, observed));
        chart = chart.with(Line::new(points).named(&row.readings).style(k).colour(k));
    }
    Figure::new("Observed against nominal coverage", chart).width(560.0).panel_height(420.0)
}

/// Makes all runs, or those of some problems and batch sizes, and writes `readings.csv`, `summary.json`, tables and a figure.
///
/// # Errors
/// As the runs, or when the results cannot be written.
pub fn run(plan: &Plan, workshop: &Workshop, only: &[String], batches: &[usize]) -> Result<String> {
    let mut problems = problems();
    if let Some(unknown) = only.iter().find(|name| problems.iter().all(|p| p.name() != name.as_str())) {
        let names: Vec<&str> = problems.iter().map(|p| p.name()).collect();
        anyhow::bail!("--only {unknown}: expected one of {}", names.join(", "));
    }
    problems.retain(|p| only.is_empty() || only.iter().any(|name| name == p.name()));
    let budget = plan.budget(CHECKPOINTS[CHECKPOINTS.len() - 1]);
    let checkpoints: Vec<usize> = CHECKPOINTS.into_iter().filter(|n| *n <= budget).collect();
    let Some(&last) = checkpoints.last() else {
        anyhow::bail!("--budget {budget}: expected at least {}", CHECKPOINTS[0]);
    };
    let seeds = plan.seeds(RUNS);
    let mut tasks: Vec<Task<Spec>> = Vec::new();
    for &problem in &problems {
        for &batch in batches {
            for seed in seeds.clone() {
                let settings = Settings { batch, max_evaluations: last, ..plan.settings.clone() };
                let key = format!("coverage-{}-b{batch:02}-s{seed:04}", problem.name());
                tasks.push(Task { key, spec: Spec { problem, seed, settings } });
            }
        }
    }
    let judged = workshop.all("coverage", &tasks, |spec| verdicts::judge_at(spec, &checkpoints))?;
    let readings: Vec<Reading> = tasks
        .iter()
        .zip(judged)
        .flat_map(|(task, all)| {
            let Spec { problem, seed, settings } = task.spec.clone();
            all.into_iter().map(move |judged| Reading { problem, seed, batch: settings.batch, judged })
        })
        .collect();
    let of = |name: &str, which: &dyn Fn(&Reading) -> bool| {
        row(name, &readings.iter().filter(|r| which(r)).collect::<Vec<_>>())
    };
    let mut overall = vec![of("all", &|_| true)];
    if batches.len() > 1 {
        overall.extend(batches.iter().map(|&batch| of(&format!("batch {batch}"), &|r| r.batch == batch)));
    }
    let drawn = overall.clone();
    overall.extend(checkpoints.iter().map(|&n| of(&format!("{n} evaluations"), &|r| r.judged.evaluations == n)));
    let each: Vec<Row> = problems.iter().map(|&p| of(p.name(), &|r| r.problem == p)).collect();
    let said = verdicts::rows(&readings.iter().map(|r| r.judged.clone()).collect::<Vec<_>>());
    let head = ["problem", "seed", "batch", "evaluations", "error", "sd", "verdict"];
    let lines = readings.iter().map(|r| {
        let j = &r.judged;
        (r.problem.name(), r.seed, r.batch, j.evaluations, j.error, j.sd, j.verdict.as_str())
    });
    let mut output = Output::new(workshop, "coverage")?;
    output.csv("readings", &csv(&head, lines)?)?;
    let results = serde_json::json!({ "overall": overall, "problems": each, "verdicts": said });
    output.summary(plan, seeds.end - seeds.start, &results)?;
    output.table("overall", "How often the stated intervals hold the truth, in percent", &table(&overall))?;
    output.table("problems", "The same for each problem", &table(&each))?;
    output.table("errors", "|Δ log Z| by problem", &errors(&problems, &checkpoints, &readings))?;
    output.table("verdicts", "What the diagnostics said, by how far the truth was", &verdicts::table(&said))?;
    output.figure("coverage", &figure(&drawn))?;
    Ok(output.said())
}
