//! From the bytes of a journal to its records, and to a verdict on whatever is not one.

use super::record::{Link, RawRecord, TOGETHER, decode, find};

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
                    scan.tail = if scan.last.seq > 0 && is_torn(rest, scan.last.seq + 1) {
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

/// Whether one interrupted write explains the bytes, the first of which belong to record number `first`.
///
/// What is written is on the disk before the next is begun, so a record that proves itself and was not written together with the first shows that the
/// bytes before were once whole and have been altered since. So does a newline, unless parts before it never reached the disk: those are read as
/// zeros. A newline with something behind it is explained only where records say that they were written together.
fn is_torn(rest: &[u8], first: u64) -> bool {
    let mut lines: Vec<&[u8]> = rest.split(|b| *b == b'\n').collect();
    let unfinished = lines.pop().filter(|line| !line.is_empty());
    let several = lines.len() + usize::from(unfinished.is_some()) > 1;
    if several && !rest.windows(TOGETHER.len()).any(|w| w == TOGETHER) {
        return false;
    }
    let together = |line: &[u8]| {
        find(line).map(|record| record.link.seq > first && record.link.seq.saturating_sub(record.with) <= first)
    };
    lines.into_iter().all(|line| together(line).unwrap_or_else(|| line.contains(&0)))
        && unfinished.is_none_or(|line| together(line).unwrap_or(true))
}

#[cfg(test)]
mod tests {
    use super::{super::record::encode, *};
    use serde_json::value::RawValue;

    /// Lines written in goes of these sizes, and where each go begins.
    fn journal(goes: &[u64]) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut begins, mut last) = (Vec::new(), Vec::new(), Link::start());
        for go in goes {
            begins.push(bytes.len());
            for with in 0..*go {
                let text = format!(r#"{{"kind":"note","text":"{}"}}"#, "x".repeat(40));
                let (line, link) = encode(last, 7, with, &RawValue::from_string(text).unwrap()).unwrap();
                bytes.extend(line);
                last = link;
            }
        }
        (bytes, begins)
    }

    #[test]
    fn whatever_an_interrupted_write_leaves_of_several_records_is_torn_and_nothing_else_is() {
        let (bytes, begins) = journal(&[1, 2, 4]);
        assert_eq!(Scan::new(&bytes).tail, Tail::Clean);
        let last = begins[2];
        for end in last..bytes.len() {
            let cut = Scan::new(&bytes[..end]);
            assert!(!matches!(cut.tail, Tail::Damaged { .. }), "{end}");
            assert!(cut.records.len() >= 3);
        }
        // Parts of the last go that never reached the disk, wherever they are; parts of an earlier one did.
        for from in (begins[1]..bytes.len()).step_by(7) {
            for length in [1, 30, 130, 300] {
                let to = (from + length).min(bytes.len());
                let mut holed = bytes.clone();
                holed[from..to].fill(0);
                let torn = Scan::new(&holed).tail == Tail::Torn;
                assert_eq!(torn, from >= last, "{from} to {to}, the last go begins at {last}");
            }
        }
        // Bytes that were altered are damage, also in the last go.
        for at in (last..bytes.len() - 200).step_by(3) {
            let mut altered = bytes.clone();
            altered[at] ^= 4;
            assert!(matches!(Scan::new(&altered).tail, Tail::Damaged { .. }), "{at}");
        }
    }
}
