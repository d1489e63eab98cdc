//! How far a run is: a bar on a terminal, one line per minute elsewhere.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use batchquad::{
    Engine,
    run::{Outlook, Run},
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{duration, note, plus_minus};

/// How often a line is written where there is no terminal.
const EVERY: Duration = Duration::from_secs(60);

/// Shows progress on standard error.
pub struct Display {
    shown: Shown,
    started: Instant,
    done_before: usize,
    /// Whether the user has been told that the budget will not do.
    warned: bool,
}

enum Shown {
    Nothing,
    Lines { last: Instant },
    Bar(ProgressBar),
}

impl Display {
    pub fn new(engine: &Engine, quiet: bool) -> Self {
        let shown = if quiet {
            Shown::Nothing
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(
                Some(engine.settings().most_evaluations() as u64),
                ProgressDrawTarget::stderr_with_hz(8),
            );
            // The template is a constant; if it were wrong, the default style would do.
            if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len} {wide_msg}") {
                bar.set_style(style);
            }
            Shown::Bar(bar)
        } else {
            Shown::Lines { last: Instant::now() }
        };
        Self { shown, started: Instant::now(), done_before: answered(engine), warned: false }
    }

    /// Shows the state, if it is time to.
    pub fn update(&mut self, run: &Run<'_>) {
        let due = match &mut self.shown {
            Shown::Nothing => false,
            Shown::Bar(_) => true,
            Shown::Lines { last } if last.elapsed() >= EVERY => {
                *last = Instant::now();
                true
            }
            Shown::Lines { .. } => false,
        };
        self.warn(run.engine());
        if !due {
            return;
        }
        let text = self.describe(run);
        match &self.shown {
            Shown::Bar(bar) => {
                bar.set_position(answered(run.engine()) as u64);
                bar.set_message(text);
            }
            _ => note(&format!(
                "{} of {} evaluations, {text}",
                answered(run.engine()),
                run.engine().settings().most_evaluations()
            )),
        }
    }

    /// Says once that the target will not be met, as soon as that can be known.
    fn warn(&mut self, engine: &Engine) {
        if self.warned || matches!(self.shown, Shown::Nothing) {
            return;
        }
        let outlook = Outlook::of(engine, false);
        if let Some((_, text)) = outlook.filter(|(outlook, _)| outlook.is_short(engine.settings())) {
            self.warned = true;
            match &self.shown {
                Shown::Bar(bar) => bar.suspend(|| note(&text)),
                _ => note(&text),
            }
        }
    }

    /// Clears the bar, so that what follows stands alone.
    pub fn finish(&self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }

    fn describe(&self, run: &Run<'_>) -> String {
        let engine = run.engine();
        // The belief behind the last batch: a new one for every answer would cost a fit every time.
        let belief = engine.history().last().and_then(|r| Some(plus_minus(r.belief.log_z?, r.belief.log_z_sd?)));
        let failed = engine.ledger().entries().filter(|e| !e.is_pending() && e.value().is_none()).count();
        let mut parts =
            vec![format!("log Z {}", belief.as_deref().unwrap_or("unknown yet")), format!("{} busy", run.busy())];
        if !engine.repeats().is_empty() {
            parts.insert(0, format!("repeat {} of {}", engine.newest_repeat() + 1, engine.repeats().len()));
        }
        if failed > 0 {
            parts.push(format!("{failed} failed"));
        }
        let (done, most) = (answered(engine), engine.settings().most_evaluations());
        let new = done.saturating_sub(self.done_before);
        if new > 0 {
            let left = self.started.elapsed().as_secs_f64() / new as f64 * most.saturating_sub(done) as f64;
            parts.push(format!("≤ {} left", duration(left)));
        }
        parts.join(", ")
    }
}

fn answered(engine: &Engine) -> usize {
    engine.ledger().entries().filter(|e| !e.is_pending()).count() + engine.ledger().imported().len()
}
