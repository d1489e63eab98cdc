//! The integral of the surrogate by importance sampling with control variates. `MATH.md` §15.

use super::{
    bend::Bend,
    cells::Cell,
    controls::{SHIFTS, between_shifts, controlled},
    density::log_densities,
    own::Straight,
    process::Process,
    proposal::{Draws, Normal, Proposal, deficient, refine},
    support::Support,
    view::View,
};
use crate::{
    error::{Error, Result},
    interrupt::check,
    numeric::{
        linalg::{Factor, Matrix},
        log_sum::log_add,
        optim::{Ascent, Bounds, maximise},
        parallel::pieces,
    },
    points::{Points, square_distance},
};

/// Points per block of predictions.
const BLOCK: usize = 128;

/// The process with what bounds it.
pub(crate) struct Target<'a> {
    pub(crate) process: &'a Process,
    /// Its coordinates.
    pub(crate) view: &'a View,
    /// `log` of the largest density above the prior's that is credible.
    pub(crate) ceiling: f64,
    /// Where the likelihood is not zero, if it is zero at nodes in the midst of the posterior.
    pub(crate) support: Option<&'a Support>,
    /// Outside of it there is nothing, if there is one.
    pub(crate) cell: Option<Cell<'a>>,
}

impl Target<'_> {
    fn contains(&self, x: &[f64]) -> bool {
        self.cell.is_none_or(|cell| cell.contains(&self.view.leave(x)))
    }

    /// The mean of the process, below the ceiling.
    pub(crate) fn levels(&self, points: &Points) -> Result<Vec<f64>> {
        check()?;
        let d = points.dim();
        let prior = (1.0, self.view.prior.clone());
        pieces(points.as_slice(), BLOCK * d, points.len() * self.process.len(), |chunk| {
            let block = Points::new(d, chunk.to_vec())?;
            let mut levels: Vec<f64> = self.process.mean(&block);
            let prior = log_densities(std::slice::from_ref(&prior), &block);
            for ((x, m), prior) in block.rows().zip(&mut levels).zip(prior) {
                *m = if self.contains(x) { m.min(self.ceiling + prior) } else { f64::NEG_INFINITY };
            }
            if let Some(support) = self.support {
                levels.iter_mut().zip(support.log_probability(&block)).for_each(|(m, p)| *m += p);
            }
            Ok(levels)
        })
    }
}

/// The integral of the surrogate, with the sample that it rests on.
#[derive(Debug, Clone)]
pub(crate) struct Integral {
    /// `log ∫ e^{m + v/2} dx`, in the coordinates of the frame.
    pub(crate) log_mass: f64,
    /// The standard error of that by the sampling alone.
    pub(crate) monte_carlo: f64,
    /// The effective share of the sample.
    pub(crate) effective: f64,
    pub(crate) points: Points,
    /// The mean of the process at each point, below the ceiling.
    pub(crate) levels: Vec<f64>,
    /// `log` density of the proposal at each point.
    pub(crate) log_proposal: Vec<f64>,
    /// Normalised weights.
    pub(crate) weights: Vec<f64>,
    pub(crate) mean: Vec<f64>,
    /// Row by row.
    pub(crate) covariance: Vec<f64>,
    pub(crate) proposal: Proposal,
    /// The largest mean found by climbing.
    pub(crate) top: f64,
    /// The maxima of the mean, the largest first.
    pub(crate) modes: Vec<Mode>,
}

/// A maximum of the mean: its height, where it is, and the normal distribution of its curvature if there is one.
pub(crate) type Mode = (f64, Vec<f64>, Option<Normal>);

/// Local maxima of the mean with the normal distributions of their curvature.
pub(crate) fn laplace(process: &Process, starts: &[Vec<f64>], radius: f64) -> Result<Vec<Mode>> {
    modes(|x, with_hessian| process.jet(x, with_hessian), process.dim(), starts, radius)
}

