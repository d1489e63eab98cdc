//! The outcome of a run, as a table and as JSON.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use batchquad::{
    Engine,
    diagnostics::{Diagnosis, diagnose},
    engine::{Current, Repairs},
    posterior::{self, Method},
    stop::{Status, Stop},
    types::Outcome,
};
use serde::Serialize;

use crate::{
    output::{Ordered, duration, facts, plus_minus, rounded, table},
    store::known_log_z,
    trust::Trust,
};

/// The mass of the intervals.
const MASS: f64 = 0.95;

/// What is known at the end of a run, or in the middle of one.
#[derive(Debug, Serialize)]
pub struct Report {
    pub log_z: Option<f64>,
    pub log_z_sd: Option<f64>,
    /// The answer, where the problem file knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_log_z: Option<f64>,
    /// What the diagnostics make of the number, with their reasons.
    #[serde(flatten)]
    pub trust: Option<Trust>,
    #[serde(skip)]
    pub diagnosis: Option<Diagnosis>,
    pub status: String,
    pub reason: String,
    /// Jobs that were answered, failures included.
    pub evaluations: usize,
    pub pending: usize,
    pub imported: usize,
    pub batches: usize,
    pub failures: usize,
    pub failures_by_kind: BTreeMap<String, usize>,
    /// The share of the prior that is nearer to a point that failed than to one with a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior_mass_near_failures: Option<f64>,
    /// Jobs for which different values were told.
    pub conflicts: Vec<u64>,
    pub seconds_choosing: f64,
    pub seconds_evaluating: f64,
    pub posterior: Option<Ordered<Marginal>>,
    /// What draws from the posterior are worth: those of `draws`, and those behind the figures above where there is no closed form.
    pub posterior_effective_samples: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repairs: Option<Repairs>,
    pub seed: u64,
    pub store: String,
}

/// What is believed about one parameter; mean and sd are absent where its tails are too heavy to have any.
#[derive(Debug, Clone, Serialize)]
pub struct Marginal {
    pub mean: Option<f64>,
    pub sd: Option<f64>,
    /// As much of the posterior is below as is above `high`.
    pub low: f64,
    pub high: f64,
    /// How much of the posterior is between the two.
    pub mass: f64,
    pub method: Method,
}

impl Marginal {
    fn new(marginal: &posterior::Marginal) -> batchquad::Result<Self> {
        let (low, high) = marginal.interval(MASS)?;
        let finite = |v: f64| Some(v).filter(|v| v.is_finite());
        let (mean, sd) = (finite(marginal.mean()), finite(marginal.sd()));
        Ok(Self { mean, sd, low, high, mass: MASS, method: marginal.method() })
    }

    /// The cells of its row: mean, sd and interval with as many digits as the width makes meaningful.
    fn cells(&self) -> [String; 4] {
        let width = self.sd.unwrap_or(0.25 * (self.high - self.low));
        let cell = |v: Option<f64>| v.map_or_else(|| "none".into(), |v| rounded(v, width));
        [cell(self.mean), cell(self.sd), rounded(self.low, width), rounded(self.high, width)]
    }
}

impl Report {
    /// The report of a run; `stop` is `None` while there is more to do.
    pub fn new(engine: &Engine, stop: Option<&Stop>, store: &Path) -> Result<Self> {
        let mut report = Self::without_posterior(engine, stop, store)?;
        if report.repairs.is_some() {
            report.add_posterior(engine);
        }
        Ok(report)
    }

    /// What is known without working anything out: for a run that was interrupted.
    pub fn brief(engine: &Engine, stop: &Stop, store: &Path) -> Result<Self> {
        Self::with(engine, Some(stop), store, engine.known(), None)
    }

    /// What the belief says about the parameters; nothing where there is none.
    fn add_posterior(&mut self, engine: &Engine) {
        let Ok(posterior) = engine.posterior() else { return };
        let all = posterior.marginals().and_then(|all| all.iter().map(Marginal::new).collect::<batchquad::Result<_>>());
        self.posterior =
            all.ok().map(|all: Vec<Marginal>| Ordered(engine.prior().names().iter().cloned().zip(all).collect()));
        let draws = posterior.draws(posterior::DRAWS, engine.seed());
        self.posterior_effective_samples = draws.ok().map(|draws| draws.effective());
    }

    /// The same for those who look at the posterior by themselves.
    pub fn without_posterior(engine: &Engine, stop: Option<&Stop>, store: &Path) -> Result<Self> {
        // A run that failed has nothing to say about Z, even if its surrogate has.
        let current = match stop {
            Some(Stop { status: Status::Failed, .. }) => None,
            _ => engine.current().ok(),
        };
        let finite = current.is_some_and(|current| current.estimate.log_z.is_finite());
        let diagnosis = if finite { diagnose(engine).ok() } else { None };
        Self::with(engine, stop, store, current, diagnosis)
    }

