//! A parameter as its prior is written down, as a function of its latent coordinate. `MATH.md` §15.

use std::f64::consts::{PI, TAU};

use crate::numeric::{
    normal::{cdf, log_cdf, log_density},
    quantile::normal_quantile,
};

/// Beyond so many prior standard deviations, at probabilities of 10⁻¹⁹, functions go straight on: quantiles of heavy tails would overflow.
const FAR: f64 = 9.0;

/// What a parameter is as a function `w` of its latent coordinate, but for a shift and a factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scale {
    /// The same: normal priors of parameters or of their logarithms, and all for which there is nothing better.
    Latent,
    /// Uniform priors of parameters or of their logarithms.
    Flat,
    /// A normal prior between two ends, in standard deviations from its mean.
    Truncated { low: f64, high: f64 },
    /// An exponential prior.
    Exponential,
    /// Cauchy's.
    Cauchy,
}

/// An increasing function `w(u)` at a place: its value, `log w′`, `(log w′)′` and `(log w′)″`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slopes {
    pub(crate) value: f64,
    pub(crate) log_slope: f64,
    pub(crate) first: f64,
    pub(crate) second: f64,
}

impl Scale {
    /// `w` and its derivatives: `w = u`, `√(2π)(Φ(u) − ½)` under flat priors, else the quantile `F⁻¹(Φ(u))` of the prior, `w′ = φ(u)/π(w)`,
    /// `(log w′)′ = −u − sw′` and `(log w′)″ = −1 − s′w′² − sw′(log w′)′`, where `s = (log π)′(w)`.
    pub(crate) fn at(self, u: f64) -> Slopes {
        if u.abs() <= FAR || matches!(self, Self::Latent | Self::Flat) {
            return self.within(u);
        }
        let end = FAR.copysign(u);
        let there = self.within(end);
        Slopes { value: there.value + (u - end) * there.log_slope.exp(), first: 0.0, second: 0.0, ..there }
    }

    fn within(self, u: f64) -> Slopes {
        let (value, log_slope, s, s1) = match self {
            Self::Latent => return Slopes { value: u, log_slope: 0.0, first: 0.0, second: 0.0 },
            Self::Flat => (TAU.sqrt() * (cdf(u) - 0.5), -0.5 * u * u, 0.0, 0.0),
            Self::Truncated { low, high } => {
                let (below, above) = (cdf(low), cdf(-high));
                let mass = if low > 0.0 { cdf(-low) - above } else { cdf(high) - below };
                // Each half from its own end, so that nothing cancels.
                let p = below + mass * cdf(u);
                let w = if p < 0.5 { normal_quantile(p) } else { -normal_quantile(above + mass * cdf(-u)) };
                (w, mass.ln() - 0.5 * (u * u - w * w), -w, -1.0)
            }
            Self::Exponential => {
                let w = -log_cdf(-u);
                (w, log_density(u) + w, -1.0, 0.0)
            }
            Self::Cauchy => {
                let w = (PI * cdf(-u.abs())).tan().recip().copysign(u);
                // Far away 1 + w² is w².
                let log_sum = if w.abs() > 1e8 { 2.0 * w.abs().ln() } else { (w * w).ln_1p() };
                let share = w / (1.0 + w * w);
                (w, log_density(u) + PI.ln() + log_sum, -2.0 * share, 4.0 * share * share - 2.0 / (1.0 + w * w))
            }
        };
        let slope = log_slope.exp();
        let first = -u - s * slope;
        Slopes { value, log_slope, first, second: -1.0 - s1 * slope * slope - s * slope * first }
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::LN_2;

    use super::*;

    #[test]
    fn scales_have_their_derivatives() {
        let truncated = |low, high| Scale::Truncated { low, high };
        let all = [
            Scale::Latent,
            Scale::Flat,
            truncated(-1.0, 3.5),
            truncated(0.0, f64::INFINITY),
            truncated(3.0, 4.0),
            truncated(f64::NEG_INFINITY, -2.0),
            Scale::Exponential,
            Scale::Cauchy,
        ];
        for scale in all {
            for u in [-4.0, -2.5, -0.7, 0.1, 1.3, 3.0, 4.0] {
                let (low, mid, high) = (scale.at(u - 1e-5), scale.at(u), scale.at(u + 1e-5));
                let slope = |f: fn(&Slopes) -> f64| (f(&high) - f(&low)) / 2e-5;
                let close = |exact: f64, found: f64| (exact - found).abs() < 1e-5 * (0.1 + exact.abs());
                assert!(close(1.0, slope(|s| s.value) * (-mid.log_slope).exp()), "{scale:?} {u}");
                assert!(close(mid.first, slope(|s| s.log_slope)), "{scale:?} {u}");
                assert!(close(mid.second, slope(|s| s.first)), "{scale:?} {u}");
            }
        }
    }

    #[test]
    fn scales_are_the_quantiles_of_their_priors() {
        // Half of a half-normal distribution is below 0.6745, of an exponential one below log 2, of Cauchy's below 0, three quarters of it below 1.
        let half = Scale::Truncated { low: 0.0, high: f64::INFINITY };
        assert!((half.at(0.0).value - 0.674_489_750_196_081_7).abs() < 1e-12);
        assert!((Scale::Exponential.at(0.0).value - LN_2).abs() < 1e-12);
        assert!(Scale::Cauchy.at(0.0).value.abs() < 1e-12);
        assert!((Scale::Cauchy.at(0.674_489_750_196_081_7).value - 1.0).abs() < 1e-12);
        // Far beyond, all is finite and rises.
        for scale in [half, Scale::Exponential, Scale::Cauchy] {
            let places = [-60.0, -30.0, -9.5, -8.5, 8.5, 9.5, 30.0, 60.0].map(|u| scale.at(u));
            assert!(places.windows(2).all(|w| w[0].value <= w[1].value), "{scale:?}");
            assert!(places.iter().all(|s| s.value.abs() < 1e25 && s.log_slope.is_finite()), "{scale:?} {places:?}");
        }
        // Ends are kept.
        let between = Scale::Truncated { low: -1.0, high: 3.5 };
        assert!((between.at(-9.0).value + 1.0).abs() < 1e-9 && (between.at(9.0).value - 3.5).abs() < 1e-9);
    }
}
