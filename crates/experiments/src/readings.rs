//! Runs of the default belief on many problems, each read at several numbers of evaluations: errors, stated intervals and verdicts.

use anyhow::Result;
use batchquad::{Settings, run::Level};
use batchquad_plot::{Axis, Chart, Figure, Line};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    output::{Output, csv},
    plan::Plan,
    problems::Choice,
    runs::{Task, Workshop},
    stats::quantile,
    table::{Table, scientific},
    trace::Spec,
    verdicts::{self, Judgement},
};

/// Nominal coverage in percent.
pub const NOMINAL: [f64; 5] = [50.0, 68.0, 90.0, 95.0, 99.0];

/// So many standard deviations either side hold 95 % of a normal distribution.
const NORMAL: f64 = 1.959_96;

/// Which runs are made and when they are read.
#[derive(Debug, Clone)]
pub struct Study<'a> {
    /// What the experiment is called.
    pub name: &'static str,
    /// The problems.
    pub problems: Vec<Choice>,
    /// The numbers of evaluations at which runs are read, in order.
    pub checkpoints: &'a [usize],
    /// The batch sizes.
    pub batches: &'a [usize],
    /// How many runs of each kind are usual.
    pub runs: u64,
    /// The truths are known to this many nats.
    pub known_to: f64,
}

/// The readings of a [`Study`].
#[derive(Debug)]
pub struct Readings {
    /// All of them: by problem, batch size, seed and number of evaluations.
    pub all: Vec<Reading>,
    /// The problems that were asked for.
    pub problems: Vec<Choice>,
    /// The checkpoints within the budget.
    pub checkpoints: Vec<usize>,
    name: &'static str,
    batches: Vec<usize>,
    runs: u64,
}

impl Study<'_> {
    /// Makes all runs, or those of the problems that are named.
    ///
    /// # Errors
    /// For a name that is unknown or a budget before the first checkpoint; as the runs.
    pub fn make(&self, plan: &Plan, workshop: &Workshop, only: &[String]) -> Result<Readings> {
        if let Some(unknown) = only.iter().find(|name| self.problems.iter().all(|p| p.name() != name.as_str())) {
            let names: Vec<&str> = self.problems.iter().map(|p| p.name()).collect();
            anyhow::bail!("--only {unknown}: expected one of {}", names.join(", "));
        }
        let chosen = |p: &Choice| only.is_empty() || only.iter().any(|name| name == p.name());
        let problems: Vec<Choice> = self.problems.iter().copied().filter(chosen).collect();
        let budget = plan.budget(self.checkpoints.last().copied().unwrap_or(0));
        let checkpoints: Vec<usize> = self.checkpoints.iter().copied().filter(|n| *n <= budget).collect();
        let Some(&last) = checkpoints.last() else {
            anyhow::bail!("--budget {budget}: expected at least {}", self.checkpoints.first().unwrap_or(&0));
        };
        let seeds = plan.seeds(self.runs);
        let mut tasks: Vec<Task<Spec>> = Vec::new();
        for &problem in &problems {
            for &batch in self.batches {
                for seed in seeds.clone() {
                    let settings = Settings { batch, max_evaluations: last, ..plan.settings.clone() };
                    let key = format!("{}-{}-b{batch:02}-s{seed:04}", self.name, problem.name());
                    tasks.push(Task { key, spec: Spec { problem, seed, settings } });
                }
            }
        }
        let judged = workshop.all(self.name, &tasks, |spec| verdicts::judge_at(spec, &checkpoints))?;
        let all = tasks
            .iter()
            .zip(judged)
            .flat_map(|(task, all)| {
                let Spec { problem, seed, ref settings } = task.spec;
                let (batch, known_to) = (settings.batch, self.known_to);
                all.into_iter().map(move |judged| Reading { problem, seed, batch, judged, known_to })
            })
            .collect();
        let (name, batches, runs) = (self.name, self.batches.to_vec(), seeds.end - seeds.start);
        Ok(Readings { all, problems, checkpoints, name, batches, runs })
    }
}

impl Readings {
    fn row(&self, name: &str, which: &dyn Fn(&Reading) -> bool) -> Row {
        row(name, &self.all.iter().filter(|r| which(r)).collect::<Vec<_>>())
    }

