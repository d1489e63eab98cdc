//! What a new user does in the first hour.

use crate::common::{PARAMETERS, Place, bump_log_z};

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
