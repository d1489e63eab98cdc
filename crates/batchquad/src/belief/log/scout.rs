//! What may be where nobody has looked: a process on all values in the coordinates of the prior. `MATH.md` §15.

use serde::{Deserialize, Serialize};

use super::{
    cells::Cells,
    fit::{Limits, fit},
    integral::laplace,
    known::{Known, log_prior, typical_depth},
    peak::{MORE, Peak},
    process::{Data, Hyper, Process},
    settle::possible,
    view::{Region, View},
};
use crate::{
    error::{Error, Result},
    numeric::{
        log_sum::log_sum_exp,
        normal::{cdf, log_cdf},
        quantile::normal_quantile,
        sobol::SobolSequence,
    },
    points::{Points, square_distance},
};

/// The smallest share of the prior that the process can resolve.
const LEAST_SHARE: f64 = 1e-3;

/// Draws from the prior at which the process is asked what may be there.
const DRAWS: usize = 512;

/// Nodes from which the climb to its maxima begins.
const CLIMBS: usize = 32;

/// The variance of `log ℓ` from which on a place is unknown.
pub(crate) const UNKNOWN: f64 = 1.0;

/// A maximum is of interest only so far beyond the outermost node, in prior standard deviations.
const BEYOND: f64 = 0.5;

/// The process, and what it makes us expect.
#[derive(Debug, Clone)]
pub(crate) struct Scout {
    pub(crate) view: View,
    pub(crate) process: Process,
    /// Maxima of its mean where the posterior is not known, with what they may add to `Z`, relative to it; the largest first.
    pub(crate) suspects: Vec<(f64, Vec<f64>)>,
    /// What may be unseen, relative to `Z`.
    pub(crate) unseen: f64,
    /// The probability that the likelihood at a draw from the prior is larger than all that were seen.
    pub(crate) chance: f64,
    /// The share of the prior in the largest ball without a node.
    pub(crate) empty: f64,
}

/// What has been found, as the scout has to know it.
pub(crate) struct Seen<'a> {
    pub(crate) known: &'a Known,
    pub(crate) cells: &'a Cells,
    pub(crate) peaks: &'a [Peak],
    pub(crate) log_z: f64,
}

impl Seen<'_> {
    /// The logarithm of the probability that the likelihood is not zero at latent points.
    fn log_support(&self, latent: &[Vec<f64>]) -> Result<Vec<f64>> {
        self.by_peak(latent, |peak, own| {
            Ok(peak.support.as_ref().map_or(vec![0.0; own.len()], |s| s.log_probability(own)))
        })
    }

    /// The variance of the process of the peak to which each latent point belongs.
    fn variance(&self, latent: &[Vec<f64>]) -> Result<Vec<f64>> {
        self.by_peak(latent, |peak, own| Ok(peak.process.predict(own).variance))
    }

    fn by_peak(&self, latent: &[Vec<f64>], what: impl Fn(&Peak, &Points) -> Result<Vec<f64>>) -> Result<Vec<f64>> {
        let mut all = vec![0.0; latent.len()];
        let cell: Vec<usize> = latent.iter().map(|u| self.cells.at(u)).collect();
        for (k, peak) in self.peaks.iter().enumerate() {
            let which: Vec<usize> = (0..latent.len()).filter(|&i| cell[i] == k).collect();
            if which.is_empty() {
                continue;
            }
            let own: Vec<Vec<f64>> = which.iter().map(|&i| peak.view.enter(&latent[i])).collect();
            which.into_iter().zip(what(peak, &Points::from_rows(&own)?)?).for_each(|(i, v)| all[i] = v);
        }
        Ok(all)
    }
}

pub(crate) fn home(d: usize) -> Result<View> {
    View::new(Region::round(&vec![0.0; d], 1.0)).ok_or_else(|| Error::Numerical {
        what: "coordinates of the prior".into(),
        reason: "they are not positive definite".into(),
    })
}

/// The hyperparameters of the scout, and the bend of what it sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScoutRecipe {
    #[serde(flatten)]
    hyper: Hyper,
    /// Whether it sees the prior in the coordinates in which the posterior is straight.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    bent: bool,
    /// How many values they were searched for with.
    #[serde(default)]
    fitted: usize,
}

