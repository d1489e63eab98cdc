//! Whether to believe log Z, wherever it is shown.
//!
//! The diagnostics cost about as much as a fit. A run works them out at its end and leaves the verdict in its store as
//! a remark, so that whoever only looks can show it without working anything out.

use serde::{Deserialize, Serialize};

use crate::{
    journal::{Ledger, Topic},
    run::diagnostics::{Diagnosis, Level},
};

/// The verdict of the diagnostics with its reasons, on so many values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trust {
    /// The worst level of all findings.
    pub verdict: Level,
    /// The verdict in a sentence, with the findings that led to it.
    #[serde(rename = "verdict_reason")]
    pub summary: String,
    /// How many values it rests on.
    #[serde(rename = "verdict_values")]
    pub values: usize,
}

impl Trust {
    /// The verdict of a diagnosis of the run with this record.
    #[must_use]
    pub fn new(diagnosis: &Diagnosis, ledger: &Ledger) -> Self {
        Self { verdict: diagnosis.verdict, summary: diagnosis.summary(), values: values(ledger) }
    }

    /// The last verdict that was left in a store.
    #[must_use]
    pub fn recorded(ledger: &Ledger) -> Option<Self> {
        Self::deserialize(ledger.remark(Topic::Verdict)?).ok()
    }

    /// The line that stands beside log Z.
    #[must_use]
    pub fn line(&self) -> String {
        let mut text = self.summary.clone();
        // A warning that nobody can overlook.
        if self.verdict == Level::DoNotTrust
            && let Some(rest) = text.strip_prefix("do not trust")
        {
            text = format!("DO NOT TRUST{rest}");
        }
        text
    }

    /// The same where it was found earlier: with how much has come in since.
    #[must_use]
    pub fn line_at(&self, ledger: &Ledger) -> String {
        match self.newer(ledger) {
            0 => self.line(),
            // First, because what comes last on a long line is cut off.
            1 => format!("one value ago: {}", self.line()),
            new => format!("{new} values ago: {}", self.line()),
        }
    }

    /// How many values have come in since it was found.
    #[must_use]
    pub fn newer(&self, ledger: &Ledger) -> usize {
        values(ledger).saturating_sub(self.values)
    }
}

/// How many values a run has.
fn values(ledger: &Ledger) -> usize {
    ledger.values().count() + ledger.imported().len()
}
