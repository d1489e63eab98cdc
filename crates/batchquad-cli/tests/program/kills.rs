//! `kill -9` at any moment of a run's life.

use std::{
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::common::{self, Place};

const SETTINGS: &str = "max_evaluations = 44\nworkers = 2\nseed = 11";
const RUN: [&str; 3] = ["run", "problem.toml", "-q"];
const STORE: &str = "problem.batchquad";

/// Runs that are killed side by side, because a run mostly waits.
const SIDE_BY_SIDE: u64 = 4;

/// The bump of the other tests as one process instead of four: the driver is what is tried here.
const BUMP: &str = r#"#!/usr/bin/awk -f
BEGIN {
    getline
    x = $0; sub(/.*"x":/, "", x)
    y = $0; sub(/.*"y":/, "", y)
    printf "%.17g\n", -2 * ((x - 1)^2 + y^2) - log(3.14159265358979 / 2)
}
"#;

/// Whole lines in the journal: what has been acknowledged.
fn records(place: &Place) -> usize {
    let journal = std::fs::read(place.path(STORE).join("journal.jsonl")).unwrap_or_default();
    journal.iter().filter(|&&byte| byte == b'\n').count()
}

/// SplitMix64: no more is needed to scatter kills.
fn scatter(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Whoever kills from outside as often as this wants no point to be given up for it.
const PATIENT: &str = "retries = 1000";

/// Kills and resumes until `killed` is at `kills`; every run that reaches its end must end as expected. `life` is how long
/// an undisturbed run takes by itself.
fn torment(seed: u64, kills: usize, killed: &AtomicUsize, life: Duration, expected: &Value) -> usize {
    let life = u64::try_from(life.as_micros()).unwrap();
    let mut state = seed;
    let mut ended = 0;
    while killed.load(Ordering::Relaxed) < kills {
        let place = Place::new(BUMP, PATIENT, SETTINGS);
        let mut acknowledged = 0;
        loop {
            let mut child = place.command(&RUN).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let enough = killed.load(Ordering::Relaxed) >= kills;
            if !enough {
                std::thread::sleep(Duration::from_micros(scatter(&mut state) % life));
                child.kill().unwrap();
            }
            let status = child.wait().unwrap();
            let now = records(&place);
            assert!(now >= acknowledged, "{acknowledged} records were on the disk, {now} are");
            acknowledged = now;
            match status.code() {
                Some(code) => {
                    assert_eq!(code, 0);
                    break;
                }
                None => killed.fetch_add(1, Ordering::Relaxed),
            };
        }
        assert_eq!(&place.outcome(STORE), expected, "scattered by {seed}");
        ended += 1;
    }
    ended
}

/// `BATCHQUAD_KILLS` sets how many; a hundred by default.
#[test]
fn killed_at_random_a_run_ends_in_the_same_bits() {
    let kills = std::env::var("BATCHQUAD_KILLS").map_or(100, |n| n.parse().unwrap());
    let whole = Place::new(BUMP, PATIENT, SETTINGS);
    let begin = Instant::now();
    whole.run(&RUN, 0);
    let life = begin.elapsed();
    let expected = whole.outcome(STORE);
    let killed = AtomicUsize::new(0);
    let ended: usize = std::thread::scope(|scope| {
        let torment = |seed| torment(seed, kills, &killed, life, &expected);
        let threads: Vec<_> = (0..SIDE_BY_SIDE).map(|seed| scope.spawn(move || torment(seed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    eprintln!("{} kills, {ended} runs of {life:?}", killed.load(Ordering::Relaxed));
    assert!(killed.load(Ordering::Relaxed) >= kills);
}

/// Runs until it is no longer killed; how often it was.
fn until_it_lives(place: &Place, code: i32) -> usize {
    for killed in 0..20 {
        let status = place.command(&RUN).stderr(Stdio::null()).stdout(Stdio::null()).status().unwrap();
        if let Some(found) = status.code() {
            assert_eq!(found, code);
            return killed;
        }
    }
    panic!("it was killed twenty times");
}

#[test]
fn a_point_that_kills_the_driver_is_tried_last_then_alone_and_given_up_and_no_other_is() {
    // The evaluation with the number 2 kills whoever started it, as a machine without memory does.
    let killer =
        common::BUMP.replace("read line", "[ \"$BATCHQUAD_ID\" != 2 ] || { kill -9 $PPID; sleep 60; }\nread line");
    let place = Place::new(&killer, "retries = 1", "max_evaluations = 16\nworkers = 3\nseed = 11");
    // The first time, and as often as it is tried again: with others, then alone.
    assert_eq!(until_it_lives(&place, 0), 3);
    let journal = std::fs::read_to_string(place.path(STORE).join("journal.jsonl")).unwrap();
    let events: Vec<Value> =
        journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone()).collect();
    let of = |kind: &str, id: u64| events.iter().filter(|e| e["kind"] == kind && e["id"] == id).count();
    assert_eq!((of("retried", 2), of("told", 2)), (2, 1));
    let failed: Vec<&Value> =
        events.iter().filter(|e| e["kind"] == "told" && !e["outcome"]["failed"].is_null()).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!((&failed[0]["id"], &failed[0]["attempt"]), (&2.into(), &3.into()));
    assert_eq!(failed[0]["outcome"]["failed"]["kind"], "lost-worker");
    let table = place.run(&["export", STORE], 0).stdout;
    assert_eq!(table.lines().filter(|line| line.contains(",failed,")).count(), 1, "{table}");
    assert!(table.contains("the driver was killed 3 times while this was pending"), "{table}");
}
