//! The run as a fold of its events: pure asking, resuming after every event, any order of answers, honest endings.
#![cfg(feature = "run")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::f64::consts::TAU;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::{collections::VecDeque, time::Duration};

use batchquad::{
    Config, Engine, Error, Prior, Result, Settings,
    belief::Model,
    choose::BatchRule,
    evaluate::{Evaluator, Finished, Interrupt, ThreadEvaluator},
    integrate,
    interrupt::heeding,
    journal::{Event, Ledger, LogValue, Row, Told},
    prior::Distribution,
    run::{
        KnownKernel, Memory, OnFailure, Progress, Record, Reference, Run, Schedule, Status, Stop, SurrogateChoice,
        honest,
    },
    types::{FailureKind, Job, JobId, Outcome},
};

fn prior(d: usize) -> Prior {
    let names = ["a", "b", "c", "d"];
    Prior::independent(names[..d].iter().map(|n| (*n, Distribution::normal(0.0, 1.0).unwrap()))).unwrap()
}

fn bump(theta: &[f64]) -> f64 {
    -theta.iter().map(|t| (t - 0.5).powi(2)).sum::<f64>()
}

/// `∫ exp(−(t−½)²) N(t; 0, 1) dt = exp(−¼/3)/√3` in each dimension.
fn bump_truth(d: usize) -> f64 {
    d as f64 * (-0.25 / 3.0 - 0.5 * 3.0_f64.ln())
}

/// An evaluator in this thread that answers in the order it likes.
struct Fake<'a> {
    queue: VecDeque<Job>,
    workers: usize,
    backwards: bool,
    answer: &'a dyn Fn(&Job) -> Outcome,
}

impl<'a> Fake<'a> {
    fn new(workers: usize, backwards: bool, answer: &'a dyn Fn(&Job) -> Outcome) -> Self {
        Self { queue: VecDeque::new(), workers, backwards, answer }
    }
}

impl Evaluator for Fake<'_> {
    fn submit(&mut self, job: Job) -> Result<()> {
        self.queue.push_back(job);
        Ok(())
    }
    fn wait(&mut self, _: Duration) -> Result<Option<Finished>> {
        let job = if self.backwards { self.queue.pop_back() } else { self.queue.pop_front() };
        Ok(job.map(|job| Finished {
            id: job.id,
            outcome: (self.answer)(&job),
            sd: None,
            attempts: 1,
            retried: Vec::new(),
            seconds: 0.0,
            worker: 0,
            stderr_tail: String::new(),
        }))
    }
    fn workers(&self) -> usize {
        self.workers
    }
    fn in_flight(&self) -> usize {
        self.queue.len()
    }
    fn interrupt(&self) -> Interrupt {
        Interrupt::default()
    }
    fn shutdown(&mut self) {}
}

/// Keeps every event.
#[derive(Default)]
struct Tape(Vec<Event>);

impl Record for Tape {
    fn append(&mut self, event: &Event) -> Result<()> {
        self.0.push(event.clone());
        Ok(())
    }
}

fn value(job: &Job) -> Outcome {
    Outcome::Value(bump(&job.theta))
}

/// A record on a disk that is full.
struct Full;

impl Record for Full {
    fn append(&mut self, _: &Event) -> Result<()> {
        Err(Error::io("journal.jsonl", "append to", "no space left on device"))
    }
}

#[test]
fn only_what_is_news_is_recorded_and_only_what_is_recorded_counts() {
    let told = |id: u64, value: f64| Event::Told(Told::new(JobId(id), Outcome::Value(value)));
    let mut engine = Engine::new(prior(1), Settings::default(), 1).unwrap();
    let mut tape = Tape::default();
    let asked = Event::Asked(engine.ask(2).unwrap());
    engine.keep(&mut tape, &asked).unwrap();
    for _ in 0..3 {
        engine.keep(&mut tape, &told(0, -2.0)).unwrap();
        assert!(engine.keep(&mut tape, &told(17, 0.0)).is_err());
        assert!(engine.keep(&mut tape, &told(1, f64::NAN)).is_err());
    }
    assert_eq!(tape.0, [asked, told(0, -2.0)]);
    let before = engine.ledger().clone();
    assert!(engine.keep(&mut Full, &told(1, -1.0)).is_err());
    assert_eq!(*engine.ledger(), before);
}

