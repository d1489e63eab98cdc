//! `export`: all evaluations as a table.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use batchquad::{evaluate::clean, session::peek, types::Outcome};

use crate::exit::Exit;

pub fn export(store: &Path) -> Result<Exit> {
    let (engine, _) = peek(store)?;
    let ledger = engine.ledger();
    let mut out = csv::Writer::from_writer(std::io::stdout().lock());
    let fixed = ["log_likelihood", "status", "seconds", "worker", "message"].map(String::from);
    let names = ledger.header().names().iter().map(|name| clean(name));
    out.write_record(["id".to_owned(), "batch".to_owned()].into_iter().chain(names).chain(fixed))?;
    for row in ledger.imported() {
        let theta = row.theta.iter().map(f64::to_string);
        let rest =
            [row.log_likelihood.get().to_string(), "imported".into(), String::new(), String::new(), String::new()];
        out.write_record([String::new(), String::new()].into_iter().chain(theta).chain(rest))?;
    }
    let batch_of: BTreeMap<_, _> = ledger
        .batches()
        .iter()
        .enumerate()
        .flat_map(|(k, asked)| asked.jobs.iter().map(move |job| (job.id, k)))
        .collect();
    for entry in ledger.entries() {
        let batch = batch_of.get(&entry.job.id).map(usize::to_string).unwrap_or_default();
        let theta = entry.job.theta.iter().map(f64::to_string);
        let told = entry.answer.as_ref();
        let (value, status, message) = match told.map(|told| &told.outcome) {
            Some(Outcome::Value(value)) => (value.to_string(), "ok".to_owned(), String::new()),
            Some(Outcome::Failed { kind, message }) => (String::new(), kind.to_string(), clean(message)),
            None => (String::new(), "pending".into(), String::new()),
        };
        let seconds = told.map(|told| told.seconds.to_string()).unwrap_or_default();
        let worker = told.and_then(|told| told.worker.as_deref().map(clean)).unwrap_or_default();
        let rest = [value, status, seconds, worker, message];
        out.write_record([entry.job.id.to_string(), batch].into_iter().chain(theta).chain(rest))?;
    }
    out.flush()?;
    Ok(Exit::Done)
}
