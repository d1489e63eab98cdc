//! Evaluated at least once, counted exactly once.

use crate::common::*;
use batchquad::Error;
use batchquad::journal::{Applied, Event, Ledger, LogValue, Row, Store, Told, Topic};
use batchquad::types::{JobId, Outcome};
use proptest::prelude::*;
use serde_json::json;

fn ledger(events: &[Event]) -> Ledger {
    let mut ledger = Ledger::new(header());
    for event in events {
        ledger.apply(event).unwrap();
    }
    ledger
}

fn batch() -> Event {
    asked((0..6).map(|id| job(id, [id as f64, 0.5])).collect())
}

#[test]
fn the_same_value_again_changes_nothing() {
    let once = ledger(&[batch(), value(2, -1.0)]);
    let mut twice = once.clone();
    assert_eq!(twice.apply(&value(2, -1.0)).unwrap(), Applied::Repeated);
    assert_eq!(twice.apply(&Event::Told(Told::new(JobId(2), Outcome::Value(-1.0)))).unwrap(), Applied::Repeated);
    assert_eq!(once, twice);
    assert_eq!(once.pending().map(|job| job.id.0).collect::<Vec<_>>(), [0, 1, 3, 4, 5]);
}

#[test]
fn a_different_value_is_flagged_and_the_first_counts() {
    let mut ledger = ledger(&[batch(), value(2, -1.0)]);
    assert_eq!(ledger.apply(&value(2, f64::NEG_INFINITY)).unwrap(), Applied::Conflict);
    assert_eq!(ledger.apply(&value(2, f64::NEG_INFINITY)).unwrap(), Applied::Repeated);
    assert_eq!(ledger.values().map(|(job, v)| (job.id.0, v)).collect::<Vec<_>>(), [(2, -1.0)]);
    let flagged: Vec<_> = ledger.conflicts().collect();
    assert_eq!(flagged.len(), 1);
    assert_eq!(flagged[0].conflicts[0].outcome, Outcome::Value(f64::NEG_INFINITY));
}

#[test]
fn a_replacement_counts_and_what_it_replaces_is_kept() {
    let replaced = |id: u64, outcome: Outcome| Event::Replaced(Told::new(JobId(id), outcome));
    let mut ledger = ledger(&[batch(), value(2, -1.0), value(2, -3.0)]);
    assert_eq!(ledger.conflicts().count(), 1);
    assert_eq!(ledger.apply(&replaced(2, Outcome::Value(-3.0))).unwrap(), Applied::Replaced);
    assert_eq!(ledger.apply(&replaced(2, Outcome::Value(-3.0))).unwrap(), Applied::Repeated);
    assert_eq!(ledger.values().map(|(job, v)| (job.id.0, v)).collect::<Vec<_>>(), [(2, -3.0)]);
    // The conflict is decided, and the first value does not come back by itself.
    assert_eq!((ledger.conflicts().count(), ledger.replaced().count()), (0, 1));
    assert_eq!(ledger.apply(&value(2, -1.0)).unwrap(), Applied::Repeated);
    assert_eq!(ledger.entry(JobId(2)).unwrap().replaced[0].outcome, Outcome::Value(-1.0));
    // A value can be taken back altogether; a new one counts, the old one does not.
    let Event::Told(Told { outcome: nothing, .. }) = failed(2, 1, "the wrong file") else { panic!() };
    assert_eq!(ledger.apply(&replaced(2, nothing)).unwrap(), Applied::Replaced);
    assert_eq!((ledger.values().count(), ledger.pending().count()), (0, 5));
    assert_eq!(ledger.apply(&value(2, -3.0)).unwrap(), Applied::Repeated);
    assert_eq!(ledger.apply(&value(2, -4.0)).unwrap(), Applied::Replaced);
    assert_eq!(ledger.entry(JobId(2)).unwrap().value(), Some(-4.0));
    // For a job without an answer it is an answer; for a job that was never asked it is refused, and so is NaN.
    assert_eq!(ledger.apply(&replaced(0, Outcome::Value(1.0))).unwrap(), Applied::Counted);
    assert!(matches!(ledger.apply(&replaced(9, Outcome::Value(1.0))), Err(Error::UnknownJob { .. })));
    assert!(matches!(ledger.apply(&replaced(0, Outcome::Value(f64::NAN))), Err(Error::NonFiniteValue { .. })));
}

