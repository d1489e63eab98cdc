//! Every way in which a driver can be told to end, and the one in which it is not told.

use std::{
    fmt::Write as _,
    fs,
    process::Child,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{BUMP, Done, Place, is_running, wait_until};

const RUN: [&str; 3] = ["run", "problem.toml", "-q"];
const STORE: &str = "problem.batchquad";
const SETTINGS: &str = "max_evaluations = 36\nworkers = 2\nseed = 5";

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), signal).unwrap();
}

/// A likelihood that never ends, with a child of its own that can be found.
fn endless() -> Place {
    let place = Place::new("", "", SETTINGS);
    place.write("sleeper", "while :; do sleep 0.1; done\n");
    let sleeper = place.path("sleeper");
    place.script("likelihood", &format!("#!/bin/sh\nsh {} &\ntouch started\nwait\n", sleeper.display()));
    place
}

/// Whether these tests, and so what they start, were told to ignore HUP.
fn ignores_hangup() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    ignored.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).is_some_and(|set| set & 1 == 1)
}

#[test]
fn every_signal_that_ends_programs_ends_a_run_in_good_order() {
    let signals = [Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2, Signal::XCPU, Signal::ALARM];
    for signal in signals {
        // Under nohup the program ignores it as well, as it should, and would never end.
        if signal == Signal::HUP && ignores_hangup() {
            continue;
        }
        let place = endless();
        let child = place.spawn(&RUN);
        wait_until(|| place.path("started").exists());
        send(&child, signal);
        let done = Done::new(&RUN, child.wait_with_output().unwrap(), 130);
        assert!(done.stderr.contains("resumable"), "{signal:?}: {}", done.stderr);
        assert!(!is_running(&place.path("sleeper")), "{signal:?} left a child");
    }
}

/// A run in a shell that has set a trap for some signals, which gets one of them after the third evaluation, and its exit code.
fn trapped(trap: &str, signal: Signal) -> Option<i32> {
    let place = Place::new(BUMP, "env = { SLEEP = \"0.05\" }", SETTINGS);
    let run = format!("trap '' {trap}; exec {} run problem.toml -q", env!("CARGO_BIN_EXE_batchquad"));
    let mut shell = std::process::Command::new("sh");
    let mut child = shell.args(["-c", &run]).current_dir(place.dir.path()).spawn().unwrap();
    place.wait_for(STORE, 3);
    send(&child, signal);
    child.wait().unwrap().code()
}

#[test]
fn a_signal_that_was_ignored_from_the_start_stays_ignored() {
    assert_eq!(trapped("HUP", Signal::HUP), Some(0));
}

#[test]
fn a_background_job_of_a_script_can_be_ended_all_the_same() {
    for signal in [Signal::INT, Signal::QUIT] {
        assert_eq!(trapped("INT QUIT", signal), Some(130));
    }
}

#[test]
fn nothing_outlives_a_driver_that_was_killed() {
    for mode in ["per-call", "server"] {
        let place = endless();
        let problem = fs::read_to_string(place.path("problem.toml")).unwrap();
        place.write("problem.toml", &problem.replace("[run]", &format!("mode = \"{mode}\"\ngrace = 1\n[run]")));
        let child = place.spawn(&RUN);
        wait_until(|| place.path("started").exists() && is_running(&place.path("sleeper")));
        send(&child, Signal::KILL);
        let begin = Instant::now();
        drop(child.wait_with_output());
        wait_until(|| !is_running(&place.path("sleeper")));
        assert!(begin.elapsed() < Duration::from_secs(20), "{mode}: {:?}", begin.elapsed());
        // The store is free again.
        place.run(&["ask", STORE, "-n", "1"], 0);
    }
}

/// The seconds that a process has computed; Linux counts in hundredths.
fn computed(child: &Child) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|t| t.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// A table of `rows` evaluations of a Gaussian in six dimensions.
fn table(rows: usize) -> String {
    let mut text = String::from("a,b,c,d,e,f,log_likelihood\n");
    let mut state = 1_u64;
    for _ in 0..rows {
        let mut square = 0.0;
        for _ in 0..6 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let x = (state >> 11) as f64 / (1_u64 << 53) as f64 * 4.0 - 2.0;
            square += x * x;
            write!(text, "{x},").unwrap();
        }
        writeln!(text, "{}", -square).unwrap();
    }
    text
}

#[test]
fn a_signal_during_a_long_computation_is_heard_within_two_seconds() {
    let place = Place::new("#!/bin/sh\necho 0\n", "", "max_evaluations = 5000\nseed = 1");
    let parameter =
        |name: &str| format!("[[parameter]]\nname = \"{name}\"\nprior = {{ normal = {{ mean = 0, sd = 1 }} }}\n");
    let problem = fs::read_to_string(place.path("problem.toml")).unwrap();
    let (_, rest) = problem.split_once("[likelihood]").unwrap();
    let parameters: String = ["a", "b", "c", "d", "e", "f"].map(parameter).concat();
    place.write("problem.toml", &format!("{parameters}\n[likelihood]{rest}"));
    place.write("table.csv", &table(3000));
    place.run(&["new", "problem.toml", "--import", "table.csv"], 0);
    for signal in [Signal::INT, Signal::TERM] {
        let mut child = place.spawn(&["run", "problem.toml", "--json"]);
        while computed(&child) < 1.0 {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::sleep(Duration::from_millis(10));
        }
        let before = computed(&child);
        send(&child, signal);
        // Time of its own rather than of the clock, which others make run.
        let mut after = before;
        while child.try_wait().unwrap().is_none() {
            after = computed(&child).max(after);
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(after - before < 2.0, "{signal:?}: {before} s before it, {after} s at the end");
        let done = Done::new(&RUN, child.wait_with_output().unwrap(), 130);
        assert_eq!(done.json()["status"], "interrupted");
        assert!(done.stderr.contains("resumable"), "{}", done.stderr);
        assert_eq!(fs::read(place.path(STORE).join("lock")).unwrap(), b"", "{signal:?}: it was not killed");
    }
}
