//! How far an experiment is: a bar on a terminal, a line now and then elsewhere.

use std::{
    io::IsTerminal,
    sync::Mutex,
    time::{Duration, Instant},
};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a line is written where there is no terminal.
const EVERY: Duration = Duration::from_secs(15);

/// Shows progress on standard error.
pub struct Progress {
    label: String,
    total: usize,
    begin: Instant,
    bar: Option<ProgressBar>,
    state: Mutex<State>,
}

struct State {
    done: usize,
    made: usize,
    last: Instant,
}

impl Progress {
    /// Of `total` runs, none yet.
    #[must_use]
    pub fn new(label: &str, total: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr_with_hz(5));
            // The template is a constant; if it were wrong, the default style would do.
            if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} {wide_msg}") {
                bar.set_style(style);
            }
            bar.set_prefix(label.to_string());
            bar
        });
        let state = Mutex::new(State { done: 0, made: 0, last: Instant::now() });
        Self { label: label.into(), total, begin: Instant::now(), bar, state }
    }

    /// One more is there; `made` if it was made now rather than found.
    pub fn one(&self, made: bool) {
        let Ok(mut state) = self.state.lock() else { return };
        state.done += 1;
        state.made += usize::from(made);
        let left = self.left(&state);
        if let Some(bar) = &self.bar {
            bar.set_position(state.done as u64);
            bar.set_message(left);
        } else if made && state.last.elapsed() >= EVERY {
            state.last = Instant::now();
            eprintln!("{}: {} of {} runs, {left}", self.label, state.done, self.total);
        }
    }

    /// The time that the rest will take if it is like what was made so far. Runs are made in scattered order, so it is.
    fn left(&self, state: &State) -> String {
        if state.made == 0 {
            return "finding finished runs".into();
        }
        let each = self.begin.elapsed().as_secs_f64() / state.made as f64;
        let left = Duration::from_secs_f64(each * self.total.saturating_sub(state.done) as f64);
        format!("{} left", HumanDuration(left))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
