//! Long work: without the interpreter's lock, on a thread that an interrupt leaves behind.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use batchquad::{
    Error, Result,
    interrupt::{Interrupt, heeding},
};
use crossbeam_channel::{RecvTimeoutError, bounded};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::{exception, fault};

/// How often signals are looked for: an interrupt is heeded within this.
pub(crate) const GLANCE: Duration = Duration::from_millis(50);

/// Computes with the library's threads; a signal (Ctrl-C) ends the waiting at once, and the work at its next step.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    on_thread(py, move |interrupt| pooled(interrupt, work))
}

/// Runs `work` on a thread of its own and waits for it without the interpreter's lock; a signal (Ctrl-C) ends the waiting at
/// once and raises the interrupt.
///
/// Waiting for a lock happens here; the work itself is done with [`pooled`] once the lock is held. Inside the pool nothing may wait for
/// anybody: a thread of the pool that waits for a part of its work takes on other work meanwhile, and if that waited for a lock
/// that the first work holds, both would wait for ever.
pub(crate) fn on_thread<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Interrupt) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let interrupt = Interrupt::default();
    let (send, receive) = bounded(1);
    let heeded = interrupt.clone();
    let body = move || {
        let result = work(&heeded);
        // Nobody receives it after an interrupt.
        let _ = send.send(result);
    };
    std::thread::Builder::new()
        .name("batchquad".into())
        .spawn(body)
        .map_err(|e| fault(&format!("no thread could be started: {e}")))?;
    loop {
        match py.detach(|| receive.recv_timeout(GLANCE)) {
            Ok(result) => return result.map_err(|e| exception(py, &e)),
            Err(RecvTimeoutError::Timeout) => py.check_signals().inspect_err(|_| interrupt.raise())?,
            Err(RecvTimeoutError::Disconnected) => return Err(fault("a panic")),
        }
    }
}

/// Computes with the library's threads, until it is interrupted. `work` must not wait for a lock.
pub(crate) fn pooled<T: Send>(interrupt: &Interrupt, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    pool()?.install(|| heeding(interrupt, work))
}

/// Threads for the library's parallel loops, made anew in every process: threads do not survive a fork, and waiting for them would never end.
fn pool() -> Result<Arc<ThreadPool>> {
    static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = std::process::id();
    if let Some((owner, threads)) = pool.as_ref()
        && *owner == pid
    {
        return Ok(Arc::clone(threads));
    }
    let threads = ThreadPoolBuilder::new()
        .build()
        .map_err(|e| Error::Numerical { what: "starting threads".into(), reason: e.to_string() })?;
    let threads = Arc::new(threads);
    // A pool inherited by a fork has no threads to end.
    std::mem::forget(pool.replace((pid, Arc::clone(&threads))));
    Ok(threads)
}
