//! What an experiment leaves behind: raw rows, a summary, tables and figures, in a directory of its own.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use batchquad_plot::Figure;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    plan::Plan,
    png,
    runs::{Workshop, write},
    table::Table,
};

/// Rows below a head as CSV, every digit of every number; what is absent is empty.
///
/// # Errors
/// When a row has another length than the head.
pub fn csv<R: Serialize>(head: &[&str], rows: impl IntoIterator<Item = R>) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(head)?;
    rows.into_iter().try_for_each(|row| writer.serialize(row))?;
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// The directory of an experiment.
#[derive(Debug)]
pub struct Output {
    name: String,
    dir: PathBuf,
    said: String,
}

impl Output {
    /// `NAME` below the directory of the workshop.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(workshop: &Workshop, name: &str) -> Result<Self> {
        let dir = workshop.out.join(name);
        fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        Ok(Self { name: name.into(), dir, said: String::new() })
    }

    /// Raw rows as `NAME.csv`.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn csv(&self, name: &str, rows: &str) -> Result<()> {
        write(&self.dir.join(format!("{name}.csv")), rows.as_bytes())
    }

    /// `summary.json`: what the plan was and what came of it.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn summary(&self, plan: &Plan, runs: u64, results: &impl Serialize) -> Result<()> {
        let whole: Value = json!({
            "experiment": self.name,
            "runs": runs,
            "seed": plan.seed,
            "budget": plan.budget,
            "settings": plan.settings,
            "results": results,
        });
        write(&self.dir.join("summary.json"), &serde_json::to_vec_pretty(&whole)?)
    }

    /// A table as `NAME.md` for pages, and as text for whoever started the experiment.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn table(&mut self, name: &str, title: &str, table: &Table) -> Result<()> {
        self.said += &format!("{title}\n\n{}\n", table.text());
        write(&self.dir.join(format!("{name}.md")), table.markdown().as_bytes())
    }

    /// A figure as `NAME.svg` and `NAME.png`.
    ///
    /// # Errors
    /// When it cannot be rendered or the disk refuses.
    pub fn figure(&self, name: &str, figure: &Figure) -> Result<()> {
        let svg = figure.standalone();
        write(&self.dir.join(format!("{name}.svg")), svg.as_bytes())?;
        write(&self.dir.join(format!("{name}.png")), &png::render(&svg)?)
    }

    /// The tables as text, and where everything is.
    #[must_use]
    pub fn said(self) -> String {
        format!("{}Written to {}\n", self.said, self.dir.display())
    }
}
