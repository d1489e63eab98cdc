//! One session for many threads, and for the processes that are forked while they use it.

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use batchquad::{
    Error, Result,
    journal::Event,
    run::{Record, Session},
};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

/// A session that is lent to one user at a time. Who waits for it waits for a limited time.
pub(crate) struct Desk {
    put: Sender<Box<Session>>,
    take: Receiver<Box<Session>>,
    lost: AtomicBool,
}

impl Desk {
    pub(crate) fn new(session: Session) -> Self {
        let (put, take) = bounded(1);
        // There is room for one, and nobody else has the sender yet.
        let _ = put.send(Box::new(session));
        Self { put, take, lost: AtomicBool::new(false) }
    }

    /// Does `work` with the session, or nothing if the session is not free within `patience`.
    pub(crate) fn lend<T>(
        &self,
        patience: Duration,
        work: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Option<Result<T>> {
        /// A panic in the middle of a change leaves a session that must not be trusted.
        struct Lost<'a>(&'a AtomicBool);
        impl Drop for Lost<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        match self.take.recv_timeout(patience) {
            Ok(mut session) => {
                let lost = Lost(&self.lost);
                let done = work(&mut session);
                std::mem::forget(lost);
                let _ = self.put.send(session);
                Some(done)
            }
            Err(RecvTimeoutError::Timeout) if !self.lost.load(Ordering::SeqCst) => None,
            Err(_) => Some(Err(Error::Numerical {
                what: "study".into(),
                reason: "it broke off earlier, or was busy in another thread when this process was forked".into(),
            })),
        }
    }

    /// In a fork: what another thread had at that moment never comes back, because the thread is not there.
    pub(crate) fn give_up_if_lent(&self) {
        if self.take.is_empty() {
            self.lost.store(true, Ordering::SeqCst);
        }
    }
}

type Inner = Box<dyn Record + Send>;

/// A record that can be closed, or kept from a fork, while its session is in use.
pub(crate) struct Drawer {
    state: Mutex<State>,
    back: Condvar,
    /// Where the record is while this process forks: so that the child finds it whatever the other threads were doing.
    aside: Mutex<Option<Inner>>,
    pid: u32,
}

enum State {
    Open(Inner),
    /// This process is being forked.
    Away,
    Closed,
}

impl Drawer {
    /// Puts the record of a session into a drawer.
    pub(crate) fn of(session: &mut Session) -> Arc<Self> {
        let record = std::mem::replace(&mut session.record, Box::new(Nothing));
        let drawer = Arc::new(Self {
            state: Mutex::new(State::Open(record)),
            back: Condvar::new(),
            aside: Mutex::new(None),
            pid: std::process::id(),
        });
        session.record = Box::new(Through(Arc::clone(&drawer)));
        drawer
    }

    /// The state, once no fork is under way.
    fn settled(&self) -> MutexGuard<'_, State> {
        let state = lock(&self.state);
        self.back.wait_while(state, |state| matches!(state, State::Away)).unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the record up.
    pub(crate) fn close(&self) {
        if self.pid == std::process::id() {
            *self.settled() = State::Closed;
        }
    }

    /// Before a fork: waits for a write to end and puts the record where the child will find it.
    pub(crate) fn before_fork(&self) {
        if self.pid != std::process::id() {
            return;
        }
        let mut state = self.settled();
        *state = match std::mem::replace(&mut *state, State::Away) {
            State::Open(record) => {
                *lock(&self.aside) = Some(record);
                State::Away
            }
            other => other,
        };
    }

    /// After a fork, in the parent.
    pub(crate) fn after_fork(&self) {
        if let Some(record) = lock(&self.aside).take() {
            *lock(&self.state) = State::Open(record);
            self.back.notify_all();
        }
    }

    /// After a fork, in the child: closes what it inherited, so that the parent's lock on the store ends with the parent.
    pub(crate) fn disinherit(&self) {
        drop(lock(&self.aside).take());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The record in a drawer.
struct Through(Arc<Drawer>);

impl Record for Through {
    fn append(&mut self, event: &Event) -> Result<()> {
        // In a fork the state may be locked by a thread that is not there.
        if self.0.pid == std::process::id()
            && let State::Open(record) = &mut *self.0.settled()
        {
            return record.append(event);
        }
        Nothing.append(event)
    }

    fn append_all(&mut self, events: &[Event]) -> Result<()> {
        if self.0.pid == std::process::id()
            && let State::Open(record) = &mut *self.0.settled()
        {
            return record.append_all(events);
        }
        events.iter().try_for_each(|event| Nothing.append(event))
    }
}

/// What stands in for a record that is not ours to write to.
struct Nothing;

impl Record for Nothing {
    fn append(&mut self, _: &Event) -> Result<()> {
        Err(Error::Invalid {
            what: "study".into(),
            value: "closed".into(),
            expected: "an open one, in the process that opened it".into(),
        })
    }
}
