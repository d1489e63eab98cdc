//! A table of |Δ log Z| over the zoo at several budgets.

use std::fmt::Write;

use anyhow::Result;
use batchquad::Settings;

use crate::{
    problems::{Choice, zoo::Animal},
    runs::{Task, Workshop, write},
    stats::quantile,
    table::{aligned, number, scientific},
    trace::{Judged, Reading, Spec, trace},
};

/// The numbers of evaluations at which errors are read.
pub const CHECKPOINTS: [usize; 4] = [32, 64, 128, 256];

/// The last reading within a budget.
fn at(readings: &[Reading], evaluations: usize) -> Option<&Reading> {
    readings.iter().rev().find(|r| r.evaluations <= evaluations)
}

/// Runs every animal with the settings as they are, and writes `zoo.csv` and `table.txt`: medians over seeds.
///
/// # Errors
/// When a run fails or a file cannot be written.
pub fn run(settings: &Settings, runs: u64, seed: u64, workshop: &Workshop) -> Result<String> {
    let settings = Settings { max_evaluations: CHECKPOINTS[CHECKPOINTS.len() - 1], ..settings.clone() };
    let tasks: Vec<Task<Spec>> = Animal::ALL
        .iter()
        .flat_map(|&animal| {
            let settings = settings.clone();
            (seed..seed + runs).map(move |seed| Task {
                key: format!("zoo-{}-s{seed:03}", animal.name()),
                spec: Spec { problem: Choice::Zoo(animal), seed, settings: settings.clone() },
            })
        })
        .collect();
    let traces = workshop.all(&tasks, trace)?;
    let mut head = vec!["problem".to_string()];
    head.extend(CHECKPOINTS.map(|n| format!("{n}")));
    head.extend(CHECKPOINTS.map(|n| format!("M {n}")));
    head.extend(["sd".to_string(), "M sd".into(), "lengthscale".into(), "fallbacks".into()]);
    let mut rows = vec![head];
    let mut csv = String::from("problem,seed,evaluations,error,sd,error_m,sd_m\n");
    for (animal, chunk) in Animal::ALL.iter().zip(traces.chunks(runs as usize)) {
        let median = |of: &dyn Fn(&[Reading]) -> f64| quantile(&chunk.iter().map(|t| of(t)).collect::<Vec<_>>(), 0.5);
        let own = |r: &Reading| r.own;
        let moments = |r: &Reading| r.moments.unwrap_or(Judged { error: None, sd: None });
        let mut row = vec![animal.name().to_string()];
        for judged in [&own as &dyn Fn(&Reading) -> Judged, &moments] {
            for n in CHECKPOINTS {
                row.push(scientific(median(&|t| at(t, n).map_or(f64::INFINITY, |r| judged(r).distance()))));
            }
        }
        for judged in [&own as &dyn Fn(&Reading) -> Judged, &moments] {
            row.push(scientific(median(&|t| t.last().and_then(|r| judged(r).sd).unwrap_or(f64::INFINITY))));
        }
        row.push(number(Some(median(&|t| t.last().map_or(f64::NAN, |r| r.lengthscale))), 3));
        row.push(number(Some(median(&|t| t.last().map_or(f64::NAN, |r| r.fallbacks as f64))), 0));
        rows.push(row);
        for (seed, readings) in (seed..).zip(chunk) {
            for r in readings {
                let cell = |v: Option<f64>| v.map_or(String::new(), |v| format!("{v:?}"));
                let m = moments(r);
                let (e, s, em, sm) = (cell(r.own.error), cell(r.own.sd), cell(m.error), cell(m.sd));
                writeln!(csv, "{},{seed},{},{e},{s},{em},{sm}", animal.name(), r.evaluations)?;
            }
        }
    }
    let table = aligned(&rows);
    write(&workshop.out.join("zoo.csv"), csv.as_bytes())?;
    write(&workshop.out.join("table.txt"), table.as_bytes())?;
    Ok(table)
}
