//! One run of the library on one problem, read after every batch.

use anyhow::{Context, Result};
use batchquad::{
    Engine, Error, Estimate, Settings,
    belief::Model,
    journal::{Event, Told},
    types::Outcome,
};
use serde::{Deserialize, Serialize};

use crate::problems::Choice;

/// Everything that determines a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The problem.
    pub problem: Choice,
    /// The seed of the problem and of the run.
    pub seed: u64,
    /// All choices of the run; its budget is `max_evaluations`.
    pub settings: Settings,
}

/// An estimate against the truth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// `log Ẑ − log Z`; absent where the estimate was not positive.
    pub error: Option<f64>,
    /// The standard deviation that was claimed.
    pub sd: Option<f64>,
}

impl Judged {
    fn new(estimate: &Estimate, log_z: f64) -> Self {
        let finite = |v: f64| Some(v).filter(|v| v.is_finite());
        Self { error: finite(estimate.log_z - log_z), sd: finite(estimate.log_z_sd) }
    }

    /// `|Ẑ/Z − 1|`, infinite where there was no estimate.
    #[must_use]
    pub fn relative(&self) -> f64 {
        self.error.map_or(f64::INFINITY, |e| e.exp_m1().abs())
    }

    /// `|error|`, infinite where there was no estimate.
    #[must_use]
    pub fn distance(&self) -> f64 {
        self.error.map_or(f64::INFINITY, f64::abs)
    }
}

/// What was believed after a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Batches evaluated, those of the initial design included.
    pub batches: usize,
    /// Evaluations behind it.
    pub evaluations: usize,
    /// Whether the initial design was still under way.
    pub initial: bool,
    /// The estimate with the error bar that the library states.
    pub own: Judged,
    /// The same with the error bar of the model alone.
    pub model: Judged,
    /// The exact moments of the square-root model; absent for a plain one.
    pub moments: Option<Judged>,
    /// The kernel's variance.
    pub sigma2: f64,
    /// The geometric mean of its lengthscales.
    pub lengthscale: f64,
    /// Points so far that the acquisition did not choose.
    pub fallbacks: usize,
}

/// Runs to the end of the budget and reads the belief after every batch, those of the initial design included, as the program would.
///
/// # Errors
/// When no belief can be formed.
pub fn trace(spec: &Spec) -> Result<Vec<Reading>> {
    let problem = spec.problem.build(spec.seed).with_context(|| format!("building {:?}", spec.problem))?;
    let budget = spec.settings.max_evaluations;
    let mut engine = Engine::new(problem.prior.clone(), spec.settings.clone(), spec.seed)?;
    let mut readings = Vec::new();
    loop {
        let done = engine.ledger().entries().len();
        if done >= budget {
            return Ok(readings);
        }
        let asked = engine.ask(engine.next_batch().min(budget - done))?;
        let jobs = asked.jobs.clone();
        engine.apply(&Event::Asked(asked))?;
        for job in jobs {
            let value = (problem.log_likelihood)(&job.theta);
            let outcome = Outcome::from_log_likelihood(&job.theta, value);
            engine.apply(&Event::Told(Told::new(job.id, outcome)))?;
        }
        readings.extend(read(&engine, problem.log_z)?);
    }
}

/// None while every likelihood seen is zero.
fn read(engine: &Engine, log_z: f64) -> Result<Option<Reading>> {
    let current = match engine.current() {
        Err(Error::NoFiniteValue { .. }) => return Ok(None),
        current => current?,
    };
    let root = current.surrogate.warped().filter(|surrogate| surrogate.model() != Model::Plain);
    let moments = match root {
        Some(surrogate) => Some(Judged::new(&surrogate.estimate_as(Model::WsabiM)?, log_z)),
        None => None,
    };
    let own = Judged::new(&current.estimate, log_z);
    let lengthscales = &current.believed.lengthscales;
    let evaluations = engine.ledger().entries().len();
    Ok(Some(Reading {
        batches: engine.ledger().batches().len(),
        evaluations,
        initial: evaluations < engine.initial_size(),
        own,
        model: Judged { sd: Some(current.model_sd).filter(|v| v.is_finite()), ..own },
        moments,
        sigma2: current.believed.sigma2,
        lengthscale: (lengthscales.iter().map(|l| l.ln()).sum::<f64>() / lengthscales.len() as f64).exp(),
        fallbacks: engine.fallbacks(),
    }))
}

/// The first reading that is not `outside`, nor is any after it; none if the last one is.
pub fn for_good<T>(readings: &[T], outside: impl Fn(&T) -> bool) -> Option<&T> {
    readings.get(readings.iter().rposition(outside).map_or(0, |last| last + 1))
}

/// The first reading whose error is below `tolerance` and after which it stays there to the end; none if that never happens.
#[must_use]
pub fn reached_for_good(
    readings: &[Reading],
    tolerance: f64,
    judged: impl Fn(&Reading) -> Option<Judged>,
) -> Option<&Reading> {
    for_good(readings, |r| judged(r).is_none_or(|j| j.distance() > tolerance))
}

/// The evaluations that this took; infinite if it never happened.
#[must_use]
pub fn evaluations_to(readings: &[Reading], tolerance: f64) -> f64 {
    reached_for_good(readings, tolerance, |r| Some(r.own)).map_or(f64::INFINITY, |r| r.evaluations as f64)
}
