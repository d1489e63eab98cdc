//! Somebody who ends the commands when we cannot: a process of a few kilobytes that waits for our end.
//!
//! A driver that is killed (`kill -9`, out of memory) cannot end the processes it started. The guardian is a small shell script
//! in a group of its own that reads from a pipe whose other end only we have. As long as we live it is told which process groups
//! are at work; when the pipe ends, so have we, and it ends those that are left.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::ioctl_fionbio;
use rustix::process::Pid;

/// Reads `+ group` and `- group`; at the end of input asks what is left to end, and a moment later kills it.
const SCRIPT: &str = r#"trap '' HUP INT TERM QUIT USR1 USR2 XCPU ALRM
live=' '
while read -r word group; do
  case $word in
    +) live="$live$group " ;;
    -) live="${live%% $group *} ${live#* $group }" ;;
  esac
done
[ "$live" = ' ' ] && exit
for group in $live; do kill -s TERM -- "-$group"; done
sleep "$1"
for group in $live; do kill -s KILL -- "-$group"; done
"#;

/// The longest time between asking and killing, however much grace the command has: nobody is left to wait for it.
const MOMENT: Duration = Duration::from_secs(5);

/// How long the guardian may take to end once it is told.
const FAREWELL: Duration = Duration::from_millis(500);

/// Started when the first process is. Where it cannot be started, commands are not guarded and work all the same.
pub(super) struct Guardian {
    grace: Duration,
    state: Mutex<State>,
}

enum State {
    Unborn,
    Awake(Child, ChildStdin),
    Gone,
}

impl Guardian {
    pub fn new(grace: Duration) -> Self {
        Self { grace: grace.min(MOMENT), state: Mutex::new(State::Unborn) }
    }

    /// Ends this process group, should we be killed.
    pub fn watch(&self, group: Pid) {
        let mut state = self.state();
        if matches!(*state, State::Unborn) {
            *state = self.start().unwrap_or(State::Gone);
        }
        tell(&mut state, '+', group);
    }

    /// Leaves it alone from now on. To be called before the head of the group is reaped: afterwards the number may be somebody
    /// else's.
    pub fn release(&self, group: Pid) {
        tell(&mut self.state(), '-', group);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self) -> Option<State> {
        let grace = format!("{:.3}", self.grace.as_secs_f64());
        let mut child = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "batchquad-guardian", &grace])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .ok()?;
        let pipe = child.stdin.take()?;
        // So that a guardian that was stopped cannot stop us.
        ioctl_fionbio(&pipe, true).ok()?;
        Some(State::Awake(child, pipe))
    }
}

fn tell(state: &mut State, word: char, group: Pid) {
    let State::Awake(_, pipe) = state else { return };
    let mut line = String::new();
    let _ = writeln!(line, "{word} {}", group.as_raw_nonzero());
    // A line that is not taken whole would be misread: better no guardian.
    if !pipe.write(line.as_bytes()).is_ok_and(|written| written == line.len()) {
        dismiss(std::mem::replace(state, State::Gone));
    }
}

/// Ends the guardian and, with it, what it was told to watch. One that does not end is left to the system.
fn dismiss(state: State) {
    let State::Awake(mut child, pipe) = state else { return };
    drop(pipe);
    let begin = Instant::now();
    while begin.elapsed() < FAREWELL && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        dismiss(std::mem::replace(&mut *self.state(), State::Gone));
    }
}
