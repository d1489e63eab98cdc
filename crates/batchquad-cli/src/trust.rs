//! Whether to believe log Z, wherever it is shown.
//!
//! The diagnostics cost about as much as a fit. `run` works them out at its end and leaves the verdict in the store as a remark, so that `status` and
//! `watch` can show it for nothing; `result`, `report` and `compare` work it out anew.

use batchquad::{
    Engine,
    journal::Ledger,
    run::{Diagnosis, Level},
};
use serde::{Deserialize, Serialize};

/// The verdict of the diagnostics with its reasons, on so many values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trust {
    pub verdict: Level,
    #[serde(rename = "verdict_reason")]
    pub summary: String,
    /// How many values it rests on.
    #[serde(rename = "verdict_values")]
    pub values: usize,
}

impl Trust {
    pub fn new(diagnosis: &Diagnosis, engine: &Engine) -> Self {
        Self { verdict: diagnosis.verdict, summary: diagnosis.summary(), values: values(engine.ledger()) }
    }

    /// The line that stands beside log Z.
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
    pub fn line_at(&self, ledger: &Ledger) -> String {
        match values(ledger).saturating_sub(self.values) {
            0 => self.line(),
            new => format!("{} (before the last {new} values)", self.line()),
        }
    }
}

/// How many values a run has.
fn values(ledger: &Ledger) -> usize {
    ledger.values().count() + ledger.imported().len()
}
