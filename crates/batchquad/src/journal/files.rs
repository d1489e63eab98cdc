//! The files of a store: where they are, and who may read them.

use crate::error::{Error, Result};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The journal's name inside a store.
pub(super) const JOURNAL: &str = "journal.jsonl";
/// The journal's name until its header is on the disk.
const UNBORN: &str = "journal.new";

/// Options for a file that only its owner may read.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Opens a file of a store, which is a regular file or nothing: a store from somewhere else must not make us
/// write to what a link leads to, nor wait for a pipe.
pub(super) fn open_own(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = options.custom_flags(i32::try_from(flags.bits()).unwrap_or_default()).open(path);
        let file = file.map_err(|e| match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => not_ours("a symbolic link"),
            Ok(found) if !found.is_file() => not_ours("not a regular file"),
            _ => e,
        })?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(not_ours("not a regular file")) }
    }
    #[cfg(not(unix))]
    {
        if path.is_symlink() {
            return Err(not_ours("a symbolic link"));
        }
        options.open(path)
    }
}

/// The file again, unless it has other names: what is cut off here would be cut off there.
pub(super) fn require_one_name(file: File) -> io::Result<File> {
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::nlink(&file.metadata()?) > 1 {
        return Err(not_ours("another name of some file elsewhere (a hard link)"));
    }
    Ok(file)
}

fn not_ours(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, expected a file of the store's own"))
}

/// The journal of the store `dir`. A symbolic link to a store is followed.
pub(super) fn journal_of(dir: &Path) -> Result<PathBuf> {
    let not = |reason: &str| Err(Error::NotAStore { path: dir.into(), reason: reason.into() });
    match dir.metadata() {
        Ok(metadata) if !metadata.is_dir() => return not("it is a file, expected a directory"),
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return not(if dir.is_symlink() { "it is a link to nothing" } else { "there is nothing at this path" });
        }
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => return not("a part of the path is a file"),
        Err(e) => return Err(Error::io(dir, "look at", e)),
    }
    let path = dir.join(JOURNAL);
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_file() => Ok(path),
        Ok(metadata) if metadata.is_symlink() => not("its journal.jsonl is a symbolic link"),
        Ok(_) => not("its journal.jsonl is not a file"),
        Err(e) if e.kind() == io::ErrorKind::NotFound => not("the directory has no journal.jsonl"),
        Err(e) => Err(Error::io(&path, "look at", e)),
    }
}

/// Makes `dir` ready for a new store: the directory and its missing parents exist, and nothing of anybody's is in it.
pub(super) fn prepare(dir: &Path) -> Result<()> {
    match journal_of(dir) {
        Ok(_) => return Err(Error::StoreExists { path: dir.into() }),
        Err(e @ Error::NotAStore { .. }) if dir.exists() && !dir.is_dir() || dir.is_symlink() && !dir.exists() => {
            return Err(e);
        }
        Err(Error::NotAStore { .. }) => {}
        Err(e) => return Err(e),
    }
    let missing: Vec<&Path> = dir.ancestors().take_while(|d| !d.as_os_str().is_empty() && !d.exists()).collect();
    for dir in missing.into_iter().rev() {
        make_dir(dir)?;
    }
    let entries = dir.read_dir().map_err(|e| Error::io(dir, "read", e))?;
    for entry in entries {
        let name = entry.map_err(|e| Error::io(dir, "read", e))?.file_name();
        if name == JOURNAL {
            return Err(Error::StoreExists { path: dir.into() });
        }
        // What a creation that was killed half-way leaves behind is ours.
        if name != "lock" && name != UNBORN {
            let reason = format!("the directory has no journal but holds {name:?}, expected a new or empty directory");
            return Err(Error::NotAStore { path: dir.into(), reason });
        }
    }
    Ok(())
}

fn make_dir(dir: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(dir) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(Error::io(dir, "create", e)),
    }
    sync_dir(dir.parent().unwrap_or(dir))
}

/// A file for the journal to be, under another name until [`install`].
pub(super) fn unborn(dir: &Path) -> Result<File> {
    let path = dir.join(UNBORN);
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(Error::io(&path, "remove", e)),
        _ => {}
    }
    private().read(true).write(true).create_new(true).open(&path).map_err(|e| Error::io(&path, "create", e))
}

/// Gives the journal its name, all at once: a store has a whole header or does not exist.
pub(super) fn install(dir: &Path) -> Result<()> {
    let path = dir.join(JOURNAL);
    std::fs::rename(dir.join(UNBORN), &path).map_err(|e| Error::io(&path, "create", e))?;
    sync_dir(dir)
}

/// Keeps bytes that are about to be cut off, in the first `journal.torn-N` that is free.
pub(super) fn keep_aside(dir: &Path, bytes: &[u8]) -> Result<PathBuf> {
    for n in 1_u32.. {
        let path = dir.join(format!("journal.torn-{n}"));
        match private().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                if let Err(e) = io::Write::write_all(&mut file, bytes).and_then(|()| file.sync_all()) {
                    let _ = std::fs::remove_file(&path);
                    return Err(Error::io(&path, "keep the torn end of the journal in", e));
                }
                sync_dir(dir)?;
                return Ok(path);
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(Error::io(&path, "create", e)),
        }
    }
    Err(Error::io(dir, "keep the torn end of the journal in", "too many torn ends"))
}

/// Makes the names in a directory durable.
#[cfg(unix)]
pub(super) fn sync_dir(dir: &Path) -> Result<()> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    File::open(dir).and_then(|d| d.sync_all()).map_err(|e| Error::io(dir, "flush", e))
}

/// Directories cannot be flushed here; the file system sees to it.
#[cfg(not(unix))]
pub(super) fn sync_dir(_dir: &Path) -> Result<()> {
    Ok(())
}
