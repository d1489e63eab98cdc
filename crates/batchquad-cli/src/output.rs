//! What is shown: tables, numbers, JSON. Nothing printed can move a terminal's cursor.

use std::io::Write;

use anyhow::Result;
use batchquad::evaluate::clean;
use serde::Serialize;

pub use batchquad::run::report::{duration, plus_minus, rounded};

/// Prints to standard output, cleaned; a reader that has gone away is an error, not a panic.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", clean(text.trim_end()))?;
    out.flush()?;
    Ok(())
}

/// Prints one line of JSON.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(value)?)?;
    out.flush()?;
    Ok(())
}

/// Prints lines of JSON as they are: they are data, and JSON escapes what is not fit to be shown.
pub fn print_lines(lines: &[String]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    out.flush()?;
    Ok(())
}

/// A remark on standard error; when even that is closed there is nobody to tell.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "batchquad: {}", clean(text));
}

/// Rows with aligned columns: the first to the left, the others to the right.
pub fn table(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| clean(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cell_width = |row: &Vec<String>, k: usize| row.get(k).map_or(0, |cell| cell.chars().count());
    let widths: Vec<usize> =
        (0..columns).map(|k| rows.iter().map(|row| cell_width(row, k)).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let line: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(k, (cell, &w))| if k == 0 { format!("{cell:<w$}") } else { format!("{cell:>w$}") })
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Labels and what they stand for, both to the left.
pub fn facts(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    rows.iter().map(|(label, text)| format!("{label:<width$}  {}\n", clean(text).replace('\n', " "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_hold_no_control_characters() {
        let text = table(&[vec!["a\x1b[2J".into(), "1".into()], vec!["bb".into(), "10".into()]]);
        assert_eq!(text, "a[2J   1\nbb    10\n");
    }
}
