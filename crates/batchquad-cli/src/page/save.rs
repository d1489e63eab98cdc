//! Writing a page: whole or not at all, and never over a file that is needed.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, Read, Write},
    path::Path,
};

use anyhow::{Context, Result};

use crate::exit::BadInput;

/// What every page of ours has among its first lines.
const MARK: &str = "<meta name=\"generator\" content=\"batchquad ";

/// Who chose the name of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// The user: a file of that name is replaced, as by any program.
    ByUser,
    /// We did: only an earlier page of ours is replaced.
    ByUs,
}

/// Writes a page to a file, whole or not at all, or to standard output for `-`.
///
/// Only regular files are replaced; a device, a named pipe or a socket stays what it is and is written to. What a link leads to
/// is replaced only if it is a page of ours: the person who made the link may not be the one who gave its name.
pub fn save(html: &str, file: &Path, named: Named) -> Result<()> {
    if file.as_os_str() == "-" {
        let mut out = io::stdout().lock();
        out.write_all(html.as_bytes())?;
        return Ok(out.flush()?);
    }
    let name = file.file_name().ok_or_else(|| BadInput(format!("{} is not a file to write to", file.display())))?;
    let refuse = |why: &str| Err(BadInput(format!("{} {why}", file.display())).into());
    let here = match file.symlink_metadata() {
        Ok(metadata) => Some(metadata),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(e).with_context(|| format!("cannot look at {}", file.display())),
    };
    let is_link = here.as_ref().is_some_and(|metadata| metadata.file_type().is_symlink());
    let there = if is_link {
        match file.metadata() {
            Ok(metadata) => Some(metadata),
            Err(_) => return refuse("is a link to nothing, expected a file to write to"),
        }
    } else {
        here
    };
    let is_precious = |found: &Metadata| (is_link || named == Named::ByUs) && found.len() > 0 && !is_page(file);
    match there {
        Some(found) if found.is_dir() => return refuse("is a directory, expected a file to write to"),
        Some(found) if !found.is_file() => return write_into(html, file, &found),
        Some(found) if is_precious(&found) => {
            return refuse("exists already and is not a page of batchquad's, expected another name (-o FILE)");
        }
        _ => {}
    }
    // The target of a link is replaced; the link stays.
    let target = if is_link { file.canonicalize()? } else { file.to_path_buf() };
    let mut unfinished = if is_link { target.file_name().unwrap_or(name) } else { name }.to_owned();
    unfinished.push(format!(".{}.part", std::process::id()));
    let unfinished = target.with_file_name(unfinished);
    // Refused if it exists: no file is written through a link that waits under this name.
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&unfinished)
        .and_then(|mut part| part.write_all(html.as_bytes()))
        .and_then(|()| std::fs::rename(&unfinished, &target));
    if written.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::AlreadyExists) {
        let _ = std::fs::remove_file(&unfinished);
    }
    written.with_context(|| format!("cannot write {}", file.display()))
}

/// Whether a file is a page that this program wrote.
fn is_page(file: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(file).and_then(|file| file.take(4096).read_to_end(&mut head));
    read.is_ok() && String::from_utf8_lossy(&head).contains(MARK)
}

/// Writes to what is not a regular file: nothing is created, cut or renamed.
#[cfg(unix)]
fn write_into(html: &str, file: &Path, found: &Metadata) -> Result<()> {
    use rustix::{fs::OFlags, io::ioctl_fionbio};
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    if found.file_type().is_block_device() || found.file_type().is_socket() {
        return Err(BadInput(format!("{} is a disk or a socket, expected a file to write to", file.display())).into());
    }
    // Opening a pipe waits for its reader, perhaps for ever; asked not to wait, the system says that there is none.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let opened = OpenOptions::new().write(true).custom_flags(flags).open(file);
    let written = opened.and_then(|mut pipe| {
        ioctl_fionbio(&pipe, false)?;
        pipe.write_all(html.as_bytes())
    });
    let hint = if found.file_type().is_fifo() { " (a pipe needs a reader)" } else { "" };
    written.with_context(|| format!("cannot write to {}{hint}", file.display()))
}

#[cfg(not(unix))]
fn write_into(_html: &str, file: &Path, _found: &Metadata) -> Result<()> {
    Err(BadInput(format!("{} is not a regular file, expected one", file.display())).into())
}
