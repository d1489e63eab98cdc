//! Plain data that the parts hand to each other: jobs and outcomes.

use serde::{Deserialize, Serialize};

/// The number of a job, unique within a run and increasing in the order of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub u64);

impl std::fmt::Display for JobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// One evaluation of the likelihood that somebody is to carry out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// The point in the user's own units, one value per parameter.
    pub theta: Vec<f64>,
    /// A seed for the likelihood's own randomness, a function of the run's seed and the id.
    pub seed: u64,
}

/// Why an evaluation gave no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The process ended with a non-zero exit code.
    Exit,
    /// The process was ended by a signal that we did not send.
    Signal,
    /// It took longer than allowed.
    Timeout,
    /// Its answer could not be read as a number.
    Parse,
    /// Its answer was NaN or +∞.
    Nan,
    /// The worker that had it is gone.
    LostWorker,
    /// The function raised an exception or panicked.
    Exception,
}

impl FailureKind {
    /// Whether the machinery, rather than the likelihood at this point, is the likely cause, so that trying again is
    /// sensible.
    #[must_use]
    pub fn is_infrastructure(self) -> bool {
        matches!(self, Self::Signal | Self::Timeout | Self::LostWorker)
    }

    /// The word used in journals, JSON and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Signal => "signal",
            Self::Timeout => "timeout",
            Self::Parse => "parse",
            Self::Nan => "nan",
            Self::LostWorker => "lost-worker",
            Self::Exception => "exception",
        }
    }
}

impl std::fmt::Display for FailureKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What became of a job. A failure is an outcome, not an error of the run.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The log-likelihood: finite, or −∞ where the likelihood is zero.
    Value(f64),
    /// No number, and why.
    Failed {
        /// The kind, which decides whether it is tried again.
        kind: FailureKind,
        /// What happened, for a person.
        message: String,
    },
}

impl Outcome {
    /// An outcome from a raw log-likelihood: NaN and +∞ become failures of kind [`FailureKind::Nan`] that name θ.
    #[must_use]
    pub fn from_log_likelihood(theta: &[f64], value: f64) -> Self {
        if value.is_nan() || value == f64::INFINITY {
            Self::Failed {
                kind: FailureKind::Nan,
                message: format!("log-likelihood at {theta:?} is {value}, expected a finite number or -inf"),
            }
        } else {
            Self::Value(value)
        }
    }

    /// The outcome with the standard deviation of its noise, if one was given. A value whose standard deviation is not
    /// a finite number ≥ 0 becomes a failure of kind [`FailureKind::Parse`]. Failures have none, and neither has −∞: a
    /// likelihood of zero is zero.
    #[must_use]
    pub fn with_sd(self, theta: &[f64], sd: Option<f64>) -> (Self, Option<f64>) {
        match (&self, sd) {
            (Self::Value(value), Some(sd)) if value.is_finite() => {
                if sd.is_finite() && sd >= 0.0 {
                    return (self, Some(sd));
                }
                let message =
                    format!("the sd of the log-likelihood at {theta:?} is {sd}, expected a finite number ≥ 0");
                (Self::Failed { kind: FailureKind::Parse, message }, None)
            }
            _ => (self, None),
        }
    }
}
