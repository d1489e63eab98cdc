//! Errors against evaluations and batches, by batch size and rule; what batches cost in evaluations.

use anyhow::Result;
use batchquad::{Settings, choose::BatchRule, run::SurrogateChoice};
use serde::{Deserialize, Serialize};

use crate::{
    arms::{Arm, Group, make, to_csv},
    coverage::Coverage,
    output::Output,
    plan::Plan,
    problems::Choice,
    runs::Workshop,
    stats::{Spread, quantile},
    table::{Table, number, percent, scientific},
    trace::{Judged, Reading, evaluations_to, reached_for_good},
};

/// Two percent.
pub const TOLERANCE: f64 = 0.02;

/// The bars: batch size and the largest ratio to batch 1.
pub const BARS: [(usize, f64); 3] = [(4, 1.1), (8, 1.25), (16, 1.4)];

/// The evaluations that a problem is given.
#[must_use]
pub fn budget(problem: Choice) -> usize {
    match problem {
        Choice::Mixture => 320,
        Choice::Zoo(_) | Choice::World(_) | Choice::Noisy(..) | Choice::Family(_) => 256,
        // |g| has kinks: with fewer, half of the runs would not get to 2 %.
        Choice::InModel | Choice::InModelPositive => 192,
        Choice::GpEvidence => 96,
    }
}

/// All rules with all batch sizes on a problem.
#[must_use]
pub fn grid(problem: Choice, variant: &str, rules: &[BatchRule], batches: &[usize], plan: &Plan) -> Vec<Arm> {
    let max_evaluations = plan.budget(budget(problem));
    let arm = |&batch_rule: &BatchRule, &batch: &usize| {
        // Batch rules are the square root's.
        let surrogate = match plan.settings.surrogate {
            SurrogateChoice::Auto => SurrogateChoice::WsabiL,
            chosen => chosen,
        };
        let settings = Settings { surrogate, batch, batch_rule, max_evaluations, ..plan.settings.clone() };
        Arm { problem, variant: variant.into(), settings }
    };
    rules.iter().flat_map(|rule| batches.iter().map(move |batch| arm(rule, batch))).collect()
}

/// Errors after a batch, over all runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Batches so far.
    pub batches: usize,
    /// Evaluations so far.
    pub evaluations: usize,
    /// Whether the initial design was still under way.
    pub initial: bool,
    /// `|Ẑ/Z − 1|`.
    pub relative_error: Spread,
    /// `|log Ẑ − log Z|`.
    pub log_error: Spread,
}

/// All runs of an arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The problem.
    pub problem: String,
    /// What is special about it.
    pub variant: String,
    /// The batch rule.
    pub rule: String,
    /// The batch size.
    pub batch: usize,
    /// Evaluations to 2 % for good.
    pub needed: Spread,
    /// Batches to the same.
    pub needed_batches: Spread,
    /// How many runs got there.
    pub reached: usize,
    /// Of how many.
    pub runs: usize,
    /// Batch efficiency: the median of `needed` over that of the smallest batch size with the same rule.
    pub ratio: Option<f64>,
    /// Whether that is within the bar for this batch size; absent where there is no bar or the smallest did not get there either.
    pub met: Option<bool>,
    /// The median of each run's own ratio over the runs that got there with both batch sizes, if these are more than half.
    pub paired_ratio: Option<f64>,
    /// The median |error| at the end.
    pub final_error: f64,
    /// The same for the exact moments.
    pub final_error_moments: f64,
    /// Coverage of the run's own estimate, after the initial design.
    pub coverage: Coverage,
    /// Coverage of the exact moments.
    pub coverage_moments: Coverage,
    /// The errors on the way.
    pub curve: Vec<Point>,
}

/// What large batches cost: evaluations to 2 % with the largest over those with the smallest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Efficiency {
    /// The problem.
    pub problem: String,
    /// What is special about it.
    pub variant: String,
    /// The batch rule.
    pub rule: String,
    /// The largest batch size.
    pub batch: usize,
    /// The smallest.
    pub over: usize,
    /// Median evaluations with the largest; absent if fewer than half of the runs got there.
    pub evaluations: Option<f64>,
    /// The same with the smallest.
    pub evaluations_over: Option<f64>,
    /// One over the other.
    pub ratio: Option<f64>,
    /// [`Row::paired_ratio`].
    pub paired_ratio: Option<f64>,
}

/// Batch efficiency of each rule on each problem.
#[must_use]
pub fn efficiencies(rows: &[Row]) -> Vec<Efficiency> {
    let alike = |a: &Row, b: &Row| a.problem == b.problem && a.variant == b.variant && a.rule == b.rule;
    rows.chunk_by(alike)
        .filter_map(|rows| {
            let (small, large) = (rows.iter().min_by_key(|r| r.batch)?, rows.iter().max_by_key(|r| r.batch)?);
            Some(Efficiency {
                problem: large.problem.clone(),
                variant: large.variant.clone(),
                rule: large.rule.clone(),
                batch: large.batch,
                over: small.batch,
                evaluations: large.needed.median,
                evaluations_over: small.needed.median,
                ratio: large.ratio,
                paired_ratio: large.paired_ratio,
            })
        })
        .collect()
}

/// Evaluations to 2 % for good, for each run.
fn needed(group: &Group) -> Vec<f64> {
    group.traces.iter().map(|t| evaluations_to(t, TOLERANCE)).collect()
}

