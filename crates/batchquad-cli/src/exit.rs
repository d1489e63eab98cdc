//! What the program's exit code says.

use std::io;

use batchquad::{
    Error, Settings,
    run::{Level, Status, Stop, report::Trust},
};

/// The exit codes, the same for all commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    BadInput = 2,
    BeforeTarget = 3,
    Locked = 4,
    Damaged = 5,
    NotTrusted = 6,
    Interrupted = 130,
}

impl Exit {
    /// How a run ended: using up a budget is success unless a target was set.
    pub fn of_stop(stop: &Stop, settings: &Settings) -> Self {
        match stop.status {
            Status::Converged => Self::Done,
            Status::Budget | Status::Stalled if settings.target_sd.is_none() => Self::Done,
            Status::Budget | Status::Stalled => Self::BeforeTarget,
            Status::Interrupted => Self::Interrupted,
            _ => Self::Failed,
        }
    }

    /// The same for a script that wants to know whether to believe the number.
    pub fn strictly(self, strict: bool, trust: Option<&Trust>) -> Self {
        match self {
            Self::Done | Self::BeforeTarget
                if strict && trust.is_some_and(|trust| trust.verdict == Level::DoNotTrust) =>
            {
                Self::NotTrusted
            }
            other => other,
        }
    }

    pub fn of_error(error: &anyhow::Error) -> Self {
        if error.is::<BadInput>() {
            return Self::BadInput;
        }
        match error.downcast_ref::<Error>() {
            Some(Error::StoreLocked { .. }) => Self::Locked,
            Some(Error::StoreDamaged { .. }) => Self::Damaged,
            Some(
                Error::Numerical { .. } | Error::Io { .. } | Error::StoreFailed { .. } | Error::NoFiniteValue { .. },
            )
            | None => Self::Failed,
            Some(_) => Self::BadInput,
        }
    }
}

/// Whether the reader of our output went away, which is its right.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| match cause.downcast_ref::<io::Error>() {
        Some(e) => e.kind() == io::ErrorKind::BrokenPipe,
        None => cause.downcast_ref::<csv::Error>().is_some_and(|e| match e.kind() {
            csv::ErrorKind::Io(e) => e.kind() == io::ErrorKind::BrokenPipe,
            _ => false,
        }),
    })
}

/// Something the user wrote that cannot be used, with what was expected.
#[derive(Debug)]
pub struct BadInput(pub String);

impl BadInput {
    /// The same, with the file it is in.
    pub fn of(self, file: &std::path::Path) -> Self {
        Self(format!("{}: {}", file.display(), self.0))
    }
}

impl std::fmt::Display for BadInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadInput {}
