//! Where a run is kept.

use crate::{
    error::Result,
    journal::{Event, Store},
};

/// Where events are kept. An event counts only once `append` has returned.
pub trait Record {
    /// Makes an event durable.
    ///
    /// # Errors
    /// When that is not possible; the event then does not count.
    fn append(&mut self, event: &Event) -> Result<()>;
}

impl Record for Store {
    fn append(&mut self, event: &Event) -> Result<()> {
        Store::append(self, event)
    }
}

/// No record beyond the memory of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory;

impl Record for Memory {
    fn append(&mut self, _: &Event) -> Result<()> {
        Ok(())
    }
}
