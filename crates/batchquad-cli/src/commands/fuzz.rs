//! Files and lines that nobody would write, as in the library's `tests/fuzz.rs`.

use std::path::Path;

use batchquad::{
    prior::{Distribution, Prior},
    run::Session,
};

#[path = "../../../batchquad/tests/corpus/mod.rs"]
mod corpus;

use self::corpus::{Mutator, seeds};
use super::{import, tell};
use crate::problem::Problem;

fn bump() -> Problem {
    let parameter =
        |name: &str| format!("[[parameter]]\nname = \"{name}\"\nprior = {{ normal = {{ mean = 0, sd = 1 }} }}\n");
    let text = format!("{}{}[likelihood]\ncommand = [\"true\"]\n", parameter("x"), parameter("y"));
    Problem::parse(&text, Path::new(".")).unwrap()
}

#[test]
fn fuzzed_problem_files() {
    let count = Mutator::new(11).run(&seeds("problems"), |input| {
        let Ok(problem) = Problem::parse(&String::from_utf8_lossy(input), Path::new(".")) else { return };
        // What is accepted can be begun: a session, and the points that it asks for first.
        let Ok(mut session) = Session::in_memory(&problem.plan().unwrap()) else { return };
        let _ = session.ask(1, || false);
    });
    println!("fuzzed {count} problem files");
}

#[test]
fn fuzzed_tables() {
    let normal = || Distribution::normal(0.0, 1.0).unwrap();
    let prior = Prior::independent([("x", normal()), ("y", normal())]).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("table.csv");
    let count = Mutator::new(12).run(&seeds("tables"), |input| {
        std::fs::write(&file, input).unwrap();
        let Ok(rows) = import::read(&file, &prior) else { return };
        let text = String::from_utf8_lossy(input).to_lowercase();
        for row in rows {
            let value = row.log_likelihood.get();
            assert!(!value.is_nan() && row.theta.iter().all(|t| t.is_finite()));
            assert!(value.is_finite() || text.contains("inf"), "{text:?} was read as {value}");
        }
    });
    println!("fuzzed {count} tables");
}

#[test]
fn fuzzed_told_lines() {
    let mut session = Session::in_memory(&bump().plan().unwrap()).unwrap();
    session.ask(8, || false).unwrap();
    let count = Mutator::new(13).run(&seeds("answers"), |input| {
        if let Ok((told, _)) = tell::take(&mut session, input, false) {
            assert!(told.seconds.is_finite() && told.seconds >= 0.0);
        }
    });
    println!("fuzzed {count} told lines");
}
