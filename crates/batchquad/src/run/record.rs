//! Where a run is kept.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    error::{Error, Result},
    journal::{Event, Lines, Store},
};

/// Where events are kept. An event counts only once `append` has returned.
pub trait Record {
    /// Makes an event durable.
    ///
    /// # Errors
    /// When that is not possible; the event then does not count.
    fn append(&mut self, event: &Event) -> Result<()>;

    /// Makes several events durable, in this order and at once where that is possible.
    ///
    /// # Errors
    /// As [`Record::append`]; then none of them counts in this run. Those that are durable all the same count when it is resumed.
    fn append_all(&mut self, events: &[Event]) -> Result<()> {
        events.iter().try_for_each(|event| self.append(event))
    }

    /// Whether whoever kept events here before was killed.
    fn was_killed(&self) -> bool {
        false
    }
}

impl Record for Store {
    fn append(&mut self, event: &Event) -> Result<()> {
        Store::append(self, event)
    }

    fn append_all(&mut self, events: &[Event]) -> Result<()> {
        Store::append_all(self, events)
    }

    fn was_killed(&self) -> bool {
        Store::was_killed(self)
    }
}

/// A journal in memory, which those who have a clone of it see grow.
///
/// A run in memory goes on whatever becomes of its transcript: an event that cannot be written ends it.
#[derive(Debug, Clone)]
pub struct Transcript(Arc<Mutex<(Lines, Option<String>)>>);

impl Transcript {
    /// A record that goes on from these lines.
    #[must_use]
    pub fn new(lines: Lines) -> Self {
        Self(Arc::new(Mutex::new((lines, None))))
    }

    /// The journal as it is now.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the reason why an event could not be written.
    pub fn lines(&self) -> Result<Lines> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &kept.1 {
            None => Ok(kept.0.clone()),
            Some(reason) => Err(Error::invalid("journal of the run", reason, "events that can be written down")),
        }
    }
}

impl Record for Transcript {
    fn append(&mut self, event: &Event) -> Result<()> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.1.is_none() {
            kept.1 = kept.0.append(event).err().map(|e| e.to_string());
        }
        Ok(())
    }
}

/// No record beyond the state itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory;

impl Record for Memory {
    fn append(&mut self, _: &Event) -> Result<()> {
        Ok(())
    }
}
