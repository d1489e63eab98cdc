//! Finished experiments into the repository: figures are copied, tables are put into their places in a page.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use crate::runs::write;

/// A place for a table begins with a line `<!-- table: EXPERIMENT/NAME -->` and ends with this one.
const END: &str = "<!-- end -->";

const BEGIN: &str = "<!-- table: ";

/// The page with every place filled by `table`, which is asked for `EXPERIMENT/NAME`; where it has none, the place stays as it is.
///
/// # Errors
/// When a place is not closed.
pub fn filled(page: &str, mut table: impl FnMut(&str) -> Option<String>) -> Result<String> {
    let mut out = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out += &format!("{line}\n");
        let Some(name) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        let rest = lines.clone();
        lines.by_ref().find(|l| *l == END).with_context(|| format!("the place for {name} has no {END:?}"))?;
        match table(name) {
            Some(table) => out += &format!("\n{table}\n{END}\n"),
            None => lines = rest,
        }
    }
    Ok(out)
}

/// Copies all figures below `out` to `figures`, a directory for each experiment, and fills the places of `page`.
///
/// # Errors
/// When a figure cannot be copied or the page cannot be read, filled or written.
pub fn run(out: &Path, page: &Path, figures: &Path) -> Result<()> {
    let entries = fs::read_dir(out).with_context(|| format!("reading {}", out.display()))?;
    for experiment in entries.collect::<Result<Vec<_>, _>>()? {
        if !experiment.path().is_dir() {
            continue;
        }
        let to = figures.join(experiment.file_name());
        for file in fs::read_dir(experiment.path())?.collect::<Result<Vec<_>, _>>()? {
            if file.path().extension().is_some_and(|e| e == "svg" || e == "png") {
                fs::create_dir_all(&to).with_context(|| format!("creating {}", to.display()))?;
                fs::copy(file.path(), to.join(file.file_name()))
                    .with_context(|| format!("copying {}", file.path().display()))?;
            }
        }
    }
    let text = fs::read_to_string(page).with_context(|| format!("reading {}", page.display()))?;
    let table = |name: &str| {
        let path = out.join(format!("{name}.md"));
        let found = fs::read_to_string(&path);
        found.inspect_err(|_| eprintln!("{} is not there: its place is left as it is", path.display())).ok()
    };
    write(page, filled(&text, table)?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_and_can_be_filled_again() {
        let page = "a\n<!-- table: zoo/table -->\nold\n<!-- end -->\nb\n";
        let new = filled(page, |name| Some(format!("| {name} |\n"))).unwrap();
        assert_eq!(new, "a\n<!-- table: zoo/table -->\n\n| zoo/table |\n\n<!-- end -->\nb\n");
        assert_eq!(filled(&new, |name| Some(format!("| {name} |\n"))).unwrap(), new);
        assert_eq!(filled(page, |_| None).unwrap(), page);
        assert!(filled("<!-- table: zoo/table -->\n", |_| None).is_err());
    }
}
