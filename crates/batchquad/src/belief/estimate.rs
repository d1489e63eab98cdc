//! The belief about the evidence: [`MATH.md` §3](crate::math).

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    numeric::quantile::student4_quantile,
};

/// `Φ(1)`: a standard deviation either side holds as much of a normal distribution as lies between this and the rest.
const ONE_SD: f64 = 0.841_344_746_068_542_9;

/// `t(½ + ½p)/t(Φ(1))`, `t` the quantiles of Student's t with four degrees of freedom.
fn tau(probability: f64) -> f64 {
    student4_quantile(0.5 + 0.5 * probability) / student4_quantile(ONE_SD)
}

/// How far from the estimate the truth may be on one side, by its probability.
///
/// The end of the interval for a probability p is `one · τ^power` away, `τ = t(½ + ½p)/t(Φ(1))`, with t the quantiles of Student's t with four degrees of
/// freedom: τ is 1 for 68 %, 2.43 for 95 % and 4.03 for 99 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The distance of the end of the 68 % interval, in nats.
    pub one: f64,
    /// 1 where errors are distributed as Student's t, larger where large ones are more frequent still.
    pub power: f64,
}

impl Side {
    /// Errors are distributed as Student's t, and 68 % of them are no larger than this.
    #[must_use]
    pub fn even(one: f64) -> Self {
        Self { one, power: 1.0 }
    }

    /// With the ends of the intervals that hold the truth with 68 and with 95 %.
    #[must_use]
    pub fn through(one: f64, two: f64) -> Self {
        Self { one, power: (two / one).ln() / tau(0.95).ln() }
    }

    /// The one with the longer 95 % interval.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        if self.at(tau(0.95)) > other.at(tau(0.95)) { self } else { other }
    }

    fn at(self, tau: f64) -> f64 {
        self.one * tau.powf(self.power)
    }
}

/// Mean and variance of the evidence `Z`, in units of `e^scale`, and what they say about `log Z`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// `scale + log E[Z]`; −∞ when the mean is not positive (a plain Gaussian process may say so).
    pub log_z: f64,
    /// `√log(1 + V/E²)`: the standard deviation of `log Z` if `Z` is log-normal with these moments; +∞ when the mean is
    /// not positive.
    pub log_z_sd: f64,
    /// `c`, the largest log-likelihood seen.
    pub scale: f64,
    /// `E[Z]/eᶜ`.
    pub mean: f64,
    /// `V[Z]/e²ᶜ`, not below the square of the mean's own rounding error.
    pub variance: f64,
    /// Whether the variance had to be raised to that.
    pub clamped: bool,
    /// How far below `log_z` the truth may be.
    pub below: Side,
    /// How far above. It is farther where a part of the posterior may not have been seen.
    pub above: Side,
}

/// `log Z = -14.019 ± 0.012`, with as many digits as the standard deviation makes meaningful; a precision asks for so
/// many decimals of both.
///
/// ```
/// use batchquad::Estimate;
/// let estimate = Estimate::from_log(-14.01941, 0.0123, -10.0);
/// assert_eq!(estimate.to_string(), "log Z = -14.019 ± 0.012");
/// assert_eq!(format!("{estimate:.1}"), "log Z = -14.0 ± 0.0");
/// ```
impl std::fmt::Display for Estimate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { log_z, log_z_sd, .. } = *self;
        let meaningful = || {
            if log_z_sd.is_finite() && log_z_sd > 0.0 {
                (1.0 - log_z_sd.log10().floor()).clamp(0.0, 12.0) as usize
            } else {
                3
            }
        };
        let digits = f.precision().unwrap_or_else(meaningful);
        write!(f, "log Z = {log_z:.digits$} ± {log_z_sd:.digits$}")
    }
}

impl Estimate {
    /// From moments in units of `e^scale`; `rounding` estimates the error of the mean's own summation.
    #[must_use]
    pub fn new(scale: f64, mean: f64, variance: f64, rounding: f64) -> Self {
        let floor = rounding * rounding;
        let clamped = variance < floor;
        // A variance that rounding takes below zero is no smaller than that rounding.
        let variance = variance.abs().max(floor);
        let (log_z, log_z_sd) = if mean > 0.0 {
            // As a ratio: the squares of a tiny mean and of its rounding error may both underflow.
            let relative = (variance.sqrt() / mean).max(rounding / mean);
            (scale + mean.ln(), (relative * relative).ln_1p().sqrt())
        } else {
            (f64::NEG_INFINITY, f64::INFINITY)
        };
        Self {
            log_z,
            log_z_sd,
            scale,
            mean,
            variance,
            clamped,
            below: Side::even(log_z_sd),
            above: Side::even(log_z_sd),
        }
    }

