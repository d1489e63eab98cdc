//! Threads that take jobs from one queue: what all evaluators share.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle, Scope};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};

use super::{Attempt, Evaluator, Finished, spec, text};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::types::{FailureKind, Job, Outcome};

/// What a worker makes of a job.
pub(super) struct Evaluated {
    pub outcome: Outcome,
    pub sd: Option<f64>,
    pub attempts: u32,
    pub retried: Vec<Attempt>,
    pub stderr_tail: String,
}

/// The part of a worker that differs between evaluators.
pub(super) trait Work: Send {
    /// Evaluates one job; `None` when interrupted.
    fn run(&mut self, job: &Job) -> Result<Option<Evaluated>>;

    /// How often [`rest`](Self::rest) is to be called while there is nothing to do.
    fn rest_every(&self) -> Option<Duration> {
        None
    }

    /// Looks after whatever lives between jobs.
    fn rest(&mut self) {}
}

/// An evaluator that does what its pool does.
pub(super) trait Pooled {
    fn pool(&self) -> &Pool;

    fn pool_mut(&mut self) -> &mut Pool;

    /// Refuses a job that does not fit.
    fn check(&self, _: &Job) -> Result<()> {
        Ok(())
    }

    /// How often a job is tried again whose worker was lost.
    fn retries(&self) -> u32 {
        spec::defaults::retries()
    }
}

impl<P: Pooled> Evaluator for P {
    fn submit(&mut self, job: Job) -> Result<()> {
        self.check(&job)?;
        self.pool_mut().submit(job)
    }

    fn wait(&mut self, timeout: Duration) -> Result<Option<Finished>> {
        self.pool_mut().wait(timeout)
    }

    fn workers(&self) -> usize {
        self.pool().workers
    }

    fn in_flight(&self) -> usize {
        self.pool().in_flight
    }

    fn retries(&self) -> u32 {
        Pooled::retries(self)
    }

    fn interrupt(&self) -> Interrupt {
        self.pool().interrupt.clone()
    }

    fn shutdown(&mut self) {
        self.pool_mut().close();
    }
}

enum Event {
    Finished(Finished),
    /// Given up after an interrupt.
    Abandoned,
    /// The likelihood cannot be run at all.
    Broken(Error),
}

/// Worker threads, their queue and their results.
pub(super) struct Pool {
    queue: Option<Sender<Job>>,
    events: Receiver<Event>,
    threads: Vec<JoinHandle<()>>,
    workers: usize,
    in_flight: usize,
    interrupt: Interrupt,
    /// Whether closing it waits for the threads: only where their work heeds the interrupt within bounded time.
    joins: bool,
}

/// More threads than any machine serves; beyond it a typing error is the likely cause.
const MOST_WORKERS: usize = 4096;

