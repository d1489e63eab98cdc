//! How often the stated intervals hold the truth, on every problem, with noise, jumps and constraints among them.

use anyhow::Result;
use serde_json::Map;

use crate::{
    plan::Plan,
    problems::{
        Choice,
        world::{Noise, World},
        zoo::Animal,
    },
    readings::Study,
    runs::Workshop,
};

/// The numbers of evaluations at which runs are read.
pub const CHECKPOINTS: [usize; 4] = [32, 64, 128, 256];

/// Batch sizes.
pub const BATCHES: [usize; 3] = [1, 8, 16];

/// Runs of each kind.
const RUNS: u64 = 40;

/// The truths are known to this many nats, so a smaller error is none.
const KNOWN_TO: f64 = 5e-4;

/// All problems of the project, some of them also with noise.
#[must_use]
pub fn problems() -> Vec<Choice> {
    let mut all: Vec<Choice> = Animal::ALL.map(Choice::Zoo).to_vec();
    all.extend([Choice::Mixture, Choice::GpEvidence, Choice::InModel, Choice::InModelPositive]);
    all.extend(World::ALL.iter().copied().map(Choice::World));
    for world in [World::Gaussian2, World::Rosenbrock, World::Linear4By10, World::Logistic5] {
        all.extend([Noise::Low, Noise::Middle, Noise::High].map(|noise| Choice::Noisy(world, noise)));
    }
    all
}

/// Makes all runs, or those of some problems and batch sizes, and writes `readings.csv`, `summary.json`, tables and a figure.
///
/// # Errors
/// As the runs, or when the results cannot be written.
pub fn run(plan: &Plan, workshop: &Workshop, only: &[String], batches: &[usize]) -> Result<String> {
    let study = Study {
        name: "coverage",
        problems: problems(),
        checkpoints: &CHECKPOINTS,
        batches,
        runs: RUNS,
        known_to: KNOWN_TO,
    };
    Ok(study.make(plan, workshop, only)?.write(plan, workshop, Map::new())?.said())
}
