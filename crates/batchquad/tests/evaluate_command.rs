//! Commands, one process per call: everything a program can do wrong, and what it may rely on.
#![cfg(feature = "run")]
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod evaluate_common;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use batchquad::Error;
use batchquad::evaluate::{CommandEvaluator, CommandSpec, Evaluator, Inherit};
use batchquad::types::{FailureKind, Outcome};
use evaluate_common::*;

fn with_timeout(spec: CommandSpec, milliseconds: u64) -> CommandSpec {
    CommandSpec { timeout: Some(Duration::from_millis(milliseconds)), retries: 0, ..spec }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn the_question_arrives_in_full_precision_and_the_answer_comes_back() {
    let script = "import json, math, sys
q = json.load(sys.stdin)
assert list(q) == ['id', 'parameters', 'seed'] and list(q['parameters']) == ['zeta', 'alpha'], q
assert q['id'] == 8 and q['seed'] == 1008, q
print(json.dumps({'log_likelihood': q['parameters']['zeta'] + q['parameters']['alpha'], 'chi2': [1, None]}))";
    let mut evaluator = CommandEvaluator::new(python(script), &["zeta", "alpha"], 1).unwrap();
    let theta = [0.1 + 0.2, 1.0 / 3.0];
    evaluator.submit(job(8, &theta)).unwrap();
    let finished = finish(&mut evaluator);
    assert_eq!(finished.outcome, Outcome::Value(theta[0] + theta[1]));
    assert_eq!((finished.id.0, finished.attempts, finished.worker), (8, 1, 0));
}

#[test]
fn answers_that_are_legal() {
    for (script, expected) in [
        ("echo -1.25", -1.25),
        ("printf -- '-1.25'", -1.25),
        ("echo '{\"log_likelihood\": 2}'", 2.0),
        ("echo '{\"id\": 3, \"log_likelihood\": -2.5e3}'", -2500.0),
        ("echo -inf", f64::NEG_INFINITY),
        ("echo '{\"log_likelihood\": -Infinity}'", f64::NEG_INFINITY),
        ("echo '{\"log_likelihood\": \"-inf\"}'", f64::NEG_INFINITY),
        ("exec <&-; echo 4", 4.0),
        ("exec 2>&-; echo 5", 5.0),
        ("echo 6; exec >&- 2>&-; sleep 0.2", 6.0),
    ] {
        assert_eq!(run(sh(script)).outcome, Outcome::Value(expected), "{script}");
    }
}

#[test]
fn failures_have_kinds_and_are_not_retried_when_they_would_repeat() {
    use FailureKind::{Exception, Exit, Nan, Parse};
    for (script, kind, words) in [
        ("exit 1", Exit, "exit status: 1"),
        ("echo 1.5; exit 1", Exit, "exit status: 1"),
        ("echo 'bad mesh' >&2; exit 3", Exit, "exit status: 3; stderr: bad mesh"),
        ("printf 'a\\033[31mb\\tc\\nd\\n' >&2; exit 1", Exit, "stderr: a[31mb c | d"),
        ("true", Parse, "answer is \"\""),
        ("echo garbage", Parse, "\"garbage\\n\""),
        ("echo loading; echo 1.5", Parse, "log to stderr"),
        ("echo 1; echo 2", Parse, "\"1\\n2\\n\""),
        ("printf '{\"log_likelihood\": 1}\\n{\"log_likelihood\": 1}\\n'", Parse, "one JSON object"),
        ("echo '{\"log_likelihood\": null}'", Parse, "log_likelihood"),
        ("echo '{\"id\": 4, \"log_likelihood\": 1}'", Parse, "job 4, expected job 3"),
        ("printf '1.5\\377\\n'", Parse, "\\xff"),
        ("printf '\\033[2J\\000'", Parse, "\\u{1b}"),
        ("echo nan", Nan, "[1.5]"),
        ("echo inf", Nan, "[1.5]"),
        ("echo '{\"log_likelihood\": NaN}'", Nan, "[1.5]"),
        ("echo '{\"failed\": \"did not converge\"}'", Exception, "did not converge"),
    ] {
        let finished = run(sh(script));
        assert_failed(&finished, kind, words);
        assert_eq!(finished.attempts, 1, "{script}");
    }
}

#[test]
fn signals_are_retried_and_counted() {
    for (script, words) in [("kill -SEGV $$", "SIGSEGV"), ("echo 1; kill -9 $$", "SIGKILL")] {
        let finished = run(CommandSpec { retries: 1, ..sh(script) });
        assert_failed(&finished, FailureKind::Signal, words);
        assert_eq!(finished.attempts, 2);
    }
}

#[test]
fn a_passing_crash_is_survived() {
    let dir = tempfile::tempdir().unwrap();
    let script = "echo x >> tries; [ $(wc -l < tries) -ge 3 ] || kill -9 $$; echo 7";
    let finished = run(CommandSpec { working_dir: Some(dir.path().into()), ..sh(script) });
    let retried: Vec<_> = finished.retried.iter().map(|a| (a.number, a.kind)).collect();
    assert_eq!(retried, [(1, FailureKind::Signal), (2, FailureKind::Signal)]);
    assert_eq!((finished.outcome, finished.attempts), (Outcome::Value(7.0), 3), "two retries by default");
    assert_eq!(read(&dir.path().join("tries")), "x\nx\nx\n");
}

#[test]
fn a_hang_is_ended_with_its_descendants() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pids");
    for script in [
        "echo $$ >> pids; sleep 1000 & echo $! >> pids; echo thinking >&2; wait",
        "trap '' TERM; echo $$ >> pids; sleep 1000 & echo $! >> pids; echo thinking >&2; while :; do wait; sleep 1; done",
    ] {
        let _ = std::fs::remove_file(&file);
        let start = Instant::now();
        let finished = run(CommandSpec { working_dir: Some(dir.path().into()), ..with_timeout(sh(script), 1500) });
        assert_failed(&finished, FailureKind::Timeout, "no answer within 1.5 s; stderr: thinking");
        assert!(start.elapsed() < Duration::from_secs(30) && finished.seconds >= 1.5);
        assert_gone(&pids(&file, 2));
    }
}