    fn with(
        engine: &Engine,
        stop: Option<&Stop>,
        store: &Path,
        current: Option<&Current>,
        diagnosis: Option<Diagnosis>,
    ) -> Result<Self> {
        let ledger = engine.ledger();
        let answers = || ledger.entries().filter_map(|entry| entry.answer.as_ref());
        let mut failures_by_kind: BTreeMap<String, usize> = BTreeMap::new();
        for answer in answers() {
            if let Outcome::Failed { kind, .. } = &answer.outcome {
                *failures_by_kind.entry(kind.to_string()).or_default() += 1;
            }
        }
        let pending = ledger.pending().count();
        let estimate = current.map(|c| c.estimate).filter(|e| e.log_z.is_finite());
        Ok(Self {
            log_z: estimate.map(|e| e.log_z),
            log_z_sd: estimate.map(|e| e.log_z_sd),
            known_log_z: known_log_z(ledger),
            trust: diagnosis.as_ref().map(|d| Trust::new(d, engine)),
            diagnosis,
            status: stop.map_or("unfinished", |s| s.status.as_str()).into(),
            reason: stop.map_or_else(|| to_do(engine, pending), |s| s.reason.clone()),
            evaluations: answers().count(),
            pending,
            imported: ledger.imported().len(),
            batches: ledger.batches().len(),
            failures: failures_by_kind.values().sum(),
            failures_by_kind,
            prior_mass_near_failures: engine.excluded_mass()?,
            conflicts: ledger.conflicts().map(|entry| entry.job.id.0).collect(),
            seconds_choosing: ledger.batches().iter().map(|asked| asked.seconds).sum(),
            seconds_evaluating: answers().map(|told| told.seconds).sum(),
            posterior: None,
            posterior_effective_samples: None,
            repairs: current.map(|c| c.believed.repairs),
            seed: engine.seed(),
            store: store.display().to_string(),
        })
    }

    /// The report for a person.
    pub fn table(&self) -> String {
        let log_z = match (self.log_z, self.log_z_sd) {
            (Some(log_z), Some(sd)) => plus_minus(log_z, sd),
            _ => "none".into(),
        };
        let kinds: Vec<String> = self.failures_by_kind.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
        let failed = if kinds.is_empty() { String::new() } else { format!(", of which failed: {}", kinds.join(", ")) };
        let imported = if self.imported > 0 { format!(", {} imported", self.imported) } else { String::new() };
        let pending = if self.pending > 0 { format!(", {} pending", self.pending) } else { String::new() };
        let mut rows = vec![
            ("log Z", log_z),
            ("status", format!("{}: {}", self.status, self.reason)),
            ("evaluations", format!("{} in {} batches{failed}{imported}{pending}", self.evaluations, self.batches)),
            ("choosing", duration(self.seconds_choosing)),
            ("evaluating", format!("{} over all workers", duration(self.seconds_evaluating))),
            ("store", self.store.clone()),
        ];
        if let Some(mass) = self.prior_mass_near_failures {
            rows.insert(
                3,
                ("left out", format!("{:.2} % of the prior is nearest to points that failed", 100.0 * mass)),
            );
        }
        if let Some(trust) = &self.trust {
            rows.insert(1, ("verdict", trust.line()));
        }
        if let Some(known) = self.known_log_z {
            rows.insert(1, ("known", self.beside(known)));
        }
        if !self.conflicts.is_empty() {
            rows.push(("conflicts", format!("different values were told for {:?}; the first counts", self.conflicts)));
        }
        if let Some(n) = self.repairs.map(|r| r.contradictory_nodes).filter(|n| *n > 0) {
            let text = format!("values at {n} nodes contradict each other (noise, or a jump?); their mean counts");
            rows.push(("warning", text));
        }
        if self.repairs.is_some_and(|r| r.lengthscale_at_bound) {
            rows.push(("caution", "a lengthscale ended at the bound of its search".into()));
        }
        let mut text = facts(&rows);
        if let Some(Ordered(posterior)) = &self.posterior {
            let head = ["parameter", "mean", "sd", "2.5 %", "97.5 %"].map(String::from).to_vec();
            let row = |(name, m): &(String, Marginal)| [vec![name.clone()], m.cells().to_vec()].concat();
            let rows: Vec<Vec<String>> = std::iter::once(head).chain(posterior.iter().map(row)).collect();
            text.push('\n');
            text.push_str(&table(&rows));
            if posterior.iter().any(|(_, m)| m.method == Method::Draws) {
                let worth = self.posterior_effective_samples.unwrap_or(0.0);
                text.push_str(&format!("by draws worth {worth:.0} independent ones, where there is no closed form\n"));
            }
        }
        text
    }

    /// The known answer, and how far from it the estimate is.
    fn beside(&self, known: f64) -> String {
        let (Some(log_z), Some(sd)) = (self.log_z, self.log_z_sd) else { return known.to_string() };
        let difference = log_z - known;
        let in_sds = if sd > 0.0 { format!(", {:+.1} sd", difference / sd) } else { String::new() };
        format!("{known} (log Z is {difference:+.1e} from it{in_sds})")
    }
}

/// What an unfinished run waits for.
fn to_do(engine: &Engine, pending: usize) -> String {
    match (engine.current(), pending) {
        (Ok(_), 0) => "more points can be asked".into(),
        (Ok(_), n) => format!("{n} evaluations are pending"),
        (Err(e), n) => format!("{n} evaluations are pending; {e}"),
    }
}
