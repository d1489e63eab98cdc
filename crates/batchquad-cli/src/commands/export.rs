//! `export`: all evaluations as a table.

use std::path::Path;

use anyhow::Result;
use batchquad::run::peek;

use crate::{
    evaluations::{columns, rows},
    exit::Exit,
};

pub fn export(store: &Path) -> Result<Exit> {
    let (engine, _) = peek(store)?;
    let mut out = csv::Writer::from_writer(std::io::stdout().lock());
    out.write_record(columns(engine.ledger()))?;
    for row in rows(engine.ledger()) {
        out.write_record(row)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}
