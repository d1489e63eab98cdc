//! Commands: several processes at a time, tried again where that may help.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::attempt::{Attempts, Context, Deaths, Tried};
use super::guardian::Guardian;
use super::per_call::PerCall;
use super::pool::{Evaluated, Pool, Pooled, Work};
use super::protocol::request;
use super::server::Server;
use super::spec::{CommandSpec, Mode};
use super::{Attempt, Interrupt};
use crate::error::{Error, Result};
use crate::types::{Job, Outcome};

/// Evaluates a command, several processes at a time.
///
/// Each process is the head of a process group of its own. Whatever ends it (its answer, its timeout, an interrupt, the
/// drop of the evaluator), the whole group goes with it: first by SIGTERM where it is still at work, then by SIGKILL.
/// A driver that is killed leaves that to a guardian, a process that waits for its end and then ends the groups.
/// Out of reach are only descendants that made a session of their own (`setsid`); they are not waited for either.
///
/// A process gets the question of [`request`] on standard input (or in the file `{in}`), and in per-call mode the
/// environment variables `BATCHQUAD_ID` and `BATCHQUAD_SEED`; `BATCHQUAD_WORKER` is the number of the worker in both.
/// Its answer is read by [`answer`](super::answer()); an exit code other than 0 is a failure whatever it printed.
///
/// Shutting down takes at most twice the grace of the command and two seconds.
pub struct CommandEvaluator {
    pool: Pool,
    context: Arc<Context>,
}

impl CommandEvaluator {
    /// `workers` processes at a time that evaluate points whose coordinates are called `names`.
    ///
    /// # Errors
    /// When `spec` is not valid, its program or working directory is missing, a name in braces is nobody's, or `names` are none, empty or not unique.
    pub fn new(spec: CommandSpec, names: &[impl AsRef<str>], workers: usize) -> Result<Self> {
        spec.check()?;
        let names: Vec<String> = names.iter().map(|name| name.as_ref().to_owned()).collect();
        let unique: BTreeSet<&String> = names.iter().collect();
        if names.is_empty() || unique.len() < names.len() || names.iter().any(String::is_empty) {
            return Err(Error::invalid("names of the parameters", names, "at least one, none empty, no two alike"));
        }
        let arguments = spec.templates(&names)?;
        let interrupt = Interrupt::default();
        let guardian = Arc::new(Guardian::new(spec.grace));
        let deaths = Deaths::default();
        let context = Arc::new(Context { spec, names, arguments, interrupt: interrupt.clone(), deaths, guardian });
        let share = |worker| (worker, Arc::clone(&context));
        let pool = match context.spec.mode {
            Mode::PerCall => Pool::new(workers, interrupt, |worker| Retrying::new(share(worker), PerCall::new)),
            Mode::Server => Pool::new(workers, interrupt, |worker| Retrying::new(share(worker), Server::new)),
        }?;
        Ok(Self { pool: pool.joined(), context })
    }
}

impl Pooled for CommandEvaluator {
    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }

    fn check(&self, job: &Job) -> Result<()> {
        request(&self.context.names, job).map(drop)
    }

    fn retries(&self) -> u32 {
        self.context.spec.retries
    }
}

/// Tries a job until it has an outcome that trying again would not change.
struct Retrying<A> {
    context: Arc<Context>,
    attempts: A,
}

impl<A> Retrying<A> {
    fn new((worker, context): (usize, Arc<Context>), make: fn(usize, Arc<Context>) -> A) -> Self {
        Self { attempts: make(worker, Arc::clone(&context)), context }
    }
}

impl<A: Attempts> Work for Retrying<A> {
    fn run(&mut self, job: &Job) -> Result<Option<Evaluated>> {
        let question = request(&self.context.names, job)?;
        let (mut attempts, mut retried) = (0, Vec::new());
        loop {
            attempts += 1;
            let Tried::Done { outcome, sd, stderr } = self.attempts.attempt(job, &question)? else { return Ok(None) };
            match outcome {
                Outcome::Failed { kind, message }
                    if kind.is_infrastructure() && attempts <= self.context.spec.retries =>
                {
                    retried.push(Attempt { number: attempts, kind, message });
                }
                outcome => return Ok(Some(Evaluated { outcome, sd, attempts, retried, stderr_tail: stderr })),
            }
            // What takes down a process (a full table of processes, a job manager about to stop us) often lasts a while.
            if !self.context.pause(Duration::from_millis(100) * attempts.min(10)) {
                return Ok(None);
            }
        }
    }

    fn rest_every(&self) -> Option<Duration> {
        self.attempts.rest_every()
    }

    fn rest(&mut self) {
        self.attempts.rest();
    }
}
