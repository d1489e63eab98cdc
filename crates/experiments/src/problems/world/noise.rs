//! Log-likelihoods that are known up to noise, as those that are simulated themselves.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use batchquad::numeric::{Purpose, Stream};
use serde::{Deserialize, Serialize};

use super::super::Problem;

/// How much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Noise {
    /// 0.05.
    Low,
    /// 0.3.
    Middle,
    /// 1.
    High,
}

impl Noise {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Low, Self::Middle, Self::High];

    /// The standard deviation.
    #[must_use]
    pub fn sd(self) -> f64 {
        match self {
            Self::Low => 0.05,
            Self::Middle => 0.3,
            Self::High => 1.0,
        }
    }
}

/// The same problem with noise `N(0, sd²)` on its log-likelihood; the truth remains the one without noise.
///
/// The noise is determined by `seed`, the bits of θ and how often that θ was evaluated before: asked again, the simulator draws
/// again. Two problems built alike and evaluated in the same order give the same values.
#[must_use]
pub fn noisy(problem: Problem, sd: f64, seed: u64) -> Problem {
    let visits: Mutex<HashMap<u64, u64>> = Mutex::default();
    let exact = problem.log_likelihood;
    let log_likelihood = move |theta: &[f64]| {
        let place = theta.iter().fold(0, |hash, x| mix(hash ^ x.to_bits()));
        let before = {
            let mut visits = visits.lock().unwrap_or_else(PoisonError::into_inner);
            let count = visits.entry(place).or_insert(0);
            *count += 1;
            *count - 1
        };
        exact(theta) + sd * Stream::new(seed, Purpose::Experiment, mix(place ^ before)).normal()
    };
    Problem { log_likelihood: Box::new(log_likelihood), ..problem }
}

/// A step of SplitMix64 (Steele, Lea and Flood 2014): every bit of the argument reaches every bit of the result.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
