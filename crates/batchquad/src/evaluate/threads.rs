//! Rust closures on threads.

use std::sync::Arc;
use std::time::Duration;

use super::pool::{Evaluated, Pool, Work};
use super::{Evaluator, Finished, Interrupt};
use crate::error::Result;
use crate::types::{Job, Outcome};

/// Evaluates a Rust closure on threads of its own.
///
/// A panic becomes a failure of kind [`Exception`](crate::types::FailureKind::Exception) that names its message, NaN and
/// +∞ become failures of kind [`Nan`](crate::types::FailureKind::Nan), and the worker goes on. (The default panic hook
/// still prints to standard error, and a program built with `panic = "abort"` ends, as it asked to.)
///
/// A thread cannot be ended from outside, so there is no timeout: after an interrupt or a drop, idle threads end at once
/// and a busy one after the evaluation it is in, whose result is discarded. Neither waits for the busy ones: a closure
/// that never returns keeps its thread until the program ends, but nobody waits for it.
pub struct ThreadEvaluator {
    pool: Pool,
}

/// An outcome, and the standard deviation of its noise if that is known.
type Said = (Outcome, Option<f64>);

struct Closure(Arc<dyn Fn(&Job) -> Said + Send + Sync>);

impl Work for Closure {
    fn run(&mut self, job: &Job) -> Result<Option<Evaluated>> {
        let (outcome, sd) = (self.0)(job);
        let outcome = match outcome {
            Outcome::Value(value) => Outcome::from_log_likelihood(&job.theta, value),
            failed @ Outcome::Failed { .. } => failed,
        };
        let (outcome, sd) = outcome.with_sd(&job.theta, sd);
        Ok(Some(Evaluated { outcome, sd, attempts: 1, retried: Vec::new(), stderr_tail: String::new() }))
    }
}

impl ThreadEvaluator {
    /// `workers` threads that call `log_likelihood` with a point in the user's units.
    ///
    /// # Errors
    /// When `workers` is zero, or more than the system can start.
    pub fn new(workers: usize, log_likelihood: impl Fn(&[f64]) -> f64 + Send + Sync + 'static) -> Result<Self> {
        Self::from_jobs(workers, move |job| Outcome::Value(log_likelihood(&job.theta)))
    }

    /// The same for a noisy log-likelihood: `log_likelihood` returns its value and the standard deviation of its noise, a finite number ≥ 0.
    ///
    /// # Errors
    /// As [`ThreadEvaluator::new`].
    pub fn noisy(
        workers: usize,
        log_likelihood: impl Fn(&[f64]) -> (f64, f64) + Send + Sync + 'static,
    ) -> Result<Self> {
        Self::with(workers, move |job| {
            let (value, sd) = log_likelihood(&job.theta);
            (Outcome::Value(value), Some(sd))
        })
    }

    /// `workers` threads that call `evaluate` with the whole job: its id and its seed beside the point.
    ///
    /// The closure may return a failure of any kind; a value that is NaN or +∞ becomes one.
    ///
    /// # Errors
    /// When `workers` is zero, or more than the system can start.
    pub fn from_jobs(workers: usize, evaluate: impl Fn(&Job) -> Outcome + Send + Sync + 'static) -> Result<Self> {
        Self::with(workers, move |job| (evaluate(job), None))
    }

    fn with(workers: usize, evaluate: impl Fn(&Job) -> Said + Send + Sync + 'static) -> Result<Self> {
        let evaluate: Arc<dyn Fn(&Job) -> Said + Send + Sync> = Arc::new(evaluate);
        Ok(Self { pool: Pool::new(workers, Interrupt::default(), |_| Closure(Arc::clone(&evaluate)))? })
    }
}

impl Evaluator for ThreadEvaluator {
    fn submit(&mut self, job: Job) -> Result<()> {
        self.pool.submit(job)
    }

    fn wait(&mut self, timeout: Duration) -> Result<Option<Finished>> {
        self.pool.wait(timeout)
    }

    fn workers(&self) -> usize {
        self.pool.workers()
    }

    fn in_flight(&self) -> usize {
        self.pool.in_flight()
    }

    fn interrupt(&self) -> Interrupt {
        self.pool.interrupt()
    }

    fn shutdown(&mut self) {
        self.pool.close();
    }
}

impl Drop for ThreadEvaluator {
    fn drop(&mut self) {
        self.shutdown();
    }
}
