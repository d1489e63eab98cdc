//! The default belief on problems of the kind that users bring, beside the square root's: errors, worst errors and error bars.

use anyhow::Result;
use batchquad::{Settings, run::SurrogateChoice};
use serde::Serialize;

use crate::{
    arms::{Arm, Group, make},
    output::Output,
    plan::Plan,
    problems::{
        Choice,
        world::{Noise, World},
        zoo::Animal,
    },
    runs::Workshop,
    stats::quantile,
    table::{Table, scientific},
    trace::{Judged, Reading},
};

/// Runs of each kind.
const RUNS: u64 = 10;

/// Errors above this and above five error bars are the worst kind of answer.
const WRONG: f64 = 0.2;

/// The problems and when they are read.
#[must_use]
pub fn problems() -> Vec<(Choice, Vec<usize>)> {
    let zoo = |animal, at: &[usize]| (Choice::Zoo(animal), at.to_vec());
    let world = |world, at: &[usize]| (Choice::World(world), at.to_vec());
    let mut all = vec![
        zoo(Animal::Banana, &[64, 104]),
        zoo(Animal::Gaussian6, &[64, 128]),
        zoo(Animal::Gaussian10, &[128]),
        zoo(Animal::Needle, &[48]),
        (Choice::GpEvidence, vec![64]),
        (Choice::Mixture, vec![104, 200]),
        (Choice::InModel, vec![64]),
        zoo(Animal::StudentT, &[128]),
        zoo(Animal::Funnel, &[128]),
        zoo(Animal::ORings, &[64]),
        zoo(Animal::Nile, &[64]),
    ];
    for &problem in World::ALL {
        let at: &[usize] = match problem.name() {
            "four-modes" => &[64, 96, 128],
            name if name.starts_with("linear-4") => &[64],
            name if name.starts_with("linear-6") => &[96],
            name if name.starts_with("linear-8") => &[144],
            name if name.starts_with("logistic") => &[96, 128],
            name if name.starts_with("lotka") => &[200, 300],
            "sir" => &[64],
            "sinusoid" => &[128, 200],
            _ => &[64, 128],
        };
        all.push(world(problem, at));
        if problem.name() == "gaussian-2" {
            all.extend([Noise::Low, Noise::Middle, Noise::High].map(|n| (Choice::Noisy(problem, n), vec![64, 128])));
        }
    }
    all
}

/// A problem read at one number of evaluations.
#[derive(Debug, Clone, Serialize)]
struct Row {
    problem: String,
    evaluations: usize,
    median: f64,
    worst: f64,
    median_sd: f64,
    /// Runs that state a bar below one nat.
    stated: usize,
    /// Of these, how many have the truth within one and two standard deviations.
    within: [usize; 2],
    /// Of all, how many are wrong by more than five bars and [`WRONG`].
    wrong: usize,
    runs: usize,
    /// The median error with the square root's belief.
    square_root: f64,
}

/// The last reading with at most so many evaluations.
fn at(readings: &[Reading], evaluations: usize) -> Judged {
    let last = readings.iter().rev().find(|r| r.evaluations <= evaluations);
    last.map_or(Judged { error: None, sd: None }, |r| r.own)
}

fn row(problem: Choice, evaluations: usize, log: &Group, root: &Group) -> Row {
    let read = |group: &Group| group.traces.iter().map(|r| at(r, evaluations)).collect::<Vec<_>>();
    let (ours, theirs) = (read(log), read(root));
    let distances: Vec<f64> = ours.iter().map(Judged::distance).collect();
    let sds: Vec<f64> = ours.iter().map(|j| j.sd.unwrap_or(f64::INFINITY)).collect();
    let stated: Vec<(f64, f64)> = distances.iter().copied().zip(sds.iter().copied()).filter(|r| r.1 < 1.0).collect();
    let within = |wide: f64| stated.iter().filter(|(e, sd)| *e <= wide * sd).count();
    Row {
        problem: problem.name().into(),
        evaluations,
        median: quantile(&distances, 0.5),
        worst: quantile(&distances, 1.0),
        median_sd: quantile(&sds, 0.5),
        stated: stated.len(),
        within: [within(1.0), within(2.0)],
        wrong: distances.iter().zip(&sds).filter(|(e, sd)| **e > WRONG && **e > 5.0 * **sd).count(),
        runs: ours.len(),
        square_root: quantile(&theirs.iter().map(Judged::distance).collect::<Vec<_>>(), 0.5),
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "problem",
        "evaluations",
        "median error",
        "worst",
        "median sd",
        "sd < 1",
        "within 1 sd",
        "within 2 sd",
        "wrong",
        "square root",
    ]);
    for r in rows {
        table.push([
            r.problem.clone(),
            r.evaluations.to_string(),
            scientific(r.median),
            scientific(r.worst),
            scientific(r.median_sd),
            format!("{}/{}", r.stated, r.runs),
            r.within[0].to_string(),
            r.within[1].to_string(),
            r.wrong.to_string(),
            scientific(r.square_root),
        ]);
    }
    table
}

/// Makes all runs, or those of some problems, and writes `summary.json` and a table.
///
/// # Errors
/// As the runs, or when the results cannot be written.
pub fn run(plan: &Plan, workshop: &Workshop, only: &[String]) -> Result<String> {
    let mut problems = problems();
    if let Some(unknown) = only.iter().find(|name| problems.iter().all(|(p, _)| p.name() != name.as_str())) {
        let names: Vec<&str> = problems.iter().map(|(p, _)| p.name()).collect();
        anyhow::bail!("--only {unknown}: expected one of {}", names.join(", "));
    }
    problems.retain(|(p, _)| only.is_empty() || only.iter().any(|name| name == p.name()));
    let seeds = plan.seeds(RUNS);
    let mut arms = Vec::new();
    for (problem, checkpoints) in &problems {
        let last = checkpoints.iter().copied().max().unwrap_or(128);
        let max_evaluations = plan.budget(last).min(last);
        for surrogate in [plan.settings.surrogate, SurrogateChoice::WsabiL] {
            let settings = Settings { surrogate, max_evaluations, ..plan.settings.clone() };
            let variant = if surrogate == SurrogateChoice::WsabiL { "square root" } else { "default" };
            arms.push(Arm { problem: *problem, variant: variant.into(), settings });
        }
    }
    let groups = make("world", &arms, seeds.clone(), workshop)?;
    let mut rows = Vec::new();
    for ((problem, checkpoints), pair) in problems.iter().zip(groups.chunks(2)) {
        let [log, root] = pair else { continue };
        let reached = checkpoints.iter().filter(|n| plan.budget.is_none_or(|budget| **n <= budget));
        rows.extend(reached.map(|&n| row(*problem, n, log, root)));
    }
    let mut output = Output::new(workshop, "world")?;
    output.summary(plan, seeds.end - seeds.start, &rows)?;
    output.table("errors", "|Δ log Z| of the default belief, and the square root's", &table(&rows))?;
    Ok(output.said())
}
