//! `report` and `watch` on stores of every kind: both only read.

use std::{fs, time::SystemTime};

use crate::common::{BUMP, Place, wait_until};

/// The report of a store, which must be left as it was, down to the times of its files.
fn report(place: &Place, store: &str, code: i32) -> String {
    let state = || -> Vec<(String, Vec<u8>, SystemTime)> {
        let mut files: Vec<_> = fs::read_dir(place.path(store))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                (name, fs::read(&path).unwrap(), path.metadata().unwrap().modified().unwrap())
            })
            .collect();
        files.sort();
        files
    };
    let before = state();
    place.run(&["report", store, "-o", "page.html"], code);
    let page = fs::read_to_string(place.path("page.html")).unwrap();
    assert_eq!(place.run(&["report", store, "-o", "-"], code).stdout, page, "the same store is the same page");
    assert_eq!(state(), before);
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("default-src 'none'") && !page.contains("unsafe-inline") && !page.contains(" style="));
    assert!(!page.contains("NaN</text>") && !page.contains("inf</text>"));
    page
}

/// The journal up to and with the line that holds `mark` for the `n`th time, as a store of its own.
fn cut(place: &Place, store: &str, lines: usize) -> String {
    let text = fs::read_to_string(place.path("problem.batchquad/journal.jsonl")).unwrap();
    let kept: String = text.lines().take(lines).map(|line| format!("{line}\n")).collect();
    fs::create_dir(place.path(store)).unwrap();
    place.write(&format!("{store}/journal.jsonl"), &kept);
    text
}

