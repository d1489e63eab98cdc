//! Truths without a closed form: importance sampling from a mixture that was fitted to the posterior.

use anyhow::{Context, Result, ensure};
use batchquad::numeric::{SobolSequence, normal};

use super::{
    climb::{Joint, Peak, peaks},
    dice::{dot, log_student},
};
use crate::{dense::Cholesky, grid::log_sum_exp};

/// The standard error that a truth must have.
pub const STANDARD_ERROR: f64 = 1e-3;

/// The standard error at which sampling stops.
const AIM: f64 = 5e-4;

/// The degrees of freedom of the parts: heavier tails than those of a normal density. The radius has a closed distribution.
const DOF: f64 = 6.0;

/// The share of the draws that come from the prior, so that nothing can be missed altogether and no weight is unbounded.
const WIDE: f64 = 0.03;

/// How much of the posterior may be left to these draws: with more, a peak is missing from the proposal.
const UNEXPLAINED: f64 = 0.05;

/// How much of the draws' number must be effective.
const EFFECTIVE: f64 = 0.05;

/// The largest share of all weights that one draw may have.
const HEAVIEST: f64 = 0.002;

/// Independent scramblings of the points: the estimates from each give the standard error.
const SCRAMBLINGS: usize = 16;

/// Rounds in which the mixture is fitted.
const ROUNDS: usize = 8;

/// Starts of the search that are drawn from the prior, and how many of the highest are climbed.
const DRAWN: (u32, usize) = (512, 8);

/// The parts around a peak: one of its width, one twice as wide, and two to either side along its longest axis, for ridges are bent.
/// How much larger the covariance is, how many standard deviations along the axis, and a share.
const AROUND: [(f64, f64, f64); 6] =
    [(1.2, 0.0, 0.5), (4.0, 0.0, 0.2), (1.2, 1.5, 0.1), (1.2, -1.5, 0.1), (1.2, 3.0, 0.05), (1.2, -3.0, 0.05)];

/// A share of the draws from Student's t.
struct Part {
    share: f64,
    mean: Vec<f64>,
    covariance: Vec<f64>,
    factor: Cholesky,
}

impl Part {
    fn log_density(&self, u: &[f64]) -> (f64, f64) {
        let away: Vec<f64> = u.iter().zip(&self.mean).map(|(a, b)| a - b).collect();
        let white = self.factor.half_solve(&away);
        let square = dot(&white, &white);
        (log_student(square, DOF, u.len(), self.factor.log_det()), square)
    }
}

/// A mixture of Student's t with the prior.
struct Proposal {
    parts: Vec<Part>,
}

impl Proposal {
    /// Some parts to each peak.
    fn around(peaks: &[Peak]) -> Option<Self> {
        let all = log_sum_exp(peaks.iter().map(|p| p.log_mass));
        let mut parts = Vec::new();
        for peak in peaks {
            let d = peak.place.len();
            // A small peak has some of the draws all the same: Laplace's method may undervalue it.
            let share = (peak.log_mass - all).exp().max(0.02);
            let axis = longest_axis(&peak.covariance, d);
            for (inflation, along, part) in AROUND {
                let covariance: Vec<f64> = peak.covariance.iter().map(|v| v * inflation).collect();
                let factor = Cholesky::new(d, |i, j| covariance[i * d + j])?;
                let mean = peak.place.iter().zip(&axis).map(|(m, a)| m + along * a).collect();
                parts.push(Part { share: share * part, mean, covariance, factor });
            }
        }
        Some(Self { parts }.scaled())
    }

    fn scaled(mut self) -> Self {
        let sum: f64 = self.parts.iter().map(|p| p.share).sum();
        self.parts.iter_mut().for_each(|p| p.share *= (1.0 - WIDE) / sum);
        self
    }

    /// The draw for a point of the unit cube with two coordinates more: which part, how far, and the directions.
    fn draw(&self, point: &[f64]) -> Vec<f64> {
        let white: Vec<f64> = point[2..].iter().map(|v| normal::quantile_of_log_cdf(v.ln())).collect();
        let mut rest = point[0];
        for part in &self.parts {
            if rest < part.share {
                let stretch = (DOF / chi_square(point[1])).sqrt();
                let white: Vec<f64> = white.iter().map(|z| z * stretch).collect();
                return part.factor.multiply(&white).iter().zip(&part.mean).map(|(a, b)| a + b).collect();
            }
            rest -= part.share;
        }
        white
    }

