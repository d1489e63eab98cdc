//! A run as lines of text that fit a terminal.

mod trace;

use std::collections::BTreeMap;

use batchquad::{
    Engine,
    evaluate::clean,
    journal::{Event, Holder, Replay},
    run::{
        Level, Outlook,
        report::{Repeat, Tally, Trust},
    },
    types::Outcome,
};

use crate::{
    output::{duration, plus_minus},
    store::last_log_z,
};

/// How a line is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    Plain,
    /// What matters most.
    Strong,
    /// What is only there for orientation.
    Faint,
    /// What is wrong.
    Alarm,
}

/// A line of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    pub weight: Weight,
}

/// Rows of the trace of log Z.
const TRACE: usize = 8;
/// Failures shown.
const FAILURES: usize = 3;
/// How many of the newest answers the speed is computed from.
const RECENT: usize = 24;

/// What the view is made from.
pub struct Seen<'a> {
    pub engine: &'a Engine,
    pub replay: &'a Replay,
    pub name: String,
    pub state: &'a str,
    pub writer: Option<&'a Holder>,
    /// Milliseconds since 1970.
    pub now: u64,
}

/// What one worker has done.
#[derive(Default)]
struct Worker {
    done: usize,
    failed: usize,
    seconds: f64,
    last: u64,
}

