//! The journal: what happened in a run, on the disk before it counts.
//!
//! A *store* is a directory with a file `journal.jsonl`, one JSON object per line. The first line is the [`Header`];
//! every other is an [`Event`]. Each line carries a checksum, its number and the checksum of the line before. Events
//! are only ever appended, each by one write that is flushed before the append returns.
//!
//! - [`Store`] keeps the file: one writer at a time, a torn end cut off, damage refused.
//! - [`Ledger`] is the state: a pure fold of the events, the same for a live run and a resumed one. A run keeps both in
//!   step ([`crate::Engine::keep`]): it judges an event, records it, and then lets it count.
//! - [`Lines`] are the same journal in memory.
//! - [`inspect`] and [`salvage`] are for a store that has come to harm.
//!
//! ```
//! use batchquad::journal::{Applied, Asked, Event, Header, Ledger, Store, Told};
//! use batchquad::types::{Job, JobId, Outcome};
//! # let scratch = tempfile::tempdir().unwrap();
//! # let dir = scratch.path().join("store");
//! let header = Header::new(vec!["x".into()], 1, serde_json::json!({"prior": "…"}), serde_json::Map::new())?;
//! let mut store = Store::create(&dir, &header)?;
//! let job = Job { id: JobId(0), theta: vec![0.5], seed: 7 };
//! store.append(&Event::Asked(Asked { jobs: vec![job], seconds: 0.0, info: Default::default(), repeat: 0 }))?;
//! drop(store); // the run is killed …
//!
//! let (mut store, replay) = Store::open(&dir)?; // … and resumed
//! let mut ledger: Ledger = replay.ledger()?;
//! assert_eq!(ledger.pending().count(), 1);
//! let told = Event::Told(Told::new(JobId(0), Outcome::Value(-1.25)));
//! ledger.judge(&told)?; // refused here, nothing would be recorded
//! store.append(&told)?;
//! assert_eq!(ledger.apply(&told)?, Applied::Counted);
//! assert_eq!(ledger.apply(&told)?, Applied::Repeated);
//! # Ok::<(), batchquad::Error>(())
//! ```

mod entry;
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

pub use entry::{Applied, Entry, Failure};
pub use event::{Asked, Event, Retried, Row, Told};
pub use header::{FORMAT, Header};
pub use ledger::Ledger;
pub use lines::Lines;
pub use lock::Holder;
pub use medium::{Medium, Wrap};
pub use number::LogValue;
pub use remark::Topic;
pub use replay::{Damage, Recorded, Replay, Torn};
pub use salvage::{Inspection, Salvage, inspect, salvage};
pub use store::Store;