/// All values, compressed. Likelihoods of zero are no part of them where a [`Support`] knows of them.
fn data(known: &Known, main: &Peak, bent: bool) -> Result<Data> {
    let view = home(known.dim())?;
    let data = known.compressed(&view, typical_depth(known.dim()), main.support.is_none())?.0;
    let bend = main.process.data.bend.as_ref().filter(|_| bent).and_then(|bend| bend.moved(&main.view, &view));
    Ok(Data { bend, ..data })
}

/// What fits all values best. The coordinates in which the posterior is straight are tried where there is but one peak.
pub(crate) fn search(known: &Known, peaks: &[Peak], last: Option<&ScoutRecipe>, thorough: bool) -> Result<ScoutRecipe> {
    let main = &peaks[0];
    if let Some(last) = last
        && !thorough
        && main.recipe.arrived
        && (known.len() as f64) < MORE * last.fitted as f64
        && last.hyper.noise <= known.noise_cap()
        && (!last.bent || peaks.len() == 1 && main.process.data.bend.is_some())
        && possible(Process::new(last.hyper.clone(), data(known, main, last.bent)?))?.is_some()
    {
        return Ok(last.clone());
    }
    let made = |bent: bool| {
        let warm = last.filter(|l| l.bent == bent).map(|l| &l.hyper);
        fit(&data(known, main, bent)?, warm, thorough, Limits::of_noise(known.noise_cap()))
    };
    let plain = made(false)?;
    let bent = if peaks.len() == 1 && main.process.data.bend.is_some() { possible(made(true))? } else { None };
    let fitted = known.len();
    Ok(match bent.filter(|b| b.objective > plain.objective) {
        Some(bent) => ScoutRecipe { hyper: bent.process.hyper, bent: true, fitted },
        None => ScoutRecipe { hyper: plain.process.hyper, bent: false, fitted },
    })
}

impl Scout {
    /// With hyperparameters that are known.
    pub(crate) fn new(recipe: &ScoutRecipe, seen: &Seen<'_>, seed: u64) -> Result<Self> {
        let known = seen.known;
        let view = home(known.dim())?;
        let process = Process::new(recipe.hyper.clone(), data(known, &seen.peaks[0], recipe.bent)?)?;
        let suspects = suspects(&process, seen)?;
        let share = view_share(&seen.peaks[0].recipe.posterior);
        let (mass, chance) = everywhere(&process, seen, share, seed)?;
        let empty = emptiest(known, seed)?;
        Ok(Self { view, process, suspects, unseen: share * mass, chance, empty })
    }
}

/// The share of the prior in the largest ball, in probabilities, around one of the draws from the prior that has no node in it.
fn emptiest(known: &Known, seed: u64) -> Result<f64> {
    let share = |u: &[f64]| u.iter().map(|v| cdf(*v)).collect::<Vec<f64>>();
    let draws: Vec<Vec<f64>> = prior_points(known.dim(), DRAWS, seed, 0)?.iter().map(|u| share(u)).collect();
    let nodes: Vec<Vec<f64>> = known.nodes.rows().map(share).collect();
    let gap = |p: &Vec<f64>| nodes.iter().map(|t| square_distance(p, t)).fold(f64::INFINITY, f64::min);
    let largest = draws.iter().map(|p| (gap(p), p)).max_by(|a, b| a.0.total_cmp(&b.0));
    let inside = largest.map_or(0, |(gap, centre)| draws.iter().filter(|p| square_distance(p, centre) < gap).count());
    Ok(inside as f64 / DRAWS as f64)
}

