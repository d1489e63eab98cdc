//! Independent runs in one store: each as if it were alone, all of them together at the end, and whether they agree.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{ops::ControlFlow, path::Path};

use batchquad::{
    Engine, Error, Integration, Prior, Settings,
    journal::{Event, Ledger, Lines, Told},
    numeric::{normal::chi_square_tail, repeat_seed},
    prior::Distribution,
    run::{Level, Plan, Report, Session, Status, Step, diagnose, next_step, report::evaluations, standing},
    types::{Job, Outcome},
};

fn prior() -> Prior {
    Prior::independent(["a", "b"].map(|n| (n, Distribution::normal(0.0, 1.0).unwrap()))).unwrap()
}

fn bump(theta: &[f64]) -> f64 {
    -theta.iter().map(|t| (t - 0.5).powi(2)).sum::<f64>()
}

/// `∫ exp(−(t−½)²) N(t; 0, 1) dt = exp(−¼/3)/√3` in each dimension.
fn truth() -> f64 {
    2.0 * (-0.25 / 3.0 - 0.5 * 3.0_f64.ln())
}

fn three() -> Settings {
    Settings { batch: 4, max_evaluations: 24, repeats: Some(3), ..Settings::default() }
}

/// Runs to the end with answers by repeat; every event goes to `tape`.
fn finish(engine: &mut Engine, answer: impl Fn(usize, &Job) -> f64, tape: &mut Vec<Event>) -> batchquad::run::Stop {
    loop {
        let pending: Vec<Job> = engine.ledger().pending().cloned().collect();
        for job in pending.into_iter().rev() {
            let repeat = engine.ledger().entry(job.id).unwrap().repeat;
            let told = Event::Told(Told::new(job.id, Outcome::Value(answer(repeat, &job))));
            engine.apply(&told).unwrap();
            tape.push(told);
        }
        match next_step(engine, 0, 0.0) {
            Step::Stop(stop) => return stop,
            Step::Wait => panic!("nothing is in flight"),
            Step::Ask { repeat, n } => {
                let asked = Event::Asked(engine.ask_for(repeat, n).unwrap());
                engine.apply(&asked).unwrap();
                tape.push(asked);
            }
        }
    }
}

fn honest(_: usize, job: &Job) -> f64 {
    bump(&job.theta)
}

fn points(engine: &Engine) -> Vec<Vec<u64>> {
    engine.ledger().entries().map(|e| e.job.theta.iter().map(|t| t.to_bits()).collect()).collect()
}

fn bits(engine: &Engine) -> (u64, u64, Vec<Vec<u64>>) {
    let e = engine.current().unwrap().estimate;
    (e.log_z.to_bits(), e.log_z_sd.to_bits(), points(engine))
}

#[test]
fn each_repeat_is_the_run_that_its_seed_would_have_alone() {
    let mut together = Engine::new(prior(), three(), 9).unwrap();
    let stop = finish(&mut together, honest, &mut Vec::new());
    assert_eq!(
        (stop.status, stop.reason.as_str()),
        (Status::Budget, "max_evaluations = 24 were asked in each of 3 repeats")
    );
    assert_eq!((together.ledger().entries().len(), together.repeats().len()), (72, 3));
    assert_eq!(repeat_seed(9, 0), 9);
    for (k, run) in together.repeats().iter().enumerate() {
        let mut alone = Engine::new(prior(), Settings { repeats: None, ..three() }, repeat_seed(9, k)).unwrap();
        finish(&mut alone, honest, &mut Vec::new());
        assert_eq!(bits(run), bits(&alone), "repeat {k}");
    }
    let seeds: std::collections::BTreeSet<u64> = (0..100).map(|k| repeat_seed(9, k)).collect();
    assert_eq!(seeds.len(), 100);
}

#[test]
fn the_values_are_pooled_and_the_runs_agree() {
    let mut engine = Engine::new(prior(), three(), 4).unwrap();
    finish(&mut engine, honest, &mut Vec::new());
    let current = engine.current().unwrap();
    assert_eq!(current.believed.values, 72);
    assert!((current.estimate.log_z - truth()).abs() < 0.02, "{}", current.estimate);
    let agreement = current.agreement.as_ref().unwrap();
    assert!(agreement.compared == 3 && !agreement.disagrees(), "{agreement:?}");
    let report = Report::new(&engine, standing(&engine).as_ref()).unwrap();
    assert_eq!(report.repeats.len(), 3);
    assert!(report.repeats.iter().all(|r| r.evaluations == 24 && (r.log_z.unwrap() - truth()).abs() < 0.1));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["repeats"][2]["repeat"], 3);
    assert_eq!(json["agreement"]["compared"], 3);
    let facts = report.facts();
    assert!(facts.iter().filter(|(label, _)| *label == "repeat").count() == 3, "{facts:?}");
    let found = diagnose(&engine).unwrap();
    assert!(found.findings.iter().any(|f| f.name == "agreement" && f.level == Level::Fine), "{:?}", found.findings);
    assert!(found.findings.iter().all(|f| f.name != "settled"));
    // Forecasts are numbered by the batches of all.
    let batches = engine.ledger().batches().len();
    assert!(found.forecasts.iter().all(|f| f.batch < batches) && found.forecasts.last().unwrap().batch == batches - 1);
    assert!(evaluations(engine.ledger()).iter().enumerate().all(|(i, e)| e.repeat == Some(i / 24 + 1)));
}

