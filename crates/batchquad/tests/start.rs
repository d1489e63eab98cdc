//! Points that a user gives a run to begin with.
#![cfg(feature = "run")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use batchquad::{
    Error, Prior, Settings,
    journal::{Event, Told},
    prior::{Distribution, Parameter, Parameters},
    run::{Engine, Plan, Session, Start, SurrogateChoice},
    types::Outcome,
};

fn names(d: usize) -> Vec<String> {
    (0..d).map(|k| format!("x{k}")).collect()
}

fn wide(d: usize) -> Prior {
    Prior::independent(names(d).into_iter().map(|n| (n, Distribution::normal(0.0, 1.0).unwrap()))).unwrap()
}

fn start(theta: &[f64]) -> Start {
    names(theta.len()).into_iter().zip(theta.iter().copied()).collect()
}

/// A correlated normal likelihood whose width is `sd`, off the centre of the prior, normalised to have its maximum at zero.
fn needle(sd: f64) -> impl Fn(&[f64]) -> f64 {
    move |t: &[f64]| {
        let z: Vec<f64> = t.iter().enumerate().map(|(k, v)| (v - centre(k)) / sd).collect();
        let tied: f64 = z.windows(2).map(|w| w[0] * w[1]).sum();
        -0.5 * (z.iter().map(|v| v * v).sum::<f64>() + 0.6 * tied)
    }
}

fn centre(k: usize) -> f64 {
    [0.7, -1.1, 0.4, 1.3, -0.6, 0.9][k % 6]
}

/// Evaluates until `n` values are known; says log Z, its bar and whether the run has arrived.
fn run(prior: Prior, settings: Settings, seed: u64, f: impl Fn(&[f64]) -> f64, n: usize) -> (f64, f64, bool) {
    let mut engine = Engine::new(prior, settings, seed).unwrap();
    go_on(&mut engine, &f, n);
    let current = engine.current().unwrap();
    let arrived = current.surrogate.log().is_none_or(|belief| belief.arrived());
    (current.estimate.log_z, current.estimate.log_z_sd, arrived)
}

fn go_on(engine: &mut Engine, f: &impl Fn(&[f64]) -> f64, n: usize) {
    while engine.ledger().entries().len() < n {
        let wanted = engine.next_batch().min(n - engine.ledger().entries().len());
        let asked = engine.ask(wanted).unwrap();
        engine.apply(&Event::Asked(asked.clone())).unwrap();
        for job in asked.jobs {
            engine.apply(&Event::Told(Told::new(job.id, Outcome::Value(f(&job.theta))))).unwrap();
        }
    }
}

#[test]
fn they_come_first_to_the_bit_and_the_design_follows() {
    let points = [[0.1, 0.2 + 0.1], [-1.7, 2.0]];
    let with = Settings { start: points.iter().map(|p| start(p)).collect(), ..Settings::default() };
    let plain = Engine::new(wide(2), Settings::default(), 3).unwrap();
    let mut engine = Engine::new(wide(2), with, 3).unwrap();
    assert_eq!(engine.initial_size(), plain.initial_size() + 2);
    let mut asked = Vec::new();
    while asked.len() < engine.initial_size() {
        // Batches that do not end where the start ends.
        let batch = engine.ask(3).unwrap();
        engine.apply(&Event::Asked(batch.clone())).unwrap();
        asked.extend(batch.jobs.into_iter().map(|job| job.theta));
    }
    let design: Vec<Vec<f64>> =
        plain.ask(plain.initial_size()).unwrap().jobs.into_iter().map(|job| job.theta).collect();
    assert_eq!(asked[..2], points.map(|p| p.to_vec()));
    assert_eq!(asked[2..], design);
}

