//! Words between Python and the library: settings, endings, kinds of failures, jobs.

use batchquad::{
    Error, Settings,
    journal::{Applied, Replay},
    run::{Status, Stop},
    types::{FailureKind, Job},
};
use numpy::PyArray1;
use pyo3::prelude::*;
use serde_json::{Map, Value};

use crate::errors::{exception, fault};

/// Job id, θ and the seed for the likelihood's own randomness.
pub(crate) type Asked<'py> = (u64, Bound<'py, PyArray1<f64>>, u64);

/// A word for how it ended, and the reason.
pub(crate) type Ending = (&'static str, String);

/// What was found on opening.
#[derive(Default)]
pub(crate) struct Opened {
    pub(crate) remark: Option<String>,
    pub(crate) was_killed: bool,
}

impl Opened {
    pub(crate) fn new(replay: &Replay) -> Self {
        Self { remark: remark(replay), was_killed: replay.left_by.is_some() }
    }
}

/// `text` without what could move a terminal's cursor or disguise its contents.
#[pyfunction]
pub(crate) fn clean(text: &str) -> String {
    batchquad::evaluate::clean(text)
}

pub(crate) fn read_settings(py: Python<'_>, text: &str) -> PyResult<Settings> {
    let given: Map<String, Value> = serde_json::from_str(text).map_err(|e| fault(&e.to_string()))?;
    for (key, value) in &given {
        // One at a time, so that the message names the one that is wrong.
        let alone = Map::from_iter([(key.clone(), value.clone())]);
        serde_json::from_value::<Settings>(Value::Object(alone))
            .map_err(|e| exception(py, &wrong_setting(key, value, &e.to_string())))?;
    }
    let settings: Settings = serde_json::from_value(Value::Object(given)).map_err(|e| fault(&e.to_string()))?;
    settings.validate().map_err(|e| exception(py, &e))?;
    Ok(settings)
}

/// Serde speaks of Rust's types; users wrote Python.
fn wrong_setting(key: &str, value: &Value, message: &str) -> Error {
    let expected = message.split_once("expected ").map_or(message, |(_, expected)| expected);
    let expected = match expected {
        "usize" | "u64" | "u32" => "a whole number >= 0",
        "f64" => "a number",
        other => other,
    };
    let value = if value.is_null() { "None".into() } else { value.to_string() };
    Error::Invalid { what: key.into(), value, expected: expected.replace('`', "\"") }
}

pub(crate) fn read_status(status: &str) -> PyResult<Status> {
    serde_json::from_value(status.into()).map_err(|e| fault(&e.to_string()))
}

pub(crate) fn read_kind(py: Python<'_>, kind: &str) -> PyResult<FailureKind> {
    let words = "exit, signal, timeout, parse, nan, lost-worker or exception";
    serde_json::from_value(kind.into()).map_err(|_| exception(py, &Error::invalid("kind of failure", kind, words)))
}

pub(crate) fn asked(py: Python<'_>, jobs: Vec<Job>) -> Vec<Asked<'_>> {
    jobs.into_iter().map(|job| (job.id.0, PyArray1::from_vec(py, job.theta), job.seed)).collect()
}

pub(crate) fn ending(stop: Stop) -> Ending {
    (stop.status.as_str(), stop.reason)
}

pub(crate) fn word(applied: Applied) -> &'static str {
    match applied {
        Applied::Counted => "counted",
        Applied::Repeated => "repeated",
        Applied::Replaced => "replaced",
        Applied::Conflict => "conflict",
        Applied::Kept => "kept",
        Applied::Averaged => "averaged",
    }
}

fn remark(replay: &Replay) -> Option<String> {
    let torn = replay.torn.as_ref()?;
    let kept = torn.kept.as_ref().map(|path| format!(", kept aside in {}", path.display())).unwrap_or_default();
    Some(format!("the store ended in the middle of a record ({} bytes{kept}), which had not counted", torn.bytes))
}
