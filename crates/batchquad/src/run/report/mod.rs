//! What a run has found, in one place: the text, the JSON and the pages of the program and Python's `Result` are made
//! from it.
//!
//! Numbers that JSON has no word for: a log-likelihood of −∞ is `"-inf"`, a number that does not exist is `null`.
//!
//! ```
//! use batchquad::{Config, Prior, integrate, prior::Distribution, run::Report};
//! let prior = Prior::independent([("x", Distribution::normal(0.0, 1.0)?)])?;
//! let integral = integrate(|t| -0.5 * (t[0] - 1.0).powi(2) / 0.25, prior, Config::default())?;
//! let report = Report::new(&integral.engine, Some(&integral.stop))?.with_posterior(&integral.engine);
//! assert_eq!(report.log_z, Some(integral.estimate.log_z));
//! assert!(report.posterior.is_some());
//! # Ok::<(), batchquad::Error>(())
//! ```

mod conclusion;
mod evaluation;
mod repeat;
mod summary;
mod tally;
mod trust;
mod words;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::{
    conclusion::{Contender, conclusion},
    evaluation::{Evaluation, EvaluationStatus, evaluations, sd_column},
    repeat::Repeat,
    summary::{ByName, Summary},
    tally::Tally,
    trust::Trust,
    words::{duration, plus_minus, probability, rounded},
};
use crate::{
    belief::estimate::Estimate,
    error::Result,
    infer::posterior::DRAWS,
    journal::{Ledger, Topic},
    run::{
        diagnostics::{Diagnosis, diagnose},
        drive::no_evidence,
        engine::{Agreement, Current, Engine, Repairs},
        outlook::Outlook,
        stop::{Status, Stop},
    },
    types::JobId,
};

/// What is known at the end of a run, or in the middle of one.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The estimate of log Z; absent when the run failed or saw no finite log-likelihood.
    pub log_z: Option<f64>,
    /// Its standard deviation.
    pub log_z_sd: Option<f64>,
    /// The ends of the [interval](Estimate::interval) that holds it with 95 %.
    pub log_z_low: Option<f64>,
    /// See `log_z_low`.
    pub log_z_high: Option<f64>,
    /// What each of several independent runs says by itself; empty where there is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<Repeat>,
    /// Whether they agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
    /// The true log Z, where the problem file gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_log_z: Option<f64>,
    /// What the diagnostics make of the number, with their reasons.
    #[serde(flatten)]
    pub trust: Option<Trust>,
    /// The diagnostics themselves.
    #[serde(skip)]
    pub diagnosis: Option<Diagnosis>,
    /// How the run ended, or `unfinished`.
    pub status: &'static str,
    /// The same in words.
    pub reason: String,
    /// How far the target is, in words, while it is not met; of several independent runs, for the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outlook: Option<String>,
    /// About how many evaluations the target takes, where that can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluations_needed: Option<usize>,
    /// How many evaluations there are, of which kind, and how long they took.
    #[serde(flatten)]
    pub tally: Tally,
    /// The share of the prior that is nearer to a point that failed than to one with a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior_mass_near_failures: Option<f64>,
    /// What is believed about each parameter.
    pub posterior: Option<ByName<Summary>>,
    /// How many independent draws the weighted draws from the posterior are worth.
    pub posterior_effective_samples: Option<f64>,
    /// Numerical repairs behind the estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repairs: Option<Repairs>,
    /// The seed of the run.
    pub seed: u64,
    /// Where the run is kept, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
}

impl Report {
    /// The report of a run; `stop` is `None` while there is more to do. Cost: that of [`diagnose`].
    ///
    /// # Errors
    /// As [`Engine::excluded_mass`].
    pub fn new(engine: &Engine, stop: Option<&Stop>) -> Result<Self> {
        // A run that failed has nothing to say about Z, even if its surrogate has.
        let current = match stop {
            Some(Stop { status: Status::Failed, .. }) => None,
            _ => engine.current().ok(),
        };
        let diagnosis = current.and_then(estimated).and_then(|_| diagnose(engine).ok());
        Self::with(engine, stop, current, diagnosis)
    }

    /// What is known without working anything out: for a run that was interrupted.
    ///
    /// # Errors
    /// As [`Engine::excluded_mass`].
    pub fn brief(engine: &Engine, stop: &Stop) -> Result<Self> {
        Self::with(engine, Some(stop), engine.known(), None)
    }

    fn with(
        engine: &Engine,
        stop: Option<&Stop>,
        current: Option<&Current>,
        diagnosis: Option<Diagnosis>,
    ) -> Result<Self> {
        let ledger = engine.ledger();
        let tally = Tally::of(ledger);
        let estimate = current.and_then(estimated);
        let interval = estimate.and_then(|e| e.interval(0.95).ok());
        let (outlook, sentence) = Outlook::of(engine, current.is_some()).unzip();
        Ok(Self {
            log_z: estimate.map(|e| e.log_z),
            log_z_sd: estimate.map(|e| e.log_z_sd),
            log_z_low: interval.map(|i| i.0),
            log_z_high: interval.map(|i| i.1),
            repeats: Repeat::all(engine, current.is_some()),
            agreement: current.and_then(|c| c.agreement.clone()),
            known_log_z: known_log_z(ledger),
            trust: diagnosis.as_ref().map(|d| Trust::new(d, ledger)),
            diagnosis,
            status: stop.map_or("unfinished", |s| s.status.as_str()),
            reason: stop.map_or_else(|| to_do(engine, tally.pending), |s| s.reason.clone()),
            outlook: sentence,
            evaluations_needed: outlook.and_then(|outlook| outlook.needed()),
            tally,
            prior_mass_near_failures: engine.excluded_mass()?,
            posterior: None,
            posterior_effective_samples: None,
            repairs: current.map(|c| c.believed.repairs),
            seed: engine.seed(),
            store: None,
        })
    }

