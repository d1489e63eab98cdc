//! Commands as servers: what a long-lived process can do wrong, and how it is brought back.
#![cfg(feature = "run")]
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod evaluate_common;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use batchquad::evaluate::{CommandEvaluator, CommandSpec, Evaluator, Finished, Mode};
use batchquad::types::{FailureKind, Outcome};
use evaluate_common::*;

/// A Python server that runs `body` for every question `q` with parameter `a`, after noting its start in `starts`. `reply` gives a
/// whole answer, `say` prints a line.
fn server(dir: &Path, body: &str) -> CommandSpec {
    let script = format!(
        "import json, os, signal, sys, time
open('starts', 'a').write(str(os.getpid()) + '\\n')
def say(line):
    sys.stdout.write(line + '\\n')
    sys.stdout.flush()
def reply(value):
    say(json.dumps({{'id': q['id'], 'log_likelihood': value}}))
for line in sys.stdin:
    q = json.loads(line)
    a = q['parameters']['a']
    {}
",
        body.replace('\n', "\n    ")
    );
    CommandSpec { mode: Mode::Server, working_dir: Some(dir.into()), ..python(&script) }
}

fn starts(dir: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(dir.join("starts")).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// Evaluates one point after the other.
fn ask(evaluator: &mut CommandEvaluator, id: u64, a: f64) -> Finished {
    evaluator.submit(job(id, &[a])).unwrap();
    finish(evaluator)
}

#[test]
fn one_process_answers_many_questions_in_every_form() {
    let dir = tempfile::tempdir().unwrap();
    let body = "if q['id'] % 2: reply(a)\nelse: say(json.dumps({'x': [], 'log_likelihood': a, 'id': q['id']}))";
    let mut evaluator = CommandEvaluator::new(server(dir.path(), body), &["a"], 1).unwrap();
    for id in 0..60 {
        let a = 0.1 + id as f64 / 3.0;
        let finished = ask(&mut evaluator, id, a);
        assert_eq!((finished.outcome, finished.attempts), (Outcome::Value(a), 1));
    }
    assert_eq!(starts(dir.path()).len(), 1);
}

#[test]
fn every_worker_has_its_own() {
    let dir = tempfile::tempdir().unwrap();
    // The first question of each waits until both were started.
    let body = "while len(open('starts').readlines()) < 2: time.sleep(0.01)\nreply(os.getpid())";
    let mut evaluator = CommandEvaluator::new(server(dir.path(), body), &["a"], 2).unwrap();
    for id in 0..20 {
        evaluator.submit(job(id, &[0.0])).unwrap();
    }
    let mut pairs = BTreeSet::new();
    while evaluator.in_flight() > 0 {
        let finished = finish(&mut evaluator);
        let Outcome::Value(pid) = finished.outcome else { panic!("{finished:?}") };
        pairs.insert((finished.worker, pid as u32));
    }
    assert_eq!(pairs.len(), 2, "{pairs:?}");
    assert_eq!(starts(dir.path()).len(), 2);
}

#[test]
fn failures_in_good_form_do_not_cost_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let body = "say({0: '{\"id\": 0, \"log_likelihood\": NaN}', 1: '{\"id\": 1, \"log_likelihood\": Infinity}', 2: '{\"id\": 2, \"log_likelihood\": \"-inf\"}', 3: '{\"id\": 3, \"failed\": \"no root\"}'}[q['id']])";
    let mut evaluator = CommandEvaluator::new(server(dir.path(), body), &["a"], 1).unwrap();
    assert_failed(&ask(&mut evaluator, 0, 1.25), FailureKind::Nan, "[1.25]");
    assert_failed(&ask(&mut evaluator, 1, 1.25), FailureKind::Nan, "[1.25]");
    assert_eq!(ask(&mut evaluator, 2, 1.25).outcome, Outcome::Value(f64::NEG_INFINITY));
    assert_failed(&ask(&mut evaluator, 3, 1.25), FailureKind::Exception, "no root");
    assert_eq!(starts(dir.path()).len(), 1);
}

#[test]
fn a_server_that_dies_is_restarted_and_its_job_retried() {
    let dir = tempfile::tempdir().unwrap();
    let body = "if a == 1.0 and len(open('starts').readlines()) < 3: os.kill(os.getpid(), signal.SIGKILL)
if a == 2.0: sys.exit('out of licences')
reply(a)";
    let mut evaluator = CommandEvaluator::new(server(dir.path(), body), &["a"], 1).unwrap();
    assert_eq!(ask(&mut evaluator, 0, 0.5).outcome, Outcome::Value(0.5));
    let finished = ask(&mut evaluator, 1, 1.0);
    assert_eq!((finished.outcome, finished.attempts), (Outcome::Value(1.0), 3));
    let finished = ask(&mut evaluator, 2, 2.0);
    assert_failed(&finished, FailureKind::LostWorker, "exit status: 1); stderr: out of licences");
    assert_eq!(finished.attempts, 3);
    assert_eq!(ask(&mut evaluator, 3, 3.0).outcome, Outcome::Value(3.0));
}

