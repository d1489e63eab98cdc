//! The numbers that runs end with, for every belief and rule, and what they must not depend on.

use std::f64::consts::TAU;

use batchquad::{
    Config, Engine, Prior, Settings,
    belief::Model,
    choose::BatchRule,
    integrate,
    journal::{Event, LogValue, Row, Told},
    prior::Distribution,
    run::{KnownKernel, Memory, Reference, SurrogateChoice},
    types::{JobId, Outcome},
};

use crate::common::{Fake, bump, bump_truth, finish, prior, small, value};

/// A smooth bump cut by a plane through the prior's centre: half of it is left.
#[test]
fn a_likelihood_that_is_zero_on_half_the_prior() {
    let half = |t: &[f64]| if t[0] < 0.0 { f64::NEG_INFINITY } else { -t.iter().map(|v| v * v).sum::<f64>() };
    let settings = Settings { max_evaluations: 96, ..Settings::default() };
    let integral = integrate(half, prior(2), Config { settings, ..Config::default() }).unwrap();
    let truth = 0.5_f64.ln() - 3.0_f64.ln();
    // A jump is far from the model: the promise is a finite number of the right size, and a bar that says how sure it is.
    let error = (integral.estimate.log_z - truth).abs();
    assert!(error < 0.25, "{error} ± {}", integral.estimate.log_z_sd);
}

#[test]
fn offsets_of_a_million_move_log_z_by_a_million() {
    let run = |c: f64| {
        let config = Config { settings: small(), ..Config::default() };
        integrate(move |t| bump(t) + c, prior(2), config).unwrap().estimate
    };
    let here = run(0.0);
    for c in [1e6, -1e6, -500.0] {
        let there = run(c);
        assert!((there.log_z - here.log_z - c).abs() < 1e-3, "{} {} {c}", here.log_z, there.log_z);
    }
}

#[test]
fn log_likelihoods_at_the_ends_of_the_doubles_leave_a_number() {
    // Their squares are no doubles: the belief about log ℓ has no scale for them, and the other one takes over.
    let settings = Settings { max_evaluations: 12, ..small() };
    let steep = |t: &[f64]| -1e307 * (1.0 + t[0] * t[0]);
    let integral = integrate(steep, prior(1), Config { settings, ..Config::default() }).unwrap();
    let best = integral.engine.ledger().values().map(|(_, value)| value).fold(f64::NEG_INFINITY, f64::max);
    // Everything but the best value is zero beside it.
    assert!((integral.estimate.log_z / best - 1.0).abs() < 1e-12, "{:?}, {best}", integral.estimate);
}

#[test]
fn units_do_not_matter() {
    let run = |unit: f64| {
        let scaled = |n: &'static str| (n, Distribution::normal(0.0, unit).unwrap());
        let prior = Prior::independent([scaled("a"), scaled("b")]).unwrap();
        let log_likelihood = move |t: &[f64]| bump(&[t[0] / unit, t[1] / unit]);
        integrate(log_likelihood, prior, Config { settings: small(), ..Config::default() }).unwrap().estimate.log_z
    };
    assert!((run(1e12) - run(1.0)).abs() < 1e-6 && (run(1e-12) - run(1.0)).abs() < 1e-6);
}

#[test]
fn a_batch_does_not_outgrow_what_is_known() {
    let sizes = |batch_growth: Option<f64>| -> Vec<usize> {
        let settings = Settings { batch: 16, batch_growth, max_evaluations: 60, ..Settings::default() };
        let mut engine = Engine::new(prior(2), settings, 2).unwrap();
        finish(&mut engine, &mut Fake::new(2, false, &value), &mut Memory);
        engine.ledger().batches().iter().map(|b| b.jobs.len()).collect()
    };
    assert_eq!(sizes(Some(0.5)), [8, 4, 6, 9, 13, 16, 4]);
    assert_eq!(sizes(None), [8, 2, 2, 3, 3, 4, 5, 6, 8, 10, 9]);
    assert_eq!(sizes(Some(1e9)), [8, 16, 16, 16, 4]);
    assert!(Engine::new(prior(2), Settings { batch_growth: Some(0.0), ..Settings::default() }, 2).is_err());
}

#[test]
fn imported_values_count_and_replace_the_initial_design() {
    let mut engine = Engine::new(prior(1), small(), 2).unwrap();
    let rows = (-4..=4).map(|i| vec![f64::from(i) * 0.5]);
    let rows =
        rows.map(|theta| Row { log_likelihood: LogValue::new(bump(&theta)).unwrap(), theta, sd: None }).collect();
    engine.apply(&Event::Imported { rows }).unwrap();
    assert_eq!(engine.initial_size(), 0);
    let asked = engine.ask(3).unwrap();
    assert_eq!(asked.jobs.len(), 3);
    assert!((engine.current().unwrap().estimate.log_z - bump_truth(1)).abs() < 0.05);
    assert!(engine.apply(&Event::Told(Told::new(JobId(99), Outcome::Value(0.0)))).is_err());
}

#[test]
fn imported_values_alone_are_known_to_have_arrived() {
    let mut engine = Engine::new(prior(2), small(), 2).unwrap();
    let grid = (0..81).map(|i| vec![0.6 * (f64::from(i / 9) - 4.0), 0.6 * (f64::from(i % 9) - 4.0)]);
    let rows = grid.map(|theta| Row::new(theta.clone(), LogValue::new(bump(&theta)).unwrap())).collect();
    engine.apply(&Event::Imported { rows }).unwrap();
    let estimate = engine.current().unwrap().estimate;
    // Quadratic, so that the belief is exact; a run that has not arrived states forty nats.
    assert!(estimate.log_z_sd < 0.01 && (estimate.log_z - bump_truth(2)).abs() < 1e-3, "{estimate:?}");
}