/// The same of the density of the coordinates that are straight to the process.
fn straight_laplace(target: &Target<'_>, bend: &Bend, starts: &[Vec<f64>]) -> Result<Vec<Mode>> {
    let starts: Vec<Vec<f64>> = starts.iter().map(|x| bend.at(x)).collect();
    let process = target.process;
    let Some(back) = bend.back() else { return Ok(Vec::new()) };
    let mut found = modes(|z, with_hessian| process.straight_jet(z, with_hessian), process.dim(), &starts, 3.0)?;
    found.retain(|mode| {
        let mut x = mode.1.clone();
        back.curve(&mut x);
        target.contains(&x)
    });
    Ok(found)
}

fn modes(
    jet: impl Fn(&[f64], bool) -> (f64, Vec<f64>, Vec<f64>),
    d: usize,
    starts: &[Vec<f64>],
    radius: f64,
) -> Result<Vec<Mode>> {
    let ascent = Ascent { max_evaluations: 60, gradient_tolerance: 1e-4, value_tolerance: 1e-6, max_step: 1.0 };
    let reach = starts.iter().flatten().fold(radius, |r, v| r.max(v.abs() + radius));
    let bounds = Bounds::cube(d, -reach, reach)?;
    let summits = maximise(starts, &bounds, ascent, |trials| {
        Ok(trials
            .iter()
            .map(|x| {
                let (value, gradient, _) = jet(x, false);
                (value, gradient)
            })
            .collect())
    })?;
    let mut found: Vec<Mode> = Vec::new();
    let mut sorted: Vec<_> = summits.into_iter().filter(|s| s.value.is_finite()).collect();
    sorted.sort_by(|a, b| b.value.total_cmp(&a.value));
    for summit in sorted {
        let (_, _, hessian) = jet(&summit.x, true);
        let precision = Matrix::from_fn(d, d, |i, j| -hessian[i * d + j]);
        let normal = Factor::exact("curvature", &precision).ok().and_then(|factor| {
            let inverse = factor.into_inverse_lower();
            let covariance: Vec<f64> =
                (0..d * d).map(|k| inverse.get((k / d).max(k % d), (k / d).min(k % d))).collect();
            Normal::with_covariance(summit.x.clone(), &covariance)
        });
        let same = found.iter().any(|(_, x, n)| match n {
            Some(n) => n.white(&summit.x).iter().map(|z| z * z).sum::<f64>() < 0.1,
            None => square_distance(x, &summit.x) < 1e-4,
        });
        if !same {
            found.push((summit.value, summit.x, normal));
        }
    }
    Ok(found)
}

/// Draws per round of adaptation.
const ROUND: usize = 1024;

/// Most rounds of adaptation.
const ROUNDS: usize = 6;

/// Adaptation ends at this effective share.
const GOOD: f64 = 0.9;

fn effective(weights: &[f64]) -> f64 {
    let (sum, squares) = weights.iter().fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
    if squares > 0.0 { sum * sum / squares } else { 0.0 }
}

/// `exp(power · (l − max l))`.
fn tempered(logs: &[f64], power: f64) -> Vec<f64> {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return vec![0.0; logs.len()];
    }
    logs.iter().map(|l| (power * (l - largest)).exp()).collect()
}

/// Maxima of a surrogate, and a proposal that has adapted to it.
#[derive(Debug, Clone)]
pub(crate) struct Adapted {
    proposal: Proposal,
    top: f64,
    modes: Vec<Mode>,
}

