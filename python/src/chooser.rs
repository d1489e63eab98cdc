//! What is chosen ahead for a session, while others are evaluated.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use batchquad::{
    Result,
    journal::Event,
    run::{Ahead, Hands, Ready, Session, Stop},
    types::Job,
};

use crate::work::pooled;

/// The points of one session that are being chosen.
pub(crate) struct Chooser(Mutex<Ahead>);

impl Default for Chooser {
    fn default() -> Self {
        Self(Mutex::new(Ahead::new(hands())))
    }
}

impl Chooser {
    /// Points that have been chosen, recorded with the session, or why there are no more; none while there is nothing to say. Waits for nobody.
    pub(crate) fn step(
        &self,
        session: &mut Session,
        busy: (usize, usize),
        seconds: f64,
    ) -> Result<Option<(Vec<Job>, Option<Stop>)>> {
        let ready = self.ahead().step(&mut session.engine, busy, seconds, Duration::ZERO)?;
        Ok(match ready {
            Some(Ready::Asked(asked)) => {
                let jobs = asked.jobs.clone();
                session.keep(&Event::Asked(asked))?;
                Some((jobs, None))
            }
            Some(Ready::Stop(stop)) => Some((Vec::new(), Some(stop))),
            None => None,
        })
    }

    pub(crate) fn is_choosing(&self) -> bool {
        self.ahead().is_choosing()
    }

    /// Breaks off what is under way.
    pub(crate) fn end(&self) {
        self.ahead().end();
    }

    fn ahead(&self) -> MutexGuard<'_, Ahead> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Threads of this process for what is chosen ahead.
fn hands() -> Hands {
    Arc::new(|interrupt, work| {
        // Where there are no threads to be had nothing is chosen, and who waits for it is told.
        let _ = pooled(interrupt, || {
            work();
            Ok(())
        });
    })
}
