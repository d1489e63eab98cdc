//! How many evaluations a batch costs more than choosing one point at a time.

use std::fmt::Write;

use anyhow::Result;
use batchquad::{Settings, select::BatchRule};
use serde::{Deserialize, Serialize};

use crate::{
    problems::Choice,
    runs::{Task, Workshop, write},
    stats::{Quartiles, mean, quantile},
    table::{aligned, number, scientific},
    trace::{Judged, Reading, Spec, reached_for_good, trace},
};

/// What is compared.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The problems.
    pub problems: Vec<Choice>,
    /// The batch rules.
    pub rules: Vec<BatchRule>,
    /// The batch sizes; the first is what the others are compared with.
    pub batches: Vec<usize>,
    /// Runs of each.
    pub runs: u64,
    /// The seed of the first run; the others follow.
    pub seed: u64,
    /// Every other choice.
    pub settings: Settings,
    /// The budget of every run, or that of the problem.
    pub budget: Option<usize>,
}

/// Two percent.
pub const TOLERANCE: f64 = 0.02;

/// The bars: batch size and the largest ratio to batch 1.
pub const BARS: [(usize, f64); 3] = [(4, 1.1), (8, 1.25), (16, 1.4)];

/// The evaluations that a problem is given.
#[must_use]
pub fn budget(problem: Choice) -> usize {
    match problem {
        Choice::Mixture => 200,
        Choice::Zoo(_) => 256,
        _ => 96,
    }
}

/// One row of the table: all runs of a problem with a rule and a batch size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The problem.
    pub problem: String,
    /// The batch rule.
    pub rule: String,
    /// The batch size.
    pub batch: usize,
    /// Evaluations to 2 % for good.
    pub needed: Quartiles,
    /// The same for the exact moments of the square-root model.
    pub needed_moments: Quartiles,
    /// How many runs got there.
    pub reached: usize,
    /// Median over the median of the first batch size.
    pub ratio: Option<f64>,
    /// The median over runs of each run's own ratio, without those that never got there with either batch size.
    pub paired_ratio: Option<f64>,
    /// The median |error| at the end.
    pub final_error: f64,
    /// The same for the exact moments.
    pub final_error_moments: f64,
    /// Coverage of the run's own estimate.
    pub coverage: Coverage,
    /// Coverage of the exact moments.
    pub coverage_moments: Coverage,
}

/// Shares of readings whose error is within the claimed standard deviation, and within twice that.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// 68 % if the claim were right.
    pub one: f64,
    /// 95 % if the claim were right.
    pub two: f64,
    /// The median of |error|/sd, 0.67 if the claim were right.
    pub median_z: f64,
}

impl Coverage {
    /// Over all readings given.
    #[must_use]
    pub fn of(judged: &[Judged]) -> Self {
        let z: Vec<f64> =
            judged.iter().map(|j| if let Some(sd) = j.sd { j.distance() / sd } else { f64::INFINITY }).collect();
        let within = |k: f64| mean(&z.iter().map(|v| f64::from(u8::from(*v <= k))).collect::<Vec<_>>());
        Self { one: within(1.0), two: within(2.0), median_z: quantile(&z, 0.5) }
    }
}

fn rule_name(rule: BatchRule) -> Result<String> {
    Ok(serde_json::to_value(rule)?.as_str().unwrap_or_default().to_string())
}