fn finish(engine: &mut Engine, evaluator: &mut dyn Evaluator, record: &mut dyn Record) -> Stop {
    let mut run = Run::new(engine, evaluator, record).unwrap();
    loop {
        if let Progress::Done(stop) = run.advance(Duration::from_secs(1)).unwrap() {
            return stop;
        }
    }
}

fn small() -> Settings {
    Settings { batch: 4, max_evaluations: 26, ..Settings::default() }
}

/// A job's id, point and value.
type Bits = (u64, Vec<u64>, Option<u64>);

/// Everything that a run knows, as bits; clocks left out.
fn bits(engine: &Engine) -> (u64, u64, Vec<Bits>) {
    let e = engine.current().unwrap().estimate;
    let jobs = engine
        .ledger()
        .entries()
        .map(|e| (e.job.id.0, e.job.theta.iter().map(|t| t.to_bits()).collect(), e.value().map(f64::to_bits)))
        .collect();
    (e.log_z.to_bits(), e.log_z_sd.to_bits(), jobs)
}

#[test]
fn asking_changes_nothing_and_can_be_done_twice() {
    let mut engine = Engine::new(prior(2), small(), 7).unwrap();
    finish(&mut engine, &mut Fake::new(2, false, &value), &mut Memory);
    let before = bits(&engine);
    let (a, b) = (engine.ask(5).unwrap(), engine.ask(5).unwrap());
    assert_eq!(a, b);
    assert_eq!(a.jobs.len(), 5);
    assert_eq!(before, bits(&engine));
    assert!(engine.ask(0).is_err());
    assert!((engine.current().unwrap().estimate.log_z - bump_truth(2)).abs() < 0.02);
}

#[test]
fn a_run_cut_after_any_event_ends_in_the_same_bits() {
    for rule in [BatchRule::KrigingBeliever, BatchRule::LocalPenalisation] {
        let settings = Settings { batch_rule: rule, ..small() };
        let mut whole = Engine::new(prior(2), settings, 3).unwrap();
        let mut tape = Tape::default();
        finish(&mut whole, &mut Fake::new(2, false, &value), &mut tape);
        let expected = bits(&whole);
        for cut in 0..=tape.0.len() {
            let mut ledger = Ledger::new(whole.ledger().header().clone());
            for event in &tape.0[..cut] {
                // Through JSON, as a journal would.
                let written = serde_json::to_string(event).unwrap();
                ledger.apply(&serde_json::from_str(&written).unwrap()).unwrap();
            }
            let mut resumed = Engine::from_ledger(prior(2), ledger).unwrap();
            finish(&mut resumed, &mut Fake::new(2, true, &value), &mut Memory);
            assert_eq!(bits(&resumed), expected, "cut after event {cut}");
            assert_eq!(resumed.rounds(), whole.rounds(), "cut after event {cut}");
        }
    }
}

#[test]
fn a_recalled_belief_gives_the_same_bits_and_counts_for_its_own_values_only() {
    let mut tape = Tape::default();
    let mut whole = Engine::new(prior(2), small(), 5).unwrap();
    finish(&mut whole, &mut Fake::new(2, false, &value), &mut tape);
    let expected = bits(&whole);
    let believed = whole.current().unwrap().believed.clone();
    let again = |events: &[Event]| {
        let mut ledger = Ledger::new(whole.ledger().header().clone());
        for event in events {
            ledger.apply(event).unwrap();
        }
        Engine::from_ledger(prior(2), ledger).unwrap()
    };
    let mut reminded = again(&tape.0);
    reminded.remind(believed.clone());
    assert_eq!(bits(&reminded), expected);
    assert_eq!(reminded.current().unwrap().believed, believed);
    // With a value fewer it is about something else, and leaves no trace.
    let fewer = &tape.0[..tape.0.len() - 1];
    let (plain, mut reminded) = (again(fewer), again(fewer));
    reminded.remind(believed);
    assert_eq!(bits(&reminded), bits(&plain));
    assert_ne!(bits(&plain).0, expected.0);
}

