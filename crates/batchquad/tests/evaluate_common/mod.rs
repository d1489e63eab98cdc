//! What the tests of the evaluators share.
#![allow(dead_code)]

use std::path::Path;
use std::time::{Duration, Instant};

use batchquad::evaluate::{CommandEvaluator, CommandSpec, Evaluator, Finished};
use batchquad::types::{FailureKind, Job, JobId, Outcome};

/// Far beyond what anything here takes, even on a machine that is busy with other things.
pub const LONG: Duration = Duration::from_secs(60);

pub fn job(id: u64, theta: &[f64]) -> Job {
    Job { id: JobId(id), theta: theta.to_vec(), seed: 1000 + id }
}

/// A script for `/bin/sh`, with a grace that keeps the tests short.
pub fn sh(script: &str) -> CommandSpec {
    CommandSpec { grace: Duration::from_millis(300), ..CommandSpec::new(["/bin/sh", "-c", script]) }
}

/// A script for Python.
pub fn python(script: &str) -> CommandSpec {
    CommandSpec { grace: Duration::from_millis(300), ..CommandSpec::new(["python3", "-c", script]) }
}

pub fn finish(evaluator: &mut impl Evaluator) -> Finished {
    evaluator.wait(LONG).expect("the command can be run").expect("it finishes within a minute")
}

/// One evaluation at a = 1.5.
pub fn run(spec: CommandSpec) -> Finished {
    let mut evaluator = CommandEvaluator::new(spec, &["a"], 1).unwrap();
    evaluator.submit(job(3, &[1.5])).unwrap();
    finish(&mut evaluator)
}

#[track_caller]
pub fn assert_failed(finished: &Finished, expected: FailureKind, words: &str) {
    let Outcome::Failed { kind, message } = &finished.outcome else {
        panic!("expected a failure of kind {expected}, found {finished:?}")
    };
    assert_eq!(*kind, expected, "{message}");
    assert!(message.contains(words), "{message:?} does not contain {words:?}");
    assert!(!message.chars().any(char::is_control), "{message:?} has control characters");
    assert!(message.len() < 2500, "the message has {} bytes", message.len());
}

/// Waits for `condition`, a minute at most.
#[track_caller]
pub fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "still not so after a minute: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The numbers in a file of process ids, once there are `count` of them.
pub fn pids(file: &Path, count: usize) -> Vec<u32> {
    let read = || -> Vec<u32> {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines().filter_map(|line| line.trim().parse().ok()).collect()
    };
    eventually("the processes wrote their ids", || read().len() >= count);
    read()
}

/// Whether a process runs; one that is dead and not reaped yet does not.
pub fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|state| !"ZX".contains(state))
}

#[track_caller]
pub fn assert_gone(pids: &[u32]) {
    eventually(&format!("{pids:?} are gone"), || !pids.iter().any(|&pid| is_running(pid)));
}
