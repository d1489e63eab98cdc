//! Run the user's likelihood: closures on threads, commands as processes, or models behind HTTP ([`UmbridgeEvaluator`]).
//!
//! An [`Evaluator`] takes [`Job`]s and hands back what became of them, in the order in which they finish. It knows
//! nothing of beliefs: it is given a point and answers with an [`Outcome`]. A likelihood that fails is an outcome; only
//! trouble that no other point could escape (a command that does not exist, a server that never answers) is an error.
//!
//! | | [`ThreadEvaluator`] | [`CommandEvaluator`] |
//! |---|---|---|
//! | the likelihood is | a Rust closure | a program in any language |
//! | one that hangs | cannot be ended, only left behind | is ended after its timeout, with all its descendants |
//! | one that crashes | a panic is caught | costs one evaluation |
//! | retries | none: the same call panics again | after a signal, a timeout or a lost worker |

#[cfg(unix)]
mod attempt;
#[cfg(unix)]
mod command;
#[cfg(unix)]
mod guardian;
mod http;
#[cfg(unix)]
mod per_call;
mod placeholders;
mod pool;
#[cfg(unix)]
mod process;
mod protocol;
#[cfg(unix)]
mod server;
mod spec;
mod text;
mod threads;
mod umbridge;

use std::time::Duration;

use crate::error::Result;
pub use crate::interrupt::Interrupt;
use crate::types::{FailureKind, Job, JobId, Outcome};

#[cfg(unix)]
pub use command::CommandEvaluator;
pub use protocol::{Answer, Reply, answer, number, request};
pub use spec::{CommandSpec, Inherit, Mode};
pub use text::clean;
pub use threads::{ScopedEvaluator, ThreadEvaluator};
pub use umbridge::{Bridge, UmbridgeEvaluator, UmbridgeSpec};

/// Somebody who evaluates the likelihood, several points at a time.
///
/// ```
/// use batchquad::evaluate::{Evaluator, ThreadEvaluator};
/// use batchquad::types::{Job, JobId, Outcome};
/// use std::time::Duration;
///
/// let mut evaluator = ThreadEvaluator::new(2, |theta| -0.5 * theta[0] * theta[0])?;
/// evaluator.submit(Job { id: JobId(0), theta: vec![2.0], seed: 1 })?;
/// let finished = evaluator.wait(Duration::from_secs(60))?.expect("a parabola takes less than a minute");
/// assert_eq!(finished.outcome, Outcome::Value(-2.0));
/// # Ok::<(), batchquad::Error>(())
/// ```
pub trait Evaluator {
    /// Hands over a job and returns at once; beyond the number of workers it waits in a queue, first come, first served.
    ///
    /// # Errors
    /// When the job does not fit (its dimension, a coordinate that is not finite), or the evaluator was interrupted.
    fn submit(&mut self, job: Job) -> Result<()>;

    /// The next job to finish, or `None` when none did within `timeout`, or at once when none is in flight.
    ///
    /// # Errors
    /// When the likelihood cannot be run at all. The job that met this has no outcome and is no longer in flight.
    fn wait(&mut self, timeout: Duration) -> Result<Option<Finished>>;

    /// How many jobs are evaluated at the same time.
    fn workers(&self) -> usize;

    /// How many jobs were submitted and neither handed back by [`wait`](Self::wait) nor given up after an interrupt.
    fn in_flight(&self) -> usize;

    /// How many workers have nothing to do.
    fn idle(&self) -> usize {
        self.workers().saturating_sub(self.in_flight())
    }

    /// How often a job is tried again whose worker was lost; also one that was pending whenever the whole program was killed.
    fn retries(&self) -> u32 {
        spec::defaults::retries()
    }

    /// A handle by which another thread, or a signal handler, stops the work.
    ///
    /// Jobs given up have no outcome (nothing is known about them); those that had finished are still handed back.
    fn interrupt(&self) -> Interrupt;

    /// Gives up what is in flight and ends the workers. Called again, or by the drop that follows, it does nothing.
    fn shutdown(&mut self);
}

/// An attempt that failed and was not the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Its number, counted from one.
    pub number: u32,
    /// How it failed.
    pub kind: FailureKind,
    /// What happened, for a person.
    pub message: String,
}

/// What became of a job, and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// The job.
    pub id: JobId,
    /// A log-likelihood, or why there is none.
    pub outcome: Outcome,
    /// The standard deviation of the log-likelihood's noise, where the likelihood says it.
    pub sd: Option<f64>,
    /// How many times it was tried, at least 1.
    pub attempts: u32,
    /// The attempts that failed before the last one.
    pub retried: Vec<Attempt>,
    /// Wall-clock seconds over all attempts, without the time in the queue.
    pub seconds: f64,
    /// Which worker had it, counted from zero.
    pub worker: usize,
    /// The end of what the last attempt wrote to standard error, without control characters.
    pub stderr_tail: String,
}
