//! Diagnostics: they see what is wrong, say it in words, and hold their tongue when nothing is.
#![cfg(feature = "run")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use batchquad::{
    Config, Engine, Points, Prior, Settings,
    belief::{Gaussian, Model, Nodes, Surrogate},
    integrate,
    journal::{Event, Told},
    numeric::{Jitter, Order},
    prior::Distribution,
    run::{Diagnosis, Finding, Level, Reference, SurrogateChoice, diagnose},
    types::Outcome,
};

fn prior(dim: usize) -> Prior {
    Prior::independent((0..dim).map(|k| (format!("p{k}"), Distribution::normal(0.0, 1.0).unwrap()))).unwrap()
}

fn run(dim: usize, settings: Settings, log_likelihood: fn(&[f64]) -> f64) -> Engine {
    integrate(log_likelihood, prior(dim), Config { settings, ..Config::default() }).unwrap().engine
}

fn finding<'a>(diagnosis: &'a Diagnosis, name: &str) -> &'a Finding {
    diagnosis.findings.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("{name} in {diagnosis:?}"))
}

fn bell(t: &[f64]) -> f64 {
    -2.0 * t.iter().map(|x| (x - 0.5).powi(2)).sum::<f64>()
}

#[test]
fn a_good_run_is_fine_under_every_model() {
    for model in [Model::WsabiL, Model::WsabiM, Model::Plain] {
        let engine = run(2, Settings { max_evaluations: 64, surrogate: model.into(), ..Settings::default() }, bell);
        let diagnosis = diagnose(&engine).unwrap();
        assert!(diagnosis.verdict < Level::DoNotTrust, "{model:?}: {}", diagnosis.summary());
        assert_eq!(diagnosis.residuals.len(), 64);
        for f in &diagnosis.findings {
            assert!(!f.sentence.is_empty() && f.value.is_finite(), "{f:?}");
        }
        let json = serde_json::to_value(&diagnosis).unwrap();
        assert_eq!(json["findings"].as_array().unwrap().len(), diagnosis.findings.len());
    }
}

#[test]
fn the_verdict_is_the_worst_finding_and_its_words_are_in_the_summary() {
    let engine = run(2, Settings { max_evaluations: 24, ..Settings::default() }, bell);
    let mut diagnosis = diagnose(&engine).unwrap();
    let worst = diagnosis.findings.iter().map(|f| f.level).max().unwrap();
    assert_eq!(diagnosis.verdict, worst);
    diagnosis.findings[0].level = Level::DoNotTrust;
    diagnosis.verdict = Level::DoNotTrust;
    assert!(diagnosis.summary().starts_with("do not trust"));
    assert!(diagnosis.summary().contains(&diagnosis.findings[0].sentence));
    assert!(Level::Fine < Level::Look && Level::Look < Level::DoNotTrust);
}