impl Pool {
    /// `workers` threads, each with the [`Work`] that `make` returns for its number.
    pub fn new<W: Work + 'static>(workers: usize, interrupt: Interrupt, make: impl Fn(usize) -> W) -> Result<Self> {
        let mut threads = Vec::new();
        let mut pool = Self::start(workers, interrupt, make, |thread, serve| {
            threads.push(thread.spawn(serve)?);
            Ok(())
        })?;
        pool.threads = threads;
        Ok(pool)
    }

    /// The same with threads that end with a scope, so that their work may borrow what outlives it.
    pub fn scoped<'scope, W: Work + 'scope>(
        scope: &'scope Scope<'scope, '_>,
        workers: usize,
        make: impl Fn(usize) -> W,
    ) -> Result<Self> {
        Self::start(workers, Interrupt::default(), make, |thread, serve| thread.spawn_scoped(scope, serve).map(drop))
    }

    fn start<'a, W: Work + 'a>(
        workers: usize,
        interrupt: Interrupt,
        make: impl Fn(usize) -> W,
        mut spawn: impl FnMut(Builder, Box<dyn FnOnce() + Send + 'a>) -> std::io::Result<()>,
    ) -> Result<Self> {
        if !(1..=MOST_WORKERS).contains(&workers) {
            return Err(Error::invalid("number of workers", workers, format!("1 to {MOST_WORKERS}")));
        }
        let (queue, jobs) = unbounded();
        let (results, events) = unbounded();
        let pool = Self { queue: Some(queue), events, threads: vec![], workers, in_flight: 0, interrupt, joins: false };
        for worker in 0..workers {
            let (work, jobs, results, interrupt) =
                (make(worker), jobs.clone(), results.clone(), pool.interrupt.clone());
            let serve = move || serve(worker, work, &jobs, &results, &interrupt);
            spawn(Builder::new().name(format!("batchquad-{worker}")), Box::new(serve))
                .map_err(|e| Error::invalid("number of workers", workers, format!("as many as can be started: {e}")))?;
        }
        Ok(pool)
    }

    pub fn submit(&mut self, job: Job) -> Result<()> {
        let stopped = || Error::Invalid {
            what: "evaluator".into(),
            value: "stopped".into(),
            expected: "one that was neither interrupted nor shut down".into(),
        };
        let queue = self.queue.as_ref().filter(|_| !self.interrupt.is_raised()).ok_or_else(stopped)?;
        queue.send(job).map_err(|_| stopped())?;
        self.in_flight += 1;
        Ok(())
    }

    pub fn wait(&mut self, timeout: Duration) -> Result<Option<Finished>> {
        // Longer than a year is for ever, and cannot overflow the clock.
        let deadline = Instant::now() + timeout.min(Duration::from_secs(366 * 86_400));
        while self.in_flight > 0 {
            match self.events.recv_deadline(deadline) {
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    self.in_flight = 0;
                    return Err(Error::invalid("evaluator", "without workers", "at least one that is alive"));
                }
                Ok(event) => {
                    self.in_flight -= 1;
                    match event {
                        Event::Finished(finished) => return Ok(Some(finished)),
                        Event::Broken(error) => return Err(error),
                        Event::Abandoned => {}
                    }
                }
            }
        }
        Ok(None)
    }

    /// The same pool, which waits for its threads to end when it is closed.
    pub fn joined(mut self) -> Self {
        self.joins = true;
        self
    }

    /// Gives up everything in flight and closes the queue, which ends the threads as soon as they come back to it.
    fn close(&mut self) {
        self.interrupt.raise_once();
        self.queue = None;
        self.in_flight = 0;
        for thread in self.threads.drain(..).filter(|_| self.joins) {
            // Panics of the work are caught where it is called, so there is nothing to learn from the result.
            let _ = thread.join();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.close();
    }
}

fn serve(worker: usize, mut work: impl Work, jobs: &Receiver<Job>, results: &Sender<Event>, interrupt: &Interrupt) {
    while let Some(job) = next(&mut work, jobs) {
        let event = if interrupt.is_raised() { Event::Abandoned } else { evaluate(worker, &mut work, &job) };
        if results.send(event).is_err() {
            break;
        }
    }
}

fn next(work: &mut impl Work, jobs: &Receiver<Job>) -> Option<Job> {
    let Some(period) = work.rest_every() else { return jobs.recv().ok() };
    loop {
        match jobs.recv_timeout(period) {
            Ok(job) => return Some(job),
            Err(RecvTimeoutError::Timeout) => work.rest(),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

fn evaluate(worker: usize, work: &mut impl Work, job: &Job) -> Event {
    let start = Instant::now();
    let run = catch_unwind(AssertUnwindSafe(|| work.run(job))).unwrap_or_else(|panic| {
        let outcome = Outcome::Failed { kind: FailureKind::Exception, message: panic_message(panic.as_ref()) };
        // Dropping a payload can panic in its turn; leaking it is the only way not to lose the worker.
        std::mem::forget(panic);
        Ok(Some(Evaluated { outcome, sd: None, attempts: 1, retried: Vec::new(), stderr_tail: String::new() }))
    });
    match run {
        Err(error) => Event::Broken(error),
        Ok(None) => Event::Abandoned,
        Ok(Some(Evaluated { outcome, sd, attempts, retried, stderr_tail })) => {
            let seconds = start.elapsed().as_secs_f64();
            Event::Finished(Finished { id: job.id, outcome, sd, attempts, retried, seconds, worker, stderr_tail })
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(its payload is not text)");
    format!("the likelihood panicked: {}", text::one_line(message))
}
