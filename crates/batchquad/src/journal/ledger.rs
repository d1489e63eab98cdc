//! The state of a run: the fold of its events.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    entry::{Applied, Entry, Failure},
    event::{Asked, Event, Retried, Row},
    header::Header,
    remark::Topic,
};
use crate::{
    error::{Error, Result},
    types::{Job, JobId, Outcome},
};

/// The state of a run.
///
/// A live run and a resumed one get here by the same [`Ledger::apply`]. Everything is kept by job id, so the order in
/// which the answers to different jobs arrive leaves no trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Ledger {
    header: Header,
    settings: Map<String, Value>,
    entries: BTreeMap<JobId, Entry>,
    batches: Vec<Asked>,
    imported: Vec<Row>,
    imported_bits: BTreeMap<Vec<u64>, Option<f64>>,
    notes: Vec<String>,
    remarks: Vec<(Topic, Value)>,
}

impl Ledger {
    /// A run in which nothing has happened yet.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self {
            settings: header.settings().clone(),
            header,
            entries: BTreeMap::new(),
            batches: Vec::new(),
            imported: Vec::new(),
            imported_bits: BTreeMap::new(),
            notes: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// What `event` would do, without doing it.
    ///
    /// # Errors
    /// [`Error::UnknownJob`] for a job that was never asked, [`Error::NonFiniteValue`] for an answer of NaN or +∞,
    /// [`Error::NonFinitePoint`], [`Error::Length`] for a point of the wrong dimension, [`Error::Invalid`] for ids that
    /// do not increase. The ledger is as it was.
    pub fn judge(&self, event: &Event) -> Result<Applied> {
        match event {
            Event::Told(told) | Event::Replaced(told) => {
                let entry = self.entry(told.id)?;
                if let Outcome::Value(value) = told.outcome
                    && (value.is_nan() || value == f64::INFINITY)
                {
                    let index = usize::try_from(told.id.0).unwrap_or(usize::MAX);
                    return Err(Error::NonFiniteValue { index, point: entry.job.theta.clone(), value });
                }
                event.validate()?;
                Ok(match event {
                    Event::Replaced(_) => entry.judge_replacement(told),
                    _ => entry.judge(told, self.is_noisy()),
                })
            }
            Event::Asked(asked) => {
                event.validate()?;
                let mut next = self.next_id();
                for job in &asked.jobs {
                    self.require_dim(|| format!("point of job {}", job.id), &job.theta)?;
                    // The last number is never used, so that there is always a next one.
                    if job.id < next || job.id.0 == u64::MAX {
                        let expected = format!("at least {next} and below {}", u64::MAX);
                        return Err(Error::invalid("id of a new job", job.id.0, expected));
                    }
                    next = JobId(job.id.0 + 1);
                }
                Ok(Applied::Counted)
            }
            Event::Retried(retried) => {
                let entry = self.entry(retried.id)?;
                let known = entry.failures.iter().any(|failure| failure.attempt == retried.attempt);
                Ok(if known { Applied::Repeated } else { Applied::Counted })
            }
            Event::LeaseExpired { id } => {
                let pending = self.entry(*id)?.is_pending();
                Ok(if pending { Applied::Counted } else { Applied::Repeated })
            }
            Event::Imported { rows } => {
                event.validate()?;
                let mut given = BTreeMap::new();
                for (i, row) in rows.iter().enumerate() {
                    self.require_dim(|| format!("imported point {i}"), &row.theta)?;
                    let same = self.imported_bits.get(&bits(row)).copied();
                    let same = same.unwrap_or_else(|| *given.entry(bits(row)).or_insert(row.sd));
                    // The very same number with another standard deviation is no second measurement.
                    if same != row.sd {
                        let word = |sd: Option<f64>| sd.map_or_else(|| "none".into(), |sd| sd.to_string());
                        let expected = format!("{}, as when the same value was imported before", word(same));
                        return Err(Error::Invalid {
                            what: format!("sd of imported point {i}"),
                            value: word(row.sd),
                            expected,
                        });
                    }
                }
                let known = rows.iter().all(|row| self.imported_bits.contains_key(&bits(row)));
                Ok(if known { Applied::Repeated } else { Applied::Counted })
            }
            Event::Settings { changes } => {
                let known = changes.iter().all(|(key, value)| self.settings.get(key) == Some(value));
                Ok(if known { Applied::Repeated } else { Applied::Counted })
            }
            Event::Note { .. } | Event::Remark { .. } => Ok(Applied::Counted),
        }
    }

    /// Takes in an event.
    ///
    /// # Errors
    /// As [`Ledger::judge`].
    pub fn apply(&mut self, event: &Event) -> Result<Applied> {
        let applied = self.judge(event)?;
        if applied != Applied::Repeated {
            self.take(event)?;
        }
        Ok(applied)
    }

