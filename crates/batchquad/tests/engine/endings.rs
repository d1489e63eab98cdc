//! How a run ends: every reason named, failures counted, no number without evidence.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use batchquad::{
    Config, Engine, Error, Prior, Settings,
    evaluate::Interrupt,
    integrate,
    interrupt::heeding,
    journal::{Event, Told},
    prior::Distribution,
    run::{Memory, OnFailure, Status, Stop, honest},
    types::{FailureKind, Job, Outcome},
};

use crate::common::{Fake, finish, prior, small, value};

#[test]
fn failed_evaluations_are_excluded_counted_and_not_repeated() {
    // A third of the prior fails.
    let flaky = |job: &Job| {
        if job.theta[0] > 0.43 && job.theta[1] > 0.0 {
            Outcome::Failed { kind: FailureKind::Nan, message: "no number".into() }
        } else {
            value(job)
        }
    };
    let mut engine = Engine::new(prior(2), Settings { max_evaluations: 60, ..small() }, 1).unwrap();
    let stop = finish(&mut engine, &mut Fake::new(2, false, &flaky), &mut Memory);
    assert_eq!(stop.status, Status::Budget);
    let failed = engine.ledger().entries().filter(|e| e.value().is_none()).count();
    assert!(failed > 3 && failed < 40, "{failed}");
    let mass = engine.excluded_mass().unwrap().unwrap();
    assert!(mass > 0.02 && mass < 0.5, "{mass}");
    assert!(engine.current().unwrap().estimate.log_z.is_finite());

    // The user asserts that the likelihood is zero there: the truth is then the integral over the rest.
    let zero = Settings { on_failure: OnFailure::AsZero, max_evaluations: 60, ..small() };
    let mut engine = Engine::new(prior(2), zero, 1).unwrap();
    finish(&mut engine, &mut Fake::new(2, false, &flaky), &mut Memory);
    assert_eq!(engine.excluded_mass().unwrap(), None);
    assert_eq!(engine.current().unwrap().believed.values, 60);

    let abort = Settings { on_failure: OnFailure::Abort, max_evaluations: 60, ..small() };
    let mut engine = Engine::new(prior(2), abort, 1).unwrap();
    let stop = finish(&mut engine, &mut Fake::new(2, false, &flaky), &mut Memory);
    assert_eq!(stop.status, Status::Failed);
    assert!(stop.reason.contains("no number"), "{}", stop.reason);
}

#[test]
fn without_a_single_value_there_is_no_evidence() {
    let fail = |_: &Job| Outcome::Failed { kind: FailureKind::Exit, message: "exit code 1".into() };
    let zero = |_: &Job| Outcome::Value(f64::NEG_INFINITY);
    // A likelihood that only fails is given up when the initial design has failed; zeros are values, and the budget is spent.
    for (answer, asked) in [(&fail as &dyn Fn(&Job) -> Outcome, 8), (&zero, 26)] {
        let mut engine = Engine::new(prior(2), small(), 1).unwrap();
        let stop = finish(&mut engine, &mut Fake::new(2, false, answer), &mut Memory);
        assert_eq!(stop.status, Status::Failed);
        assert_eq!(engine.ledger().entries().len(), asked);
        assert!(matches!(engine.current(), Err(Error::NoFiniteValue { .. })));
    }
    let error = integrate(|_| f64::NAN, prior(1), Config { settings: small(), ..Config::default() }).unwrap_err();
    assert!(matches!(error, Error::NoFiniteValue { .. }));
}

#[test]
fn every_stopping_rule_is_named() {
    let end = |settings: Settings| {
        let mut engine = Engine::new(prior(1), settings, 2).unwrap();
        finish(&mut engine, &mut Fake::new(2, false, &value), &mut Memory)
    };
    let long = Settings { batch: 2, max_evaluations: 200, ..Settings::default() };
    let stop = end(Settings { target_sd: Some(1e-3), ..long.clone() });
    assert_eq!(stop.status, Status::Converged);
    assert!(stop.reason.contains("target_sd"), "{}", stop.reason);
    let stop = end(Settings { max_batches: Some(3), ..long.clone() });
    assert!(stop.status == Status::Budget && stop.reason.contains("max_batches"));
    let stop = end(Settings { max_seconds: Some(1e-9), ..long.clone() });
    assert!(stop.status == Status::Failed && stop.reason.contains("max_seconds"), "{stop:?}");
    let stop = end(Settings { max_evaluations: 12, ..long.clone() });
    assert!(stop.status == Status::Budget && stop.reason.contains("max_evaluations"));
    let stop = end(Settings { stall: Some(0.05), target_sd: Some(1e-300), ..long.clone() });
    assert!(stop.status == Status::Stalled && stop.reason.contains("stall"), "{stop:?}");
    for bad in [
        Settings { batch: 0, ..long.clone() },
        Settings { target_sd: Some(-1.0), ..long.clone() },
        Settings { max_seconds: Some(f64::NAN), ..long.clone() },
        Settings { initial_size: Some(0), ..long },
    ] {
        assert!(matches!(Engine::new(prior(1), bad, 0), Err(Error::Invalid { .. })));
    }
}

#[test]
fn a_likelihood_that_only_fails_is_given_up() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let prior = Prior::independent([("x", Distribution::normal(0.0, 1.0).unwrap())]).unwrap();
    let fails = move |_: &[f64]| {
        counted.fetch_add(1, Ordering::Relaxed);
        f64::NAN
    };
    let config = Config { settings: Settings { max_evaluations: 1000, ..Settings::default() }, workers: 2, seed: 0 };
    assert!(integrate(fails, prior, config).is_err());
    // The initial design of one dimension, which is one batch.
    assert_eq!(calls.load(Ordering::Relaxed), 8);
}

#[test]
fn an_interrupt_during_the_last_estimate_is_no_failure() {
    let mut engine = Engine::new(prior(1), Settings::default(), 1).unwrap();
    let asked = engine.ask(8).unwrap();
    engine.apply(&Event::Asked(asked.clone())).unwrap();
    for job in &asked.jobs {
        engine.apply(&Event::Told(Told::new(job.id, Outcome::Value(-job.theta[0] * job.theta[0])))).unwrap();
    }
    let budget = || Stop { status: Status::Budget, reason: "enough".into() };
    let interrupt = Interrupt::default();
    interrupt.raise();
    heeding(&interrupt, || {
        assert_eq!(honest(&engine, budget()).status, Status::Interrupted);
        assert!(engine.ask(1).is_err() && engine.known().is_none());
    });
    assert_eq!(honest(&engine, budget()), budget(), "it goes on where it was");
    heeding(&interrupt, || assert_eq!(honest(&engine, budget()), budget(), "what is known stays known"));
}
