//! One attempt at a job by a process: what the two modes, one process per call and servers, share.

use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::{Duration, Instant};

use super::guardian::Guardian;
use super::placeholders::Template;
use super::process::{LOOK, Process};
use super::protocol::{Answer, Reply};
use super::spec::{CommandSpec, Inherit};
use super::text::one_line;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::types::{FailureKind, Job, Outcome};

/// What all workers of an evaluator know.
pub(super) struct Context {
    pub spec: CommandSpec,
    pub names: Vec<String>,
    /// The arguments of the command.
    pub arguments: Vec<Template>,
    pub interrupt: Interrupt,
    pub deaths: Deaths,
    pub guardian: Arc<Guardian>,
}

/// How often servers ended without ever having answered, over all workers.
///
/// Once one has answered, the command is known to work, and an end is the fault of a point or of the machine.
#[derive(Default)]
pub(super) struct Deaths {
    pub count: AtomicU32,
    pub answered: AtomicBool,
}

/// What came of one attempt at a job.
pub(super) enum Tried {
    Done { outcome: Outcome, sd: Option<f64>, stderr: String },
    Interrupted,
}

/// One way of carrying out an attempt.
pub(super) trait Attempts: Send + 'static {
    fn attempt(&mut self, job: &Job, question: &str) -> Result<Tried>;

    fn rest_every(&self) -> Option<Duration> {
        None
    }

    fn rest(&mut self) {}
}

impl Context {
    /// The command with its environment; `fill_in` makes an argument of each template.
    pub fn command(&self, worker: usize, fill_in: impl Fn(&Template) -> String) -> Command {
        let spec = &self.spec;
        let mut command = if spec.shell {
            let mut shell = Command::new("/bin/sh");
            shell.arg("-c");
            shell
        } else {
            Command::new(&spec.command[0])
        };
        command.args(self.arguments.iter().map(fill_in));
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
    pub fn spawn(&self, mut command: Command, input: bool, limit: Option<usize>) -> Result<Result<Process, Tried>> {
        use rustix::io::Errno;
        self.guardian.prepare(&mut command);
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
    pub fn timed_out(&self, stderr: String) -> Tried {
        let seconds = self.spec.timeout.unwrap_or_default().as_secs_f64();
        failed(FailureKind::Timeout, format!("no answer within {seconds} s"), stderr)
    }

    /// The failure of an attempt that printed more than is allowed.
    pub fn too_much(&self, stderr: String) -> Tried {
        failed(FailureKind::Parse, format!("printed more than {} bytes", self.spec.max_output), stderr)
    }

    /// Whether the whole pause passed without an interrupt.
    pub fn pause(&self, pause: Duration) -> bool {
        let start = Instant::now();
        while start.elapsed() < pause && !self.interrupt.is_raised() {
            std::thread::sleep(LOOK.min(pause));
        }
        !self.interrupt.is_raised()
    }
}

/// An attempt that failed, with the last words of the process in its message.
pub(super) fn failed(kind: FailureKind, what: String, stderr: String) -> Tried {
    let message = if stderr.is_empty() { what } else { format!("{what}; stderr: {}", one_line(&stderr)) };
    Tried::Done { outcome: Outcome::Failed { kind, message }, sd: None, stderr }
}

/// An attempt that was answered.
pub(super) fn answered(job: &Job, said: Result<Answer>, stderr: String) -> Tried {
    match said {
        Err(error) => failed(FailureKind::Parse, error.to_string(), stderr),
        Ok(Answer { id: Some(id), .. }) if id != job.id => {
            failed(FailureKind::Parse, format!("answered for job {id}, expected job {}", job.id), stderr)
        }
        Ok(Answer { reply: Reply::Failed(reason), .. }) => failed(FailureKind::Exception, reason, stderr),
        Ok(Answer { reply: Reply::LogLikelihood(value), sd, .. }) => {
            let (outcome, sd) = Outcome::from_log_likelihood(&job.theta, value).with_sd(&job.theta, sd);
            Tried::Done { outcome, sd, stderr }
        }
    }
}

/// How a process ended, for a person.
pub(super) fn describe(status: Option<ExitStatus>) -> String {
    status.map_or_else(|| "its exit status is unknown".into(), |status| status.to_string())
}
