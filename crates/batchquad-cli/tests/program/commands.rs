//! Every command does what it says.

use std::os::unix::fs::PermissionsExt;

use crate::common::{Place, bump_log_z};

#[test]
fn a_problem_from_check_to_export() {
    let place = Place::bump("max_evaluations = 40\nseed = 3");
    let check = place.run(&["check", "problem.toml"], 0);
    assert!(check.stdout.contains("x ~ normal(mean 0.0, sd 1.0)"), "{}", check.stdout);
    assert!(check.stdout.contains("log-likelihood -2.45158"), "{}", check.stdout);
    assert!(!place.path("problem.batchquad").exists());

    let result = place.run(&["run", "problem.toml", "--json"], 0).json();
    assert_eq!(result["status"], "budget");
    assert_eq!((result["evaluations"].as_u64(), result["failures"].as_u64()), (Some(40), Some(0)));
    // Smooth and two-dimensional: forty values know it to two digits.
    assert!((result["log_z"].as_f64().unwrap() - bump_log_z()).abs() < 0.02, "{result}");
    assert!(result["log_z_sd"].as_f64().unwrap() < 0.02);
    // The posterior is N(0.8, 0.2) N(0, 0.2); the draws are worth thousands.
    for (name, mean) in [("x", 0.8), ("y", 0.0)] {
        let marginal = &result["posterior"][name];
        assert!((marginal["mean"].as_f64().unwrap() - mean).abs() < 0.02, "{result}");
        assert!((marginal["sd"].as_f64().unwrap() - 0.2_f64.sqrt()).abs() < 0.02, "{result}");
        // Central 95 %: 1.96 standard deviations to each side.
        for (key, side) in [("low", -1.0), ("high", 1.0)] {
            assert!((marginal[key].as_f64().unwrap() - mean - side * 1.96 * 0.2_f64.sqrt()).abs() < 0.03, "{result}");
        }
        assert_eq!(marginal["method"], "draws");
    }
    assert!(result["posterior_effective_samples"].as_f64().unwrap() > 500.0);
    assert!(result["seconds_evaluating"].as_f64().unwrap() > result["seconds_choosing"].as_f64().unwrap());

    let same = place.run(&["result", "problem.batchquad", "--json"], 0).json();
    assert_eq!(result, same);
    let table = place.run(&["result", "problem.batchquad"], 0).stdout;
    assert!(table.starts_with("log Z        -2.46") && table.contains("± 0.0"), "{table}");
    let status = place.run(&["status", "problem.batchquad"], 0).stdout;
    assert!(status.contains("budget") && status.contains("40 of 40") && status.contains("./likelihood"), "{status}");
    let status = place.run(&["status", "problem.batchquad", "--json"], 0).json();
    assert_eq!(status["pending"], 0);

    let csv = place.run(&["export", "problem.batchquad"], 0).stdout;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "id,batch,x,y,log_likelihood,status,seconds,worker,kind,message");
    assert_eq!(lines.len(), 41);
    assert!(lines[1].starts_with("0,0,") && lines[40].starts_with("39,"), "{csv}");

    let mode = |name: &str| place.path(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("problem.batchquad"), mode("problem.batchquad/journal.jsonl")), (0o700, 0o600));
    assert!(place.run(&["doctor", "problem.batchquad"], 0).stdout.contains("damage"));
}

