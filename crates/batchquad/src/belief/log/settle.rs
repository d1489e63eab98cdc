//! The process on the values that matter: hyperparameters, the values that join, the coordinates in which the posterior is straight. `MATH.md` §15.

use super::{
    bend::Bend,
    fit::{Fitted, Limits, fit},
    integral::{Integral, resample},
    known::Known,
    own::{Own, Straight},
    process::{Data, Hyper, Process},
    support::Support,
    view::View,
};
use crate::error::{Error, Result};

/// Points of the posterior's sample that a bend is fitted to, and how many nats it has to gain at each, to be tried.
const BENT: usize = 512;
const WORTH: f64 = 0.01;

/// A bend is kept if it raises the marginal likelihood by so many nats, and so many for each of its coefficients.
const EVIDENT: f64 = 4.0;
const PER: f64 = 1.0;

/// A new value that is so many standard deviations off where it was expected asks for new hyperparameters.
const SURPRISING: f64 = 3.0;

/// What can be computed; none where a matrix cannot be factorised.
pub(super) fn possible<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(Error::Numerical { .. } | Error::NotPositiveDefinite { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// A process with what it was told, and where the likelihood is not zero.
pub(super) struct Settled {
    pub(super) process: Process,
    /// How well the first fit, without those that joined, explains the values.
    objective: f64,
    pub(super) active: Vec<usize>,
    pub(super) support: Option<Support>,
}

/// The best fit with that much doubt about the quadratic.
fn doubtful(data: &Data, warm: Option<&Hyper>, thorough: bool, noise_cap: f64) -> Result<Fitted> {
    let least = data.doubt(warm.map_or(0.0, |hyper| hyper.noise));
    let found = fit(data, warm, thorough, Limits { noise_cap, least_quadratic: least })?;
    let hyper = &found.process.hyper;
    let needed = data.doubt(hyper.noise);
    if needed <= 1.5 * least.max(hyper.quadratic) {
        return Ok(found);
    }
    let hyper = Hyper { quadratic: needed, ..hyper.clone() };
    fit(data, Some(&hyper), false, Limits { noise_cap, least_quadratic: needed })
}

/// A fit on the values that matter; others join where the fit contradicts them. Likelihoods of zero where the fit expects much are the business of a
/// [`Support`]: a smooth process cannot fall off a cliff.
pub(super) fn settle(
    known: &Known,
    view: &View,
    bend: Option<&Straight>,
    (warm, warm_support): (Option<&Hyper>, Option<&Hyper>),
    thorough: bool,
) -> Result<Settled> {
    let near = known.near();
    let mut support = None;
    let cap = known.noise_cap();
    let mut active: Vec<usize> = Vec::new();
    let first = doubtful(&known.near_data(view, &near, &active, bend)?, warm, thorough, cap)?;
    let (mut process, objective) = (first.process, first.objective / first.share);
    for round in 0..3 {
        let mut more = known.contradicted(view, &process, &near, &active)?;
        if support.is_none() && more.iter().any(|&i| known.depth[i].is_infinite()) {
            support = Some(Support::fit(&known.distances(view, &near)?, warm_support)?);
        }
        more.retain(|&i| known.depth[i].is_finite());
        if more.is_empty() {
            break;
        }
        active.extend(more);
        let data = known.near_data(view, &near, &active, bend)?;
        process = if round == 0 {
            doubtful(&data, Some(&process.hyper.clone()), false, cap)?.process
        } else {
            Process::new(process.hyper, data)?
        };
    }
    Ok(Settled { process, objective, active, support })
}

/// The process with the hyperparameters of before, where that will do: no new value, those from number `first` on, surprises it, and none of those left out
/// contradicts it.
pub(super) fn keep(
    known: &Known,
    view: &View,
    bend: Option<&Straight>,
    (hyper, active): (&Hyper, &[usize]),
    first: usize,
) -> Result<Option<Settled>> {
    let near = known.near();
    if hyper.noise > known.noise_cap() || active.iter().any(|&i| !near.leaves_out(i)) {
        return Ok(None);
    }
    let Some(process) = possible(Process::new(hyper.clone(), known.near_data(view, &near, active, bend)?))? else {
        return Ok(None);
    };
    if !known.contradicted(view, &process, &near, active)?.is_empty() {
        return Ok(None);
    }
    let precision = process.factor.inverse_diagonal();
    let off = |i: usize| process.weights[i].abs() / precision[i].sqrt();
    if near.places(first).any(|i| off(i) > SURPRISING) {
        return Ok(None);
    }
    Ok(Some(Settled { process, objective: f64::NAN, active: active.to_vec(), support: None }))
}

/// The process with the hyperparameters of before, whatever the new values say; those that it contradicts join. None where likelihoods of zero do: they ask
/// for a [`Support`].
pub(super) fn insist(
    known: &Known,
    view: &View,
    bend: Option<&Straight>,
    (hyper, active): (&Hyper, &[usize]),
) -> Result<Option<Settled>> {
    let near = known.near();
    let made = |active: &[usize]| possible(Process::new(hyper.clone(), known.near_data(view, &near, active, bend)?));
    let mut active: Vec<usize> = active.iter().copied().filter(|&i| near.leaves_out(i)).collect();
    let Some(first) = made(&active)? else { return Ok(None) };
    let more = known.contradicted(view, &first, &near, &active)?;
    if more.iter().any(|&i| known.depth[i].is_infinite()) {
        return Ok(None);
    }
    active.extend(more);
    let process = made(&active)?;
    Ok(process.map(|process| Settled { process, objective: f64::NAN, active, support: None }))
}

/// The same values in other coordinates, straight where these are bent or the other way round, if they are explained better so.
pub(super) fn straighten(
    known: &Known,
    view: &View,
    settled: &Settled,
    integral: &Integral,
    warm_support: Option<&Hyper>,
) -> Result<Option<Settled>> {
    let now_in = settled.process.data.bend.as_ref();
    let warm = (Some(&settled.process.hyper), warm_support);
    let mut best: Option<(f64, Settled)> = None;
    let sample = integral.points.select(&resample(&integral.weights, BENT, 0.5));
    let allowance = |bend: Option<&Straight>| match bend {
        Some(Straight::Bent(bend)) => EVIDENT + PER * bend.coefficients() as f64,
        _ => 0.0,
    };
    let now = settled.objective - allowance(now_in);
    let bent = Bend::fit(&sample, settled.process.len()).filter(|(_, gain)| *gain > WORTH).map(|c| Straight::Bent(c.0));
    let is_own = now_in.is_some_and(|straight| straight.bend().is_none());
    let own = if is_own { None } else { Own::new(&known.scales, view).map(Straight::Own) };
    let plain = now_in.is_some().then_some(None);
    for bend in [bent, own].iter().flatten().map(Some).chain(plain) {
        let same = now_in.map(std::mem::discriminant) == bend.map(std::mem::discriminant);
        let Some(other) = possible(settle(known, view, bend, warm, !same))? else { continue };
        let score = other.objective - allowance(bend);
        if score > now && best.as_ref().is_none_or(|b| score > b.0) {
            best = Some((score, other));
        }
    }
    Ok(best.map(|b| b.1))
}

/// A bend in whose coordinates draws are more nearly normal, whatever the process thinks of it.
pub(super) fn crooked(integral: &Integral) -> Option<Bend> {
    let sample = integral.points.select(&resample(&integral.weights, BENT, 0.5));
    Bend::fit(&sample, BENT).filter(|(_, gain)| *gain > WORTH).map(|c| c.0)
}
