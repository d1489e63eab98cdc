//! The belief about the evidence: [`MATH.md` §3](crate::math).

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    numeric::quantile::student4_quantile,
};

/// `Φ(1)`: a standard deviation either side holds as much of a normal distribution as lies between this and the rest.
const ONE_SD: f64 = 0.841_344_746_068_542_9;

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
        Self { log_z, log_z_sd, scale, mean, variance, clamped }
    }

    /// From `log Z` and its standard deviation; `scale` is the largest log-likelihood seen.
    #[must_use]
    pub fn from_log(log_z: f64, log_z_sd: f64, scale: f64) -> Self {
        let mean = (log_z - scale).exp();
        Self { log_z, log_z_sd, scale, mean, variance: mean * mean * log_z_sd.powi(2).exp_m1(), clamped: false }
    }

    /// The interval that holds `log Z` with a probability: `log_z ± log_z_sd · t(½ + ½p)/t(Φ(1))`, `t` the quantiles of Student's t with four degrees of
    /// freedom. One standard deviation holds 68 %, as that of a normal distribution does, 2.43 hold 95 % and 4.03 hold 99 %: what nobody has seen makes
    /// large errors more frequent than a normal distribution has them.
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
        let wide = self.log_z_sd * student4_quantile(0.5 + 0.5 * probability) / student4_quantile(ONE_SD);
        Ok((self.log_z - wide, self.log_z + wide))
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
        Self { log_z_sd: relative.ln_1p().sqrt(), variance: self.variance + further * further, ..self }
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
}
