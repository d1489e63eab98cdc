//! How often the verdict of the diagnostics is right, over problems with known answers.

use anyhow::{Context, Result};
use batchquad::{
    Engine, Estimate, Settings,
    belief::Side,
    journal::{Event, Told},
    run::{Level, diagnose},
    types::Outcome,
};
use batchquad_plot::{Axis, Bars, Chart, Figure};
use serde::{Deserialize, Serialize};

use crate::{
    output::{Output, csv},
    plan::Plan,
    problems::{Choice, zoo::Animal},
    runs::{Task, Workshop},
    table::Table,
    trace::Spec,
};

/// The numbers of evaluations at which runs are judged.
pub const CHECKPOINTS: [usize; 5] = [24, 32, 48, 64, 128];

/// An error of `log Z` that changes what one would conclude.
const GROSS: f64 = 0.1;

/// What the diagnostics said, and what was true.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Judgement {
    /// Evaluations behind it.
    pub evaluations: usize,
    /// `log Ẑ − log Z`.
    pub error: f64,
    /// The standard deviation that was claimed.
    pub sd: f64,
    /// How far from the estimate the truth may be, on either side.
    pub below: Side,
    /// See `below`.
    pub above: Side,
    /// What was said.
    pub verdict: Level,
    /// Name, value and level of everything that was looked at.
    pub findings: Vec<(String, Option<f64>, Level)>,
}

impl Judgement {
    /// The ends of the interval of so many percent, less the truth.
    #[must_use]
    pub fn interval(&self, percent: f64) -> (f64, f64) {
        let estimate = Estimate::from_log(self.error, self.sd, 0.0).with_sides(self.below, self.above);
        estimate.interval(percent / 100.0).unwrap_or((f64::NAN, f64::NAN))
    }
}

/// One run, judged at every checkpoint.
///
/// # Errors
/// When no belief can be formed.
pub fn judge(spec: &Spec) -> Result<Vec<Judgement>> {
    judge_at(spec, &CHECKPOINTS)
}

/// One run, judged at the given numbers of evaluations.
///
/// # Errors
/// When no belief can be formed.
pub fn judge_at(spec: &Spec, checkpoints: &[usize]) -> Result<Vec<Judgement>> {
    let problem = spec.problem.build(spec.seed).with_context(|| format!("building {:?}", spec.problem))?;
    let mut engine = Engine::new(problem.prior.clone(), spec.settings.clone(), spec.seed)?;
    let mut judgements = Vec::new();
    for &stop in checkpoints {
        loop {
            let done = engine.ledger().entries().len();
            if done >= stop {
                break;
            }
            let wanted = if done == 0 { engine.initial_size() } else { engine.next_batch() };
            let asked = engine.ask(wanted.min(stop - done).max(1))?;
            let jobs = asked.jobs.clone();
            engine.apply(&Event::Asked(asked))?;
            for job in jobs {
                let outcome = Outcome::from_log_likelihood(&job.theta, (problem.log_likelihood)(&job.theta));
                engine.apply(&Event::Told(Told::new(job.id, outcome)))?;
            }
        }
        // In many dimensions the initial design is larger than the first checkpoints: nothing was predicted yet.
        if engine.history().is_empty() {
            continue;
        }
        let estimate = engine.current()?.estimate;
        let diagnosis = diagnose(&engine)?;
        let finite = |v: f64| Some(v).filter(|v| v.is_finite());
        judgements.push(Judgement {
            evaluations: engine.ledger().entries().len(),
            error: estimate.log_z - problem.log_z,
            sd: estimate.log_z_sd,
            below: estimate.below,
            above: estimate.above,
            verdict: diagnosis.verdict,
            findings: diagnosis.findings.iter().map(|f| (f.name.to_owned(), finite(f.value), f.level)).collect(),
        });
    }
    Ok(judgements)
}

/// Runs of each problem.
pub const RUNS: u64 = 10;