impl Seen<'_> {
    /// The view in `width` columns and at most `height` rows; what matters most comes first.
    pub fn lines(&self, width: usize, height: usize) -> Vec<Line> {
        let mut lines = self.head(width);
        let failures = self.failures();
        let workers = self.workers();
        // The trace gives way when there is little room.
        let rest = height.saturating_sub(lines.len() + workers.len().min(4) + failures.len() + 3);
        if rest >= 3 {
            lines.extend(self.trace(width, rest.min(TRACE)));
        }
        lines.push(line("", Weight::Plain));
        lines.extend(failures);
        let room = height.saturating_sub(lines.len());
        if workers.len() > room && room > 1 {
            lines.extend(workers.iter().take(room - 1).cloned());
            lines.push(line(&format!("… {} more workers", workers.len() + 1 - room), Weight::Faint));
        } else {
            lines.extend(workers);
        }
        lines.truncate(height);
        for line in &mut lines {
            line.text = fit(&line.text, width);
        }
        lines
    }

    fn head(&self, width: usize) -> Vec<Line> {
        let ledger = self.engine.ledger();
        let who = self.writer.map(|h| format!(": process {} on {}", h.pid, h.host)).unwrap_or_default();
        let mut lines = vec![line(&format!("{}  {}{who}", self.name, self.state), Weight::Faint)];
        let several = !self.engine.repeats().is_empty();
        let last = self.engine.history().last();
        let belief = last_log_z(self.engine).zip(last).map(|((log_z, sd, of), round)| {
            let of = if several { of } else { format!("from {} values", round.belief.values) };
            format!("log Z  {}   {of}", plus_minus(log_z, sd))
        });
        lines.push(line(belief.as_deref().unwrap_or("log Z  unknown yet"), Weight::Strong));
        let repeats = Repeat::all(self.engine, false);
        lines.extend(repeats.iter().map(|r| line(&format!("repeat {}", r.line(repeats.len())), Weight::Plain)));
        if let Some(trust) = Trust::recorded(ledger) {
            let weight = match trust.verdict {
                // What was said about fewer values may no longer be true.
                _ if trust.newer(ledger) > 0 => Weight::Faint,
                Level::DoNotTrust => Weight::Alarm,
                _ => Weight::Plain,
            };
            lines.push(line(&trust.line_at(ledger), weight));
        }
        lines.extend(Outlook::of(self.engine, false).map(|(_, text)| line(&text, Weight::Faint)));
        let most = self.engine.settings().most_evaluations();
        let tally = Tally::of(ledger);
        let (done, pending, failed) = (tally.done(), tally.pending, tally.failures);
        let mut words = vec![format!("{done} of {most} evaluations"), format!("{pending} running or waiting")];
        if failed > 0 {
            words.push(format!("{failed} failed"));
        }
        if let Some(rate) = self.rate().filter(|_| self.state == "running") {
            words.push(format!("≤ {} left", duration(most.saturating_sub(done) as f64 / rate)));
        }
        let text = words.join(", ");
        let columns = width.saturating_sub(text.chars().count() + 3).min(30);
        let bar = if columns >= 8 { format!("{}  ", bar(done, most, columns)) } else { String::new() };
        lines.push(line(&format!("{bar}{text}"), Weight::Plain));
        lines
    }

    /// Answers per second, from the newest ones of the current writer.
    fn rate(&self) -> Option<f64> {
        let told = self.replay.records.iter().filter(|r| matches!(r.event, Event::Told(_) | Event::Replaced(_)));
        let times: Vec<u64> = told.rev().take(RECENT + 1).map(|r| r.at).collect();
        let (newest, oldest) = (times.first()?, times.last()?);
        let seconds = newest.checked_sub(*oldest)? as f64 / 1000.0;
        (seconds > 0.0).then(|| (times.len() - 1) as f64 / seconds)
    }

    fn trace(&self, width: usize, height: usize) -> Vec<Line> {
        // Of several independent runs the one under way.
        let points: Vec<(f64, f64, f64)> = self
            .engine
            .repeat(self.engine.newest_repeat())
            .history()
            .iter()
            .filter_map(|r| Some((r.belief.values as f64, r.belief.log_z?, r.belief.log_z_sd?)))
            .collect();
        let rows = trace::rows(&points, width.min(100), height);
        let blank = (!rows.is_empty()).then(|| line("", Weight::Plain));
        blank.into_iter().chain(rows.iter().map(|row| line(row, Weight::Plain))).collect()
    }

    fn workers(&self) -> Vec<Line> {
        let mut workers: BTreeMap<(usize, String), Worker> = BTreeMap::new();
        for record in &self.replay.records {
            let (Event::Told(told) | Event::Replaced(told)) = &record.event else { continue };
            let name = told.worker.as_deref().map_or_else(|| "by hand".into(), clean);
            // Shorter names first: worker 10 after worker 9.
            let worker = workers.entry((name.chars().count(), name)).or_default();
            worker.done += 1;
            worker.failed += usize::from(matches!(told.outcome, Outcome::Failed { .. }));
            worker.seconds += told.seconds;
            worker.last = record.at;
        }
        let mut lines = Vec::new();
        for ((_, name), worker) in &workers {
            let ago = duration(self.now.saturating_sub(worker.last) as f64 / 1000.0);
            let failed = if worker.failed > 0 { format!(", {} failed", worker.failed) } else { String::new() };
            let mean = duration(worker.seconds / worker.done as f64);
            let text = format!("worker {name:<10} {:>5} done{failed}, {mean} each, the last {ago} ago", worker.done);
            lines.push(line(&text, Weight::Plain));
        }
        lines
    }

    fn failures(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for record in self.replay.records.iter().rev() {
            let (id, kind, message) = match &record.event {
                Event::Told(told) | Event::Replaced(told) => match &told.outcome {
                    Outcome::Failed { kind, message } => (told.id, kind, message),
                    Outcome::Value(_) => continue,
                },
                Event::Retried(retried) => (retried.id, &retried.failure, &retried.message),
                _ => continue,
            };
            lines.push(line(&format!("evaluation {id} failed ({kind}): {message}"), Weight::Alarm));
            if lines.len() == FAILURES {
                break;
            }
        }
        lines
    }
}

fn line(text: &str, weight: Weight) -> Line {
    Line { text: clean(text).replace(['\n', '\t'], " "), weight }
}

/// A text cut to a number of columns.
fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

fn bar(done: usize, most: usize, columns: usize) -> String {
    let full = (columns * done.min(most)).checked_div(most).unwrap_or(columns);
    format!("{}{}", "█".repeat(full), "░".repeat(columns - full))
}