    /// Writes `readings.csv`, `summary.json` with `more` results, tables and a figure.
    ///
    /// # Errors
    /// When the results cannot be written.
    pub fn write(&self, plan: &Plan, workshop: &Workshop, more: Map<String, Value>) -> Result<Output> {
        let mut overall = vec![self.row("all", &|_| true)];
        if self.batches.len() > 1 {
            overall.extend(self.batches.iter().map(|&b| self.row(&format!("batch {b}"), &|r| r.batch == b)));
        }
        let drawn = overall.clone();
        let at = |&n: &usize| self.row(&format!("{n} evaluations"), &|r| r.judged.evaluations == n);
        overall.extend(self.checkpoints.iter().map(at));
        let each: Vec<Row> = self.problems.iter().map(|&p| self.row(p.name(), &|r| r.problem == p)).collect();
        let said = verdicts::rows(&self.all.iter().map(|r| r.judged.clone()).collect::<Vec<_>>());
        let head = ["problem", "seed", "batch", "evaluations", "error", "sd", "low", "high", "verdict"];
        let lines = self.all.iter().map(|r| {
            let j = &r.judged;
            let (low, high) = j.interval(95.0);
            (r.problem.name(), r.seed, r.batch, j.evaluations, j.error, j.sd, low, high, j.verdict.as_str())
        });
        let mut output = Output::new(workshop, self.name)?;
        output.csv("readings", &csv(&head, lines)?)?;
        let mut results = more;
        results.insert("overall".into(), serde_json::to_value(&overall)?);
        results.insert("problems".into(), serde_json::to_value(&each)?);
        results.insert("verdicts".into(), serde_json::to_value(&said)?);
        output.summary(plan, self.runs, &results)?;
        output.table("overall", "How often the stated intervals hold the truth, in percent", &table(&overall))?;
        output.table("problems", "The same for each problem", &table(&each))?;
        let errors = errors(&self.problems, &self.checkpoints, &self.all);
        output.table("errors", "|Δ log Z| by problem", &errors)?;
        output.table("verdicts", "What the diagnostics said, by how far the truth was", &verdicts::table(&said))?;
        output.figure("coverage", &figure(&drawn))?;
        Ok(output)
    }
}

/// A reading with where it comes from.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The problem.
    pub problem: Choice,
    /// The seed of the problem and of the run.
    pub seed: u64,
    /// The batch size.
    pub batch: usize,
    /// What was said and what was true.
    pub judged: Judgement,
    /// The truth is known to this many nats, so a smaller error is none.
    known_to: f64,
}

impl Reading {
    /// `|Δ log Z|`, infinite where there was no estimate.
    #[must_use]
    pub fn error(&self) -> f64 {
        if self.judged.error.is_finite() { self.judged.error.abs() } else { f64::INFINITY }
    }

    /// The error in stated standard deviations.
    fn far(&self) -> f64 {
        let beyond = (self.error() - self.known_to).max(0.0);
        if beyond == 0.0 { 0.0 } else { beyond / self.judged.sd }
    }

    /// Whether the stated interval of so many percent holds the truth.
    #[must_use]
    pub fn holds(&self, percent: f64) -> bool {
        let (low, high) = self.judged.interval(percent);
        low <= self.known_to && high >= -self.known_to
    }

    /// Whether the error is within so many stated standard deviations.
    #[must_use]
    pub fn within(&self, bars: f64) -> bool {
        self.far() <= bars
    }

    /// Whether the posterior was found: less than a nat is stated.
    #[must_use]
    pub fn arrived(&self) -> bool {
        self.judged.sd < 1.0
    }

    /// Whether the error is above 0.2 and above five stated standard deviations.
    #[must_use]
    pub fn wrong(&self) -> bool {
        self.error() > 0.2 && !self.within(5.0)
    }
}

/// What is said of some of the readings.
#[derive(Debug, Clone, Serialize)]
struct Row {
    readings: String,
    count: usize,
    /// In percent, for each of [`NOMINAL`].
    coverage: [f64; 5],
    /// Within 1.96 standard deviations, in percent.
    normal: f64,
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
        coverage: NOMINAL.map(|p| percent(number(&|r| r.holds(p)))),
        normal: percent(number(&|r| r.within(NORMAL))),
        median_error: quantile(&readings.iter().map(|r| r.error()).collect::<Vec<_>>(), 0.5),
        median_sd: quantile(&readings.iter().map(|r| r.judged.sd).collect::<Vec<_>>(), 0.5),
        stated: number(&Reading::arrived),
        wrong: number(&Reading::wrong),
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
        "1.96 sd",
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
        cells.extend(r.coverage.iter().chain([&r.normal]).map(|c| format!("{c:.0}")));
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
            let stated = here.iter().filter(|r| r.arrived()).count();
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
        let points = NOMINAL.into_iter().zip(row.coverage);
        chart = chart.with(Line::new(points).named(&row.readings).style(k).colour(k));
    }
    Figure::new("Observed against nominal coverage", chart).width(560.0).panel_height(420.0)
}
