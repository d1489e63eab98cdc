//! The program itself: every experiment makes its files, and a killed one ends in the same ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

fn program(arguments: &[&str], out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_experiments"));
    command.args(arguments).arg("--out").arg(out);
    command
}

fn run(arguments: &[&str], out: &Path) -> Output {
    let output = program(arguments, out).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// All files below a directory but those of single runs, sorted.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("runs") {
            found.extend(files(&path));
        } else if path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn every_experiment_leaves_rows_a_summary_and_figures_and_threads_do_not_matter() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let small = ["all", "--runs", "1", "--seed", "4", "--budget", "24"];
    let said = run(&[&small[..], &["--threads", "1"]].concat(), one.path()).stdout;
    run(&[&small[..], &["--threads", "2"]].concat(), two.path());
    let said = String::from_utf8(said).unwrap();
    for entry in fs::read_dir(one.path()).unwrap().map(|e| e.unwrap()).filter(|e| e.file_name() != "runs") {
        let name = entry.file_name().into_string().unwrap();
        assert!(said.contains(&format!("== {name} (")), "{name}");
        let endings: Vec<String> =
            files(&entry.path()).iter().map(|p| p.extension().unwrap().to_string_lossy().into_owned()).collect();
        for ending in ["csv", "json", "svg", "png"] {
            assert!(endings.iter().any(|e| e == ending), "{name} has no {ending}");
        }
        let summary: serde_json::Value =
            serde_json::from_slice(&fs::read(entry.path().join("summary.json")).unwrap()).unwrap();
        assert_eq!(summary["experiment"], *name);
        assert_eq!(summary["seed"], 4);
    }
    let made = files(one.path());
    assert!(made.len() > 40, "{made:?}");
    for path in made {
        let other = two.path().join(path.strip_prefix(one.path()).unwrap());
        assert!(fs::read(&path).unwrap() == fs::read(&other).unwrap(), "{}", path.display());
    }
}

/// Waits for a condition, for at most a minute: a slow machine is no failure, a program that never gets there is.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_killed_experiment_goes_on_where_it_was() {
    let (whole, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let arguments = ["efficiency", "--problems", "in-model", "--batches", "2,8", "--runs", "8", "--budget", "64"];
    run(&arguments, whole.path());
    let runs = killed.path().join("runs");
    let finished = || {
        fs::read_dir(&runs)
            .map_or(0, |d| d.filter(|e| e.as_ref().unwrap().path().extension().unwrap() == "json").count())
    };
    // Killed three times on the way, with some of the 32 runs finished and one or two half done.
    for wanted in [3, 8, 15] {
        let mut child = program(&arguments, killed.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("finished runs", || finished() >= wanted || child.try_wait().unwrap().is_some());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let before = finished();
    assert!((15..=32).contains(&before), "{before}");
    let marks = || -> Vec<_> {
        let paths =
            fs::read_dir(&runs).unwrap().map(|e| e.unwrap().path()).filter(|p| p.extension().unwrap() == "json");
        let mut marks: Vec<_> = paths.map(|p| (p.clone(), fs::metadata(&p).unwrap().modified().unwrap())).collect();
        marks.sort();
        marks
    };
    let old = marks();
    run(&arguments, killed.path());
    let new = marks();
    assert_eq!(new.len(), 32);
    assert!(old.iter().all(|m| new.contains(m)), "a finished run was made again");
    for path in files(whole.path()) {
        let other = killed.path().join(path.strip_prefix(whole.path()).unwrap());
        assert!(fs::read(&path).unwrap() == fs::read(&other).unwrap(), "{}", path.display());
    }
}

#[test]
fn coverage_counts_what_its_rows_say() {
    let dir = tempfile::tempdir().unwrap();
    run(&["coverage", "--runs", "2", "--budget", "64", "--batches", "8", "--only", "gaussian-2,jump"], dir.path());
    let place = dir.path().join("coverage");
    let mut rows = csv::Reader::from_path(place.join("readings.csv")).unwrap();
    let readings: Vec<(f64, f64)> = rows
        .records()
        .map(|row| row.unwrap())
        .map(|row| (row[4].parse::<f64>().unwrap(), row[5].parse::<f64>().unwrap()))
        .collect();
    // Two problems, two seeds, read at 32 and 64.
    assert_eq!(readings.len(), 8);
    let held = readings.iter().filter(|(error, sd)| error.abs() - 5e-4 <= 1.959_96 * sd).count();
    let summary: serde_json::Value = serde_json::from_slice(&fs::read(place.join("summary.json")).unwrap()).unwrap();
    let all = &summary["results"]["overall"][0];
    assert_eq!(all["count"], 8);
    assert_eq!(all["coverage"][3], 100.0 * held as f64 / 8.0);
    for name in ["overall.md", "problems.md", "errors.md", "verdicts.md", "coverage.svg", "coverage.png"] {
        assert!(place.join(name).exists(), "{name}");
    }
}

#[test]
fn the_study_of_the_stopping_rule_counts_what_its_rows_say() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["stopping-log", "--runs", "2", "--budget", "48", "--only", "gaussian-2,four-modes"];
    let said = String::from_utf8(run(&arguments, dir.path()).stdout).unwrap();
    assert!(said.contains("gaussian-2") && said.contains("below 0.05 for good"), "{said}");
    let place = dir.path().join("stopping-log");
    let mut lines = csv::Reader::from_path(place.join("runs.csv")).unwrap();
    let rows: Vec<csv::StringRecord> = lines.records().map(|row| row.unwrap()).collect();
    assert_eq!(rows.len(), 4);
    let stopped = rows.iter().filter(|row| !row[3].is_empty()).count();
    let small = rows.iter().filter(|row| row[3].parse::<f64>().is_ok_and(|error| error < 0.1)).count();
    let summary: serde_json::Value = serde_json::from_slice(&fs::read(place.join("summary.json")).unwrap()).unwrap();
    let all = summary["results"].as_array().unwrap().last().unwrap();
    assert_eq!((&all["problem"], &all["runs"], &all["stopped"]), (&"all".into(), &4.into(), &stopped.into()));
    if stopped > 0 {
        assert_eq!(all["tolerable"], small as f64 / stopped as f64);
    }
    assert!(place.join("stops.md").exists());
}

#[test]
fn mistakes_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], word: &str| {
        let output = program(arguments, dir.path()).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && message.contains(word), "{arguments:?}: {message}");
        // Whatever the environment asks for, a mistake is no occasion for a backtrace.
        assert_eq!(message.lines().count(), 1, "{message}");
    };
    refused(&["zoo", "--runs", "0"], "--runs 0");
    refused(&["zoo", "--budget", "0"], "--budget 0");
    refused(&["zoo", "--set", "nonsense=1"], "nonsense");
    refused(&["zoo", "--set", "batch"], "KEY=VALUE");
    refused(&["zoo", "--set", "kernel=round"], "--set kernel=round");
    refused(&["efficiency", "--batches", "0"], "batch");
    refused(&["efficiency", "--rules", "best"], "best");
    refused(&["coverage", "--only", "nothing"], "--only nothing");
    refused(&["coverage", "--budget", "8"], "--budget 8");
    refused(&["stopping-log", "--only", "nothing"], "--only nothing");
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let output = program(&["penalisation"], &file).output().unwrap();
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("file"));
}
