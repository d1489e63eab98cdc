//! Long work: without the interpreter's lock, on a thread that an interrupt leaves behind.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use batchquad::{Error, Result};
use crossbeam_channel::{RecvTimeoutError, bounded};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::{exception, fault};

/// How often signals are looked for: an interrupt is heeded within this.
const GLANCE: Duration = Duration::from_millis(50);

/// Whether somebody still waits for the work.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted(Arc<AtomicBool>);

impl Wanted {
    /// Whether the one who waited was interrupted.
    pub(crate) fn given_up(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Runs `work` and waits for it without the interpreter's lock; a signal (Ctrl-C) ends the waiting at once.
///
/// The work itself goes on to its end, unheeded, and should look at [`Wanted`] before it changes anything.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Wanted) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let wanted = Wanted::default();
    let (send, receive) = bounded(1);
    let seen = wanted.clone();
    let body = move || {
        let result = pool().and_then(|pool| pool.install(|| work(&seen)));
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
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals().inspect_err(|_| wanted.0.store(true, Ordering::SeqCst))?
            }
            Err(RecvTimeoutError::Disconnected) => return Err(fault("a panic")),
        }
    }
}

/// Threads for the library's parallel loops, anew in every process: threads do not survive a fork, and who waits for them waits for ever.
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
