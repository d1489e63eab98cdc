//! Commands as servers: long-lived processes that read a question a line and write an answer a line.

use std::collections::BTreeSet;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::attempt::{Attempts, Context, Tried, answered, describe, failed};
use super::placeholders::fill_in;
use super::process::{LOOK, Process};
use super::protocol::answer;
use super::text::{excerpt, one_line};
use crate::error::{Error, Result};
use crate::types::{FailureKind, Job, JobId};

/// A worker with a server that is started when it is first needed, and again when it was lost.
///
/// An answer repeats the id of its question, because nothing else says which question a line answers. A server whose stream
/// cannot be trusted (it printed something that is not an answer, an answer without an id, or one nobody asked for) is ended.
pub(super) struct Server {
    worker: usize,
    context: Arc<Context>,
    running: Option<Running>,
}

struct Running {
    process: Process,
    /// The jobs it was given, whose answers may come late or twice.
    asked: BTreeSet<JobId>,
}

impl Server {
    pub fn new(worker: usize, context: Arc<Context>) -> Self {
        Self { worker, context, running: None }
    }

    /// A server that is ready for a question: alive, and with nothing unread from it.
    fn ready(&mut self) -> Result<Result<Running, Tried>> {
        if let Some(mut running) = self.running.take() {
            running.process.pump(Duration::ZERO);
            running.discard_late_answers();
            let lost = running.process.has_exited() || !running.process.output_is_open();
            if !lost && running.process.output.is_empty() {
                running.process.tail.clear();
                return Ok(Ok(running));
            }
            running.process.end(self.context.spec.grace, &self.context.interrupt);
        }
        // Without values, which a server does not have in its arguments, every job gives the same.
        let nobody = Job { id: JobId(0), theta: Vec::new(), seed: 0 };
        let command = self.context.command(self.worker, |template| fill_in(template, &nobody, None));
        let spawned = self.context.spawn(command, true, Some(self.context.spec.max_output))?;
        Ok(spawned.map(|process| Running { process, asked: BTreeSet::new() }))
    }

    /// The line with the answer to `job`, or the attempt that ended without one.
    fn converse(&self, running: &mut Running, job: &Job, question: &str) -> Result<Tried> {
        let (context, grace) = (&self.context, self.context.spec.grace);
        let deadline = context.deadline();
        let process = &mut running.process;
        process.feed(format!("{question}\n").as_bytes());
        loop {
            let exited = process.has_exited();
            let moved = process.pump(LOOK);
            while let Some(line) = take_line(&mut process.output) {
                let said = answer(&line);
                if said.as_ref().is_ok_and(|a| a.id.is_some_and(|id| id != job.id && running.asked.contains(&id))) {
                    continue;
                }
                context.deaths.answered.store(true, Ordering::SeqCst);
                // A line that does not name its job may be a second answer to the last one: there is no telling.
                if said.as_ref().is_ok_and(|answer| answer.id.is_none()) {
                    process.kill();
                    let what = format!(
                        "answered {} without an id, expected {{\"id\": {}, …}}: a server repeats the id of the question",
                        excerpt(&line),
                        job.id
                    );
                    return Ok(failed(FailureKind::Parse, what, process.tail.text()));
                }
                return Ok(answered(job, said, process.tail.text()));
            }
            if process.overflowed() {
                process.kill();
                return Ok(context.too_much(process.tail.text()));
            }
            if (exited && !moved) || !process.output_is_open() {
                let status = end_of(process, context);
                return self.lost(running, status);
            }
            if context.interrupt.is_raised() {
                process.end(grace, &context.interrupt);
                return Ok(Tried::Interrupted);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                process.end(grace, &context.interrupt);
                process.drain();
                return Ok(context.timed_out(process.tail.text()));
            }
        }
    }

    /// The failure of a job whose server is gone, or the error that servers never get as far as an answer.
    fn lost(&self, running: &mut Running, status: Option<ExitStatus>) -> Result<Tried> {
        running.process.drain();
        let stderr = running.process.tail.text();
        let end = describe(status);
        if !self.context.deaths.answered.load(Ordering::SeqCst) {
            let count = 1 + self.context.deaths.count.fetch_add(1, Ordering::SeqCst);
            // Four jobs' worth: enough that a few points that crash it cannot be mistaken for a server that cannot run.
            if count >= self.context.spec.retries.saturating_add(1).saturating_mul(4) {
                let said = if stderr.is_empty() { String::new() } else { format!("; stderr: {}", one_line(&stderr)) };
                let expected = format!("a server that answers; it ended {count} times before any answer ({end}{said})");
                return Err(Error::invalid("command", &self.context.spec.command, expected));
            }
        }
        Ok(failed(FailureKind::LostWorker, format!("the server ended before it answered ({end})"), stderr))
    }
}

impl Attempts for Server {
    fn attempt(&mut self, job: &Job, question: &str) -> Result<Tried> {
        let mut running = match self.ready()? {
            Ok(running) => running,
            Err(attempt) => return Ok(attempt),
        };
        let attempt = self.converse(&mut running, job, question)?;
        running.asked.insert(job.id);
        if keeps_its_server(&attempt) {
            self.running = Some(running);
        } else {
            running.process.end(self.context.spec.grace, &self.context.interrupt);
        }
        Ok(attempt)
    }

    fn rest_every(&self) -> Option<Duration> {
        self.running.as_ref().map(|_| LOOK)
    }

    /// Keeps the pipes of an idle server from filling up, and ends it after an interrupt.
    fn rest(&mut self) {
        let Some(running) = &mut self.running else { return };
        if self.context.interrupt.is_raised() {
            running.process.retire(self.context.spec.grace, &self.context.interrupt);
            self.running = None;
        } else if !running.process.overflowed() {
            running.process.drain();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(running) = &mut self.running {
            running.process.retire(self.context.spec.grace, &self.context.interrupt);
        }
    }
}

impl Running {
    fn discard_late_answers(&mut self) {
        while let Some(line) = take_line(&mut self.process.output) {
            let late = answer(&line).is_ok_and(|answer| answer.id.is_some_and(|id| self.asked.contains(&id)));
            if !late {
                self.process.output = line;
                break;
            }
        }
    }
}

/// Whether the server can be asked again: it gave a whole answer in the agreed form.
fn keeps_its_server(attempt: &Tried) -> bool {
    use crate::types::Outcome;
    match attempt {
        Tried::Interrupted => false,
        Tried::Done { outcome: Outcome::Value(_), .. } => true,
        Tried::Done { outcome: Outcome::Failed { kind, .. }, .. } => {
            matches!(kind, FailureKind::Nan | FailureKind::Exception)
        }
    }
}

/// The status of a server that closed its output, which is given its grace to exit if it has not done so.
fn end_of(process: &mut Process, context: &Context) -> Option<ExitStatus> {
    process.close_input();
    process.wait_for_exit(context.spec.grace.min(Duration::from_secs(1)), Some(&context.interrupt));
    process.kill()
}

/// The first whole line of `output`, without its end.
fn take_line(output: &mut Vec<u8>) -> Option<Vec<u8>> {
    let end = output.iter().position(|&byte| byte == b'\n')?;
    let rest = output.split_off(end + 1);
    let mut line = std::mem::replace(output, rest);
    line.pop();
    Some(line)
}