/// Forecasts are what the belief of that time says, made by hand from the journal.
#[test]
fn forecasts_are_predictions_from_what_was_known() {
    // Latent coordinates as they are, so that the belief can be made by hand.
    let settings = Settings { max_evaluations: 28, batch: 4, reference: Reference::Prior, ..Settings::default() };
    let engine = run(2, settings, bell);
    let diagnosis = diagnose(&engine).unwrap();
    assert_eq!(diagnosis.forecast_stride, 1);
    // Twelve of the initial design, then four batches of four.
    assert_eq!(diagnosis.forecasts.len(), 16);
    let round = &engine.history()[2];
    let jobs = &engine.ledger().batches()[round.batches].jobs;
    let before: Vec<_> = engine.ledger().values().filter(|(job, _)| job.id < jobs[0].id).collect();
    let rows: Vec<Vec<f64>> = before.iter().map(|(job, _)| engine.latent_of(job.id).unwrap().to_vec()).collect();
    let values: Vec<f64> = before.iter().map(|(_, v)| *v).collect();
    let nodes = Nodes::new(&rows, &values).unwrap();
    let kernel =
        batchquad::belief::SquaredExponential::new(round.belief.sigma2, round.belief.lengthscales.clone()).unwrap();
    let measure = Gaussian::standard(2).unwrap().into();
    let belief =
        Surrogate::with_kernel(Model::WsabiL, measure, &nodes.points, &nodes.log_values, kernel, Jitter::default())
            .unwrap();
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for job in jobs {
        let forecast = diagnosis.forecasts.iter().find(|f| f.id == job.id).unwrap();
        let u = Points::from_rows(&[engine.latent_of(job.id).unwrap()]).unwrap();
        let p = belief.gp().predict(&u, Order::Value).unwrap();
        let value = bell(&job.theta);
        assert_eq!((forecast.observed, forecast.batch), (value, round.batches));
        let g = (2.0 * ((value - top).exp() - belief.alpha()).max(0.0)).sqrt();
        let z = (g - p.mean[0].abs()) / p.variance[0].sqrt();
        assert!((forecast.standardised - z).abs() < 1e-9 * (1.0 + z.abs()), "{forecast:?} {z}");
        assert!(forecast.low <= forecast.predicted && forecast.predicted <= forecast.high);
        let mean = top + (belief.alpha() + 0.5 * p.mean[0].powi(2)).ln();
        assert!((forecast.predicted - mean).abs() < 1e-9, "{forecast:?} {mean}");
    }
}

#[test]
fn calibration_is_sorted_beside_normal_quantiles() {
    let engine = run(1, Settings { max_evaluations: 20, ..Settings::default() }, bell);
    let pairs = diagnose(&engine).unwrap().calibration();
    assert_eq!(pairs.len(), 20);
    assert!(pairs.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1));
    // Φ⁻¹(0.525), and symmetric.
    assert!((pairs[10].0 - 0.062_706_777_943_213_85).abs() < 1e-12 && (pairs[9].0 + pairs[10].0).abs() < 1e-12);
}

#[test]
fn a_needle_that_one_node_has_hit_is_not_trusted() {
    let needle = |t: &[f64]| -0.5 * ((t[0] - 0.7).powi(2) + (t[1] + 0.4).powi(2)) / 4e-4;
    let surrogate = Model::WsabiL.into();
    let engine = run(2, Settings { max_evaluations: 20, surrogate, ..Settings::default() }, needle);
    let diagnosis = diagnose(&engine).unwrap();
    assert_eq!(diagnosis.verdict, Level::DoNotTrust, "{}", diagnosis.summary());
    assert_eq!(finding(&diagnosis, "effective-nodes").level, Level::DoNotTrust);
    assert!(finding(&diagnosis, "effective-nodes").value < 4.0);
}

/// Where thirty values say little about each other, another is the highest with a probability of about one in thirty.
#[test]
fn something_higher_is_expected_where_values_say_little() {
    let higher = |f: fn(&[f64]) -> f64| {
        let engine = designed(3, 30, SurrogateChoice::Log, f);
        finding(&diagnose(&engine).unwrap(), "higher").clone()
    };
    let rough = higher(|t| 5.0 * ((4.0 * t[0]).sin() + (5.0 * t[1]).sin() + (6.0 * t[2]).sin()));
    assert!(rough.value > 0.02 && rough.value < 0.1 && rough.level == Level::Look, "{rough:?}");
    assert!(rough.sentence.contains("another peak may be there"), "{rough:?}");
    assert!(higher(bell).value < 1e-3);
}

