//! All evaluations of a store as a table: what `export` prints and the report shows.

use batchquad::{
    evaluate::clean,
    journal::Ledger,
    run::report::{Evaluation, evaluations},
};

/// What stands left and right of the parameters.
const BEFORE: [&str; 2] = ["id", "batch"];
const AFTER: [&str; 6] = ["log_likelihood", "status", "seconds", "worker", "kind", "message"];

/// The heads of the columns.
pub fn columns(ledger: &Ledger) -> Vec<String> {
    let names = ledger.header().names().iter().map(|name| clean(name));
    BEFORE.map(String::from).into_iter().chain(names).chain(AFTER.map(String::from)).collect()
}

/// Whether a column of a table with so many holds numbers: status, worker, kind and message are words.
pub fn is_number(column: usize, columns: usize) -> bool {
    let after = columns - AFTER.len();
    column <= after || column == after + 2
}

/// One row per evaluation, numbers to their last digit: imported ones first, then jobs by id.
pub fn rows(ledger: &Ledger) -> Vec<Vec<String>> {
    evaluations(ledger).iter().map(row).collect()
}

fn row(e: &Evaluation<'_>) -> Vec<String> {
    fn cell(value: Option<impl ToString>) -> String {
        value.map(|v| v.to_string()).unwrap_or_default()
    }
    let words = |text: Option<&str>| text.map(clean).unwrap_or_default();
    let after = [
        cell(e.log_likelihood.map(|v| v.get())),
        e.status.as_str().into(),
        cell(e.seconds),
        words(e.worker),
        cell(e.kind),
        words(e.message),
    ];
    [cell(e.id), cell(e.batch)].into_iter().chain(e.theta.iter().map(f64::to_string)).chain(after).collect()
}
