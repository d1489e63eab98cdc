//! All evaluations of a store as a table: what `export` prints and the report shows.

use std::collections::BTreeMap;

use batchquad::{evaluate::clean, journal::Ledger, types::Outcome};

/// What stands left and right of the parameters.
const BEFORE: [&str; 2] = ["id", "batch"];
const AFTER: [&str; 5] = ["log_likelihood", "status", "seconds", "worker", "message"];

/// The heads of the columns.
pub fn columns(ledger: &Ledger) -> Vec<String> {
    let names = ledger.header().names().iter().map(|name| clean(name));
    BEFORE.map(String::from).into_iter().chain(names).chain(AFTER.map(String::from)).collect()
}

/// One row an evaluation, numbers to their last digit: imported ones first, then jobs by id.
pub fn rows(ledger: &Ledger) -> Vec<Vec<String>> {
    let row = |id: String, batch: String, theta: &[f64], rest: [String; 5]| -> Vec<String> {
        [id, batch].into_iter().chain(theta.iter().map(f64::to_string)).chain(rest).collect()
    };
    let nothing = String::new;
    let imported = ledger.imported().iter().map(|made| {
        let rest = [made.log_likelihood.get().to_string(), "imported".into(), nothing(), nothing(), nothing()];
        row(nothing(), nothing(), &made.theta, rest)
    });
    let batch_of: BTreeMap<_, _> = ledger
        .batches()
        .iter()
        .enumerate()
        .flat_map(|(k, asked)| asked.jobs.iter().map(move |job| (job.id, k)))
        .collect();
    let asked = ledger.entries().map(|entry| {
        let batch = batch_of.get(&entry.job.id).map(usize::to_string).unwrap_or_default();
        let told = entry.answer.as_ref();
        let (value, status, message) = match told.map(|told| &told.outcome) {
            Some(Outcome::Value(value)) => (value.to_string(), "ok".to_owned(), nothing()),
            Some(Outcome::Failed { kind, message }) => (nothing(), kind.to_string(), clean(message)),
            None => (nothing(), "pending".into(), nothing()),
        };
        let seconds = told.map(|told| told.seconds.to_string()).unwrap_or_default();
        let worker = told.and_then(|told| told.worker.as_deref().map(clean)).unwrap_or_default();
        row(entry.job.id.to_string(), batch, &entry.job.theta, [value, status, seconds, worker, message])
    });
    imported.chain(asked).collect()
}
