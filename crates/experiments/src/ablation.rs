//! What the paper left open, and what the library's defaults rest on: one choice changed at a time, on the same seeds.

use anyhow::Result;
use batchquad::{
    Settings,
    belief::Model,
    choose::{AcquisitionKind, BatchRule, Penalisation},
    run::{KernelChoice, Reference, initial_size},
};
use batchquad_plot::{Axis, Chart, Errors, Figure, Rule};
use serde::Serialize;

use crate::{
    arms::{Arm, Group, make, to_csv},
    convergence::{TOLERANCE, budget},
    output::Output,
    plan::Plan,
    problems::Choice,
    runs::Workshop,
    stats::{Spread, mean},
    table::{Table, number, scientific},
    trace::{Reading, evaluations_to},
};

/// Runs of each.
pub const RUNS: u64 = 40;

/// Batches are large here, because there the rules matter most.
const BATCH: usize = 16;

/// The mixtures of the paper, and a problem in which batches cost something.
const PROBLEMS: [Choice; 2] = [Choice::Mixture, Choice::GpEvidence];

/// Large enough that it never applies.
const NEVER: f64 = 1e9;

/// The two bases and everything that is changed about one of them, with its index.
fn variants(problem: Choice, plan: &Plan) -> Result<Vec<(String, usize, Settings)>> {
    let dim = problem.build(0)?.prior.dim();
    let max_evaluations = plan.budget(budget(problem));
    let believer = Settings {
        batch: BATCH,
        batch_rule: BatchRule::KrigingBeliever,
        max_evaluations,
        surrogate: Model::WsabiL.into(),
        ..plan.settings.clone()
    };
    let cones = Settings { batch_rule: BatchRule::LocalPenalisation, ..believer.clone() };
    let mut all =
        vec![("Kriging Believer".to_string(), 0, believer.clone()), ("local penalisation".into(), 1, cones.clone())];
    let mut vary = |name: String, base: usize, change: &dyn Fn(&mut Settings)| {
        let mut settings = [&believer, &cones][base].clone();
        change(&mut settings);
        all.push((name, base, settings));
    };
    vary("against the prior".into(), 0, &|s| s.reference = Reference::Prior);
    vary("prior (penalisation)".into(), 1, &|s| s.reference = Reference::Prior);
    for slope in [0.5, 1.0] {
        vary(format!("cone slope {slope}"), 1, &|s| s.penalisation = Penalisation { slope, ..s.penalisation });
    }
    for power in [2.0, 20.0] {
        vary(format!("p = −{power}"), 1, &|s| s.penalisation = Penalisation { power, ..s.penalisation });
    }
    for starts in [2, 50] {
        vary(format!("{starts}d starts (penalisation)"), 1, &|s| s.starts_per_dim = starts);
        vary(format!("{starts}d starts"), 0, &|s| s.starts_per_dim = starts);
    }
    vary("Kriging Optimist".into(), 0, &|s| s.batch_rule = BatchRule::KrigingOptimist);
    vary("constant liar".into(), 0, &|s| s.batch_rule = BatchRule::ConstantLiar);
    vary("González's penaliser".into(), 0, &|s| s.batch_rule = BatchRule::GonzalezPenalisation);
    vary("naive top-n".into(), 0, &|s| s.batch_rule = BatchRule::NaiveTop);
    vary("random".into(), 0, &|s| s.batch_rule = BatchRule::Random);
    for (name, size) in [("half", initial_size(dim) / 2), ("double", 2 * initial_size(dim))] {
        vary(format!("{name} the initial design"), 0, &|s| s.initial_size = Some(size));
    }
    vary("full batches at once".into(), 0, &|s| s.batch_growth = Some(NEVER));
    vary("always a full search".into(), 0, &|s| s.refit_growth = 1.0);
    vary("no later full search".into(), 0, &|s| s.refit_growth = NEVER);
    vary("one lengthscale".into(), 0, &|s| s.kernel = KernelChoice::Isotropic);
    vary("variance reduction".into(), 0, &|s| s.acquisition = AcquisitionKind::VarianceReduction);
    vary("WSABI-M".into(), 0, &|s| s.surrogate = Model::WsabiM.into());
    vary("plain BQ".into(), 0, &|s| s.surrogate = Model::Plain.into());
    Ok(all)
}

/// The arms, each with the index of the arm it is compared with.
///
/// # Errors
/// When a problem cannot be built.
pub fn arms(plan: &Plan) -> Result<Vec<(Arm, usize)>> {
    let mut arms = Vec::new();
    for problem in PROBLEMS {
        let first = arms.len();
        for (variant, base, settings) in variants(problem, plan)? {
            arms.push((Arm { problem, variant, settings }, first + base));
        }
    }
    Ok(arms)
}

