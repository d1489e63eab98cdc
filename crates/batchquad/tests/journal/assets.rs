//! A store written by the first release, which every later one must read; and what newer releases may write.

use crate::common::*;
use batchquad::Error;
use batchquad::journal::{Event, Store};
use std::path::PathBuf;

fn asset() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/store-v1")
}

/// Wrote the committed asset, once: `cargo test --test journal write_the_first_store -- --ignored`.
#[test]
#[ignore = "the asset must never change; it is written only where there is none"]
fn write_the_first_store() {
    write_store(&asset());
    std::fs::remove_file(asset().join("lock")).unwrap();
}

#[test]
fn a_store_of_the_first_release_is_read_and_continued() {
    let bytes = bytes_of(&asset());
    let replay = Store::read(asset()).unwrap();
    assert_eq!((replay.torn.as_ref(), replay.damage.as_ref()), (None, None));
    assert_eq!(replay.header.written_by(), "batchquad 0.1.0");
    assert_eq!(replay.header.seed(), u64::MAX);
    replay.header.require_same(&header()).unwrap();
    assert_eq!(only(&replay.records), events());
    // Equality does not tell -0.0 from 0.0.
    assert_eq!(format!("{:?}", only(&replay.records)), format!("{:?}", events()));
    let ledger = replay.ledger().unwrap();
    let values: Vec<_> = ledger.values().map(|(job, value)| (job.id.0, value)).collect();
    assert_eq!(values, [(0, -0.300_000_000_000_000_04), (1, f64::NEG_INFINITY), (2, -1e6), (3, 4.0)]);
    assert_eq!(ledger.pending().map(|job| job.id.0).collect::<Vec<_>>(), [7]);

    let (_scratch, dir) = store_of(&bytes);
    let (mut store, _) = Store::open(&dir).unwrap();
    store.append(&value(7, 0.0)).unwrap();
    drop(store);
    assert_eq!(Store::read(&dir).unwrap().ledger().unwrap().pending().count(), 0);
    assert!(bytes_of(&dir).starts_with(&bytes));
}

/// A line as the format describes it, made here without the library.
fn line(prev: &str, seq: usize, event: &str) -> (String, String) {
    let checked = format!(r#","prev":"{prev}","seq":{seq},"at":1700000000000,"event":{event}}}"#);
    let crc = format!("{:08x}", crc32(checked.as_bytes()));
    (format!("{{\"crc\":\"{crc}\"{checked}\n"), crc)
}

/// CRC-32 (reflected polynomial 0xEDB88320) bit by bit from its definition.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

fn journal(events: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let mut prev = "00000000".to_owned();
    let mut text = String::new();
    for (i, event) in events.iter().enumerate() {
        let (line, crc) = line(&prev, i + 1, event);
        text += &line;
        prev = crc;
    }
    store_of(text.as_bytes())
}

const HEADER: &str = r#"{"kind":"header","format":1,"written_by":"batchquad 9.9","names":["x"],"seed":3,"problem":{"new":[1]},"settings":{},"more":{"a":1}}"#;

#[test]
fn fields_that_a_newer_release_added_are_passed_over() {
    let (_scratch, dir) = journal(&[
        HEADER,
        r#"{"kind":"asked","jobs":[{"id":0,"theta":[1],"seed":4,"priority":2}],"colour":"red"}"#,
        r#"{"kind":"told","id":0,"outcome":{"log_likelihood":-3},"carbon":{"kg":1e-3}}"#,
    ]);
    let (_store, replay) = Store::open(&dir).unwrap();
    let ledger = replay.ledger().unwrap();
    assert_eq!(ledger.values().map(|(_, v)| v).collect::<Vec<_>>(), [-3.0]);
    assert_eq!(replay.header.problem()["new"][0], 1);
}

#[test]
fn newer_formats_and_kinds_of_events_are_refused_untouched() {
    let newer = HEADER.replace("\"format\":1", "\"format\":2");
    for events in
        [vec![newer.as_str()], vec![HEADER, r#"{"kind":"teleported","id":0}"#, r#"{"kind":"note","text":""}"#]]
    {
        let (_scratch, dir) = journal(&events);
        let torn = [bytes_of(&dir), b"{\"crc".to_vec()].concat();
        std::fs::write(dir.join("journal.jsonl"), &torn).unwrap();
        for error in [Store::open(&dir).unwrap_err(), Store::read(&dir).unwrap_err()] {
            assert!(matches!(error, Error::StoreVersion { .. }), "{error}");
            assert!(error.to_string().contains("newer release"), "{error}");
        }
        assert_eq!(bytes_of(&dir), torn);
    }
}

#[test]
fn records_that_prove_themselves_but_make_no_sense_are_damage() {
    let asked = r#"{"kind":"asked","jobs":[{"id":0,"theta":[1.5],"seed":4}]}"#;
    for bad in [
        r#"{"kind":"told","id":0}"#,
        r#"{"kind":"told","id":0,"outcome":{"log_likelihood":null}}"#,
        r#"{"kind":"told","id":0,"outcome":{"log_likelihood":"inf"}}"#,
        r#"{"kind":"told","id":0,"outcome":{"log_likelihood":1e999}}"#,
        r#"{"kind":"told","id":-1,"outcome":{"log_likelihood":0}}"#,
        r#"{"kind":"asked","jobs":[{"id":1,"theta":[null],"seed":4}]}"#,
        r#"{"kind":7}"#,
        r#"[]"#,
        HEADER,
    ] {
        let (_scratch, dir) = journal(&[HEADER, asked, bad, r#"{"kind":"note","text":""}"#]);
        match Store::open(&dir).unwrap_err() {
            Error::StoreDamaged { record: 3, .. } => {}
            Error::StoreVersion { found, .. } if bad == HEADER => assert!(found.contains("header")),
            error => panic!("{bad}: {error}"),
        }
    }
    for bad in [r#"{"kind":"told","id":5,"outcome":{"log_likelihood":0}}"#, asked] {
        let (_scratch, dir) = journal(&[HEADER, asked, bad]);
        let error = Store::open(&dir).and_then(|(_, replay)| replay.ledger()).unwrap_err();
        assert!(matches!(error, Error::StoreDamaged { record: 3, .. }), "{error}");
    }
}

#[test]
fn a_first_line_that_is_no_header_is_damage() {
    let (_scratch, dir) = journal(&[r#"{"kind":"note","text":""}"#]);
    assert!(matches!(Store::open(&dir), Err(Error::StoreDamaged { record: 1, .. })));
    let (_scratch, dir) = store_of(b"");
    assert!(matches!(Store::open(&dir), Err(Error::StoreDamaged { record: 1, .. })));
}

#[test]
fn lines_made_by_the_description_are_those_of_the_library() {
    let (_scratch, dir) = scratch();
    let mut store = Store::create(&dir, &header()).unwrap();
    store.append(&Event::Note { text: "a".into() }).unwrap();
    let text = String::from_utf8(bytes_of(&dir)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let at = Store::read(&dir).unwrap().records[0].at;
    let (made, _) = line(&lines[0][8..16], 2, r#"{"kind":"note","text":"a"}"#);
    // The time is the only thing the description leaves open; with it go the checksum.
    let strip = |line: &str, at: &str| line[16..].trim_end().replace(at, "");
    assert_eq!(strip(lines[1], &at.to_string()), strip(&made, "1700000000000"));
    assert_eq!(lines[1][8..16], format!("{:08x}", crc32(&lines[1].as_bytes()[17..])));
}
