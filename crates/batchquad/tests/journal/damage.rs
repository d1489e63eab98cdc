//! Flipped bits, spliced lines, and what can be saved.

use crate::common::*;
use batchquad::Error;
use batchquad::journal::{Event, Store, inspect, salvage};
use proptest::prelude::*;
use std::io::{Seek, SeekFrom, Write};
use std::sync::OnceLock;

fn original() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(whole)
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|&b| b == b'\n').collect()
}

/// Opens altered bytes and checks that whatever is accepted is what was written.
fn check(bytes: &[u8], in_last: bool) {
    let (_scratch, dir) = store_of(bytes);
    let read = Store::read(&dir);
    if let Ok(replay) = &read {
        assert_eq!(only(&replay.records), events()[..replay.records.len()]);
        assert_eq!(replay.header, header());
    }
    match Store::open(&dir) {
        Ok((_store, replay)) => {
            assert!(in_last, "accepted although an earlier record was altered");
            assert!(replay.torn.is_some());
            assert_eq!(replay.records.len(), events().len() - 1);
        }
        Err(Error::StoreDamaged { record, .. }) => {
            assert_eq!(bytes_of(&dir), bytes, "a damaged store is left alone");
            assert_eq!(dir.read_dir().unwrap().count(), 2, "nothing but the journal and its lock");
            match read {
                Ok(replay) => assert_eq!(replay.damage.unwrap().record, record),
                Err(error) => assert!(matches!(error, Error::StoreDamaged { .. })),
            }
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_single_flipped_bit_is_noticed() {
    let (_scratch, dir) = store_of(original());
    let last = original().len() - lines(original()).last().unwrap().len();
    let mut file = std::fs::OpenOptions::new().write(true).open(dir.join("journal.jsonl")).unwrap();
    let mut put = |at: usize, byte: u8| {
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.write_all(&[byte]).unwrap();
    };
    for i in 0..original().len() {
        for bit in 0..8 {
            put(i, original()[i] ^ (1 << bit));
            match Store::read(&dir) {
                Ok(replay) => {
                    assert_eq!(only(&replay.records), events()[..replay.records.len()]);
                    assert!(replay.records.len() < events().len());
                    assert_eq!(replay.damage.is_some(), replay.torn.is_none());
                    assert!(i >= last || replay.torn.is_none(), "a torn end must not hide an altered record");
                }
                Err(error) => assert!(matches!(error, Error::StoreDamaged { record: 1, .. }), "{error}"),
            }
        }
        put(i, original()[i]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_flipped_bits_are_noticed(flips in prop::collection::btree_set(0..original().len() * 8, 1..9)) {
        let mut bytes = original().to_vec();
        for flip in &flips {
            bytes[flip / 8] ^= 1 << (flip % 8);
        }
        let last = bytes.len() - lines(original()).last().unwrap().len();
        check(&bytes, flips.iter().all(|flip| flip / 8 >= last));
    }

    #[test]
    fn random_bytes_are_never_a_store(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let (_scratch, dir) = store_of(&bytes);
        let refused = matches!(Store::open(&dir), Err(Error::StoreDamaged { record: 1, .. }));
        prop_assert!(refused);
        prop_assert!(salvage(&dir, dir.with_extension("new")).is_err());
        prop_assert!(inspect(&dir).unwrap().replay.is_err());
    }

    #[test]
    fn a_random_stretch_of_garbage_is_noticed(
        at in 0..original().len(),
        length in 0_usize..600,
        garbage in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let end = (at + length).min(original().len());
        let bytes = [&original()[..at], &garbage, &original()[end..]].concat();
        prop_assume!(bytes != original());
        let (_scratch, dir) = store_of(&bytes);
        if let Ok(replay) = Store::read(&dir) {
            prop_assert_eq!(only(&replay.records), &events()[..replay.records.len()]);
        }
        let new = dir.with_extension("new");
        if salvage(&dir, &new).is_ok() {
            let saved = Store::read(&new).unwrap();
            let (_, records) = saved.records.split_last().unwrap();
            prop_assert!(records.iter().all(|record| events().contains(&record.event)));
            prop_assert!(saved.ledger().is_ok());
        }
    }
}

#[test]
fn moved_repeated_and_missing_lines_are_noticed() {
    let whole = lines(original());
    let without = |i: usize| [&whole[..i], &whole[i + 1..]].concat();
    for i in 0..whole.len() - 1 {
        let mut swapped = whole.clone();
        swapped.swap(i, i + 1);
        let mut repeated = whole.clone();
        repeated.insert(i, whole[i]);
        for (bytes, record) in [(swapped, i + 1), (repeated, i + 2), (without(i), i + 1)] {
            let (_scratch, dir) = store_of(&bytes.concat());
            let error = Store::open(&dir).unwrap_err();
            assert!(matches!(error, Error::StoreDamaged { record: r, .. } if r == record as u64), "{error}");
        }
    }
    let mut repeated = whole.clone();
    repeated.push(whole[whole.len() - 1]);
    let (_scratch, dir) = store_of(&repeated.concat());
    assert!(matches!(Store::open(&dir), Err(Error::StoreDamaged { .. })), "a whole record out of place is not torn");
}

#[test]
fn a_line_of_another_store_is_noticed() {
    let whole = lines(original());
    let (_scratch, dir) = scratch();
    let mut other = Store::create(&dir, &header()).unwrap();
    other.append(&Event::Note { text: "elsewhere".into() }).unwrap();
    let foreign = bytes_of(&dir);
    let mut spliced = whole.clone();
    spliced[1] = lines(&foreign)[1];
    let (_scratch, dir) = store_of(&spliced.concat());
    let error = Store::open(&dir).unwrap_err();
    assert!(matches!(error, Error::StoreDamaged { record: 2, .. }), "{error}");
    let new = dir.with_extension("new");
    let report = salvage(&dir, &new).unwrap();
    assert_eq!(report.lost[0].record, 2);
    assert_eq!(only(&Store::read(&new).unwrap().records)[..events().len() - 1], events()[1..]);
}

#[test]
fn salvage_puts_a_single_flipped_bit_right() {
    // A stride that is prime to eight, so that every position of a bit within its byte occurs.
    for flip in (0..original().len() * 8).step_by(37) {
        let mut bytes = original().to_vec();
        bytes[flip / 8] ^= 1 << (flip % 8);
        let (_scratch, dir) = store_of(&bytes);
        let new = dir.with_extension("new");
        let report = salvage(&dir, &new).unwrap();
        assert_eq!((report.kept as usize, report.lost.len()), (events().len() + 1, 0), "bit {flip}");
        assert!(!report.mended.is_empty());
        let (_store, replay) = Store::open(&new).unwrap();
        assert_eq!(replay.header, header());
        assert_eq!(only(&replay.records)[..events().len()], events());
        assert_eq!(bytes_of(&dir), bytes, "the old store is left as it is");
    }
}

#[test]
fn salvage_keeps_what_still_makes_sense() {
    let mut whole: Vec<Vec<u8>> = lines(original()).into_iter().map(<[u8]>::to_vec).collect();
    whole[8].splice(20..60, *b"XXXX"); // the second batch: jobs 3 and 7
    let bytes = whole.concat();
    let (_scratch, dir) = store_of(&bytes);
    assert_eq!(Store::read(&dir).unwrap().damage.unwrap().record, 9);

    let inspection = inspect(&dir).unwrap();
    assert_eq!(inspection.bytes, bytes.len() as u64);
    let foreseen = inspection.salvage.unwrap().unwrap();

    let new = dir.with_extension("new");
    let report = salvage(&dir, &new).unwrap();
    assert_eq!(report, foreseen);
    // The batch itself, the expired lease and the two answers of job 3.
    assert_eq!(report.lost.iter().map(|d| d.record).collect::<Vec<_>>(), [9, 10, 12, 13]);
    assert!(report.lost[1].reason.contains("job 3 is unknown"));
    assert_eq!(report.kept as usize, events().len() + 1 - 4);
    let ledger = Store::read(&new).unwrap().ledger().unwrap();
    assert_eq!(ledger.values().count(), 3);
    assert!(ledger.notes().last().unwrap().starts_with("salvaged 10 records"), "{:?}", ledger.notes());
    assert!(matches!(salvage(&dir, &new), Err(Error::StoreExists { .. })));
}

#[test]
fn salvage_without_a_header_is_refused() {
    let whole = lines(original());
    let (_scratch, dir) = store_of(&whole[1..].concat());
    let error = salvage(&dir, dir.with_extension("new")).unwrap_err();
    assert!(matches!(error, Error::StoreDamaged { record: 1, .. }), "{error}");
}

#[test]
fn an_inspected_store_in_good_order_has_nothing_to_salvage() {
    let (_scratch, dir) = scratch();
    write_store(&dir);
    let inspection = inspect(&dir).unwrap();
    assert_eq!(only(&inspection.replay.unwrap().records), events());
    assert!(inspection.salvage.is_none() && inspection.holder.is_none());
    assert!(inspection.torn.is_empty() && inspection.exposed.is_empty(), "{:?}", inspection.exposed);
}
