//! Breaking off long computations: a request to stop that is looked at between their steps.
//!
//! [`heeding`] names the request for as long as some work lasts, on the thread that does it. Whatever that work calls
//! looks at it ([`check`]) without knowing who asks: searches before every evaluation of what they maximise. Work that
//! hands parts of itself to other threads takes the request along ([`Heeded`]).

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::{Error, Result};

/// A request to stop, shared by everybody who can make it and everybody who heeds it.
///
/// Raised once, commands are asked to end (SIGTERM) and killed after their grace; raised again, they are killed at
/// once. It is one atomic counter, so raising it is allowed in a signal handler.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicU8>);

impl Interrupt {
    /// Asks to stop; a second time, to stop at once.
    pub fn raise(&self) {
        // Saturating, so that an impatient user cannot wrap it around to "go on". The closure never declines.
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |level| Some(level.saturating_add(1)));
    }

    /// Whether it was raised.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }

    /// Whether it was raised twice.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 1
    }

    /// Asks to stop without making an earlier request urgent.
    pub(crate) fn raise_once(&self) {
        self.0.fetch_max(1, Ordering::SeqCst);
    }
}

thread_local! {
    /// The requests that the work on this thread heeds, the innermost last.
    static HEEDED: RefCell<Vec<Interrupt>> = const { RefCell::new(Vec::new()) };
}

/// Does `work` on this thread, breaking its long computations off with [`Error::Interrupted`] once `interrupt` is
/// raised.
///
/// What was worked out before stays, and nothing half-done does: an engine can be asked again.
///
/// ```
/// use batchquad::interrupt::{Interrupt, check, heeding};
///
/// let interrupt = Interrupt::default();
/// assert!(heeding(&interrupt, check).is_ok());
/// interrupt.raise();
/// assert!(heeding(&interrupt, check).is_err());
/// assert!(check().is_ok(), "nobody asks any more");
/// ```
pub fn heeding<T>(interrupt: &Interrupt, work: impl FnOnce() -> T) -> T {
    /// Forgets the request also when `work` panics.
    struct Forget;
    impl Drop for Forget {
        fn drop(&mut self) {
            HEEDED.with_borrow_mut(|heeded| drop(heeded.pop()));
        }
    }
    HEEDED.with_borrow_mut(|heeded| heeded.push(interrupt.clone()));
    let _forget = Forget;
    work()
}

/// Whether the work on this thread is to go on.
///
/// # Errors
/// [`Error::Interrupted`] when a request that it heeds was raised.
pub fn check() -> Result<()> {
    let raised = HEEDED.with_borrow(|heeded| heeded.iter().any(Interrupt::is_raised));
    if raised { Err(Error::Interrupted) } else { Ok(()) }
}

/// The requests that this thread heeds, for the threads that work for it.
#[derive(Debug, Clone)]
pub struct Heeded(Vec<Interrupt>);

impl Heeded {
    /// Those of the calling thread.
    #[must_use]
    pub fn here() -> Self {
        Self(HEEDED.with_borrow(Clone::clone))
    }

    /// Does `work` on this thread, which heeds these requests too while it lasts.
    pub fn lend<T>(&self, work: impl FnOnce() -> T) -> T {
        match self.0.split_first() {
            None => work(),
            Some((first, rest)) => heeding(first, || Self(rest.to_vec()).lend(work)),
        }
    }

    /// As [`check`], on any thread.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn check(&self) -> Result<()> {
        if self.0.iter().any(Interrupt::is_raised) { Err(Error::Interrupted) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_nest_and_end_with_their_work() {
        let (outer, inner) = (Interrupt::default(), Interrupt::default());
        inner.raise();
        heeding(&outer, || {
            assert_eq!(heeding(&inner, check), Err(Error::Interrupted));
            assert_eq!(check(), Ok(()));
            outer.raise();
            assert_eq!(heeding(&Interrupt::default(), check), Err(Error::Interrupted));
        });
        assert_eq!(check(), Ok(()));
        let panicked = std::panic::catch_unwind(|| heeding(&inner, || std::panic::resume_unwind(Box::new(()))));
        assert!(panicked.is_err() && check().is_ok());
    }

    #[test]
    fn other_threads_take_the_request_along() {
        let interrupt = Interrupt::default();
        let heeded = heeding(&interrupt, Heeded::here);
        interrupt.raise();
        assert_eq!(std::thread::spawn(move || heeded.check()).join().unwrap(), Err(Error::Interrupted));
    }
}
