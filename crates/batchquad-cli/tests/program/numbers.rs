//! Numbers that break things: NaN, odd units, repeated points, no shape at all, many dimensions; and hostile text.

use crate::common::{BUMP, PARAMETERS, Place, bump_log_z};

const RUN: [&str; 4] = ["run", "problem.toml", "--json", "-q"];

#[test]
fn nan_on_thirty_percent_of_the_prior() {
    // |y| > 1.0364 has probability 0.3 under N(0, 1).
    let script = BUMP.replace("awk '{", "awk '$2 * $2 > 1.0742 { print \"nan\"; next } {");
    // The square root's belief looks everywhere, so that many evaluations fail.
    let place = Place::new(&script, "", "max_evaluations = 64\nsurrogate = \"wsabi-l\"");
    let result = place.run(&RUN, 0).json();
    assert!(result["failures"].as_u64().unwrap() >= 4, "{result}");
    let mass = result["prior_mass_near_failures"].as_f64().unwrap();
    assert!((0.1..0.5).contains(&mass), "{result}");
    // Two percent of the evidence lie there; the belief carries the smooth bump on into it.
    assert!((result["log_z"].as_f64().unwrap() - bump_log_z()).abs() < 0.1, "{result}");
}

#[test]
fn the_unit_of_a_parameter_does_not_matter() {
    let reference = Place::bump("max_evaluations = 32").run(&RUN, 0).json();
    let script =
        BUMP.replace("awk '{", "awk '{ $1 = $1 / 1e12; $2 = $2 * 1e12;").replace("awk", "awk -v CONVFMT=%.17g");
    let place = Place::new(&script, "", "max_evaluations = 32");
    let text = std::fs::read_to_string(place.path("problem.toml")).unwrap();
    let text = text.replacen("sd = 1 ", "sd = 1e12 ", 1).replacen("sd = 1 ", "sd = 1e-12 ", 1);
    assert!(text.contains("1e12") && text.contains("1e-12"));
    place.write("problem.toml", &text);
    let result = place.run(&RUN, 0).json();
    let of = |result: &serde_json::Value, key: &str| result[key].as_f64().unwrap();
    // The points are the same up to the rounding of the conversion, which the search for the next ones may amplify.
    assert!((of(&result, "log_z") - of(&reference, "log_z")).abs() < 1e-3, "{result} {reference}");
    for (name, unit) in [("x", 1e12), ("y", 1e-12)] {
        for key in ["mean", "sd"] {
            let (a, b) = (of(&result["posterior"][name], key) / unit, of(&reference["posterior"][name], key));
            assert!((a - b).abs() < 0.02, "{name} {key}: {a} {b}");
        }
    }
}

fn log_bump(x: f64, y: f64) -> f64 {
    -2.0 * ((x - 1.0).powi(2) + y * y) - (std::f64::consts::TAU * 0.25).ln()
}

#[test]
fn points_given_twice_or_next_to_each_other() {
    let mut table = String::from("x,y,log_likelihood\n");
    for i in 0..6 {
        for j in 0..6 {
            let (x, y) = (-1.0 + 0.7 * f64::from(i), -1.6 + 0.64 * f64::from(j));
            for (x, y) in [(x, y), (x, y), (x + 1e-14, y), (x, y - 1e-14)] {
                table.push_str(&format!("{x:?},{y:?},{:?}\n", log_bump(x, y)));
            }
        }
    }
    let place = Place::bump("max_evaluations = 160\nworkers = 2");
    place.write("table.csv", &table);
    let made = place.run(&["new", "problem.toml", "--import", "table.csv"], 0);
    assert!(made.stderr.contains("known already"), "{}", made.stderr);
    let before = place.run(&["result", "problem.batchquad", "--json"], 0).json();
    // The grid is coarse against the bump (σ = ½): two digits.
    assert!((before["log_z"].as_f64().unwrap() - bump_log_z()).abs() < 0.05, "{before}");
    let after = place.run(&RUN, 0).json();
    assert!(after["evaluations"].as_u64().unwrap() > 0);
    assert!((after["log_z"].as_f64().unwrap() - bump_log_z()).abs() < 0.02, "{after}");
}

