//! What failed, and why.

use std::collections::BTreeMap;

use batchquad::{evaluate::clean, journal::Ledger, run::report::Tally, types::Outcome};
use serde::Serialize;

/// More than this many failures are not listed one by one.
const MOST: usize = 200;

/// A failure that counts, or an attempt that was repeated.
#[derive(Debug, Serialize)]
pub struct Failed {
    id: u64,
    kind: String,
    attempt: u32,
    /// Whether the evaluation has a value all the same, from a later attempt.
    mended: bool,
    message: String,
    theta: String,
}

/// All failures with their messages.
#[derive(Debug, Serialize)]
pub struct Failures {
    list: Vec<Failed>,
    kinds: BTreeMap<&'static str, usize>,
    more: usize,
}

/// The failures of a run; none when there are none.
pub fn failures(ledger: &Ledger) -> Option<Failures> {
    let mut list = Vec::new();
    for entry in ledger.entries() {
        let names = ledger.header().names().iter().zip(&entry.job.theta);
        let theta =
            || names.clone().map(|(name, value)| format!("{} = {value}", clean(name))).collect::<Vec<_>>().join(", ");
        let mended = entry.value().is_some();
        let failed = |attempt: u32, kind: String, message: &str| Failed {
            id: entry.job.id.0,
            kind,
            attempt,
            mended,
            message: clean(message),
            theta: theta(),
        };
        list.extend(entry.failures.iter().map(|f| failed(f.attempt, f.kind.to_string(), &f.message)));
        if let Some(told) = &entry.answer
            && let Outcome::Failed { kind, message } = &told.outcome
        {
            list.push(failed(told.attempt, kind.to_string(), message));
        }
    }
    let more = list.len().saturating_sub(MOST);
    list.truncate(MOST);
    let kinds = Tally::of(ledger).failures_by_kind;
    (!list.is_empty()).then_some(Failures { list, kinds, more })
}
