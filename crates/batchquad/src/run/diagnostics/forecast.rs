//! What was predicted for each batch before it was evaluated.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    belief::{any::Earlier, log::Found, surrogate::Predicted},
    error::Result,
    points::Points,
    run::engine::Engine,
    types::JobId,
};

/// A value of a batch beside what was expected of it: predicted from all that was asked before the batch, with the
/// hyperparameters recorded with it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Forecast {
    /// The job.
    pub id: JobId,
    /// The batch that it belongs to, the first being 0.
    pub batch: usize,
    /// The log-likelihood that came back.
    pub observed: f64,
    /// The log-likelihood at the predicted mean of the Gaussian process.
    pub predicted: f64,
    /// The log-likelihood two standard deviations of the Gaussian process below; −∞ where that is zero or less.
    pub low: f64,
    /// The same two above.
    pub high: f64,
    /// How many standard deviations the Gaussian process was off.
    pub standardised: f64,
}

/// The most multiplications spent on factorising earlier beliefs again: about a second.
const MOST: f64 = 1e10;

/// Every forecast of the run, or those of every so many batches where all would take too long; and of how many one was
/// taken.
pub(super) fn forecasts(engine: &Engine) -> Result<(Vec<Forecast>, usize)> {
    if engine.repeats().is_empty() {
        return of_run(engine);
    }
    // Each run forecasts by itself; its batches have other numbers among those of all.
    let batches = engine.ledger().batches().iter().enumerate();
    let numbers: BTreeMap<JobId, usize> =
        batches.flat_map(|(k, asked)| asked.jobs.iter().map(move |job| (job.id, k))).collect();
    let (mut all, mut widest) = (Vec::new(), 1);
    for run in engine.repeats() {
        let (found, stride) = of_run(run)?;
        all.extend(found.into_iter().map(|f| Forecast { batch: numbers.get(&f.id).copied().unwrap_or(f.batch), ..f }));
        widest = widest.max(stride);
    }
    all.sort_by_key(|f| (f.batch, f.id));
    Ok((all, widest))
}

fn of_run(engine: &Engine) -> Result<(Vec<Forecast>, usize)> {
    let history = engine.history();
    let cost: f64 = history.iter().map(|round| (round.belief.values as f64).powi(3) / 3.0).sum();
    let stride = (cost / MOST).ceil().max(1.0) as usize;
    // From the end, so that the last batch is always among them.
    let mut chosen: Vec<_> = history.iter().rev().step_by(stride).collect();
    chosen.reverse();
    let batches = engine.ledger().batches();
    let mut all = Vec::new();
    for round in chosen {
        let Some(asked) = batches.get(round.batches) else { continue };
        let mut points = Vec::new();
        for job in &asked.jobs {
            if let Some((value, sd)) = engine.ledger().entry(job.id)?.values().next() {
                let noise = sd.or(engine.settings().noise_sd).unwrap_or(0.0);
                let found = Found { value, noise, given: sd.is_some() };
                points.push((job.id, found, engine.latent_of(job.id)?));
            }
        }
        if let (Some(first), false) = (asked.jobs.first(), points.is_empty()) {
            let belief = engine.belief_before(first.id, &round.belief)?;
            all.extend(of_batch(round.batches, &belief, &points)?);
        }
    }
    Ok((all, stride))
}

fn of_batch(batch: usize, belief: &Earlier, points: &[(JobId, Found, &[f64])]) -> Result<Vec<Forecast>> {
    let latent = Points::from_rows(&points.iter().map(|(_, _, u)| *u).collect::<Vec<_>>())?;
    let found: Vec<Found> = points.iter().map(|(_, observed, _)| *observed).collect();
    let predicted = belief.forecast(&latent, &found)?;
    let forecast = |(i, p): (usize, &Predicted)| {
        let (id, Found { value: observed, .. }, _) = points[i];
        Forecast { id, batch, observed, predicted: p.mean, low: p.low, high: p.high, standardised: p.standardised }
    };
    Ok(predicted.iter().enumerate().map(forecast).collect())
}
