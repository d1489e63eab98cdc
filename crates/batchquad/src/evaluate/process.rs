//! One process of the user's, the head of a process group, with pipes that are never waited for without a limit.
//!
//! All three pipes are served by one thread with `poll`, so a process that closes its input, fills its error pipe or
//! hands its output to a descendant cannot block anybody. The process is only *looked at* when it exits (`WNOWAIT`): as
//! long as it has not been reaped, its number, and with it the number of the group, cannot be given to a stranger, so
//! the group can be signalled without risk.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::guardian::Guardian;
use super::text::Tail;
use crate::interrupt::Interrupt;

/// How long a look at the pipes lasts when nothing happens; the delay with which exits and interrupts can be noticed.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// How long a killed process may take to go. A longer time means a system call that no signal ends (a dead network disk).
const DYING: Duration = Duration::from_secs(2);

/// The first look at a process that is about to exit; doubled until it reaches [`LOOK`].
pub(super) const QUICK_LOOK: Duration = Duration::from_millis(1);

const CHUNK: usize = 64 * 1024;

/// A running process. Dropping it kills its group.
pub(super) struct Process {
    child: Child,
    group: Pid,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// What is still to be written to standard input.
    input: Vec<u8>,
    /// What was read from standard output and not taken yet.
    pub output: Vec<u8>,
    /// The longest `output` before it counts as too much; `None` discards it.
    limit: Option<usize>,
    pub tail: Tail,
    reaped: bool,
    guardian: Option<Arc<Guardian>>,
}

impl Process {
    /// Starts `command` as the head of a new process group. With `input`, standard input is a pipe, else empty; up to
    /// `limit` bytes of standard output are kept, or none.
    pub fn spawn(mut command: Command, input: bool, limit: Option<usize>) -> std::io::Result<Self> {
        command.process_group(0).stdin(if input { Stdio::piped() } else { Stdio::null() });
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let group = Pid::from_child(&child);
        let tail = Tail::default();
        let (input, output, reaped) = (Vec::new(), Vec::new(), false);
        let process = Self { child, group, stdin, stdout, stderr, input, output, limit, tail, reaped, guardian: None };
        process.stdin.as_ref().map_or(Ok(()), |pipe| ioctl_fionbio(pipe, true))?;
        process.stdout.as_ref().map_or(Ok(()), |pipe| ioctl_fionbio(pipe, true))?;
        process.stderr.as_ref().map_or(Ok(()), |pipe| ioctl_fionbio(pipe, true))?;
        Ok(process)
    }

    /// Has the process ended by `guardian` should we be killed.
    pub fn guarded_by(mut self, guardian: Arc<Guardian>) -> Self {
        guardian.watch(self.group);
        self.guardian = Some(guardian);
        self
    }

