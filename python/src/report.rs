//! The library's report of a run, as JSON for the Python half.

use batchquad::{
    Engine, Result,
    run::{
        Stop,
        report::{self, Report, Tally, evaluations},
        rounds,
    },
};
use pyo3::pyfunction;
use serde_json::{Value, json};

/// Evaluations answered, allowed and failed, and log Z with its sd as last believed.
pub(crate) type Progress = (usize, usize, usize, Option<(f64, f64)>);

/// How far a run is.
pub(crate) fn progress(engine: &Engine) -> Progress {
    let tally = Tally::of(engine.ledger());
    // The belief behind the last batch: a new one for every answer would cost a fit each.
    let belief = engine.history().last().and_then(|round| round.belief.log_z.zip(round.belief.log_z_sd));
    (tally.done(), engine.settings().max_evaluations, tally.failures, belief)
}

/// The report of a run with all evaluations and rounds.
pub(crate) fn report(engine: &Engine, stop: Option<&Stop>, store: Option<String>) -> Result<Value> {
    let mut report = Report::new(engine, stop)?;
    report.store = store;
    Ok(json!({
        "report": report,
        "facts": report.facts(),
        "findings": report.diagnosis.as_ref().map(|found| &found.findings),
        "names": engine.prior().names(),
        "evaluations": evaluations(engine.ledger()),
        "rounds": rounds(engine),
        "settings": engine.settings(),
    }))
}

/// A number with as many digits as `sd` makes meaningful.
#[pyfunction]
pub(crate) fn rounded(value: f64, sd: f64) -> String {
    report::rounded(value, sd)
}

/// Seconds in the unit a person would use.
#[pyfunction]
pub(crate) fn duration(seconds: f64) -> String {
    report::duration(seconds)
}
