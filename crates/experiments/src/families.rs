//! The default belief on [`families`](crate::problems::families) of generated problems, on which nothing was tuned.

use std::{collections::HashMap, path::Path};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::{
    plan::Plan,
    problems::{
        Choice,
        families::{Family, STANDARD_ERROR},
    },
    readings::{NOMINAL, Reading, Readings, Study},
    runs::Workshop,
    stats::{mean, quantile},
    table::{Table, number, percent, scientific},
};

/// The numbers of evaluations at which runs are read.
pub const CHECKPOINTS: [usize; 5] = [64, 96, 128, 192, 256];

/// Batch sizes.
pub const BATCHES: [usize; 1] = [8];

/// Members of each family.
const RUNS: u64 = 20;

/// Errors are compared by their logarithms to the base of ten, between these: below the first the truths are not known, beyond the
/// last nothing was.
const RANGE: (f64, f64) = (1e-6, 1e3);

fn decades(error: f64) -> f64 {
    error.clamp(RANGE.0, RANGE.1).log10()
}

/// What came of the members of a family.
#[derive(Debug, Clone, Serialize)]
struct Row {
    readings: String,
    count: usize,
    /// The share that states less than a nat; of these the rest but the last two.
    arrived: f64,
    median_error: Option<f64>,
    /// The shares within the 68 % and 95 % intervals.
    within: [f64; 2],
    /// Errors above 0.2 and above five stated standard deviations.
    wrong: usize,
    /// The mean of log₁₀ |Δ log Z|.
    decades: f64,
}

fn row(name: &str, readings: &[&Reading]) -> Row {
    let arrived: Vec<&Reading> = readings.iter().copied().filter(|r| r.arrived()).collect();
    let share = |n: usize, of: usize| n as f64 / of as f64;
    let within = |percent: f64| share(arrived.iter().filter(|r| r.holds(percent)).count(), arrived.len());
    let median = quantile(&arrived.iter().map(|r| r.error()).collect::<Vec<_>>(), 0.5);
    Row {
        readings: name.into(),
        count: readings.len(),
        arrived: share(arrived.len(), readings.len()),
        median_error: Some(median).filter(|v| v.is_finite()),
        within: [within(NOMINAL[1]), within(NOMINAL[3])],
        wrong: readings.iter().filter(|r| r.wrong()).count(),
        decades: mean(&readings.iter().map(|r| decades(r.error())).collect::<Vec<_>>()),
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "readings",
        "number",
        "arrived",
        "median error of these",
        "within 68 %",
        "within 95 %",
        "wrong",
        "mean log10 error of all",
    ]);
    for r in rows {
        table.push([
            r.readings.clone(),
            r.count.to_string(),
            percent(r.arrived),
            r.median_error.map_or_else(|| "–".into(), scientific),
            percent(r.within[0]),
            percent(r.within[1]),
            r.wrong.to_string(),
            number(Some(r.decades), 3),
        ]);
    }
    table
}

/// Means over members with the standard error: by how many evaluations, and of how many members.
#[derive(Debug, Clone, Serialize)]
struct Score {
    evaluations: String,
    members: usize,
    mean: f64,
    error: f64,
}

fn score(evaluations: String, values: &[f64]) -> Score {
    let (n, mean) = (values.len() as f64, mean(values));
    let square: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Score { evaluations, members: values.len(), mean, error: (square / (n * (n - 1.0))).sqrt() }
}

/// Of all members at each checkpoint, and of the means over a member's checkpoints.
fn scores(readings: &[Reading], checkpoints: &[usize], value: impl Fn(&Reading) -> Option<f64>) -> Vec<Score> {
    let at =
        |n: usize| -> Vec<f64> { readings.iter().filter(|r| r.judged.evaluations == n).filter_map(&value).collect() };
    let mut all: Vec<Score> = checkpoints.iter().map(|&n| score(n.to_string(), &at(n))).collect();
    let member = |r: &Reading| (r.problem.name(), r.seed, r.batch);
    let members = readings.chunk_by(|a, b| member(a) == member(b));
    let means = members.map(|all| mean(&all.iter().filter_map(&value).collect::<Vec<_>>()));
    all.push(score("all".into(), &means.filter(|m| m.is_finite()).collect::<Vec<_>>()));
    all
}