/// Maxima of the mean at places that the process of the posterior does not know, with `E[min(e^t, 1)]` for `t ~ N(m, v)`, `m` and `v` those of the
/// scout relative to the best node: as large as the peak that was found if it is as high and as wide.
fn suspects(process: &Process, seen: &Seen<'_>) -> Result<Vec<(f64, Vec<f64>)>> {
    let known = seen.known;
    let mut order: Vec<usize> = (0..known.len()).filter(|&i| known.depth[i].is_finite()).collect();
    order.sort_by(|&a, &b| known.depth[a].total_cmp(&known.depth[b]));
    let place = |i: usize| known.nodes.row(i).to_vec();
    // Nodes that are no part of what is known well.
    let variance = seen.variance(&order.iter().map(|&i| place(i)).collect::<Vec<_>>())?;
    let mut starts: Vec<Vec<f64>> =
        order.iter().zip(&variance).filter(|(_, v)| **v > UNKNOWN).map(|(&i, _)| place(i)).collect();
    starts.extend(order.iter().take(4).map(|&i| place(i)));
    starts.truncate(CLIMBS);
    let farthest = known.nodes.rows().flatten().fold(0.0_f64, |r, v| r.max(v.abs()));
    let mut summits: Vec<Vec<f64>> = laplace(process, &starts, BEYOND)?.into_iter().map(|mode| mode.1).collect();
    summits.retain(|u| u.iter().all(|v| v.abs() <= farthest + BEYOND));
    if summits.is_empty() {
        return Ok(Vec::new());
    }
    let near = seen.variance(&summits)?;
    let there = process.predict(&Points::from_rows(&summits)?);
    let supported = seen.log_support(&summits)?;
    let mut suspects = Vec::new();
    for (i, u) in summits.into_iter().enumerate() {
        if near[i] > UNKNOWN && there.variance[i] > 0.1 * UNKNOWN {
            let mass = (log_expected_minimum(there.mean[i], there.variance[i], 0.0) + supported[i]).exp();
            suspects.push((mass, u));
        }
    }
    suspects.sort_by(|a, b| b.0.total_cmp(&a.0));
    Ok(suspects)
}

/// `count` quasi-random points of the prior, others for every `address`.
pub(crate) fn prior_points(d: usize, count: usize, seed: u64, address: u64) -> Result<Vec<Vec<f64>>> {
    let sobol = SobolSequence::new(d, seed ^ 0x5eed)?;
    let first = (address as u32).wrapping_mul(count as u32) % (1 << 30);
    Ok((0..count as u32).map(|i| sobol.point(first + i).iter().map(|p| normal_quantile(*p)).collect()).collect())
}

/// The volume of the posterior in prior standard deviations, at most one: a peak that nobody has seen is taken to be as wide as those that have been.
/// Zero where they are so narrow that the scout, which sees the whole prior, cannot tell.
fn view_share(posterior: &Region) -> f64 {
    let share = View::new(posterior.clone()).map_or(0.0, |view| view.log_volume.min(0.0).exp());
    if share < LEAST_SHARE { 0.0 } else { share }
}

/// What the scout expects, relative to `Z`, where it knows next to nothing: `E[min(ℓ, most)]` over the draws from the prior at which the variance of
/// `log ℓ` is above one; and the probability `P[ℓ > largest ℓ seen]` over the same draws. With `most` a peak that is as wide as those that were seen,
/// `share` of the prior, is no larger than they are together, and it is no higher.
fn everywhere(process: &Process, seen: &Seen<'_>, share: f64, seed: u64) -> Result<(f64, f64)> {
    let known = seen.known;
    let draws = prior_points(known.dim(), DRAWS, seed, known.len() as u64)?;
    let there = process.predict(&Points::from_rows(&draws)?);
    let supported = seen.log_support(&draws)?;
    let most = known.largest_likelihood.min(seen.log_z - share.ln());
    let (mut sum, mut chance) = (0.0, 0.0);
    for (i, u) in draws.iter().enumerate() {
        if there.variance[i] > UNKNOWN {
            let log_likelihood = known.best + there.mean[i] - log_prior(u);
            let expected = log_expected_minimum(log_likelihood, there.variance[i], most);
            sum += (expected + supported[i] - seen.log_z).exp();
            let above = (log_likelihood - known.largest_likelihood) / there.variance[i].sqrt();
            chance += cdf(above) * supported[i].exp();
        }
    }
    Ok((sum / DRAWS as f64, chance / DRAWS as f64))
}

/// `log E[min(eᵗ, eᶜ)]` for `t ~ N(m, v)`: `e^{m + v/2} Φ((c − m − v)/√v) + eᶜ Φ((m − c)/√v)`.
fn log_expected_minimum(m: f64, v: f64, c: f64) -> f64 {
    let s = v.sqrt();
    log_sum_exp(&[m + 0.5 * v + log_cdf((c - m - v) / s), c + log_cdf((m - c) / s)])
}
