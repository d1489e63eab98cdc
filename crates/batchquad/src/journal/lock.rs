//! One writer at a time.

use super::files;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

const LOCK: &str = "lock";

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
        serde_json::from_slice(&std::fs::read(dir.join(LOCK)).ok()?).ok()
    }

    /// Whether that process exists; `None` if it runs on another machine, where we cannot look.
    #[must_use]
    pub fn is_alive(&self) -> Option<bool> {
        (self.host == host()).then(|| exists(self.pid))
    }
}

/// The operating system's lock on a store. It ends with the process, however that ends, so there are no stale ones.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    holder: Holder,
}

impl Lock {
    /// Takes the lock or says at once who has it.
    pub fn take(dir: &Path) -> Result<Self> {
        let path = dir.join(LOCK);
        let mut file = files::private()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| Error::io(&path, "open", e))?;
        self::take(&file, dir)?;
        // The name is for people; the lock holds without it, even on a full disk.
        let holder = Holder::this();
        if let Ok(text) = serde_json::to_vec(&holder) {
            let _ = file.set_len(0).and_then(|()| file.write_all(&text));
        }
        Ok(Self { file, holder })
    }

    /// A forked child inherits the lock together with everything else, but the store remains its parent's.
    pub fn require_ours(&self, dir: &Path) -> Result<()> {
        if self.is_ours() {
            return Ok(());
        }
        let Holder { pid, host } = self.holder.clone();
        Err(Error::StoreLocked { path: dir.into(), pid: Some(pid), host: Some(host) })
    }

    fn is_ours(&self) -> bool {
        self.holder.pid == std::process::id()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.is_ours() {
            let _ = self.file.set_len(0);
        }
    }
}

/// Locks `file` of the store `dir` until it is closed.
pub(super) fn take(file: &File, dir: &Path) -> Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::Error(e)) => Err(Error::io(dir, "lock", e)),
        Err(TryLockError::WouldBlock) => {
            // The holder writes its name just after it has the lock: give it that moment.
            for _ in 0..5 {
                if Holder::of(dir).is_some_and(|holder| holder.is_alive() != Some(false)) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            let (pid, host) = Holder::of(dir).map(|holder| (holder.pid, holder.host)).unzip();
            Err(Error::StoreLocked { path: dir.into(), pid, host })
        }
    }
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
        let mut lock = Lock::take(dir).unwrap();
        lock.require_ours(dir).unwrap();
        // What the child of a fork sees: the lock is there, the process is another.
        lock.holder.pid += 1;
        assert!(matches!(lock.require_ours(dir), Err(Error::StoreLocked { pid, .. }) if pid == Some(lock.holder.pid)));
        drop(lock);
        assert_eq!(Holder::of(dir).unwrap().pid, std::process::id());
        assert_eq!(Holder::of(dir).unwrap().is_alive(), Some(true));
    }

    #[test]
    fn the_life_of_a_process_elsewhere_is_unknown() {
        let elsewhere = Holder { pid: std::process::id(), host: format!("not-{}", host()) };
        assert_eq!(elsewhere.is_alive(), None);
        assert_eq!(Holder { pid: u32::MAX, host: host() }.is_alive(), Some(false));
    }
}