#[test]
fn a_terminated_process_may_tidy_up_within_its_grace() {
    let dir = tempfile::tempdir().unwrap();
    let script = "trap 'echo tidy > done; exit 0' TERM; while :; do sleep 0.05; done";
    let spec = CommandSpec { working_dir: Some(dir.path().into()), grace: LONG, ..with_timeout(sh(script), 1500) };
    let finished = run(spec);
    assert_failed(&finished, FailureKind::Timeout, "");
    assert_eq!(read(&dir.path().join("done")), "tidy\n");
}

#[test]
fn a_grandchild_that_holds_the_output_neither_blocks_nor_stays() {
    let dir = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let spec = CommandSpec {
        working_dir: Some(dir.path().into()),
        ..sh("(trap '' TERM HUP; sleep 1000) & echo $! > pids; echo -3; exit 0")
    };
    assert_eq!(run(spec).outcome, Outcome::Value(-3.0));
    assert!(start.elapsed() < Duration::from_secs(30));
    assert_gone(&pids(&dir.path().join("pids"), 1));
}

#[test]
fn a_descendant_out_of_reach_does_not_block() {
    let dir = tempfile::tempdir().unwrap();
    let script = "import os, sys, time
if os.fork() == 0:
    os.setsid()
    open('pids', 'w').write(f'{os.getpid()}\\n')
    time.sleep(1000)
while not os.path.exists('pids') or not open('pids').read():
    time.sleep(0.01)
print(-4)";
    let start = Instant::now();
    let finished = run(CommandSpec { working_dir: Some(dir.path().into()), ..python(script) });
    assert_eq!(finished.outcome, Outcome::Value(-4.0));
    assert!(start.elapsed() < Duration::from_secs(30));
    for pid in pids(&dir.path().join("pids"), 1) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
}

#[test]
fn an_answer_through_a_descendant_is_waited_for_a_little() {
    assert_eq!(run(sh("(sleep 0.05; echo -5) & exit 0")).outcome, Outcome::Value(-5.0));
}

