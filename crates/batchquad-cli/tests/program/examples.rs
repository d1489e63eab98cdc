//! The examples, as a newcomer runs them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::common::Place;

/// A copy of an example's folder, so that nothing is left behind in the original.
pub fn copy(name: &str) -> Place {
    let from: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let place = Place { dir: tempfile::tempdir().unwrap() };
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap).filter(|e| e.path().is_file()) {
        std::fs::copy(entry.path(), place.path(entry.file_name().to_str().unwrap())).unwrap();
    }
    place
}

/// Runs an example and compares it with the answer that its own file knows.
fn run(place: &Place, tolerance: f64) -> Value {
    let result = place.run(&["run", "problem.toml", "--json", "-q"], 0).json();
    let [log_z, sd, known] = ["log_z", "log_z_sd", "known_log_z"].map(|key| result[key].as_f64().unwrap());
    assert_eq!(result["failures"], 0, "{result}");
    assert!((log_z - known).abs() < tolerance, "{log_z} ± {sd}, known {known}");
    // Not blind luck: the error is also what the run itself expected.
    assert!((log_z - known).abs() < 4.0 * sd, "{log_z} ± {sd}, known {known}");
    result
}

#[test]
fn orings_in_python() {
    let place = copy("orings");
    let result = run(&place, 0.02);
    assert_eq!(result["evaluations"], 64);
    let table = place.run(&["run", "problem.toml", "-q"], 0).stdout;
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("log Z        -14.0") && lines[1].starts_with("95 %         -14.0"), "{table}");
    assert!(lines[2].starts_with("known        -14.01941 ") && lines[2].ends_with(" sd)"), "{table}");
}

#[test]
fn counts_in_awk() {
    run(&copy("awk"), 0.02);
}

#[test]
fn growth_in_c() {
    let place = copy("c");
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-o", "growth", "growth.c", "-lm"]).current_dir(place.dir.path());
    match compile.status() {
        Ok(status) => assert!(status.success()),
        Err(_) => return eprintln!("skipped: there is no C compiler"),
    }
    run(&place, 0.05);
}

#[test]
fn a_line_by_a_server() {
    let place = copy("server");
    let result = run(&place, 0.1);
    // The second that a server takes to start is paid once for each of two workers.
    assert!(result["seconds_evaluating"].as_f64().unwrap() < 20.0, "{result}");
}
