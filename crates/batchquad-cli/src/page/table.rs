//! The table of evaluations.

use batchquad::journal::Ledger;
use batchquad_plot::compact;
use serde::Serialize;

use crate::evaluations::{columns, is_number, rows};

/// Digits of numbers on the page; the full ones are kept beside them for sorting and for the CSV file.
const DIGITS: usize = 5;

/// With more rows than this a page takes long to open: the first ones, which are imported, are left out.
const MOST: usize = 5000;

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

/// All evaluations, or the last of them.
#[derive(Debug, Serialize)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    /// How many rows are not shown.
    left_out: usize,
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
    let all = rows(ledger);
    let left_out = all.len().saturating_sub(MOST);
    let shown = all.into_iter().skip(left_out);
    let rows = shown.map(|row| row.into_iter().enumerate().map(cell).collect()).collect();
    let columns = names.into_iter().enumerate().map(|(k, name)| Column { name, number: number(k) }).collect();
    Table { columns, rows, left_out }
}