/// Makes all runs, writes `readings.csv`, `summary.json` and `table.txt`, and gives the table.
///
/// # Errors
/// When a run fails or a file cannot be written.
pub fn run(plan: &Plan, workshop: &Workshop) -> Result<String> {
    let mut groups = Vec::new();
    let mut tasks = Vec::new();
    for &problem in &plan.problems {
        for &rule in &plan.rules {
            for &batch in &plan.batches {
                groups.push((problem, rule, batch));
                for seed in plan.seed..plan.seed + plan.runs {
                    let max_evaluations = plan.budget.unwrap_or_else(|| budget(problem));
                    let settings = Settings { batch, batch_rule: rule, max_evaluations, ..plan.settings.clone() };
                    let key = format!("{}-{}-b{batch:02}-s{seed:03}", problem.name(), rule_name(rule)?);
                    tasks.push(Task { key, spec: Spec { problem, seed, settings } });
                }
            }
        }
    }
    let traces = workshop.all(&tasks, trace)?;
    let mut rows: Vec<Row> = Vec::new();
    let mut csv = String::from(
        "problem,rule,batch,seed,batches,evaluations,error,sd,error_m,sd_m,sigma2,lengthscale,fallbacks\n",
    );
    let mut base: Vec<f64> = Vec::new();
    for (group, chunk) in groups.iter().zip(traces.chunks(plan.runs as usize)) {
        let (problem, rule, batch) = (group.0.name(), rule_name(group.1)?, group.2);
        for (seed, readings) in (plan.seed..).zip(chunk) {
            for r in readings {
                writeln!(csv, "{problem},{rule},{batch},{seed},{}", line(r))?;
            }
        }
        let needed = |judged: fn(&Reading) -> Option<Judged>| -> Vec<f64> {
            chunk.iter().map(|t| reached_for_good(t, TOLERANCE, judged)).collect()
        };
        let (own, moments) = (needed(|r| Some(r.own)), needed(|r| r.moments));
        if batch == plan.batches[0] {
            base.clone_from(&own);
        }
        // Where neither got there, there is nothing to compare.
        let both = own.iter().zip(&base).filter(|(a, b)| a.is_finite() || b.is_finite());
        let pairs: Vec<f64> = both.map(|(a, b)| a / b).collect();
        let ends: Vec<&Reading> = chunk.iter().filter_map(|t| t.last()).collect();
        let end = |judged: fn(&Reading) -> Option<Judged>| {
            let errors: Vec<f64> = ends.iter().map(|r| judged(r).map_or(f64::INFINITY, |j| j.distance())).collect();
            quantile(&errors, 0.5)
        };
        let judged: Vec<Judged> = chunk.iter().flatten().map(|r| r.own).collect();
        let judged_moments: Vec<Judged> = chunk.iter().flatten().filter_map(|r| r.moments).collect();
        let finite = |v: f64| Some(v).filter(|v| v.is_finite());
        rows.push(Row {
            problem: problem.into(),
            rule,
            batch,
            needed: Quartiles::of(&own),
            needed_moments: Quartiles::of(&moments),
            reached: own.iter().filter(|n| n.is_finite()).count(),
            ratio: finite(quantile(&own, 0.5) / quantile(&base, 0.5)),
            paired_ratio: finite(quantile(&pairs, 0.5)),
            final_error: end(|r| Some(r.own)),
            final_error_moments: end(|r| r.moments),
            coverage: Coverage::of(&judged),
            coverage_moments: Coverage::of(&judged_moments),
        });
    }
    let table = render(&rows, plan.runs);
    write(&workshop.out.join("readings.csv"), csv.as_bytes())?;
    write(&workshop.out.join("summary.json"), &serde_json::to_vec_pretty(&rows)?)?;
    write(&workshop.out.join("table.txt"), table.as_bytes())?;
    Ok(table)
}

/// A reading as the end of a CSV line; what is absent is empty.
fn line(r: &Reading) -> String {
    let cell = |v: Option<f64>| v.map_or(String::new(), |v| format!("{v:?}"));
    let moments = r.moments.unwrap_or(Judged { error: None, sd: None });
    format!(
        "{},{},{},{},{},{},{:?},{:?},{}",
        r.batches,
        r.evaluations,
        cell(r.own.error),
        cell(r.own.sd),
        cell(moments.error),
        cell(moments.sd),
        r.sigma2,
        r.lengthscale,
        r.fallbacks
    )
}

fn render(rows: &[Row], runs: u64) -> String {
    let head = [
        "problem", "rule", "batch", "q25", "median", "q75", "ratio", "paired", "bar", "reached", "M median", "end",
        "end M", "1sd", "2sd", "|z|", "M 1sd", "M 2sd", "M |z|",
    ];
    let mut lines = vec![head.map(String::from).to_vec()];
    for r in rows {
        let bar = BARS.iter().find(|b| b.0 == r.batch).map(|b| b.1);
        let verdict = match (bar, r.ratio) {
            (None, _) => String::new(),
            (Some(bar), Some(ratio)) if ratio <= bar => "met".into(),
            (Some(bar), _) => format!("> {bar}"),
        };
        lines.push(vec![
            r.problem.clone(),
            r.rule.clone(),
            r.batch.to_string(),
            number(r.needed.lower, 0),
            number(r.needed.median, 1),
            number(r.needed.upper, 0),
            number(r.ratio, 2),
            number(r.paired_ratio, 2),
            verdict,
            format!("{}/{runs}", r.reached),
            number(r.needed_moments.median, 1),
            scientific(r.final_error),
            scientific(r.final_error_moments),
            number(Some(r.coverage.one), 2),
            number(Some(r.coverage.two), 2),
            number(Some(r.coverage.median_z), 1),
            number(Some(r.coverage_moments.one), 2),
            number(Some(r.coverage_moments.two), 2),
            number(Some(r.coverage_moments.median_z), 1),
        ]);
    }
    aligned(&lines)
}
