//! A crash or a failure at every write, and a cut at every byte.

use crate::common::*;
use batchquad::Error;
use batchquad::journal::{Event, Ledger, Store};
use std::path::Path;

fn state_of(events: &[Event]) -> Ledger {
    let mut ledger = Ledger::new(header());
    for event in events {
        ledger.apply(event).unwrap();
    }
    ledger
}

/// Writes the run for as long as the disk lets it; returns how many events were acknowledged.
fn run_until_fault(dir: &Path, plan: &std::sync::Arc<Plan>) -> Option<usize> {
    let mut store = Store::create_through(dir, &header(), &plan.wrap()).ok()?;
    let events = events();
    for (acknowledged, event) in events.iter().enumerate() {
        if let Err(error) = store.append(event) {
            assert!(matches!(&error, Error::Io { reason, .. } if reason.contains("injected")), "{error}");
            assert!(error.to_string().contains("journal.jsonl"), "{error}");
            assert!(matches!(store.append(event), Err(Error::StoreFailed { .. })), "a failed store takes no more");
            return Some(acknowledged);
        }
    }
    Some(events.len())
}

/// Carries the run on to its end, as after a restart.
fn resume(dir: &Path) -> usize {
    if !Store::exists(dir) {
        Store::create(dir, &header()).unwrap();
    }
    let (mut store, replay) = Store::open(dir).unwrap();
    let found = replay.records.len();
    assert_eq!(only(&replay.records), events()[..found]);
    for event in &events()[found..] {
        store.append(event).unwrap();
    }
    drop(store);
    let (_store, replay) = Store::open(dir).unwrap();
    assert_eq!(replay.torn, None);
    assert_eq!(replay.ledger().unwrap(), state_of(&events()), "the same state as a run that was never stopped");
    found
}

#[test]
fn a_crash_at_any_operation_loses_nothing_acknowledged() {
    let mut crashes = 0;
    for kills in [true, false] {
        for fault in [Fault::Nothing, Fault::Half, Fault::All] {
            for at in 0.. {
                let (_scratch, dir) = scratch();
                let plan = Plan::new(at, fault, kills);
                let acknowledged = run_until_fault(&dir, &plan);
                if !plan.fired() {
                    break;
                }
                crashes += 1;
                let found = resume(&dir);
                let acknowledged = acknowledged.unwrap_or(0);
                // A record may have reached the disk although nobody was told so; when the store could clean up, it has not.
                assert!(found == acknowledged || (kills && found == acknowledged + 1), "{at} {fault:?} {found}");
            }
        }
    }
    // Two operations (write, flush) for the header and each event, three depths, twice.
    assert_eq!(crashes, 2 * 3 * 2 * (events().len() + 1));
}

#[test]
fn a_crash_during_the_repair_is_repaired_by_the_next_opening() {
    let bytes = whole();
    let torn = &bytes[..bytes.len() - 5];
    let unterminated = &bytes[..bytes.len() - 1];
    for (bytes, records) in [(torn, events().len() - 1), (unterminated, events().len())] {
        for fault in [Fault::Nothing, Fault::Half, Fault::All] {
            for at in 0..2 {
                let (_scratch, dir) = store_of(bytes);
                let plan = Plan::new(at, fault, true);
                let error = Store::open_through(&dir, &plan.wrap()).unwrap_err();
                assert!(matches!(&error, Error::Io { action, .. } if action == "repair"), "{error}");
                assert_eq!(resume(&dir), records);
            }
        }
    }
}

#[test]
fn a_cut_at_every_byte_of_the_last_three_records_is_repaired() {
    let bytes = whole();
    let ends: Vec<usize> = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1).collect();
    for cut in ends[ends.len() - 4]..bytes.len() {
        let (_scratch, dir) = store_of(&bytes[..cut]);
        // A record without its newline is whole.
        let records = ends.iter().filter(|end| **end <= cut + 1).count() - 1;
        let good = if ends.contains(&(cut + 1)) { cut } else { ends[records] };

        let seen = Store::read(&dir).unwrap();
        assert_eq!(seen.records.len(), records);
        assert_eq!(bytes_of(&dir), &bytes[..cut], "reading repairs nothing");

        let (mut store, replay) = Store::open(&dir).unwrap();
        assert_eq!(only(&replay.records), events()[..records]);
        match replay.torn {
            None => assert_eq!(good, cut),
            Some(torn) => {
                assert_eq!(torn.bytes as usize, cut - good);
                let kept = torn.kept.unwrap();
                assert_eq!(kept.file_name().unwrap(), "journal.torn-1");
                assert_eq!(std::fs::read(kept).unwrap(), &bytes[good..cut]);
            }
        }
        let note = Event::Note { text: "after the cut".into() };
        store.append(&note).unwrap();
        drop(store);

        let (_store, replay) = Store::open(&dir).unwrap();
        assert_eq!(replay.torn, None);
        assert_eq!(replay.records.len(), records + 1);
        assert_eq!(replay.records.last().unwrap().event, note);
    }
}

#[test]
fn every_torn_end_is_kept_under_its_own_name() {
    let (_scratch, dir) = store_of(&whole());
    for n in 1..=3 {
        let mut bytes = bytes_of(&dir);
        bytes.extend_from_slice(b"{\"crc\":\"00");
        std::fs::write(dir.join("journal.jsonl"), bytes).unwrap();
        let (_store, replay) = Store::open(&dir).unwrap();
        assert_eq!(replay.torn.unwrap().kept.unwrap(), dir.join(format!("journal.torn-{n}")));
    }
}

#[test]
fn a_block_of_zeros_at_the_end_is_a_torn_end() {
    // What some file systems leave after a power failure: the length reached the disk, the content did not.
    let bytes = [whole(), vec![0; 700]].concat();
    let (_scratch, dir) = store_of(&bytes);
    assert_eq!(Store::open(&dir).unwrap().1.torn.unwrap().bytes, 700);
    assert_eq!(bytes_of(&dir), bytes[..bytes.len() - 700]);
}

#[test]
fn a_file_that_others_write_to_or_remove_takes_no_more_records() {
    let note = Event::Note { text: String::new() };
    let (_scratch, dir) = scratch();
    let mut store = Store::create(&dir, &header()).unwrap();
    let meddled = [bytes_of(&dir), b"meddling\n".to_vec()].concat();
    std::fs::write(dir.join("journal.jsonl"), &meddled).unwrap();
    assert!(matches!(store.append(&note), Err(Error::StoreDamaged { record: 2, .. })));
    assert_eq!(bytes_of(&dir), meddled, "not ours to cut");

    let (_scratch, dir) = scratch();
    let mut store = Store::create(&dir, &header()).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(matches!(store.append(&note), Err(Error::Io { .. })));
}
