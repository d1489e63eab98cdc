//! The page that follows a run.

use std::path::Path;

use anyhow::Result;
use batchquad::{
    Engine,
    evaluate::clean,
    journal::Replay,
    run::{
        Outlook,
        report::{Repeat, Tally, Trust, known_log_z},
    },
    types::Outcome,
};
use serde::Serialize;

use super::{
    Drawn,
    convergence::{self, pooled, steps},
    diagnostics::level,
    posterior::{self, Section},
    render, render_live, timeline,
    words::{count, date, plus_minus},
};

/// Failures shown.
const FAILURES: usize = 3;

#[derive(Serialize)]
struct Page {
    title: String,
    state: String,
    seen: String,
    log_z: Option<String>,
    verdict: Option<String>,
    level: &'static str,
    facts: Vec<(&'static str, String)>,
    done: usize,
    most: usize,
    convergence: Option<Drawn>,
    posterior: Option<Section>,
    timeline: Option<Drawn>,
    failed: Vec<String>,
}

/// A page as a whole, and what of it changes.
pub struct Live {
    pub whole: String,
    pub body: String,
}

/// The page of a run in the state that `seen` stands for.
pub fn live(engine: &Engine, replay: &Replay, store: &Path, state: &str, seen: &str) -> Result<Live> {
    let ledger = engine.ledger();
    let tally = Tally::of(ledger);
    let runs = steps(engine);
    let trust = Trust::recorded(ledger);
    let log_z = pooled(engine).or_else(|| runs.last()?.last().map(|step| (step.log_z, step.log_z_sd)));
    let outlook = Outlook::of(engine, false).map(|(_, text)| ("outlook", text));
    let repeats = Repeat::all(engine, false);
    let repeats = repeats.iter().map(|repeat| ("repeat", repeat.line(repeats.len())));
    let last = replay.records.last().map_or(replay.created, |record| record.at);
    let most = engine.settings().most_evaluations();
    let failed = ledger.entries().filter_map(|entry| match entry.answer.as_ref().map(|told| &told.outcome) {
        Some(Outcome::Failed { kind, message }) => {
            Some(format!("evaluation {} failed ({kind}): {}", entry.job.id, clean(message)))
        }
        _ => None,
    });
    let mut failed: Vec<String> = failed.collect();
    let earlier = failed.len().saturating_sub(FAILURES);
    failed.drain(..earlier);
    if earlier > 0 {
        failed.insert(0, format!("… {earlier} earlier ones"));
    }
    let page = Page {
        title: store.file_stem().map_or_else(|| "store".into(), |name| clean(&name.to_string_lossy())),
        state: state.to_owned(),
        seen: seen.to_owned(),
        log_z: log_z.map(|(log_z, sd)| plus_minus(log_z, sd)),
        level: trust.as_ref().map_or("none", |trust| match trust.newer(ledger) {
            0 => level(trust.verdict),
            _ => "old",
        }),
        verdict: trust.map(|trust| clean(&trust.line_at(ledger))),
        facts: repeats
            .chain(outlook)
            .chain([
                ("evaluations", format!("{} of {most}, {} running or waiting", tally.done(), tally.pending)),
                ("failed", if tally.failures > 0 { tally.kinds() } else { "none".into() }),
                ("batches", count(tally.batches, "batch", "batches")),
                ("last record", date(last)),
            ])
            .collect(),
        done: tally.done(),
        most,
        convergence: convergence::figure(
            &runs,
            pooled(engine),
            known_log_z(ledger),
            engine.settings().target_sd,
            tally.failures > 0,
        ),
        posterior: engine.current().ok().and_then(|_| posterior::section(engine).ok()),
        timeline: timeline::figure(replay),
        failed,
    };
    Ok(Live { whole: render_live(&page)?, body: render("live-body.html", &page)? })
}
