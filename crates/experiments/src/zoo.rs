//! A table of |Δ log Z| of every method on every problem beyond the paper, at several budgets.

use anyhow::Result;
use batchquad_plot::{Axis, Chart, Errors, Figure};
use serde::Serialize;

use crate::{
    methods::{self, CHECKPOINTS, Method, RUNS, Trial, beyond},
    output::Output,
    plan::Plan,
    problems::Choice,
    runs::Workshop,
    stats::Spread,
    table::{Table, scientific},
};

/// A method on a problem.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    problem: String,
    method: String,
    errors: Vec<At>,
}

#[derive(Debug, Clone, Serialize)]
struct At {
    evaluations: usize,
    log_error: Spread,
}

/// The rows of a summary.
#[must_use]
pub fn rows(trials: &[Trial], checkpoints: &[usize]) -> Vec<Row> {
    let errors = |t: &Trial| {
        let at = |&evaluations: &usize| At { evaluations, log_error: Spread::of(&t.errors_at(evaluations)) };
        checkpoints.iter().map(at).collect()
    };
    let row = |t: &Trial| Row { problem: t.problem.name().into(), method: t.method.name().into(), errors: errors(t) };
    trials.iter().map(row).collect()
}

/// The checkpoints within the budget of the plan; its end if there are none.
fn checkpoints(plan: &Plan) -> Vec<usize> {
    let budget = plan.budget(CHECKPOINTS[CHECKPOINTS.len() - 1]);
    let within: Vec<usize> = CHECKPOINTS.into_iter().filter(|n| *n <= budget).collect();
    if within.is_empty() { vec![budget] } else { within }
}

fn problems_of(trials: &[Trial]) -> Vec<Choice> {
    let mut problems: Vec<Choice> = trials.iter().map(|t| t.problem).collect();
    problems.dedup();
    problems
}

/// Problems down, methods across, medians after some number of evaluations.
#[must_use]
pub fn medians_at(trials: &[Trial], evaluations: usize) -> Table {
    let mut table = Table::new(std::iter::once("problem").chain(Method::ALL.map(Method::name)));
    for problem in problems_of(trials) {
        let mut row = vec![problem.name().to_string()];
        row.extend(trials.iter().filter(|t| t.problem == problem).map(|t| scientific(t.median_at(evaluations))));
        table.push(row);
    }
    table
}

/// Problems and methods down, numbers of evaluations across.
fn by_evaluations(trials: &[Trial], checkpoints: &[usize]) -> Table {
    let mut table = Table::new(
        ["problem".to_string(), "method".into()].into_iter().chain(checkpoints.iter().map(usize::to_string)),
    );
    for t in trials {
        let mut row = vec![t.problem.name().to_string(), t.method.name().into()];
        row.extend(checkpoints.iter().map(|&n| scientific(t.median_at(n))));
        table.push(row);
    }
    table
}

/// Smaller errors than this are drawn here: Laplace's on a Gaussian would leave no room for the others.
pub const FLOOR: f64 = 1e-7;

/// Medians with quartiles, methods side by side over each problem.
fn figure(trials: &[Trial], evaluations: usize) -> Figure {
    let problems = problems_of(trials);
    let names = problems.iter().map(|p| p.name());
    let mut chart = Chart::new(Axis::categories("problem", names), Axis::logarithmic("|log Ẑ − log Z|").unit("nats"))
        .title(format!("After {evaluations} evaluations: medians and quartiles over runs, at least {FLOOR:e}"));
    for (k, method) in Method::ALL.into_iter().enumerate() {
        let look = method.look();
        let aside = (k as f64 - 0.5 * (Method::ALL.len() - 1) as f64) * 0.08;
        let mut bars = Vec::new();
        for (i, problem) in problems.iter().enumerate() {
            let Some(t) = trials.iter().find(|t| t.problem == *problem && t.method == method) else { continue };
            let s = Spread::of(&t.errors_at(evaluations));
            if let Some(median) = s.median {
                let [low, middle, high] =
                    [s.p25.unwrap_or(median), median, s.p75.unwrap_or(median)].map(|v| v.max(FLOOR));
                bars.push((i as f64 + aside, low, middle, high));
            }
        }
        chart = chart.with(Errors::new(bars).named(method.name()).style(look.shape).colour(look.colour));
    }
    Figure::new("Errors of every method on every problem beyond the paper", chart).width(1200.0).panel_height(420.0)
}

/// Makes all runs and writes `samples.csv`, `summary.json`, tables and a figure.
///
/// # Errors
/// When a run fails or a file cannot be written.
pub fn run(plan: &Plan, workshop: &Workshop) -> Result<String> {
    let seeds = plan.seeds(RUNS);
    let trials = methods::make("zoo", &beyond(), plan, seeds.clone(), workshop)?;
    let checkpoints = checkpoints(plan);
    let last = checkpoints[checkpoints.len() - 1];
    let mut output = Output::new(workshop, "zoo")?;
    output.csv("samples", &methods::to_csv(&trials, seeds.start)?)?;
    output.summary(plan, seeds.end - seeds.start, &rows(&trials, &checkpoints))?;
    output.table("table", "Median |Δ log Z| by evaluations", &by_evaluations(&trials, &checkpoints))?;
    for n in &checkpoints {
        output.table(
            &format!("at-{n}"),
            &format!("Median |Δ log Z| after {n} evaluations"),
            &medians_at(&trials, *n),
        )?;
    }
    output.figure("zoo", &figure(&trials, last))?;
    Ok(output.said())
}
