//! Commands, one process per call; and what both modes share.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::pool::{Evaluated, Pool, Work};
use super::process::{LOOK, Process, QUICK_LOOK};
use super::protocol::{Answer, Reply, answer, request};
use super::server::{Deaths, Server};
use super::spec::{CommandSpec, Inherit, Mode};
use super::text::one_line;
use super::{Evaluator, Finished, Interrupt};
use crate::error::{Error, Result};
use crate::types::{FailureKind, Job, Outcome};

/// How long the answer of a process that has exited may still be on its way, through a descendant that holds its output.
const LINGER: Duration = Duration::from_secs(1);

/// Evaluates a command, several processes at a time.
///
/// Each process is the head of a process group of its own. Whatever ends it (its answer, its timeout, an interrupt, the
/// drop of the evaluator), the whole group goes with it: first by SIGTERM where it is still at work, then by SIGKILL.
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
        let context = Arc::new(Context { spec, names, interrupt: interrupt.clone(), deaths: Deaths::default() });
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
        Process::spawn(command, input, limit).map(Ok).or_else(|e| {
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

/// One process an evaluation.
struct PerCall {
    worker: usize,
    context: Arc<Context>,
}

/// Why watching a process came to its end.
enum Watched {
    Exited,
    TimedOut,
    TooMuch,
    Interrupted,
}

impl PerCall {
    fn new(worker: usize, context: Arc<Context>) -> Self {
        Self { worker, context }
    }

    fn watch(&self, process: &mut Process, answers_on_stdout: bool) -> Watched {
        let deadline = self.context.deadline();
        let mut lingers_until = None;
        let mut look = QUICK_LOOK;
        loop {
            // Looked at before the pipes are read, so that nothing printed before the exit is missed.
            let exited = process.has_exited();
            // The exit of the process wakes us by closing its pipes, so a long look at open ones costs no time.
            look = if process.pump(look) { QUICK_LOOK } else { (look * 2).min(LOOK) };
            if !process.has_unwritten_input() {
                process.close_input();
            }
            if process.overflowed() {
                return Watched::TooMuch;
            }
            let now = Instant::now();
            if exited {
                // Even after an interrupt: what it computed may have taken hours, and is there to be read.
                let until = *lingers_until.get_or_insert(now + LINGER);
                if !answers_on_stdout || !process.output_is_open() || now >= until {
                    return Watched::Exited;
                }
            } else if self.context.interrupt.is_raised() {
                return Watched::Interrupted;
            } else if deadline.is_some_and(|deadline| now >= deadline) {
                return Watched::TimedOut;
            }
        }
    }

    fn judge(&self, job: &Job, mut process: Process, out: Option<&Path>) -> Attempt {
        let status = process.kill();
        process.drain();
        let stderr = process.tail.text();
        match status {
            Some(status) if status.success() => {}
            Some(status) if status.code().is_some() => {
                return failed(FailureKind::Exit, describe(Some(status)), stderr);
            }
            Some(status) => return failed(FailureKind::Signal, describe(Some(status)), stderr),
            None => return failed(FailureKind::LostWorker, describe(None), stderr),
        }
        let printed = match out {
            None => std::mem::take(&mut process.output),
            Some(path) => match read_answer(path, self.context.spec.max_output) {
                Ok(printed) => printed,
                Err(reason) => return failed(FailureKind::Parse, format!("no answer in {{out}}: {reason}"), stderr),
            },
        };
        if printed.len() > self.context.spec.max_output {
            return self.context.too_much(stderr);
        }
        answered(job, answer(&printed), stderr)
    }
}

impl Attempts for PerCall {
    fn attempt(&mut self, job: &Job, question: &str) -> Result<Attempt> {
        let spec = &self.context.spec;
        let files = Files::new(spec, question)?;
        let (asks_on_stdin, answers_on_stdout) = (!spec.has_placeholder("{in}"), !spec.has_placeholder("{out}"));
        let mut command = self.context.command(self.worker, |argument| files.fill_in(argument));
        command.env("BATCHQUAD_ID", job.id.to_string()).env("BATCHQUAD_SEED", job.seed.to_string());
        let limit = answers_on_stdout.then_some(spec.max_output);
        let mut process = match self.context.spawn(command, asks_on_stdin, limit)? {
            Ok(process) => process,
            Err(attempt) => return Ok(attempt),
        };
        process.feed(format!("{question}\n").as_bytes());
        Ok(match self.watch(&mut process, answers_on_stdout) {
            Watched::Exited => self.judge(job, process, files.out().filter(|_| !answers_on_stdout)),
            Watched::TimedOut => {
                process.end(spec.grace, &self.context.interrupt);
                process.drain();
                self.context.timed_out(process.tail.text())
            }
            Watched::TooMuch => {
                process.kill();
                self.context.too_much(process.tail.text())
            }
            Watched::Interrupted => {
                process.end(spec.grace, &self.context.interrupt);
                Attempt::Interrupted
            }
        })
    }
}

/// The private directory with the files of one call, if it asked for them; removed when dropped.
struct Files(Option<(tempfile::TempDir, [String; 2])>);

impl Files {
    fn new(spec: &CommandSpec, question: &str) -> Result<Self> {
        if !spec.has_placeholder("{in}") && !spec.has_placeholder("{out}") {
            return Ok(Self(None));
        }
        let refuse = |reason: String| Error::invalid("directory for temporary files", std::env::temp_dir(), reason);
        let dir = tempfile::Builder::new()
            .prefix("batchquad-")
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir()
            .map_err(|e| refuse(format!("one that can be written to: {e}")))?;
        let path = |name| dir.path().join(name).into_os_string().into_string().ok();
        let paths = path("in.json").zip(path("out.json"));
        // In a script, the shell would read the path as code.
        let plain = |path: &str| path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-+".contains(&b));
        let (input, output) = paths.filter(|(input, _)| !spec.shell || plain(input)).ok_or_else(|| {
            refuse("a path in UTF-8, and with shell = true only of ASCII letters, digits and /._-+ (set TMPDIR)".into())
        })?;
        std::fs::write(&input, format!("{question}\n")).map_err(|e| refuse(format!("one with space left: {e}")))?;
        Ok(Self(Some((dir, [input, output]))))
    }

    fn fill_in(&self, argument: &str) -> String {
        match &self.0 {
            Some((_, [input, output])) => argument.replace("{in}", input).replace("{out}", output),
            None => argument.to_owned(),
        }
    }

    /// Where the answer is expected; only meaningful when `{out}` was asked for.
    fn out(&self) -> Option<&Path> {
        self.0.as_ref().map(|(_, [_, output])| Path::new(output))
    }
}

/// At most one byte more than `limit` of a regular file; opening anything else (a named pipe) could block.
fn read_answer(path: &Path, limit: usize) -> Result<Vec<u8>, String> {
    let metadata = std::fs::metadata(path).map_err(|e| e.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a regular file".into());
    }
    let mut printed = Vec::new();
    let file = std::fs::File::open(path).map_err(|e| e.to_string())?;
    file.take((limit as u64).saturating_add(1)).read_to_end(&mut printed).map_err(|e| e.to_string())?;
    Ok(printed)
}
