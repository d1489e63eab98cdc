//! Mixtures of Gaussians in four dimensions, each seed another one.

use anyhow::Result;

use crate::{
    arms::Arm,
    convergence,
    in_model::{BATCHES, RULES},
    plan::Plan,
    problems::Choice,
    runs::Workshop,
};

/// The paper makes ten.
pub const RUNS: u64 = 40;

/// All rules and batch sizes.
#[must_use]
pub fn arms(plan: &Plan) -> Vec<Arm> {
    convergence::grid(Choice::Mixture, "", &RULES, &BATCHES, &plan.as_in_the_paper())
}

/// Makes all runs and writes what came of them.
///
/// # Errors
/// When a run fails or a file cannot be written.
pub fn run(plan: &Plan, workshop: &Workshop) -> Result<String> {
    convergence::run("synthetic", &arms(plan), RUNS, plan, workshop)
}
