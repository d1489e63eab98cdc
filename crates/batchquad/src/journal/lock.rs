//! One writer at a time.

use super::files;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

const LOCK: &str = "lock";
/// More bytes than the name of any holder has.
const LONGEST: u64 = 4096;
/// How long a lock with a living holder is tried for: the time it takes to write the holder's name.
const MOMENT: Duration = Duration::from_millis(50);
/// How long a lock without one is tried for: a process that was killed while it started a child has its lock kept by
/// that child until the child runs its own program.
const GRACE: Duration = Duration::from_secs(2);

/// The process that writes to a store, or was writing when it was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// The name of the machine it runs on.
    pub host: String,
}

impl Holder {
    fn this() -> Self {
        Self { pid: std::process::id(), host: host() }
    }

    /// The holder that the store's lock file names, if any: a writer that ended in good order leaves none.
    #[must_use]
    pub fn of(dir: &Path) -> Option<Self> {
        let file = files::open_own(OpenOptions::new().read(true), &dir.join(LOCK)).ok()?;
        let mut text = Vec::new();
        file.take(LONGEST).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// The holder that is writing to the store at this moment, on whatever machine: the lock says so, and not the
    /// number of a process, which may be another's by now.
    #[must_use]
    pub fn at_work(dir: &Path) -> Option<Self> {
        let holder = Self::of(dir)?;
        let file = files::open_own(OpenOptions::new().read(true), &dir.join(LOCK)).ok()?;
        match file.try_lock_shared() {
            // Nobody has it. Given back at once; a writer that comes just now tries again in a moment.
            Ok(()) => {
                let _ = file.unlock();
                None
            }
            Err(TryLockError::WouldBlock) => Some(holder),
            // A disk without locks: what is left is the word of the file.
            Err(TryLockError::Error(_)) => Some(holder).filter(|holder| holder.is_alive() != Some(false)),
        }
    }

    /// Takes the name of this process out of the store's lock file, for an end in good order that does not come to dropping the store.
    pub fn resign(dir: &Path) {
        if Self::of(dir).is_some_and(|holder| holder == Self::this())
            && let Ok(file) = files::open_own(OpenOptions::new().write(true), &dir.join(LOCK))
        {
            let _ = file.set_len(0);
        }
    }

    /// Whether that process exists; `None` if it runs on another machine, where we cannot look.
    #[must_use]
    pub fn is_alive(&self) -> Option<bool> {
        (self.host == host()).then(|| exists(self.pid))
    }
}

/// A file locked by the operating system. The lock ends with the process, however that ends, so there are no stale
/// ones.
#[derive(Debug)]
struct Held {
    file: File,
    pid: u32,
}

impl Held {
    /// Locks a file of the store `dir`, or says who has it.
    fn take(file: &File, dir: &Path) -> Result<Self> {
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(e)) => return Err(Error::io(dir, "lock", e)),
                Err(TryLockError::WouldBlock) => {}
            }
            let holder = Holder::of(dir);
            let alive = holder.as_ref().is_some_and(|holder| holder.is_alive() != Some(false));
            if began.elapsed() > if alive { MOMENT } else { GRACE } {
                let (pid, host) = holder.map(|holder| (holder.pid, holder.host)).unzip();
                return Err(Error::StoreLocked { path: dir.into(), pid, host });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let file = file.try_clone().map_err(|e| Error::io(dir, "lock", e))?;
        Ok(Self { file, pid: std::process::id() })
    }

    fn is_ours(&self) -> bool {
        self.pid == std::process::id()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Closing would not do: a child that is just being started has the file open too, until it runs its own
        // program. And a forked child must not unlock what is its parent's.
        if self.is_ours() {
            let _ = self.file.unlock();
        }
    }
}

/// The right to write to a store.
#[derive(Debug)]
pub(super) struct Lock {
    file: Held,
    journal: Option<Held>,
    holder: Holder,
    left_by: Option<Holder>,
}

impl Lock {
    /// Takes the lock on an existing `journal`, or says at once who has it.
    pub fn take(dir: &Path, journal: Option<&File>) -> Result<Self> {
        let journal = journal.map(|journal| guard(journal, dir)).transpose()?.flatten();
        let path = dir.join(LOCK);
        let file = files::open_own(files::private().write(true).create(true).truncate(false), &path)
            .and_then(files::require_one_name);
        let file = Held::take(&file.map_err(|e| Error::io(&path, "open", e))?, dir)?;
        // Whoever is still named there did not come to the end of its work.
        let left_by = Holder::of(dir);
        // The name is for people; the lock holds without it, even on a full disk.
        let holder = Holder::this();
        if let Ok(text) = serde_json::to_vec(&holder) {
            let _ = file.file.set_len(0).and_then(|()| (&file.file).write_all(&text));
        }
        Ok(Self { file, journal, holder, left_by })
    }

