//! The library's report of a run, as JSON for the Python half.

use batchquad::{
    Engine, Error, Result,
    infer::Standing,
    run::{
        Stop,
        report::{self, Contender, Report, Tally, evaluations},
    },
};
use pyo3::{PyResult, Python, pyfunction};
use serde_json::{Value, json};

use crate::errors::exception;

/// Evaluations answered, allowed and failed, and log Z with its sd as last believed.
pub(crate) type Progress = (usize, usize, usize, Option<(f64, f64)>);

/// How far a run is.
pub(crate) fn progress(engine: &Engine) -> Progress {
    let tally = Tally::of(engine.ledger());
    // The belief behind the last batch: a new one for every answer would cost a fit each.
    let belief = engine.history().last().and_then(|round| round.belief.log_z.zip(round.belief.log_z_sd));
    (tally.done(), engine.settings().most_evaluations(), tally.failures, belief)
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
        "labels": report::labels(engine.ledger()),
        "evaluations": evaluations(engine.ledger()),
        "rounds": engine.rounds(),
        "settings": engine.settings(),
    }))
}

/// A number with as many digits as `sd` makes meaningful.
#[pyfunction]
pub(crate) fn rounded(value: f64, sd: f64) -> String {
    report::rounded(value, sd)
}

/// A probability with its standard deviation; one that would read as zero or one is bounded instead.
#[pyfunction]
pub(crate) fn probability(p: f64, sd: f64) -> String {
    report::probability(p, sd)
}

/// What a comparison says in a sentence: names, `(log_bayes_factor, its sd, probability, its sd)` and verdicts of the models.
#[pyfunction]
pub(crate) fn conclusion(
    py: Python<'_>,
    names: Vec<String>,
    standings: Vec<(f64, f64, f64, f64)>,
    verdicts: Vec<Option<String>>,
) -> PyResult<String> {
    let standings: Vec<Standing> = standings
        .into_iter()
        .map(|(log_bayes_factor, log_bayes_factor_sd, probability, probability_sd)| Standing {
            log_bayes_factor,
            log_bayes_factor_sd,
            probability,
            probability_sd,
        })
        .collect();
    let mut models = Vec::new();
    for ((name, standing), verdict) in names.iter().zip(&standings).zip(verdicts) {
        let read = |word: String| {
            let words = "fine, look or do-not-trust";
            serde_json::from_value(word.as_str().into())
                .map_err(|_| exception(py, &Error::invalid("verdict", word, words)))
        };
        models.push(Contender { name, standing, verdict: verdict.map(read).transpose()? });
    }
    Ok(report::conclusion(&models))
}

/// The program `batchquad`, given the words of its command line; its exit code.
#[pyfunction]
pub(crate) fn program(py: Python<'_>, words: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| batchquad_cli::program(words))
}

/// Seconds in the unit a person would use.
#[pyfunction]
pub(crate) fn duration(seconds: f64) -> String {
    report::duration(seconds)
}
