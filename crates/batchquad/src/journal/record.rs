//! One line of the journal.
//!
//! ```text
//! {"crc":"1f0c3b5a","prev":"77aa02c4","seq":12,"at":1700000000000,"event":{"kind":"told",…}}
//! ```
//!
//! `crc` is the CRC-32 of every byte after it up to the end of the line, `prev` the `crc` of the line before (a random
//! number for the first) and `seq` the line's number. So each line proves itself, and a line that was altered, left
//! out, repeated, moved or taken from another journal breaks the chain. A line that went to the disk together with lines before it says so: `"with":2`
//! after two others.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::hash::{BuildHasher, Hasher, RandomState};

/// What every line begins with.
const OPENING: &[u8] = b"{\"crc\":\"";
/// Where the bytes under the checksum begin: after the opening, eight hexadecimal digits and a quote.
const CHECKED: usize = OPENING.len() + 9;

/// A place in the chain: the number and checksum of the latest line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Link {
    pub seq: u64,
    pub crc: u32,
}

impl Link {
    /// Where a new chain begins. Random, because two runs of the same problem may begin in the same millisecond and
    /// still must not be mistaken for each other.
    pub fn start() -> Self {
        let random = RandomState::new().build_hasher().finish();
        Self { seq: 0, crc: (random >> 32) as u32 }
    }

    /// Whether `record` is the one after this.
    pub fn precedes(self, record: &RawRecord<'_>) -> Result<(), String> {
        if record.link.seq != self.seq + 1 {
            Err(format!("record {} stands where record {} was expected", record.link.seq, self.seq + 1))
        } else if self.seq > 0 && record.prev != self.crc {
            Err("it was written after a different record from the one before it".into())
        } else {
            Ok(())
        }
    }
}

/// A line that proves itself, its content not yet interpreted.
#[derive(Debug, Clone)]
pub(super) struct RawRecord<'a> {
    pub link: Link,
    pub prev: u32,
    pub at: u64,
    /// How many lines before it were written in the same go.
    pub with: u64,
    pub event: &'a str,
}

#[derive(Serialize, Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    prev: &'a str,
    seq: u64,
    at: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    with: u64,
    #[serde(borrow)]
    event: &'a RawValue,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// How a line says that it was not written alone.
pub(super) const TOGETHER: &[u8] = b",\"with\":";

/// The line (with its newline) that follows `last`, and its own link. It is written in one go with the `with` lines before it.
pub(super) fn encode(last: Link, at: u64, with: u64, event: &RawValue) -> Result<(Vec<u8>, Link)> {
    let seq = last.seq + 1;
    let prev = hex(last.crc);
    let envelope = serde_json::to_vec(&Envelope { prev: &prev, seq, at, with, event })
        .map_err(|e| Error::Numerical { what: "writing a record as JSON".into(), reason: e.to_string() })?;
    let checked = [b",", &envelope[1..]].concat();
    let crc = crc32fast::hash(&checked);
    let line = [OPENING, hex(crc).as_bytes(), b"\"", &checked, b"\n"].concat();
    Ok((line, Link { seq, crc }))
}

/// The record in `line` (without its newline).
///
/// # Errors
/// What is wrong, in words.
pub(super) fn decode(line: &[u8]) -> Result<RawRecord<'_>, String> {
    let crc = line
        .strip_prefix(OPENING)
        .filter(|rest| rest.get(8) == Some(&b'"'))
        .and_then(|rest| unhex(&rest[..8]))
        .ok_or("it does not begin with a checksum")?;
    let found = crc32fast::hash(&line[CHECKED..]);
    if found != crc {
        return Err(format!("its checksum is {}, its bytes give {}", hex(crc), hex(found)));
    }
    let envelope: Envelope<'_> = serde_json::from_slice(line).map_err(|e| format!("it is no record: {e}"))?;
    let prev = unhex(envelope.prev.as_bytes()).ok_or("it does not name the record before it")?;
    let link = Link { seq: envelope.seq, crc };
    Ok(RawRecord { link, prev, at: envelope.at, with: envelope.with, event: envelope.event.get() })
}

/// The record that `line` ends in, whatever stands before it.
///
/// A record of ours has one opening, unless its content is somebody's JSON with a key `crc`; so only the last few are
/// tried, and the time is that of reading the line a few times whatever it holds.
pub(super) fn find(line: &[u8]) -> Option<RawRecord<'_>> {
    const TRIED: usize = 8;
    let starts = (0..line.len().saturating_sub(OPENING.len())).rev().filter(|&i| line[i..].starts_with(OPENING));
    starts.take(TRIED).filter_map(|i| decode(&line[i..]).ok()).last()
}

/// Whether a line begins as all records do.
pub(super) fn starts_as_a_record(line: &[u8]) -> bool {
    line.starts_with(OPENING)
}

