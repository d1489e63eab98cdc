//! The journal: what happened in a run, on the disk before it counts.
//!
//! A *store* is a directory with a file `journal.jsonl`, one JSON object a line. The first line is the [`Header`]; every
//! other is an [`Event`]. Each line carries a checksum, its number and the checksum of the line before. Events are only ever
//! appended, each by one write that is flushed before the append returns.
//!
//! - [`Store`] keeps the file: one writer at a time, a torn end cut off, damage refused.
//! - [`Ledger`] is the state: a pure fold of the events, the same for a live run and a resumed one.
//! - [`Journal`] is both: what counts in the ledger is on the disk.
//! - [`Lines`] are the same journal in memory.
//! - [`inspect`] and [`salvage`] are for a store that has come to harm.
//!
//! ```
//! use batchquad::journal::{Applied, Asked, Event, Header, Journal, Told};
//! use batchquad::types::{Job, JobId, Outcome};
//! # let scratch = tempfile::tempdir().unwrap();
//! # let dir = scratch.path().join("store");
//! let header = Header::new(vec!["x".into()], 1, serde_json::json!({"prior": "…"}), serde_json::Map::new())?;
//! let mut journal = Journal::create(&dir, header)?;
//! let job = Job { id: JobId(0), theta: vec![0.5], seed: 7 };
//! journal.record(&Event::Asked(Asked { jobs: vec![job], seconds: 0.0, info: Default::default(), repeat: 0 }))?;
//! drop(journal); // the run is killed …
//!
//! let (mut journal, _) = Journal::open(&dir)?; // … and resumed
//! assert_eq!(journal.ledger().pending().count(), 1);
//! let told = Event::Told(Told::new(JobId(0), Outcome::Value(-1.25)));
//! assert_eq!(journal.record(&told)?, Applied::Counted);
//! assert_eq!(journal.record(&told)?, Applied::Repeated);
//! # Ok::<(), batchquad::Error>(())
//! ```

mod event;
mod files;
mod header;
mod ledger;
mod lines;
mod lock;
mod medium;
mod number;
mod record;
mod remark;
mod replay;
mod salvage;
mod scan;
mod store;

pub use event::{Asked, Event, Retried, Row, Told};
pub use header::{FORMAT, Header};
pub use ledger::{Applied, Entry, Failure, Ledger};
pub use lines::Lines;
pub use lock::Holder;
pub use medium::{Medium, Wrap};
pub use number::LogValue;
pub use remark::Topic;
pub use replay::{Damage, Record, Replay, Torn};
pub use salvage::{Inspection, Salvage, inspect, salvage};
pub use store::Store;

use crate::error::Result;
use std::path::Path;

/// A store and the state it adds up to.
#[derive(Debug)]
pub struct Journal {
    store: Store,
    ledger: Ledger,
}

impl Journal {
    /// A new store and the state of a run in which nothing has happened.
    ///
    /// # Errors
    /// As [`Store::create`].
    pub fn create(dir: impl AsRef<Path>, header: Header) -> Result<Self> {
        Self::create_through(dir, header, &|medium| medium)
    }

    /// [`Journal::create`] with something between the store and its file.
    ///
    /// # Errors
    /// As [`Store::create`].
    pub fn create_through(dir: impl AsRef<Path>, header: Header, wrap: Wrap<'_>) -> Result<Self> {
        Ok(Self { store: Store::create_through(dir, &header, wrap)?, ledger: Ledger::new(header) })
    }

    /// Opens a store for writing; the [`Replay`] tells what was found and repaired.
    ///
    /// # Errors
    /// As [`Store::open`] and [`Replay::ledger`].
    pub fn open(dir: impl AsRef<Path>) -> Result<(Self, Replay)> {
        Self::open_through(dir, &|medium| medium)
    }

    /// [`Journal::open`] with something between the store and its file.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_through(dir: impl AsRef<Path>, wrap: Wrap<'_>) -> Result<(Self, Replay)> {
        let (store, replay) = Store::open_through(dir, wrap)?;
        Ok((Self { store, ledger: replay.ledger()? }, replay))
    }

    /// Records an event and then lets it count. What is known already is not recorded again.
    ///
    /// # Errors
    /// As [`Ledger::judge`] (then nothing is recorded) and [`Store::append`] (then it does not count).
    pub fn record(&mut self, event: &Event) -> Result<Applied> {
        if self.ledger.judge(event)? == Applied::Repeated {
            return Ok(Applied::Repeated);
        }
        self.store.append(event)?;
        self.ledger.apply(event)
    }

    /// The state.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }
}
