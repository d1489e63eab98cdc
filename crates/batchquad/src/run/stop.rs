//! When a run is over, and why.

use serde::{Deserialize, Serialize};

use crate::run::{
    diagnostics::{Level, diagnose},
    engine::{Engine, Round},
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
    /// `log Z` no longer moves although the target is not met.
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

/// Whether the run should ask no more, given the seconds that it has taken so far.
///
/// A met target comes before a spent budget: a run that does both has converged. A number that is not to be trusted has not met its target.
#[must_use]
pub fn check(engine: &Engine, rounds: &[Round], seconds: f64) -> Option<Stop> {
    let settings = engine.settings();
    let asked = engine.ledger().entries().len() + engine.ledger().imported().len();
    let target = settings.target_sd;
    if let Some(target) = target
        && target_met(target, rounds.iter().map(|r| r.belief.log_z_sd))
        && diagnose(engine).is_ok_and(|diagnosis| diagnosis.verdict < Level::DoNotTrust)
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
