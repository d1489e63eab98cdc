//! From the bytes of a journal to its records, and to a verdict on whatever is not one.

use super::record::{Link, RawRecord, decode, find};

/// The records of a journal up to the first that cannot be trusted.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    pub records: Vec<RawRecord<'a>>,
    /// How many bytes those records take up.
    pub end: usize,
    pub last: Link,
    pub tail: Tail,
}

/// What comes after the last good record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing.
    Clean,
    /// Nothing, but the last record lacks its newline: all of it was written except the last byte.
    Unterminated,
    /// What one interrupted write leaves behind.
    Torn,
    /// Something that no interrupted write explains.
    Damaged { record: u64, reason: String },
}

impl<'a> Scan<'a> {
    /// Reads records for as long as each proves itself and follows the one before. Linear in the bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut scan = Self { records: Vec::new(), end: 0, last: Link::default(), tail: Tail::Clean };
        while scan.end < bytes.len() {
            let rest = &bytes[scan.end..];
            let newline = rest.iter().position(|&b| b == b'\n');
            match decode(&rest[..newline.unwrap_or(rest.len())])
                .and_then(|record| scan.last.precedes(&record).map(|()| record))
            {
                Ok(record) => {
                    scan.last = record.link;
                    scan.records.push(record);
                    scan.end += newline.map_or(rest.len(), |i| i + 1);
                    if newline.is_none() {
                        scan.tail = Tail::Unterminated;
                    }
                }
                Err(reason) => {
                    scan.tail = if scan.last.seq > 0 && is_torn(rest) {
                        Tail::Torn
                    } else {
                        Tail::Damaged { record: scan.last.seq + 1, reason }
                    };
                    break;
                }
            }
        }
        if scan.records.is_empty() && scan.tail == Tail::Clean {
            scan.tail = Tail::Damaged { record: 1, reason: "the journal is empty".into() };
        }
        scan
    }
}

/// Whether one interrupted write explains the bytes.
///
/// A record is on the disk before the next is begun, so a newline with something behind it, or a record that proves
/// itself, shows that the bytes before were once whole and have been altered since. So does a newline at the end, which
/// is written last, unless parts before it never reached the disk: those are read as zeros.
fn is_torn(rest: &[u8]) -> bool {
    let line = match rest.strip_suffix(b"\n") {
        Some(line) if !line.contains(&0) => return false,
        Some(line) => line,
        None => rest,
    };
    !line.contains(&b'\n') && find(line).is_none()
}
