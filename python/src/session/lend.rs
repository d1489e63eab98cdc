//! How Python waits for a run: for work of microseconds, for work of seconds, and for points that are chosen ahead.

use std::{sync::Arc, time::Duration};

use batchquad::{Error, interrupt::Interrupt, run};
use pyo3::prelude::*;

use super::Session;
use crate::{
    errors::exception,
    words::{Asked, Ending, asked, ending},
    work::{GLANCE, on_thread, pooled},
};

/// How often it is looked whether points have been chosen while nothing is in flight.
const MOMENT: Duration = Duration::from_millis(2);

/// How often a thread that waits for the session checks whether the wait was interrupted.
const PAUSE: Duration = Duration::from_millis(20);

impl Session {
    /// [`Session::step`] of the asynchronous schedule.
    pub(super) fn step_ahead<'py>(
        &self,
        py: Python<'py>,
        (workers, in_flight): (usize, usize),
        seconds: f64,
    ) -> PyResult<(Vec<Asked<'py>>, Option<Ending>)> {
        loop {
            match self.quick(py, |session| self.chooser.step(session, (workers, in_flight), seconds))? {
                Some((jobs, stop)) => return Ok((asked(py, jobs), stop.map(ending))),
                None if in_flight > 0 || !self.chooser.is_choosing() => return Ok((Vec::new(), None)),
                None => {
                    py.detach(|| std::thread::sleep(MOMENT));
                    py.check_signals()?;
                }
            }
        }
    }

    /// Work of microseconds, or a write to the disk. A signal ends the wait for other work on the session.
    pub(super) fn quick<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut run::Session) -> batchquad::Result<T> + Send,
    ) -> PyResult<T> {
        let mut work = Some(work);
        loop {
            let attempt = |session: &mut run::Session| work.take().map(|work| work(session)).transpose();
            let done = py.detach(|| self.desk.lend(GLANCE, attempt));
            match done.transpose().map_err(|e| exception(py, &e)).map(Option::flatten) {
                Ok(Some(done)) => return Ok(done),
                Ok(None) => py.check_signals()?,
                Err(e) => return self.raised.instead_of(Err(e)),
            }
        }
    }

    /// Work that may take seconds, or that calls Python functions.
    pub(super) fn long<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut run::Session, &Interrupt) -> batchquad::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let desk = Arc::clone(&self.desk);
        let done = on_thread(py, move |interrupt| {
            let mut work = Some(work);
            loop {
                let attempt = |session: &mut run::Session| {
                    work.take().map(|work| pooled(interrupt, || work(session, interrupt))).transpose()
                };
                if let Some(done) = desk.lend(PAUSE, attempt).transpose()?.flatten() {
                    return Ok(done);
                }
                if interrupt.is_raised() {
                    return Err(Error::Interrupted);
                }
            }
        });
        self.raised.instead_of(done)
    }
}
