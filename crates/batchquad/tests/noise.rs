//! Values that come with the standard deviation of their noise.
#![cfg(feature = "run")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use batchquad::{
    Engine, Prior, Settings,
    journal::{Applied, Event, LogValue, Row, Told},
    numeric::{Purpose, Stream},
    prior::{Distribution, Parameter, Parameters},
    run::{Level, Plan, Session, SurrogateChoice, diagnose},
    types::{FailureKind, Job, JobId, Outcome},
};

fn prior() -> Prior {
    let normal = || Distribution::normal(0.0, 1.0).unwrap();
    Prior::independent([("x", normal()), ("y", normal())]).unwrap()
}

/// `N((1, ½); θ, 0.3²)` without its constant, and log Z of it.
fn log_likelihood(t: &[f64]) -> f64 {
    -0.5 * ((t[0] - 1.0).powi(2) + (t[1] - 0.5).powi(2)) / 0.09
}

fn truth() -> f64 {
    // Each coordinate: ∫ exp(−(x − m)²/2s²) N(x; 0, 1) dx = √(s²/(1 + s²)) exp(−m²/2(1 + s²)).
    [1.0_f64, 0.5].iter().map(|m| 0.5 * (0.09_f64 / 1.09).ln() - 0.5 * m * m / 1.09).sum()
}

fn measure(job: &Job) -> (f64, f64) {
    measure_by(job, (0.05, 1.5))
}

/// Every third value is good, the others are bad.
fn measure_by(job: &Job, (good, bad): (f64, f64)) -> (f64, f64) {
    let sd = if job.id.0.is_multiple_of(3) { good } else { bad };
    let noise = Stream::new(job.seed, Purpose::Experiment, 0).normals(1)[0];
    (log_likelihood(&job.theta) + sd * noise, sd)
}

fn told(job: &Job, with_sd: bool) -> Event {
    let (value, sd) = measure(job);
    Event::Told(Told { sd: with_sd.then_some(sd), ..Told::new(job.id, Outcome::Value(value)) })
}

fn run(settings: Settings, seed: u64, with_sd: bool, n: usize) -> Engine {
    let mut engine = Engine::new(prior(), settings, seed).unwrap();
    while engine.ledger().entries().len() < n {
        let asked = engine.ask(engine.next_batch().min(n - engine.ledger().entries().len())).unwrap();
        engine.apply(&Event::Asked(asked.clone())).unwrap();
        for job in &asked.jobs {
            engine.apply(&told(job, with_sd)).unwrap();
        }
    }
    engine
}

#[test]
fn heeding_the_sds_is_better_than_ignoring_them() {
    let (mut with, mut without, mut outside) = (0.0, 0.0, 0);
    for seed in 0..30 {
        let engine = run(Settings::default(), seed, true, 96);
        let estimate = engine.current().unwrap().estimate;
        let error = (estimate.log_z - truth()).abs();
        if seed < 10 {
            let ignorant = run(Settings::default(), seed, false, 96).current().unwrap().estimate;
            with += 0.1 * error;
            without += 0.1 * (ignorant.log_z - truth()).abs();
        }
        outside += usize::from(error > 2.0 * estimate.log_z_sd);
        assert!(error < 4.0 * estimate.log_z_sd, "{seed}: {estimate:?}, truth {}", truth());
    }
    assert!(with < 0.5 * without, "{with} {without}");
    // One or two of thirty beyond two bars are ordinary, five are not.
    assert!(outside <= 4, "{outside}");
}

#[test]
fn values_that_are_worth_little_do_little() {
    // Noise as large as the whole depth of the posterior: who believes the largest value, or leaves out the smallest, is off by nats.
    for seed in 0..4 {
        let mut engine = Engine::new(prior(), Settings::default(), seed).unwrap();
        while engine.ledger().entries().len() < 96 {
            let asked = engine.ask(engine.next_batch()).unwrap();
            engine.apply(&Event::Asked(asked.clone())).unwrap();
            for job in &asked.jobs {
                let (value, sd) = measure_by(job, (0.3, 10.0));
                let told = Told { sd: Some(sd), ..Told::new(job.id, Outcome::Value(value)) };
                engine.apply(&Event::Told(told)).unwrap();
            }
        }
        let estimate = engine.current().unwrap().estimate;
        let error = (estimate.log_z - truth()).abs();
        // A third of the values, with their sd of 0.3, know log Z to about 0.07.
        assert!(error < 0.3 && error < 3.0 * estimate.log_z_sd, "{seed}: {estimate:?}, truth {}", truth());
    }
}

