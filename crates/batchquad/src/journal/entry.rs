//! One job of a run, and what another answer does to it.

use super::event::Told;
use crate::types::{FailureKind, Job, Outcome};

/// What an event did, or would do, to a [`Ledger`](super::Ledger).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It counts.
    Counted,
    /// It was known already: nothing changes and there is no need to record it.
    Repeated,
    /// A value for a job that had failed, or an answer that takes the place of a wrong one: it counts from now on.
    Replaced,
    /// A different value for a job that has one: kept and flagged, the first value counts.
    Conflict,
    /// A failure of a job that has its answer: kept, the answer stands.
    Kept,
    /// Another value for a job whose likelihood is said to be noisy: both count.
    Averaged,
}

/// An attempt that gave no number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The attempt, counted from one.
    pub attempt: u32,
    /// Its kind.
    pub kind: FailureKind,
    /// What happened, for a person.
    pub message: String,
}

/// A job and all that is known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The job.
    pub job: Job,
    /// Which of several independent runs it is for, counted from zero.
    pub repeat: usize,
    /// The answer that counts; `None` while the job is pending.
    pub answer: Option<Told>,
    /// Attempts that failed, apart from the answer, in order of arrival.
    pub failures: Vec<Failure>,
    /// Further values of a likelihood whose noise is known, in order of arrival: they count as the answer does.
    pub replicates: Vec<Told>,
    /// Answers with another value than the one that counts, in order of arrival.
    pub conflicts: Vec<Told>,
    /// Answers that counted until another one took their place, in order of arrival.
    pub replaced: Vec<Told>,
    /// The highest number of an attempt that has ended.
    pub attempts: u32,
}

impl Entry {
    pub(super) fn new(job: Job, repeat: usize) -> Self {
        let (failures, replicates, conflicts, replaced) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { job, repeat, answer: None, failures, replicates, conflicts, replaced, attempts: 0 }
    }

    /// Whether it has no answer yet.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.answer.is_none()
    }

    /// The log-likelihood that counts, if there is one.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        match self.answer.as_ref()?.outcome {
            Outcome::Value(value) => Some(value),
            Outcome::Failed { .. } => None,
        }
    }

    /// All values that count: the answer's and its replicates', each with the standard deviation of its noise where
    /// that is known.
    pub fn values(&self) -> impl Iterator<Item = (f64, Option<f64>)> {
        self.answer.iter().chain(&self.replicates).filter_map(|told| match told.outcome {
            Outcome::Value(value) => Some((value, told.sd)),
            Outcome::Failed { .. } => None,
        })
    }

    /// What an answer would do; `noisy` says whether all values of the run are known to be noisy.
    pub(super) fn judge(&self, told: &Told, noisy: bool) -> Applied {
        // What was taken back does not count because somebody says it again, with whatever standard deviation.
        let counts = self.answer.iter().chain(&self.replicates).any(|other| other.outcome == told.outcome);
        let taken_back = |old: &Told| says_the_same(old, told) || (!counts && old.outcome == told.outcome);
        if self.replaced.iter().any(taken_back) {
            return Applied::Repeated;
        }
        match (self.answer.as_ref().map(|answer| &answer.outcome), &told.outcome) {
            (None, _) => Applied::Counted,
            (Some(Outcome::Value(first)), Outcome::Value(value)) => {
                let mut known = self.answer.iter().chain(&self.replicates).chain(&self.conflicts);
                if known.any(|other| says_the_same(other, told)) {
                    return Applied::Repeated;
                }
                let known_noise = noisy || (told.sd.is_some() && self.answer.as_ref().is_some_and(|a| a.sd.is_some()));
                // The very same number with another standard deviation is no second measurement.
                let others = self.values().all(|(other, _)| other != *value);
                if known_noise && others && first.is_finite() && value.is_finite() {
                    Applied::Averaged
                } else {
                    Applied::Conflict
                }
            }
            (Some(Outcome::Failed { .. }), Outcome::Value(_)) => Applied::Replaced,
            (Some(first), Outcome::Failed { kind, message }) => {
                let known = *first == told.outcome
                    || self
                        .failures
                        .iter()
                        .any(|f| f.attempt == told.attempt && f.kind == *kind && f.message == *message);
                if known { Applied::Repeated } else { Applied::Kept }
            }
        }
    }

    /// What an answer would do that takes the place of all that count.
    pub(super) fn judge_replacement(&self, told: &Told) -> Applied {
        match &self.answer {
            None => Applied::Counted,
            Some(answer) if says_the_same(answer, told) && self.replicates.is_empty() => Applied::Repeated,
            Some(_) => Applied::Replaced,
        }
    }

    /// Puts an answer in the place of the one that counts and of its replicates. Earlier answers that agree with it are
    /// no longer conflicts.
    pub(super) fn replace(&mut self, told: &Told) {
        let before = self.answer.replace(told.clone()).into_iter().chain(self.replicates.drain(..));
        self.replaced.extend(before.filter(|old| !says_the_same(old, told)));
        self.conflicts.retain(|conflict| !says_the_same(conflict, told));
        self.attempts = self.attempts.max(told.attempt);
    }

    pub(super) fn apply(&mut self, told: &Told, noisy: bool) -> Applied {
        let applied = self.judge(told, noisy);
        match applied {
            Applied::Counted => self.answer = Some(told.clone()),
            Applied::Replaced => {
                let failed = self.answer.replace(told.clone());
                self.failures.extend(failed.and_then(failure));
            }
            Applied::Averaged => self.replicates.push(told.clone()),
            Applied::Conflict => self.conflicts.push(told.clone()),
            Applied::Kept => self.failures.extend(failure(told.clone())),
            Applied::Repeated => {}
        }
        self.attempts = self.attempts.max(told.attempt);
        applied
    }
}

/// Whether two answers have the same outcome, with the same noise.
fn says_the_same(one: &Told, other: &Told) -> bool {
    one.outcome == other.outcome && one.sd == other.sd
}

fn failure(told: Told) -> Option<Failure> {
    match told.outcome {
        Outcome::Failed { kind, message } => Some(Failure { attempt: told.attempt, kind, message }),
        Outcome::Value(_) => None,
    }
}
