//! One state however the events came: asked twice, cut anywhere, answered in any order.

use batchquad::{
    Engine, Settings,
    choose::BatchRule,
    evaluate::ThreadEvaluator,
    journal::{Event, Ledger, Told},
    run::{Memory, Schedule, Status, SurrogateChoice},
    types::{JobId, Outcome},
};

use crate::common::{Fake, Full, Tape, bits, bump, bump_truth, finish, prior, small, value};

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
        cut_everywhere(&Settings { batch_rule: rule, ..small() }, 0);
    }
}

/// From 41 values on, single points of the square root's belief keep their lengthscales for a while.
#[test]
fn lengthscales_that_were_kept_are_kept_in_a_resumed_run() {
    let settings = Settings { surrogate: SurrogateChoice::WsabiL, batch: 1, max_evaluations: 48, ..small() };
    let whole = cut_everywhere(&settings, 76);
    let lengthscales: Vec<Vec<f64>> = whole.rounds().into_iter().map(|round| round.belief.lengthscales).collect();
    let kept = lengthscales.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!((3..=7).contains(&kept), "{kept}: {lengthscales:?}");
}

/// Runs to the end, and again from after each event from `first` on.
fn cut_everywhere(settings: &Settings, first: usize) -> Engine {
    let mut whole = Engine::new(prior(2), settings.clone(), 3).unwrap();
    let mut tape = Tape::default();
    finish(&mut whole, &mut Fake::new(2, false, &value), &mut tape);
    let expected = bits(&whole);
    assert!(first < tape.0.len());
    for cut in first..=tape.0.len() {
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
    whole
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