#[test]
fn a_store_with_sds_resumes_to_the_same_bits() {
    let whole = run(Settings::default(), 4, true, 40);
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("store");
    let normal = Distribution::normal(0.0, 1.0).unwrap();
    let scalar = |name: &str| Parameter::Scalar { name: name.into(), prior: normal };
    let parameters = Parameters::new(vec![scalar("x"), scalar("y")]).unwrap();
    let problem = serde_json::to_value(&parameters).unwrap();
    let plan = Plan { prior: prior(), problem, settings: Settings::default(), seed: Some(4) };
    drop(Session::create(&dir, &plan).unwrap());
    // A process for every event.
    loop {
        let (mut session, _) = Session::open(&dir).unwrap();
        let asked = session.engine.ledger().entries().len();
        let pending = session.engine.ledger().pending().next().cloned();
        match pending {
            Some(job) => assert_eq!(session.keep(&told(&job, true)).unwrap(), Applied::Counted),
            None if asked == 40 => break,
            None => {
                let wanted = session.engine.next_batch().min(40 - asked);
                session.ask_batch(0, wanted, || false).unwrap();
            }
        }
    }
    let (mut session, _) = Session::open(&dir).unwrap();
    let bits = |engine: &Engine| {
        let estimate = engine.current().unwrap().estimate;
        (estimate.log_z.to_bits(), estimate.log_z_sd.to_bits())
    };
    assert_eq!(bits(&session.engine), bits(&whole));
    assert_eq!(session.engine.ledger().entries().last(), whole.ledger().entries().last());
    // Reminded of the belief instead of searching for it again, too.
    session.remember_belief().unwrap();
    drop(session);
    assert_eq!(bits(&Session::open(&dir).unwrap().0.engine), bits(&whole));
    let journal = std::fs::read_to_string(dir.join("journal.jsonl")).unwrap();
    assert_eq!(journal.matches("\"sd\":0.05").count() + journal.matches("\"sd\":1.5").count(), 40);
}

