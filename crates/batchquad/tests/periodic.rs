//! Parameters whose two ends are one place: angles and phases.
#![cfg(feature = "run")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::f64::consts::{PI, TAU};

use batchquad::{
    Engine, Prior, Settings,
    journal::{Event, LogValue, Row, Told},
    prior::{Distribution, Family, Parameters},
    types::Outcome,
};
use proptest::prelude::*;

/// `log I₀(8)`, from the series `Σ (x/2)²ᵏ/k!²`.
fn log_i0(x: f64) -> f64 {
    let mut term = 1.0;
    let mut sum = 1.0;
    for k in 1..200 {
        term *= (x / 2.0).powi(2) / f64::from(k * k);
        sum += term;
    }
    f64::ln(sum)
}

fn angle(low: f64) -> Distribution {
    Distribution::uniform(low, low + TAU).unwrap().periodic().unwrap()
}

fn go_on(engine: &mut Engine, f: &impl Fn(&[f64]) -> f64, n: usize) -> Vec<Event> {
    let mut events = Vec::new();
    while engine.ledger().entries().len() < n {
        let wanted = engine.next_batch().min(n - engine.ledger().entries().len());
        let asked = engine.ask(wanted).unwrap();
        events.push(Event::Asked(asked.clone()));
        events.extend(asked.jobs.iter().map(|job| Event::Told(Told::new(job.id, Outcome::Value(f(&job.theta))))));
        for event in &events[events.len() - asked.jobs.len() - 1..] {
            engine.apply(event).unwrap();
        }
    }
    events
}

/// A direction, and a parameter that is tied to it: `∫ exp(8 cos(a − m) − ½(x − sin a)²/0.3²)` over both priors.
fn tied(middle: f64) -> impl Fn(&[f64]) -> f64 {
    move |t: &[f64]| 8.0 * (t[0] - middle).cos() - 0.5 * ((t[1] - (t[0] - middle).sin()) / 0.3).powi(2)
}

/// The same integral by the midpoint rule over the angle, the other parameter in closed form.
fn tied_truth() -> f64 {
    let n = 4096;
    let at = |a: f64| {
        let variance = 1.0 + 0.09;
        let other = -0.5 * a.sin().powi(2) / variance + 0.5 * (0.09_f64 / variance).ln();
        (8.0 * a.cos() + other).exp()
    };
    ((0..n).map(|i| at(TAU * (f64::from(i) + 0.5) / f64::from(n))).sum::<f64>() / f64::from(n)).ln()
}

fn tied_prior(low: f64) -> Prior {
    Prior::independent([("direction", angle(low)), ("x", Distribution::normal(0.0, 1.0).unwrap())]).unwrap()
}

#[test]
fn a_peak_across_the_ends_is_one_peak() {
    let f = |t: &[f64]| 8.0 * (t[0] - 3.1).cos();
    for low in [-PI, 0.0, 3.1] {
        let prior = Prior::independent([("direction", angle(low))]).unwrap();
        let mut engine = Engine::new(prior.clone(), Settings::default(), 1).unwrap();
        go_on(&mut engine, &f, 32);
        for entry in engine.ledger().entries() {
            assert!((low..=low + TAU).contains(&entry.job.theta[0]), "asked at {}", entry.job.theta[0]);
        }
        let estimate = engine.current().unwrap().estimate;
        let error = (estimate.log_z - log_i0(8.0)).abs();
        // As a peak in the middle of its range is known after as many evaluations.
        assert!(error < 0.01 && error < 4.0 * estimate.log_z_sd + 1e-6, "{low}: {estimate:?}");
        let direction = engine.posterior().unwrap().marginal(0).unwrap();
        let (from, to) = direction.interval(0.95).unwrap();
        // The sd of a von Mises distribution with κ = 8 is about 0.36.
        assert!((to - from - 4.0 * 0.36).abs() < 0.15, "{low}: {from} to {to}");
        let off = (direction.mean() - 3.1) / TAU;
        assert!((off - off.round()).abs() < 0.003, "{low}: mean {}", direction.mean());
    }
}

#[test]
fn where_the_range_begins_makes_no_difference_to_what_is_known() {
    for low in [-PI, 0.0] {
        let mut engine = Engine::new(tied_prior(low), Settings::default(), 2).unwrap();
        go_on(&mut engine, &tied(3.0), 64);
        let estimate = engine.current().unwrap().estimate;
        let error = (estimate.log_z - tied_truth()).abs();
        assert!(error < 0.02 && error < 4.0 * estimate.log_z_sd + 1e-4, "{low}: {estimate:?} against {}", tied_truth());
    }
}