/// The group with the smallest batch of the same problem, variant and rule.
fn base<'a>(groups: &'a [Group], of: &Arm) -> Option<&'a Group> {
    let alike = |g: &&Group| {
        g.arm.problem == of.problem
            && g.arm.variant == of.variant
            && g.arm.settings.batch_rule == of.settings.batch_rule
    };
    groups.iter().filter(alike).min_by_key(|g| g.arm.settings.batch)
}

/// The rows of a summary, one a group.
#[must_use]
pub fn rows(groups: &[Group]) -> Vec<Row> {
    groups.iter().map(|group| row(group, base(groups, &group.arm).unwrap_or(group))).collect()
}

fn row(group: &Group, base: &Group) -> Row {
    let (own, first) = (needed(group), needed(base));
    let reached = group.traces.iter().map(|t| reached_for_good(t, TOLERANCE, |r| Some(r.own)));
    let batches: Vec<f64> = reached.map(|r| r.map_or(f64::INFINITY, |r| r.batches as f64)).collect();
    let both = own.iter().zip(&first).filter(|(a, b)| a.is_finite() && b.is_finite());
    let pairs: Vec<f64> = both.map(|(a, b)| a / b).collect();
    let paired = if 2 * pairs.len() > own.len() { quantile(&pairs, 0.5) } else { f64::NAN };
    let end = |judged: fn(&Reading) -> Option<Judged>| {
        let ends = group.traces.iter().filter_map(|t| t.last());
        let errors: Vec<f64> = ends.map(|r| judged(r).map_or(f64::INFINITY, |j| j.distance())).collect();
        quantile(&errors, 0.5)
    };
    let designed = || group.traces.iter().flatten().filter(|r| !r.initial);
    let finite = |v: f64| Some(v).filter(|v| v.is_finite());
    let batch = group.arm.settings.batch;
    // Infinite if the median run got there with the smallest batch only, NaN if with neither.
    let ratio = quantile(&own, 0.5) / quantile(&first, 0.5);
    Row {
        problem: group.arm.problem.name().into(),
        variant: group.arm.variant.clone(),
        rule: group.arm.rule(),
        batch,
        needed: Spread::of(&own),
        needed_batches: Spread::of(&batches),
        reached: own.iter().filter(|n| n.is_finite()).count(),
        runs: own.len(),
        ratio: finite(ratio),
        met: BARS.iter().find(|b| b.0 == batch && !ratio.is_nan()).map(|b| ratio <= b.1),
        paired_ratio: finite(paired),
        final_error: end(|r| Some(r.own)),
        final_error_moments: end(|r| r.moments),
        coverage: Coverage::of(designed().map(|r| &r.own)),
        coverage_moments: Coverage::of(designed().filter_map(|r| r.moments.as_ref())),
        curve: curve(&group.traces),
    }
}

/// Errors over runs, batch by batch: the runs of an arm all have batches of the same sizes.
fn curve(traces: &[Vec<Reading>]) -> Vec<Point> {
    let longest = traces.iter().max_by_key(|t| t.len()).map_or(&[][..], |t| &t[..]);
    let at = |evaluations: usize, of: fn(&Judged) -> f64| {
        let there = traces.iter().filter_map(|t| t.iter().find(|r| r.evaluations == evaluations));
        Spread::of(&there.map(|r| of(&r.own)).collect::<Vec<_>>())
    };
    let point = |r: &Reading| Point {
        batches: r.batches,
        evaluations: r.evaluations,
        initial: r.initial,
        relative_error: at(r.evaluations, Judged::relative),
        log_error: at(r.evaluations, Judged::distance),
    };
    longest.iter().map(point).collect()
}

/// The table of a summary.
#[must_use]
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "problem",
        "rule",
        "batch",
        "25 %",
        "median",
        "75 %",
        "batches",
        "ratio",
        "paired",
        "bar",
        "reached",
        "final error",
        "1 sd",
        "2 sd",
    ]);
    for r in rows {
        let name = if r.variant.is_empty() { r.problem.clone() } else { format!("{}, {}", r.problem, r.variant) };
        let verdict = match r.met {
            None => "",
            Some(true) => "met",
            Some(false) => "missed",
        };
        table.push([
            name,
            r.rule.clone(),
            r.batch.to_string(),
            number(r.needed.p25, 0),
            number(r.needed.median, 0),
            number(r.needed.p75, 0),
            number(r.needed_batches.median, 0),
            number(r.ratio, 2),
            number(r.paired_ratio, 2),
            verdict.into(),
            format!("{}/{}", r.reached, r.runs),
            scientific(r.final_error),
            percent(r.coverage.one),
            percent(r.coverage.two),
        ]);
    }
    table
}

/// Makes all runs and writes `readings.csv`, `summary.json`, `table.md` and a figure for each problem and variant.
///
/// # Errors
/// When a run fails or a file cannot be written.
pub fn run(name: &str, arms: &[Arm], usual: u64, plan: &Plan, workshop: &Workshop) -> Result<String> {
    let seeds = plan.seeds(usual);
    let groups = make(name, arms, seeds.clone(), workshop)?;
    let rows = rows(&groups);
    let mut output = Output::new(workshop, name)?;
    output.csv("readings", &to_csv(&groups, seeds.start)?)?;
    let results = serde_json::json!({ "arms": rows, "batch_efficiency": efficiencies(&rows) });
    output.summary(plan, seeds.end - seeds.start, &results)?;
    let title = "Evaluations to within 2 % of Z for good, by batch size and rule; coverage of the stated error bars";
    output.table("table", title, &table(&rows))?;
    for (file, figure) in crate::figures::convergence(&rows) {
        output.figure(&file, &figure)?;
    }
    Ok(output.said())
}