#[test]
fn an_unknown_job_is_refused() {
    let mut ledger = ledger(&[batch()]);
    let before = ledger.clone();
    for event in [value(6, 0.0), failed(99, 1, "?"), Event::LeaseExpired { id: JobId(u64::MAX) }] {
        assert!(matches!(ledger.apply(&event), Err(Error::UnknownJob { .. })));
    }
    assert_eq!(ledger, before);
}

#[test]
fn a_late_answer_and_a_value_after_a_failure_count() {
    let mut ledger = ledger(&[batch(), Event::LeaseExpired { id: JobId(0) }, failed(1, 3, "no answer")]);
    assert_eq!(ledger.apply(&value(0, 1.0)).unwrap(), Applied::Counted);
    assert_eq!(ledger.apply(&value(1, 2.0)).unwrap(), Applied::Replaced);
    let entry = ledger.entry(JobId(1)).unwrap();
    assert_eq!((entry.value(), entry.failures.len(), entry.attempts), (Some(2.0), 1, 3));
    assert_eq!(ledger.conflicts().count(), 0, "a failure is no other value");
}

#[test]
fn a_value_counts_whichever_side_of_a_failure_it_arrives() {
    let (v, f) = (value(4, 7.0), failed(4, 1, "lost"));
    assert_eq!(ledger(&[batch(), v.clone(), f.clone()]), ledger(&[batch(), f, v]));
}

#[test]
fn what_is_not_a_point_a_value_or_a_new_id_is_refused() {
    let mut ledger = ledger(&[batch()]);
    let before = ledger.clone();
    for bad in [f64::NAN, f64::INFINITY] {
        let error = ledger.apply(&value(3, bad)).unwrap_err();
        assert!(matches!(&error, Error::NonFiniteValue { point, .. } if point == &[3.0, 0.5]), "{error}");
    }
    let old_id = asked(vec![job(5, [0.0, 0.0])]);
    let twice = asked(vec![job(6, [0.0, 0.0]), job(6, [0.0, 0.0])]);
    assert!(matches!(ledger.apply(&old_id), Err(Error::Invalid { .. })));
    assert!(matches!(ledger.apply(&twice), Err(Error::Invalid { .. })));
    assert!(matches!(ledger.apply(&asked(vec![job(u64::MAX, [0.0, 0.0])])), Err(Error::Invalid { .. })));
    assert!(matches!(ledger.apply(&asked(vec![job(6, [0.0, f64::NAN])])), Err(Error::NonFinitePoint { .. })));
    let row = Row { theta: vec![1.0], log_likelihood: LogValue::new(0.0).unwrap(), sd: None };
    assert!(matches!(ledger.apply(&Event::Imported { rows: vec![row] }), Err(Error::Length { .. })));
    assert_eq!(ledger, before);
}

#[test]
fn the_same_table_imported_twice_counts_once() {
    let rows: Vec<Row> = (0..3)
        .map(|i| Row { theta: vec![f64::from(i), 0.0], log_likelihood: LogValue::new(-1.0).unwrap(), sd: None })
        .collect();
    let mut ledger = ledger(&[Event::Imported { rows: rows[..2].to_vec() }]);
    assert_eq!(ledger.apply(&Event::Imported { rows: rows[..2].to_vec() }).unwrap(), Applied::Repeated);
    assert_eq!(ledger.apply(&Event::Imported { rows: rows.clone() }).unwrap(), Applied::Counted);
    assert_eq!(ledger.imported(), rows);
}