#[test]
fn floods_are_cut_off_in_bounded_memory() {
    let peak = || -> u64 {
        let status = read(Path::new("/proc/self/status"));
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    };
    let before = peak();
    let finished = run(sh("head -c 100000000 /dev/zero; echo 1"));
    assert_failed(&finished, FailureKind::Parse, "printed more than 1048576 bytes");
    let finished = run(sh("head -c 100000000 /dev/zero >&2; echo the end >&2; echo 1.5"));
    assert_eq!(finished.outcome, Outcome::Value(1.5), "standard error may be of any length");
    assert!(finished.stderr_tail.ends_with("the end") && finished.stderr_tail.len() <= 4096);
    let finished = run(CommandSpec { max_output: 3, ..sh("echo 1234") });
    assert_failed(&finished, FailureKind::Parse, "more than 3 bytes");
    // The other tests of this file run beside this one and take a few megabytes as well.
    assert!(peak() - before < 50, "{before} MiB grew to {} MiB", peak());
}

#[test]
fn printing_for_ever_does_not_outlast_the_timeout() {
    let finished = run(with_timeout(sh("yes >&2"), 500));
    assert_failed(&finished, FailureKind::Timeout, "within 0.5 s");
}

#[test]
fn a_large_question_is_no_trouble_for_a_program_that_does_not_read() {
    let names: Vec<String> = (0..20_000).map(|i| format!("parameter number {i}")).collect();
    let theta = vec![0.1; names.len()];
    for (script, expected) in [("echo 1", 1.0), ("exec <&-; sleep 0.1; echo 2", 2.0), ("cat >&2; echo 3", 3.0)] {
        let mut evaluator = CommandEvaluator::new(sh(script), &names, 1).unwrap();
        evaluator.submit(job(0, &theta)).unwrap();
        assert_eq!(finish(&mut evaluator).outcome, Outcome::Value(expected));
    }
}

#[test]
fn hostile_names_and_arguments_are_inert() {
    let dir = tempfile::tempdir().unwrap();
    let hostile = ["x; touch pwned", "$(touch pwned)", "`touch pwned`", "\"; touch pwned; \"", "a\nb", "</script>"];
    let script = "import json, sys
assert list(json.load(sys.stdin)['parameters']) == sys.argv[1:], sys.argv
print(1)";
    let mut command = vec!["python3", "-c", script];
    command.extend(hostile);
    let spec = CommandSpec { working_dir: Some(dir.path().into()), ..CommandSpec::new(command) };
    let mut evaluator = CommandEvaluator::new(spec, &hostile, 1).unwrap();
    evaluator.submit(job(0, &[0.0; 6])).unwrap();
    assert_eq!(finish(&mut evaluator).outcome, Outcome::Value(1.0));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was run by a shell");
}

#[test]
fn a_shell_runs_when_it_is_asked_for() {
    let spec = CommandSpec { shell: true, ..CommandSpec::new(["x=$(grep -c parameters); echo \"-$x.5\""]) };
    assert_eq!(run(spec).outcome, Outcome::Value(-1.5));
}

#[test]
fn files_carry_question_and_answer() {
    let dir = tempfile::tempdir().unwrap();
    let script = "import json, os, stat, sys
q = json.load(open(sys.argv[1]))
folder = os.path.dirname(sys.argv[1])
assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
assert sys.argv[2].startswith('--out=' + folder) and sys.stdin.read() == ''
open('folder', 'w').write(folder)
print('chatter' * 1000000)
json.dump({'log_likelihood': q['parameters']['a'] * 2}, open(sys.argv[2][6:], 'w'))";
    let command = ["python3", "-c", script, "{in}", "--out={out}"];
    let spec = CommandSpec { working_dir: Some(dir.path().into()), ..CommandSpec::new(command) };
    assert_eq!(run(spec).outcome, Outcome::Value(3.0));
    let folder = read(&dir.path().join("folder"));
    assert!(folder.contains("batchquad-") && !Path::new(&folder).exists(), "{folder} was removed");
}