/// A choice against the one it replaces.
#[derive(Debug, Clone, Serialize)]
struct Row {
    problem: String,
    variant: String,
    compared_with: String,
    needed: Spread,
    reached: usize,
    final_error: Spread,
    /// The geometric mean, over seeds and numbers of evaluations, of |error| over that of the base at the same.
    error_ratio: f64,
    /// Two standard errors of its logarithm over seeds.
    low: f64,
    high: f64,
}

/// Shares of the budget at which errors are compared.
const SHARES: [f64; 7] = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

fn log_error_at(trace: &[Reading], evaluations: f64) -> Option<f64> {
    let last = trace.iter().rev().find(|r| r.evaluations as f64 <= evaluations)?;
    // Rounding of log Z itself is below this.
    last.own.error.map(|e| e.abs().max(1e-12).ln())
}

fn row(group: &Group, base: &Group) -> Row {
    let budget = group.arm.settings.max_evaluations as f64;
    let mut ratios = Vec::new();
    for (trace, other) in group.traces.iter().zip(&base.traces) {
        let at = |share: f64| Some(log_error_at(trace, share * budget)? - log_error_at(other, share * budget)?);
        let logs: Vec<f64> = SHARES.into_iter().filter_map(at).collect();
        if !logs.is_empty() {
            ratios.push(mean(&logs));
        }
    }
    let centre = mean(&ratios);
    let variance = mean(&ratios.iter().map(|r| (r - centre).powi(2)).collect::<Vec<_>>());
    let error = 2.0 * (variance / (ratios.len() as f64 - 1.0).max(1.0)).sqrt();
    let needed: Vec<f64> = group.traces.iter().map(|t| evaluations_to(t, TOLERANCE)).collect();
    let ends = group.traces.iter().filter_map(|t| t.last()).map(|r| r.own.distance());
    Row {
        problem: group.arm.problem.name().into(),
        variant: group.arm.variant.clone(),
        compared_with: base.arm.variant.clone(),
        reached: needed.iter().filter(|n| n.is_finite()).count(),
        needed: Spread::of(&needed),
        final_error: Spread::of(&ends.collect::<Vec<_>>()),
        error_ratio: centre.exp(),
        low: (centre - error).exp(),
        high: (centre + error).exp(),
    }
}

fn table(rows: &[Row], problem: &str, runs: u64) -> Table {
    let mut table = Table::new(["choice", "instead of", "to 2 %", "reached", "final error", "error ratio", "± 2 se"]);
    for r in rows.iter().filter(|r| r.problem == problem) {
        let itself = r.variant == r.compared_with;
        table.push([
            r.variant.clone(),
            if itself { "–".into() } else { r.compared_with.clone() },
            number(r.needed.median, 0),
            format!("{}/{runs}", r.reached),
            r.final_error.median.map_or("–".into(), scientific),
            if itself { "1".into() } else { number(Some(r.error_ratio), 2) },
            if itself { "–".into() } else { format!("{:.2} to {:.2}", r.low, r.high) },
        ]);
    }
    table
}

/// Error ratios with two standard errors, choices down.
fn figure(rows: &[Row]) -> Figure {
    let panel = |problem: Choice| {
        let rows: Vec<&Row> =
            rows.iter().filter(|r| r.problem == problem.name() && r.variant != r.compared_with).collect();
        let bars = rows.iter().enumerate().map(|(i, r)| (i as f64, r.low, r.error_ratio, r.high));
        Chart::new(
            Axis::logarithmic("|error| relative to the default"),
            Axis::categories("", rows.iter().map(|r| r.variant.clone())),
        )
        .title(format!("{}, batches of {BATCH}: to the left is better", problem.name()))
        .with(Rule::vertical(1.0))
        .with(Errors::new(bars).horizontal().style(0))
    };
    Figure::column("The effect of each choice on the error", PROBLEMS.map(panel)).width(800.0).panel_height(460.0)
}

/// Makes all runs and writes `readings.csv`, `summary.json`, a table for each problem and a figure.
///
/// # Errors
/// When a run fails or a file cannot be written.
pub fn run(plan: &Plan, workshop: &Workshop) -> Result<String> {
    let (arms, bases): (Vec<Arm>, Vec<usize>) = arms(plan)?.into_iter().unzip();
    let seeds = plan.seeds(RUNS);
    let groups = make("ablation", &arms, seeds.clone(), workshop)?;
    let rows: Vec<Row> = groups.iter().zip(bases).map(|(group, base)| row(group, &groups[base])).collect();
    let runs = seeds.end - seeds.start;
    let mut output = Output::new(workshop, "ablation")?;
    output.csv("readings", &to_csv(&groups, seeds.start)?)?;
    output.summary(plan, runs, &rows)?;
    for problem in PROBLEMS.map(Choice::name) {
        output.table(problem, &format!("One choice changed at a time, on {problem}"), &table(&rows, problem, runs))?;
    }
    output.figure("ablation", &figure(&rows))?;
    Ok(output.said())
}
