//! The standard normal distribution between two ends, however deep in a tail they lie.
//!
//! Points are described by their gap to an end, and masses relative to the density at that end, so that neither a
//! narrow interval nor one forty standard deviations out loses anything.

use crate::numeric::normal::{LogTails, log_cdf, log_density, mills, quantile_of_log_cdf};
use std::f64::consts::SQRT_2;

use super::logconcave::{increasing_root, integral};

/// `log ∫₀ᵍ exp(−zt − t²/2) dt = log((Φ(z+g) − Φ(z))/φ(z))`: the mass within the gap `g ≤ ∞` of an end at `z`.
fn log_near(z: f64, gap: f64) -> f64 {
    if z >= 0.0 {
        if gap == f64::INFINITY {
            return mills(z).ln();
        }
        integral(|t| t * (z + 0.5 * t), gap, z.max(1.0).recip()).ln()
    } else if z + gap <= 0.0 {
        // The density rises all the way: look from the far side, where it falls.
        log_near(-(z + gap), gap) - gap * (z + 0.5 * gap)
    } else {
        (0.5 * (libm::erf((z + gap) / SQRT_2) + libm::erf(-z / SQRT_2))).ln() - log_density(z)
    }
}

/// `log(Q(z+g)/Q(z))`, `Q = 1 − Φ`: the share of the mass beyond the end `z` that is farther than `g` from it.
fn log_beyond(z: f64, gap: f64) -> f64 {
    if z >= 0.0 { (mills(z + gap) / mills(z)).ln() - gap * (z + 0.5 * gap) } else { log_cdf(-(z + gap)) - log_cdf(-z) }
}

/// An interval of the standard normal distribution, seen from its finite end `z` at the left and `width ≤ ∞` long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interval {
    /// The left end.
    pub z: f64,
    /// The length, infinite for a half-line.
    pub width: f64,
}

impl Interval {
    /// The log-mass of the interval relative to the density at its left end, `log(M/φ(z))`.
    pub fn log_mass(&self) -> f64 {
        log_near(self.z, self.width)
    }

    /// The tails at the gap `g` from the left end; `g` is in `(0, width)`, `rest = width − g`.
    pub fn tails(&self, gap: f64, rest: f64) -> LogTails {
        let lower = log_near(self.z, gap) - self.log_mass();
        let upper = if self.width == f64::INFINITY {
            log_beyond(self.z, gap)
        } else {
            let mirrored = self.mirrored();
            log_near(mirrored.z, rest) - mirrored.log_mass()
        };
        LogTails { lower, upper }
    }

    /// The gap `g` below which lies the probability whose logarithm is `log_p`.
    pub fn gap_of_lower(&self, log_p: f64) -> f64 {
        let target = log_p + self.log_mass();
        // Where the density falls, p·M/φ(z) is a lower bound of the gap; elsewhere it is only a place to start.
        let residual = |log_gap: f64| {
            let gap = log_gap.exp();
            let near = log_near(self.z, gap);
            (near - target, (log_gap - gap * (self.z + 0.5 * gap) - near).exp())
        };
        let end = if self.width == f64::INFINITY { self.z.abs() + 1e3 } else { self.width };
        increasing_root(residual, (-2e3, end.ln()), target, 1e-8).exp()
    }

    /// The gap beyond which lies the probability whose logarithm is `log_q`, on a half-line.
    pub fn gap_of_upper(&self, log_q: f64) -> f64 {
        if self.z < 0.0 {
            return -self.z - quantile_of_log_cdf(log_q + log_cdf(-self.z));
        }
        let residual = |gap: f64| (log_q - log_beyond(self.z, gap), mills(self.z + gap).recip());
        // −log q ≥ g(z + g/2) bounds the gap from above; the hazard only grows, so Newton falls to the root.
        let bound = -2.0 * log_q / (self.z + (self.z * self.z - 2.0 * log_q).sqrt());
        increasing_root(residual, (0.0, bound.max(f64::MIN_POSITIVE)), bound, 1e-8 * bound)
    }

    /// The same interval seen from its right end, which has to be finite.
    pub fn mirrored(&self) -> Self {
        Self { z: -(self.z + self.width), width: self.width }
    }
}