#[test]
fn stores_at_every_stage_have_a_report() {
    let place = Place::bump("max_evaluations = 40\nseed = 3\nknown_log_z = -2.46");
    place.run(&["new", "problem.toml", "--store", "empty"], 0);
    let page = report(&place, "empty", 0);
    assert!(page.contains("There is no log Z") && page.contains("too few evaluations"));
    place.run(&["run", "problem.toml", "-q"], 0);
    let page = report(&place, "problem.batchquad", 0);
    for id in ["convergence", "marginals", "corner", "calibration", "forecasts", "timeline"] {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    assert!(page.contains("known answer") && page.contains("known_log_z = -2.46"));
    place.run(&["report", "problem.batchquad"], 0);
    assert_eq!(fs::read_to_string(place.path("problem.html")).unwrap(), page);
    // Four notes and the header aside: cut in the initial design, after it, and in the middle of a batch.
    for lines in [4, 6, 14, 20, 30] {
        let store = format!("cut{lines}");
        cut(&place, &store, lines);
        let page = report(&place, &store, 0);
        assert!(page.contains("pending"), "{lines}");
        place.run(&["watch", &store, "--once"], 0);
    }
    // A torn end is left out and said; damage too, with its own exit code.
    let whole = cut(&place, "torn", 20);
    let torn = fs::read_to_string(place.path("torn/journal.jsonl")).unwrap() + &whole.lines().nth(20).unwrap()[..30];
    place.write("torn/journal.jsonl", &torn);
    assert!(report(&place, "torn", 0).contains("30 bytes of an unfinished record"));
    assert!(place.run(&["watch", "torn", "--once"], 0).stdout.contains("of 40 evaluations"));
    let damaged = whole.replacen("\"attempt\":1", "\"attempt\":2", 20).replacen("\"attempt\":2", "\"attempt\":1", 19);
    fs::create_dir(place.path("damaged")).unwrap();
    place.write("damaged/journal.jsonl", &damaged);
    let page = report(&place, "damaged", 5);
    assert!(page.contains("of the store is damaged") && page.contains("Worth a look"), "{page}");
    place.run(&["watch", "damaged", "--once"], 5);

    place.run(&["report", "nowhere"], 2);
    place.run(&["report", "problem.batchquad", "-o", "no/such/directory.html"], 1);
    place.run(&["report", "problem.batchquad", "--known-log-z", "nan"], 2);
    let page = place.run(&["report", "problem.batchquad", "--known-log-z", "-2.5", "-o", "-"], 0).stdout;
    assert!(page.contains("−2.5, "));
}

#[test]
fn failures_and_zeros_have_a_report() {
    let place = Place::new("#!/bin/sh\necho 'no <licence>' >&2\nexit 1\n", "", "max_evaluations = 16");
    place.run(&["run", "problem.toml", "-q"], 1);
    let page = report(&place, "problem.batchquad", 0);
    assert!(
        page.contains("There is no log Z") && page.contains("no &lt;licence&gt;") && page.contains("id=\"timeline\"")
    );
    let shown = place.run(&["watch", "problem.batchquad", "--once"], 0).stdout;
    assert!(shown.contains("unknown yet") && shown.contains("failed (exit)"), "{shown}");

    let place = Place::new("#!/bin/sh\necho -inf\n", "", "max_evaluations = 12");
    place.run(&["run", "problem.toml", "-q"], 1);
    let page = report(&place, "problem.batchquad", 0);
    assert!(page.contains("There is no log Z") && page.contains("data-v=\"-inf\">−∞<"));
}

#[test]
fn every_surrogate_one_parameter_and_many_have_a_report() {
    for surrogate in ["plain", "wsabi-m"] {
        let place = Place::bump(&format!("max_evaluations = 32\nsurrogate = \"{surrogate}\""));
        place.run(&["run", "problem.toml", "-q"], 0);
        let page = report(&place, "problem.batchquad", 0);
        assert!(page.contains("By importance draws") && page.contains("id=\"corner\""), "{surrogate}");
    }
    let server = r#"#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    q = json.loads(line)
    p = q["parameters"]
    print(json.dumps({"id": q["id"], "log_likelihood": -sum((v - 0.3) ** 2 for v in p.values())}), flush=True)
"#;
    for (d, corner) in [(1, false), (7, true)] {
        let place = Place::new(server, "", "");
        let parameter =
            |k: usize| format!("[[parameter]]\nname = \"p{k}\"\nprior = {{ uniform = {{ low = -1, high = 2 }} }}\n");
        let parameters: String = (0..d).map(parameter).collect();
        place.write("problem.toml", &format!("{parameters}[likelihood]\ncommand = [\"./likelihood\"]\nmode = \"server\"\n[run]\nmax_evaluations = 48\n"));
        place.run(&["run", "problem.toml", "-q"], 0);
        let page = report(&place, "problem.batchquad", 0);
        assert_eq!(page.contains("id=\"corner\""), corner);
        assert_eq!(page.contains("Of 7 parameters, the 6"), d == 7);
    }
}

#[test]
fn the_problem_file_in_a_report_makes_the_same_run() {
    let place = Place::bump("max_evaluations = 24\nseed = 7\nbatch = 4\nkernel = \"ard\"\ntarget_sd = 1e-9");
    place.run(&["run", "problem.toml", "-q"], 3);
    let page = report(&place, "problem.batchquad", 0);
    let text = page.split("<pre tabindex=\"0\"><code>").nth(1).unwrap().split("</code>").next().unwrap();
    let text = [("&quot;", "\""), ("&#x2f;", "/"), ("&lt;", "<"), ("&gt;", ">"), ("&#x27;", "'"), ("&amp;", "&")]
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    place.write("again.toml", &text);
    place.run(&["run", "again.toml", "-q"], 3);
    assert_eq!(place.outcome("again.batchquad"), place.outcome("problem.batchquad"));
}

#[test]
fn a_number_not_to_be_trusted_is_marked_everywhere() {
    // A needle in the prior: twenty evaluations have hardly seen it, and each batch overturns what was believed before.
    let run = "max_evaluations = 20\nsurrogate = \"wsabi-l\"";
    let place = Place::new(&BUMP.replace("/ 0.25", "/ 0.001"), "", run);
    let told = place.run(&["run", "problem.toml", "-q"], 0).stdout;
    assert!(told.contains("DO NOT TRUST log Z"), "{told}");
    assert!(place.run(&["result", "problem.batchquad"], 0).stdout.contains("DO NOT TRUST"));
    assert_eq!(place.run(&["result", "problem.batchquad", "--json"], 0).json()["verdict"], "do-not-trust");
    assert!(place.run(&["status", "problem.batchquad"], 0).stdout.contains("DO NOT TRUST"));
    assert_eq!(place.run(&["status", "problem.batchquad", "--json"], 0).json()["verdict"], "do-not-trust");
    assert!(place.run(&["watch", "problem.batchquad", "--once"], 0).stdout.contains("DO NOT TRUST"));
    assert!(report(&place, "problem.batchquad", 0).contains("Do not trust this number"));
    let both = ["compare", "problem.batchquad", "problem.batchquad"];
    assert!(place.run(&both, 0).stdout.contains("DO NOT TRUST"));
    assert_eq!(place.run(&[&both[..], &["--json"]].concat(), 0).json()["models"][1]["verdict"], "do-not-trust");
    assert!(place.run(&[&both[..], &["--html", "-"]].concat(), 0).stdout.contains("DO NOT TRUST"));
}

#[test]
fn a_running_store_is_watched_without_being_locked() {
    let place = Place::bump("max_evaluations = 24\nworkers = 2");
    let mut command = place.command(&["run", "problem.toml", "-q"]);
    let mut run = command.env("SLEEP", "0.3").spawn().unwrap();
    wait_until(|| place.path("problem.batchquad/journal.jsonl").exists());
    let mut frames = Vec::new();
    wait_until(|| {
        frames.push(place.run(&["watch", "problem.batchquad", "--once"], 0).stdout);
        run.try_wait().unwrap().is_some()
    });
    assert!(run.wait().unwrap().success(), "watching did not disturb it");
    assert!(frames.iter().any(|f| f.contains("running: process") && f.contains("log Z  -2.")), "{frames:#?}");
    let last = place.run(&["watch", "problem.batchquad"], 0).stdout;
    assert!(last.contains("24 of 24 evaluations") && last.contains("worker 1"), "{last}");
}
