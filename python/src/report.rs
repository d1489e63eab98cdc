//! All that is known about a run, as JSON for the Python half.

use batchquad::{
    Engine, Result,
    journal::Entry,
    run::{diagnose, rounds},
    types::Outcome,
};
use serde_json::{Value, json};

/// Evaluations answered, allowed and failed, and log Z with its sd as last believed.
pub(crate) type Progress = (usize, usize, usize, Option<(f64, f64)>);

/// How far a run is.
pub(crate) fn progress(engine: &Engine) -> Progress {
    let answered = |entry: &&Entry| !entry.is_pending();
    let ledger = engine.ledger();
    let done = ledger.entries().filter(answered).count() + ledger.imported().len();
    let failed = ledger.entries().filter(answered).filter(|entry| entry.value().is_none()).count();
    // The belief behind the last batch: a new one for every answer would cost a fit each.
    let belief = engine.history().last().and_then(|round| round.belief.log_z.zip(round.belief.log_z_sd));
    (done, engine.settings().max_evaluations, failed, belief)
}

/// The report of a run.
pub(crate) fn report(engine: &Engine) -> Result<Value> {
    let ledger = engine.ledger();
    let current = engine.current().ok();
    let estimate = current.map(|c| &c.estimate).filter(|e| e.log_z.is_finite() && e.log_z_sd.is_finite());
    let evaluations: Vec<Value> = ledger
        .batches()
        .iter()
        .enumerate()
        .flat_map(|(batch, asked)| asked.jobs.iter().map(move |job| (batch, job.id)))
        .map(|(batch, id)| ledger.entry(id).map(|entry| evaluation(batch, entry)))
        .collect::<Result<_>>()?;
    let rounds: Vec<Value> = rounds(engine).iter().map(|round| json!(round)).collect();
    let imported: Vec<Value> = ledger.imported().iter().map(|row| json!(row)).collect();
    Ok(json!({
        "names": engine.prior().names(),
        "log_z": estimate.map(|e| e.log_z),
        "log_z_sd": estimate.map(|e| e.log_z_sd),
        "evaluations": evaluations,
        "imported": imported,
        "rounds": rounds,
        "batches": ledger.batches().len(),
        "prior_mass_near_failures": engine.excluded_mass()?,
        "conflicts": ledger.conflicts().map(|entry| entry.job.id.0).collect::<Vec<_>>(),
        "seconds_choosing": ledger.batches().iter().map(|asked| asked.seconds).sum::<f64>(),
        "diagnosis": diagnose(engine).ok().map(|found| json!({
            "verdict": found.verdict.as_str(), "summary": found.summary(), "findings": found.findings,
        })),
        "repairs": current.map(|c| c.believed.repairs),
        "settings": engine.settings(),
        "seed": engine.seed(),
    }))
}

fn evaluation(batch: usize, entry: &Entry) -> Value {
    let told = entry.answer.as_ref();
    let (status, value, kind, message) = match told.map(|told| &told.outcome) {
        None => ("pending", None, None, None),
        Some(Outcome::Value(value)) => ("value", Some(*value), None, None),
        Some(Outcome::Failed { kind, message }) => ("failed", None, Some(kind.as_str()), Some(message)),
    };
    json!({
        "id": entry.job.id, "batch": batch, "theta": entry.job.theta, "status": status,
        // JSON has no infinities; a missing number of an answered job is −∞.
        "log_likelihood": value.filter(|v| v.is_finite()), "kind": kind, "message": message,
        "attempts": entry.attempts, "seconds": told.map(|t| t.seconds), "worker": told.and_then(|t| t.worker.clone()),
        "failures": entry.failures.iter().map(|f| json!([f.kind, f.message])).collect::<Vec<_>>(),
    })
}
