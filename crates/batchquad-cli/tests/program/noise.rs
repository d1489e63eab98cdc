//! Log-likelihoods that come with the standard deviation of their noise: from commands, by hand and in tables.

use serde_json::{Value, json};

use crate::common::{Place, bump_log_z};

/// The bump with noise of a known standard deviation, made of the question's seed: one process per call, or a server.
const NOISY: &str = r#"#!/usr/bin/env python3
import json, math, random, sys
for line in sys.stdin:
    question = json.loads(line)
    x, y = question["parameters"]["x"], question["parameters"]["y"]
    sd = [0.05, 1.0][question["id"] % 2]
    value = -2 * ((x - 1) ** 2 + y * y) - math.log(2 * math.pi * 0.25) + random.Random(question["seed"]).gauss(0, sd)
    print(json.dumps({"id": question["id"], "log_likelihood": value, "sd": sd}), flush=True)
"#;

#[test]
fn commands_may_answer_with_an_sd() {
    for likelihood in ["", "mode = \"server\""] {
        let place = Place::new(NOISY, likelihood, "max_evaluations = 48");
        let checked = place.run(&["check", "problem.toml"], 0).stdout;
        assert!(checked.contains(" ± 0.05 at the prior median"), "{checked}");
        let result = place.run(&["run", "problem.toml", "-q", "--json"], 0).json();
        let (log_z, sd) = (result["log_z"].as_f64().unwrap(), result["log_z_sd"].as_f64().unwrap());
        assert!((log_z - bump_log_z()).abs() < 4.0 * sd && sd < 0.1, "{log_z} ± {sd}, {}", bump_log_z());
        let csv = place.run(&["export", "problem.batchquad"], 0).stdout;
        let mut lines = csv.lines();
        assert_eq!(lines.next().unwrap(), "id,batch,x,y,log_likelihood,sd,status,seconds,worker,kind,message");
        for (i, line) in lines.enumerate() {
            let sd = ["0.05", "1"][i % 2];
            assert_eq!(line.split(',').nth(5), Some(sd), "{line}");
        }
        let page = place.run(&["report", "problem.batchquad", "-o", "-"], 0).stdout;
        assert!(page.contains(">sd<") && page.contains("48 values came with a standard deviation"));
        // The table begins another run with the same values and the same noise.
        place.write("table.csv", &csv);
        place.run(&["new", "problem.toml", "--store", "warm", "--import", "table.csv"], 0);
        let warm = place.run(&["result", "warm", "--json"], 0).json();
        let difference = warm["log_z"].as_f64().unwrap() - log_z;
        assert!(difference.abs() < 2.0 * sd, "{difference}");
        assert!(place.run(&["export", "warm"], 0).stdout.contains(",0.05,imported,"));
    }
}

#[test]
fn an_sd_that_is_none_fails_the_evaluation() {
    let place = Place::new(&NOISY.replace("[0.05, 1.0]", "[-0.05, 1.0]"), "", "max_evaluations = 24");
    place.run(&["run", "problem.toml", "-q"], 0);
    let csv = place.run(&["export", "problem.batchquad"], 0).stdout;
    let first = csv.lines().nth(1).unwrap();
    assert!(first.contains(",failed,") && first.contains(",parse,"), "{first}");
    assert!(first.contains(": -0.05}") && first.contains("a finite number ≥ 0 under \"\"sd\"\""), "{first}");
    assert_eq!(csv.matches(",failed,").count(), 12);
}

fn tell(place: &Place, answers: &[Value], code: i32) -> String {
    let lines: String = answers.iter().map(|answer| format!("{answer}\n")).collect();
    place.run_with_input(&["tell", "store"], &lines, code).stderr
}

#[test]
fn told_values_with_sds_are_averaged() {
    let place = Place::bump("");
    place.run(&["new", "problem.toml", "--store", "store"], 0);
    place.run(&["ask", "store", "-n", "8"], 0);
    let value = |id: u64, value: f64, sd: Value| json!({"id": id, "log_likelihood": value, "sd": sd});
    let mut answers: Vec<Value> = (0..7).map(|id| value(id, -1.0 - id as f64, json!(0.5))).collect();
    answers.push(json!({"id": 7, "log_likelihood": "-inf", "sd": 0.5}));
    let told = tell(&place, &answers, 0);
    assert!(told.contains("8 answers recorded, 0 known already, 0 refused"), "{told}");
    // Again, another one, and one of which nobody says how good it is.
    let more = [value(1, -2.0, json!(0.5)), value(2, -3.5, json!(0.25)), json!({"id": 3, "log_likelihood": -9.0})];
    let told = tell(&place, &more, 0);
    assert!(told.contains("2 answers recorded, 1 known already"), "{told}");
    assert!(told.contains("line 2: evaluation 2 has another value already: both count"), "{told}");
    assert!(told.contains("line 3: evaluation 3 has another value already: this one is kept and flagged"), "{told}");
    let csv = place.run(&["export", "store"], 0).stdout;
    let of = |id: &str| csv.lines().filter(|line| line.starts_with(&format!("{id},"))).collect::<Vec<_>>();
    let both = of("2");
    assert!(both.len() == 2 && both[0].contains(",-3,0.5,value,") && both[1].contains(",-3.5,0.25,value,"), "{csv}");
    assert!(of("3").len() == 1 && of("7")[0].contains(",-inf,,value,"), "{csv}");
    let status = place.run(&["status", "store", "--json"], 0).json();
    assert_eq!(status["conflicts"], json!([3]));
    for (bad, shown) in [(json!(-1), "-1"), (json!("NaN"), "NaN"), (json!("wide"), "wide")] {
        let told = tell(&place, &[value(4, -1.0, bad)], 2);
        assert!(told.contains(shown) && told.contains("a finite number ≥ 0 under \"sd\""), "{told}");
    }
}

