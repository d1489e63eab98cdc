//! The append-only store.

use super::event::Event;
use super::files::{self, JOURNAL};
use super::header::Header;
use super::lock::Lock;
use super::medium::{Disk, Medium, Wrap};
use super::record::{Link, encode};
use super::replay::Replay;
use super::scan::{Scan, Tail};
use crate::error::{Error, Result};
use serde_json::value::{RawValue, to_raw_value};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A journal open for appending, by this process alone.
///
/// Nothing is cached: when [`Store::append`] returns, the record is on the disk.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    medium: Box<dyn Medium>,
    size: u64,
    last: Link,
    failed: Option<String>,
    lock: Lock,
}

impl Store {
    /// A new store in the directory `dir`, which must be empty or not exist; it and its parents are created with mode
    /// 0700, the files with 0600.
    ///
    /// # Errors
    /// [`Error::StoreExists`], [`Error::NotAStore`] when `dir` is a file or holds other things, [`Error::StoreLocked`]
    /// when another process is creating the same store, [`Error::Io`].
    pub fn create(dir: impl AsRef<Path>, header: &Header) -> Result<Self> {
        Self::create_through(dir, header, &|medium| medium)
    }

    /// [`Store::create`] with something between the store and its file.
    ///
    /// # Errors
    /// As [`Store::create`].
    pub fn create_through(dir: impl AsRef<Path>, header: &Header, wrap: Wrap<'_>) -> Result<Self> {
        let text = faithful(header, Header::parse)?;
        let (line, last) = encode(Link::start(), now(), 0, &text)?;
        Self::install(dir.as_ref(), &line, last, wrap)
    }

    /// Makes a store of the whole lines `bytes`, the last of which is `last`.
    pub(super) fn install(dir: &Path, bytes: &[u8], last: Link, wrap: Wrap<'_>) -> Result<Self> {
        files::prepare(dir)?;
        let mut lock = Lock::take(dir, None)?;
        // Somebody may have been quicker between the look and the lock.
        files::prepare(dir)?;
        let file = files::unborn(dir)?;
        lock.extend(dir, &file)?;
        let mut medium = wrap(Box::new(Disk(file)));
        medium.append(bytes).and_then(|()| medium.sync()).map_err(|e| Error::io(dir.join(JOURNAL), "write", e))?;
        files::install(dir)?;
        Ok(Self { dir: dir.into(), medium, size: bytes.len() as u64, last, failed: None, lock })
    }

    /// Opens a store for writing, and reads it. A symbolic link to a store is followed.
    ///
    /// The end that an interrupted write left is moved to a file `journal.torn-N` and reported in [`Replay::torn`].
    ///
    /// # Errors
    /// [`Error::NotAStore`], [`Error::StoreLocked`], [`Error::StoreDamaged`], [`Error::StoreVersion`] (nothing is
    /// changed by any of them), [`Error::Io`].
    pub fn open(dir: impl AsRef<Path>) -> Result<(Self, Replay)> {
        Self::open_through(dir, &|medium| medium)
    }

