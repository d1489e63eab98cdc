//! What a run says at its end, and with which exit code.

use crate::common::{BUMP, Place, bump_log_z};

#[test]
fn a_target_is_met_or_missed() {
    let place = Place::bump("max_evaluations = 100\ntarget_sd = 0.05");
    let met = place.run(&["run", "problem.toml", "--json", "-q"], 0).json();
    assert_eq!(met["status"], "converged");
    assert!(met["evaluations"].as_u64().unwrap() < 100);

    let missed =
        ["run", "problem.toml", "--store", "s", "--max-evaluations", "20", "--target-sd", "1e-9", "-q", "--json"];
    assert_eq!(place.run(&missed, 3).json()["status"], "budget");
    // A larger budget is accepted and recorded.
    let more =
        ["run", "problem.toml", "--store", "s", "--max-evaluations", "28", "--target-sd", "1e-9", "-q", "--json"];
    assert_eq!(place.run(&more, 3).json()["evaluations"], 28);
}

#[test]
fn when_all_fails_there_is_no_log_z() {
    let place = Place::new("#!/bin/sh\necho 'no licence' >&2\nexit 1\n", "", "max_evaluations = 500");
    let failed = place.run(&["run", "problem.toml", "--json"], 1);
    let result = failed.json();
    assert_eq!((result["status"].as_str(), result["log_z"].is_null()), (Some("failed"), true));
    // Nobody has to wait for 500 failures to learn of it, or to guess why.
    assert!(result["evaluations"].as_u64().unwrap() <= 24, "{result}");
    assert!(failed.stderr.contains("no licence") && failed.stderr.contains("there is no log Z"), "{}", failed.stderr);
    // Mended, the run goes on.
    place.script("likelihood", BUMP);
    let mended = place.run(&["run", "problem.toml", "--max-evaluations", "56", "--json", "-q"], 0).json();
    assert!((mended["log_z"].as_f64().unwrap() - bump_log_z()).abs() < 0.1, "{mended}");
    assert!(mended["prior_mass_near_failures"].as_f64().unwrap() > 0.0, "{mended}");
}

#[test]
fn a_likelihood_of_zero_everywhere_has_no_log_z() {
    let place = Place::new("#!/bin/sh\necho -inf\n", "", "max_evaluations = 20");
    let result = place.run(&["run", "problem.toml", "--json", "-q"], 1).json();
    assert_eq!((result["status"].as_str(), result["log_z"].is_null()), (Some("failed"), true));
    assert_eq!(result["failures"], 0);
    place.run(&["check", "problem.toml"], 0);
}

#[test]
fn failures_are_excluded_counted_or_fatal() {
    let script = BUMP.replace("awk '{", "awk '$2 > 1 { print \"nan\"; next } {");
    // The square root's belief looks everywhere, so that many evaluations fail.
    let place = Place::new(&script, "", "max_evaluations = 48\nsurrogate = \"wsabi-l\"");
    let result = place.run(&["run", "problem.toml", "--json", "-q"], 0).json();
    let failures = result["failures"].as_u64().unwrap();
    assert!(failures > 0 && result["failures_by_kind"]["nan"] == failures, "{result}");
    // The failing region has 16 % of the prior and little of the likelihood; most of it is nearest to a failed point.
    let mass = result["prior_mass_near_failures"].as_f64().unwrap();
    assert!((0.05..0.3).contains(&mass), "{result}");
    assert!((result["log_z"].as_f64().unwrap() - bump_log_z()).abs() < 0.1, "{result}");

    let place = Place::new(&script, "on_failure = \"abort\"", "max_evaluations = 48");
    let aborted = place.run(&["run", "problem.toml", "-q"], 1);
    assert!(
        aborted.stderr.contains("failed (nan)") && aborted.stderr.contains("expected a finite number"),
        "{}",
        aborted.stderr
    );
    // Running it again does not pretend otherwise.
    let again = place.run(&["run", "problem.toml", "-q"], 1);
    assert!(again.stderr.contains("exclude"), "{}", again.stderr);
    place.run(&["result", "problem.batchquad"], 1);
}

#[test]
fn zero_on_half_of_the_prior() {
    // Cut through the middle of the bump, by symmetry exactly half of its evidence is left.
    let script = BUMP.replace("awk '{", "awk '$2 < 0 { print \"-inf\"; next } {");
    let place = Place::new(&script, "", "max_evaluations = 80\nbatch = 16");
    let result = place.run(&["run", "problem.toml", "--json", "-q"], 0).json();
    let error = result["log_z"].as_f64().unwrap() - (bump_log_z() - 2.0_f64.ln());
    // A jump is not what the model expects: it is found to a tenth with this many values.
    assert!(error.abs() < 0.25, "{error} {result}");
}

#[test]
fn offsets_shift_log_z_and_nothing_else() {
    let plain = Place::bump("max_evaluations = 24");
    let reference = plain.run(&["run", "problem.toml", "--json", "-q"], 0).json();
    for offset in [1e6, -1e6] {
        let script = BUMP.replace("printf \"%.17g\\n\", ", &format!("printf \"%.17g\\n\", {offset:.0} + "));
        let place = Place::new(&script, "", "max_evaluations = 24");
        let result = place.run(&["run", "problem.toml", "--json", "-q"], 0).json();
        let shift = result["log_z"].as_f64().unwrap() - reference["log_z"].as_f64().unwrap();
        // A log-likelihood of 1e6 is rounded to 1e-10, which the choice of points may amplify.
        assert!((shift - offset).abs() < 1e-3, "{shift}");
        assert!((result["log_z"].as_f64().unwrap() - offset - bump_log_z()).abs() < 0.1);
    }
}
