//! What a new user does in the first hour.

use serde_json::{Value, json};

use crate::common::{BUMP, PARAMETERS, Place, bump_log_z};

/// [`crate::common::BUMP`] for a program that takes its parameters as arguments.
const WITH_ARGUMENTS: &str = r#"#!/bin/sh
awk -v x="$1" -v y="${2#--y=}" 'BEGIN { printf "%.17g\n", -0.5 * ((x - 1)^2 + y^2) / 0.25 - log(2 * 3.14159265358979 * 0.25) }'
"#;

#[test]
fn parameters_are_arguments_where_their_names_are_in_braces() {
    let place = Place::new(WITH_ARGUMENTS, "", "max_evaluations = 40\nseed = 3");
    let problem = |arguments: &str| {
        format!(
            "{PARAMETERS}\n[likelihood]\ncommand = [\"./likelihood\", {arguments}]\n[run]\nmax_evaluations = 40\nseed = 3\n"
        )
    };
    place.write("problem.toml", &problem(r#""{x}", "--y={y}""#));
    let check = place.run(&["check", "problem.toml"], 0);
    assert!(check.stdout.contains("log-likelihood -2.45158"), "{}", check.stdout);
    let result = place.run(&["run", "problem.toml", "--json"], 0).json();
    // Smooth and two-dimensional: forty values know it to two digits.
    assert!((result["log_z"].as_f64().unwrap() - bump_log_z()).abs() < 0.02, "{result}");
    // A misspelt name is refused by whatever reads the file.
    place.write("wrong.toml", &problem(r#""{x}", "{Y}""#));
    for command in [["check", "wrong.toml"], ["run", "wrong.toml"], ["new", "wrong.toml"]] {
        let refused = place.run(&command, 2).stderr;
        assert!(
            refused.contains("one of {x}, {y}, {in}, {out}, {id}, {seed}") && refused.contains("not {Y}"),
            "{refused}"
        );
    }
    // In full precision, and in a script for a shell beside the shell's own variables.
    place.write(
        "shell.toml",
        &format!(
            "{PARAMETERS}\n[likelihood]\nshell = true\ncommand = [\"echo {{x}} ${{HOME}} {{{{x}}}} > said; echo -1\"]\n"
        ),
    );
    place.run(&["check", "shell.toml"], 0);
    let said = std::fs::read_to_string(place.path("said")).unwrap();
    assert_eq!(said, format!("0.0 {} {{x}}\n", std::env::var("HOME").unwrap()));
}

#[test]
fn what_was_told_by_mistake_can_be_replaced() {
    let place = Place::bump("max_evaluations = 16\nbatch = 4");
    place.run(&["new", "problem.toml", "--store", "store"], 0);
    let asked = place.run(&["ask", "store", "-n", "8"], 0).json_lines();
    let right = |q: &Value| {
        let of = |name: &str| q["parameters"][name].as_f64().unwrap();
        -2.0 * ((of("x") - 1.0).powi(2) + of("y").powi(2))
    };
    let answers: String =
        asked.iter().map(|q| format!("{}\n", json!({"id": q["id"], "log_likelihood": right(q)}))).collect();
    place.run_with_input(&["tell", "store"], &answers, 0);
    let good = place.outcome("store");
    // One told wrongly, in another store; the right value afterwards is a conflict, and the wrong one goes on counting.
    place.run(&["new", "problem.toml", "--store", "wrong"], 0);
    place.run(&["ask", "wrong", "-n", "8"], 0);
    let correction = format!("{}\n", json!({"id": 3, "log_likelihood": right(&asked[3])}));
    place.run_with_input(&["tell", "wrong"], "{\"id\": 3, \"log_likelihood\": 400.5}\n", 0);
    place.run_with_input(&["tell", "wrong"], &answers, 0);
    assert!(place.run_with_input(&["tell", "wrong"], &correction, 0).stderr.contains("1 known already"));
    assert_eq!(place.run(&["result", "wrong", "--json"], 0).json()["conflicts"], json!([3]));
    let told = place.run_with_input(&["tell", "wrong", "--replace"], &correction, 0).stderr;
    assert!(told.contains("counts for evaluation 3") && told.contains("is kept"), "{told}");
    // From now on everything is as if it had been right, but for the remark that it was not; so it is for whoever resumes.
    let mut mended = place.outcome("wrong");
    assert_eq!(mended["replaced"], json!([3]));
    mended["replaced"] = json!([]);
    assert_eq!(mended, good);
    let journal = std::fs::read_to_string(place.path("wrong/journal.jsonl")).unwrap();
    assert!(journal.contains("\"replaced\"") && journal.contains("400.5"));
    let text = place.run(&["result", "wrong"], 0).stdout;
    assert!(text.contains("the answers to evaluation 3 took the place of others, which are kept"), "{text}");
    // An answer can be taken back altogether, and given again.
    place.run_with_input(&["tell", "wrong", "--replace"], "{\"id\": 3, \"failed\": \"the wrong file\"}\n", 0);
    assert_eq!(place.run(&["result", "wrong", "--json"], 0).json()["failures"], 1);
    place.run_with_input(&["tell", "wrong", "--replace"], &correction, 0);
    assert_eq!(place.run(&["result", "wrong", "--json"], 0).json()["log_z"], good["log_z"]);
    // Another one for a job that nobody asked is refused.
    place.run_with_input(&["tell", "wrong", "--replace"], "{\"id\": 99, \"log_likelihood\": 1}\n", 2);
}

/// A likelihood of which a short run sees one flank alone.
const NEEDLE: &str = r#"#!/bin/sh
read line
echo "$line" | sed 's/.*"x":\([^,}]*\),"y":\([^,}]*\)}.*/\1 \2/' | awk '{ printf "%.17g\n", -0.5 * (($1 - 2.5)^2 + ($2 - 2.5)^2) / 1e-6 }'
"#;

#[test]
fn a_script_can_know_that_log_z_is_not_to_be_trusted() {
    let place = Place::new(NEEDLE, "", "max_evaluations = 12");
    let result = place.run(&["run", "problem.toml", "-q", "--json"], 0).json();
    assert_eq!(result["verdict"], "do-not-trust", "{result}");
    place.run(&["run", "problem.toml", "-q", "--strict"], 6);
    place.run(&["result", "problem.batchquad"], 0);
    place.run(&["result", "problem.batchquad", "--strict"], 6);
    let good = Place::bump("max_evaluations = 40");
    good.run(&["run", "problem.toml", "-q", "--strict"], 0);
    let (bad, good) = (place.path("problem.batchquad"), good.path("problem.batchquad"));
    let models = [format!("needle={}", bad.display()), format!("bump={}", good.display())];
    let compared = place.run(&["compare", &models[0], &models[1], "--strict"], 6).stdout;
    // Names of the user's choice, a verdict for each, and no winner while one is not to be trusted.
    assert!(
        compared.lines().any(|line| line.starts_with("needle ") && line.ends_with("unknown  do not trust")),
        "{compared}"
    );
    assert!(compared.contains("No conclusion: the log Z of needle is not to be trusted."), "{compared}");
    assert!(!compared.contains("0.0000 ± 0.0000"), "{compared}");
    let json = place.run(&["compare", &models[0], &models[1], "--json"], 0).json();
    assert_eq!(
        (json["models"][1]["name"].as_str(), json["models"][1]["verdict"].as_str()),
        (Some("bump"), Some("fine"))
    );
    let page = place.run(&["compare", &models[0], &models[1], "--html", "-"], 0).stdout;
    assert!(page.contains("<h1>No conclusion: the log Z of needle is not to be trusted</h1>"));
    place.run(&["compare", &models[0], &models[0]], 2);
}

#[test]
fn no_log_z_has_a_reason() {
    let place = Place::new("#!/bin/sh\necho -inf\n", "", "max_evaluations = 12");
    let failed = place.run(&["run", "problem.toml", "-q"], 1).stderr;
    assert!(failed.contains("no evaluation has a finite log-likelihood: 12 are -inf (likelihood zero)"), "{failed}");
    let place = Place::new("#!/bin/sh\necho it broke >&2\nexit 3\n", "", "max_evaluations = 6");
    let failed = place.run(&["run", "problem.toml", "-q"], 1).stderr;
    assert!(failed.contains("it broke"), "{failed}");
}

#[test]
fn mistakes_on_the_command_line_name_what_was_typed() {
    let place = Place::bump("max_evaluations = 8");
    let refused = place.run(&["run", "problem.toml", "--workers", "0"], 2).stderr;
    assert!(refused.contains("--workers is 0, expected 1 to 4096"), "{refused}");
    let refused = place.run(&["ask", "problem.toml"], 2).stderr;
    let stores = "the store of that problem is problem.batchquad";
    assert!(refused.contains(&format!("{stores}, once `batchquad new`")), "{refused}");
    place.run(&["run", "problem.toml", "-q"], 0);
    let refused = place.run(&["status", "problem.toml"], 2).stderr;
    assert!(refused.ends_with(&format!("{stores}\n")), "{refused}");
    let refused = place.run(&["draws", "problem.batchquad", "-n", "2", "--weighted"], 2).stderr;
    assert!(refused.contains("-n is 2, expected a number from 64") && refused.contains("--weighted"), "{refused}");
    let noisy =
        std::fs::read_to_string(place.path("problem.toml")).unwrap() + "noise_sd = 0.1\nsurrogate = \"wsabi-l\"\n";
    place.write("noisy.toml", &noisy);
    let refused = place.run(&["run", "noisy.toml"], 2).stderr;
    assert!(refused.contains("run.noise_sd is 0.1") && refused.contains("surrogate = \"wsabi-l\""), "{refused}");
    place.write(
        "uniform.toml",
        &noisy
            .replacen("normal = { mean = 0, sd = 1 }", "uniform = { low = 1, high = 20 }", 1)
            .replace("noise_sd = 0.1", ""),
    );
    let check = place.run(&["check", "uniform.toml"], 0).stdout;
    assert!(check.contains("x ~ uniform(low 1.0, high 20.0)"), "{check}");
}

/// The problem file that a report shows.
fn problem_of(page: &str) -> String {
    let text = page.split("<pre tabindex=\"0\"><code>").nth(1).unwrap().split("</code>").next().unwrap();
    text.replace("&quot;", "\"").replace("&#x2f;", "/").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[test]
fn a_report_has_all_that_is_needed_to_repeat_the_run() {
    let place = Place::new(
        BUMP,
        "timeout = 20\nretries = 1\nenv = { SECRET = \"hunter2\" }\nmax_output = 65536",
        "max_evaluations = 16\nworkers = 2\nstart = { x = 0.75, y = 0.25 }",
    );
    place.run(&["run", "problem.toml", "-q"], 0);
    let page = place.run(&["report", "problem.batchquad", "-o", "-"], 0).stdout;
    let text = problem_of(&page);
    for line in ["timeout = 20", "retries = 1", "workers = 2", "max_output = 65536", "env = { SECRET = \"…\" }"] {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
    assert!(!page.contains("hunter2"));
    // It is a problem file that makes the same run.
    place.write("again.toml", &text);
    place.run(&["run", "again.toml", "-q"], 0);
    assert_eq!(place.outcome("again.batchquad"), place.outcome("problem.batchquad"));
}

#[test]
fn a_report_has_the_servers_that_evaluated() {
    let place = Place::bump("");
    let servers = r#"umbridge = { url = ["http://localhost:4242", "http://localhost:4243"], model = "posterior" }"#;
    let likelihood = format!("[likelihood]\n{servers}\ntimeout = 5\non_failure = \"as-zero\"\n");
    place.write("served.toml", &format!("{PARAMETERS}\n{likelihood}[run]\nworkers = 2\n"));
    place.run(&["new", "served.toml", "--store", "served"], 0);
    let asked = place.run(&["ask", "served", "-n", "8"], 0).json_lines();
    let answers: String =
        asked.iter().map(|q| format!("{}\n", json!({"id": q["id"], "log_likelihood": -1.5, "sd": 0.5}))).collect();
    place.run_with_input(&["tell", "served"], &answers, 0);
    let page = place.run(&["report", "served", "-o", "-"], 0).stdout;
    let text = problem_of(&page);
    let read: toml::Table = text.parse().unwrap();
    let written: toml::Table = likelihood.parse().unwrap();
    // The keys that were written, with a whole number for seconds or not.
    assert_eq!(read["likelihood"]["umbridge"], written["likelihood"]["umbridge"], "{text}");
    assert_eq!(read["likelihood"].as_table().unwrap().len(), 3, "{text}");
    assert!(text.contains("timeout = 5") && text.contains("on_failure = \"as-zero\""), "{text}");
    assert_eq!(read["run"]["workers"].as_integer(), Some(2), "{text}");
    // It is a problem file for the same store.
    place.write("again.toml", &text);
    place.run(&["new", "again.toml", "--store", "again"], 0);
}

#[test]
fn a_verdict_of_before_says_so() {
    let place = Place::bump("max_evaluations = 16");
    place.run(&["run", "problem.toml", "-q"], 0);
    let seen = place.run(&["watch", "problem.batchquad", "--once"], 0).stdout;
    assert!(!seen.contains("values ago"), "{seen}");
    place.run(&["ask", "problem.batchquad", "-n", "2", "--max-evaluations", "20"], 0);
    let answers = "{\"id\": 16, \"log_likelihood\": -3}\n{\"id\": 17, \"log_likelihood\": -4}\n";
    place.run_with_input(&["tell", "problem.batchquad"], answers, 0);
    for command in [vec!["watch", "problem.batchquad", "--once"], vec!["status", "problem.batchquad"]] {
        let seen = place.run(&command, 0).stdout;
        assert!(seen.contains("2 values ago: "), "{seen}");
    }
}

#[test]
fn a_demo_needs_nothing() {
    let place = Place { dir: tempfile::tempdir().unwrap() };
    let shown = place.run(&["demo"], 0);
    assert!(shown.stdout.contains("Did the cold matter?") && shown.stdout.contains("known"), "{}", shown.stdout);
    let log_z: f64 = shown.stdout.split("log Z").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    // 64 evaluations know it to better than a part in fifty; the truth is from a grid.
    assert!((log_z + 14.019_41).abs() < 0.02, "{log_z}");
    assert!(shown.stderr.contains("batchquad-demo.html"), "{}", shown.stderr);
    let page = std::fs::read_to_string(place.path("batchquad-demo.html")).unwrap();
    assert!(page.contains("known answer") && page.contains("Evidence of the model <strong>demo</strong>"));
    // Its own page is written again; somebody else's file of that name is not.
    place.run(&["demo"], 0);
    place.write("batchquad-demo.html", "my notes");
    place.run(&["demo"], 2);
}

#[test]
fn a_problem_is_begun_in_any_language() {
    for (language, program) in [("python", "python3"), ("c", "cc"), ("r", "Rscript"), ("julia", "julia")] {
        let place = Place { dir: tempfile::tempdir().unwrap() };
        let parameters =
            ["-p", "k=log-uniform(0.1, 10)", "-p", "x[0]=normal(0, 2)", "-p", "c ~ uniform(0, 360, periodic)"];
        let written = place.run(&[&["init", "model", "--language", language], &parameters[..]].concat(), 0);
        assert!(written.stdout.contains("batchquad check model/problem.toml"), "{}", written.stdout);
        let there = std::process::Command::new(program).arg("--version").output().is_ok();
        if !there {
            // The file is as it should be all the same: the program is what is missing.
            assert!(place.run(&["check", "model/problem.toml"], 2).stderr.contains(program));
            continue;
        }
        let check = place.run(&["check", "model/problem.toml"], 0).stdout;
        assert!(check.contains("periodic"), "{check}");
        // The example is highest at the medians of the priors, where `check` looks, but for their third digit.
        let value: f64 = check.split("log-likelihood ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!((-0.01..=0.0).contains(&value), "{check}");
        let result = place.run(&["run", "model/problem.toml", "-q", "--json"], 0).json();
        assert_ne!(result["verdict"], "do-not-trust", "{result}");
        // Nothing is written over.
        let refused = place.run(&["init", "model", "--language", language], 2).stderr;
        assert!(refused.contains("problem.toml exists already"), "{refused}");
    }
    let place = Place::new(WITH_ARGUMENTS, "", "");
    place.run(
        &["init", "own", "-p", "x=normal(0,1)", "-p", "y=normal(0,1)", "--", "../likelihood", "{x}", "--y={y}"],
        0,
    );
    let check = place.run(&["check", "own/problem.toml"], 0).stdout;
    assert!(check.contains("log-likelihood -2.45158"), "{check}");
    // Without a terminal nobody is asked; there is an example.
    place.run(&["init", "plain"], 0);
    place.run(&["check", "plain/problem.toml"], 0);
    assert!(place.run(&["init", "bad", "-p", "k=uniform(3, 1)"], 2).stderr.contains("high"));
    assert!(!place.path("bad").exists());
}

#[test]
fn labels_are_in_the_report_and_no_part_of_the_problem() {
    let place = Place::bump("max_evaluations = 16");
    place.run(&["run", "problem.toml", "-q"], 0);
    let text = std::fs::read_to_string(place.path("problem.toml")).unwrap();
    place.write("problem.toml", &text.replacen("name = \"x\"", "name = \"x\"\nlabel = \"$\\\\alpha$ [km/s]\"", 1));
    place.run(&["run", "problem.toml", "-q"], 0);
    let page = place.run(&["report", "problem.batchquad", "-o", "-"], 0).stdout;
    assert!(page.contains("α [km&#x2f;s]") || page.contains("α [km/s]"), "no label");
    assert!(page.contains("label = "));
    place.write("wrong.toml", &text.replacen("name = \"x\"", "name = \"x\"\nlabels = [\"a\"]", 1));
    assert!(place.run(&["check", "wrong.toml"], 2).stderr.contains("parameter[0].labels"));
}

#[test]
fn failures_are_listed_briefly_and_shown_in_the_prior() {
    let script =
        BUMP.replace("read line\n", "read line\ncase \"$line\" in *'\"y\":-'*) echo no minus >&2; exit 3;; esac\n");
    let place = Place::new(&script, "", "max_evaluations = 60");
    place.run(&["run", "problem.toml", "-q"], 0);
    let page = place.run(&["report", "problem.batchquad", "-o", "-"], 0).stdout;
    let failures = page.split("id=\"failures\"").nth(1).unwrap().split("id=\"evaluations-section\"").next().unwrap();
    assert!(failures.matches("<tr>").count() <= 13 && failures.contains("more, in the table of evaluations"));
    assert!(failures.contains("Where in the prior evaluations have failed") && failures.contains("<svg"));
    // Four digits of a coordinate are enough.
    assert!(!failures.contains("00000"), "{failures}");
    assert!(page.contains("evaluations with a value"));
}
