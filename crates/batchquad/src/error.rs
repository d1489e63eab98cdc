//! The one error type of the library.

use crate::types::JobId;
use std::path::{Path, PathBuf};

/// What can go wrong, with the offending value in the payload.
///
/// Every message names the value that was refused and what was expected instead, so that it can be shown to a user as
/// it stands. [`Error::is_recoverable`] tells whether the same object can still be used after mending the input.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value outside its domain: a negative scale, a NaN, an empty interval, …
    #[error("{what} is {value}, expected {expected}")]
    Invalid {
        /// The thing that was given, in words ("sd of the normal prior").
        what: String,
        /// The refused value, as text in full precision.
        value: String,
        /// What would have been accepted.
        expected: String,
    },
    /// Two lengths that have to agree do not.
    #[error("{what} has length {found}, expected {expected}")]
    Length {
        /// The thing whose length is wrong.
        what: String,
        /// The length it should have.
        expected: usize,
        /// The length it has.
        found: usize,
    },
    /// A coordinate of a point is NaN or infinite.
    #[error("coordinate {coordinate} of point {index} is {value}, expected a finite number")]
    NonFinitePoint {
        /// Which point (counted from zero).
        index: usize,
        /// Which coordinate (counted from zero).
        coordinate: usize,
        /// The refused coordinate.
        value: f64,
    },
    /// A log-likelihood is NaN or +∞. (−∞ is legal: the likelihood is zero there.)
    #[error("log-likelihood of point {index} at {point:?} is {value}, expected a finite number or -inf")]
    NonFiniteValue {
        /// Which value (counted from zero).
        index: usize,
        /// The point it belongs to, in full precision.
        point: Vec<f64>,
        /// The refused value.
        value: f64,
    },
    /// Every log-likelihood is −∞, so there is nothing to integrate and no evidence to report.
    #[error("{}, expected at least one finite value: there is no evidence to report", none_finite(*count))]
    NoFiniteValue {
        /// How many values were given.
        count: usize,
    },
    /// A covariance matrix is not symmetric positive definite.
    #[error(
        "{what} is not positive definite (pivot {pivot} is {value}), expected a symmetric positive definite matrix"
    )]
    NotPositiveDefinite {
        /// The matrix, in words.
        what: String,
        /// The pivot at which the factorisation failed.
        pivot: usize,
        /// The value of that pivot.
        value: f64,
    },
    /// A point lies outside the support of the prior.
    #[error("{what} is {value}, outside the support {support}")]
    OutsideSupport {
        /// The parameter.
        what: String,
        /// The refused value.
        value: f64,
        /// The support, as an interval.
        support: String,
    },
    /// A numerical procedure could not be completed even after repairs.
    #[error("{what} failed: {reason}")]
    Numerical {
        /// The procedure.
        what: String,
        /// Why it failed.
        reason: String,
    },
    /// The operating system refused something.
    #[error("cannot {action} {}: {reason}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried, as a verb ("open", "append to").
        action: String,
        /// What the operating system said.
        reason: String,
    },
    /// Another process (or another handle of this one) is writing to the store.
    #[error("store {} is in use by {}", path.display(), holder(*pid, host.as_deref()))]
    StoreLocked {
        /// The store.
        path: PathBuf,
        /// The process that has it, if it is known.
        pid: Option<u32>,
        /// The machine that process runs on, if it is known.
        host: Option<String>,
    },
    /// A record other than a torn last one cannot be trusted; nothing is written to such a store.
    #[error("store {} is damaged at record {record}: {reason}", path.display())]
    StoreDamaged {
        /// The store.
        path: PathBuf,
        /// The record, which is also the line of the journal (counted from one).
        record: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A store was to be created where one is already.
    #[error("there is already a store at {}, expected a new or empty directory", path.display())]
    StoreExists {
        /// The store.
        path: PathBuf,
    },
    /// The path does not lead to a store.
    #[error("{} is not a store: {reason}", path.display())]
    NotAStore {
        /// The path.
        path: PathBuf,
        /// What was found instead.
        reason: String,
    },
    /// The store was written by a newer release.
    #[error("store {} holds {found}, expected {supported}: read it with a newer release", path.display())]
    StoreVersion {
        /// The store.
        path: PathBuf,
        /// The format or the kind of record found.
        found: String,
        /// What this release reads.
        supported: String,
    },
    /// The problem is not the one that the store was created for.
    #[error("the problem differs from the one in the store: {}", differences.join("; "))]
    StoreDiffers {
        /// Each difference: the key's path, what was given and what the store has.
        differences: Vec<String>,
    },
    /// An earlier write failed, so nothing more is written until the store has been opened again.
    #[error("store {} takes no more records because a write failed ({reason}): open it again", path.display())]
    StoreFailed {
        /// The store.
        path: PathBuf,
        /// Why the earlier write failed.
        reason: String,
    },
    /// Somebody asked to stop while this was being worked out ([`crate::interrupt`]).
    #[error("interrupted before it was worked out")]
    Interrupted,
    /// An answer to a job that was never asked.
    #[error("job {id} is unknown, expected the id of a job that was asked")]
    UnknownJob {
        /// The refused id.
        id: JobId,
    },
}

fn holder(pid: Option<u32>, host: Option<&str>) -> String {
    match (pid, host) {
        (Some(pid), Some(host)) => format!("process {pid} on {host}"),
        (Some(pid), None) => format!("process {pid}"),
        _ => "another process".into(),
    }
}

/// The result of a fallible function of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Whether the caller can mend its input and go on with the same objects.
    ///
    /// Refused input leaves everything as it was; a failed numerical procedure means that the belief could not be
    /// formed, a failed write or a damaged journal that the store takes no more records.
    #[must_use]
    pub fn is_recoverable(&self) -> bool {
        !matches!(self, Self::Numerical { .. } | Self::Io { .. } | Self::StoreDamaged { .. } | Self::StoreFailed { .. })
    }

    /// An [`Error::Invalid`] from anything printable.
    pub fn invalid(what: impl Into<String>, value: impl std::fmt::Debug, expected: impl Into<String>) -> Self {
        Self::Invalid { what: what.into(), value: format!("{value:?}"), expected: expected.into() }
    }

    /// An [`Error::Io`].
    pub fn io(path: impl AsRef<Path>, action: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        Self::Io { path: path.as_ref().to_path_buf(), action: action.into(), reason: reason.to_string() }
    }

    /// An [`Error::Length`].
    pub fn length(what: impl Into<String>, expected: usize, found: usize) -> Self {
        Self::Length { what: what.into(), expected, found }
    }
}

/// `value`, if it is finite and positive.
///
/// # Errors
/// [`Error::Invalid`] naming `what` otherwise.
pub fn require_positive(what: &str, value: f64) -> Result<f64> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(Error::invalid(what, value, "a finite number > 0")) }
}

/// `value`, if it is finite.
///
/// # Errors
/// [`Error::Invalid`] naming `what` otherwise.
pub fn require_finite(what: &str, value: f64) -> Result<f64> {
    if value.is_finite() { Ok(value) } else { Err(Error::invalid(what, value, "a finite number")) }
}
/// So many log-likelihoods, none of them finite, in words.
fn none_finite(count: usize) -> String {
    match count {
        0 => "no log-likelihood is known".into(),
        1 => "the only log-likelihood is -inf".into(),
        n => format!("all {n} log-likelihoods are -inf"),
    }
}