#[test]
fn draws_are_written_as_tables_and_lines() {
    let place = Place::bump("max_evaluations = 40");
    place.run(&["run", "problem.toml", "-q"], 0);
    let csv = place.run(&["draws", "problem.batchquad", "-n", "2000", "--seed", "5"], 0);
    assert!(csv.stderr.contains("independent"), "{}", csv.stderr);
    let rows: Vec<Vec<f64>> =
        csv.stdout.lines().skip(1).map(|line| line.split(',').map(|v| v.parse().unwrap()).collect()).collect();
    assert_eq!((csv.stdout.lines().next(), rows.len()), (Some("x,y"), 2000));
    for (k, mean) in [(0, 0.8), (1, 0.0)] {
        let found = rows.iter().map(|r| r[k]).sum::<f64>() / 2000.0;
        // Four standard errors of 2000 draws of N(mean, 0.2).
        assert!((found - mean).abs() < 0.04, "{found}");
    }
    assert_eq!(place.run(&["draws", "problem.batchquad", "-n", "2000", "--seed", "5"], 0).stdout, csv.stdout);
    assert_ne!(place.run(&["draws", "problem.batchquad", "-n", "2000", "--seed", "6"], 0).stdout, csv.stdout);
    let lines =
        place.run(&["draws", "problem.batchquad", "-n", "500", "--weighted", "--format", "jsonl"], 0).json_lines();
    let total: f64 = lines.iter().map(|line| line["log_weight"].as_f64().unwrap().exp()).sum();
    let mean: f64 = lines.iter().map(|l| l["log_weight"].as_f64().unwrap().exp() * l["x"].as_f64().unwrap()).sum();
    assert!((total - 1.0).abs() < 1e-9 && (mean - 0.8).abs() < 0.1, "{total} {mean}");
    for bad in [["-n", "0"], ["-n", "99999999999"], ["--format", "xml"]] {
        place.run(&["draws", "problem.batchquad", bad[0], bad[1]], 2);
    }
    place.run(&["draws", "nothing"], 2);
    place.run(&["new", "problem.toml", "--store", "empty"], 0);
    assert!(place.run(&["draws", "empty"], 1).stderr.contains("no posterior"));
}

#[test]
fn an_export_is_a_warm_start() {
    let place = Place::bump("max_evaluations = 32");
    place.run(&["run", "problem.toml", "-q"], 0);
    let table = place.run(&["export", "problem.batchquad"], 0).stdout;
    place.write("table.csv", &table);
    let made = place.run(&["new", "problem.toml", "--store", "warm", "--import", "table.csv"], 0);
    assert!(made.stderr.contains("imported 32 evaluations"), "{}", made.stderr);
    let again = place.run(&["import", "warm", "table.csv"], 0);
    assert!(again.stderr.contains("imported 0 evaluations, 32 were known already"), "{}", again.stderr);
    // The same values, so the same belief up to the search for its hyperparameters.
    let warm = place.outcome("warm");
    assert_eq!(warm["imported"], 32);
    assert!((warm["log_z"].as_f64().unwrap() - bump_log_z()).abs() < 0.02, "{warm}");
    // And it can be built upon: no second initial design.
    place.run(&["run", "problem.toml", "--store", "warm", "--max-evaluations", "40", "-q"], 0);
    let warm = place.outcome("warm");
    assert_eq!((warm["imported"].as_u64(), warm["evaluations"].as_u64()), (Some(32), Some(8)));
}

#[test]
fn tables_with_mistakes_are_refused_by_line() {
    let place = Place::bump("");
    for (table, expected) in [
        ("x,log_likelihood\n1,2\n", "the column \"y\" is missing"),
        ("x,y,log_likelihood\n1,2,-3\n1,two,-3\n", "line 3: y is \"two\""),
        ("x,y,log_likelihood\n1,2,nan\n", "line 2: log-likelihood is NaN"),
        ("x,y,log_likelihood\n", "no rows"),
        ("x,y,log_likelihood\n1,2\n", "line"),
    ] {
        place.write("table.csv", table);
        let refused = place.run(&["new", "problem.toml", "--import", "table.csv"], 2);
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
        assert!(!place.path("problem.batchquad").exists());
    }
}

