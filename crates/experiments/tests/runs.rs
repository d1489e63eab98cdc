//! Runs are repeatable for any number of threads, and resume where they were stopped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering},
};

use batchquad::{Settings, choose::BatchRule, run::SurrogateChoice};
use experiments::{
    arms::Arm,
    convergence,
    coverage::Coverage,
    in_model::RULES,
    plan::Plan,
    problems::{Choice, zoo::Animal},
    runs::{Task, Workshop},
    trace::{Judged, Reading, Spec, evaluations_to, reached_for_good, trace},
};

fn plan() -> Plan {
    Plan { runs: Some(2), seed: 5, budget: Some(20), settings: Settings::default() }
}

fn arms() -> Vec<Arm> {
    convergence::grid(Choice::InModelPositive, "", &RULES, &[1, 4], &plan())
}

#[test]
fn the_number_of_threads_does_not_matter_and_a_second_start_finds_everything() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = Workshop { out: one.path().into(), threads: 1 };
    convergence::run("trial", &arms(), 1, &plan(), &first).unwrap();
    convergence::run("trial", &arms(), 1, &plan(), &Workshop { out: two.path().into(), threads: 3 }).unwrap();
    let read = |name: &str| [&one, &two].map(|d| fs::read(d.path().join("trial").join(name)).unwrap());
    for name in
        ["readings.csv", "summary.json", "table.md", "in-model-positive-median.svg", "in-model-positive-mean.png"]
    {
        let [a, b] = read(name);
        assert!(a == b, "{name}");
    }
    let before = read("readings.csv")[0].clone();
    assert!(String::from_utf8(before.clone()).unwrap().lines().count() > 20);
    // Interrupted: half of the runs are gone.
    let kept: Vec<_> = fs::read_dir(one.path().join("runs")).unwrap().map(|e| e.unwrap().path()).collect();
    // Three kinds of runs with two seeds each: single points are the same with both rules.
    assert_eq!(kept.len(), 6);
    kept.iter().step_by(2).for_each(|path| fs::remove_file(path).unwrap());
    convergence::run("trial", &arms(), 1, &plan(), &first).unwrap();
    assert!(before == read("readings.csv")[0]);
}

#[test]
fn with_single_points_all_rules_are_one() {
    let run = |batch_rule: BatchRule| {
        let surrogate = SurrogateChoice::WsabiL;
        let settings = Settings { batch: 1, batch_rule, max_evaluations: 24, surrogate, ..Settings::default() };
        trace(&Spec { problem: Choice::GpEvidence, seed: 3, settings }).unwrap()
    };
    assert_eq!(run(BatchRule::KrigingBeliever), run(BatchRule::LocalPenalisation));
}

#[test]
fn finished_work_is_not_done_again_unless_its_specification_changed() {
    let dir = tempfile::tempdir().unwrap();
    let workshop = Workshop { out: dir.path().into(), threads: 2 };
    let count = AtomicUsize::new(0);
    let mut tasks: Vec<Task<u32>> = (0..6).map(|i| Task { key: format!("t{i}"), spec: i }).collect();
    let go = |tasks: &[Task<u32>]| {
        workshop
            .all("squares", tasks, |i| {
                count.fetch_add(1, Ordering::Relaxed);
                Ok(i * i)
            })
            .unwrap()
    };
    assert_eq!(go(&tasks), [0, 1, 4, 9, 16, 25]);
    assert_eq!(go(&tasks), [0, 1, 4, 9, 16, 25]);
    assert_eq!(count.load(Ordering::Relaxed), 6);
    tasks[2].spec = 10;
    assert_eq!(go(&tasks), [0, 1, 100, 9, 16, 25]);
    assert_eq!(count.load(Ordering::Relaxed), 7);
}

#[test]
fn a_failure_is_reported_and_the_rest_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let workshop = Workshop { out: dir.path().into(), threads: 1 };
    let tasks: Vec<Task<u32>> = (0..3).map(|i| Task { key: format!("t{i}"), spec: i }).collect();
    let result = workshop.all("failing", &tasks, |&i| if i == 1 { anyhow::bail!("no") } else { Ok(i) });
    assert!(format!("{:#}", result.unwrap_err()).contains("t1"));
    let kept: Vec<String> =
        fs::read_dir(dir.path().join("runs")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(kept.iter().any(|k| k.starts_with("t0-")) || kept.iter().any(|k| k.starts_with("t2-")), "{kept:?}");
}

#[test]
fn reaching_is_not_keeping() {
    let reading = |evaluations: usize, error: Option<f64>| Reading {
        batches: 1,
        evaluations,
        initial: false,
        own: Judged { error, sd: Some(1.0) },
        model: Judged { error, sd: Some(1.0) },
        moments: None,
        sigma2: 1.0,
        lengthscale: 1.0,
        fallbacks: 0,
    };
    let run = [(4, Some(1.0)), (8, Some(0.01)), (12, None), (16, Some(-0.01)), (20, Some(0.0))];
    let readings: Vec<Reading> = run.iter().map(|&(n, e)| reading(n, e)).collect();
    let reached = |readings: &[Reading], tolerance: f64| {
        reached_for_good(readings, tolerance, |r| Some(r.own)).map(|r| r.evaluations)
    };
    assert_eq!(reached(&readings, 0.02), Some(16));
    assert_eq!(reached(&readings, 2.0), Some(16));
    assert_eq!(reached(&readings[..3], 0.02), None);
    assert_eq!(reached(&readings[3..], 0.02), Some(16));
    assert_eq!(reached_for_good(&readings, 0.02, |r| r.moments), None);
    assert_eq!(evaluations_to(&readings, 0.02), 16.0);
    assert_eq!(evaluations_to(&readings[..3], 0.02), f64::INFINITY);
}

#[test]
fn stated_error_bars_cover_the_truth() {
    let problems = [
        Choice::Mixture,
        Choice::InModelPositive,
        Choice::GpEvidence,
        Choice::Zoo(Animal::Banana),
        Choice::Zoo(Animal::StudentT),
        Choice::Zoo(Animal::Funnel),
    ];
    let settings = Settings { max_evaluations: 72, ..Settings::default() };
    let runs = problems.into_iter().flat_map(|problem| (11..15).map(move |seed| (problem, seed)));
    let readings: Vec<Reading> = runs
        .flat_map(|(problem, seed)| trace(&Spec { problem, seed, settings: settings.clone() }).unwrap())
        .filter(|r| !r.initial)
        .collect();
    let stated = Coverage::of(readings.iter().map(|r| &r.own));
    let model = Coverage::of(readings.iter().map(|r| &r.model));
    // 68 % and 95 % would be honest. Found: 66 % and 94 %; by the model alone 35 % and 56 %.
    assert!(stated.one > 0.55 && stated.two > 0.85, "{stated:?} {model:?}");
}
