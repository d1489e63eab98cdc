//! All evaluations of a run, one by one.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    journal::{Entry, Ledger, LogValue},
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
    /// The point in the user's units.
    pub theta: &'a [f64],
    /// The log-likelihood; in JSON −∞ is `"-inf"`.
    pub log_likelihood: Option<LogValue>,
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

/// All evaluations of a run: imported ones first, then jobs by id.
#[must_use]
pub fn evaluations(ledger: &Ledger) -> Vec<Evaluation<'_>> {
    let imported = ledger.imported().iter().map(|row| Evaluation {
        id: None,
        batch: None,
        theta: &row.theta,
        log_likelihood: Some(row.log_likelihood),
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
    let asked = ledger.entries().map(|entry| evaluation(entry, batch_of.get(&entry.job.id).copied()));
    imported.chain(asked).collect()
}

fn evaluation(entry: &Entry, batch: Option<usize>) -> Evaluation<'_> {
    let told = entry.answer.as_ref();
    let (status, log_likelihood, kind, message) = match told.map(|told| &told.outcome) {
        None => (EvaluationStatus::Pending, None, None, None),
        // A value in a ledger has been checked.
        Some(Outcome::Value(value)) => (EvaluationStatus::Value, LogValue::new(*value).ok(), None, None),
        Some(Outcome::Failed { kind, message }) => (EvaluationStatus::Failed, None, Some(*kind), Some(&**message)),
    };
    Evaluation {
        id: Some(entry.job.id),
        batch,
        theta: &entry.job.theta,
        log_likelihood,
        status,
        kind,
        message,
        attempts: entry.attempts,
        seconds: told.map(|told| told.seconds),
        worker: told.and_then(|told| told.worker.as_deref()),
    }
}
