//! Tables: aligned text for the terminal, Markdown for pages.

/// Rows of cells under a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new<H: Into<String>>(head: impl IntoIterator<Item = H>) -> Self {
        Self { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn push<C: Into<String>>(&mut self, row: impl IntoIterator<Item = C>) {
        self.rows.push(row.into_iter().map(Into::into).collect());
    }

    /// As columns of aligned text.
    #[must_use]
    pub fn text(&self) -> String {
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let width = |c: usize| all().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells: Vec<String> = row.iter().zip(&widths).map(|(s, &w)| format!("{s:>w$}")).collect();
            cells.join("  ") + "\n"
        };
        all().map(line).collect()
    }

    /// As Markdown: the first column to the left, the others to the right.
    #[must_use]
    pub fn markdown(&self) -> String {
        let line = |row: &Vec<String>| format!("| {} |\n", row.join(" | "));
        let rule: Vec<&str> = (0..self.head.len()).map(|c| if c == 0 { "---" } else { "---:" }).collect();
        let rule = format!("|{}|\n", rule.join("|"));
        line(&self.head) + &rule + &self.rows.iter().map(line).collect::<String>()
    }
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

/// A share in per cent.
#[must_use]
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.0} %", 100.0 * share) } else { "–".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_table_as_text_and_as_markdown() {
        let mut table = Table::new(["name", "x"]);
        table.push(["a", "1.0"]);
        table.push(["long", "–"]);
        assert_eq!(table.text(), "name    x\n   a  1.0\nlong    –\n");
        assert_eq!(table.markdown(), "| name | x |\n|---|---:|\n| a | 1.0 |\n| long | – |\n");
    }
}
