//! Evaluations, counted.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    journal::Ledger,
    types::{JobId, Outcome},
};

/// How many evaluations a run has, of which kind, and how long they took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tally {
    /// Jobs that were answered, failures included.
    pub evaluations: usize,
    /// Jobs that were asked and not answered.
    pub pending: usize,
    /// Evaluations made elsewhere.
    pub imported: usize,
    /// Batches that were asked.
    pub batches: usize,
    /// Jobs that failed for good.
    pub failures: usize,
    /// The same by kind.
    pub failures_by_kind: BTreeMap<&'static str, usize>,
    /// Jobs for which different values were told.
    pub conflicts: Vec<JobId>,
    /// Jobs whose answer took the place of another.
    pub replaced: Vec<JobId>,
    /// Seconds spent on choosing batches.
    pub seconds_choosing: f64,
    /// Seconds of all evaluations, over all workers.
    pub seconds_evaluating: f64,
}

impl Tally {
    /// The tally of a run's record.
    #[must_use]
    pub fn of(ledger: &Ledger) -> Self {
        let answers = || ledger.entries().filter_map(|entry| entry.answer.as_ref());
        let mut failures_by_kind: BTreeMap<&'static str, usize> = BTreeMap::new();
        for answer in answers() {
            if let Outcome::Failed { kind, .. } = &answer.outcome {
                *failures_by_kind.entry(kind.as_str()).or_default() += 1;
            }
        }
        Self {
            evaluations: answers().count(),
            pending: ledger.pending().count(),
            imported: ledger.imported().len(),
            batches: ledger.batches().len(),
            failures: failures_by_kind.values().sum(),
            failures_by_kind,
            conflicts: ledger.conflicts().map(|entry| entry.job.id).collect(),
            replaced: ledger.replaced().map(|entry| entry.job.id).collect(),
            seconds_choosing: total(ledger.batches().iter().map(|asked| asked.seconds)),
            seconds_evaluating: total(
                ledger
                    .entries()
                    .flat_map(|entry| entry.answer.iter().chain(&entry.replicates))
                    .map(|told| told.seconds),
            ),
        }
    }

    /// How many of the evaluations that a run may have are used up: answered or imported.
    #[must_use]
    pub fn done(&self) -> usize {
        self.evaluations + self.imported
    }

    /// `exit 3, timeout 1`; empty when nothing failed.
    #[must_use]
    pub fn kinds(&self) -> String {
        let kinds = self.failures_by_kind.iter().map(|(kind, n)| format!("{kind} {n}"));
        kinds.collect::<Vec<_>>().join(", ")
    }

    /// The counts on one line.
    pub(super) fn line(&self) -> String {
        let mut text = format!("{} in {} batches", self.evaluations, self.batches);
        if self.failures > 0 {
            text.push_str(&format!(", of which failed: {}", self.kinds()));
        }
        for (n, word) in [(self.imported, "imported"), (self.pending, "pending")] {
            if n > 0 {
                text.push_str(&format!(", {n} {word}"));
            }
        }
        text
    }
}

/// A sum that is zero for nothing; the standard library's is then −0.
fn total(seconds: impl Iterator<Item = f64>) -> f64 {
    seconds.fold(0.0, |sum, s| sum + s)
}
