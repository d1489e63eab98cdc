//! A journal in memory.

use std::path::Path;

use super::event::Event;
use super::header::Header;
use super::record::{Link, encode};
use super::replay::Replay;
use super::scan::{Scan, Tail};
use super::store::{Store, faithful, now};
use crate::error::{Error, Result};

/// The lines that a store would have, in memory: to be kept elsewhere, sent, or made a store of.
#[derive(Debug, Clone)]
pub struct Lines {
    bytes: Vec<u8>,
    last: Link,
}

impl Lines {
    /// The journal of a run in which nothing has happened yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a header that JSON cannot hold.
    pub fn new(header: &Header) -> Result<Self> {
        let (bytes, last) = encode(Link::start(), now(), 0, &faithful(header, Header::parse)?)?;
        Ok(Self { bytes, last })
    }

    /// The journal that these bytes are, and what it says.
    ///
    /// # Errors
    /// [`Error::StoreDamaged`] for bytes that are not a whole journal, [`Error::StoreVersion`] for one of a later
    /// release.
    pub fn read(bytes: Vec<u8>) -> Result<(Self, Replay)> {
        let nowhere = Path::new("(in memory)");
        let scan = Scan::new(&bytes);
        let replay = Replay::new(nowhere, &scan, bytes.len())?;
        let damaged = |record, reason| Error::StoreDamaged { path: nowhere.into(), record, reason };
        if let Some(damage) = &replay.damage {
            return Err(damaged(damage.record, damage.reason.clone()));
        }
        if scan.tail != Tail::Clean {
            return Err(damaged(scan.last.seq + 1, "its end is missing".into()));
        }
        let last = scan.last;
        Ok((Self { bytes, last }, replay))
    }

    /// The journal of a store as it is now, also while another process writes to it: up to its last whole record.
    ///
    /// # Errors
    /// As [`Store::read`]; [`Error::StoreDamaged`].
    pub fn of_store(dir: impl AsRef<Path>) -> Result<(Self, Replay)> {
        let dir = dir.as_ref();
        let mut bytes = Store::bytes(dir)?;
        let scan = Scan::new(&bytes);
        let replay = Replay::new(dir, &scan, bytes.len())?;
        if let Some(damage) = &replay.damage {
            let (record, reason) = (damage.record, damage.reason.clone());
            return Err(Error::StoreDamaged { path: dir.into(), record, reason });
        }
        let (end, last, ends) = (scan.end, scan.last, scan.tail != Tail::Unterminated);
        bytes.truncate(end);
        bytes.extend((!ends).then_some(b'\n'));
        Ok((Self { bytes, last }, replay))
    }

    /// Adds an event.
    ///
    /// # Errors
    /// [`Error::NonFinitePoint`] and [`Error::Invalid`] for an event that cannot be recorded.
    pub fn append(&mut self, event: &Event) -> Result<()> {
        event.validate()?;
        let (line, last) = encode(self.last, now(), 0, &faithful(event, Event::parse)?)?;
        self.bytes.extend(line);
        self.last = last;
        Ok(())
    }

    /// The bytes of the journal.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A new store with this journal in it.
    ///
    /// # Errors
    /// As [`Store::create`].
    pub fn store(&self, dir: impl AsRef<Path>) -> Result<Store> {
        Store::install(dir.as_ref(), &self.bytes, self.last, &|medium| medium)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(text: &str) -> Event {
        Event::Note { text: text.into() }
    }

    #[test]
    fn a_journal_in_memory_is_that_of_a_store() {
        let header = Header::new(vec!["x".into()], 1, serde_json::json!({}), serde_json::Map::new()).unwrap();
        let mut lines = Lines::new(&header).unwrap();
        lines.append(&note("a")).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("store");
        let mut store = lines.store(&dir).unwrap();
        store.append(&note("b")).unwrap();
        let (of_store, replay) = Lines::of_store(&dir).unwrap();
        assert!(of_store.bytes().starts_with(lines.bytes()) && of_store.bytes().len() > lines.bytes().len());
        assert_eq!(replay.records.len(), 2);

        let (mut again, replay) = Lines::read(of_store.bytes().to_vec()).unwrap();
        assert_eq!(replay.header, header);
        again.append(&note("c")).unwrap();
        let (_, replay) = Lines::read(again.bytes().to_vec()).unwrap();
        assert_eq!(replay.ledger().unwrap().notes(), ["a", "b", "c"]);
        // A torn end, a flipped bit, nothing at all.
        let whole = again.bytes();
        assert!(Lines::read(whole[..whole.len() - 9].to_vec()).unwrap_err().to_string().contains("end is missing"));
        let mut bad = whole.to_vec();
        bad[40] ^= 1;
        assert!(matches!(Lines::read(bad), Err(Error::StoreDamaged { record: 1, .. })));
        assert!(Lines::read(Vec::new()).is_err());
    }
}