/// Adapts a proposal to the surrogate. `starts` are where the climb to its maxima begins. Its components are normal in the coordinates of a `bend`, or else in those
/// that are straight to the process.
pub(crate) fn adapt(target: &Target<'_>, starts: &[Vec<f64>], bend: Option<&Bend>, seed: u64) -> Result<Adapted> {
    let d = target.process.dim();
    let mut modes = laplace(target.process, starts, 3.0)?;
    modes.retain(|mode| target.contains(&mode.1));
    let top = modes.first().map_or(f64::NEG_INFINITY, |m| m.0);
    // In the coordinates of another bend the posterior is about N(0, I).
    let own = target.process.data.bend.as_ref().and_then(Straight::bend);
    let straight = match (bend, own) {
        (Some(_), _) => Some(Vec::new()),
        (None, Some(own)) => Some(straight_laplace(target, own, starts)?),
        (None, None) => None,
    };
    let bend = bend.or(own);
    let unit: Vec<f64> = (0..d * d).map(|k| if k / d == k % d { 1.0 } else { 0.0 }).collect();
    let frame = Normal::new(vec![0.0; d], unit);
    let mut components: Vec<(f64, Normal)> = vec![(0.3, frame)];
    for (value, _, normal) in straight.as_ref().unwrap_or(&modes).iter().take(6) {
        if let Some(normal) = normal {
            components.push((value - normal.log_norm(), normal.clone()));
        }
    }
    // Shares by Laplace's masses, none below a twentieth of the largest.
    let largest = components[1..].iter().map(|c| c.0).fold(f64::NEG_INFINITY, f64::max);
    for c in &mut components[1..] {
        c.0 = (c.0 - largest).exp().max(0.05);
    }
    let mut proposal = Proposal::new(components, &target.view.prior, bend);
    let mut all: Option<Draws> = None;
    let mut levels: Vec<f64> = Vec::new();
    // The logarithm of the sum of the densities of all proposals, at all points.
    let mut drawn: Vec<f64> = Vec::new();
    let mut used: Vec<Proposal> = Vec::new();
    let mut best: Option<(f64, Proposal)> = None;
    for round in 0..ROUNDS {
        proposal = proposal.rounded(ROUND);
        let new = proposal.draw(ROUND, 1, seed, round as u64 + 1)?;
        let log = target.levels(&new.points)?;
        let mut density = proposal.log_densities(&new);
        let own: Vec<f64> = log.iter().zip(&density).map(|(l, q)| l - q).collect();
        let share = effective(&tempered(&own, 1.0)) / ROUND as f64;
        if best.as_ref().is_none_or(|b| share > b.0) {
            best = Some((share, proposal.clone()));
        }
        if share > GOOD || round + 1 == ROUNDS {
            break;
        }
        // Everything drawn so far, weighted by the mixture of all proposals.
        for earlier in &used {
            density.iter_mut().zip(earlier.log_densities(&new)).for_each(|(sum, q)| *sum = log_add(*sum, q));
        }
        if let Some(all) = &all {
            drawn.iter_mut().zip(proposal.log_densities(all)).for_each(|(sum, q)| *sum = log_add(*sum, q));
        }
        drawn.extend(density);
        levels.extend(log);
        used.push(proposal.clone());
        let sample = match &all {
            Some(all) => all.concat(&new)?,
            None => new,
        };
        let logs: Vec<f64> = levels.iter().zip(&drawn).map(|(l, q)| l - q).collect();
        let enough = (60.0_f64).max(8.0 * d as f64).min(0.2 * logs.len() as f64);
        let mut power = 1.0;
        let mut weights = tempered(&logs, power);
        while effective(&weights) < enough && power > 1e-3 {
            power *= 0.8;
            weights = tempered(&logs, power);
        }
        let mut components = proposal.components.clone();
        deficient(&mut components, sample.straight(), &weights);
        proposal = Proposal::new(refine(components, sample.straight(), &weights, 3), &target.view.prior, bend);
        all = Some(sample);
    }
    Ok(Adapted { proposal: best.map_or(proposal, |b| b.1), top, modes })
}