    /// The writer before this one, if it was killed.
    pub fn left_by(&self) -> Option<&Holder> {
        self.left_by.as_ref()
    }

    /// Extends the lock to a journal that did not exist when it was taken.
    pub fn extend(&mut self, dir: &Path, journal: &File) -> Result<()> {
        self.journal = guard(journal, dir)?;
        Ok(())
    }

    /// A forked child inherits the lock together with everything else, but the store remains its parent's.
    pub fn require_ours(&self, dir: &Path) -> Result<()> {
        if self.file.is_ours() {
            return Ok(());
        }
        let Holder { pid, host } = self.holder.clone();
        Err(Error::StoreLocked { path: dir.into(), pid: Some(pid), host: Some(host) })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.file.is_ours() {
            let _ = self.file.file.set_len(0);
        }
    }
}

/// Locks the journal itself as well, so that deleting the lock file by hand does not let a second writer in.
#[cfg(unix)]
fn guard(journal: &File, dir: &Path) -> Result<Option<Held>> {
    Held::take(journal, dir).map(Some)
}

/// Elsewhere a lock on the journal would keep readers out.
#[cfg(not(unix))]
fn guard(_journal: &File, _dir: &Path) -> Result<Option<Held>> {
    Ok(None)
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

#[cfg(unix)]
fn exists(pid: u32) -> bool {
    use rustix::{io::Errno, process};
    let Some(pid) = i32::try_from(pid).ok().and_then(process::Pid::from_raw) else { return false };
    !matches!(process::test_kill_process(pid), Err(Errno::SRCH))
}

#[cfg(not(unix))]
fn exists(_pid: u32) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_neither_writes_nor_unlocks() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path();
        let mut lock = Lock::take(dir, None).unwrap();
        lock.require_ours(dir).unwrap();
        // What the child of a fork sees: the lock is there, the process is another.
        let parents = lock.file.file.try_clone().unwrap();
        lock.file.pid += 1;
        assert!(matches!(lock.require_ours(dir), Err(Error::StoreLocked { pid, .. }) if pid == Some(lock.holder.pid)));
        drop(lock);
        assert!(matches!(Lock::take(dir, None), Err(Error::StoreLocked { .. })), "its parent still has it");
        assert_eq!(Holder::of(dir).unwrap().pid, std::process::id());
        assert_eq!(Holder::of(dir).unwrap().is_alive(), Some(true));
        drop(parents);
    }

    #[test]
    fn a_child_being_started_does_not_keep_the_lock() {
        let scratch = tempfile::tempdir().unwrap();
        let lock = Lock::take(scratch.path(), None).unwrap();
        // What the child has between its fork and its exec: the same open file.
        let inherited = lock.file.file.try_clone().unwrap();
        drop(lock);
        let began = Instant::now();
        drop(Lock::take(scratch.path(), None).unwrap());
        assert!(began.elapsed() < GRACE);

        // The parent was killed, so that nobody unlocked; the child comes to its exec a little later.
        inherited.lock().unwrap();
        std::fs::write(scratch.path().join(LOCK), format!(r#"{{"pid":{},"host":"{}"}}"#, u32::MAX, host())).unwrap();
        let child = std::thread::spawn(move || {
            std::thread::sleep(MOMENT * 3);
            drop(inherited);
        });
        Lock::take(scratch.path(), None).unwrap();
        child.join().unwrap();
    }

    #[test]
    fn a_number_that_is_anothers_by_now_is_nobody_at_work() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path();
        assert_eq!(Holder::at_work(dir), None);
        let lock = Lock::take(dir, None).unwrap();
        assert_eq!(Holder::at_work(dir), Some(Holder::this()));
        drop(lock);
        assert_eq!(Holder::at_work(dir), None);
        // Killed: its name is still there, and its number was given to a process that lives, here or on another
        // machine.
        for host in [host(), "elsewhere".into()] {
            let left = serde_json::to_vec(&Holder { pid: std::process::id(), host }).unwrap();
            std::fs::write(dir.join(LOCK), left).unwrap();
            assert!(Holder::of(dir).is_some());
            assert_eq!(Holder::at_work(dir), None);
        }
        drop(Lock::take(dir, None).unwrap());
    }

    #[test]
    fn the_life_of_a_process_elsewhere_is_unknown() {
        let elsewhere = Holder { pid: std::process::id(), host: format!("not-{}", host()) };
        assert_eq!(elsewhere.is_alive(), None);
        assert_eq!(Holder { pid: u32::MAX, host: host() }.is_alive(), Some(false));
    }
}