#[test]
fn either_file_can_be_used_alone() {
    let only = |script: &str, file: &str| run(CommandSpec::new(["/bin/sh", "-c", script, "sh", file])).outcome;
    assert_eq!(only("grep -c '\"a\":1.5' \"$1\"", "{in}"), Outcome::Value(1.0));
    assert_eq!(only("grep -c '\"a\":1.5' > \"$1\"; echo chatter", "{out}"), Outcome::Value(1.0));
    let shell = CommandSpec { shell: true, ..CommandSpec::new(["grep -c seed {in} > {out}"]) };
    assert_eq!(run(shell).outcome, Outcome::Value(1.0));
}

#[test]
fn answers_in_files_can_be_wrong_too() {
    for (script, kind, words) in [
        ("true", FailureKind::Parse, "no answer in {out}"),
        ("mkfifo \"$1\"", FailureKind::Parse, "not a regular file"),
        ("mkdir \"$1\"", FailureKind::Parse, "not a regular file"),
        ("ln -s /dev/zero \"$1\"", FailureKind::Parse, "not a regular file"),
        ("head -c 2000000 /dev/zero > \"$1\"", FailureKind::Parse, "more than 1048576 bytes"),
        ("echo 1 > \"$1\"; exit 2", FailureKind::Exit, "exit status: 2"),
    ] {
        assert_failed(&run(CommandSpec::new(["/bin/sh", "-c", script, "sh", "{out}"])), kind, words);
    }
}

#[test]
fn environment_and_working_directory_are_the_users() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = "env > env; pwd -P > pwd; cat > question; echo 1";
    let set = BTreeMap::from([("GREETING".to_owned(), "two words; $HOME".to_owned())]);
    let spec = CommandSpec { working_dir: Some(dir.path().into()), env: set, ..sh(wanted) };
    let seen = |inherit_env: Inherit| {
        assert_eq!(run(CommandSpec { inherit_env, ..spec.clone() }).outcome, Outcome::Value(1.0));
        read(&dir.path().join("env"))
    };
    let has = |env: &str, line: &str| env.lines().any(|l| l.starts_with(line));
    let all = seen(Inherit::All);
    for line in
        ["GREETING=two words; $HOME", "BATCHQUAD_ID=3", "BATCHQUAD_SEED=1003", "BATCHQUAD_WORKER=0", "CARGO_PKG_NAME="]
    {
        assert!(has(&all, line), "{line} in {all}");
    }
    let nothing = seen(Inherit::Nothing);
    assert!(has(&nothing, "GREETING=") && has(&nothing, "BATCHQUAD_SEED=") && !has(&nothing, "CARGO_PKG_NAME="));
    let some = seen(Inherit::Only(vec!["CARGO_PKG_NAME".into(), "NOT_SET_ANYWHERE".into()]));
    assert!(has(&some, "CARGO_PKG_NAME=batchquad") && !has(&some, "CARGO_PKG_VERSION="));
    let here = dir.path().canonicalize().unwrap();
    assert_eq!(read(&dir.path().join("pwd")).trim(), here.to_str().unwrap());
}

#[test]
fn programs_that_cannot_be_started_are_errors_that_name_them() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    file("plain", "#!/bin/sh\necho 1\n", 0o644);
    file("orphan", "#!/no/such/interpreter\n", 0o755);
    file("good", "#!/bin/sh\necho 1\n", 0o755);
    let spec = |program: &str| CommandSpec { working_dir: Some(dir.path().into()), ..CommandSpec::new([program]) };
    for (program, words) in [("./missing", "no file"), ("./plain", "chmod +x"), ("missing-program", "found in one of")]
    {
        let error = CommandEvaluator::new(spec(program), &["a"], 1).err().unwrap();
        assert!(matches!(error, Error::Invalid { .. }));
        assert!(error.to_string().contains(program) && error.to_string().contains(words), "{error}");
    }
    // What only an attempt can tell is an error of the run, not a failure of the point; the evaluator lives on.
    let mut evaluator = CommandEvaluator::new(spec("./orphan"), &["a"], 1).unwrap();
    for _ in 0..2 {
        evaluator.submit(job(0, &[0.0])).unwrap();
        let error = evaluator.wait(LONG).unwrap_err().to_string();
        assert!(error.contains("./orphan") && error.contains("can be started"), "{error}");
        assert_eq!(evaluator.in_flight(), 0);
    }
    assert_eq!(run(spec("./good")).outcome, Outcome::Value(1.0), "relative to the working directory");
}