    /// Lets an event count that [`Ledger::judge`] has let pass.
    pub(crate) fn take(&mut self, event: &Event) -> Result<()> {
        match event {
            Event::Told(told) => {
                let noisy = self.is_noisy();
                self.entry_mut(told.id)?.apply(told, noisy);
            }
            Event::Replaced(told) => self.entry_mut(told.id)?.replace(told),
            Event::Asked(asked) => {
                let entry = |job: &Job| (job.id, Entry::new(job.clone(), asked.repeat));
                self.entries.extend(asked.jobs.iter().map(entry));
                self.batches.push(asked.clone());
            }
            Event::Retried(Retried { id, attempt, failure, message }) => {
                let entry = self.entry_mut(*id)?;
                entry.failures.push(Failure { attempt: *attempt, kind: *failure, message: message.clone() });
                entry.attempts = entry.attempts.max(*attempt);
            }
            Event::LeaseExpired { .. } => {}
            Event::Imported { rows } => {
                for row in rows {
                    if self.imported_bits.insert(bits(row), row.sd).is_none() {
                        self.imported.push(row.clone());
                    }
                }
            }
            Event::Settings { changes } => self.settings.extend(changes.clone()),
            Event::Note { text } => match event.remark() {
                Some(remark) => self.remarks.push(remark),
                None => self.notes.push(text.clone()),
            },
            Event::Remark { topic, value } => self.remarks.push((*topic, value.clone())),
        }
        Ok(())
    }

    /// The state of one of several independent runs, as if it were alone: its own jobs, under its own seed, and what is common to all.
    pub(crate) fn of_repeat(&self, repeat: usize, seed: u64) -> Self {
        let own = self.entries.iter().filter(|(_, entry)| entry.repeat == repeat);
        Self {
            header: self.header.with_seed(seed),
            settings: self.settings.clone(),
            entries: own.map(|(id, entry)| (*id, entry.clone())).collect(),
            batches: self.batches.iter().filter(|asked| asked.repeat == repeat).cloned().collect(),
            imported: self.imported.clone(),
            imported_bits: self.imported_bits.clone(),
            notes: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// What the run is about.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The settings as last changed.
    #[must_use]
    pub fn settings(&self) -> &Map<String, Value> {
        &self.settings
    }

    /// All jobs, by increasing id.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> + DoubleEndedIterator {
        self.entries.values()
    }

    /// The job `id`.
    ///
    /// # Errors
    /// [`Error::UnknownJob`].
    pub fn entry(&self, id: JobId) -> Result<&Entry> {
        self.entries.get(&id).ok_or(Error::UnknownJob { id })
    }

    /// The jobs without an answer, by increasing id.
    pub fn pending(&self) -> impl Iterator<Item = &Job> {
        self.entries().filter(|entry| entry.is_pending()).map(|entry| &entry.job)
    }

    /// The jobs with a value, by increasing id.
    pub fn values(&self) -> impl Iterator<Item = (&Job, f64)> {
        self.entries().filter_map(|entry| Some((&entry.job, entry.value()?)))
    }

    /// The jobs for which different values were told, by increasing id.
    pub fn conflicts(&self) -> impl Iterator<Item = &Entry> {
        self.entries().filter(|entry| !entry.conflicts.is_empty())
    }

    /// The jobs whose answer took the place of another, by increasing id.
    pub fn replaced(&self) -> impl Iterator<Item = &Entry> {
        self.entries().filter(|entry| !entry.replaced.is_empty())
    }

    /// The evaluations made elsewhere, in order; a row that was imported twice is there once.
    #[must_use]
    pub fn imported(&self) -> &[Row] {
        &self.imported
    }

    /// The batches asked so far.
    #[must_use]
    pub fn batches(&self) -> &[Asked] {
        &self.batches
    }

    /// The last remark on a topic.
    #[must_use]
    pub fn remark(&self, topic: Topic) -> Option<&Value> {
        self.remarks(topic).last()
    }

    /// All remarks on a topic, in order.
    pub fn remarks(&self, topic: Topic) -> impl Iterator<Item = &Value> {
        self.remarks.iter().filter(move |(about, _)| *about == topic).map(|(_, value)| value)
    }

    /// The notes, in order.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The smallest id that a new job may have.
    #[must_use]
    pub fn next_id(&self) -> JobId {
        self.entries.last_key_value().map_or(JobId(0), |(id, _)| JobId(id.0 + 1))
    }

    /// Whether the settings say that every value is noisy.
    fn is_noisy(&self) -> bool {
        self.settings.get("noise_sd").is_some_and(|sd| !sd.is_null())
    }

    /// Whether there are several independent runs.
    #[must_use]
    pub fn has_repeats(&self) -> bool {
        self.settings.get("repeats").and_then(Value::as_u64).is_some_and(|n| n > 1)
    }

    /// Whether any value that counts came with a standard deviation.
    #[must_use]
    pub fn has_sds(&self) -> bool {
        self.imported.iter().any(|row| row.sd.is_some())
            || self.entries().any(|entry| entry.values().any(|(_, sd)| sd.is_some()))
    }

    fn entry_mut(&mut self, id: JobId) -> Result<&mut Entry> {
        self.entries.get_mut(&id).ok_or(Error::UnknownJob { id })
    }

    fn require_dim(&self, what: impl Fn() -> String, theta: &[f64]) -> Result<()> {
        let dim = self.header.dim();
        if theta.len() == dim { Ok(()) } else { Err(Error::length(what(), dim, theta.len())) }
    }
}

fn bits(row: &Row) -> Vec<u64> {
    row.theta.iter().chain([&row.log_likelihood.get()]).map(|v| v.to_bits()).collect()
}
