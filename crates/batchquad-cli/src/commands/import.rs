//! `import`: evaluations made elsewhere.

use std::path::Path;

use anyhow::Result;
use batchquad::{
    Prior,
    evaluate::number,
    journal::{Event, LogValue, Row},
    run::{MOST_NODES, Session, report::sd_column},
};

use crate::{
    exit::{BadInput, Exit},
    output::note,
    store::open,
};

const VALUE: &str = "log_likelihood";

pub fn import(store: &Path, table: &Path) -> Result<Exit> {
    let mut session = open(store)?;
    let rows = read(table, session.engine.prior())?;
    record(&mut session, rows)
}

/// Records the rows in one event.
pub fn record(session: &mut Session, rows: Vec<Row>) -> Result<Exit> {
    let (before, given) = (session.engine.ledger().imported().len(), rows.len());
    session.keep(&Event::Imported { rows })?;
    let new = session.engine.ledger().imported().len() - before;
    note(&format!("imported {new} evaluations, {} were known already", given - new));
    let all = session.engine.ledger().imported().len();
    if all > MOST_NODES {
        note(&format!(
            "{all} are more than can be worked with: a belief rests on at most {MOST_NODES} of them, chosen to cover the posterior"
        ));
    }
    Ok(Exit::Done)
}

/// The rows of a table, every one inside the support of the prior. A column `sd` holds the standard deviations of the values; other columns that
/// are not parameters are passed over.
pub fn read(path: &Path, prior: &Prior) -> Result<Vec<Row>> {
    let bad = |why: String| BadInput(format!("{}: {why}", path.display()));
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_path(path)
        .map_err(|e| bad(format!("cannot be read: {e}")))?;
    let header = reader.headers().map_err(|e| bad(e.to_string()))?.clone();
    let column = |name: &str| {
        header.iter().position(|column| column == name).ok_or_else(|| {
            let found: Vec<&str> = header.iter().collect();
            bad(format!("the column {name:?} is missing, found {}", found.join(", ")))
        })
    };
    let columns = prior.names().iter().map(|name| column(name)).collect::<Result<Vec<_>, _>>()?;
    if prior.names().iter().any(|name| name == VALUE) {
        return Err(bad(format!("a parameter is called {VALUE:?} too: which column is which cannot be told")).into());
    }
    let value = column(VALUE)?;
    let noise = header.iter().position(|column| column == sd_column(prior.names()));
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| bad(e.to_string()))?;
        let line = record.position().map_or(0, csv::Position::line);
        let cell = |k: usize| {
            let text = record.get(k).unwrap_or("");
            // As from the likelihood itself: what overflows is not a number.
            number(text).ok_or_else(|| bad(format!("line {line}: {} is {text:?}, expected a number", &header[k])))
        };
        // An export of ours has rows without a value: failed or pending.
        if record.get(value).is_some_and(str::is_empty) {
            continue;
        }
        let theta = columns.iter().map(|&k| cell(k)).collect::<Result<Vec<_>, _>>()?;
        prior.to_latent(&theta).map_err(|e| bad(format!("line {line}: {e}")))?;
        let log_likelihood = LogValue::new(cell(value)?).map_err(|e| bad(format!("line {line}: {e}")))?;
        let row = Row::new(theta, log_likelihood);
        rows.push(match noise.filter(|&k| record.get(k).is_some_and(|text| !text.is_empty())) {
            Some(k) => row.with_sd(cell(k)?).map_err(|e| bad(format!("line {line}: {e}")))?,
            None => row,
        });
    }
    if rows.is_empty() {
        return Err(bad("the table has no rows with a log_likelihood, expected at least one".into()).into());
    }
    Ok(rows)
}