    /// [`Store::open`] with something between the store and its file.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_through(dir: impl AsRef<Path>, wrap: Wrap<'_>) -> Result<(Self, Replay)> {
        let dir = dir.as_ref();
        let path = files::journal_of(dir)?;
        let file = files::open_own(files::private().read(true).write(true), &path);
        let file = file.map_err(|e| Error::io(&path, "open for writing", e))?;
        let lock = Lock::take(dir, Some(&file))?;
        let mut disk = Disk(file);
        let bytes = disk.read().map_err(|e| Error::io(&path, "read", e))?;
        let scan = Scan::new(&bytes);
        let mut replay = Replay::new(dir, &scan, bytes.len())?;
        replay.left_by = lock.left_by().cloned();
        if let Some(damage) = replay.damage {
            return Err(Error::StoreDamaged { path: dir.into(), record: damage.record, reason: damage.reason });
        }
        let mut medium = wrap(Box::new(disk));
        let mut size = scan.end as u64;
        if let Some(torn) = &mut replay.torn {
            torn.kept = Some(files::keep_aside(dir, &bytes[scan.end..])?);
            medium.cut(size).and_then(|()| medium.sync()).map_err(|e| Error::io(&path, "repair", e))?;
        } else if scan.tail == Tail::Unterminated {
            medium.append(b"\n").and_then(|()| medium.sync()).map_err(|e| Error::io(&path, "repair", e))?;
            size += 1;
        }
        let store = Self { dir: dir.into(), medium, size, last: scan.last, failed: None, lock };
        Ok((store, replay))
    }

    /// Whether the writer before this one was killed.
    #[must_use]
    pub fn was_killed(&self) -> bool {
        self.lock.left_by().is_some()
    }

    /// Reads a store without locking or changing it, also while another process writes to it.
    ///
    /// A torn end and damage are reported in the [`Replay`], which then holds everything before them.
    ///
    /// # Errors
    /// [`Error::NotAStore`], [`Error::StoreDamaged`] when the header itself is, [`Error::StoreVersion`], [`Error::Io`].
    pub fn read(dir: impl AsRef<Path>) -> Result<Replay> {
        let dir = dir.as_ref();
        let bytes = Self::bytes(dir)?;
        Replay::new(dir, &Scan::new(&bytes), bytes.len())
    }

    pub(super) fn bytes(dir: &Path) -> Result<Vec<u8>> {
        let path = files::journal_of(dir)?;
        let file = files::open_own(OpenOptions::new().read(true), &path);
        file.and_then(|file| Disk(file).read()).map_err(|e| Error::io(&path, "read", e))
    }

    /// Whether there is a store at `dir`, in whatever state.
    #[must_use]
    pub fn exists(dir: impl AsRef<Path>) -> bool {
        files::journal_of(dir.as_ref()).is_ok()
    }

    /// Adds an event. On return it would survive a power failure.
    ///
    /// When the write fails, what was written of it is cut off again as far as the disk allows, and the store takes no
    /// more events until it is opened anew.
    ///
    /// # Errors
    /// [`Error::NonFinitePoint`] and [`Error::Invalid`] for an event that cannot be recorded, which leaves the store as
    /// it was; [`Error::Io`] when the write failed, [`Error::StoreFailed`] from then on; [`Error::StoreDamaged`] when
    /// something else has written to the file; [`Error::StoreLocked`] in a fork of the process that opened the store.
    pub fn append(&mut self, event: &Event) -> Result<()> {
        self.append_all(std::slice::from_ref(event))
    }

    /// Adds several events, with one look at the disk for all: hundreds of answers in a second would otherwise wait for it one by one.
    ///
    /// # Errors
    /// As [`Store::append`]; then none of the events is in the store.
    pub fn append_all(&mut self, events: &[Event]) -> Result<()> {
        if let Some(reason) = &self.failed {
            return Err(Error::StoreFailed { path: self.dir.clone(), reason: reason.clone() });
        }
        self.lock.require_ours(&self.dir)?;
        let (mut lines, mut last) = (Vec::new(), self.last);
        for (with, event) in (0..).zip(events) {
            event.validate()?;
            let (line, link) = encode(last, now(), with, &faithful(event, Event::parse)?)?;
            lines.extend(line);
            last = link;
        }
        if lines.is_empty() {
            return Ok(());
        }
        self.write(&lines).inspect_err(|e| self.failed = Some(e.to_string()))?;
        self.size += lines.len() as u64;
        self.last = last;
        Ok(())
    }

    fn write(&mut self, line: &[u8]) -> Result<()> {
        let path = self.dir.join(JOURNAL);
        let size = self.medium.size().map_err(|e| Error::io(&path, "append to", e))?;
        if size != self.size {
            let reason = format!("the journal has {size} bytes, expected {}: something else wrote to it", self.size);
            return Err(Error::StoreDamaged { path: self.dir.clone(), record: self.last.seq + 1, reason });
        }
        self.medium.append(line).and_then(|()| self.medium.sync()).map_err(|e| {
            // If this fails too, the next opening does it.
            let _ = self.medium.cut(self.size).and_then(|()| self.medium.sync());
            Error::io(&path, "append to", e)
        })
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// How many records there are, the header included.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.last.seq
    }
}

/// `value` as JSON, provided that the same value is read back: the last chance to notice what JSON cannot hold.
pub(super) fn faithful<T: serde::Serialize + PartialEq, E: std::fmt::Debug>(
    value: &T,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Box<RawValue>> {
    let refuse = |reason: String| Error::invalid("record", reason, "one that reads back as it was written");
    let text = to_raw_value(value).map_err(|e| refuse(e.to_string()))?;
    match parse(text.get()) {
        Ok(back) if back == *value => Ok(text),
        Ok(_) => Err(refuse("a different one when read back".into())),
        Err(e) => Err(refuse(format!("{e:?}"))),
    }
}

pub(super) fn now() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}