#[test]
fn neither_order_nor_threads_nor_workers_change_a_bit() {
    let run = |workers: usize, threads: usize, backwards: Option<bool>| {
        let mut engine = Engine::new(prior(3), small(), 11).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        match backwards {
            Some(backwards) => {
                pool.scope(|_| finish(&mut engine, &mut Fake::new(workers, backwards, &value), &mut Memory));
            }
            None => {
                let mut evaluator = ThreadEvaluator::new(workers, bump).unwrap();
                finish(&mut engine, &mut evaluator, &mut Memory);
            }
        }
        bits(&engine)
    };
    let expected = run(1, 1, Some(false));
    assert_eq!(run(4, 1, Some(true)), expected);
    assert_eq!(run(2, 2, Some(true)), expected);
    assert_eq!(run(3, 2, None), expected);
}

#[test]
fn running_points_are_not_asked_again() {
    let settings = Settings { schedule: Schedule::Async, max_evaluations: 40, ..Settings::default() };
    let mut engine = Engine::new(prior(2), settings, 5).unwrap();
    let stop = finish(&mut engine, &mut Fake::new(5, true, &value), &mut Memory);
    assert_eq!(stop.status, Status::Budget);
    assert_eq!(engine.ledger().entries().len(), 40);
    let thetas: Vec<&[f64]> = engine.ledger().entries().map(|e| e.job.theta.as_slice()).collect();
    for i in 0..thetas.len() {
        for j in 0..i {
            let square: f64 = thetas[i].iter().zip(thetas[j]).map(|(a, b)| (a - b).powi(2)).sum();
            assert!(square > 1e-8, "{i} {j}");
        }
    }
    assert!((engine.current().unwrap().estimate.log_z - bump_truth(2)).abs() < 0.02);
}

#[test]
fn an_asynchronous_run_is_what_its_record_says_however_far_ahead_points_were_chosen() {
    // Evaluations that take no time at all: as much is chosen ahead as may be, and hyperparameters are searched beside it.
    let settings = Settings { schedule: Schedule::Async, max_evaluations: 120, ..Settings::default() };
    let mut engine = Engine::new(prior(2), settings.clone(), 5).unwrap();
    let mut evaluator = ThreadEvaluator::new(6, bump).unwrap();
    let mut tape = Tape::default();
    let stop = finish(&mut engine, &mut evaluator, &mut tape);
    assert_eq!((stop.status, engine.ledger().entries().len()), (Status::Budget, 120));
    assert!((engine.current().unwrap().estimate.log_z - bump_truth(2)).abs() < 0.02);
    let mut again = Engine::new(prior(2), settings, 5).unwrap();
    let mut known = 0.0;
    for event in &tape.0 {
        if let Event::Asked(asked) = event {
            // Points ahead of the workers are at most half of the values known then, as batches are.
            let pending = again.ledger().pending().count() + asked.jobs.len();
            assert!(
                pending <= 6.max(asked.jobs.len().min(12)) + (0.5 * known) as usize,
                "{pending} with {known} values"
            );
        }
        again.apply(event).unwrap();
        known += f64::from(matches!(event, Event::Told(_)));
    }
    assert_eq!(again.ledger(), engine.ledger());
    assert_eq!(bits(&again), bits(&engine));
}

