//! When a run is over, and why.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::run::{
    diagnostics::{Level, diagnose},
    engine::{Engine, Round},
    outlook::gain,
    settings::Settings,
};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Status {
    /// The target standard deviation was met.
    Converged,
    /// A limit was reached: of evaluations, batches or seconds.
    Budget,
    /// Going on is not worth it: `log Z` no longer moves although the target is not met, or another batch would gain too little.
    Stalled,
    /// It was interrupted and can be resumed.
    Interrupted,
    /// There is no evidence to report, or a failed evaluation ended the run.
    Failed,
}

impl Status {
    /// The word used in JSON and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::Budget => "budget",
            Self::Stalled => "stalled",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }
}

/// A reason to stop, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// How the run ended.
    pub status: Status,
    /// Which rule fired, for a person.
    pub reason: String,
}

impl Stop {
    pub(crate) fn new(status: Status, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }
}

/// The target must hold this many rounds in a row: one small number early on is often luck.
const HOLD: usize = 2;

/// Rounds without movement that count as stalled.
const STILL: usize = 5;

/// Whether the last rounds, of which the standard deviations of `log Z` are given, all met a target.
pub fn target_met(target: f64, sds: impl DoubleEndedIterator<Item = Option<f64>>) -> bool {
    let last: Vec<Option<f64>> = sds.rev().take(HOLD).collect();
    last.len() == HOLD && last.iter().all(|sd| sd.is_some_and(|sd| sd <= target))
}

/// What another batch would gain, where that is less than `share`, and was after the batch before.
fn small_gain(rounds: &[Round], batch: usize, share: f64) -> Option<f64> {
    let gains = (0..HOLD).map(|ago| gain(&rounds[..rounds.len().saturating_sub(ago)], batch).filter(|g| *g < share));
    gains.collect::<Option<Vec<f64>>>()?.first().copied()
}

/// For which of the independent runs the next batch is, counted from zero, or why there is none, given the seconds that all have taken so far.
///
/// One run after the other: first the one that was last asked for, then those before and after it that have more to do.
pub fn next_repeat(engine: &Engine, seconds: f64) -> ControlFlow<Stop, usize> {
    let newest = engine.newest_repeat();
    let runs = engine.repeats().len().max(1);
    let mut over = Vec::new();
    for k in std::iter::once(newest).chain((0..runs).filter(|k| *k != newest)) {
        match check(engine.repeat(k), seconds) {
            None => return ControlFlow::Continue(k),
            Some(stop) => over.push((k, stop)),
        }
    }
    over.sort_by_key(|(k, _)| *k);
    ControlFlow::Break(together(engine, over))
}

/// How several runs ended, in one. They have converged if each of them has, and if what they say together is to be trusted.
fn together(engine: &Engine, mut over: Vec<(usize, Stop)>) -> Stop {
    let runs = over.len();
    if runs == 1
        && let Some((_, stop)) = over.pop()
    {
        return stop;
    }
    let status = [Status::Budget, Status::Stalled].into_iter().find(|s| over.iter().any(|(_, stop)| stop.status == *s));
    let reason = match over.split_first() {
        Some(((_, first), rest)) if rest.iter().all(|(_, stop)| stop.reason == first.reason) => {
            format!("{} in each of {runs} repeats", first.reason)
        }
        _ => over.iter().map(|(k, s)| format!("repeat {}: {}", k + 1, s.reason)).collect::<Vec<_>>().join("; "),
    };
    match status {
        Some(status) => Stop::new(status, reason),
        None if trusted(engine) => Stop::new(Status::Converged, reason),
        None => Stop::new(Status::Budget, format!("{reason}, but what they say together is not to be trusted")),
    }
}

/// Whether a rule looks at what is believed.
pub(crate) fn looks_at_beliefs(settings: &Settings) -> bool {
    settings.target_sd.is_some() || settings.stop_gain.is_some() || settings.stall.is_some()
}

fn trusted(engine: &Engine) -> bool {
    diagnose(engine).is_ok_and(|diagnosis| diagnosis.verdict < Level::DoNotTrust)
}

/// Whether one run should ask no more, given the seconds that it has taken so far.
///
/// A met target comes before a spent budget: a run that does both has converged. A number that is not to be trusted has not met its target.
fn check(engine: &Engine, seconds: f64) -> Option<Stop> {
    let settings = engine.settings();
    // What is believed now costs a fit: only for rules that look at it.
    let rounds = if looks_at_beliefs(settings) { engine.rounds() } else { Vec::new() };
    let asked = engine.ledger().entries().len() + engine.ledger().imported().len();
    let target = settings.target_sd;
    if let Some(target) = target
        && target_met(target, rounds.iter().map(|r| r.belief.log_z_sd))
        && trusted(engine)
    {
        return Some(Stop::new(Status::Converged, format!("log_z_sd is at most target_sd = {target}")));
    }
    if asked >= settings.max_evaluations {
        return Some(Stop::new(Status::Budget, format!("max_evaluations = {} were asked", settings.max_evaluations)));
    }
    if let Some(most) = settings.max_batches
        && engine.ledger().batches().len() >= most
    {
        return Some(Stop::new(Status::Budget, format!("max_batches = {most} were asked")));
    }
    if let Some(most) = settings.max_seconds
        && seconds >= most
    {
        return Some(Stop::new(Status::Budget, format!("max_seconds = {most} have passed")));
    }
    if let Some(share) = settings.stop_gain
        && let Some(gain) = small_gain(&rounds, engine.next_batch(), share)
        && trusted(engine)
    {
        let reason = format!(
            "another batch would reduce log_z_sd by {:.1} %, less than stop_gain = {share}",
            100.0 * gain.max(0.0)
        );
        return Some(Stop::new(Status::Stalled, reason));
    }
    if let Some(stall) = settings.stall
        && rounds.len() > STILL
    {
        let recent: Option<Vec<f64>> = rounds[rounds.len() - STILL - 1..].iter().map(|r| r.belief.log_z).collect();
        if let Some(recent) = recent
            && recent.windows(2).all(|w| (w[1] - w[0]).abs() < 0.1 * stall)
        {
            let reason = format!("log_z moved by less than stall/10 = {} in {STILL} batches", 0.1 * stall);
            return Some(Stop::new(Status::Stalled, reason));
        }
    }
    None
}