/// Runs every problem and writes `verdicts.csv`, `summary.json` and a table.
///
/// # Errors
/// When a run fails or a file cannot be written.
pub fn run(plan: &Plan, workshop: &Workshop) -> Result<String> {
    let settings = Settings { max_evaluations: CHECKPOINTS[CHECKPOINTS.len() - 1], ..plan.settings.clone() };
    let seeds = plan.seeds(RUNS);
    let problems: Vec<Choice> = Animal::ALL
        .map(Choice::Zoo)
        .into_iter()
        .chain([Choice::Mixture, Choice::GpEvidence, Choice::InModel, Choice::InModelPositive])
        .collect();
    let tasks: Vec<Task<Spec>> = problems
        .iter()
        .flat_map(|&problem| {
            let settings = settings.clone();
            seeds.clone().map(move |seed| Task {
                key: format!("verdict-{}-s{seed:03}", problem.name()),
                spec: Spec { problem, seed, settings: settings.clone() },
            })
        })
        .collect();
    let all = workshop.all("verdicts", &tasks, judge)?;
    let head = ["problem", "seed", "evaluations", "error", "sd", "verdict", "finding", "value", "level"];
    let lines = tasks.iter().zip(&all).flat_map(|(task, judgements)| {
        let of = move |j: &Judgement| {
            (task.spec.problem.name(), task.spec.seed, j.evaluations, j.error, j.sd, j.verdict.as_str())
        };
        judgements.iter().flat_map(move |j| {
            j.findings.iter().map(move |(name, value, level)| (of(j), (name.clone(), *value, level.as_str())))
        })
    });
    let lines = csv(&head, lines)?;
    let rows = rows(&all.concat());
    let mut output = Output::new(workshop, "verdicts")?;
    output.csv("verdicts", &lines)?;
    output.summary(plan, seeds.end - seeds.start, &rows)?;
    output.table("table", "What the diagnostics said, by how far the truth was", &table(&rows))?;
    output.figure("verdicts", &figure(&rows))?;
    Ok(output.said())
}

/// What was said where the truth was so far away.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    error: &'static str,
    readings: usize,
    fine: usize,
    look: usize,
    do_not_trust: usize,
}

/// What was said, by how far the truth was.
pub(crate) fn rows(all: &[Judgement]) -> Vec<Row> {
    let far =
        |j: &Judgement| if j.error.is_finite() && j.sd.is_finite() { j.error.abs() / j.sd } else { f64::INFINITY };
    let gross = |j: &Judgement| j.error.is_nan() || j.error.abs() > GROSS;
    let row = |error: &'static str, which: &dyn Fn(&Judgement) -> bool| {
        let of: Vec<&Judgement> = all.iter().filter(|j| which(j)).collect();
        let said = |level: Level| of.iter().filter(|j| j.verdict == level).count();
        let [fine, look, do_not_trust] = [Level::Fine, Level::Look, Level::DoNotTrust].map(said);
        Row { error, readings: of.len(), fine, look, do_not_trust }
    };
    vec![
        row("within 2 sd", &|j| far(j) <= 2.0),
        row("2 to 3 sd", &|j| far(j) > 2.0 && far(j) <= 3.0),
        row("beyond 3 sd", &|j| far(j) > 3.0),
        row("beyond 3 sd and above 0.1", &|j| far(j) > 3.0 && gross(j)),
    ]
}

/// Rows by how far the truth was, columns by what was said.
pub(crate) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(["error", "readings", "fine", "look", "do not trust"]);
    for r in rows {
        let share = |n: usize| format!("{n} ({:.0} %)", 100.0 * n as f64 / r.readings.max(1) as f64);
        table.push([r.error.into(), r.readings.to_string(), share(r.fine), share(r.look), share(r.do_not_trust)]);
    }
    table
}

/// What was said, side by side over how far the truth was.
fn figure(rows: &[Row]) -> Figure {
    let mut chart = Chart::new(
        Axis::categories("error of log Z", rows.iter().map(|r| r.error)),
        Axis::linear("share of readings").unit("%"),
    )
    .title("What the diagnostics said, by how far the truth was");
    for (k, name) in ["fine", "look", "do not trust"].into_iter().enumerate() {
        let bar = |(i, r): (usize, &Row)| {
            let left = i as f64 - 0.36 + 0.24 * k as f64;
            (left, left + 0.24, 100.0 * [r.fine, r.look, r.do_not_trust][k] as f64 / r.readings.max(1) as f64)
        };
        chart = chart.with(Bars::new(rows.iter().enumerate().map(bar)).named(name).colour(k));
    }
    Figure::new("Verdicts of the diagnostics against errors", chart).width(760.0).panel_height(300.0)
}
