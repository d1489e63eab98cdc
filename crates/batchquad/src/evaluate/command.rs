//! Commands: what the two modes, one process per call and servers, share.

use std::collections::BTreeSet;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::guardian::Guardian;
use super::per_call::PerCall;
use super::pool::{Evaluated, Pool, Work};
use super::process::{LOOK, Process};
use super::protocol::{Answer, Reply, request};
use super::server::{Deaths, Server};
use super::spec::{CommandSpec, Inherit, Mode};
use super::text::one_line;
use super::{Evaluator, Finished, Interrupt};
use crate::error::{Error, Result};
use crate::types::{FailureKind, Job, Outcome};

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

/// What all workers of an evaluator know.
pub(super) struct Context {
    pub spec: CommandSpec,
    pub names: Vec<String>,
    pub interrupt: Interrupt,
    pub deaths: Deaths,
    pub guardian: Arc<Guardian>,
}

/// What came of one attempt at a job.
pub(super) enum Attempt {
    Done { outcome: Outcome, stderr: String },
    Interrupted,
}

/// One way of carrying out an attempt.
pub(super) trait Attempts: Send + 'static {
    fn attempt(&mut self, job: &Job, question: &str) -> Result<Attempt>;

    fn rest_every(&self) -> Option<Duration> {
        None
    }

    fn rest(&mut self) {}
}

impl CommandEvaluator {
    /// `workers` processes at a time that evaluate points whose coordinates are called `names`.
    ///
    /// # Errors
    /// When `spec` is not valid, its program or working directory is missing, or `names` are none, empty or not unique.
    pub fn new(spec: CommandSpec, names: &[impl AsRef<str>], workers: usize) -> Result<Self> {
        spec.check()?;
        let names: Vec<String> = names.iter().map(|name| name.as_ref().to_owned()).collect();
        let unique: BTreeSet<&String> = names.iter().collect();
        if names.is_empty() || unique.len() < names.len() || names.iter().any(String::is_empty) {
            return Err(Error::invalid("names of the parameters", names, "at least one, none empty, no two alike"));
        }
        let interrupt = Interrupt::default();
        let guardian = Arc::new(Guardian::new(spec.grace));
        let context =
            Arc::new(Context { spec, names, interrupt: interrupt.clone(), deaths: Deaths::default(), guardian });
        let share = |worker| (worker, Arc::clone(&context));
        let pool = match context.spec.mode {
            Mode::PerCall => Pool::new(workers, interrupt, |worker| Retrying::new(share(worker), PerCall::new)),
            Mode::Server => Pool::new(workers, interrupt, |worker| Retrying::new(share(worker), Server::new)),
        }?;
        Ok(Self { pool, context })
    }
}

impl Evaluator for CommandEvaluator {
    fn submit(&mut self, job: Job) -> Result<()> {
        request(&self.context.names, &job)?;
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
        self.pool.join();
    }
}

impl Drop for CommandEvaluator {
    fn drop(&mut self) {
        self.shutdown();
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
        let mut attempts = 0;
        loop {
            attempts += 1;
            let Attempt::Done { outcome, stderr } = self.attempts.attempt(job, &question)? else { return Ok(None) };
            let passing = matches!(&outcome, Outcome::Failed { kind, .. } if kind.is_infrastructure());
            if !passing || attempts > self.context.spec.retries {
                return Ok(Some(Evaluated { outcome, attempts, stderr_tail: stderr }));
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

impl Context {
    /// The command with its environment, `edit` applied to each argument.
    pub fn command(&self, worker: usize, edit: impl Fn(&str) -> String) -> Command {
        let spec = &self.spec;
        let mut command = if spec.shell {
            let mut shell = Command::new("/bin/sh");
            shell.arg("-c");
            shell.args(spec.command.iter().map(|script| edit(script)));
            shell
        } else {
            let mut program = Command::new(&spec.command[0]);
            program.args(spec.command[1..].iter().map(|argument| edit(argument)));
            program
        };
        if spec.inherit_env != Inherit::All {
            command.env_clear();
        }
        if let Inherit::Only(names) = &spec.inherit_env {
            command.envs(names.iter().filter_map(|name| std::env::var_os(name).map(|value| (name, value))));
        }
        command.envs(&spec.env).env("BATCHQUAD_WORKER", worker.to_string());
        if let Some(dir) = &spec.working_dir {
            command.current_dir(dir);
        }
        command
    }

    /// Starts a process. The outer error is one that every other point would meet as well, the inner one may pass.
    pub fn spawn(&self, command: Command, input: bool, limit: Option<usize>) -> Result<Result<Process, Attempt>> {
        use rustix::io::Errno;
        let spawned = Process::spawn(command, input, limit);
        spawned.map(|process| Ok(process.guarded_by(Arc::clone(&self.guardian)))).or_else(|e| {
            let passing = [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE, Errno::TXTBSY];
            if passing.iter().any(|errno| e.raw_os_error() == Some(errno.raw_os_error())) {
                Ok(Err(failed(FailureKind::LostWorker, format!("could not be started: {e}"), String::new())))
            } else {
                Err(Error::invalid("command", &self.spec.command, format!("a program that can be started: {e}")))
            }
        })
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.spec.timeout.and_then(|timeout| Instant::now().checked_add(timeout))
    }

    /// The failure of an attempt that was ended because of its time.
    pub fn timed_out(&self, stderr: String) -> Attempt {
        let seconds = self.spec.timeout.unwrap_or_default().as_secs_f64();
        failed(FailureKind::Timeout, format!("no answer within {seconds} s"), stderr)
    }

    /// The failure of an attempt that printed more than is allowed.
    pub fn too_much(&self, stderr: String) -> Attempt {
        failed(FailureKind::Parse, format!("printed more than {} bytes", self.spec.max_output), stderr)
    }

    /// Whether the whole pause passed without an interrupt.
    fn pause(&self, pause: Duration) -> bool {
        let start = Instant::now();
        while start.elapsed() < pause && !self.interrupt.is_raised() {
            std::thread::sleep(LOOK.min(pause));
        }
        !self.interrupt.is_raised()
    }
}

/// An attempt that failed, with the last words of the process in its message.
pub(super) fn failed(kind: FailureKind, what: String, stderr: String) -> Attempt {
    let message = if stderr.is_empty() { what } else { format!("{what}; stderr: {}", one_line(&stderr)) };
    Attempt::Done { outcome: Outcome::Failed { kind, message }, stderr }
}

/// An attempt that was answered.
pub(super) fn answered(job: &Job, said: Result<Answer>, stderr: String) -> Attempt {
    match said {
        Err(error) => failed(FailureKind::Parse, error.to_string(), stderr),
        Ok(Answer { id: Some(id), .. }) if id != job.id => {
            failed(FailureKind::Parse, format!("answered for job {id}, expected job {}", job.id), stderr)
        }
        Ok(Answer { reply: Reply::Failed(reason), .. }) => failed(FailureKind::Exception, reason, stderr),
        Ok(Answer { reply: Reply::LogLikelihood(value), .. }) => {
            Attempt::Done { outcome: Outcome::from_log_likelihood(&job.theta, value), stderr }
        }
    }
}

/// How a process ended, for a person.
pub(super) fn describe(status: Option<ExitStatus>) -> String {
    status.map_or_else(|| "its exit status is unknown".into(), |status| status.to_string())
}
