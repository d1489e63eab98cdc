//! Evidences from draws of the posterior.

use std::borrow::Borrow;

use batchquad::numeric::Stream;

use super::{Draw, Target, log_prior};
use crate::{
    dense::{Cholesky, log_normal_density},
    grid::log_sum_exp,
};

/// The harmonic mean of likelihoods, `Z ≈ N / Σᵢ 1/ℓ(uᵢ)`; none without draws.
///
/// Its variance is infinite unless the likelihood is wide in comparison with the prior.
#[must_use]
pub fn harmonic_mean<D: Borrow<Draw>>(draws: &[D]) -> Option<f64> {
    log_reciprocal(draws.iter().map(|d| -d.borrow().log_likelihood))
}

/// Reciprocal importance sampling, `Z ≈ N / Σᵢ q(uᵢ)/(ℓ(uᵢ) π(uᵢ))` (Gelfand and Dey 1994); none without draws.
///
/// The proposal `q` must not know the draws.
#[must_use]
pub fn reciprocal<D: Borrow<Draw>>(proposal: &Gaussian, draws: &[D]) -> Option<f64> {
    log_reciprocal(draws.iter().map(|d| proposal.log_density(&d.borrow().u) - d.borrow().log_joint()))
}

fn log_reciprocal(terms: impl ExactSizeIterator<Item = f64> + Clone) -> Option<f64> {
    let n = terms.len();
    (n > 0).then(|| (n as f64).ln() - log_sum_exp(terms))
}

/// A point of the proposal with what is known of it: one evaluation of the likelihood each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Proposed {
    /// `log ℓ + log π`.
    pub log_joint: f64,
    /// `log q`.
    pub log_proposal: f64,
}

/// `count` draws of the proposal, evaluated.
pub fn propose(target: &impl Target, proposal: &Gaussian, stream: &mut Stream, count: usize) -> Vec<Proposed> {
    let one = |_| {
        let u = proposal.draw(stream);
        Proposed { log_joint: target.log_likelihood(&u) + log_prior(&u), log_proposal: proposal.log_density(&u) }
    };
    (0..count).map(one).collect()
}

/// The change of `log Z` below which the iteration of [`bridge`] ends, and the steps after which it does in any case.
const SETTLED: (f64, usize) = (1e-10, 1_000);

/// The optimal bridge between a proposal and the posterior, by the iteration of Meng and Wong (1996); none if either has no draws or
/// they do not meet.
///
/// With `wᵢ = ℓπ/q` at the `N₁` draws, `vⱼ` the same at the `N₂` points of the proposal and `sₖ = Nₖ/(N₁ + N₂)`, the fixed point of
/// `Z ← (1/N₂ Σⱼ vⱼ/(s₁vⱼ + s₂Z)) / (1/N₁ Σᵢ 1/(s₁wᵢ + s₂Z))`. The proposal must not know the draws.
#[must_use]
pub fn bridge<D: Borrow<Draw>>(proposal: &Gaussian, draws: &[D], proposed: &[Proposed]) -> Option<f64> {
    let w: Vec<f64> = draws.iter().map(|d| d.borrow().log_joint() - proposal.log_density(&d.borrow().u)).collect();
    let v: Vec<f64> = proposed.iter().map(|p| p.log_joint - p.log_proposal).filter(|v| v.is_finite()).collect();
    if w.is_empty() || v.is_empty() {
        return None;
    }
    let (n1, n2) = (w.len() as f64, proposed.len() as f64);
    let (s1, s2) = ((n1 / (n1 + n2)).ln(), (n2 / (n1 + n2)).ln());
    // The importance sampling estimate is where Z ← … begins for Z → ∞.
    let mut log_z = log_sum_exp(v.iter().copied()) - n2.ln();
    for _ in 0..SETTLED.1 {
        let mixed = |x: f64| log_sum_exp([s1 + x, s2 + log_z].into_iter());
        let above = log_sum_exp(v.iter().map(|&x| x - mixed(x))) - n2.ln();
        let below = log_sum_exp(w.iter().map(|&x| -mixed(x))) - n1.ln();
        let before = std::mem::replace(&mut log_z, above - below);
        if (log_z - before).abs() < SETTLED.0 {
            break;
        }
    }
    Some(log_z).filter(|z| z.is_finite())
}

/// A Gaussian proposal.
#[derive(Debug, Clone)]
pub struct Gaussian {
    mean: Vec<f64>,
    factor: Cholesky,
}

impl Gaussian {
    /// With the mean and covariance of some draws; none if these lie in a plane, as fewer than `d + 1` always do.
    #[must_use]
    pub fn fit<D: Borrow<Draw>>(draws: &[D]) -> Option<Self> {
        let d = draws.first()?.borrow().u.len();
        let n = draws.len() as f64;
        let mean: Vec<f64> = (0..d).map(|a| draws.iter().map(|x| x.borrow().u[a]).sum::<f64>() / n).collect();
        let moment = |i: usize, j: usize| -> f64 {
            draws.iter().map(|x| (x.borrow().u[i] - mean[i]) * (x.borrow().u[j] - mean[j])).sum::<f64>() / (n - 1.0)
        };
        // Draws in a plane have a determinant of rounding errors rather than zero.
        let diagonal: f64 = (0..d).map(|a| moment(a, a).ln()).sum();
        let factor = Cholesky::new(d, moment).filter(|f| f.log_det() - diagonal > f64::EPSILON.ln() / 2.0)?;
        Some(Self { mean, factor })
    }

    /// `log q(u)`.
    #[must_use]
    pub fn log_density(&self, u: &[f64]) -> f64 {
        let centred: Vec<f64> = u.iter().zip(&self.mean).map(|(a, m)| a - m).collect();
        log_normal_density(&self.factor, &centred)
    }

    /// A draw.
    pub fn draw(&self, stream: &mut Stream) -> Vec<f64> {
        let z = stream.normals(self.mean.len());
        self.factor.multiply(&z).iter().zip(&self.mean).map(|(a, m)| a + m).collect()
    }
}