#[test]
fn without_an_sd_records_are_as_they_were() {
    let told = Event::Told(Told::new(JobId(3), Outcome::Value(-1.5)));
    let text = serde_json::to_string(&told).unwrap();
    assert_eq!(text, r#"{"kind":"told","id":3,"outcome":{"log_likelihood":-1.5},"attempt":1,"seconds":0.0}"#);
    let row = Row::new(vec![1.0], LogValue::new(-2.0).unwrap());
    assert_eq!(serde_json::to_string(&row).unwrap(), r#"{"theta":[1.0],"log_likelihood":-2.0}"#);
    let noisy = row.clone().with_sd(0.25).unwrap();
    let text = serde_json::to_string(&noisy).unwrap();
    assert_eq!(text, r#"{"theta":[1.0],"log_likelihood":-2.0,"sd":0.25}"#);
    assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), noisy);
    for bad in [-0.1, f64::NAN, f64::INFINITY] {
        let error = row.clone().with_sd(bad).unwrap_err().to_string();
        assert!(error.contains(&bad.to_string()) && error.contains("a finite number ≥ 0"), "{error}");
    }
}

/// A run with twelve points asked.
fn asked(settings: Settings) -> (Engine, Vec<Job>) {
    let mut engine = Engine::new(prior(), settings, 0).unwrap();
    let mut jobs = Vec::new();
    while jobs.len() < 12 {
        let asked = engine.ask(12 - jobs.len()).unwrap();
        engine.apply(&Event::Asked(asked.clone())).unwrap();
        for job in &asked.jobs {
            engine.apply(&told(job, true)).unwrap();
        }
        jobs.extend(asked.jobs);
    }
    (engine, jobs)
}

#[test]
fn replicates_are_averaged_where_their_noise_is_known() {
    let (mut engine, jobs) = asked(Settings::default());
    let id = jobs[3].id;
    let (first, sd) = measure(&jobs[3]);
    let mut tell = |value: f64, sd: Option<f64>| {
        engine.apply(&Event::Told(Told { sd, ..Told::new(id, Outcome::Value(value)) })).unwrap()
    };
    assert_eq!(tell(first, Some(sd)), Applied::Repeated);
    assert_eq!(tell(first + 0.5, Some(0.1)), Applied::Averaged);
    assert_eq!(tell(first + 0.5, Some(0.1)), Applied::Repeated);
    assert_eq!(tell(first - 0.25, Some(0.1)), Applied::Averaged);
    // Without a standard deviation, with another one for the same number, and zero beside what is not: flagged as ever.
    assert_eq!(tell(first - 1.0, None), Applied::Conflict);
    assert_eq!(tell(first, Some(0.2)), Applied::Conflict);
    assert_eq!(tell(f64::NEG_INFINITY, None), Applied::Conflict);
    let entry = engine.ledger().entry(id).unwrap();
    let values: Vec<_> = entry.values().collect();
    assert_eq!(values, [(first, Some(sd)), (first + 0.5, Some(0.1)), (first - 0.25, Some(0.1))]);
    assert_eq!(entry.conflicts.len(), 3);
    let repairs = engine.current().unwrap().believed.repairs;
    assert_eq!((repairs.merged_values, repairs.contradictory_nodes), (2, 0));

    // One standard deviation for all is as good.
    let (mut engine, jobs) = asked(Settings { noise_sd: Some(0.3), ..Settings::default() });
    let again = Event::Told(Told::new(jobs[4].id, Outcome::Value(measure(&jobs[4]).0 + 0.5)));
    assert_eq!(engine.apply(&again).unwrap(), Applied::Averaged);
    // Where nothing is known of noise, the first counts.
    let mut engine = Engine::new(prior(), Settings::default(), 0).unwrap();
    let batch = engine.ask(4).unwrap();
    engine.apply(&Event::Asked(batch)).unwrap();
    for (value, expected) in [(-1.0, Applied::Counted), (-1.5, Applied::Conflict)] {
        let told = Told::new(JobId(0), Outcome::Value(value));
        assert_eq!(engine.apply(&Event::Told(told)).unwrap(), expected);
    }
}

#[test]
fn a_replacement_takes_the_place_of_all_values_that_count() {
    let (mut engine, jobs) = asked(Settings::default());
    let id = jobs[3].id;
    let (first, sd) = measure(&jobs[3]);
    let answer = |value: f64, sd: f64| Told { sd: Some(sd), ..Told::new(id, Outcome::Value(value)) };
    let good = engine.current().unwrap().estimate;
    for wrong in [first + 40.0, first + 50.0] {
        assert_eq!(engine.apply(&Event::Told(answer(wrong, 0.1))).unwrap(), Applied::Averaged);
    }
    assert_ne!(engine.current().unwrap().estimate.log_z.to_bits(), good.log_z.to_bits());
    // The first value alone again: log Z is what it was, to the last bit.
    let alone = Event::Replaced(answer(first, sd));
    assert_eq!(engine.apply(&alone).unwrap(), Applied::Replaced);
    assert_eq!(engine.apply(&alone).unwrap(), Applied::Repeated);
    assert_eq!(engine.current().unwrap().estimate.log_z.to_bits(), good.log_z.to_bits());
    let entry = engine.ledger().entry(id).unwrap();
    assert_eq!(entry.values().collect::<Vec<_>>(), [(first, Some(sd))]);
    let kept: Vec<_> = entry.replaced.iter().map(|told| told.outcome.clone()).collect();
    assert_eq!(kept, [Outcome::Value(first + 40.0), Outcome::Value(first + 50.0)]);
    // What was taken back does not come back, whatever noise it is said to have.
    assert_eq!(engine.apply(&Event::Told(answer(first + 40.0, 0.1))).unwrap(), Applied::Repeated);
    assert_eq!(engine.apply(&Event::Told(answer(first + 40.0, 0.7))).unwrap(), Applied::Repeated);
    // A standard deviation can be put right alone; the old one is then known, a third one is a contradiction.
    assert_eq!(engine.apply(&Event::Replaced(answer(first, 2.0))).unwrap(), Applied::Replaced);
    assert_eq!(engine.ledger().entry(id).unwrap().values().collect::<Vec<_>>(), [(first, Some(2.0))]);
    assert_eq!(engine.apply(&Event::Told(answer(first, sd))).unwrap(), Applied::Repeated);
    assert_eq!(engine.apply(&Event::Told(answer(first, 3.0))).unwrap(), Applied::Conflict);
    // Further values are averaged with the new one.
    assert_eq!(engine.apply(&Event::Told(answer(first + 0.5, 0.1))).unwrap(), Applied::Averaged);
    assert!(
        engine.apply(&Event::Replaced(answer(first, -1.0))).unwrap_err().to_string().contains("a finite number ≥ 0")
    );
}

#[test]
fn imported_replicates_weigh_as_much_as_they_are_worth() {
    // The same values, once with many bad copies of one that is far off: they change log Z by less than their share of the bar.
    let grid = || (0..7).flat_map(|i| (0..7).map(move |j| [f64::from(i) * 0.35, f64::from(j) * 0.35 - 0.5]));
    let row = |t: [f64; 2], off: f64, sd: f64| {
        Row::new(t.to_vec(), LogValue::new(log_likelihood(&t) + off).unwrap()).with_sd(sd).unwrap()
    };
    let clean: Vec<Row> = grid().map(|t| row(t, 0.0, 0.01)).collect();
    let mut dirty = clean.clone();
    dirty.extend((1..=5).map(|k| row([1.05, 0.55], 3.0 + 0.1 * f64::from(k), 3.0)));
    let log_z = |rows: Vec<Row>| {
        let mut engine = Engine::new(prior(), Settings::default(), 0).unwrap();
        engine.apply(&Event::Imported { rows }).unwrap();
        let current = engine.current().unwrap();
        assert_eq!(current.believed.repairs.contradictory_nodes, 0);
        current.estimate
    };
    let (a, b) = (log_z(clean.clone()), log_z(dirty));
    assert!((a.log_z - truth()).abs() < 0.05, "{a:?}");
    // Five values of precision 1/9 beside one of 10⁴ move the node by 2·10⁻⁴.
    assert!((a.log_z - b.log_z).abs() < 1e-3, "{a:?} {b:?}");
    // The same number with another standard deviation is no second measurement.
    let mut engine = Engine::new(prior(), Settings::default(), 0).unwrap();
    assert_eq!(engine.apply(&Event::Imported { rows: clean.clone() }).unwrap(), Applied::Counted);
    assert_eq!(engine.apply(&Event::Imported { rows: clean.clone() }).unwrap(), Applied::Repeated);
    let other = clean[2].clone().with_sd(0.5).unwrap();
    let error = engine.apply(&Event::Imported { rows: vec![other.clone()] }).unwrap_err().to_string();
    assert!(error.contains("sd of imported point 0 is 0.5") && error.contains("0.01"), "{error}");
    // Nor in one table.
    let mut empty = Engine::new(prior(), Settings::default(), 0).unwrap();
    let error = empty.apply(&Event::Imported { rows: vec![clean[2].clone(), other] }).unwrap_err().to_string();
    assert!(error.contains("sd of imported point 1 is 0.5") && error.contains("0.01"), "{error}");
    let bare = Row { sd: Some(-1.0), ..clean[0].clone() };
    let error = engine.apply(&Event::Imported { rows: vec![bare] }).unwrap_err().to_string();
    assert!(error.contains("sd of imported point 0 is -1") && error.contains("a finite number ≥ 0"), "{error}");
}

#[test]
fn a_belief_that_knows_no_noise_says_so() {
    let settings = |surrogate| Settings { surrogate, ..Settings::default() };
    let finding = |surrogate| {
        let engine = run(settings(surrogate), 1, true, 32);
        let diagnosis = diagnose(&engine).unwrap();
        let found = diagnosis.findings.iter().find(|f| f.name == "given-noise").unwrap().clone();
        (found.level, found.sentence, diagnosis.verdict)
    };
    let (level, sentence, _) = finding(SurrogateChoice::Auto);
    assert!(level == Level::Fine && sentence.contains("32 values"), "{sentence}");
    let (level, sentence, verdict) = finding(SurrogateChoice::WsabiL);
    assert_eq!((level, verdict), (Level::DoNotTrust, Level::DoNotTrust));
    assert!(sentence.contains("surrogate = \"log\""), "{sentence}");
    // Without sds there is nothing to say.
    let diagnosis = diagnose(&run(settings(SurrogateChoice::Auto), 1, false, 32)).unwrap();
    assert!(diagnosis.findings.iter().all(|f| f.name != "given-noise"));
}

#[test]
fn closures_may_return_an_sd_and_zero_is_zero() {
    use batchquad::evaluate::{Evaluator, ThreadEvaluator};
    let mut evaluator = ThreadEvaluator::noisy(1, |t| (t[0], t[1])).unwrap();
    let mut evaluate = |theta: [f64; 2]| {
        evaluator.submit(Job { id: JobId(0), theta: theta.to_vec(), seed: 0 }).unwrap();
        let finished = evaluator.wait(std::time::Duration::from_secs(60)).unwrap().unwrap();
        (finished.outcome, finished.sd)
    };
    assert_eq!(evaluate([-1.5, 0.25]), (Outcome::Value(-1.5), Some(0.25)));
    assert_eq!(evaluate([-1.5, 0.0]), (Outcome::Value(-1.5), Some(0.0)));
    assert_eq!(evaluate([f64::NEG_INFINITY, 0.25]), (Outcome::Value(f64::NEG_INFINITY), None));
    assert_eq!(evaluate([f64::NEG_INFINITY, f64::NAN]), (Outcome::Value(f64::NEG_INFINITY), None));
    for bad in [-0.25, f64::NAN, f64::INFINITY] {
        let (outcome, sd) = evaluate([-1.5, bad]);
        let Outcome::Failed { kind, message } = outcome else { panic!("{outcome:?}") };
        assert_eq!((kind, sd), (FailureKind::Parse, None));
        assert!(message.contains(&format!("is {bad}")) && message.contains("a finite number ≥ 0"), "{message}");
    }
    let (outcome, sd) = evaluate([f64::NAN, 0.25]);
    assert!(matches!(outcome, Outcome::Failed { kind: FailureKind::Nan, .. }) && sd.is_none());
}

#[test]
fn noise_that_is_no_longer_given_is_no_longer_taken() {
    let normal = |name: &str| Parameter::Scalar { name: name.into(), prior: Distribution::normal(0.0, 1.0).unwrap() };
    let parameters = Parameters::new(vec![normal("x"), normal("y")]).unwrap();
    let start = vec![[("x".to_owned(), 1.0), ("y".to_owned(), 0.5)].into()];
    let plan = |noise_sd, start| Plan {
        prior: prior(),
        problem: serde_json::to_value(&parameters).unwrap(),
        settings: Settings { noise_sd, start, ..Settings::default() },
        seed: Some(1),
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    drop(Session::create(&path, &plan(Some(0.3), start)).unwrap());
    let (session, _) = Session::resume(&path, &plan(None, Vec::new())).unwrap();
    assert_eq!(session.engine.settings().noise_sd, None);
    assert_eq!(session.engine.settings().start.len(), 1, "where it began stays");
    drop(session);
    let (session, _) = Session::open(&path).unwrap();
    assert_eq!(session.engine.settings().noise_sd, None, "it is on record");
}