fn score_table(scores: &[Score], what: &str) -> Table {
    let mut table = Table::new(["evaluations", "members", what, "standard error"]);
    for s in scores {
        table.push([s.evaluations.clone(), s.members.to_string(), number(Some(s.mean), 3), number(Some(s.error), 3)]);
    }
    table
}

/// A problem, a seed, a batch size and a number of evaluations.
type Place = (String, u64, usize, usize);

/// What is needed of a line of `readings.csv`; the other columns differ between versions.
#[derive(Deserialize)]
struct Earlier {
    problem: String,
    seed: u64,
    batch: usize,
    evaluations: usize,
    error: f64,
}

/// The errors in a `readings.csv`.
fn earlier(path: &Path) -> Result<HashMap<Place, f64>> {
    let mut reader = csv::Reader::from_path(path).with_context(|| format!("reading {}", path.display()))?;
    let mut all = HashMap::new();
    for line in reader.deserialize() {
        let Earlier { problem, seed, batch, evaluations, error } =
            line.with_context(|| format!("in {}", path.display()))?;
        all.insert((problem, seed, batch, evaluations), if error.is_finite() { error.abs() } else { f64::INFINITY });
    }
    Ok(all)
}

/// By how many decades errors are larger than those of another version on the same members.
fn compared(readings: &Readings, path: &Path) -> Result<Vec<Score>> {
    let earlier = earlier(path)?;
    let difference = |r: &Reading| {
        let place = (r.problem.name().to_owned(), r.seed, r.batch, r.judged.evaluations);
        Some(decades(r.error()) - decades(*earlier.get(&place)?))
    };
    Ok(scores(&readings.all, &readings.checkpoints, difference))
}

/// Makes all runs, or those of some families, and writes what [`coverage`](crate::calibration) writes, with errors that have arrived by
/// family and the mean of their logarithms; beside those in the `readings.csv` of another version, if there is one.
///
/// # Errors
/// As the runs, or when results cannot be read or written.
pub fn run(
    plan: &Plan,
    workshop: &Workshop,
    only: &[String],
    batches: &[usize],
    against: Option<&Path>,
) -> Result<String> {
    let study = Study {
        name: "families",
        problems: Family::ALL.iter().copied().map(Choice::Family).collect(),
        checkpoints: &CHECKPOINTS,
        batches,
        runs: RUNS,
        known_to: STANDARD_ERROR,
    };
    let readings = study.make(plan, workshop, only)?;
    let of = |name: &str, which: &dyn Fn(&Reading) -> bool| {
        row(name, &readings.all.iter().filter(|r| which(r)).collect::<Vec<_>>())
    };
    let mut rows: Vec<Row> = readings.problems.iter().map(|&p| of(p.name(), &|r| r.problem == p)).collect();
    rows.extend(readings.checkpoints.iter().map(|&n| of(&format!("{n} evaluations"), &|r| r.judged.evaluations == n)));
    rows.push(of("all", &|_| true));
    let means = scores(&readings.all, &readings.checkpoints, |r| Some(decades(r.error())));
    let differences = against.map(|path| compared(&readings, path)).transpose()?;
    let mut more = Map::new();
    more.insert("families".into(), serde_json::to_value(&rows)?);
    more.insert("log10_error".into(), serde_json::to_value(&means)?);
    more.insert("log10_error_against".into(), serde_json::to_value(&differences)?);
    let mut output = readings.write(plan, workshop, more)?;
    output.table("families", "What states less than a nat, and how good it is", &table(&rows))?;
    output.table("means", "The mean of log10 |Δ log Z|", &score_table(&means, "mean log10 error"))?;
    if let Some(differences) = &differences {
        let table = score_table(differences, "mean difference");
        output.table("against", "By how much log10 |Δ log Z| is larger than it was", &table)?;
    }
    Ok(output.said())
}
