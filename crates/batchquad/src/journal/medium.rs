//! What a journal is written on.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// The four things a [`super::Store`] does to its file, so that a test can make any of them fail.
pub trait Medium: Debug + Send {
    /// The number of bytes held.
    ///
    /// # Errors
    /// Whatever the operating system says; also if the file has been removed.
    fn size(&self) -> io::Result<u64>;

    /// Writes `bytes` at the end, in one call.
    ///
    /// # Errors
    /// As from the operating system; some of the bytes may have been written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Returns when everything written would survive a power failure.
    ///
    /// # Errors
    /// As from the operating system; nothing is then known about what was written.
    fn sync(&mut self) -> io::Result<()>;

    /// Forgets all bytes from `size` on.
    ///
    /// # Errors
    /// As from the operating system.
    fn cut(&mut self, size: u64) -> io::Result<()>;
}

/// A function that puts something between a store and its file.
pub type Wrap<'a> = &'a dyn Fn(Box<dyn Medium>) -> Box<dyn Medium>;

/// A file on a disk.
#[derive(Debug)]
pub(super) struct Disk(pub File);

impl Disk {
    pub fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.0.seek(SeekFrom::Start(0))?;
        self.0.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Medium for Disk {
    fn size(&self) -> io::Result<u64> {
        let metadata = self.0.metadata()?;
        // Records appended to a file without a name would be gone with the process.
        #[cfg(unix)]
        if std::os::unix::fs::MetadataExt::nlink(&metadata) == 0 {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the file has been removed"));
        }
        Ok(metadata.len())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.seek(SeekFrom::End(0))?;
        // One call unless the disk takes only a part, in which case the second call tells why.
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn cut(&mut self, size: u64) -> io::Result<()> {
        self.0.set_len(size)
    }
}
