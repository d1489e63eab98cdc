//! Commands, one process per call.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::attempt::{Attempts, Context, Tried, answered, describe, failed};
use super::placeholders::{Piece, Template, fill_in};
use super::process::{LOOK, Process, QUICK_LOOK};
use super::protocol::answer;
use super::spec::CommandSpec;
use crate::error::{Error, Result};
use crate::types::{FailureKind, Job};

/// How long the answer of a process that has exited may still be on its way, through a descendant that holds its output.
const LINGER: Duration = Duration::from_secs(1);

/// One process per evaluation.
pub(super) struct PerCall {
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
    pub fn new(worker: usize, context: Arc<Context>) -> Self {
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

    fn judge(&self, job: &Job, mut process: Process, out: Option<&Path>) -> Tried {
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
    fn attempt(&mut self, job: &Job, question: &str) -> Result<Tried> {
        let spec = &self.context.spec;
        let has = |wanted: &Piece| self.context.arguments.iter().flatten().any(|piece| piece == wanted);
        let (asks_on_stdin, answers_on_stdout) = (!has(&Piece::In), !has(&Piece::Out));
        let files = if asks_on_stdin && answers_on_stdout { Files(None) } else { Files::new(spec, question)? };
        let mut command = self.context.command(self.worker, |template| files.fill_in(template, job));
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
                Tried::Interrupted
            }
        })
    }
}

/// The private directory with the files of one call, if it asked for them; removed when dropped.
struct Files(Option<(tempfile::TempDir, [String; 2])>);

impl Files {
    fn new(spec: &CommandSpec, question: &str) -> Result<Self> {
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

    fn fill_in(&self, template: &Template, job: &Job) -> String {
        fill_in(template, job, self.0.as_ref().map(|(_, paths)| paths))
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