    /// From `log Z` and its standard deviation; `scale` is the largest log-likelihood seen.
    #[must_use]
    pub fn from_log(log_z: f64, log_z_sd: f64, scale: f64) -> Self {
        let mean = (log_z - scale).exp();
        let (below, above) = (Side::even(log_z_sd), Side::even(log_z_sd));
        Self {
            log_z,
            log_z_sd,
            scale,
            mean,
            variance: mean * mean * log_z_sd.powi(2).exp_m1(),
            clamped: false,
            below,
            above,
        }
    }

    /// The same with other intervals than those of one standard deviation for both sides.
    #[must_use]
    pub fn with_sides(self, below: Side, above: Side) -> Self {
        Self { below, above, ..self }
    }

    /// The interval that holds `log Z` with a probability. Where both [sides](Side) are those of the standard deviation, one standard deviation holds 68 %,
    /// as that of a normal distribution does, 2.43 hold 95 % and 4.03 hold 99 %: what nobody has seen makes large errors more frequent than a normal
    /// distribution has them.
    ///
    /// ```
    /// let (low, high) = batchquad::Estimate::from_log(-14.0, 0.1, -10.0).interval(0.95)?;
    /// assert!((low + 14.243).abs() < 1e-3 && (high + 13.757).abs() < 1e-3);
    /// # Ok::<(), batchquad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] unless the probability is between 0 and 1.
    pub fn interval(&self, probability: f64) -> Result<(f64, f64)> {
        if !(probability > 0.0 && probability < 1.0) {
            return Err(Error::invalid("probability of an interval", probability, "a number between 0 and 1"));
        }
        let tau = tau(probability);
        Ok((self.log_z - self.below.at(tau), self.log_z + self.above.at(tau)))
    }

    /// The same with a further standard deviation of the mean, in units of `e^scale`, that is independent of the
    /// variance so far.
    #[must_use]
    pub fn widened(self, further: f64) -> Self {
        if self.log_z_sd.is_infinite() {
            return self;
        }
        // `V/E²` again, without squares of a mean that may underflow.
        let relative = self.log_z_sd.powi(2).exp_m1() + (further / self.mean).powi(2);
        Self { variance: self.variance + further * further, ..self.raised(relative.ln_1p().sqrt()) }
    }

    /// The same with a larger standard deviation of `log Z`; what is added to its variance is added on both sides.
    #[must_use]
    pub(crate) fn raised(self, log_z_sd: f64) -> Self {
        let added = (log_z_sd.powi(2) - self.log_z_sd.powi(2)).max(0.0).sqrt();
        let wider = |side: Side| Side { one: side.one.hypot(added), ..side };
        let variance = self.mean * self.mean * log_z_sd.powi(2).exp_m1();
        Self { log_z_sd, variance, below: wider(self.below), above: wider(self.above), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A difference of large terms that rounding has made negative says how large the rounding is, not that all is known.
    #[test]
    fn a_variance_below_zero_is_as_wide_as_its_rounding() {
        let estimate = Estimate::new(0.0, 0.5, -1e-12, 1e-15);
        assert!(estimate.clamped);
        assert!((estimate.log_z_sd - 2e-6).abs() < 1e-12, "{}", estimate.log_z_sd);
        assert!(Estimate::new(0.0, 0.5, -1e-40, 1e-15).log_z_sd >= 2e-15);
    }

    #[test]
    fn sides_go_through_their_two_ends_and_grow_with_the_probability() {
        let stated = Estimate::from_log(-7.0, 40.0, 0.0).with_sides(Side::even(0.5), Side::through(2.0, 30.0));
        let (low, high) = stated.interval(0.682_689_492_137_085_9).unwrap();
        assert!((low + 7.5).abs() < 1e-9 && (high + 5.0).abs() < 1e-9, "{low} {high}");
        let (low, high) = stated.interval(0.95).unwrap();
        assert!((low + 7.0 + 0.5 * tau(0.95)).abs() < 1e-9 && (high - 23.0).abs() < 1e-9, "{low} {high}");
        let ends: Vec<f64> = [0.1, 0.5, 0.9, 0.99].iter().map(|p| stated.interval(*p).unwrap().1).collect();
        assert!(ends.windows(2).all(|w| w[0] < w[1]) && ends[0] > -7.0, "{ends:?}");
    }

    #[test]
    fn what_raises_the_standard_deviation_widens_both_sides() {
        let stated = Estimate::from_log(-7.0, 0.3, 0.0).with_sides(Side::even(0.3), Side::even(0.6));
        let raised = stated.raised(0.5);
        assert!((raised.below.one - 0.5).abs() < 1e-12 && (raised.above.one - 0.6_f64.hypot(0.4)).abs() < 1e-12);
        // As one that was stated so from the beginning.
        let plain = Estimate::from_log(-7.0, 0.3, 0.0).raised(0.5);
        let direct = Estimate::from_log(-7.0, 0.5, 0.0);
        assert!((plain.variance / direct.variance - 1.0).abs() < 1e-12 && plain.log_z_sd == direct.log_z_sd);
    }
}