/// A narrow posterior in four parameters is found long before anybody could know that there is no other; in two, or where it fills the prior, hardly a value
/// is needed for that.
#[test]
fn few_values_away_from_a_narrow_posterior_are_worth_a_look() {
    fn narrow(t: &[f64]) -> f64 {
        -0.5 * t.iter().map(|x| (x - 0.5).powi(2)).sum::<f64>() / 0.05_f64.powi(2)
    }
    fn wide(t: &[f64]) -> f64 {
        -0.1 * t.iter().map(|x| x * x).sum::<f64>()
    }
    let explored = |dim, budget, likelihood| {
        let diagnosis = diagnose(&run(dim, Settings { max_evaluations: budget, ..Settings::default() }, likelihood));
        finding(&diagnosis.unwrap(), "explored").clone()
    };
    let early = explored(4, 48, narrow);
    assert!(early.level == Level::Look && early.sentence.contains("values lie away"), "{early:?}");
    for (dim, budget, likelihood) in [(4, 128, narrow as fn(&[f64]) -> f64), (2, 48, narrow), (4, 48, wide)] {
        let enough = explored(dim, budget, likelihood);
        assert_eq!(enough.level, Level::Fine, "{dim} {budget}: {enough:?}");
    }
}

#[test]
fn a_posterior_at_the_edge_of_the_prior_is_pointed_out() {
    let far = |t: &[f64]| -0.5 * ((t[0] - 7.0) / 0.9).powi(2);
    let engine = run(1, Settings { max_evaluations: 40, ..Settings::default() }, far);
    let diagnosis = diagnose(&engine).unwrap();
    // N(7/1.81, 0.81/1.81): most of it beyond 3.
    let edge = finding(&diagnosis, "edge-of-prior");
    assert!(edge.value > 0.8 && edge.level == Level::Look, "{edge:?}");
}

/// Values told by hand, so that they can be what no likelihood would say.
fn told(settings: Settings, n: usize, outcome: impl Fn(usize, &[f64]) -> Outcome) -> Engine {
    let mut engine = Engine::new(prior(1), settings, 0).unwrap();
    let mut count = 0;
    while count < n {
        let asked = engine.ask(4.min(n - count)).unwrap();
        let jobs = asked.jobs.clone();
        engine.apply(&Event::Asked(asked)).unwrap();
        for job in jobs {
            engine.apply(&Event::Told(Told::new(job.id, outcome(count, &job.theta)))).unwrap();
            count += 1;
        }
    }
    engine
}

#[test]
fn failures_in_the_middle_of_the_prior_are_pointed_out() {
    let engine = told(Settings::default(), 20, |_, theta| {
        if theta[0] > 0.0 { Outcome::from_log_likelihood(theta, f64::NAN) } else { Outcome::Value(bell(theta)) }
    });
    let diagnosis = diagnose(&engine).unwrap();
    let failures = finding(&diagnosis, "failures");
    assert!(failures.value > 0.3 && failures.level == Level::DoNotTrust, "{failures:?}");
    assert_eq!(diagnosis.verdict, Level::DoNotTrust);
}

#[test]
fn values_that_contradict_each_other_are_not_trusted() {
    let mut engine = told(Settings::default(), 16, |_, theta| Outcome::Value(bell(theta)));
    let (theta, value) = engine.ledger().values().next().map(|(job, v)| (job.theta.clone(), v)).unwrap();
    let row = serde_json::json!({ "kind": "imported", "rows": [{ "theta": theta, "log_likelihood": value - 1.0 }] });
    let event: Event = serde_json::from_value(row).unwrap();
    engine.apply(&event).unwrap();
    let diagnosis = diagnose(&engine).unwrap();
    assert_eq!(finding(&diagnosis, "repairs").level, Level::DoNotTrust, "{diagnosis:?}");
}

/// The initial design alone, `n` points of it, in `dim` parameters.
fn designed(dim: usize, n: usize, surrogate: SurrogateChoice, log_likelihood: impl Fn(&[f64]) -> f64) -> Engine {
    let settings = Settings { initial_size: Some(n), max_evaluations: n, surrogate, ..Settings::default() };
    let mut engine = Engine::new(prior(dim), settings, 1).unwrap();
    let asked = engine.ask(n).unwrap();
    engine.apply(&Event::Asked(asked.clone())).unwrap();
    for job in asked.jobs {
        engine.apply(&Event::Told(Told::new(job.id, Outcome::Value(log_likelihood(&job.theta))))).unwrap();
    }
    engine
}