#[test]
fn settings_are_laid_over_those_of_the_header() {
    let ledger = ledger(&events());
    assert_eq!(ledger.settings()["max_evaluations"], 200);
    assert_eq!(ledger.header().settings()["max_evaluations"], 100);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_answers_leaves_no_trace(order in Just((0..6_u64).collect::<Vec<_>>()).prop_shuffle()) {
        let answer = |id: u64| if id % 3 == 2 { failed(id, 1, "no") } else { value(id, -(id as f64) / 3.0) };
        let run = |ids: &[u64]| {
            let mut events = vec![batch()];
            events.extend(ids.iter().map(|id| answer(*id)));
            ledger(&events)
        };
        let sorted = run(&[0, 1, 2, 3, 4, 5]);
        let shuffled = run(&order);
        prop_assert_eq!(&shuffled, &sorted);
        prop_assert_eq!(format!("{shuffled:?}"), format!("{sorted:?}"));
    }

    #[test]
    fn every_double_reads_back_to_its_bits(bits in prop::collection::vec(any::<u64>(), 3)) {
        let numbers: Vec<f64> = bits.into_iter().map(f64::from_bits).filter(|v| v.is_finite()).collect();
        prop_assume!(numbers.len() == 3);
        prop_assert_eq!(round_trip(numbers[0], numbers[1], numbers[2]), [numbers[0], numbers[1], numbers[2]].map(f64::to_bits));
    }
}

fn round_trip(a: f64, b: f64, v: f64) -> [u64; 3] {
    let (_scratch, dir) = scratch();
    let mut store = Store::create(&dir, &header()).unwrap();
    store.append(&asked(vec![job(0, [a, b])])).unwrap();
    store.append(&value(0, v)).unwrap();
    let ledger = Store::read(&dir).unwrap().ledger().unwrap();
    let (job, value) = ledger.values().next().unwrap();
    [job.theta[0].to_bits(), job.theta[1].to_bits(), value.to_bits()]
}

#[test]
fn extreme_doubles_read_back_to_their_bits() {
    let extremes = [0.0, -0.0, 5e-324, -5e-324, f64::MIN_POSITIVE, f64::MAX, f64::MIN, f64::EPSILON, 0.1 + 0.2, 1e23];
    for a in extremes {
        assert_eq!(round_trip(a, -a, a), [a, -a, a].map(f64::to_bits));
    }
    assert_eq!(round_trip(1.0, 2.0, f64::NEG_INFINITY)[2], f64::NEG_INFINITY.to_bits());
}

#[test]
fn remarks_have_a_topic_also_where_the_first_release_wrote_notes() {
    let mut ledger = Ledger::new(header());
    let note = |text: &str| Event::Note { text: text.into() };
    let blob = r#"{"blob": {"id": 1, "value": NaN}}"#;
    for text in ["a note", "known log Z: -2.5", r#"likelihood: ["./run"]"#, blob, "belief: no JSON"] {
        ledger.apply(&note(text)).unwrap();
    }
    assert_eq!(ledger.notes(), ["a note", "belief: no JSON"]);
    assert_eq!(ledger.remark(Topic::KnownLogZ), Some(&json!(-2.5)));
    assert_eq!(ledger.remark(Topic::Likelihood), Some(&json!(["./run"])));
    assert_eq!(ledger.remark(Topic::Blob), Some(&json!(blob)));
    ledger.apply(&Event::Remark { topic: Topic::KnownLogZ, value: json!(-2.0) }).unwrap();
    assert_eq!(ledger.remarks(Topic::KnownLogZ).collect::<Vec<_>>(), [&json!(-2.5), &json!(-2.0)]);
    assert_eq!((ledger.remark(Topic::KnownLogZ), ledger.remark(Topic::Belief)), (Some(&json!(-2.0)), None));
}
