//! The table of evaluations.

use batchquad::journal::Ledger;
use batchquad_plot::compact;
use serde::Serialize;

use crate::evaluations::{columns, is_number, rows};

/// Digits of numbers on the page; the full ones are kept beside them for sorting and for the CSV file.
const DIGITS: usize = 5;

/// A column's head.
#[derive(Debug, Serialize)]
pub struct Column {
    name: String,
    number: bool,
}

/// A cell: what is shown, and the full text where it differs.
#[derive(Debug, Serialize)]
pub struct Cell {
    shown: String,
    full: Option<String>,
    number: bool,
}

/// All evaluations.
#[derive(Debug, Serialize)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

pub fn table(ledger: &Ledger) -> Table {
    let names = columns(ledger);
    let n = names.len();
    let number = |k: usize| is_number(k, n);
    let cell = |(k, text): (usize, String)| {
        let shown = match text.parse::<f64>() {
            // Ids and batches are whole numbers, shown as they are.
            Ok(value) if number(k) && k >= 2 => compact(value, DIGITS),
            _ => text.clone(),
        };
        Cell { full: (shown != text).then_some(text), shown, number: number(k) }
    };
    let rows = rows(ledger).into_iter().map(|row| row.into_iter().enumerate().map(cell).collect()).collect();
    let columns = names.into_iter().enumerate().map(|(k, name)| Column { name, number: number(k) }).collect();
    Table { columns, rows }
}