    /// Queues bytes for standard input.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Closes standard input, dropping what was not written.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    pub fn output_is_open(&self) -> bool {
        self.stdout.is_some()
    }

    pub fn has_unwritten_input(&self) -> bool {
        self.stdin.is_some() && !self.input.is_empty()
    }

    /// Whether more was printed than is allowed.
    pub fn overflowed(&self) -> bool {
        self.limit.is_some_and(|limit| self.output.len() > limit)
    }

    /// Moves what the pipes hold, waiting up to `patience` for something to move. Returns whether anything was read
    /// or came to its end.
    ///
    /// At most one chunk a pipe: a process that prints for ever must not keep its caller from looking at the clock.
    pub fn pump(&mut self, patience: Duration) -> bool {
        let mut fds = Vec::with_capacity(3);
        if let Some(pipe) = self.stdin.as_ref().filter(|_| !self.input.is_empty()) {
            fds.push(PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::OUT));
        }
        let read_ends = [self.stdout.as_ref().map(AsFd::as_fd), self.stderr.as_ref().map(AsFd::as_fd)];
        fds.extend(read_ends.into_iter().flatten().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        if fds.is_empty() {
            std::thread::sleep(patience);
            return false;
        }
        let patience = Timespec::try_from(patience).unwrap_or_default();
        // An error here can only be an interruption or a lack of memory; the pipes do not block, so trying them is safe.
        let _ = poll(&mut fds, Some(&patience));
        self.write_input();
        let (output, limit, tail) = (&mut self.output, self.limit, &mut self.tail);
        let out = read_chunk(&mut self.stdout, |bytes| {
            if limit.is_some() {
                output.extend_from_slice(bytes);
            }
        });
        let err = read_chunk(&mut self.stderr, |bytes| tail.push(bytes));
        out || err
    }

    /// Reads what is left in the pipes, within reason: a descendant that left the group may still be writing.
    pub fn drain(&mut self) {
        for _ in 0..64 {
            if self.overflowed() || !self.pump(Duration::ZERO) {
                break;
            }
        }
    }

    fn write_input(&mut self) {
        let Some(pipe) = self.stdin.as_mut() else { return };
        while !self.input.is_empty() {
            match pipe.write(&self.input) {
                Ok(written) => drop(self.input.drain(..written)),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                // It does not want to read; whether that was right is for its answer to tell.
                Err(_) => {
                    self.stdin = None;
                    return;
                }
            }
        }
    }

    /// Whether the process (not necessarily its descendants) has ended; it stays unreaped.
    pub fn has_exited(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match self.reaped {
            true => true,
            // ECHILD: somebody else reaped it (a host program that ignores SIGCHLD).
            false => {
                waitid(WaitId::Pid(self.group), look).map_or_else(|e| e != rustix::io::Errno::INTR, |s| s.is_some())
            }
        }
    }

    /// Waits up to `patience` for the exit, discarding output meanwhile; an urgent interrupt ends the wait.
    pub fn wait_for_exit(&mut self, patience: Duration, interrupt: Option<&Interrupt>) -> bool {
        let start = Instant::now();
        let mut look = QUICK_LOOK;
        while !self.has_exited() {
            let left = patience.saturating_sub(start.elapsed());
            if left.is_zero() || interrupt.is_some_and(Interrupt::is_urgent) {
                return false;
            }
            look = if self.pump(look.min(left)) { QUICK_LOOK } else { (look * 2).min(LOOK) };
            self.output.clear();
        }
        true
    }

    /// Ends the whole group: asks (SIGTERM), waits up to `grace`, kills (SIGKILL). What was printed is lost.
    pub fn end(&mut self, grace: Duration, interrupt: &Interrupt) {
        if !interrupt.is_urgent() && !self.has_exited() {
            self.signal(Signal::TERM);
            self.wait_for_exit(grace, Some(interrupt));
        }
        self.kill();
    }

    /// Closes standard input, by which a server knows that there is no more work, and ends what is left after `grace`.
    pub fn retire(&mut self, grace: Duration, interrupt: &Interrupt) {
        self.close_input();
        self.wait_for_exit(grace, Some(interrupt));
        self.end(grace, interrupt);
    }

    /// Kills what is left of the group and reaps the process: its status, if it is known. What a process that had ended by
    /// itself left in the pipes can still be [drained](Self::drain).
    pub fn kill(&mut self) -> Option<ExitStatus> {
        if self.reaped {
            return None;
        }
        self.signal(Signal::KILL);
        if !self.wait_for_exit(DYING, None) {
            return None;
        }
        if let Some(guardian) = self.guardian.take() {
            guardian.release(self.group);
        }
        self.reaped = true;
        self.child.wait().ok()
    }

    fn signal(&self, signal: Signal) {
        if !self.reaped {
            // ESRCH: all gone already. EPERM: the rest changed its user, and is out of reach.
            let _ = kill_process_group(self.group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// One read from a pipe, which is dropped at its end.
fn read_chunk(pipe: &mut Option<impl Read>, keep: impl FnOnce(&[u8])) -> bool {
    let Some(reader) = pipe else { return false };
    let mut chunk = [0; CHUNK];
    match reader.read(&mut chunk) {
        Ok(count) if count > 0 => {
            keep(&chunk[..count]);
            true
        }
        Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => false,
        _ => {
            *pipe = None;
            true
        }
    }
}
