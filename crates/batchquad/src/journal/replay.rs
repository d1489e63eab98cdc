//! What a journal says when it is read.

use super::event::{Event, Unreadable};
use super::header::Header;
use super::ledger::Ledger;
use super::lock::Holder;
use super::scan::{Scan, Tail};
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// One event as it stands in the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its number, which is also its line (the header is 1).
    pub seq: u64,
    /// When it was written, in milliseconds since 1970.
    pub at: u64,
    /// What happened.
    pub event: Event,
}

/// The end of a journal that an interrupted write left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// How many bytes it has.
    pub bytes: u64,
    /// The file they were moved to; `None` if the store was only read.
    pub kept: Option<PathBuf>,
}

/// A record that cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Its number, which is also its line.
    pub record: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// The whole content of a journal that can be trusted.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The store.
    pub path: PathBuf,
    /// What the run is about.
    pub header: Header,
    /// When the store was created, in milliseconds since 1970.
    pub created: u64,
    /// Everything that happened, in order.
    pub records: Vec<Recorded>,
    /// A torn end. While another process writes, this may be a record on its way.
    pub torn: Option<Torn>,
    /// The first record that cannot be trusted; it and all after it are left out.
    pub damage: Option<Damage>,
    /// The last writer, if it was killed; only known to the next.
    pub left_by: Option<Holder>,
}

impl Replay {
    pub(super) fn new(dir: &Path, scan: &Scan<'_>, size: usize) -> Result<Self> {
        let damaged = |Damage { record, reason }| Error::StoreDamaged { path: dir.into(), record, reason };
        let mut damage = match &scan.tail {
            Tail::Damaged { record, reason } => Some(Damage { record: *record, reason: reason.clone() }),
            _ => None,
        };
        let Some((first, rest)) = scan.records.split_first() else {
            let none = Damage { record: 1, reason: "there is no header".into() };
            return Err(damaged(damage.unwrap_or(none)));
        };
        let unreadable = |record, why| match why {
            Unreadable::Newer { found, supported } => Err(Error::StoreVersion { path: dir.into(), found, supported }),
            Unreadable::Malformed(reason) => Ok(Damage { record, reason }),
        };
        let header = match Header::parse(first.event) {
            Ok(header) => header,
            Err(why) => return Err(damaged(unreadable(1, why)?)),
        };
        let mut records = Vec::with_capacity(rest.len());
        for raw in rest {
            match Event::parse(raw.event) {
                Ok(event) => records.push(Recorded { seq: raw.link.seq, at: raw.at, event }),
                Err(why) => {
                    damage = Some(unreadable(raw.link.seq, why)?);
                    break;
                }
            }
        }
        let torn = (scan.tail == Tail::Torn).then(|| Torn { bytes: (size - scan.end) as u64, kept: None });
        Ok(Self { path: dir.into(), header, created: first.at, records, torn, damage, left_by: None })
    }

    /// The state that the records add up to.
    ///
    /// # Errors
    /// [`Error::StoreDamaged`] at a record that contradicts those before it.
    pub fn ledger(&self) -> Result<Ledger> {
        let mut ledger = Ledger::new(self.header.clone());
        for record in &self.records {
            ledger.apply(&record.event).map_err(|e| Error::StoreDamaged {
                path: self.path.clone(),
                record: record.seq,
                reason: e.to_string(),
            })?;
        }
        Ok(ledger)
    }
}