    /// The same with what is believed about the parameters, where there is a log Z.
    #[must_use]
    pub fn with_posterior(mut self, engine: &Engine) -> Self {
        if self.log_z.is_none() {
            return self;
        }
        let Ok(posterior) = engine.posterior() else { return self };
        let all = posterior.marginals().and_then(|all| all.iter().map(Summary::new).collect::<Result<Vec<_>>>());
        self.posterior = all.ok().map(|all| ByName(engine.prior().names().iter().cloned().zip(all).collect()));
        self.posterior_effective_samples = posterior.draws(DRAWS, engine.seed()).ok().map(|draws| draws.effective());
        self
    }

    /// The same with the place where the run is kept.
    #[must_use]
    pub fn stored_at(mut self, store: impl Into<String>) -> Self {
        self.store = Some(store.into());
        self
    }

    /// The report for a person: labels and what they stand for. What came from a likelihood is in it as it stands.
    #[must_use]
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let log_z = self.log_z.zip(self.log_z_sd);
        let mut rows = vec![("log Z", log_z.map_or_else(|| "none".into(), |(log_z, sd)| plus_minus(log_z, sd)))];
        if let (Some(low), Some(high), Some(sd)) = (self.log_z_low, self.log_z_high, self.log_z_sd) {
            rows.push(("95 %", format!("{} to {}", rounded(low, sd), rounded(high, sd))));
        }
        rows.extend(self.repeats.iter().map(|repeat| ("repeat", repeat.line(self.repeats.len()))));
        rows.extend(self.known_log_z.map(|known| ("known", self.beside(known))));
        rows.extend(self.trust.as_ref().map(|trust| ("verdict", trust.line())));
        rows.push(("status", format!("{}: {}", self.status, self.reason)));
        rows.extend(self.outlook.clone().map(|outlook| ("outlook", outlook)));
        rows.push(("evaluations", self.tally.line()));
        if let Some(mass) = self.prior_mass_near_failures {
            rows.push(("left out", format!("{:.2} % of the prior is nearest to points that failed", 100.0 * mass)));
        }
        rows.push(("choosing", duration(self.tally.seconds_choosing)));
        rows.push(("evaluating", format!("{} over all workers", duration(self.tally.seconds_evaluating))));
        rows.extend(self.store.clone().map(|store| ("store", store)));
        if !self.tally.conflicts.is_empty() {
            let ids = list(&self.tally.conflicts);
            rows.push(("conflicts", format!("different values were told for {ids}; the first counts")));
        }
        if !self.tally.replaced.is_empty() {
            let ids = list(&self.tally.replaced);
            rows.push(("replaced", format!("the answers to {ids} took the place of others, which are kept")));
        }
        if let Some(n) = self.repairs.map(|r| r.contradictory_nodes).filter(|n| *n > 0) {
            let text = format!("values at {n} nodes contradict each other (noise, or a jump?); their mean counts");
            rows.push(("warning", text));
        }
        if self.repairs.is_some_and(|r| r.lengthscale_at_bound) {
            rows.push(("caution", "a lengthscale ended at the bound of its search".into()));
        }
        rows
    }

    /// The known answer, and how far from it the estimate is.
    fn beside(&self, known: f64) -> String {
        let Some((log_z, sd)) = self.log_z.zip(self.log_z_sd) else { return known.to_string() };
        let difference = log_z - known;
        let in_sds = if sd > 0.0 { format!(", {:.1} sd", (difference / sd).abs()) } else { String::new() };
        let side = if difference < 0.0 { "below" } else { "above" };
        format!("{known} (log Z is {} {side} it{in_sds})", rounded(difference.abs(), sd))
    }
}

/// `evaluation 3`, `evaluations 3, 5`.
fn list(ids: &[JobId]) -> String {
    let all: Vec<String> = ids.iter().map(JobId::to_string).collect();
    format!("evaluation{} {}", if ids.len() == 1 { "" } else { "s" }, all.join(", "))
}

/// The estimate, where there is one.
fn estimated(current: &Current) -> Option<Estimate> {
    Some(current.estimate).filter(|e| e.log_z.is_finite() && e.log_z_sd.is_finite())
}

/// The known answer, where the problem file had one.
#[must_use]
pub fn known_log_z(ledger: &Ledger) -> Option<f64> {
    ledger.remark(Topic::KnownLogZ)?.as_f64().filter(|value| value.is_finite())
}

/// What plots and reports call the parameters, by name, where somebody has said so.
#[must_use]
pub fn labels(ledger: &Ledger) -> BTreeMap<String, String> {
    ledger.remark(Topic::Labels).and_then(|value| BTreeMap::deserialize(value).ok()).unwrap_or_default()
}

/// What an unfinished run waits for.
fn to_do(engine: &Engine, pending: usize) -> String {
    let waits = match pending {
        0 => "more points can be asked".into(),
        n => format!("{n} evaluations are pending"),
    };
    no_evidence(engine).map_or_else(|| waits.clone(), |why| format!("{waits}; {why}"))
}
