//! `watch`: a run while it is running. Only reads, never locks.

use std::{
    io::IsTerminal,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::Result;
use batchquad::{Engine, evaluate::clean, journal::Replay, run::peek};

use crate::{
    commands::report::open,
    exit::Exit,
    output::{note, print},
    screen::{Screen, signals},
    serve::Server,
    store::state,
    view::{Line, Seen, Weight},
};

/// How often the store is looked at.
const EVERY: Duration = Duration::from_millis(500);
/// The size of a frame where there is no terminal.
const FRAME: (usize, usize) = (100, 40);

/// Serves a page that follows the run, until the user leaves.
pub fn page(store: &Path, show: bool) -> Result<Exit> {
    let server = Server::new(store)?;
    let stopped = signals()?;
    print(&server.address())?;
    note("the page is for this machine alone; Ctrl-C ends it, and the run goes on");
    if show {
        open(Path::new(&server.address()));
    }
    server.serve(&stopped);
    Ok(Exit::Done)
}

pub fn watch(store: &Path, once: bool) -> Result<Exit> {
    let mut look = Look::new(store)?;
    if once || !std::io::stdout().is_terminal() {
        show(&look.lines(FRAME.0, FRAME.1))?;
        return Ok(Exit::Done);
    }
    let screen = Screen::open()?;
    // A run that is over has nothing more to show; one that is merely not running may be resumed.
    let ended = loop {
        let (width, height) = Screen::size();
        let mut lines = look.lines(width, height.saturating_sub(2));
        let hint =
            if look.running() { "q to leave; the run goes on" } else { "q to leave; nobody is working on this run" };
        lines.push(Line { text: hint.chars().take(width).collect(), weight: Weight::Faint });
        screen.show(&lines)?;
        if look.over() {
            break true;
        }
        if screen.wait(EVERY) {
            break false;
        }
        look.again()?;
    };
    drop(screen);
    // What was last seen stays on the terminal.
    let (width, height) = Screen::size();
    show(&look.lines(width, height.saturating_sub(2)))?;
    if ended {
        print(&format!("the run has ended; `batchquad result {}` has the rest", clean(&store.display().to_string())))?;
    }
    Ok(Exit::Done)
}

fn show(lines: &[Line]) -> Result<()> {
    print(&lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n"))
}

/// A store as last read.
struct Look<'a> {
    dir: &'a Path,
    engine: Engine,
    replay: Replay,
    size: Option<u64>,
    seen_running: bool,
}

impl<'a> Look<'a> {
    fn new(dir: &'a Path) -> Result<Self> {
        // The size first: what arrives while the store is read is found by the next look.
        let size = size(dir);
        let (engine, replay) = peek(dir)?;
        let mut look = Self { dir, engine, replay, size, seen_running: false };
        look.seen_running = look.running();
        Ok(look)
    }

    /// Reads the store again if it has grown.
    fn again(&mut self) -> Result<()> {
        let running = self.running();
        // One more look after the writer has gone: its last record may be newer than the last look.
        if size(self.dir) != self.size || (self.seen_running && !running) {
            let size = size(self.dir);
            (self.engine, self.replay) = peek(self.dir)?;
            self.size = size;
        }
        self.seen_running |= running;
        Ok(())
    }

    fn running(&self) -> bool {
        state(&self.engine, self.dir).0 == "running"
    }

    /// Whether there is nothing more to wait for.
    fn over(&self) -> bool {
        match state(&self.engine, self.dir).0 {
            "running" => false,
            "unfinished" => self.seen_running,
            _ => true,
        }
    }

    fn lines(&self, width: usize, height: usize) -> Vec<Line> {
        let (word, writer) = state(&self.engine, self.dir);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_millis() as u64);
        let name = self.dir.display().to_string();
        let seen = Seen { engine: &self.engine, replay: &self.replay, name, state: word, writer: writer.as_ref(), now };
        seen.lines(width, height)
    }
}

fn size(dir: &Path) -> Option<u64> {
    std::fs::metadata(dir.join("journal.jsonl")).ok().map(|meta| meta.len())
}