#[test]
fn a_value_with_an_sd_can_be_replaced() {
    let place = Place::bump("");
    place.run(&["new", "problem.toml", "--store", "store"], 0);
    place.run(&["ask", "store", "-n", "2"], 0);
    let value = |value: f64, sd: f64| json!({"id": 0, "log_likelihood": value, "sd": sd});
    tell(&place, &[value(-1.0, 0.5), value(-400.0, 0.25)], 0);
    let replace = |answer: Value, code: i32| {
        place.run_with_input(&["tell", "store", "--replace"], &format!("{answer}\n"), code).stderr
    };
    let told = replace(value(-1.5, 0.125), 0);
    assert!(told.contains("from now on -1.5 ± 0.125 counts for evaluation 0"), "{told}");
    let exported = || {
        let csv = place.run(&["export", "store"], 0).stdout;
        csv.lines().filter(|line| line.starts_with("0,")).map(str::to_owned).collect::<Vec<_>>()
    };
    let lines = exported();
    assert!(lines.len() == 1 && lines[0].contains(",-1.5,0.125,value,"), "{lines:?}");
    let journal = std::fs::read_to_string(place.path("store/journal.jsonl")).unwrap();
    assert!(journal.contains("-400"), "{journal}");
    assert!(tell(&place, &[value(-400.0, 0.25)], 0).contains("1 known already"));
    // A bad one changes nothing.
    let told = replace(value(-1.5, -1.0), 2);
    assert!(told.contains("a finite number ≥ 0 under \"sd\""), "{told}");
    assert_eq!(exported(), lines);
}

#[test]
fn tables_may_have_a_column_of_sds() {
    let place = Place::bump("");
    place.write("table.csv", "x,y,log_likelihood,sd\n0,0,-1,0.5\n0,0,-2,0.5\n1,0,-0.5,\n1,1,-inf,0.5\n");
    place.run(&["new", "problem.toml", "--store", "store"], 0);
    place.run(&["import", "store", "table.csv"], 0);
    let csv = place.run(&["export", "store"], 0).stdout;
    for row in [",0,0,-1,0.5,", ",0,0,-2,0.5,", ",1,0,-0.5,,", ",1,1,-inf,,"] {
        assert!(csv.contains(row), "{row} is not in {csv}");
    }
    let again = place.run(&["import", "store", "table.csv"], 0).stderr;
    assert!(again.contains("imported 0 evaluations, 4 were known already"), "{again}");
    for (cell, shown) in [("-0.5", "-0.5"), ("nan", "NaN"), ("inf", "inf"), ("wide", "wide")] {
        place.write("bad.csv", &format!("x,y,log_likelihood,sd\n0,1,-1,0.5\n0,0,-1,{cell}\n"));
        let refused = place.run(&["import", "store", "bad.csv"], 2).stderr;
        assert!(refused.contains("line 3") && refused.contains("sd is") && refused.contains(shown), "{refused}");
    }
    place.write("other.csv", "x,y,log_likelihood,sd\n0,0,-1,0.25\n");
    let refused = place.run(&["import", "store", "other.csv"], 2).stderr;
    assert!(refused.contains("sd of imported point 0 is 0.25") && refused.contains("0.5"), "{refused}");
}

#[test]
fn a_parameter_called_sd_keeps_its_column() {
    let place = Place::bump("");
    let text = std::fs::read_to_string(place.path("problem.toml")).unwrap();
    place.write("problem.toml", &text.replace("\"y\"", "\"sd\""));
    place.write("table.csv", "x,sd,log_likelihood,log_likelihood_sd\n0,0.25,-1,0.5\n");
    place.run(&["new", "problem.toml", "--store", "store", "--import", "table.csv"], 0);
    let csv = place.run(&["export", "store"], 0).stdout;
    assert!(csv.starts_with("id,batch,x,sd,log_likelihood,log_likelihood_sd,status,"), "{csv}");
    assert!(csv.contains(",0,0.25,-1,0.5,imported,"), "{csv}");
}
