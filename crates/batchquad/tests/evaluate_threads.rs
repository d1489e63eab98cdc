//! Closures on threads: panics, numbers that are none, queues, interrupts and drops.
#![cfg(feature = "run")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod evaluate_common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use batchquad::evaluate::{Evaluator, ThreadEvaluator};
use batchquad::types::{FailureKind, Outcome};
use evaluate_common::*;

#[test]
fn every_job_comes_back_once_whatever_the_queue() {
    let mut evaluator = ThreadEvaluator::new(3, |theta| theta.iter().sum()).unwrap();
    assert_eq!((evaluator.workers(), evaluator.idle(), evaluator.in_flight()), (3, 3, 0));
    for id in 0..100 {
        evaluator.submit(job(id, &[id as f64, 0.5])).unwrap();
    }
    assert_eq!((evaluator.idle(), evaluator.in_flight()), (0, 100));
    let mut seen = BTreeMap::new();
    while evaluator.in_flight() > 0 {
        let finished = finish(&mut evaluator);
        assert!(finished.worker < 3 && finished.attempts == 1 && finished.seconds >= 0.0);
        assert!(seen.insert(finished.id.0, finished.outcome).is_none());
    }
    assert!(seen.iter().all(|(&id, outcome)| *outcome == Outcome::Value(id as f64 + 0.5)) && seen.len() == 100);
    assert_eq!(evaluator.wait(LONG).unwrap(), None, "nothing in flight: no wait");
}

#[test]
fn workers_run_at_the_same_time() {
    // Each closure waits for the other: with one thread, or one at a time, neither would return.
    let barrier = Arc::new(Barrier::new(2));
    let mut evaluator = ThreadEvaluator::new(2, move |theta| {
        barrier.wait();
        theta[0]
    })
    .unwrap();
    evaluator.submit(job(0, &[1.0])).unwrap();
    evaluator.submit(job(1, &[1.0])).unwrap();
    assert_ne!(finish(&mut evaluator).worker, finish(&mut evaluator).worker);
}

#[test]
fn panics_are_failures_that_name_their_message_and_workers_survive() {
    let mut evaluator = ThreadEvaluator::new(1, |theta| match theta[0] {
        0.0 => panic!("a fixed text"),
        1.0 => panic!("made of {}\x1b[31m", 7),
        2.0 => std::panic::panic_any(7_u8),
        x => x,
    })
    .unwrap();
    for (id, words) in ["a fixed text", "made of 7", "not text"].into_iter().enumerate() {
        evaluator.submit(job(id as u64, &[id as f64])).unwrap();
        assert_failed(&finish(&mut evaluator), FailureKind::Exception, words);
    }
    evaluator.submit(job(3, &[3.0])).unwrap();
    assert_eq!(finish(&mut evaluator).outcome, Outcome::Value(3.0));
}

#[test]
fn zero_likelihood_is_a_value_and_nan_is_not() {
    let mut evaluator = ThreadEvaluator::new(1, |theta| theta[0]).unwrap();
    for value in [f64::NEG_INFINITY, f64::NAN, f64::INFINITY] {
        evaluator.submit(job(0, &[value])).unwrap();
        let finished = finish(&mut evaluator);
        if value == f64::NEG_INFINITY {
            assert_eq!(finished.outcome, Outcome::Value(value));
        } else {
            assert_failed(&finished, FailureKind::Nan, &format!("[{value:?}]"));
        }
    }
}

#[test]
fn closures_can_see_the_seed_and_fail_by_themselves() {
    let mut evaluator = ThreadEvaluator::from_jobs(1, |job| match job.id.0 {
        0 => Outcome::Value(job.seed as f64),
        1 => Outcome::Value(f64::NAN),
        _ => Outcome::Failed { kind: FailureKind::LostWorker, message: "cluster is down".into() },
    })
    .unwrap();
    for id in 0..3 {
        evaluator.submit(job(id, &[0.1 + 0.2])).unwrap();
    }
    assert_eq!(finish(&mut evaluator).outcome, Outcome::Value(1000.0));
    assert_failed(&finish(&mut evaluator), FailureKind::Nan, "0.30000000000000004");
    assert_failed(&finish(&mut evaluator), FailureKind::LostWorker, "cluster is down");
}

#[test]
fn waits_end_at_their_timeout() {
    let release = Arc::new(AtomicBool::new(false));
    let held = Arc::clone(&release);
    let mut evaluator = ThreadEvaluator::new(1, move |_| {
        while !held.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        1.0
    })
    .unwrap();
    evaluator.submit(job(0, &[0.0])).unwrap();
    assert_eq!(evaluator.wait(Duration::from_millis(50)).unwrap(), None);
    assert_eq!(evaluator.wait(Duration::ZERO).unwrap(), None);
    release.store(true, Ordering::SeqCst);
    // The longest duration there is must not overflow a clock.
    assert_eq!(evaluator.wait(Duration::MAX).unwrap().unwrap().outcome, Outcome::Value(1.0));
}

#[test]
fn an_interrupt_gives_up_the_queue_and_keeps_what_is_finished() {
    let calls = Arc::new(AtomicUsize::new(0));
    let (counter, release) = (Arc::clone(&calls), Arc::new(AtomicBool::new(false)));
    let held = Arc::clone(&release);
    let mut evaluator = ThreadEvaluator::new(1, move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        while !held.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        1.0
    })
    .unwrap();
    for id in 0..5 {
        evaluator.submit(job(id, &[0.0])).unwrap();
    }
    eventually("the first has begun", || calls.load(Ordering::SeqCst) == 1);
    evaluator.interrupt().raise();
    assert!(evaluator.submit(job(5, &[0.0])).unwrap_err().to_string().contains("interrupted"));
    release.store(true, Ordering::SeqCst);
    assert_eq!(finish(&mut evaluator).outcome, Outcome::Value(1.0), "it had begun");
    assert_eq!(evaluator.wait(LONG).unwrap(), None);
    assert_eq!((evaluator.in_flight(), calls.load(Ordering::SeqCst)), (0, 1));
}

#[test]
fn dropping_does_not_wait_for_a_closure_that_never_returns() {
    let begun = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&begun);
    let mut evaluator = ThreadEvaluator::new(2, move |_| {
        told.store(true, Ordering::SeqCst);
        loop {
            std::thread::sleep(Duration::from_secs(3600));
        }
    })
    .unwrap();
    evaluator.submit(job(0, &[0.0])).unwrap();
    eventually("it has begun", || begun.load(Ordering::SeqCst));
    let start = Instant::now();
    drop(evaluator);
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn no_workers_and_absurdly_many_are_refused() {
    for workers in [0, usize::MAX] {
        let error = ThreadEvaluator::new(workers, |_| 0.0).err().unwrap();
        assert!(error.to_string().starts_with("number of workers is"), "{error}");
    }
}
