//! All evaluations of a run, one by one.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    journal::{Entry, Ledger, LogValue, Told},
    types::{FailureKind, JobId, Outcome},
};

/// What became of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvaluationStatus {
    /// It has a log-likelihood, which may be −∞.
    Value,
    /// It failed for good.
    Failed,
    /// It was asked and not answered.
    Pending,
    /// It was made elsewhere and has a log-likelihood.
    Imported,
}

impl EvaluationStatus {
    /// The word used in tables and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Failed => "failed",
            Self::Pending => "pending",
            Self::Imported => "imported",
        }
    }
}

/// One evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation<'a> {
    /// The number of its job; imported ones have none.
    pub id: Option<JobId>,
    /// The batch that it was asked in, counted from zero.
    pub batch: Option<usize>,
    /// Which of several independent runs it is of, counted from one; none where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<usize>,
    /// The point in the user's units.
    pub theta: &'a [f64],
    /// The log-likelihood; in JSON −∞ is `"-inf"`.
    pub log_likelihood: Option<LogValue>,
    /// The standard deviation of its noise, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
    /// What became of it.
    pub status: EvaluationStatus,
    /// How it failed.
    pub kind: Option<FailureKind>,
    /// What happened, for a person, as the likelihood or the evaluator said it.
    pub message: Option<&'a str>,
    /// The highest number of an attempt that has ended.
    pub attempts: u32,
    /// How long the attempt that counts took.
    pub seconds: Option<f64>,
    /// Who carried it out, if that is known.
    pub worker: Option<&'a str>,
}

/// The name of the column that holds standard deviations in tables with one column per parameter: `sd`, unless a
/// parameter has that name.
#[must_use]
pub fn sd_column(names: &[String]) -> &'static str {
    if names.iter().any(|name| name == "sd") { "log_likelihood_sd" } else { "sd" }
}

/// All evaluations of a run: imported ones first, then jobs by id. A job with several values that count has as many,
/// one after the other.
#[must_use]
pub fn evaluations(ledger: &Ledger) -> Vec<Evaluation<'_>> {
    let imported = ledger.imported().iter().map(|row| Evaluation {
        id: None,
        batch: None,
        repeat: None,
        theta: &row.theta,
        log_likelihood: Some(row.log_likelihood),
        sd: row.sd,
        status: EvaluationStatus::Imported,
        kind: None,
        message: None,
        attempts: 0,
        seconds: None,
        worker: None,
    });
    let batches = ledger.batches().iter().enumerate();
    let batch_of: BTreeMap<JobId, usize> =
        batches.flat_map(|(k, asked)| asked.jobs.iter().map(move |job| (job.id, k))).collect();
    let several = ledger.has_repeats();
    let asked = ledger.entries().flat_map(|entry| {
        let batch = batch_of.get(&entry.job.id).copied();
        let repeat = several.then_some(entry.repeat + 1);
        let further = entry.replicates.iter().map(move |told| evaluation(entry, Some(told), batch, repeat));
        std::iter::once(evaluation(entry, entry.answer.as_ref(), batch, repeat)).chain(further)
    });
    imported.chain(asked).collect()
}

fn evaluation<'a>(
    entry: &'a Entry,
    told: Option<&'a Told>,
    batch: Option<usize>,
    repeat: Option<usize>,
) -> Evaluation<'a> {
    let (status, log_likelihood, kind, message) = match told.map(|told| &told.outcome) {
        None => (EvaluationStatus::Pending, None, None, None),
        // A value in a ledger has been checked.
        Some(Outcome::Value(value)) => (EvaluationStatus::Value, LogValue::new(*value).ok(), None, None),
        Some(Outcome::Failed { kind, message }) => (EvaluationStatus::Failed, None, Some(*kind), Some(&**message)),
    };
    Evaluation {
        id: Some(entry.job.id),
        batch,
        repeat,
        theta: &entry.job.theta,
        log_likelihood,
        sd: told.and_then(|told| told.sd),
        status,
        kind,
        message,
        attempts: entry.attempts,
        seconds: told.map(|told| told.seconds),
        worker: told.and_then(|told| told.worker.as_deref()),
    }
}