#[test]
fn names_and_points_that_do_not_fit_are_refused() {
    for names in [&[][..], &["a", "a"], &[""]] {
        let error = CommandEvaluator::new(sh("echo 1"), names, 1).err().unwrap();
        assert!(error.to_string().starts_with("names of the parameters"), "{error}");
    }
    let mut evaluator = CommandEvaluator::new(sh("echo 1"), &["a"], 1).unwrap();
    for theta in [&[][..], &[1.0, 2.0], &[f64::NAN], &[f64::INFINITY]] {
        assert!(evaluator.submit(job(0, theta)).is_err());
    }
    assert_eq!(evaluator.in_flight(), 0);
}

#[test]
fn workers_run_at_the_same_time() {
    let dir = tempfile::tempdir().unwrap();
    // Each waits until it sees the other.
    let script =
        "touch seen-$BATCHQUAD_ID; while [ ! -e seen-0 ] || [ ! -e seen-1 ]; do sleep 0.02; done; echo $BATCHQUAD_ID";
    let spec = CommandSpec { working_dir: Some(dir.path().into()), ..with_timeout(sh(script), 60_000) };
    let mut evaluator = CommandEvaluator::new(spec, &["a"], 2).unwrap();
    for id in 0..4 {
        evaluator.submit(job(id, &[0.0])).unwrap();
    }
    let mut values: Vec<f64> = vec![];
    while evaluator.in_flight() > 0 {
        let finished = finish(&mut evaluator);
        assert_eq!(finished.outcome, Outcome::Value(finished.id.0 as f64));
        values.push(finished.id.0 as f64);
    }
    values.sort_by(f64::total_cmp);
    assert_eq!(values, [0.0, 1.0, 2.0, 3.0]);
}

#[test]
fn nothing_is_left_after_a_drop() {
    let dir = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; echo $$ >> pids; sleep 1000 & echo $! >> pids; while :; do sleep 1; done";
    let spec = CommandSpec { working_dir: Some(dir.path().into()), ..sh(script) };
    let mut evaluator = CommandEvaluator::new(spec, &["a"], 2).unwrap();
    for id in 0..5 {
        evaluator.submit(job(id, &[0.0])).unwrap();
    }
    let running = pids(&dir.path().join("pids"), 4);
    assert!(running.iter().all(|&pid| is_running(pid)));
    let start = Instant::now();
    drop(evaluator);
    assert!(start.elapsed() < Duration::from_secs(30));
    assert_gone(&running);
    assert_eq!(pids(&dir.path().join("pids"), 4).len(), 4, "the queue was not started");
}

#[test]
fn an_interrupt_ends_processes_politely_and_a_second_one_at_once() {
    for second in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let script = "trap 'echo asked > asked' TERM; echo $$ >> pids; while :; do sleep 0.05; done";
        let grace = if second { LONG } else { Duration::from_millis(500) };
        let spec = CommandSpec { working_dir: Some(dir.path().into()), grace, ..sh(script) };
        let mut evaluator = CommandEvaluator::new(spec, &["a"], 1).unwrap();
        evaluator.submit(job(0, &[0.0])).unwrap();
        evaluator.submit(job(1, &[0.0])).unwrap();
        let running = pids(&dir.path().join("pids"), 1);
        let (start, interrupt) = (Instant::now(), evaluator.interrupt());
        interrupt.raise();
        eventually("it was asked to end", || dir.path().join("asked").exists());
        if second {
            interrupt.raise();
        }
        assert_eq!(evaluator.wait(LONG).unwrap(), None, "a job that was given up has no outcome");
        assert_eq!(evaluator.in_flight(), 0);
        assert!(start.elapsed() < Duration::from_secs(30), "not the grace of a minute");
        assert_gone(&running);
        assert!(evaluator.submit(job(2, &[0.0])).is_err());
    }
}
