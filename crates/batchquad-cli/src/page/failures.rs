//! What failed, and why.

use std::collections::BTreeMap;

use batchquad::{
    Engine,
    evaluate::clean,
    numeric::normal::cdf,
    run::report::{Tally, labels},
    types::Outcome,
};
use batchquad_plot::{Axis, Chart, Figure, Marker, Points, compact};
use serde::Serialize;

use super::{Drawn, NARROW, words::label};

/// Failures beyond this number are not listed one by one.
const MOST: usize = 12;

/// Digits of a coordinate; the table of evaluations has all.
const DIGITS: usize = 4;

/// A failure that counts, or an attempt that was repeated.
#[derive(Debug, Serialize)]
pub struct Failed {
    id: u64,
    kind: String,
    attempt: u32,
    /// Whether the evaluation has a value all the same, from a later attempt.
    mended: bool,
    message: String,
    theta: String,
}

/// All failures with their messages.
#[derive(Debug, Serialize)]
pub struct Failures {
    list: Vec<Failed>,
    kinds: BTreeMap<&'static str, usize>,
    more: usize,
    figure: Option<Drawn>,
}

/// The failures of a run; none when there are none.
pub fn failures(engine: &Engine) -> Option<Failures> {
    let ledger = engine.ledger();
    let mut list = Vec::new();
    for entry in ledger.entries() {
        let names = ledger.header().names().iter().zip(&entry.job.theta);
        let theta = || {
            names
                .clone()
                .map(|(name, value)| format!("{} = {}", clean(name), compact(*value, DIGITS)))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let mended = entry.value().is_some();
        let failed = |attempt: u32, kind: String, message: &str| Failed {
            id: entry.job.id.0,
            kind,
            attempt,
            mended,
            message: clean(message),
            theta: theta(),
        };
        list.extend(entry.failures.iter().map(|f| failed(f.attempt, f.kind.to_string(), &f.message)));
        if let Some(told) = &entry.answer
            && let Outcome::Failed { kind, message } = &told.outcome
        {
            list.push(failed(told.attempt, kind.to_string(), message));
        }
    }
    let more = list.len().saturating_sub(MOST);
    list.truncate(MOST);
    let kinds = Tally::of(ledger).failures_by_kind;
    let figure = (!kinds.is_empty()).then(|| figure(engine)).flatten();
    (!list.is_empty()).then_some(Failures { list, kinds, more, figure })
}

/// Where in the prior the evaluations without a value lie, one line for each parameter.
fn figure(engine: &Engine) -> Option<Drawn> {
    let (mut values, mut failed) = (Vec::new(), Vec::new());
    for entry in engine.ledger().entries().filter(|entry| !entry.is_pending()) {
        let latent = engine.prior().to_latent(&entry.job.theta).ok()?;
        let list = if entry.value().is_some() { &mut values } else { &mut failed };
        list.extend(latent.iter().enumerate().map(|(k, u)| (cdf(*u), k as f64)));
    }
    let labels = labels(engine.ledger());
    let names: Vec<String> = engine.prior().names().iter().map(|name| label(&labels, name)).collect();
    let height = (30.0 * names.len() as f64).clamp(50.0, 600.0);
    let draw = |width: f64| {
        let axis = Axis::linear("share of the prior below the value").range(0.0, 1.0);
        let chart = Chart::new(axis, Axis::categories("", names.iter().cloned()))
            .with(Points::new(values.clone()).colour(4).marker(Marker::Disc).radius(2.2).opacity(0.6).named("values"))
            .with(Points::new(failed.clone()).colour(1).marker(Marker::Cross).radius(3.0).named("failed"));
        let label = "Where in the prior evaluations have failed";
        Figure::new(label, chart).width(width).panel_height(height).one_legend()
    };
    let caption = "Where in the prior evaluations have failed, parameter by parameter. Crosses that crowd at one end say that the prior reaches \
                   where the likelihood cannot be computed.";
    Some(Drawn::new("failed", &draw(820.0), caption).with_narrow("failed", &draw(NARROW)))
}
