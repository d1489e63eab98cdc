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
        out.write_record(row.into_iter().map(harmless))?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Text that a spreadsheet would take for a formula, with a quote before it; numbers are left alone.
fn harmless(cell: String) -> String {
    let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
    if formula { format!("'{cell}") } else { cell }
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn formulas_become_text_and_numbers_stay() {
        for text in ["=HYPERLINK(1)", "+1+1", "-2+3", "@SUM(A1)", "\t=1"] {
            assert_eq!(harmless(text.into()), format!("'{text}"));
        }
        for text in ["-1.5", "-inf", "+3", "1e-300", "", "ok", "no root = none"] {
            assert_eq!(harmless(text.into()), text);
        }
    }
}
