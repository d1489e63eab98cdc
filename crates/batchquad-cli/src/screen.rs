//! A terminal that shows frames, and is put back as it was.

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Result;

use crate::view::{Line, Weight};

/// The terminal while frames are shown.
pub struct Screen {
    stopped: Arc<AtomicBool>,
    colour: bool,
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

impl Screen {
    /// Takes over the terminal: another page, no cursor, keys as they are pressed.
    pub fn open() -> Result<Self> {
        let screen = Self {
            stopped: signals()?,
            colour: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            #[cfg(unix)]
            before: keys_at_once(),
        };
        write("\x1b[?1049h\x1b[?25l")?;
        Ok(screen)
    }

    /// Columns and rows.
    pub fn size() -> (usize, usize) {
        #[cfg(unix)]
        if let Ok(size) = rustix::termios::tcgetwinsize(rustix::stdio::stdout())
            && size.ws_col > 0
            && size.ws_row > 0
        {
            return (usize::from(size.ws_col), usize::from(size.ws_row));
        }
        (80, 24)
    }

    /// Shows a frame in place of the one before.
    pub fn show(&self, lines: &[Line]) -> Result<()> {
        let mut text = String::from("\x1b[H");
        for line in lines {
            let (on, off) = match line.weight {
                Weight::Plain => ("", ""),
                Weight::Strong => ("\x1b[1m", "\x1b[0m"),
                Weight::Faint if self.colour => ("\x1b[2m", "\x1b[0m"),
                Weight::Alarm if self.colour => ("\x1b[31m", "\x1b[0m"),
                Weight::Alarm => ("\x1b[1m", "\x1b[0m"),
                Weight::Faint => ("", ""),
            };
            text.push_str(&format!("{on}{}{off}\x1b[K\r\n", line.text));
        }
        text.push_str("\x1b[J");
        write(&text)
    }

    /// Waits this long; true when the user wants to leave before that.
    pub fn wait(&self, time: Duration) -> bool {
        if self.stopped.load(Ordering::SeqCst) {
            return true;
        }
        #[cfg(unix)]
        if self.before.is_some() {
            return key(time) || self.stopped.load(Ordering::SeqCst);
        }
        std::thread::sleep(time);
        self.stopped.load(Ordering::SeqCst)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that was closed need not be put right.
        let _ = write("\x1b[?25h\x1b[?1049l");
        #[cfg(unix)]
        if let Some(before) = &self.before {
            let _ = rustix::termios::tcsetattr(rustix::stdio::stdin(), rustix::termios::OptionalActions::Now, before);
        }
    }
}

fn write(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// A flag that SIGINT and SIGTERM raise, so that the terminal can be put back first.
pub fn signals() -> Result<Arc<AtomicBool>> {
    let stopped = Arc::new(AtomicBool::new(false));
    #[cfg(unix)]
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stopped))?;
    }
    Ok(stopped)
}

/// Lets keys arrive without a return and without being shown; what was before, unless standard input is not a terminal.
#[cfg(unix)]
fn keys_at_once() -> Option<rustix::termios::Termios> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let stdin = rustix::stdio::stdin();
    let before = tcgetattr(stdin).ok()?;
    let mut now = before.clone();
    // Ctrl-C comes as a key; Ctrl-Z would leave the terminal as it is now.
    now.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
    tcsetattr(stdin, OptionalActions::Now, &now).ok()?;
    Some(before)
}

/// Whether a key to leave is pressed within a time.
#[cfg(unix)]
fn key(time: Duration) -> bool {
    use rustix::{
        event::{PollFd, PollFlags, Timespec, poll},
        io::read,
    };
    let stdin = rustix::stdio::stdin();
    let timeout = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut waiting, Some(&timeout)) {
        Ok(n) if n > 0 => {
            let mut bytes = [0u8; 64];
            // The end of the input, or a broken input, counts as a key: nobody is there.
            read(stdin, &mut bytes)
                .map_or(true, |n| n == 0 || bytes[..n].iter().any(|b| matches!(b, b'q' | b'Q' | 3 | 4)))
        }
        // A signal has interrupted the wait; the flag tells which.
        _ => false,
    }
}
