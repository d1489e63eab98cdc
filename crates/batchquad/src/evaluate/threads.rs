//! Rust closures on threads.

use std::sync::Arc;
use std::thread::Scope;

use super::Interrupt;
use super::pool::{Evaluated, Pool, Pooled, Work};
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

struct Closure<'a>(Arc<dyn Fn(&Job) -> Said + Send + Sync + 'a>);

impl Work for Closure<'_> {
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

/// Evaluates a Rust closure that borrows, on threads that end with a [scope](std::thread::scope).
///
/// As [`ThreadEvaluator`], but for one thing: the end of the scope waits for evaluations that are under way.
///
/// ```
/// use batchquad::evaluate::{Evaluator, ScopedEvaluator};
/// use batchquad::types::{Job, JobId, Outcome};
/// use std::time::Duration;
///
/// let data = [1.0, 2.0];
/// let outcome = std::thread::scope(|scope| {
///     let mut evaluator = ScopedEvaluator::new(scope, 2, |theta| data.iter().map(|x| -(x - theta[0]).powi(2)).sum())?;
///     evaluator.submit(Job { id: JobId(0), theta: vec![1.0], seed: 1 })?;
///     evaluator.wait(Duration::from_secs(60)).map(|finished| finished.map(|finished| finished.outcome))
/// })?;
/// assert_eq!(outcome, Some(Outcome::Value(-1.0)));
/// # Ok::<(), batchquad::Error>(())
/// ```
pub struct ScopedEvaluator {
    pool: Pool,
}

impl ScopedEvaluator {
    /// `workers` threads of `scope` that call `log_likelihood` with a point in the user's units.
    ///
    /// # Errors
    /// When `workers` is zero, or more than the system can start.
    pub fn new<'scope>(
        scope: &'scope Scope<'scope, '_>,
        workers: usize,
        log_likelihood: impl Fn(&[f64]) -> f64 + Send + Sync + 'scope,
    ) -> Result<Self> {
        Self::with(scope, workers, move |theta| (log_likelihood(theta), None))
    }

    /// The same for a noisy log-likelihood, as [`ThreadEvaluator::noisy`].
    ///
    /// # Errors
    /// As [`ScopedEvaluator::new`].
    pub fn noisy<'scope>(
        scope: &'scope Scope<'scope, '_>,
        workers: usize,
        log_likelihood: impl Fn(&[f64]) -> (f64, f64) + Send + Sync + 'scope,
    ) -> Result<Self> {
        Self::with(scope, workers, move |theta| {
            let (value, sd) = log_likelihood(theta);
            (value, Some(sd))
        })
    }

    /// `log_likelihood` returns its value, and the standard deviation of its noise if that is known.
    pub(crate) fn with<'scope>(
        scope: &'scope Scope<'scope, '_>,
        workers: usize,
        log_likelihood: impl Fn(&[f64]) -> (f64, Option<f64>) + Send + Sync + 'scope,
    ) -> Result<Self> {
        let evaluate: Arc<dyn Fn(&Job) -> Said + Send + Sync + 'scope> = Arc::new(move |job: &Job| {
            let (value, sd) = log_likelihood(&job.theta);
            (Outcome::Value(value), sd)
        });
        Ok(Self { pool: Pool::scoped(scope, workers, |_| Closure(Arc::clone(&evaluate)))? })
    }
}

impl Pooled for ThreadEvaluator {
    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }
}

impl Pooled for ScopedEvaluator {
    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }
}