/// Integrates the surrogate with draws of a proposal that has adapted to it.
pub(crate) fn integrate(target: &Target<'_>, adapted: &Adapted, draws: usize, seed: u64) -> Result<Integral> {
    let Adapted { proposal, top, modes } = adapted.clone();
    let d = target.process.dim();
    let proposal = proposal.rounded(draws / SHIFTS);
    let sample = proposal.draw(draws / SHIFTS, SHIFTS, seed, 0)?;
    let draws = sample.points.len();
    let levels = target.levels(&sample.points)?;
    let log_proposal = proposal.log_densities(&sample);
    let logs: Vec<f64> = levels.iter().zip(&log_proposal).map(|(l, q)| l - q).collect();
    let scale = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !scale.is_finite() {
        return Err(Error::Numerical {
            what: "integral of the surrogate".into(),
            reason: format!("its largest weight is exp({scale})"),
        });
    }
    let raw: Vec<f64> = logs.iter().map(|l| (l - scale).exp()).collect();
    let effective = effective(&raw) / draws as f64;
    let (mean_weight, error) = controlled(&proposal, &sample, &log_proposal, &raw)?;
    let points = sample.points;
    let total: f64 = raw.iter().sum();
    let weights: Vec<f64> = raw.iter().map(|w| w / total).collect();
    let mut mean = vec![0.0; d];
    for (x, w) in points.rows().zip(&weights) {
        mean.iter_mut().zip(x).for_each(|(m, x)| *m += w * x);
    }
    let mut covariance = vec![0.0; d * d];
    for (x, w) in points.rows().zip(&weights) {
        for a in 0..d {
            for b in 0..d {
                covariance[a * d + b] += w * (x[a] - mean[a]) * (x[b] - mean[b]);
            }
        }
    }
    Ok(Integral {
        log_mass: scale + mean_weight.ln(),
        monte_carlo: error / mean_weight,
        effective,
        points,
        levels,
        log_proposal,
        weights,
        mean,
        covariance,
        proposal,
        top,
        modes,
    })
}

/// How many more draws sharpen an integral, unless they would take more than so many kernel values.
const SHARPER: usize = 8;
const MOST_KERNELS: usize = 40_000_000;

impl Integral {
    /// Integrates the same surrogate with more draws of the same proposal, if the sampling leaves more open than the `share` of `sd`. The sample stays.
    pub(crate) fn sharpen(&mut self, target: &Target<'_>, (share, sd): (f64, f64), seed: u64) -> Result<()> {
        let count = SHARPER * self.points.len() / SHIFTS;
        if self.monte_carlo <= share * sd || SHIFTS * count * target.process.len() > MOST_KERNELS {
            return Ok(());
        }
        let proposal = self.proposal.clone().rounded(count);
        // A shift at a time, so that the draws are never held together.
        let mut means = Vec::new();
        let largest = self.levels.iter().zip(&self.log_proposal).map(|(l, q)| l - q).fold(f64::NEG_INFINITY, f64::max);
        for shift in 0..SHIFTS {
            let draws = proposal.draw(count, 1, seed, SHARPEN | shift as u64)?;
            let levels = target.levels(&draws.points)?;
            let logs = levels.iter().zip(proposal.log_densities(&draws));
            means.push(logs.map(|(l, q)| (l - q - largest).exp()).sum::<f64>() / count as f64);
        }
        let mean = means.iter().sum::<f64>() / SHIFTS as f64;
        let error = between_shifts(&means, mean) / mean;
        if error < self.monte_carlo {
            self.log_mass = largest + mean.ln();
            self.monte_carlo = error;
        }
        Ok(())
    }
}

/// Where the addresses of the nets begin that sharpen an integral.
const SHARPEN: u64 = 1 << 20;

/// `count` points of the sample, drawn by their weights at equal distances: an equally weighted sample of the surrogate's posterior.
pub(crate) fn resample(weights: &[f64], count: usize, offset: f64) -> Vec<usize> {
    let total: f64 = weights.iter().sum();
    let mut chosen = Vec::with_capacity(count);
    let (mut sum, mut k) = (0.0, 0);
    for (i, w) in weights.iter().enumerate() {
        sum += w / total;
        while k < count && sum > (k as f64 + offset) / count as f64 {
            chosen.push(i);
            k += 1;
        }
    }
    while chosen.len() < count {
        chosen.push(weights.len().saturating_sub(1));
    }
    chosen
}

/// The square root of the posterior as weights of the sample, the largest of them one.
pub(crate) fn root_weights(integral: &Integral) -> Vec<f64> {
    let logs: Vec<f64> = integral.levels.iter().zip(&integral.log_proposal).map(|(l, q)| 0.5 * l - q).collect();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    logs.iter().map(|l| (l - largest).exp()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resampling_is_by_weight() {
        let chosen = resample(&[0.1, 0.0, 0.6, 0.3], 10, 0.5);
        let count = |i: usize| chosen.iter().filter(|c| **c == i).count();
        assert_eq!([count(0), count(1), count(2), count(3)], [1, 0, 6, 3]);
    }
}
