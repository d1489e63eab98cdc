//! Ask and tell: somebody else evaluates.

use serde_json::{Value, json};

use crate::common::{Place, bump_log_z};

fn evaluate(question: &Value) -> Value {
    let of = |name: &str| question["parameters"][name].as_f64().unwrap();
    let square = (of("x") - 1.0).powi(2) + of("y").powi(2);
    json!({"id": question["id"], "log_likelihood": -2.0 * square - (std::f64::consts::TAU * 0.25).ln(), "seconds": 2.5})
}

fn lines(answers: &[Value]) -> String {
    answers.iter().map(|a| format!("{a}\n")).collect()
}

#[test]
fn from_an_empty_store_to_log_z() {
    let place = Place::bump("max_evaluations = 44\nbatch = 8");
    place.run(&["new", "problem.toml", "--store", "store"], 0);
    place.run(&["result", "store"], 1);
    let mut told = 0;
    loop {
        let questions = place.run(&["ask", "store", "-n", "16"], 0).json_lines();
        if questions.is_empty() {
            break;
        }
        assert!(questions.iter().all(|q| q["seed"].is_u64()));
        // Half of them twice: by a worker that was thought lost.
        let mut answers: Vec<Value> = questions.iter().map(evaluate).collect();
        answers.extend_from_within(..questions.len() / 2);
        told += questions.len();
        place.run_with_input(&["tell", "store"], &lines(&answers), 0);
    }
    assert_eq!(told, 44);
    let result = place.run(&["result", "store", "--json"], 0).json();
    assert_eq!((result["status"].as_str(), result["evaluations"].as_u64()), (Some("budget"), Some(44)));
    assert_eq!(result["seconds_evaluating"], 44.0 * 2.5);
    assert!((result["log_z"].as_f64().unwrap() - bump_log_z()).abs() < 0.02, "{result}");
    // The budget can be raised from here.
    assert_eq!(place.run(&["ask", "store", "-n", "3", "--max-evaluations", "50"], 0).json_lines().len(), 3);
}

#[test]
fn asking_gives_as_many_as_were_wanted_and_pending_ones_again() {
    let place = Place::bump("max_evaluations = 100");
    place.run(&["new", "problem.toml", "--store", "store"], 0);
    let first = place.run(&["ask", "store", "-n", "20"], 0);
    assert_eq!(first.json_lines().len(), 20);
    let second = place.run(&["ask", "store"], 0).json_lines();
    assert_eq!(second.len(), 8);
    assert_eq!(second[0]["id"], 20);
    let pending = place.run(&["ask", "store", "--pending"], 0);
    assert!(pending.stdout.starts_with(&first.stdout));
    assert_eq!(pending.json_lines().len(), 28);
}

#[test]
fn good_answers_are_kept_beside_bad_ones() {
    let place = Place::bump("");
    place.run(&["new", "problem.toml", "--store", "store"], 0);
    place.run(&["ask", "store", "-n", "12"], 0);
    let input = r#"{"id": 0, "log_likelihood": -1.5}
not json
{"id": 99, "log_likelihood": -1}

{"log_likelihood": -1}
{"id": 1, "log_likelihood": "-inf"}
{"id": 2, "log_likelihood": -Infinity}
{"id": 3, "log_likelihood": NaN}
{"id": 4, "failed": "out of memory"}
{"id": 5, "log_likelihood": -2}
"#;
    let told = place.run_with_input(&["tell", "store"], input, 2).stderr;
    for expected in
        ["line 2: ", "line 3: job 99 is unknown", "line 5: id is", "6 answers recorded, 0 known already, 3 refused"]
    {
        assert!(told.contains(expected), "{expected} is not in {told}");
    }
    assert!(told.contains("log-likelihood at ["), "NaN names its point: {told}");

    // Telling again changes nothing; another value is kept and flagged; a value after a failure counts.
    let again = "{\"id\": 0, \"log_likelihood\": -1.5}\n{\"id\": 5, \"log_likelihood\": -3}\n{\"id\": 4, \"log_likelihood\": -4}\n";
    place.write("answers.jsonl", again);
    let told = place.run(&["tell", "store", "answers.jsonl"], 0).stderr;
    assert!(told.contains("1 known already") && told.contains("evaluation 5 has another value"), "{told}");
    let csv = place.run(&["export", "store"], 0).stdout;
    let row = |id: usize| csv.lines().nth(id + 1).unwrap().to_owned();
    assert!(row(5).contains(",-2,value,") && row(4).contains(",-4,value,") && row(2).contains(",-inf,value,"), "{csv}");
    assert!(row(3).contains(",nan,") && row(6).contains(",pending,"), "{csv}");
    let status = place.run(&["status", "store", "--json"], 0).json();
    assert_eq!((status["conflicts"].clone(), status["pending"].as_u64()), (json!([5]), Some(6)));
    let told = place.run(&["tell", "store", "no-such-file"], 2).stderr;
    assert!(told.contains("no-such-file"), "{told}");
}

#[test]
fn answers_that_replace_others_are_seen_by_those_who_watch() {
    let place = Place::bump("max_evaluations = 100");
    place.run(&["new", "problem.toml", "--store", "store"], 0);
    place.run(&["ask", "store", "-n", "3"], 0);
    place.run_with_input(
        &["tell", "store"],
        "{\"id\": 0, \"log_likelihood\": 1}\n{\"id\": 1, \"log_likelihood\": 2}\n",
        0,
    );
    let replacement = "{\"id\": 1, \"failed\": \"it was the wrong model\"}\n";
    place.run_with_input(&["tell", "store", "--replace"], replacement, 0);
    let seen = place.run(&["watch", "store", "--once"], 0).stdout;
    assert!(seen.contains("evaluation 1 failed") && seen.contains("it was the wrong model"), "{seen}");
    assert!(seen.contains("3 done, 1 failed"), "{seen}");
}
