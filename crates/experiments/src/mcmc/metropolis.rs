//! Random-walk Metropolis–Hastings whose steps learn their scale and shape while burning in.

use anyhow::Result;
use batchquad::numeric::Stream;

use super::{Chain, Draw, Length, Target, log_prior, start};
use crate::dense::Cholesky;

/// The share of accepted steps that is aimed at: 0.44 on a line, 0.234 in many dimensions (Roberts, Gelman and Gilks 1997).
fn wanted(dim: usize) -> f64 {
    0.234 + 0.206 / dim as f64
}

/// One chain: `u' = u + L z`, `z ~ N(0, I)`, accepted with probability `α = min(1, p(u')/p(u))`.
///
/// During burn-in, after step `i`, the covariance of the steps becomes `L (I + η (α − α*) zzᵀ/|z|²) Lᵀ` with `η = min(1, d i^(−2/3))`,
/// the robust adaptive method of Vihola (2012): wider along `z` if the step was accepted too readily, narrower if not. Afterwards it stays
/// as it is. One evaluation per draw, and those of the search for a start.
///
/// # Errors
/// When there is no start.
pub fn chain(target: &impl Target, stream: &mut Stream, length: Length) -> Result<Chain> {
    let mut walk = Walk::new(start(target, stream)?);
    let mut step = |tuning: Option<usize>| {
        let (z, accepted) = walk.step(target, stream);
        if let Some(i) = tuning {
            walk.adapt(&z, accepted, i);
        }
        walk.state.clone()
    };
    let burn_in = (0..length.burn_in).map(|i| step(Some(i))).collect();
    let draws = (0..length.draws).map(|_| step(None)).collect();
    Ok(Chain { burn_in, draws })
}

struct Walk {
    state: Draw,
    log_density: f64,
    covariance: Vec<f64>,
    /// None only while the covariance is the identity.
    factor: Option<Cholesky>,
}

impl Walk {
    fn new(state: Draw) -> Self {
        let d = state.u.len();
        let covariance = (0..d * d).map(|k| f64::from(u8::from(k % (d + 1) == 0))).collect();
        Self { log_density: state.log_joint(), state, covariance, factor: None }
    }

    /// `L z`.
    fn shape(&self, z: &[f64]) -> Vec<f64> {
        self.factor.as_ref().map_or_else(|| z.to_vec(), |factor| factor.multiply(z))
    }

    /// Makes a step; gives its `z` and its probability of being accepted.
    fn step(&mut self, target: &impl Target, stream: &mut Stream) -> (Vec<f64>, f64) {
        let z = stream.normals(self.state.u.len());
        let u: Vec<f64> = self.state.u.iter().zip(self.shape(&z)).map(|(a, b)| a + b).collect();
        let log_likelihood = target.log_likelihood(&u);
        let log_density = log_likelihood + log_prior(&u);
        let accepted = (log_density - self.log_density).exp().min(1.0);
        let evaluations = self.state.evaluations + 1;
        if stream.uniform() < accepted {
            self.state = Draw { u, log_likelihood, evaluations };
            self.log_density = log_density;
        }
        self.state.evaluations = evaluations;
        (z, accepted)
    }

    /// Learns from step `i`, counted from zero.
    fn adapt(&mut self, z: &[f64], accepted: f64, i: usize) {
        let d = z.len();
        let rate = (d as f64 * (i as f64 + 1.0).powf(-2.0 / 3.0)).min(1.0);
        let square: f64 = z.iter().map(|v| v * v).sum();
        let (along, amount) = (self.shape(z), rate * (accepted - wanted(d)) / square);
        let widened: Vec<f64> = (0..d * d).map(|k| self.covariance[k] + amount * along[k / d] * along[k % d]).collect();
        // The factor exists, as the amount is above −1/|z|²; should rounding deny it, the step stays as it was.
        if let Some(factor) = Cholesky::new(d, |i, j| widened[i * d + j]) {
            (self.covariance, self.factor) = (widened, Some(factor));
        }
    }
}