    fn log_density(&self, u: &[f64]) -> f64 {
        let prior: f64 = WIDE.ln() + u.iter().map(|v| normal::log_density(*v)).sum::<f64>();
        let parts: Vec<f64> = self.parts.iter().map(|p| p.share.ln() + p.log_density(u).0).collect();
        log_sum_exp(parts.into_iter().chain([prior]))
    }

    /// The mixture that fits weighted draws better (Cappé et al. 2008, with the weights of Student's t).
    fn fitted(&self, draws: &[(Vec<f64>, f64)]) -> Self {
        let d = draws.first().map_or(0, |(u, _)| u.len());
        let top = log_sum_exp(draws.iter().map(|(_, w)| *w));
        // No draw may pull a part towards itself alone.
        let cap = 5.0 / (draws.len() as f64).sqrt();
        let weighted: Vec<(&[f64], f64)> = draws.iter().map(|(u, w)| (&u[..], (w - top).exp().min(cap))).collect();
        let sum: f64 = weighted.iter().map(|w| w.1).sum();
        let all: Vec<f64> = draws.iter().map(|(u, _)| self.log_density(u)).collect();
        let mut parts = Vec::new();
        for part in &self.parts {
            let mut pulls = Vec::with_capacity(draws.len());
            let (mut share, mut pull, mut mean) = (0.0, 0.0, vec![0.0; d]);
            for ((u, w), total) in weighted.iter().zip(&all) {
                let (log, square) = part.log_density(u);
                let belongs = w / sum * (part.share.ln() + log - total).exp();
                let by = belongs * (DOF + d as f64) / (DOF + square);
                share += belongs;
                pull += by;
                mean.iter_mut().zip(*u).for_each(|(m, v)| *m += by * v);
                pulls.push((by, belongs));
            }
            mean.iter_mut().for_each(|m| *m /= pull);
            let effective = share * share / pulls.iter().map(|p| p.1 * p.1).sum::<f64>();
            let mut covariance = vec![0.0; d * d];
            for ((u, _), (by, _)) in weighted.iter().zip(&pulls) {
                for i in 0..d {
                    for j in 0..d {
                        covariance[i * d + j] += by * (u[i] - mean[i]) * (u[j] - mean[j]) / share;
                    }
                }
            }
            let factor = Cholesky::new(d, |i, j| covariance[i * d + j]);
            match factor {
                _ if share < 1e-4 => {}
                Some(factor) if effective > 6.0 * d as f64 => parts.push(Part { share, mean, covariance, factor }),
                _ => parts.push(Part {
                    share,
                    mean: part.mean.clone(),
                    covariance: part.covariance.clone(),
                    factor: part.factor.clone(),
                }),
            }
        }
        Self { parts }.scaled()
    }
}

/// The direction of the largest variance, as long as its standard deviation, by the power method.
fn longest_axis(covariance: &[f64], d: usize) -> Vec<f64> {
    let mut axis: Vec<f64> = (0..d).map(|i| covariance[i * (d + 1)].sqrt()).collect();
    let mut variance = 0.0;
    for _ in 0..50 {
        let next: Vec<f64> = covariance.chunks(d).map(|row| dot(row, &axis)).collect();
        variance = dot(&next, &next).sqrt();
        axis = next.iter().map(|v| v / variance).collect();
    }
    axis.iter().map(|v| v * variance.sqrt()).collect()
}

/// The quantile of χ² with six degrees of freedom: `1 − e⁻ʸ(1 + y + y²/2)` at `y = x/2`, by bisection.
fn chi_square(p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 50.0);
    for _ in 0..44 {
        let y: f64 = 0.5 * (low + high);
        if 1.0 - (-y).exp() * (1.0 + y + 0.5 * y * y) < p { low = y } else { high = y }
    }
    (low + high).max(1e-9)
}

/// Draws with the logarithms of their weights.
fn draws(
    joint: &Joint<'_>,
    proposal: &Proposal,
    points: &SobolSequence,
    range: std::ops::Range<u32>,
) -> Vec<(Vec<f64>, f64)> {
    let one = |index| {
        let u = proposal.draw(&points.point(index));
        let weight = joint.at(&u) - proposal.log_density(&u);
        (u, weight)
    };
    range.map(one).collect()
}