#[test]
fn models_are_compared() {
    let place = Place::bump("max_evaluations = 32");
    let shifted = crate::common::BUMP.replace("printf", "$1 = $1 * 1; printf").replace("- log(", "- 1 - log(");
    place.script("other", &shifted);
    let text = std::fs::read_to_string(place.path("problem.toml")).unwrap();
    place.write("other.toml", &text.replace("./likelihood", "./other"));
    place.run(&["run", "problem.toml", "-q"], 0);
    place.run(&["run", "other.toml", "-q"], 0);
    let compared = place.run(&["compare", "problem.batchquad", "other.batchquad", "--json"], 0).json();
    let models = compared["models"].as_array().unwrap();
    // The second is the first times 1/e.
    assert!((models[1]["log_bayes_factor"].as_f64().unwrap() + 1.0).abs() < 1e-6, "{compared}");
    let expected = 1.0 / (1.0 + (-1.0_f64).exp());
    assert!((models[0]["probability"].as_f64().unwrap() - expected).abs() < 1e-3, "{compared}");
    let table = place.run(&["compare", "problem.batchquad", "other.batchquad"], 0).stdout;
    assert!(table.contains("other.batchquad") && table.contains("-1.0"), "{table}");
    place.run(&["compare", "problem.batchquad", "nothing"], 2);
}

#[test]
fn jointly_normal_parameters() {
    let place = Place::bump("max_evaluations = 32");
    let rest = r#"
        [[parameter]]
        names = ["x", "y"]
        prior = { multivariate-normal = { mean = [0, 0], covariance = [[1, 0.6], [0.6, 1]] } }
        [likelihood]
        command = ["./likelihood"]
        [run]
        max_evaluations = 48
    "#;
    place.write("problem.toml", rest);
    let result = place.run(&["run", "problem.toml", "--json", "-q"], 0).json();
    // N((1, 0); 0, S + ¼I) with S + ¼I = [[1.25, 0.6], [0.6, 1.25]]: determinant 1.2025, quadratic form 1.25/1.2025.
    let truth = -0.5 * 1.25 / 1.2025 - 0.5 * 1.2025_f64.ln() - std::f64::consts::TAU.ln();
    assert!((result["log_z"].as_f64().unwrap() - truth).abs() < 0.02, "{result}, expected {truth}");
}

#[test]
fn both_schedules_and_server_mode() {
    let server = r#"#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    q = json.loads(line)
    p = q["parameters"]
    print(json.dumps({"id": q["id"], "log_likelihood": -2 * ((p["x"] - 1) ** 2 + p["y"] ** 2) - 0.4515827052894549}), flush=True)
"#;
    let place = Place::new(server, "mode = \"server\"", "max_evaluations = 48\nschedule = \"async\"\nworkers = 2");
    let result = place.run(&["run", "problem.toml", "--json", "-q"], 0).json();
    assert!((result["log_z"].as_f64().unwrap() - bump_log_z()).abs() < 0.02, "{result}");
    let flags = ["run", "problem.toml", "--store", "b", "--schedule", "batch", "--batch", "4", "--seed", "9", "--json"];
    let result = place.run(&flags, 0).json();
    // 4, 4, 2, 2, 3, 3 and eight more: a batch has at most a quarter as many points as there are values.
    assert_eq!((result["batches"].as_u64(), result["seed"].as_u64()), (Some(14), Some(9)));
}

#[test]
fn help_completions_and_man_pages_come_from_one_definition() {
    let place = Place::bump("");
    let help = place.run(&["run", "--help"], 0).stdout;
    for word in
        ["--store", "--workers", "--batch", "--max-evaluations", "--seed", "--json", "--quiet", "--resume", "130"]
    {
        assert!(help.contains(word), "{word} is not in {help}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(place.run(&["completions", shell], 0).stdout.contains("max-evaluations"));
    }
    assert!(place.run(&["man"], 0).stdout.contains(".TH batchquad 1"));
    place.run(&["man", "--out", "man"], 0);
    assert!(place.path("man/batchquad-run.1").exists());
    place.run(&["run"], 2);
    place.run(&["--no-such-option"], 2);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::bump("max_evaluations = 16");
    place.run(&["run", "problem.toml", "-q"], 0);
    let mut child = place.spawn(&["export", "problem.batchquad"]);
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
