//! Plain text tables.

/// Rows of cells as aligned columns, the first row being the head.
#[must_use]
pub fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(s, &w)| format!("{s:>w$}")).collect();
        cells.join("  ") + "\n"
    };
    rows.iter().map(line).collect()
}

/// A number with a few digits, or a dash where there is none.
#[must_use]
pub fn number(value: Option<f64>, digits: usize) -> String {
    value.filter(|v| v.is_finite()).map_or_else(|| "–".into(), |v| format!("{v:.digits$}"))
}

/// The same in scientific notation.
#[must_use]
pub fn scientific(value: f64) -> String {
    if value.is_finite() { format!("{value:.1e}") } else { "–".into() }
}