#[test]
fn several_events_count_together_or_not_at_all() {
    let told = |id: u64, value: f64| Event::Told(Told::new(JobId(id), Outcome::Value(value)));
    let mut engine = Engine::new(prior(1), Settings::default(), 1).unwrap();
    let asked = engine.ask(4).unwrap();
    engine.apply(&Event::Asked(asked)).unwrap();
    engine.apply(&told(0, -1.0)).unwrap();
    let before = engine.ledger().clone();
    assert!(engine.keep_all(&mut Full, vec![told(1, -1.0), told(2, -2.0)]).is_err());
    assert!(engine.keep_all(&mut Memory, vec![told(1, -1.0), told(2, f64::NAN)]).is_err());
    assert!(engine.keep_all(&mut Memory, vec![told(1, -1.0), told(17, -2.0)]).is_err());
    assert_eq!(*engine.ledger(), before);
    let mut tape = Tape::default();
    engine.keep_all(&mut tape, vec![told(0, -1.0), told(1, -1.5), told(3, -2.5)]).unwrap();
    assert_eq!(tape.0, [told(1, -1.5), told(3, -2.5)], "what is known is not recorded again");
    assert_eq!(engine.ledger().pending().count(), 1);
}

#[test]
fn failed_evaluations_are_excluded_counted_and_not_repeated() {
    // A third of the prior fails.
    let flaky = |job: &Job| {
        if job.theta[0] > 0.43 && job.theta[1] > 0.0 {
            Outcome::Failed { kind: FailureKind::Nan, message: "no number".into() }
        } else {
            value(job)
        }
    };
    let mut engine = Engine::new(prior(2), Settings { max_evaluations: 60, ..small() }, 1).unwrap();
    let stop = finish(&mut engine, &mut Fake::new(2, false, &flaky), &mut Memory);
    assert_eq!(stop.status, Status::Budget);
    let failed = engine.ledger().entries().filter(|e| e.value().is_none()).count();
    assert!(failed > 3 && failed < 40, "{failed}");
    let mass = engine.excluded_mass().unwrap().unwrap();
    assert!(mass > 0.02 && mass < 0.5, "{mass}");
    assert!(engine.current().unwrap().estimate.log_z.is_finite());

    // The user asserts that the likelihood is zero there: the truth is then the integral over the rest.
    let zero = Settings { on_failure: OnFailure::AsZero, max_evaluations: 60, ..small() };
    let mut engine = Engine::new(prior(2), zero, 1).unwrap();
    finish(&mut engine, &mut Fake::new(2, false, &flaky), &mut Memory);
    assert_eq!(engine.excluded_mass().unwrap(), None);
    assert_eq!(engine.current().unwrap().believed.values, 60);

    let abort = Settings { on_failure: OnFailure::Abort, max_evaluations: 60, ..small() };
    let mut engine = Engine::new(prior(2), abort, 1).unwrap();
    let stop = finish(&mut engine, &mut Fake::new(2, false, &flaky), &mut Memory);
    assert_eq!(stop.status, Status::Failed);
    assert!(stop.reason.contains("no number"), "{}", stop.reason);
}

