//! Peaks of a density in the coordinates in which the prior is `N(0, I)`.

use std::f64::consts::TAU;

use batchquad::prior::Prior;

use super::{super::LogLikelihood, dice::dot};
use crate::dense::Cholesky;

/// A likelihood under a prior.
pub struct Joint<'a> {
    /// The prior.
    pub prior: &'a Prior,
    /// The likelihood.
    pub log_likelihood: &'a LogLikelihood,
}

impl Joint<'_> {
    /// `log ℓ(θ(u)) + log N(u; 0, I)`, −∞ where there is none.
    pub fn at(&self, u: &[f64]) -> f64 {
        let Ok(theta) = self.prior.to_theta(u) else { return f64::NEG_INFINITY };
        let value = (self.log_likelihood)(&theta) - 0.5 * (dot(u, u) + u.len() as f64 * TAU.ln());
        if value.is_finite() { value } else { f64::NEG_INFINITY }
    }
}

/// A maximum with the normal density that has its curvature.
#[derive(Debug)]
pub struct Peak {
    /// Where.
    pub place: Vec<f64>,
    /// The logarithm of the mass that Laplace's method gives it.
    pub log_mass: f64,
    /// The covariance, row by row.
    pub covariance: Vec<f64>,
    /// Its factor.
    pub factor: Cholesky,
}

/// The distance of the differences behind slopes and curvatures: posteriors are some hundred times wider.
const STEP: f64 = 1e-4;

/// The longest step, in prior standard deviations.
const LONGEST: f64 = 1.0;

/// Most steps.
const STEPS: usize = 80;

/// Value, slope and minus the curvature by differences; none where one of them is not finite.
fn local(joint: &Joint<'_>, u: &[f64]) -> Option<(f64, Vec<f64>, Vec<f64>)> {
    let d = u.len();
    let at = |moves: &[(usize, f64)]| {
        let mut v = u.to_vec();
        moves.iter().for_each(|&(i, by)| v[i] += by);
        joint.at(&v)
    };
    let here = joint.at(u);
    let ahead: Vec<f64> = (0..d).map(|i| at(&[(i, STEP)])).collect();
    let back: Vec<f64> = (0..d).map(|i| at(&[(i, -STEP)])).collect();
    let slope: Vec<f64> = (0..d).map(|i| (ahead[i] - back[i]) / (2.0 * STEP)).collect();
    let mut curvature = vec![0.0; d * d];
    for i in 0..d {
        curvature[i * d + i] = (2.0 * here - ahead[i] - back[i]) / (STEP * STEP);
        for j in 0..i {
            let both = at(&[(i, STEP), (j, STEP)]) + at(&[(i, -STEP), (j, -STEP)]);
            let entry = (ahead[i] + back[i] + ahead[j] + back[j] - both - 2.0 * here) / (2.0 * STEP * STEP);
            curvature[i * d + j] = entry;
            curvature[j * d + i] = entry;
        }
    }
    let all = slope.iter().chain(&curvature).all(|v| v.is_finite());
    (here.is_finite() && all).then_some((here, slope, curvature))
}

/// The peak above `start` by Newton's method, damped (Levenberg 1944, Marquardt 1963) until a step climbs; none where the density or
/// its curvature cannot be had.
pub fn climb(joint: &Joint<'_>, start: &[f64]) -> Option<Peak> {
    let d = start.len();
    let mut place = start.to_vec();
    let mut damping = 1e-3;
    for _ in 0..STEPS {
        let (here, slope, curvature) = local(joint, &place)?;
        let scale: Vec<f64> = (0..d).map(|i| curvature[i * d + i].abs().max(1.0)).collect();
        let mut gain = 0.0;
        for _ in 0..20 {
            let damped = |i: usize, j: usize| curvature[i * d + j] + if i == j { damping * scale[i] } else { 0.0 };
            let step = Cholesky::new(d, damped).map(|factor| times(&factor.inverse(), &slope));
            if let Some(step) = step {
                let shrink = (LONGEST / dot(&step, &step).sqrt()).min(1.0);
                let next: Vec<f64> = place.iter().zip(&step).map(|(a, b)| a + shrink * b).collect();
                let rise = joint.at(&next) - here;
                if rise > 0.0 {
                    (place, gain) = (next, rise);
                    damping = (damping * 0.2).max(1e-9);
                    break;
                }
            }
            damping = (damping * 4.0).min(1e6);
        }
        // Far below what matters to a proposal, far above the rounding of a sum of some hundred terms.
        if gain < 1e-7 {
            break;
        }
    }
    peak(joint, place)
}

fn peak(joint: &Joint<'_>, place: Vec<f64>) -> Option<Peak> {
    let d = place.len();
    let (here, _, curvature) = local(joint, &place)?;
    // On a ridge one of the curvatures may be of the wrong sign; the prior's own is then added until none is.
    let mut extra = 0.0;
    let precision = loop {
        let entry = |i: usize, j: usize| curvature[i * d + j] + if i == j { extra } else { 0.0 };
        if let Some(factor) = Cholesky::new(d, entry) {
            break factor;
        }
        extra = if extra == 0.0 { 1.0 } else { 2.0 * extra };
        if extra > 1e6 {
            return None;
        }
    };
    let covariance = precision.inverse();
    let factor = Cholesky::new(d, |i, j| covariance[i * d + j])?;
    let log_mass = here + 0.5 * (factor.log_det() + d as f64 * TAU.ln());
    Some(Peak { place, log_mass, covariance, factor })
}

/// A square matrix, row by row, times a vector.
fn times(matrix: &[f64], x: &[f64]) -> Vec<f64> {
    matrix.chunks(x.len()).map(|row| dot(row, x)).collect()
}

/// How many peaks are looked at: more than any family has.
const PEAKS: usize = 40;

/// Peaks whose masses are smaller than the largest by this factor (e⁻¹²) are of no account.
const NEGLIGIBLE: f64 = 12.0;

/// The different peaks above some starts, the heaviest first.
pub fn peaks(joint: &Joint<'_>, starts: &[Vec<f64>]) -> Vec<Peak> {
    let mut found: Vec<Peak> = Vec::new();
    for start in starts {
        let Some(next) = climb(joint, start) else { continue };
        let known = |p: &Peak| {
            let away: Vec<f64> = p.place.iter().zip(&next.place).map(|(a, b)| a - b).collect();
            let far = p.factor.half_solve(&away);
            dot(&far, &far) < 1.0
        };
        match found.iter().position(known) {
            Some(i) if found[i].log_mass < next.log_mass - 1.0 => found[i] = next,
            Some(_) => {}
            None => found.push(next),
        }
    }
    found.sort_by(|a, b| b.log_mass.total_cmp(&a.log_mass));
    let top = found.first().map_or(0.0, |p| p.log_mass);
    found.retain(|p| p.log_mass > top - NEGLIGIBLE);
    found.truncate(PEAKS);
    found
}
