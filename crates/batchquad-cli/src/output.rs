//! What is shown: tables, numbers, JSON. Nothing printed can move a terminal's cursor.

use std::io::Write;

use anyhow::Result;
use batchquad::evaluate::clean;
use serde::{Serialize, Serializer, ser::SerializeMap};

/// Prints to standard output, cleaned; that a reader has gone away is an error and not a panic.
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

/// A number with as many digits as `sd` makes meaningful.
pub fn rounded(value: f64, sd: f64) -> String {
    if !(sd.is_finite() && sd > 0.0) {
        return format!("{value}");
    }
    let digits = 1.0 - sd.log10().floor();
    if digits > 12.0 || value.abs() >= 1e12 {
        format!("{value:.6e}")
    } else {
        let text = format!("{value:.*}", digits.clamp(0.0, 12.0) as usize);
        if text.contains(|c: char| c.is_ascii_digit() && c != '0') { text } else { text.replace('-', "") }
    }
}

/// `log Z ± sd`.
pub fn plus_minus(value: f64, sd: f64) -> String {
    format!("{} ± {}", rounded(value, sd), rounded(sd, sd))
}

/// Seconds in the unit a person would use.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 0.1 => format!("{:.0} ms", 1e3 * s),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// A JSON object whose keys stay in order.
#[derive(Debug, Clone)]
pub struct Ordered<T>(pub Vec<(String, T)>);

impl<T: Serialize> Serialize for Ordered<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_show_two_uncertain_digits() {
        assert_eq!(plus_minus(-14.019_41, 0.0123), "-14.019 ± 0.012");
        assert_eq!(plus_minus(-1e6, 3.2), "-1000000.0 ± 3.2");
        assert_eq!(rounded(1.5, f64::INFINITY), "1.5");
        assert_eq!(rounded(1.23e-13, 1e-14), "1.230000e-13");
        assert_eq!(rounded(1234.5, 100.0), "1234");
        assert_eq!(rounded(-0.001, 0.5), "0.00");
    }

    #[test]
    fn tables_hold_no_control_characters() {
        let text = table(&[vec!["a\x1b[2J".into(), "1".into()], vec!["bb".into(), "10".into()]]);
        assert_eq!(text, "a[2J   1\nbb    10\n");
    }
}