#[test]
fn more_parameters_than_the_bar_was_calibrated_for_are_pointed_out() {
    // So flat that no value is far below the best: all of them count.
    let flat = |t: &[f64]| -0.05 * t.iter().map(|x| x * x).sum::<f64>();
    let few = diagnose(&designed(13, 56, SurrogateChoice::Log, flat)).unwrap();
    let found = finding(&few, "determined");
    // 14·15/2 = 105 coefficients.
    assert_eq!((found.level, found.value), (Level::DoNotTrust, 56.0 / 105.0));
    assert!(found.sentence.contains("56 values") && found.sentence.contains("105"), "{}", found.sentence);
    let enough = diagnose(&designed(13, 216, SurrogateChoice::Log, flat)).unwrap();
    assert_eq!(finding(&enough, "determined").level, Level::Look);
    let usual = diagnose(&designed(12, 52, SurrogateChoice::Log, flat)).unwrap();
    assert!(usual.findings.iter().all(|f| f.name != "determined"));
}

/// A constant in 100 parameters: nodes say nothing about the places between them, and the bar says so.
#[test]
fn a_constant_in_a_hundred_parameters_is_not_known_to_twenty_digits() {
    let engine = designed(100, 120, SurrogateChoice::Auto, |_| -1.5);
    let estimate = engine.current().unwrap().estimate;
    assert!((estimate.log_z + 1.5).abs() < 2.0 * estimate.log_z_sd, "{estimate:?}");
    assert_eq!(diagnose(&engine).unwrap().verdict, Level::DoNotTrust);
    // Where the constant has been seen, the bar is small and the number right.
    let seen = designed(2, 24, SurrogateChoice::WsabiL, |_| -1.5).current().unwrap().estimate;
    assert!((seen.log_z + 1.5).abs() < 0.02 && seen.log_z_sd < 0.05, "{seen:?}");
}

/// In 20 parameters the exact moments of the square state a small bar around mass that nobody has seen.
#[test]
fn mass_that_is_only_expected_is_not_trusted() {
    let wide = |t: &[f64]| -0.5 * t.iter().map(|x| x * x).sum::<f64>();
    let engine = designed(20, 120, SurrogateChoice::WsabiM, wide);
    let diagnosis = diagnose(&engine).unwrap();
    // ∫ exp(−½x²) N(x; 0, 1) dx = 2^(−½).
    let estimate = engine.current().unwrap().estimate;
    let off = (estimate.log_z + 10.0 * 2.0_f64.ln()).abs() / estimate.log_z_sd;
    println!("{off} bars off, {:?}", finding(&diagnosis, "readings"));
    assert!(off < 2.0 || diagnosis.verdict == Level::DoNotTrust, "{off} bars off: {}", diagnosis.summary());
    // The other reading has no such mass, and few parameters hardly any.
    let other = diagnose(&designed(20, 120, SurrogateChoice::WsabiL, wide)).unwrap();
    assert!(other.findings.iter().all(|f| f.name != "readings"));
    let few = diagnose(&run(
        2,
        Settings { max_evaluations: 48, surrogate: SurrogateChoice::WsabiM, ..Settings::default() },
        bell,
    ));
    let few = few.unwrap();
    println!("{:?}", finding(&few, "readings"));
    assert!(finding(&few, "readings").level == Level::Fine, "{:?}", finding(&few, "readings"));
}

#[test]
fn there_is_nothing_to_diagnose_before_a_value_is_known() {
    assert!(diagnose(&Engine::new(prior(1), Settings::default(), 0).unwrap()).is_err());
    // One value, no history: what can be said is said.
    let one =
        told(Settings { initial_size: Some(1), ..Settings::default() }, 1, |_, theta| Outcome::Value(bell(theta)));
    let diagnosis = diagnose(&one).unwrap();
    assert!(diagnosis.forecasts.is_empty());
    assert_eq!(diagnosis.verdict, Level::DoNotTrust, "one node carries everything");
}
