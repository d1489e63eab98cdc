//! The report of a run: one word for one thing, and counts that agree with the evaluations.
#![cfg(feature = "run")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use batchquad::{
    Config, Integral, Prior, Settings, integrate,
    prior::Distribution,
    run::{
        Status, Stop, SurrogateChoice,
        report::{EvaluationStatus, Report, Trust, evaluations},
    },
};
use serde_json::{Value, json};

/// A bump that is zero far to the left and has no value far to the right.
fn integral() -> Integral {
    let log_likelihood = |t: &[f64]| match t[0] {
        x if x < -1.2 => f64::NEG_INFINITY,
        x if x > 1.2 => f64::NAN,
        x => -0.5 * (x / 0.3).powi(2),
    };
    let prior = Prior::independent([("x", Distribution::normal(0.0, 1.0).unwrap())]).unwrap();
    // The square root's belief looks everywhere, failures included.
    let settings = Settings { max_evaluations: 24, surrogate: SurrogateChoice::WsabiL, ..Settings::default() };
    integrate(log_likelihood, prior, Config { settings, workers: 1, ..Config::default() }).unwrap()
}

#[test]
fn every_evaluation_is_in_it_with_one_word() {
    let integral = integral();
    let ledger = integral.engine.ledger();
    let report = Report::new(&integral.engine, Some(&integral.stop)).unwrap();
    let all = evaluations(ledger);
    let count = |status: EvaluationStatus| all.iter().filter(|e| e.status == status).count();
    assert_eq!(count(EvaluationStatus::Failed), report.tally.failures);
    assert_eq!(count(EvaluationStatus::Value) + count(EvaluationStatus::Failed), report.tally.evaluations);
    assert!(report.tally.failures > 0, "a point beyond 1.2 was asked");
    assert_eq!(json!(report.tally.failures_by_kind), json!({ "nan": report.tally.failures }));
    let rows: Vec<Value> = all.iter().map(|e| json!(e)).collect();
    let zero = rows.iter().find(|row| row["theta"][0].as_f64().unwrap() < -1.2).expect("a point below -1.2 was asked");
    assert_eq!((&zero["status"], &zero["log_likelihood"]), (&json!("value"), &json!("-inf")));
    let failed = rows.iter().find(|row| row["status"] == "failed").unwrap();
    assert_eq!((&failed["kind"], &failed["log_likelihood"]), (&json!("nan"), &Value::Null));
    for (row, e) in rows.iter().zip(&all) {
        assert_eq!(row["status"], e.status.as_str());
    }
}

#[test]
fn the_verdict_is_a_word_with_its_reason_beside_it() {
    let integral = integral();
    let report = Report::new(&integral.engine, Some(&integral.stop)).unwrap().with_posterior(&integral.engine);
    let text = serde_json::to_value(&report).unwrap();
    assert!(["fine", "look", "do-not-trust"].contains(&text["verdict"].as_str().unwrap()), "{text}");
    assert_eq!(text["verdict_reason"], report.diagnosis.as_ref().unwrap().summary());
    assert_eq!(text["log_z"], integral.estimate.log_z);
    assert_eq!(text["status"], integral.stop.status.as_str());
    assert!(text["posterior"]["x"]["low"].as_f64().unwrap() < text["posterior"]["x"]["high"].as_f64().unwrap());
    // What a store keeps of a verdict is what is read from it.
    let kept: Trust = serde_json::from_value(text).unwrap();
    assert_eq!(Some(kept), report.trust);
    let labels: Vec<&str> = report.facts().iter().map(|(label, _)| *label).collect();
    assert_eq!(labels[..5], ["log Z", "95 %", "verdict", "status", "evaluations"]);
}

#[test]
fn a_run_that_failed_has_no_number_and_one_without_an_end_says_what_is_to_do() {
    let integral = integral();
    let stop = Stop { status: Status::Failed, reason: "the disk is full".into() };
    let failed = Report::new(&integral.engine, Some(&stop)).unwrap().with_posterior(&integral.engine);
    assert!(failed.log_z.is_none() && failed.trust.is_none() && failed.posterior.is_none());
    assert_eq!(failed.facts()[0].1, "none");
    let open = Report::new(&integral.engine, None).unwrap();
    assert_eq!((open.status, open.reason.as_str()), ("unfinished", "more points can be asked"));
}