#[test]
fn a_death_between_jobs_costs_no_attempt() {
    let dir = tempfile::tempdir().unwrap();
    let mut evaluator = CommandEvaluator::new(server(dir.path(), "reply(a)\nsys.exit(0)"), &["a"], 1).unwrap();
    for id in 0..3 {
        let finished = ask(&mut evaluator, id, 1.0);
        assert_eq!((finished.outcome, finished.attempts), (Outcome::Value(1.0), 1));
        assert_gone(&starts(dir.path()));
    }
    assert_eq!(starts(dir.path()).len(), 3);
}

#[test]
fn points_that_crash_a_working_server_are_never_an_error_of_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let body = "if a > 0: os._exit(9)\nreply(a)";
    let spec = CommandSpec { retries: 0, ..server(dir.path(), body) };
    let mut evaluator = CommandEvaluator::new(spec, &["a"], 1).unwrap();
    assert_eq!(ask(&mut evaluator, 0, 0.0).outcome, Outcome::Value(0.0));
    for id in 1..8 {
        assert_failed(&ask(&mut evaluator, id, 1.0), FailureKind::LostWorker, "exit status: 9");
    }
}

#[test]
fn a_server_that_never_answers_is_an_error_and_not_a_loop() {
    let dir = tempfile::tempdir().unwrap();
    let script = "echo x >> starts; echo 'module not found' >&2; exit 1";
    let spec = CommandSpec { mode: Mode::Server, retries: 1, working_dir: Some(dir.path().into()), ..sh(script) };
    let mut evaluator = CommandEvaluator::new(spec, &["a"], 1).unwrap();
    for id in 0..10 {
        evaluator.submit(job(id, &[0.0])).unwrap();
    }
    let error = loop {
        match evaluator.wait(LONG) {
            Ok(Some(finished)) => assert_failed(&finished, FailureKind::LostWorker, "module not found"),
            Ok(None) => panic!("it was never reported"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("ended 8 times before any answer") && error.contains("module not found"), "{error}");
}

#[test]
fn a_hang_is_ended_with_its_descendants_and_the_server_restarted() {
    let dir = tempfile::tempdir().unwrap();
    let body = "if a == 1.0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0: open('starts', 'a').write(str(os.getpid()) + '\\n')
    time.sleep(1000)
reply(a)";
    let spec = CommandSpec { timeout: Some(Duration::from_secs(3)), retries: 0, ..server(dir.path(), body) };
    let mut evaluator = CommandEvaluator::new(spec, &["a"], 1).unwrap();
    assert_eq!(ask(&mut evaluator, 0, 0.0).outcome, Outcome::Value(0.0));
    let start = Instant::now();
    let finished = ask(&mut evaluator, 1, 1.0);
    assert_failed(&finished, FailureKind::Timeout, "within 3 s");
    assert!(start.elapsed() < Duration::from_secs(40));
    let hung = starts(dir.path());
    assert_eq!(hung.len(), 2);
    assert_gone(&hung);
    assert_eq!(ask(&mut evaluator, 2, 2.0).outcome, Outcome::Value(2.0));
}

#[test]
fn a_stream_that_cannot_be_trusted_costs_the_server() {
    for (line, words) in [
        ("say('Traceback')", "\"Traceback\""),
        ("say('')", "answer is \"\""),
        ("say('1')", "without an id"),
        ("say(json.dumps({'log_likelihood': a}))", "without an id"),
        ("say(json.dumps({'id': 77, 'log_likelihood': 1}))", "job 77, expected job 1"),
        ("sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush()", "\\xff"),
        ("say('x' * 3000000)", "more than 1048576 bytes"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let body = format!("if a == 1.0: {line}\nelse: reply(a)");
        let mut evaluator = CommandEvaluator::new(server(dir.path(), &body), &["a"], 1).unwrap();
        let finished = ask(&mut evaluator, 1, 1.0);
        assert_failed(&finished, FailureKind::Parse, words);
        assert_eq!(finished.attempts, 1);
        assert_eq!(ask(&mut evaluator, 2, 2.0).outcome, Outcome::Value(2.0));
        assert_eq!(starts(dir.path()).len(), 2, "{line}");
    }
}

#[test]
fn no_stray_line_is_taken_for_the_next_answer() {
    // Every answer is followed, at once or a moment later, by one that nobody asked for; none names its job.
    for pause in ["0", "0.002", "0.02"] {
        let dir = tempfile::tempdir().unwrap();
        let body = format!("say(str(a))\ntime.sleep({pause})\nsay('-99')");
        let mut evaluator = CommandEvaluator::new(server(dir.path(), &body), &["a"], 1).unwrap();
        for id in 0..14 {
            assert_failed(&ask(&mut evaluator, id, 1.0), FailureKind::Parse, "without an id");
        }
    }
}

#[test]
fn late_answers_to_earlier_questions_are_discarded() {
    let dir = tempfile::tempdir().unwrap();
    let body = "if q['id'] > 0: say(json.dumps({'id': q['id'] - 1, 'log_likelihood': -77}))
say(json.dumps({'id': q['id'], 'log_likelihood': a}))
say(json.dumps({'id': q['id'], 'log_likelihood': -99}))";
    let mut evaluator = CommandEvaluator::new(server(dir.path(), body), &["a"], 1).unwrap();
    for id in 0..10 {
        assert_eq!(ask(&mut evaluator, id, id as f64).outcome, Outcome::Value(id as f64));
    }
    assert_eq!(starts(dir.path()).len(), 1);
}

#[test]
fn an_unasked_line_between_questions_costs_the_server_and_no_job() {
    let dir = tempfile::tempdir().unwrap();
    let body = "reply(a)\nif a == 1.0:\n    time.sleep(0.2)\n    say('-99')\n    open('said', 'w')";
    let mut evaluator = CommandEvaluator::new(server(dir.path(), body), &["a"], 1).unwrap();
    assert_eq!(ask(&mut evaluator, 0, 1.0).outcome, Outcome::Value(1.0));
    eventually("the line was printed", || dir.path().join("said").exists());
    let finished = ask(&mut evaluator, 1, 2.0);
    assert_eq!((finished.outcome, finished.attempts), (Outcome::Value(2.0), 1), "and not -99");
    assert_eq!(starts(dir.path()).len(), 2);
}

#[test]
fn chatter_on_standard_error_never_blocks() {
    let dir = tempfile::tempdir().unwrap();
    // Far more than a pipe holds: before the answer, after it, and while idle.
    let body = "sys.stderr.write('x' * 1000000 + 'before')
sys.stderr.flush()
reply(a)
sys.stderr.write('y' * 1000000)
open('idle', 'a').write('x\\n')";
    let mut evaluator = CommandEvaluator::new(server(dir.path(), body), &["a"], 1).unwrap();
    for id in 0..3 {
        let finished = ask(&mut evaluator, id, 1.0);
        assert_eq!(finished.outcome, Outcome::Value(1.0));
        assert!(finished.stderr_tail.len() <= 4096);
        let idle = || std::fs::read_to_string(dir.path().join("idle")).unwrap_or_default().lines().count();
        eventually("the idle server could go on writing", || idle() == id as usize + 1);
    }
    assert_eq!(starts(dir.path()).len(), 1);
}

#[test]
fn servers_are_told_by_the_end_of_input_and_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut spec = server(dir.path(), "reply(a)");
    spec.grace = LONG;
    spec.command[2].push_str("open('goodbye', 'w')\n");
    let mut evaluator = CommandEvaluator::new(spec, &["a"], 1).unwrap();
    assert_eq!(ask(&mut evaluator, 0, 1.0).outcome, Outcome::Value(1.0));
    evaluator.shutdown();
    assert!(dir.path().join("goodbye").exists());
    assert_gone(&starts(dir.path()));
    assert!(evaluator.submit(job(1, &[0.0])).is_err());
}

#[test]
fn stubborn_servers_are_ended_by_drop_and_by_interrupt() {
    for interrupt in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let body = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nif a == 1.0: time.sleep(1000)\nreply(a)";
        let mut spec = server(dir.path(), body);
        spec.command[2].push_str("while True: time.sleep(1000)\n");
        let mut evaluator = CommandEvaluator::new(spec, &["a"], 2).unwrap();
        evaluator.submit(job(0, &[0.0])).unwrap();
        evaluator.submit(job(1, &[1.0])).unwrap();
        assert_eq!(finish(&mut evaluator).outcome, Outcome::Value(0.0));
        let running = pids(&dir.path().join("starts"), 2);
        let start = Instant::now();
        if interrupt {
            evaluator.interrupt().raise();
            assert_eq!(evaluator.wait(LONG).unwrap(), None);
            assert_gone(&running);
        }
        drop(evaluator);
        assert!(start.elapsed() < Duration::from_secs(30));
        assert_gone(&running);
    }
}

#[test]
fn a_server_that_closes_its_output_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let body = "if a == 1.0:\n    os.close(1)\n    time.sleep(1000)\nreply(a)";
    let spec = CommandSpec { retries: 0, ..server(dir.path(), body) };
    let mut evaluator = CommandEvaluator::new(spec, &["a"], 1).unwrap();
    assert_failed(&ask(&mut evaluator, 0, 1.0), FailureKind::LostWorker, "before it answered");
    assert_eq!(ask(&mut evaluator, 1, 2.0).outcome, Outcome::Value(2.0));
    assert_gone(&starts(dir.path())[..1]);
}