/// `line` (without its newline) with the one flipped bit put right that keeps it from proving itself.
///
/// A flipped bit under the checksum changes it by an amount that depends on the bit's place alone (a checksum is
/// linear), so all places are tried in one pass. One in the opening or in the checksum is among the first few bytes.
pub(super) fn mend(line: &[u8]) -> Option<Vec<u8>> {
    let flipped = |i: usize, bit: u32| {
        let mut trial = line.to_vec();
        trial[i] ^= 1 << bit;
        decode(&trial).is_ok().then_some(trial)
    };
    let near = (0..CHECKED.min(line.len())).flat_map(|i| (0..8).map(move |bit| (i, bit)));
    if let Some(mended) = near.into_iter().find_map(|(i, bit)| flipped(i, bit)) {
        return Some(mended);
    }
    let crc = line.strip_prefix(OPENING).and_then(|rest| unhex(rest.get(..8)?))?;
    let wanted = crc ^ crc32fast::hash(line.get(CHECKED..)?);
    let mut change: [u32; 8] = std::array::from_fn(|bit| crc_step(1 << bit));
    for i in (CHECKED..line.len()).rev() {
        if let Some(bit) = change.iter().position(|c| *c == wanted) {
            return flipped(i, bit as u32);
        }
        change = change.map(crc_step);
    }
    None
}

/// What a change of the checksum becomes one byte later; a change of a byte counts as one of the lowest bits.
fn crc_step(change: u32) -> u32 {
    (0..8).fold(change, |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 })
}

fn hex(crc: u32) -> String {
    format!("{crc:08x}")
}

/// Only the form that [`hex`] writes: another case would be another byte that went unnoticed.
fn unhex(digits: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(digits).ok()?;
    let crc = u32::from_str_radix(text, 16).ok()?;
    (hex(crc) == text).then_some(crc)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(last: Link, text: &str) -> (Vec<u8>, Link) {
        encode(last, 7, 0, &RawValue::from_string(text.into()).unwrap()).unwrap()
    }

    #[test]
    fn the_checksum_is_the_one_of_zlib() {
        let (bytes, link) = line(Link::default(), r#"{"kind":"note","text":"a"}"#);
        // python3 -c 'import zlib; print("%08x" %
        // zlib.crc32(b",\"prev\":\"00000000\",\"seq\":1,\"at\":7,\"event\":{\"kind\":\"note\",\"text\":\"a\"}}"))'
        let expected = "2cf30acb";
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            format!(r#"{{"crc":"{expected}","prev":"00000000","seq":1,"at":7,"event":{{"kind":"note","text":"a"}}}}"#)
                + "\n"
        );
        assert_eq!(hex(link.crc), expected);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let (bytes, _) = line(Link { seq: 11, crc: 0xabcd_ef01 }, r#"{"kind":"note","text":"flip me"}"#);
        let whole = &bytes[..bytes.len() - 1];
        assert_eq!(decode(whole).unwrap().prev, 0xabcd_ef01);
        for i in 0..whole.len() {
            assert!(decode(&whole[..i]).is_err());
            for bit in 0..8 {
                let mut bad = whole.to_vec();
                bad[i] ^= 1 << bit;
                assert!(decode(&bad).is_err(), "byte {i} bit {bit}");
            }
        }
    }

    #[test]
    fn every_flipped_bit_is_put_right() {
        let (bytes, _) = line(Link { seq: 11, crc: 0xabcd_ef01 }, r#"{"kind":"note","text":"flip me"}"#);
        let whole = &bytes[..bytes.len() - 1];
        for i in 0..whole.len() {
            for bit in 0..8 {
                let mut bad = whole.to_vec();
                bad[i] ^= 1 << bit;
                assert_eq!(mend(&bad).as_deref(), Some(whole), "byte {i} bit {bit}");
                bad[(i + 5) % whole.len()] ^= 1;
                assert_ne!(mend(&bad).as_deref(), Some(whole), "two flipped bits are two");
            }
        }
    }

    #[test]
    fn hostile_lines_cost_no_more_than_their_length() {
        let begin = std::time::Instant::now();
        let openings = OPENING.repeat(500_000);
        assert!(find(&openings).is_none());
        let line = [OPENING, b"00000000\"", "x".repeat(11_000).as_bytes()].concat();
        for _ in 0..100 {
            assert!(mend(&line).is_none());
        }
        assert!(begin.elapsed() < std::time::Duration::from_secs(5), "{:?}", begin.elapsed());
    }

    #[test]
    fn a_record_behind_garbage_is_found() {
        let (bytes, _) = line(Link::default(), "{}");
        let whole = &bytes[..bytes.len() - 1];
        assert_eq!(find(&[b"garbage", whole].concat()).unwrap().event, "{}");
        assert!(find(&whole[..whole.len() - 1]).is_none());
    }
}
