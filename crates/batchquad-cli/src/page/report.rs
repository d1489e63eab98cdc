//! The page about one run.

use std::path::Path;

use anyhow::Result;
use batchquad::{
    Engine,
    evaluate::clean,
    journal::Replay,
    run::{Level, report::Report, standing},
};
use batchquad_plot::compact;
use serde::Serialize;

use super::{
    Drawn,
    convergence::{self, pooled, steps},
    diagnostics::{self, Diagnostics},
    failures::{Failures, failures},
    posterior::{self, Section},
    render,
    repeat::{Repeat, repeat},
    table::{Table, table},
    timeline,
    words::{count, date, exponential, plus_minus, rounded},
};
use crate::{output::duration, report::report as report_of};

/// All that the template shows.
#[derive(Serialize)]
struct Page {
    title: String,
    headline: String,
    log_z: Option<String>,
    verdict: Verdict,
    facts: Vec<(&'static str, String)>,
    convergence: Option<Drawn>,
    posterior: Option<Section>,
    no_posterior: String,
    diagnostics: Option<Diagnostics>,
    timeline: Option<Drawn>,
    failures: Option<Failures>,
    table: Table,
    repeat: Repeat,
}

/// What to make of the number, in words.
#[derive(Serialize)]
pub struct Verdict {
    /// `fine`, `look`, `doubt` or `none`.
    level: &'static str,
    text: String,
    /// What it rests on.
    reasons: Vec<String>,
}

/// The report as HTML.
pub fn report(engine: &Engine, replay: &Replay, store: &Path, known: Option<f64>) -> Result<String> {
    let stop = standing(engine);
    let mut report = report_of(engine, stop.as_ref(), store)?;
    report.known_log_z = known.or(report.known_log_z);
    let current = if report.log_z.is_some() { engine.current().ok() } else { None };
    let (posterior, no_posterior) = match current.map(|_| posterior::section(engine)) {
        Some(Ok(section)) => (Some(section), String::new()),
        Some(Err(e)) => (None, format!("{e:#}")),
        None => (None, "there is no log Z".into()),
    };
    let name = store.file_stem().map_or_else(|| "store".into(), |name| clean(&name.to_string_lossy()));
    let log_z = report.log_z.zip(report.log_z_sd).map(|(log_z, sd)| plus_minus(log_z, sd));
    let page = Page {
        title: name,
        headline: log_z.as_ref().map_or_else(|| "There is no log Z".into(), |text| format!("log Z = {text}")),
        verdict: verdict(&report, replay),
        facts: facts(&report, replay),
        log_z,
        convergence: convergence::figure(
            &steps(engine),
            pooled(engine),
            report.known_log_z,
            engine.settings().target_sd,
            report.tally.failures > 0,
        ),
        posterior,
        no_posterior,
        diagnostics: report.diagnosis.as_ref().map(diagnostics::section),
        timeline: timeline::figure(replay),
        failures: failures(engine),
        table: table(engine.ledger()),
        repeat: repeat(engine, replay)?,
    };
    render("report.html", &page)
}

fn verdict(report: &Report, replay: &Replay) -> Verdict {
    let mut reasons: Vec<String> = report.diagnosis.iter().flat_map(diagnostics::reasons).collect();
    if let Some(damage) = &replay.damage {
        reasons.push(format!("Record {} of the store is damaged; it and all after it are left out.", damage.record));
    }
    if report.tally.pending > 0 {
        reasons.push(format!("{} still pending.", count(report.tally.pending, "evaluation is", "evaluations are")));
    }
    if report.log_z.is_none() {
        return Verdict { level: "none", text: format!("No number yet: {}.", clean(&report.reason)), reasons };
    }
    let found = report.trust.as_ref().map_or(Level::Look, |trust| trust.verdict);
    let text = match found {
        Level::Fine if replay.damage.is_none() => "Nothing speaks against this number and its error bar.",
        Level::Fine | Level::Look => "Worth a look before you rely on this number.",
        Level::DoNotTrust => "Do not trust this number or its error bar.",
    };
    let found = if replay.damage.is_some() { found.max(Level::Look) } else { found };
    Verdict { level: diagnostics::level(found), text: text.into(), reasons }
}

/// The lines under the headline.
fn facts(report: &Report, replay: &Replay) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let (Some(log_z), Some(sd)) = (report.log_z, report.log_z_sd) {
        let within = if sd < 0.3 {
            format!("± {} %", compact(100.0 * sd.exp_m1(), 2))
        } else {
            format!("known to a factor of {}", compact(sd.exp(), 2))
        };
        facts.push(("Z", format!("{} {within}", exponential(log_z, sd))));
        if let (Some(low), Some(high)) = (report.log_z_low, report.log_z_high) {
            facts.push(("log Z with 95 %", format!("{} to {}", rounded(low, sd), rounded(high, sd))));
        }
        if let Some(known) = report.known_log_z {
            let away = (log_z - known) / sd;
            let side = if away > 0.0 { "below" } else { "above" };
            facts.push(("known answer", format!("{}, {:.1} sd {side}", compact(known, 10), away.abs())));
        }
    }
    facts.extend(report.repeats.iter().map(|repeat| ("repeat", repeat.line(report.repeats.len()))));
    facts.push(("status", clean(&format!("{}: {}", report.status, report.reason))));
    facts.extend(report.outlook.clone().map(|outlook| ("outlook", outlook)));
    let mut evaluations =
        format!("{} in {}", report.tally.evaluations, count(report.tally.batches, "batch", "batches"));
    for (n, word) in
        [(report.tally.failures, "failed"), (report.tally.imported, "imported"), (report.tally.pending, "pending")]
    {
        if n > 0 {
            evaluations.push_str(&format!(", {n} {word}"));
        }
    }
    facts.push(("evaluations", evaluations));
    // The diagnostics have a sentence on it.
    if let Some(mass) = report.prior_mass_near_failures.filter(|_| report.diagnosis.is_none()) {
        facts.push(("left out", format!("{:.2} % of the prior is nearest to points that failed", 100.0 * mass)));
    }
    let times = (duration(report.tally.seconds_evaluating), duration(report.tally.seconds_choosing));
    facts.push(("time", format!("{} evaluating over all workers, {} choosing", times.0, times.1)));
    let last = replay.records.last().map_or(replay.created, |record| record.at);
    facts.push(("as of", date(last)));
    if let Some(torn) = &replay.torn {
        facts.push(("torn end", format!("{} bytes of an unfinished record are left out", torn.bytes)));
    }
    facts
}
