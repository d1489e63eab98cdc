//! Integrands that the model could have drawn, with hyperparameters known and fitted.

use anyhow::Result;
use batchquad::{Settings, choose::BatchRule, run::KnownKernel};

use crate::{
    arms::Arm,
    convergence,
    plan::Plan,
    problems::{Choice, DRAW_LENGTHSCALE, draw_mean},
    runs::Workshop,
};

/// The paper makes ten.
pub const RUNS: u64 = 40;

/// The batch sizes of the paper.
pub const BATCHES: [usize; 5] = [1, 2, 4, 8, 16];

/// The two rules of the paper.
pub const RULES: [BatchRule; 2] = [BatchRule::KrigingBeliever, BatchRule::LocalPenalisation];

/// `g` of both signs and kept positive, with its hyperparameters known and fitted.
///
/// The model's process has mean zero. A draw around `m₀` has the second moment `σ² + m₀²`, which is the variance that a process around
/// zero needs to expect such values; with it, the "known" kernel of a positive draw is the best that this model can be told, not the
/// truth.
#[must_use]
pub fn arms(plan: &Plan) -> Vec<Arm> {
    let plan = &plan.as_in_the_paper();
    let mut arms = Vec::new();
    for problem in [Choice::InModel, Choice::InModelPositive] {
        let mean = draw_mean(problem == Choice::InModelPositive);
        let known = KnownKernel { log_sigma2: (1.0 + mean * mean).ln(), lengthscales: vec![DRAW_LENGTHSCALE; 2] };
        let settings = Settings { known_kernel: Some(known), ..plan.settings.clone() };
        let told = Plan { settings, ..plan.clone() };
        arms.extend(convergence::grid(problem, "known", &RULES, &BATCHES, &told));
        arms.extend(convergence::grid(problem, "fitted", &RULES, &BATCHES, plan));
    }
    arms
}

/// Makes all runs and writes what came of them.
///
/// # Errors
/// When a run fails or a file cannot be written.
pub fn run(plan: &Plan, workshop: &Workshop) -> Result<String> {
    convergence::run("in-model", &arms(plan), RUNS, plan, workshop)
}
