//! Parsers given what nobody would write: no panic, no hang, nothing accepted that was not said.
//!
//! `BATCHQUAD_FUZZ` is how many inputs each test makes (a few thousand by default; `scripts/attack` asks for millions),
//! `BATCHQUAD_FUZZ_SEED` where they begin. Inputs are mutations of those in `tests/corpus`, which are all tried as they are
//! first: what once did harm is kept there.
#![cfg(feature = "run")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod corpus;

use batchquad::{
    evaluate::{Reply, answer, number},
    journal::{Store, inspect},
    run::peek_before_damage,
};
use corpus::{Mutator, seeds};

#[test]
fn fuzzed_answers() {
    let seeds = seeds("answers");
    let mut mutator = Mutator::new(1);
    let count = mutator.run(&seeds, |input| {
        let Ok(said) = answer(input) else { return };
        // What is taken for a finite value is one that stands there: no overflow, no guess.
        if let Reply::LogLikelihood(value) = said.reply
            && value.is_infinite()
        {
            let text = String::from_utf8_lossy(input).to_lowercase();
            assert!(text.contains("inf"), "{text:?} was read as {value}");
        }
    });
    println!("fuzzed {count} answers");
}

#[test]
fn fuzzed_numbers() {
    let seeds = seeds("numbers");
    let mut mutator = Mutator::new(2);
    let count = mutator.run(&seeds, |input| {
        let text = String::from_utf8_lossy(input);
        if let Some(value) = number(&text)
            && value.is_finite()
        {
            assert_eq!(text.parse::<f64>().ok(), Some(value));
        }
    });
    println!("fuzzed {count} numbers");
}

#[test]
fn fuzzed_journals() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    let good = std::fs::read("tests/data/store-v1/journal.jsonl").unwrap();
    let mut mutator = Mutator::new(3);
    let mut seeds = seeds("journals");
    seeds.push(good.clone());
    std::fs::write(dir.join("journal.jsonl"), &good).unwrap();
    let known = Store::read(dir).unwrap().records;
    let count = mutator.fewer(10).run(&seeds, |input| {
        std::fs::write(dir.join("journal.jsonl"), input).unwrap();
        if let Ok(replay) = Store::read(dir)
            && replay.header == Store::read("tests/data/store-v1").unwrap().header
        {
            assert!(known.starts_with(&replay.records), "an altered record was accepted");
        }
        let _ = inspect(dir);
        let _ = peek_before_damage(dir).map(|(engine, _)| engine.excluded_mass());
    });
    println!("fuzzed {count} journals");
}
