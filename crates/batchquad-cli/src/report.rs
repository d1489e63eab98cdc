//! The report of a run as text.

use std::path::Path;

use anyhow::Result;
use batchquad::{
    Engine,
    infer::Method,
    run::{
        Stop,
        report::{ByName, Report, Summary},
    },
};

use crate::output::{facts, table};

/// The report of the run in a store; `stop` is `None` while there is more to do.
pub fn report(engine: &Engine, stop: Option<&Stop>, store: &Path) -> Result<Report> {
    Ok(Report::new(engine, stop)?.stored_at(store.display().to_string()))
}

/// The report for a person.
pub fn text(report: &Report) -> String {
    let mut text = facts(&report.facts());
    if let Some(ByName(posterior)) = &report.posterior {
        let head = ["parameter", "mean", "sd", "2.5 %", "97.5 %"].map(String::from).to_vec();
        let row = |(name, summary): &(String, Summary)| [vec![name.clone()], summary.cells().to_vec()].concat();
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(posterior.iter().map(row)).collect();
        text.push('\n');
        text.push_str(&table(&rows));
        if posterior.iter().any(|(_, summary)| summary.method == Method::Draws) {
            let worth = report.posterior_effective_samples.unwrap_or(0.0);
            text.push_str(&format!("by draws worth {worth:.0} independent ones, where there is no closed form\n"));
        }
    }
    text
}