#[test]
fn one_table_several_and_none_are_read() {
    let read = |text: &str| serde_json::from_str::<Settings>(text);
    assert_eq!(read(r#"{"start": {"x0": 1, "x1": -2.5}}"#).unwrap().start, [start(&[1.0, -2.5])]);
    assert_eq!(read(r#"{"start": [{"x0": 1}, {"x0": 2}]}"#).unwrap().start, [start(&[1.0]), start(&[2.0])]);
    for none in [r#"{"start": null}"#, r#"{"start": []}"#, "{}"] {
        assert_eq!(read(none).unwrap(), Settings::default());
    }
    // Without a start, settings are written as they were before there was one.
    assert!(!Settings::default().to_map().unwrap().contains_key("start"));
    for (text, message) in [
        (r#"{"start": 3}"#, "start is 3, expected a table"),
        (r#"{"start": [1, 2]}"#, "start is [1,2], expected a table"),
        (r#"{"start": {"x0": "far"}}"#, "start.x0 is \"far\", expected a number"),
        (r#"{"start": [{"x0": 1}, {"x0": true}]}"#, "start[1].x0 is true, expected a number"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn what_cannot_be_a_start_is_refused_by_name() {
    let prior = || {
        let uniform = Distribution::uniform(0.0, 2.0).unwrap();
        Prior::independent([("x0", Distribution::normal(0.0, 1.0).unwrap()), ("x1", uniform)]).unwrap()
    };
    let refused = |starts: Vec<Start>| {
        Engine::new(prior(), Settings { start: starts, ..Settings::default() }, 0).unwrap_err().to_string()
    };
    let mut unknown = start(&[0.0, 1.0]);
    unknown.insert("y".into(), 1.0);
    for (starts, words) in [
        (vec![unknown], vec!["start is {", "x0, x1", "y is not a parameter"]),
        (vec![start(&[0.5])], vec!["start", "0.5", "x1"]),
        (vec![start(&[0.0, f64::NAN])], vec!["start.x1", "NaN", "finite"]),
        (vec![start(&[0.0, f64::INFINITY])], vec!["start.x1", "inf", "finite"]),
        (vec![start(&[0.0, 1.0]), start(&[0.0, 2.5])], vec!["start[1]", "x1", "2.5", "(0.0, 2.0)"]),
    ] {
        let error = refused(starts);
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
    // A map without an inverse cannot say where in the prior a point is.
    let cube = Prior::from_unit_cube(["x0"], |v: &[f64]| v.to_vec()).unwrap();
    let settings = Settings { start: vec![start(&[0.5])], ..Settings::default() };
    let error = Engine::new(cube, settings, 0).unwrap_err().to_string();
    assert!(error.contains("start"), "{error}");
}

#[test]
fn a_store_keeps_its_start_and_resumes_to_the_same_bits() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("store");
    let f = needle(0.1);
    let normal = Distribution::normal(0.0, 1.0).unwrap();
    let parameters =
        Parameters::new(names(2).into_iter().map(|name| Parameter::Scalar { name, prior: normal }).collect()).unwrap();
    let plan = |starts: &[&[f64]]| Plan {
        prior: wide(2),
        problem: serde_json::to_value(&parameters).unwrap(),
        settings: Settings { start: starts.iter().map(|s| start(s)).collect(), ..Settings::default() },
        seed: Some(5),
    };
    let given: [&[f64]; 2] = [&[0.5, -1.0], &[-1.0, 0.3]];
    let mut whole = Engine::new(wide(2), plan(&given).settings, 5).unwrap();
    go_on(&mut whole, &f, 24);
    drop(Session::create(&dir, &plan(&given)).unwrap());
    // A process for every event, the first of them ending in the middle of the start points.
    for process in 0.. {
        // Given again, left open, or opened by itself: it is the same run.
        let mut session = match process % 3 {
            0 => Session::resume(&dir, &plan(&given)).unwrap().0,
            1 => Session::resume(&dir, &plan(&[])).unwrap().0,
            _ => Session::open(&dir).unwrap().0,
        };
        let asked = session.engine.ledger().entries().len();
        let pending = session.engine.ledger().pending().next().cloned();
        match pending {
            Some(job) => {
                session.keep(&Event::Told(Told::new(job.id, Outcome::Value(f(&job.theta))))).unwrap();
            }
            None if asked == 24 => break,
            None => {
                let wanted = session.engine.next_batch().min(24 - asked);
                assert!(!session.ask_batch(0, wanted, || false).unwrap().is_empty());
            }
        }
    }
    let (session, _) = Session::open(&dir).unwrap();
    let points = |engine: &Engine| engine.ledger().entries().map(|e| e.job.theta.clone()).collect::<Vec<_>>();
    assert_eq!(points(&session.engine)[..2], given.map(<[f64]>::to_vec));
    assert_eq!(points(&session.engine), points(&whole));
    let log_z = |engine: &Engine| engine.current().unwrap().estimate.log_z.to_bits();
    assert_eq!(log_z(&session.engine), log_z(&whole));
    drop(session);
    let error = Session::resume(&dir, &plan(&[&[0.5, 1.0]])).map(|_| ()).unwrap_err();
    assert!(matches!(&error, Error::StoreDiffers { .. }) && error.to_string().contains("start"), "{error}");
    let (mut session, _) = Session::open(&dir).unwrap();
    let other = Settings { start: vec![start(&[0.5, 1.0])], ..session.engine.settings().clone() };
    let error = session.change(&other).unwrap_err().to_string();
    assert!(error.contains("start") && error.contains("began with"), "{error}");
}

/// log Z of [`needle`] under the standard normal prior: the determinant of `1 + sd²A⁻¹` and the mode, by linear algebra of hand size.
fn truth(d: usize, sd: f64) -> f64 {
    // Posterior precision P = A/sd² + 1, b = A c/sd²; log Z = ½ bᵀP⁻¹b − ½ cᵀAc/sd² − ½ log|P|.
    let a = |i: usize, j: usize| match i.abs_diff(j) {
        0 => 1.0,
        1 => 0.3,
        _ => 0.0,
    };
    let s2 = sd * sd;
    let c: Vec<f64> = (0..d).map(centre).collect();
    let b: Vec<f64> = (0..d).map(|i| (0..d).map(|j| a(i, j) * c[j]).sum::<f64>() / s2).collect();
    let mut p: Vec<Vec<f64>> =
        (0..d).map(|i| (0..d).map(|j| a(i, j) / s2 + if i == j { 1.0 } else { 0.0 }).collect()).collect();
    let mut x = b.clone();
    let mut log_det = 0.0;
    for i in 0..d {
        log_det += p[i][i].ln();
        for k in i + 1..d {
            let f = p[k][i] / p[i][i];
            for j in i..d {
                p[k][j] -= f * p[i][j];
            }
            x[k] -= f * x[i];
        }
    }
    for i in (0..d).rev() {
        x[i] = (x[i] - (i + 1..d).map(|j| p[i][j] * x[j]).sum::<f64>()) / p[i][i];
    }
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(a, b)| a * b).sum::<f64>();
    0.5 * dot(&b, &x) - 0.5 * dot(&b, &c) - 0.5 * log_det
}

#[test]
fn a_wrong_start_does_no_harm() {
    let (d, sd, n) = (3, 0.1, 48);
    let far = vec![start(&[-6.0, 7.0, -8.0]), start(&[9.0, 0.0, 0.0])];
    let settings = |start: Vec<Start>| Settings { start, ..Settings::default() };
    let cliff = |t: &[f64]| if t[0] > 5.0 { f64::NEG_INFINITY } else { needle(sd)(t) };
    for seed in 0..3 {
        // The two evaluations that a wrong start costs are the only difference.
        let (log_z, bar, arrived) = run(wide(d), settings(far.clone()), seed, cliff, n + 2);
        let error = (log_z - truth(d, sd)).abs();
        let (plain, ..) = run(wide(d), settings(Vec::new()), seed, cliff, n);
        let without = (plain - truth(d, sd)).abs();
        assert!(arrived && bar < 0.1, "{seed}: {log_z} ± {bar}");
        // Exact for a normal posterior, both of them.
        assert!(error < 0.01 && without < 0.01, "{seed}: {error} {without}");
    }
    // The beliefs about the square root are not confused either.
    let paper = Settings { surrogate: SurrogateChoice::WsabiL, ..settings(far) };
    let (log_z, ..) = run(wide(d), paper, 1, needle(0.5), n);
    assert!((log_z - truth(d, 0.5)).abs() < 0.05, "{log_z} {}", truth(d, 0.5));
}

#[test]
fn a_good_start_helps() {
    // A posterior two hundred times narrower than the prior in six parameters, known to a few of its standard deviations.
    let (d, sd) = (6, 0.005);
    let good: Vec<f64> = (0..d).map(|k| centre(k) + if k % 2 == 0 { 3.0 * sd } else { -2.0 * sd }).collect();
    for seed in 0..4 {
        let error = |starts: Vec<Start>, n: usize| {
            let (log_z, ..) = run(wide(d), Settings { start: starts, ..Settings::default() }, seed, needle(sd), n);
            (log_z - truth(d, sd)).abs()
        };
        // While a run without it is still on its way, one with it is there but for the shape of the posterior.
        let (without, with) = (error(Vec::new(), 32), error(vec![start(&good)], 32));
        assert!(without > 100.0 && with < 10.0, "{seed}: without {without}, with {with}");
        let later = error(vec![start(&good)], 48);
        assert!(later < 0.1, "{seed}: {later}");
    }
}