#[test]
fn a_run_that_is_read_back_after_any_batch_has_the_same_bits() {
    let f = tied(3.0);
    let new = || Engine::new(tied_prior(-PI), Settings::default(), 3).unwrap();
    let mut whole = new();
    let events = go_on(&mut whole, &f, 48);
    let bits = |engine: &Engine| {
        let estimate = engine.current().unwrap().estimate;
        (estimate.log_z.to_bits(), estimate.log_z_sd.to_bits())
    };
    let asked: Vec<usize> = (0..events.len()).filter(|&i| matches!(events[i], Event::Asked(_))).collect();
    for kept in [asked[asked.len() / 2], asked[asked.len() - 1], events.len()] {
        let mut again = new();
        for event in &events[..kept] {
            // Through its text, as in a journal.
            let text = serde_json::to_string(event).unwrap();
            again.apply(&serde_json::from_str(&text).unwrap()).unwrap();
        }
        go_on(&mut again, &f, 48);
        assert_eq!(bits(&again), bits(&whole));
    }
    // What was forecast for a batch is in the coordinates of its belief.
    let last = whole.history().last().unwrap();
    assert_eq!(last.belief.cuts.len(), 1);
    batchquad::run::diagnose(&whole).unwrap();
}

#[test]
fn values_from_elsewhere_are_taken_round() {
    let prior = Prior::independent([("direction", angle(0.0))]).unwrap();
    let mut engine = Engine::new(prior, Settings::default(), 4).unwrap();
    let f = |t: f64| 8.0 * (t - 0.05).cos();
    let rows = (0..24).map(|i| -3.0 + 0.25 * f64::from(i));
    let rows = rows.map(|t| Row::new(vec![t], LogValue::new(f(t)).unwrap())).collect();
    engine.apply(&Event::Imported { rows }).unwrap();
    let estimate = engine.current().unwrap().estimate;
    assert!((estimate.log_z - log_i0(8.0)).abs() < 0.01, "{estimate:?}");
}

#[test]
fn it_is_written_and_read_and_asked_for_where_it_makes_sense() {
    let written = r#"{"parameters":[{"name":"a","prior":{"uniform":{"low":0.0,"high":1.0,"periodic":true}}}]}"#;
    let parameters = Parameters::from_problem(&serde_json::from_str(written).unwrap()).unwrap();
    assert_eq!(serde_json::to_string(&parameters).unwrap(), written);
    assert_eq!(parameters.describe()[0].1, "uniform(low 0.0, high 1.0, periodic true)");
    let plain = Distribution::uniform(0.0, 1.0).unwrap();
    assert_eq!(serde_json::to_string(&plain).unwrap(), r#"{"uniform":{"low":0.0,"high":1.0}}"#);
    assert!(plain.to_latent(1.25).is_err());
    let error = Distribution::normal(0.0, 1.0).unwrap().periodic().unwrap_err().to_string();
    assert!(error.contains("normal") && error.contains("uniform"), "{error}");
    let prior = Prior::independent([("x", plain), ("a", plain.periodic().unwrap())]).unwrap();
    assert_eq!(prior.circles(), [(1, 0.0, 1.0)]);
    for bad in [vec![0.1, 0.2], vec![1.0], vec![-0.1], vec![f64::NAN]] {
        assert!(prior.cut_at(&bad).is_err(), "{bad:?}");
    }
    assert!(Prior::independent([("x", plain)]).unwrap().cut_at(&[0.5]).is_err());
}

#[test]
fn a_batch_with_cuts_that_the_prior_does_not_have_is_refused() {
    let mut engine = Engine::new(tied_prior(0.0), Settings::default(), 5).unwrap();
    let events = go_on(&mut engine, &tied(1.0), 24);
    let text = serde_json::to_string(&events).unwrap();
    let at = text.find(r#""cuts":["#).expect("a batch from a belief names its cuts");
    let end = at + text[at..].find(']').unwrap();
    for bad in ["", "0.5,0.5", "7.0", "-1.0"] {
        let forged = format!(r#"{}"cuts":[{bad}{}"#, &text[..at], &text[end..]);
        let events: Vec<Event> = serde_json::from_str(&forged).unwrap();
        let mut again = Engine::new(tied_prior(0.0), Settings::default(), 5).unwrap();
        let taken = events.iter().try_for_each(|event| again.apply(event).map(drop));
        // None at all is what a batch from before the first value has: the ledger is whole without them.
        assert_eq!(taken.is_ok(), bad.is_empty(), "{bad}: {taken:?}");
    }
}

proptest! {
    #[test]
    fn a_cut_moves_no_point_on_its_circle(low in -1e3..1e3_f64, length in 1e-3..1e3_f64, share in 0.0..0.999_f64, u in -6.0..6.0_f64, turns in -3..4_i32) {
        let circle = Distribution::uniform(low, low + length).unwrap().periodic().unwrap();
        let Family::Uniform { low, high, .. } = *circle.family() else { panic!() };
        let prior = Prior::independent([("a", circle)]).unwrap();
        let cut = prior.cut_at(&[share]).unwrap();
        let theta = cut.to_theta(&[u]).unwrap();
        let inside = prior.wrapped(&theta).unwrap();
        prop_assert!(inside[0] >= low && inside[0] <= high);
        let off = (inside[0] - theta[0]) / (high - low);
        // Additions of numbers of this size are good to 1e-13 of their size.
        prop_assert!((off - off.round()).abs() < 1e-12 * (1.0 + low.abs() / length));
        let back = cut.to_latent(&[inside[0] + f64::from(turns) * (high - low)]).unwrap()[0];
        // Near the cut a rounding may lead to its other side.
        if u.abs() < 4.0 {
            prop_assert!((back - u).abs() < 1e-7 * (1.0 + low.abs() / length), "{} {}", back, u);
        }
    }
}
