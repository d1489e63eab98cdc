//! Looking at a store that may be damaged, and saving what can be saved into a new one.

use super::event::{Event, Unreadable, malformed};
use super::header::Header;
use super::ledger::Ledger;
use super::lock::Holder;
use super::record::{self, Link, RawRecord, decode, encode, find, starts_as_a_record};
use super::replay::{Damage, Replay};
use super::store::{Store, now};
use crate::error::{Error, Result};
use serde_json::value::{RawValue, to_raw_value};
use std::path::{Path, PathBuf};

/// The longest stretch in which a flipped bit is looked for: beyond it CRC-32 no longer tells one flipped bit from
/// three.
const MENDABLE: usize = 91_607 / 8;

/// What became of the records of a damaged store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Salvage {
    /// How many records were saved, the header included.
    pub kept: u64,
    /// The lines in which a single flipped bit was found and put right; they are among those saved.
    pub mended: Vec<u64>,
    /// The lines that were lost, and why.
    pub lost: Vec<Damage>,
}

/// The state of a store, for a person who wonders.
#[derive(Debug)]
pub struct Inspection {
    /// The length of the journal in bytes.
    pub bytes: u64,
    /// Its content, or why there is none to be had.
    pub replay: Result<Replay>,
    /// The process that writes to the store, or was writing when it was killed.
    pub holder: Option<Holder>,
    /// The torn ends that were kept aside.
    pub torn: Vec<PathBuf>,
    /// The store's files that people other than the owner may read or write.
    pub exposed: Vec<PathBuf>,
    /// For a damaged store: what [`salvage`] would save.
    pub salvage: Option<Result<Salvage>>,
}

/// Looks at a store without locking or changing it.
///
/// # Errors
/// [`Error::NotAStore`], [`Error::Io`]. Damage is part of the answer.
pub fn inspect(dir: impl AsRef<Path>) -> Result<Inspection> {
    let dir = dir.as_ref();
    let bytes = Store::bytes(dir)?;
    let replay = Store::read(dir).and_then(|replay| match &replay.damage {
        None => replay.ledger().map(|_| replay),
        Some(_) => Ok(replay),
    });
    let damaged = match &replay {
        Ok(replay) => replay.damage.is_some(),
        Err(e) => matches!(e, Error::StoreDamaged { .. }),
    };
    let entries = dir.read_dir().map_err(|e| Error::io(dir, "read", e))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.sort();
    let is_torn = |p: &PathBuf| p.file_name().is_some_and(|name| name.to_string_lossy().starts_with("journal.torn-"));
    Ok(Inspection {
        bytes: bytes.len() as u64,
        salvage: damaged.then(|| rescue(dir, &bytes).map(|rescued| rescued.report)),
        replay,
        holder: Holder::of(dir),
        torn: paths.iter().filter(|p| is_torn(p)).cloned().collect(),
        exposed: std::iter::once(dir.to_path_buf()).chain(paths).filter(|p| is_exposed(p)).collect(),
    })
}

#[cfg(unix)]
fn is_exposed(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_exposed(_path: &Path) -> bool {
    false
}

/// Writes every record of `dir` that proves itself and still makes sense into a new store at `new_dir`, with a note of
/// what was lost. The old store is left as it is.
///
/// A record with a single flipped bit is put right. An answer to a job whose batch was lost goes with it, because
/// nothing says any more which point it belongs to.
///
/// # Errors
/// [`Error::StoreDamaged`] when the header is beyond repair, [`Error::StoreVersion`], and those of [`Store::create`].
pub fn salvage(dir: impl AsRef<Path>, new_dir: impl AsRef<Path>) -> Result<Salvage> {
    let dir = dir.as_ref();
    let Rescued { mut bytes, last, report } = rescue(dir, &Store::bytes(dir)?)?;
    let lost: Vec<String> = report.lost.iter().map(|d| format!("{} ({})", d.record, d.reason)).collect();
    let note = Event::Note {
        text: format!(
            "salvaged {} records, put right lines {:?}, lost lines [{}]",
            report.kept,
            report.mended,
            lost.join("; ")
        ),
    };
    let note = to_raw_value(&note).map_err(|e| Error::invalid("note", e.to_string(), "JSON"))?;
    let (line, last) = encode(last, now(), 0, &note)?;
    bytes.extend_from_slice(&line);
    Store::install(new_dir.as_ref(), &bytes, last, &|medium| medium)?;
    Ok(report)
}

struct Rescued {
    bytes: Vec<u8>,
    last: Link,
    report: Salvage,
}

/// A new chain of all the records in `bytes` that can be saved.
fn rescue(dir: &Path, bytes: &[u8]) -> Result<Rescued> {
    let mut rescued = Rescued { bytes: Vec::new(), last: Link::start(), report: Salvage::default() };
    let mut ledger: Option<Ledger> = None;
    let mut chain = Chain::default();
    let lines = lines_of(bytes);
    for (i, line) in lines.iter().enumerate() {
        let accepted = chain.admit(line, lines.get(i + 1)).and_then(|found| {
            match &mut ledger {
                None => ledger = Some(Ledger::new(Header::parse(&found.event)?)),
                Some(ledger) => {
                    ledger.apply(&Event::parse(&found.event)?).map_err(malformed)?;
                }
            }
            RawValue::from_string(found.event.clone()).map(|raw| (found.at, raw)).map_err(malformed)
        });
        match accepted {
            Ok((at, raw)) => {
                let (bytes, link) = encode(rescued.last, at, 0, &raw)?;
                rescued.bytes.extend_from_slice(&bytes);
                rescued.last = link;
                rescued.report.kept += 1;
                if line.mended {
                    rescued.report.mended.push(line.number);
                }
            }
            Err(Unreadable::Newer { found, supported }) => {
                return Err(Error::StoreVersion { path: dir.into(), found, supported });
            }
            Err(Unreadable::Malformed(reason)) if ledger.is_none() => {
                return Err(Error::StoreDamaged { path: dir.into(), record: line.number, reason });
            }
            Err(Unreadable::Malformed(reason)) => {
                rescued.report.lost.push(Damage { record: line.number, reason });
            }
        }
    }
    match ledger {
        Some(_) => Ok(rescued),
        None => Err(Error::StoreDamaged { path: dir.into(), record: 1, reason: "the journal is empty".into() }),
    }
}

/// A line of the file, and the record in it or why there is none.
struct Line {
    number: u64,
    mended: bool,
    record: Result<Kept, String>,
}

struct Kept {
    link: Link,
    prev: u32,
    at: u64,
    event: String,
}

impl From<RawRecord<'_>> for Kept {
    fn from(raw: RawRecord<'_>) -> Self {
        Self { link: raw.link, prev: raw.prev, at: raw.at, event: raw.event.into() }
    }
}

