//! What can happen in a run.

use super::number::LogValue;
use super::remark::Topic;
use crate::error::{Error, Result, require_finite};
use crate::types::{FailureKind, Job, JobId, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One thing that happened, and the unit of durability: an event is in the journal entirely or not at all.
///
/// Fields that a newer release added are passed over; a kind of event that this release does not know is refused,
/// because the state without it would be a different one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Event {
    /// A batch was chosen; recorded before any of it is evaluated.
    Asked(Asked),
    /// An answer arrived.
    Told(Told),
    /// An answer takes the place of the one that counts, which was a mistake; that one is kept.
    Replaced(Told),
    /// An attempt failed and the job is tried again.
    Retried(Retried),
    /// Nobody answered in the time allowed. Stores of the first release may have it; it changes nothing and is no longer written.
    LeaseExpired {
        /// The job.
        id: JobId,
    },
    /// Evaluations made elsewhere: a warm start.
    Imported {
        /// The evaluations.
        rows: Vec<Row>,
    },
    /// Some settings were changed, for instance a larger budget on resuming.
    Settings {
        /// The new values by key; other settings stay.
        changes: Map<String, Value>,
    },
    /// Something for a person to read, which changes nothing.
    Note {
        /// The note.
        text: String,
    },
    /// Something for a program to read, which changes nothing.
    Remark {
        /// What it is about.
        topic: Topic,
        /// What it says.
        value: Value,
    },
}

/// A batch of jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The jobs, by increasing id.
    pub jobs: Vec<Job>,
    /// Seconds it took to choose them.
    #[serde(default)]
    pub seconds: f64,
    /// Whatever else the chooser wants to remember of the batch.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub info: Value,
    /// Which of several independent runs they are for, counted from zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeat: usize,
}

/// The answer to a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// The job.
    pub id: JobId,
    /// Its value or failure.
    #[serde(with = "outcome")]
    pub outcome: Outcome,
    /// The standard deviation of the value's noise, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
    /// Which attempt this was, counted from one.
    #[serde(default = "first")]
    pub attempt: u32,
    /// Seconds the evaluation took.
    #[serde(default)]
    pub seconds: f64,
    /// Who carried it out, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

/// An attempt that failed and was not the last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retried {
    /// The job.
    pub id: JobId,
    /// The attempt that failed, counted from one.
    pub attempt: u32,
    /// How it failed.
    pub failure: FailureKind,
    /// What happened, for a person.
    pub message: String,
}

/// An evaluation made elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The point in the user's own units.
    pub theta: Vec<f64>,
    /// The log-likelihood there.
    pub log_likelihood: LogValue,
    /// The standard deviation of its noise, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
}

impl Row {
    /// An evaluation without a known noise.
    #[must_use]
    pub fn new(theta: Vec<f64>, log_likelihood: LogValue) -> Self {
        Self { theta, log_likelihood, sd: None }
    }

    /// The same with the standard deviation of its noise; −∞ has none.
    ///
    /// # Errors
    /// [`Error::Invalid`] for one that is not a finite number ≥ 0.
    pub fn with_sd(self, sd: f64) -> Result<Self> {
        require_sd("sd", sd)?;
        Ok(Self { sd: Some(sd).filter(|_| self.log_likelihood.get().is_finite()), ..self })
    }
}

impl Told {
    /// The answer of a first attempt, about which nothing else is known.
    #[must_use]
    pub fn new(id: JobId, outcome: Outcome) -> Self {
        Self { id, outcome, sd: None, attempt: 1, seconds: 0.0, worker: None }
    }
}

impl Event {
    const KINDS: [&str; 9] =
        ["asked", "told", "replaced", "retried", "lease-expired", "imported", "settings", "note", "remark"];

