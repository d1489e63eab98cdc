//! Signals, kills, two drivers: nothing that was evaluated is lost, and nothing is left running.

use std::{
    fs,
    process::{Child, Output},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Done, Place, is_running, wait_until};

const SETTINGS: &str = "max_evaluations = 36\nworkers = 2\nseed = 5";
const RUN: [&str; 3] = ["run", "problem.toml", "-q"];
const STORE: &str = "problem.batchquad";

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), signal).unwrap();
}

fn end(child: Child) -> Output {
    child.wait_with_output().unwrap()
}

#[test]
fn interrupted_and_killed_runs_end_in_the_same_bits() {
    let whole = Place::bump(SETTINGS);
    whole.run(&RUN, 0);
    let expected = whole.outcome(STORE);

    let interrupted = Place::new(crate::common::BUMP, "env = { SLEEP = \"0.02\" }", SETTINGS);
    for (evaluations, signal) in [(3, Signal::INT), (14, Signal::TERM), (27, Signal::INT)] {
        let child = interrupted.spawn(&RUN);
        interrupted.wait_for(STORE, evaluations);
        send(&child, signal);
        let done = Done::new(&RUN, end(child), 130);
        assert!(done.stderr.contains("resumable") && done.stderr.contains("run problem.toml -q"), "{}", done.stderr);
    }
    interrupted.run(&["run", "problem.toml", "-q", "--resume"], 0);
    assert_eq!(interrupted.outcome(STORE), expected);

    let killed = Place::new(crate::common::BUMP, "env = { SLEEP = \"0.02\" }", SETTINGS);
    for evaluations in [0, 5, 11, 12, 20, 30] {
        let child = killed.spawn(&RUN);
        wait_until(|| killed.path(STORE).join("journal.jsonl").exists());
        killed.wait_for(STORE, evaluations);
        send(&child, Signal::KILL);
        end(child);
    }
    killed.run(&RUN, 0);
    assert_eq!(killed.outcome(STORE), expected);
}

#[test]
fn an_interrupt_ends_the_children_and_says_so_in_json() {
    let place = Place::new("#!/bin/sh\nexec sleep 1000\n", "", SETTINGS);
    let child = place.spawn(&["run", "problem.toml", "--json"]);
    wait_until(|| place.path(STORE).join("journal.jsonl").exists());
    std::thread::sleep(Duration::from_millis(300));
    let begin = Instant::now();
    send(&child, Signal::INT);
    let done = Done::new(&["run"], end(child), 130);
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    assert_eq!(done.json()["status"], "interrupted");
    assert_eq!(done.json()["pending"], 8);
}

#[test]
fn a_second_signal_ends_everything_at_once() {
    let place = Place::new("", "grace = 60", SETTINGS);
    // Deaf to SIGTERM, and so is its child.
    let marker = place.path("deaf-child");
    fs::write(&marker, "#!/bin/sh\ntrap '' TERM INT\nwhile :; do sleep 0.2; done\n").unwrap();
    place.script(
        "likelihood",
        &format!("#!/bin/sh\ntrap '' TERM INT\nsh {} &\ntouch started\nwait\n", marker.display()),
    );
    let child = place.spawn(&RUN);
    wait_until(|| place.path("started").exists() && is_running(&marker));
    let begin = Instant::now();
    send(&child, Signal::INT);
    std::thread::sleep(Duration::from_millis(300));
    send(&child, Signal::INT);
    assert_eq!(end(child).status.code(), Some(130));
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
    wait_until(|| !is_running(&marker));
    place.run(&["result", STORE], 1);
}

#[test]
fn one_driver_at_a_time() {
    let place = Place::new("#!/bin/sh\nexec sleep 5\n", "", SETTINGS);
    let child = place.spawn(&RUN);
    wait_until(|| place.path(STORE).join("journal.jsonl").exists());
    let pid = child.id().to_string();
    for args in [&RUN[..], &["ask", STORE], &["tell", STORE]] {
        let second = place.run(args, 4);
        assert!(second.stderr.contains(&format!("process {pid} on ")), "{}", second.stderr);
    }
    let status = place.run(&["status", STORE, "--json"], 0).json();
    assert_eq!((status["state"].as_str(), status["writer"]["pid"].to_string()), (Some("running"), pid));
    send(&child, Signal::KILL);
    end(child);
    // The killed one holds nothing up.
    place.script("likelihood", crate::common::BUMP);
    place.run(&RUN, 0);
}

#[test]
fn a_damaged_store_is_refused_and_repaired_elsewhere() {
    let place = Place::bump("max_evaluations = 20");
    place.run(&RUN, 0);
    let journal = place.path(STORE).join("journal.jsonl");
    let mut text = fs::read(&journal).unwrap();
    let middle = text.len() / 2;
    text[middle..middle + 2].copy_from_slice(b"\0\0");
    fs::write(&journal, &text).unwrap();
    for args in [&RUN[..], &["status", STORE], &["result", STORE], &["ask", STORE], &["doctor", STORE]] {
        let refused = place.run(args, 5);
        assert!(format!("{}{}", refused.stdout, refused.stderr).contains("repair"), "{}", refused.stderr);
    }
    assert_eq!(fs::read(&journal).unwrap(), text);
    let repaired = place.run(&["doctor", STORE, "--repair", "saved"], 0);
    assert!(repaired.stderr.contains("is lost"), "{}", repaired.stderr);
    place.run(&["run", "problem.toml", "--store", "saved", "-q", "--max-evaluations", "28"], 0);
    place.run(&["doctor", "nowhere"], 2);
}

#[test]
fn a_torn_end_is_cut_and_told() {
    let place = Place::bump("max_evaluations = 20");
    place.run(&RUN, 0);
    let journal = place.path(STORE).join("journal.jsonl");
    let whole = place.outcome(STORE);
    let text = fs::read(&journal).unwrap();
    fs::write(&journal, &text[..text.len() - 7]).unwrap();
    let resumed = place.run(&["run", "problem.toml"], 0);
    assert!(resumed.stderr.contains("middle of a record"), "{}", resumed.stderr);
    assert_eq!(place.outcome(STORE), whole);
}
