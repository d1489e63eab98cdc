//! Other ways to an evidence beside Bayesian quadrature, on all problems, evaluation by evaluation.

use anyhow::Result;
use batchquad_plot::{Axis, Chart, Figure};

use crate::{
    figures::spread,
    methods::{self, CHECKPOINTS, Method, PAPER, RUNS, Trial, beyond},
    output::Output,
    plan::Plan,
    problems::Choice,
    runs::Workshop,
    stats::Spread,
    zoo::{FLOOR, medians_at, rows},
};

/// The problems of the paper and those beyond, each once.
#[must_use]
pub fn problems() -> Vec<Choice> {
    PAPER.into_iter().chain(beyond().into_iter().filter(|p| !PAPER.contains(p))).collect()
}

/// Where curves are read: every sixteen evaluations.
fn ends(plan: &Plan) -> Vec<usize> {
    let budget = plan.budget(CHECKPOINTS[CHECKPOINTS.len() - 1]);
    if budget < 16 { vec![budget] } else { (16..=budget).step_by(16).collect() }
}

/// Errors as they are drawn.
fn drawn(trial: &Trial, evaluations: usize) -> Vec<f64> {
    trial.errors_at(evaluations).into_iter().map(|e| e.max(FLOOR)).collect()
}

/// A panel for each problem.
fn figure(trials: &[Trial], ends: &[usize], problems: &[Choice]) -> Figure {
    let panel = |problem: &Choice| {
        let mut chart = Chart::new(Axis::logarithmic("evaluations"), Axis::logarithmic("|log Ẑ − log Z|").unit("nats"))
            .title(problem.name());
        for method in Method::ALL {
            let Some(t) = trials.iter().find(|t| t.problem == *problem && t.method == method) else { continue };
            let points: Vec<(f64, Spread)> = ends.iter().map(|&n| (n as f64, Spread::of(&drawn(t, n)))).collect();
            chart = spread(chart, method.name(), method.look(), &points);
        }
        chart
    };
    let label = "Median |Δ log Z| with quartiles against evaluations, for every method";
    Figure::wrapped(label, 2, problems.iter().map(panel)).width(1000.0).panel_height(260.0).one_legend()
}

/// Makes all runs and writes `samples.csv`, `summary.json`, a table and figures.
///
/// # Errors
/// When a run fails or a file cannot be written.
pub fn run(plan: &Plan, workshop: &Workshop) -> Result<String> {
    let seeds = plan.seeds(RUNS);
    let problems = problems();
    let trials = methods::make("comparators", &problems, plan, seeds.clone(), workshop)?;
    let ends = ends(plan);
    let mut output = Output::new(workshop, "comparators")?;
    output.csv("samples", &methods::to_csv(&trials, seeds.start)?)?;
    output.summary(plan, seeds.end - seeds.start, &rows(&trials, &ends))?;
    for n in ends.iter().copied().filter(|n| CHECKPOINTS.contains(n) || ends.len() == 1) {
        output.table(
            &format!("at-{n}"),
            &format!("Median |Δ log Z| after {n} evaluations"),
            &medians_at(&trials, n),
        )?;
    }
    let (paper, rest) = problems.split_at(PAPER.len());
    output.figure("comparators-paper", &figure(&trials, &ends, paper))?;
    output.figure("comparators-beyond", &figure(&trials, &ends, rest))?;
    Ok(output.said())
}