    /// The remark that this is; notes of 0.1 may be remarks too.
    #[must_use]
    pub fn remark(&self) -> Option<(Topic, Value)> {
        match self {
            Self::Remark { topic, value } => Some((*topic, value.clone())),
            Self::Note { text } => Topic::of_note(text),
            _ => None,
        }
    }

    /// Refuses what must not reach the disk.
    ///
    /// # Errors
    /// [`Error::NonFinitePoint`], [`Error::NonFiniteValue`] or [`Error::Invalid`] naming the value.
    pub(super) fn validate(&self) -> Result<()> {
        match self {
            Self::Asked(asked) => {
                require_finite("seconds of choosing", asked.seconds)?;
                asked.jobs.iter().enumerate().try_for_each(|(i, job)| finite_point(i, &job.theta))
            }
            Self::Told(told) | Self::Replaced(told) => {
                require_finite("seconds of evaluating", told.seconds)?;
                if let Some(sd) = told.sd {
                    require_sd(&format!("sd of evaluation {}", told.id), sd)?;
                }
                match told.outcome {
                    Outcome::Value(value) => LogValue::new(value).map(|_| ()),
                    Outcome::Failed { .. } => Ok(()),
                }
            }
            Self::Imported { rows } => rows.iter().enumerate().try_for_each(|(i, row)| {
                row.sd.map_or(Ok(()), |sd| require_sd(&format!("sd of imported point {i}"), sd))?;
                finite_point(i, &row.theta)
            }),
            Self::Retried(_)
            | Self::LeaseExpired { .. }
            | Self::Settings { .. }
            | Self::Note { .. }
            | Self::Remark { .. } => Ok(()),
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, Unreadable> {
        #[derive(Deserialize)]
        struct Kind {
            kind: String,
        }
        let Kind { kind } = serde_json::from_str(text).map_err(malformed)?;
        if !Self::KINDS.contains(&kind.as_str()) {
            return Err(Unreadable::Newer {
                found: format!("a record of kind {kind:?}"),
                supported: format!("one of {}", Self::KINDS.join(", ")),
            });
        }
        let event: Self = serde_json::from_str(text).map_err(malformed)?;
        event.validate().map_err(malformed)?;
        Ok(event)
    }
}

/// Why the content of an unaltered record cannot be used.
#[derive(Debug)]
pub(super) enum Unreadable {
    Newer { found: String, supported: String },
    Malformed(String),
}

pub(super) fn malformed(reason: impl std::fmt::Display) -> Unreadable {
    Unreadable::Malformed(reason.to_string())
}

fn require_sd(what: &str, sd: f64) -> Result<()> {
    if sd.is_finite() && sd >= 0.0 { Ok(()) } else { Err(Error::invalid(what, sd, "a finite number ≥ 0")) }
}

fn finite_point(index: usize, theta: &[f64]) -> Result<()> {
    match theta.iter().position(|v| !v.is_finite()) {
        Some(coordinate) => Err(Error::NonFinitePoint { index, coordinate, value: theta[coordinate] }),
        None => Ok(()),
    }
}

fn first() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// `{"log_likelihood": …}` or `{"failed": {"kind": …, "message": …}}`.
mod outcome {
    use super::{FailureKind, LogValue, Outcome};
    use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::Error as _};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Text {
        LogLikelihood(LogValue),
        Failed { kind: FailureKind, message: String },
    }

    pub(super) fn serialize<S: Serializer>(outcome: &Outcome, serializer: S) -> Result<S::Ok, S::Error> {
        match outcome {
            Outcome::Value(value) => Text::LogLikelihood(LogValue::new(*value).map_err(S::Error::custom)?),
            Outcome::Failed { kind, message } => Text::Failed { kind: *kind, message: message.clone() },
        }
        .serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Outcome, D::Error> {
        Ok(match Text::deserialize(deserializer)? {
            Text::LogLikelihood(value) => Outcome::Value(value.get()),
            Text::Failed { kind, message } => Outcome::Failed { kind, message },
        })
    }
}