#[test]
fn without_a_single_value_there_is_no_evidence() {
    let fail = |_: &Job| Outcome::Failed { kind: FailureKind::Exit, message: "exit code 1".into() };
    let zero = |_: &Job| Outcome::Value(f64::NEG_INFINITY);
    // A likelihood that only fails is given up when the initial design has failed; zeros are values, and the budget is spent.
    for (answer, asked) in [(&fail as &dyn Fn(&Job) -> Outcome, 8), (&zero, 26)] {
        let mut engine = Engine::new(prior(2), small(), 1).unwrap();
        let stop = finish(&mut engine, &mut Fake::new(2, false, answer), &mut Memory);
        assert_eq!(stop.status, Status::Failed);
        assert_eq!(engine.ledger().entries().len(), asked);
        assert!(matches!(engine.current(), Err(Error::NoFiniteValue { .. })));
    }
    let error = integrate(|_| f64::NAN, prior(1), Config { settings: small(), ..Config::default() }).unwrap_err();
    assert!(matches!(error, Error::NoFiniteValue { .. }));
}

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
fn every_stopping_rule_is_named() {
    let end = |settings: Settings| {
        let mut engine = Engine::new(prior(1), settings, 2).unwrap();
        finish(&mut engine, &mut Fake::new(2, false, &value), &mut Memory)
    };
    let long = Settings { batch: 2, max_evaluations: 200, ..Settings::default() };
    let stop = end(Settings { target_sd: Some(1e-3), ..long.clone() });
    assert_eq!(stop.status, Status::Converged);
    assert!(stop.reason.contains("target_sd"), "{}", stop.reason);
    let stop = end(Settings { max_batches: Some(3), ..long.clone() });
    assert!(stop.status == Status::Budget && stop.reason.contains("max_batches"));
    let stop = end(Settings { max_seconds: Some(1e-9), ..long.clone() });
    assert!(stop.status == Status::Failed && stop.reason.contains("max_seconds"), "{stop:?}");
    let stop = end(Settings { max_evaluations: 12, ..long.clone() });
    assert!(stop.status == Status::Budget && stop.reason.contains("max_evaluations"));
    let stop = end(Settings { stall: Some(0.05), target_sd: Some(1e-300), ..long.clone() });
    assert!(stop.status == Status::Stalled && stop.reason.contains("stall"), "{stop:?}");
    for bad in [
        Settings { batch: 0, ..long.clone() },
        Settings { target_sd: Some(-1.0), ..long.clone() },
        Settings { max_seconds: Some(f64::NAN), ..long.clone() },
        Settings { initial_size: Some(0), ..long },
    ] {
        assert!(matches!(Engine::new(prior(1), bad, 0), Err(Error::Invalid { .. })));
    }
}

#[test]
fn a_batch_does_not_outgrow_what_is_known() {
    let sizes = |growth: f64| -> Vec<usize> {
        let settings = Settings { batch: 16, batch_growth: growth, max_evaluations: 60, ..Settings::default() };
        let mut engine = Engine::new(prior(2), settings, 2).unwrap();
        finish(&mut engine, &mut Fake::new(2, false, &value), &mut Memory);
        engine.ledger().batches().iter().map(|b| b.jobs.len()).collect()
    };
    assert_eq!(sizes(0.5), [8, 4, 6, 9, 13, 16, 4]);
    assert_eq!(sizes(1e9), [8, 16, 16, 16, 4]);
    assert!(Engine::new(prior(2), Settings { batch_growth: 0.0, ..Settings::default() }, 2).is_err());
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

#[test]
fn a_likelihood_that_only_fails_is_given_up() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let prior = Prior::independent([("x", Distribution::normal(0.0, 1.0).unwrap())]).unwrap();
    let fails = move |_: &[f64]| {
        counted.fetch_add(1, Ordering::Relaxed);
        f64::NAN
    };
    let config = Config { settings: Settings { max_evaluations: 1000, ..Settings::default() }, workers: 2, seed: 0 };
    assert!(integrate(fails, prior, config).is_err());
    // The initial design of one dimension, which is one batch.
    assert_eq!(calls.load(Ordering::Relaxed), 8);
}

#[test]
fn an_interrupt_during_the_last_estimate_is_no_failure() {
    let mut engine = Engine::new(prior(1), Settings::default(), 1).unwrap();
    let asked = engine.ask(8).unwrap();
    engine.apply(&Event::Asked(asked.clone())).unwrap();
    for job in &asked.jobs {
        engine.apply(&Event::Told(Told::new(job.id, Outcome::Value(-job.theta[0] * job.theta[0])))).unwrap();
    }
    let budget = || Stop { status: Status::Budget, reason: "enough".into() };
    let interrupt = Interrupt::default();
    interrupt.raise();
    heeding(&interrupt, || {
        assert_eq!(honest(&engine, budget()).status, Status::Interrupted);
        assert!(engine.ask(1).is_err() && engine.known().is_none());
    });
    assert_eq!(honest(&engine, budget()), budget(), "it goes on where it was");
    heeding(&interrupt, || assert_eq!(honest(&engine, budget()), budget(), "what is known stays known"));
}