#[test]
fn all_models_and_rules_run_to_the_end() {
    for model in [Model::Plain, Model::WsabiL, Model::WsabiM] {
        for rule in [
            BatchRule::KrigingBeliever,
            BatchRule::KrigingOptimist,
            BatchRule::ConstantLiar,
            BatchRule::LocalPenalisation,
            BatchRule::GonzalezPenalisation,
            BatchRule::NaiveTop,
            BatchRule::Random,
        ] {
            let settings = Settings { surrogate: model.into(), batch_rule: rule, ..small() };
            let integral = integrate(bump, prior(1), Config { settings, ..Config::default() }).unwrap();
            assert!((integral.estimate.log_z - bump_truth(1)).abs() < 0.05, "{model:?} {rule:?}");
            assert!(!integral.rounds.is_empty());
        }
    }
}

#[test]
fn dimensions_from_one_to_four_and_constants() {
    for d in 1..=4 {
        let settings = Settings { max_evaluations: 40 * d, ..Settings::default() };
        let integral = integrate(bump, prior(d), Config { settings, ..Config::default() }).unwrap();
        let error = (integral.estimate.log_z - bump_truth(d)).abs();
        assert!(error < 0.01 * d as f64, "{d}: {error}");
    }
    let constant = integrate(|_| -3.0, prior(2), Config { settings: small(), ..Config::default() }).unwrap();
    assert!((constant.estimate.log_z + 3.0).abs() < 1e-3, "{:?}", constant.estimate);
}

#[test]
fn a_known_kernel_is_used_as_it_is_in_any_unit() {
    let known = KnownKernel { log_sigma2: 0.4, lengthscales: vec![0.8, 1.2] };
    let go = |model: Model, offset: f64, known: KnownKernel| {
        let settings =
            Settings { surrogate: model.into(), known_kernel: Some(known), max_evaluations: 20, ..Settings::default() };
        let config = Config { settings, seed: 3, workers: 1 };
        integrate(move |t| bump(t) + offset, prior(2), config).unwrap()
    };
    for (model, unit) in [(Model::WsabiL, 1.0), (Model::Plain, 2.0)] {
        let here = go(model, 0.0, known.clone());
        let scale = here.estimate.scale;
        let believed = &here.engine.current().unwrap().believed;
        assert_eq!(believed.lengthscales, known.lengthscales);
        // One exponential and one logarithm away from what was given.
        assert!((believed.sigma2.ln() - 0.4 + unit * scale).abs() < 1e-12, "{model:?} {}", believed.sigma2);
        // A likelihood in other units, with its process in the same ones, is the same problem.
        let there = go(model, 50.0, KnownKernel { log_sigma2: 0.4 + unit * 50.0, ..known.clone() });
        assert!((there.estimate.log_z - here.estimate.log_z - 50.0).abs() < 1e-9);
    }
}

#[test]
fn a_known_kernel_that_does_not_fit_is_refused_before_anything_is_asked() {
    for (log_sigma2, lengthscales) in [(0.0, vec![1.0]), (f64::NAN, vec![1.0; 2]), (0.0, vec![1.0, -1.0])] {
        let known_kernel = Some(KnownKernel { log_sigma2, lengthscales });
        assert!(Engine::new(prior(2), Settings { known_kernel, ..Settings::default() }, 0).is_err());
    }
    for refit_growth in [0.9, f64::NAN, f64::INFINITY] {
        assert!(Engine::new(prior(2), Settings { refit_growth, ..Settings::default() }, 0).is_err());
    }
}

#[test]
fn a_tilted_needle_is_integrated_in_its_own_frame() {
    // N((x, y); (1.2, −0.7), S) with sds 0.1 and 0.05 and a correlation of 0.95, under N(0, I): the evidence is N(mean; 0, S + I).
    let (mean, s) = ([1.2, -0.7], [0.01, 0.95 * 0.1 * 0.05, 0.0025]);
    let log_normal = move |x: f64, y: f64, [a, b, c]: [f64; 3]| {
        let determinant = a * c - b * b;
        -0.5 * (c * x * x - 2.0 * b * x * y + a * y * y) / determinant - 0.5 * (TAU * TAU * determinant).ln()
    };
    let truth = log_normal(mean[0], mean[1], [s[0] + 1.0, s[1], s[2] + 1.0]);
    let go = |reference: Reference| {
        let surrogate = SurrogateChoice::WsabiL;
        let settings = Settings { surrogate, reference, max_evaluations: 96, ..Settings::default() };
        let log_likelihood = move |t: &[f64]| log_normal(t[0] - mean[0], t[1] - mean[1], s);
        integrate(log_likelihood, prior(2), Config { settings, ..Config::default() }).unwrap()
    };
    let moved = go(Reference::Moving);
    let place = moved.engine.current().unwrap().believed.place.clone().unwrap();
    // Wider than the posterior by √2 at most, and tilted as it is.
    assert!(place.covariance[0][0] > s[0] && place.covariance[0][0] < 2.5 * s[0], "{place:?}");
    assert!(place.covariance[0][1] > 0.0);
    let (error, fixed) = (moved.estimate.log_z - truth, go(Reference::Prior));
    assert!(error.abs() < 1e-3, "{error:e}");
    assert!(fixed.engine.current().unwrap().believed.place.is_none());
    // Without it the same values tell far less, and the error bar knows.
    assert!(fixed.estimate.log_z_sd > 5.0 * moved.estimate.log_z_sd, "{:?}", fixed.estimate);
}
