//! Independent runs in one store, and what is said of a target.

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{BUMP, Place, bump_log_z};

const STORE: &str = "problem.batchquad";
const SETTINGS: &str = "max_evaluations = 20\nbatch = 4\nworkers = 2\nseed = 5";
const RUN: [&str; 5] = ["run", "problem.toml", "-q", "--repeats", "3"];

#[test]
fn three_runs_are_pooled_and_compared_wherever_a_run_is_shown() {
    let place = Place::bump(SETTINGS);
    let text = place.run(&RUN, 0).stdout;
    for words in ["repeat       1 of 3: ", "repeat       3 of 3: ", "in each of 3 repeats", "60 in "] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let result = place.outcome(STORE);
    assert!((result["log_z"].as_f64().unwrap() - bump_log_z()).abs() < 0.05, "{result}");
    assert_eq!((&result["evaluations"], &result["agreement"]["begun"]), (&60.into(), &3.into()));
    for (k, repeat) in result["repeats"].as_array().unwrap().iter().enumerate() {
        assert_eq!((repeat["repeat"].as_u64(), repeat["evaluations"].as_u64()), (Some(k as u64 + 1), Some(20)));
        assert!((repeat["log_z"].as_f64().unwrap() - bump_log_z()).abs() < 0.3, "{repeat}");
    }
    let status = place.run(&["status", STORE], 0).stdout;
    assert!(status.contains("60 of 60") && status.contains("from the values of all repeats"), "{status}");
    assert!(status.contains("repeat       2 of 3: "), "{status}");
    let json = place.run(&["status", STORE, "--json"], 0).json();
    assert_eq!((&json["log_z"], &json["state"]), (&result["log_z"], &"budget".into()));
    assert_eq!(json["repeats"].as_array().unwrap().len(), 3);
    let frame = place.run(&["watch", STORE, "--once"], 0).stdout;
    assert!(frame.contains("repeat 2 of 3: ") && frame.contains("60 of 60 evaluations"), "{frame}");
    let table = place.run(&["export", STORE], 0).stdout;
    assert!(table.starts_with("id,batch,repeat,x,y,"), "{table}");
    assert!(
        table.lines().last().unwrap().starts_with("59,") && table.lines().last().unwrap().contains(",3,"),
        "{table}"
    );
    place.run(&["report", STORE, "-o", "page.html"], 0);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    for words in ["3 of 3: ", "of 3 repeats", "agreement", "repeats = 3"] {
        assert!(page.contains(words), "{words}");
    }
    place.run(&["doctor", STORE], 0);
}

#[test]
fn killed_in_any_repeat_it_ends_in_the_same_bits() {
    let whole = Place::bump(SETTINGS);
    whole.run(&RUN, 0);
    let expected = whole.outcome(STORE);
    let killed = Place::new(BUMP, "env = { SLEEP = \"0.02\" }", SETTINGS);
    for evaluations in [6, 21, 33, 45] {
        let child = killed.spawn(&RUN);
        crate::common::wait_until(|| killed.path(STORE).join("journal.jsonl").exists());
        killed.wait_for(STORE, evaluations);
        kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::KILL).unwrap();
        child.wait_with_output().unwrap();
    }
    // The number is in the store: it need not be said again.
    killed.run(&["run", "problem.toml", "-q"], 0);
    assert_eq!(killed.outcome(STORE), expected);
}

#[test]
fn a_finished_run_gets_repeats_and_keeps_them() {
    let place = Place::bump(SETTINGS);
    place.run(&["run", "problem.toml", "-q"], 0);
    let alone = place.outcome(STORE);
    assert!(alone.get("repeats").is_none() && alone.get("agreement").is_none(), "{alone}");
    place.run(&["run", "problem.toml", "-q", "--repeats", "2"], 0);
    let two = place.outcome(STORE);
    assert_eq!(two["repeats"][0]["log_z"], alone["log_z"], "the first is the run that there was");
    let refused = place.run(&["run", "problem.toml", "-q", "--repeats", "1"], 2).stderr;
    assert!(refused.contains("repeats is 1, the store has 2"), "{refused}");
    for (value, expected) in [
        ("0", "repeats is 0, expected at least 1"),
        ("1.5", "--repeats"),
        ("many", "--repeats"),
        ("101", "at most 100"),
    ] {
        let refused = place.run(&["run", "problem.toml", "--repeats", value], 2).stderr;
        assert!(refused.contains(expected), "{refused}");
    }
    place.write("bad.toml", &format!("{}\n[run]\nrepeats = 2.5\n", crate::common::PARAMETERS));
    let refused = place.run(&["new", "bad.toml"], 2).stderr;
    assert!(refused.contains("run.repeats") && refused.contains("2.5"), "{refused}");
}

#[test]
fn a_budget_that_will_not_do_is_said_while_it_runs_and_after() {
    let place = Place::bump("max_evaluations = 56\nbatch = 4\nseed = 1\ntarget_sd = 1e-12");
    let done = place.run(&["run", "problem.toml"], 3);
    assert!(done.stderr.contains("target_sd = "), "{}", done.stderr);
    assert!(done.stdout.contains("outlook"), "{}", done.stdout);
    let result = place.outcome(STORE);
    assert!(result["outlook"].as_str().unwrap().contains("target_sd = "), "{result}");
    if let Some(needed) = result.get("evaluations_needed") {
        assert!(needed.as_u64().unwrap() > 56, "{result}");
    }
    let status = place.run(&["status", STORE], 0).stdout;
    assert!(status.contains("outlook"), "{status}");
    // Without a target there is nothing to say.
    let plain = Place::bump("max_evaluations = 24");
    assert!(!plain.run(&["run", "problem.toml", "-q"], 0).stdout.contains("outlook"));
}

#[test]
fn a_run_stops_when_another_batch_is_not_worth_it() {
    let place = Place::bump("max_evaluations = 200\nbatch = 4\nseed = 1");
    let text = place.run(&["run", "problem.toml", "-q", "--stop-gain", "0.9"], 0).stdout;
    assert!(
        text.contains("stalled: another batch would reduce log_z_sd by") && text.contains("stop_gain = 0.9"),
        "{text}"
    );
    for value in ["0", "1", "-0.5", "nan"] {
        let refused = place.run(&["run", "problem.toml", &format!("--stop-gain={value}")], 2).stderr;
        assert!(refused.contains("stop_gain is") && refused.contains("between 0 and 1"), "{refused}");
    }
}