#[test]
fn runs_that_contradict_each_other_are_not_to_be_trusted_and_widen_the_bar() {
    let mut engine =
        Engine::new(prior(), Settings { target_sd: Some(0.05), max_evaluations: 40, ..three() }, 2).unwrap();
    // The second run is told of a likelihood that is e² times as large.
    let stop =
        finish(&mut engine, |repeat, job| bump(&job.theta) + if repeat == 1 { 2.0 } else { 0.0 }, &mut Vec::new());
    let agreement = engine.current().unwrap().agreement.clone().unwrap();
    assert!(agreement.disagrees(), "{agreement:?}");
    // The scatter of 0, 2 and 0 is √(8/3/2).
    assert!((agreement.scatter - (4.0_f64 / 3.0).sqrt()).abs() < 0.1, "{agreement:?}");
    assert!(engine.current().unwrap().estimate.log_z_sd >= agreement.scatter);
    assert!(engine.repeats().iter().all(|run| run.current().unwrap().estimate.log_z_sd < 0.1));
    let diagnosis = diagnose(&engine).unwrap();
    assert_eq!(diagnosis.verdict, Level::DoNotTrust);
    assert!(diagnosis.summary().contains("independent runs disagree"), "{}", diagnosis.summary());
    assert_eq!(stop.status, Status::Budget);
    assert!(stop.reason.contains("not to be trusted"), "{}", stop.reason);
}

#[test]
fn runs_that_meet_their_target_and_agree_have_converged() {
    let mut engine =
        Engine::new(prior(), Settings { target_sd: Some(0.05), max_evaluations: 60, ..three() }, 2).unwrap();
    let stop = finish(&mut engine, honest, &mut Vec::new());
    assert_eq!(stop.status, Status::Converged, "{}", stop.reason);
    assert!(stop.reason.contains("in each of 3 repeats"), "{}", stop.reason);
    assert!(engine.ledger().entries().len() < 180);
}

#[test]
fn a_run_cut_after_any_event_ends_in_the_same_bits() {
    let settings = Settings { max_evaluations: 16, ..three() };
    let mut whole = Engine::new(prior(), settings, 3).unwrap();
    let mut tape = Vec::new();
    finish(&mut whole, honest, &mut tape);
    let expected = bits(&whole);
    assert_eq!(tape.len(), 48 + whole.ledger().batches().len());
    for cut in 0..=tape.len() {
        let mut ledger = Ledger::new(whole.ledger().header().clone());
        for event in &tape[..cut] {
            // Through JSON, as a journal would.
            ledger.apply(&serde_json::from_str(&serde_json::to_string(event).unwrap()).unwrap()).unwrap();
        }
        let mut resumed = Engine::from_ledger(prior(), ledger).unwrap();
        finish(&mut resumed, honest, &mut Vec::new());
        assert_eq!(bits(&resumed), expected, "cut after event {cut}");
        assert_eq!(resumed.rounds(), whole.rounds(), "cut after event {cut}");
    }
}

fn plan(settings: Settings) -> Plan {
    let problem = serde_json::to_value(batchquad::prior::Parameters::of(&prior()).unwrap()).unwrap();
    Plan { prior: prior(), problem, settings, seed: Some(6) }
}

fn journal(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("journal.jsonl")).unwrap()
}

#[test]
fn a_finished_run_takes_repeats_on_and_never_gives_them_up() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("run");
    let integrate = |settings: Settings| Integration::new(prior()).settings(settings).seed(6).store(&dir).run(bump);
    let one = Settings { repeats: None, ..three() };
    let first = integrate(one.clone()).unwrap();
    assert!(!journal(&dir).contains("repeat"), "a store without repeats is as it was");
    drop(first);
    let grown = integrate(three()).unwrap();
    assert_eq!(grown.engine.ledger().entries().len(), 72);
    let expected = bits(&grown.engine);
    drop(grown);
    let fresh = Integration::new(prior()).settings(three()).seed(6).run(bump).unwrap();
    assert_eq!(bits(&fresh.engine), expected, "begun with three or grown to three");
    // Left open, the number is that of the store; a smaller one is refused with the difference.
    let open = integrate(one.clone()).unwrap();
    assert_eq!((open.engine.repeats().len(), open.engine.ledger().entries().len()), (3, 72));
    drop(open);
    match integrate(Settings { repeats: Some(2), ..one }) {
        Err(Error::StoreDiffers { differences }) => assert_eq!(differences, ["repeats is 2, the store has 3"]),
        other => panic!("{other:?}"),
    }
    let mut engine = Engine::new(prior(), three(), 0).unwrap();
    let fewer = Event::Settings { changes: serde_json::from_value(serde_json::json!({ "repeats": 1 })).unwrap() };
    assert!(engine.apply(&fewer).unwrap_err().to_string().contains("at least 3"));
}