/// Decides which lines belong to this journal although some are missing between them.
#[derive(Default)]
struct Chain {
    last: Link,
    broken: bool,
}

impl Chain {
    fn admit<'a>(&mut self, line: &'a Line, next: Option<&Line>) -> Result<&'a Kept, Unreadable> {
        let found = line.record.as_ref().map_err(|reason| {
            self.broken = true;
            malformed(reason)
        })?;
        let next_follows = next.is_none_or(|next| next.record.as_ref().is_ok_and(|next| next.prev == found.link.crc));
        let belongs = match found.link.seq.checked_sub(self.last.seq) {
            Some(1) => self.last.seq == 0 || found.prev == self.last.crc,
            // Behind lines that are lost the chain cannot be followed back, only forward.
            Some(2..) => self.broken || next_follows,
            _ => false,
        };
        if !belongs {
            return Err(malformed(format!("record {} does not belong here", found.link.seq)));
        }
        self.last = found.link;
        self.broken = false;
        Ok(found)
    }
}

/// The lines of a file, with every run of bad ones mended as a whole if one flipped bit explains it.
fn lines_of(bytes: &[u8]) -> Vec<Line> {
    let texts: Vec<&[u8]> = bytes.split_inclusive(|&b| b == b'\n').collect();
    let mut lines = Vec::with_capacity(texts.len());
    for run in texts.chunk_by(|a, b| verifies(a) == verifies(b)) {
        // As a whole, because the bit may have made or unmade a newline.
        let mended = if verifies(run[0]) { None } else { mend(&run.concat()) };
        let texts = mended.as_ref().map(|bytes| bytes.split_inclusive(|&b| b == b'\n').collect());
        for text in texts.as_ref().unwrap_or(&run.to_vec()) {
            let record = decode(trim(text)).or_else(|reason| find(trim(text)).ok_or(reason)).map(Kept::from);
            lines.push(Line { number: lines.len() as u64 + 1, mended: mended.is_some(), record });
        }
    }
    lines
}

/// `stretch`, bad lines one after the other, with the one bit flipped that makes all its lines prove themselves. Linear
/// in its length.
///
/// A bit that made a newline leaves two bad lines, any other a single one; more have come to more harm than one bit.
fn mend(stretch: &[u8]) -> Option<Vec<u8>> {
    if stretch.len() > MENDABLE {
        return None;
    }
    let whole = |trial: &[u8]| trial.split_inclusive(|&b| b == b'\n').all(verifies);
    let flip = |i: usize, bit: u32| {
        let mut trial = stretch.to_vec();
        trial[i] ^= 1 << bit;
        whole(&trial).then_some(trial)
    };
    let lines: Vec<&[u8]> = stretch.split_inclusive(|&b| b == b'\n').collect();
    match lines[..] {
        [line] => {
            let mended = record::mend(trim(line)).map(|mended| [&mended, &line[trim(line).len()..]].concat());
            // A newline that became something else joined two lines, the second of which begins as lines do.
            let joint = |i: usize| {
                let bit = (stretch[i] ^ b'\n').trailing_zeros();
                let one_bit = (stretch[i] ^ b'\n').count_ones() == 1;
                if one_bit && starts_as_a_record(&stretch[i + 1..]) { flip(i, bit) } else { None }
            };
            // The newline of the last line may be what was hit.
            let last = || {
                let (end, rest) = stretch.split_last()?;
                ((end ^ b'\n').count_ones() == 1 && verifies(rest)).then(|| [rest, b"\n"].concat())
            };
            mended.filter(|mended| whole(mended)).or_else(|| (0..stretch.len()).find_map(joint)).or_else(last)
        }
        [first, _] => (0..8).find_map(|bit| flip(first.len() - 1, bit)),
        _ => None,
    }
}

fn verifies(line: &[u8]) -> bool {
    decode(trim(line)).is_ok()
}

fn trim(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}
