//! All evaluations of a store as a table: what `export` prints and the report shows.

use batchquad::{
    evaluate::clean,
    journal::Ledger,
    run::report::{Evaluation, evaluations, sd_column},
};

/// The columns left and right of the parameters and of the values. Repeats and standard deviations have columns only if there are several
/// repeats, or values with a standard deviation.
const BEFORE: [&str; 2] = ["id", "batch"];
const VALUE: &str = "log_likelihood";
const AFTER: [&str; 5] = ["status", "seconds", "worker", "kind", "message"];

/// The heads of the columns.
pub fn columns(ledger: &Ledger) -> Vec<String> {
    let names = ledger.header().names();
    let mut columns = BEFORE.map(String::from).to_vec();
    columns.extend(ledger.has_repeats().then(|| "repeat".into()));
    columns.extend(names.iter().map(|name| clean(name)));
    columns.push(VALUE.into());
    columns.extend(ledger.has_sds().then(|| sd_column(names).into()));
    columns.extend(AFTER.map(String::from));
    columns
}

/// Whether a column of a table with this many columns holds numbers: status, worker, kind and message are words.
pub fn is_number(column: usize, columns: usize) -> bool {
    let after = columns - AFTER.len();
    column < after || column == after + 1
}

/// One row per evaluation, numbers to their last digit: imported ones first, then jobs by id.
pub fn rows(ledger: &Ledger) -> Vec<Vec<String>> {
    let (with_repeats, with_sds) = (ledger.has_repeats(), ledger.has_sds());
    evaluations(ledger).iter().map(|evaluation| row(evaluation, with_repeats, with_sds)).collect()
}

fn row(e: &Evaluation<'_>, with_repeats: bool, with_sds: bool) -> Vec<String> {
    fn cell(value: Option<impl ToString>) -> String {
        value.map(|v| v.to_string()).unwrap_or_default()
    }
    let words = |text: Option<&str>| text.map(clean).unwrap_or_default();
    let mut row = vec![cell(e.id), cell(e.batch)];
    row.extend(with_repeats.then(|| cell(e.repeat)));
    row.extend(e.theta.iter().map(f64::to_string));
    row.push(cell(e.log_likelihood.map(|v| v.get())));
    row.extend(with_sds.then(|| cell(e.sd)));
    row.extend([e.status.as_str().into(), cell(e.seconds), words(e.worker), cell(e.kind), words(e.message)]);
    row
}
