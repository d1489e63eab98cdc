//! `check`: is the problem file right, and does the likelihood answer?

use std::{path::Path, time::Duration};

use anyhow::Result;
use batchquad::{
    numeric::job_seed,
    types::{Job, JobId, Outcome},
};

use crate::{
    exit::Exit,
    output::{duration, facts, note, print},
    problem::{Problem, default_store, within},
    signals::Signals,
};

pub fn check(path: &Path) -> Result<Exit> {
    let problem = Problem::read(path)?;
    let likelihood = problem.likelihood()?;
    let settings = &problem.settings;
    let mut rows: Vec<(&str, String)> = vec![("problem", path.display().to_string())];
    rows.extend(
        problem.parameters.describe().into_iter().map(|(names, prior)| ("parameter", format!("{names} ~ {prior}"))),
    );
    let initial = (settings.start.len() + settings.design_size(problem.prior.dim())).min(settings.max_evaluations);
    rows.extend([
        likelihood.describe(),
        (
            "plan",
            format!(
                "{initial} points to begin with, then batches of up to {}, {} evaluations at most{}{}",
                settings.batch,
                settings.max_evaluations,
                settings.target_sd.map(|sd| format!(" or until log Z is known to ± {sd}")).unwrap_or_default(),
                if settings.repeats() > 1 { format!("; {} times", settings.repeats()) } else { String::new() }
            ),
        ),
        ("store", default_store(path).display().to_string()),
    ]);
    print(&facts(&rows))?;

    let id = JobId(0);
    let theta = problem.prior.to_theta(&vec![0.0; problem.prior.dim()])?;
    let mut evaluator = likelihood.evaluator(problem.prior.names(), 1).map_err(|e| within("likelihood", e).of(path))?;
    let signals = Signals::listen(evaluator.interrupt(), || {}, || {})?;
    evaluator.submit(Job { id, theta: theta.clone(), seed: job_seed(problem.seed.unwrap_or(0), id) })?;
    let finished = loop {
        if signals.arrived() {
            evaluator.interrupt().raise();
        }
        match evaluator.wait(Duration::from_millis(50))? {
            Some(finished) => break finished,
            None if evaluator.in_flight() == 0 => return Ok(Exit::Interrupted),
            None => {}
        }
    };
    evaluator.shutdown();
    let point: Vec<String> = problem.prior.names().iter().zip(&theta).map(|(n, v)| format!("{n} = {v:?}")).collect();
    if !finished.stderr_tail.is_empty() {
        note(&format!("standard error of the command: {}", finished.stderr_tail));
    }
    match finished.outcome {
        Outcome::Value(value) => {
            let took = duration(finished.seconds);
            let noise = finished.sd.map(|sd| format!(" ± {sd}")).unwrap_or_default();
            print(&facts(&[(
                "evaluated",
                format!("log-likelihood {value:?}{noise} at the prior median ({}), in {took}", point.join(", ")),
            )]))?;
            Ok(Exit::Done)
        }
        Outcome::Failed { kind, message } => {
            note(&format!("the evaluation at the prior median ({}) failed ({kind}): {message}", point.join(", ")));
            Ok(Exit::Failed)
        }
    }
}
