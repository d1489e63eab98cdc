//! Somebody who ends the commands when we cannot: a process of a few kilobytes that waits for our end.
//!
//! A driver that is killed (`kill -9`, out of memory) cannot end the processes it started. The guardian is a small shell script
//! in a group of its own that reads from a pipe whose other end only we have. As long as we live it is told which process groups
//! are at work; when the pipe ends without a farewell, so have we, and it ends those that are left.
//!
//! A driver that is killed between starting a process and saying so has told nobody. Every process therefore carries a token in
//! its environment, and where there is a `/proc` the guardian looks for it there. It leaves alone what has a session of its own:
//! such a process was meant to stay.

use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustix::io::ioctl_fionbio;
use rustix::process::Pid;

/// The environment variable that holds the token.
const TOKEN: &str = "BATCHQUAD_GUARDIAN";

/// Reads `+ group`, `- group` and `.` for the farewell. At the end of input without one it asks what is left to end, and a moment
/// later kills it.
const SCRIPT: &str = r#"trap '' HUP INT TERM QUIT USR1 USR2 XCPU ALRM
live=' '
grace=$1
token=$2
while read -r word group; do
  case $word in
    +) live="$live$group " ;;
    -) live="${live%% $group *} ${live#* $group }" ;;
    .) exit ;;
  esac
done
place() { read -r line 2>/dev/null <"/proc/$1/stat" && set -- ${line##*) } && echo "$3 $4"; }
here=$(place $$)
here=${here#* }
end() {
  for group in $live; do kill -s "$1" -- "-$group"; done
  for environ in $(grep -lsF "$token" /proc/[0-9]*/environ); do
    process=${environ#/proc/}
    found=$(place "${process%/environ}") || continue
    [ "${found#* }" = "$here" ] && kill -s "$1" -- "-${found% *}"
  done
}
end TERM
sleep "$grace"
end KILL
"#;

/// The longest time between asking and killing, however much grace the command has: nobody is left to wait for it.
const MOMENT: Duration = Duration::from_secs(5);

/// How long the guardian may take to end once it is told.
const FAREWELL: Duration = Duration::from_millis(500);

/// Started when the first process is. Where it cannot be started, commands are not guarded and work all the same.
pub(super) struct Guardian {
    grace: Duration,
    token: String,
    state: Mutex<State>,
}

enum State {
    Unborn,
    Awake(Child, ChildStdin),
    Gone,
}

impl Guardian {
    pub fn new(grace: Duration) -> Self {
        static GUARDIANS: AtomicU64 = AtomicU64::new(0);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let count = GUARDIANS.fetch_add(1, Ordering::Relaxed);
        let token = format!("{}.{}.{count}", std::process::id(), since.as_nanos());
        Self { grace: grace.min(MOMENT), token, state: Mutex::new(State::Unborn) }
    }

    /// Marks a command that will be started as one to end, should we be killed. Wakes the guardian if it is the first.
    pub fn prepare(&self, command: &mut Command) {
        let mut state = self.state();
        if matches!(*state, State::Unborn) {
            *state = self.start().unwrap_or(State::Gone);
        }
        command.env(TOKEN, &self.token);
    }

    /// Ends this process group, should we be killed.
    pub fn watch(&self, group: Pid) {
        tell(&mut self.state(), '+', group);
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
            .args(["-c", SCRIPT, "batchquad-guardian", &grace, &format!("{TOKEN}={}", self.token)])
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
    let line = format!("{word} {}\n", group.as_raw_nonzero());
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
        if let State::Awake(_, pipe) = &mut *self.state() {
            let _ = pipe.write(b".\n");
        }
        dismiss(std::mem::replace(&mut *self.state(), State::Gone));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(guardian: &Guardian, head: &[&str]) -> Child {
        let mut command = Command::new(head[0]);
        command.args(&head[1..]).process_group(0);
        guardian.prepare(&mut command);
        command.spawn().unwrap()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_nobody_was_told_of_ends_and_a_session_of_its_own_goes_on() {
        let guardian = Guardian::new(Duration::from_millis(100));
        let dir = tempfile::tempdir().unwrap();
        let (begun, done) = (dir.path().join("begun"), dir.path().join("done"));
        let appears = |file: &std::path::Path| {
            let begin = Instant::now();
            while !file.exists() {
                assert!(begin.elapsed() < Duration::from_secs(60), "{file:?} did not appear");
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        let daemon = format!("touch {}; sleep 1; touch {}", begun.display(), done.display());
        sleeper(&guardian, &["setsid", "--fork", "sh", "-c", &daemon]).wait().unwrap();
        // Now it has a session of its own.
        appears(&begun);
        let mut untold = sleeper(&guardian, &["sleep", "600"]);
        // As when we are killed: the pipe ends without a farewell.
        dismiss(std::mem::replace(&mut *guardian.state(), State::Gone));
        assert!(!untold.wait().unwrap().success());
        appears(&done);
    }

    #[test]
    fn a_farewell_ends_nothing() {
        let guardian = Guardian::new(Duration::ZERO);
        let mut kept = sleeper(&guardian, &["sleep", "0.5"]);
        guardian.watch(Pid::from_child(&kept));
        drop(guardian);
        assert!(kept.wait().unwrap().success());
    }
}