#[test]
fn neighbours_that_contradict_each_other() {
    // As from a simulator with noise: what coincides is averaged, and the user is told that it does not agree.
    let mut table = String::from("x,y,log_likelihood\n");
    for i in 0..40_i32 {
        let (x, y) = (0.05 * f64::from(i) - 1.0, 0.03 * f64::from(i % 7) - 0.1);
        table.push_str(&format!("{x:?},{y:?},{:?}\n", log_bump(x, y)));
        table.push_str(&format!("{:?},{y:?},{:?}\n", x + 1e-14, log_bump(x, y) + 0.3));
    }
    let place = Place::bump("max_evaluations = 100\nworkers = 2");
    place.write("table.csv", &table);
    place.run(&["new", "problem.toml", "--import", "table.csv"], 0);
    let result = place.run(&RUN, 0).json();
    let (log_z, sd) = (result["log_z"].as_f64().unwrap(), result["log_z_sd"].as_f64().unwrap());
    // The truth is between the two likelihoods told at every node: with the mean of them, log((1 + e^0.3)/2) above the first.
    let truth = bump_log_z() + (0.5 * (1.0 + 0.3_f64.exp())).ln();
    assert!((log_z - truth).abs() < 0.2 && sd < 0.2, "{result}");
    assert_eq!(result["repairs"]["contradictory_nodes"], 40, "{result}");
}

#[test]
fn a_constant_in_one_and_in_twenty_dimensions() {
    for (dim, budget) in [(1, 24), (20, 100)] {
        let place = Place::new("#!/bin/sh\necho -1.5\n", "", "");
        let mut text = String::new();
        for i in 0..dim {
            text.push_str(&format!(
                "[[parameter]]\nname = \"p{i}\"\nprior = {{ uniform = {{ low = 0, high = 1 }} }}\n"
            ));
        }
        text.push_str(&format!("[likelihood]\ncommand = [\"./likelihood\"]\n[run]\nmax_evaluations = {budget}\n"));
        place.write("problem.toml", &text);
        let result = place.run(&RUN, 0).json();
        // Nothing varies, so nothing is left to learn but that it might somewhere.
        assert!((result["log_z"].as_f64().unwrap() + 1.5).abs() < 1e-2, "{dim}: {result}");
        assert_eq!(result["evaluations"], budget);
    }
}

#[test]
fn parameters_in_another_order_do_not_resume_a_store() {
    let place = Place::bump("max_evaluations = 12");
    place.run(&RUN, 0);
    let text = std::fs::read_to_string(place.path("problem.toml")).unwrap();
    let swapped = PARAMETERS.replace("\"x\"", "\"_\"").replace("\"y\"", "\"x\"").replace("\"_\"", "\"y\"");
    place.write("problem.toml", &text.replace(PARAMETERS, &swapped));
    let refused = place.run(&RUN, 2).stderr;
    assert!(refused.contains("names[0] is \"y\", the store has \"x\""), "{refused}");
}

#[test]
fn hostile_text_is_shown_harmless() {
    let script = "#!/bin/sh\nprintf '\\033[2J\\033]0;owned\\007</script>\\r' >&2\nexit 3\n";
    let place = Place::new(script, "", "max_evaluations = 12");
    let store = "a'b; touch pwned \u{1b}[31m";
    let failed = place.run(&["run", "problem.toml", "--store", store], 1);
    let commands: [&[&str]; 3] = [&["status", store], &["result", store], &["doctor", store]];
    let mut shown = vec![failed.stdout, failed.stderr];
    for args in commands {
        let output = place.command(args).output().unwrap();
        shown.push(String::from_utf8(output.stdout).unwrap());
        shown.push(String::from_utf8(output.stderr).unwrap());
    }
    for text in shown {
        assert!(!text.contains(['\u{1b}', '\u{7}', '\r']), "{text:?}");
    }
    assert!(!place.path("pwned").exists());
    // A table is data for other programs: quoted where CSV asks for it, control characters gone from messages.
    let csv = place.run(&["export", store], 0).stdout;
    assert!(csv.contains("</script>") && !csv.contains('\u{1b}'), "{csv:?}");
}
