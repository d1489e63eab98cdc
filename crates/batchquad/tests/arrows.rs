//! Which part may lean on which: arrows point down, and this reads the `use` lines to see that they do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{collections::BTreeMap, fs, path::Path};

/// The parts from the bottom up: a part may use those of its own row and of the rows before it.
const ROWS: [&[&str]; 12] = [
    &["error", "interrupt", "points", "types"],
    &["linalg", "triangular", "simd", "pairs", "optim", "rng"],
    &["kernel", "measure", "prior", "warp", "jets", "frame"],
    &["design", "embed", "gp", "laplace", "bq"],
    &["estimate", "residuals", "surrogate"],
    &["acquire", "posterior", "compare"],
    &["select"],
    &["settings", "nodes"],
    &["engine", "stop"],
    &["diagnostics"],
    &["run"],
    &["session"],
];

/// Parts on the impure side: they know the words at the bottom and nothing else.
const IMPURE: [&str; 2] = ["journal", "evaluate"];

fn sources(dir: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
            let inside = path.strip_prefix(root).unwrap();
            let part = inside.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
            found.push((part, fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The parts named by `crate::…` in a source, tests and comments left out.
fn used(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap();
    let code: String = code.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut parts = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            // The names at depth one of a braced list.
            let (mut depth, mut name) = (1, String::new());
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    _ => {}
                }
                if depth == 1 && (c.is_alphanumeric() || c == '_') {
                    name.push(c);
                } else if depth == 1 && c == ':' {
                    parts.push(std::mem::take(&mut name));
                } else if depth == 1 && c == ',' {
                    name.clear();
                }
                if depth == 0 {
                    break;
                }
            }
        } else {
            parts.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    parts.retain(|p| !p.is_empty());
    parts
}

#[test]
fn arrows_point_down() {
    let level: BTreeMap<&str, usize> =
        ROWS.iter().enumerate().flat_map(|(i, row)| row.iter().map(move |p| (*p, i))).collect();
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.len() > 30);
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (part, source) in found.iter().filter(|(part, _)| part != "lib") {
        for other in used(source).iter().filter(|o| *o != part) {
            // A capital is an item re-exported at the root.
            if other.starts_with(char::is_uppercase) {
                continue;
            }
            seen += 1;
            let allowed = if IMPURE.contains(&part.as_str()) {
                level.get(other.as_str()) == Some(&0)
            } else if IMPURE.contains(&other.as_str()) {
                ["engine", "stop", "run", "session"].contains(&part.as_str())
            } else {
                match (level.get(part.as_str()), level.get(other.as_str())) {
                    (Some(from), Some(to)) => to <= from,
                    _ => false,
                }
            };
            if !allowed {
                wrong.push(format!("{part} uses {other}"));
            }
        }
    }
    assert!(seen > 100, "only {seen} arrows were read");
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "arrows that point up, or parts without a row: {wrong:#?}");
}

#[test]
fn only_one_file_names_the_matrix_crate() {
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    for (part, source) in found {
        assert!(part == "linalg" || !source.contains("faer::"), "{part}");
    }
}