#[test]
fn what_was_believed_is_remembered_for_each_run_and_for_all() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("run");
    let mut session = Session::create(&dir, &plan(three())).unwrap();
    let mut tape = Vec::new();
    let mut shadow = Engine::new(prior(), three(), 6).unwrap();
    finish(&mut shadow, honest, &mut tape);
    for event in &tape {
        session.keep(event).unwrap();
    }
    session.remember_belief().unwrap();
    let records = journal(&dir).lines().count();
    session.remember_belief().unwrap();
    assert_eq!(journal(&dir).lines().count(), records, "once is enough");
    assert_eq!(journal(&dir).matches("\"belief\",\"value\"").count(), 4);
    let expected = bits(&session.engine);
    drop(session);
    let (engine, _) = batchquad::run::peek(&dir).unwrap();
    assert_eq!(bits(&engine), expected);
    let (lines, _) = Lines::of_store(&dir).unwrap();
    let (recalled, _) = Session::recall(lines.bytes().to_vec(), Some(&plan(three()))).unwrap();
    assert_eq!(bits(&recalled.engine), expected);
}

#[test]
fn points_by_hand_come_from_one_run_after_the_other() {
    let mut session = Session::in_memory(&plan(Settings { max_evaluations: 10, ..three() })).unwrap();
    let (jobs, stop) = session.ask(12, || false).unwrap();
    assert!(jobs.len() == 12 && stop.is_none());
    let repeats: Vec<usize> = session.engine.ledger().entries().map(|e| e.repeat).collect();
    assert_eq!(repeats[..8], [0; 8]);
    assert!(repeats.is_sorted(), "{repeats:?}");
    let mut ids: Vec<u64> = jobs.iter().map(|job| job.id.0).collect();
    ids.dedup();
    assert_eq!(ids, (0..12).collect::<Vec<u64>>());
    // An answer for one run is none for the others.
    session.keep(&Event::Told(Told::new(jobs[0].id, Outcome::Value(-1.0)))).unwrap();
    assert_eq!(session.engine.repeats()[0].ledger().values().count(), 1);
    assert_eq!(session.engine.repeats()[1].ledger().values().count(), 0);
}

#[test]
fn a_watcher_sees_the_budget_of_all_and_can_stop_in_the_middle() {
    let mut most = 0;
    let watch = |so_far: &batchquad::run::Glance| {
        most = so_far.max_evaluations;
        if so_far.evaluations >= 30 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let run = Integration::new(prior()).settings(three()).progress(watch).run(bump).unwrap();
    assert_eq!((run.stop.status, most), (Status::Interrupted, 72));
    let report = Report::new(&run.engine, Some(&run.stop)).unwrap();
    assert_eq!(report.repeats.iter().map(|r| r.evaluations > 0).collect::<Vec<_>>(), [true, true, false]);
}

#[test]
fn numbers_that_are_none_are_refused() {
    for (repeats, expected) in [(0, "at least 1"), (1000, "at most 100")] {
        let refused = Engine::new(prior(), Settings { repeats: Some(repeats), ..Settings::default() }, 0).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("repeats") && text.contains(expected), "{text}");
    }
    let engine = Engine::new(prior(), three(), 0).unwrap();
    assert!(engine.ask_for(3, 1).unwrap_err().to_string().contains("from 0 to 2"));
    // A journal that asks for a repeat that there is not.
    let one = Engine::new(prior(), Settings { repeats: None, ..three() }, 0).unwrap();
    let mut asked = one.ask(2).unwrap();
    asked.repeat = 7;
    let mut ledger = Ledger::new(one.ledger().header().clone());
    ledger.apply(&Event::Asked(asked.clone())).unwrap();
    assert!(Engine::from_ledger(prior(), ledger).is_err());
    let mut one = one;
    assert!(one.apply(&Event::Asked(asked)).is_err());
}

#[test]
fn tails_of_chi_square_are_those_of_its_density() {
    // By Simpson's rule on the density, in Python, with 200 000 intervals.
    for (x, dof, expected) in [
        (3.84, 1, 0.050_043_521_249),
        (5.99, 2, 0.050_036_627_087),
        (13.8, 2, 0.001_007_785_429),
        (7.81, 3, 0.050_106_056_350),
        (20.0, 9, 0.017_912_404_530),
        (0.0, 4, 1.0),
    ] {
        let found = chi_square_tail(x, dof);
        assert!((found - expected).abs() < 1e-10, "{x} {dof}: {found} {expected}");
    }
    assert_eq!(chi_square_tail(5.0, 0), 1.0);
}
