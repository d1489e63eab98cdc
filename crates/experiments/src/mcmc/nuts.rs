//! The No-U-Turn sampler of the crate `nuts-rs`, with every gradient counted.

use std::{cell::Cell, collections::HashMap, fmt};

use anyhow::Result;
use batchquad::numeric::Stream;
use nuts_rs::{
    Chain as _, CpuLogpFunc, CpuMath, CpuMathError, HasDims, LogpError, LowRankNutsSettings, Settings as _,
    rand::{Rng, SeedableRng, rngs::ChaCha8Rng},
};

use super::{Chain, Draw, Length, Target, log_prior, start};

/// One chain. Step size and a mass matrix with correlations are tuned while burning in.
///
/// An evaluation is one of the likelihood with its gradient: each leapfrog step takes one, the search for a first step size some, and the
/// start is looked for without gradients. The likelihood at a draw was evaluated on the way and is not counted twice.
///
/// # Errors
/// When there is no start, or the sampler gives up.
pub fn chain(target: &impl Target, stream: &mut Stream, length: Length) -> Result<Chain> {
    let first = start(target, stream)?;
    let evaluations = Cell::new(first.evaluations);
    let mut seed = [0; 32];
    seed.chunks_mut(8).for_each(|word| word.copy_from_slice(&stream.bits().to_le_bytes()));
    let settings = LowRankNutsSettings { num_tune: length.burn_in as u64, ..Default::default() };
    let density = CpuMath::new(Density { target, evaluations: &evaluations });
    let mut sampler = settings.new_chain(0, density, &mut ChaCha8Rng::from_seed(seed))?;
    sampler.set_position(&first.u)?;
    let mut draws = |count: usize| -> Result<Vec<Draw>> {
        let mut draw = || -> Result<Draw> {
            let u = sampler.draw()?.0.into_vec();
            Ok(Draw { log_likelihood: target.log_likelihood(&u), u, evaluations: evaluations.get() })
        };
        (0..count).map(|_| draw()).collect()
    };
    Ok(Chain { burn_in: draws(length.burn_in)?, draws: draws(length.draws)? })
}

struct Density<'a, T> {
    target: &'a T,
    evaluations: &'a Cell<usize>,
}

/// The trajectory left the support; the sampler turns back there.
#[derive(Debug)]
struct Outside;

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the likelihood is zero here")
    }
}

impl std::error::Error for Outside {}

impl LogpError for Outside {
    fn is_recoverable(&self) -> bool {
        true
    }
}

impl<T: Target> HasDims for Density<'_, T> {
    fn dim_sizes(&self) -> HashMap<String, u64> {
        HashMap::from([("unconstrained_parameter".into(), self.target.dim() as u64)])
    }
}

impl<T: Target> CpuLogpFunc for Density<'_, T> {
    type LogpError = Outside;
    type FlowParameters = ();
    type ExpandedVector = Vec<f64>;

    fn dim(&self) -> usize {
        self.target.dim()
    }

    fn logp(&mut self, position: &[f64], gradient: &mut [f64]) -> Result<f64, Outside> {
        self.evaluations.set(self.evaluations.get() + 1);
        let (log_likelihood, slope) = self.target.log_likelihood_gradient(position).ok_or(Outside)?;
        for ((g, s), u) in gradient.iter_mut().zip(slope).zip(position) {
            *g = s - u;
        }
        Ok(log_likelihood + log_prior(position))
    }

    fn expand_vector<R: Rng + ?Sized>(&mut self, _: &mut R, position: &[f64]) -> Result<Vec<f64>, CpuMathError> {
        Ok(position.to_vec())
    }
}