/// What sampling found.
#[derive(Debug, Clone, Copy)]
pub struct Sampled {
    /// `log Z`.
    pub log_z: f64,
    /// Its standard error.
    pub error: f64,
    /// The share of the draws that is effective.
    pub effective: f64,
    /// Draws in all.
    pub draws: usize,
}

/// `log Z` by importance sampling with at most `most` draws, from the peaks above `places` and above the highest draws from the prior.
///
/// # Errors
/// When the standard error is above [`STANDARD_ERROR`], or the weights look as if something were missing.
pub fn log_z(joint: &Joint<'_>, places: &[Vec<f64>], key: u64, most: usize) -> Result<Sampled> {
    let d = joint.prior.dim();
    let mut starts: Vec<Vec<f64>> =
        places.iter().map(|theta| joint.prior.to_latent(theta)).collect::<Result<_, _>>()?;
    let scan = SobolSequence::new(d, key)?;
    let latent = |index| scan.point(index).iter().map(|v| normal::quantile_of_log_cdf(v.ln())).collect::<Vec<f64>>();
    let mut drawn: Vec<(f64, Vec<f64>)> = (0..DRAWN.0).map(latent).map(|u| (joint.at(&u), u)).collect();
    drawn.sort_by(|a, b| b.0.total_cmp(&a.0));
    starts.extend(drawn.into_iter().take(DRAWN.1).map(|(_, u)| u));
    let peaks = peaks(joint, &starts);
    let mut proposal = Proposal::around(&peaks).context("no peak was found")?;
    let pilot = (most / 32).clamp(1024, 4096) as u32;
    for round in 0..ROUNDS {
        let points = SobolSequence::new(d + 2, key.wrapping_add(1 + round as u64))?;
        proposal = proposal.fitted(&draws(joint, &proposal, &points, 0..pilot));
    }
    let sequences: Vec<SobolSequence> = (0..SCRAMBLINGS)
        .map(|k| SobolSequence::new(d + 2, key.wrapping_add(100 + k as u64)))
        .collect::<Result<_, _>>()?;
    let mut weights: Vec<Vec<f64>> = vec![Vec::new(); SCRAMBLINGS];
    let mut unexplained = Vec::new();
    let (mut begin, mut end) = (0, 512);
    loop {
        for (sequence, weights) in sequences.iter().zip(&mut weights) {
            for (u, weight) in draws(joint, &proposal, sequence, begin..end) {
                let prior = WIDE.ln() + u.iter().map(|v| normal::log_density(*v)).sum::<f64>();
                unexplained.push(weight + prior - proposal.log_density(&u));
                weights.push(weight);
            }
        }
        let sampled = summary(&weights);
        let enough = sampled.error < AIM || 2 * end as usize * SCRAMBLINGS > most;
        if enough {
            let n = sampled.draws as f64;
            let heaviest = weights.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max) - n.ln() - sampled.log_z;
            let unexplained = (log_sum_exp(unexplained.into_iter()) - n.ln() - sampled.log_z).exp();
            ensure!(sampled.error < STANDARD_ERROR, "the standard error is {}", sampled.error);
            ensure!(sampled.effective > EFFECTIVE, "effective are {} of the draws", sampled.effective);
            ensure!(heaviest.exp() < HEAVIEST, "one draw has {} of the weight", heaviest.exp());
            ensure!(unexplained < UNEXPLAINED, "{unexplained} of the weight is away from the peaks");
            return Ok(sampled);
        }
        (begin, end) = (end, 2 * end);
    }
}

/// The mean of the weights over all scramblings and what these differ by.
fn summary(weights: &[Vec<f64>]) -> Sampled {
    let all = || weights.iter().flatten().copied();
    let draws = all().count();
    let top = log_sum_exp(all()) - (draws as f64).ln();
    let means: Vec<f64> =
        weights.iter().map(|w| w.iter().map(|v| (v - top).exp()).sum::<f64>() / w.len() as f64).collect();
    let k = means.len() as f64;
    let variance = means.iter().map(|m| (m - 1.0).powi(2)).sum::<f64>() / (k * (k - 1.0));
    let squares: f64 = all().map(|v| (2.0 * (v - top)).exp()).sum();
    Sampled { log_z: top, error: variance.sqrt(), effective: draws as f64 / squares, draws }
}
