//! The one-dimensional families: their parameters and what is accepted.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, require_finite, require_positive};

/// The shapes accepted by the gamma, inverse-gamma and beta families.
///
/// Below `1e-3` half of the distribution lies under the smallest double; above `1e12` a double cannot hold a point to
/// `1e-9` of a standard deviation. The degrees of freedom of Student's t have the same range.
pub const SHAPE_RANGE: (f64, f64) = (1e-3, 1e12);

/// A one-dimensional distribution by name and parameters, as it is written in problem files:
/// `{ normal = { mean = 0, sd = 1 } }`.
///
/// Plain data that may hold anything; a [`super::Distribution`] holds only what [`Family::validate`] accepts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Family {
    /// `N(mean, sd²)`.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation, > 0.
        sd: f64,
    },
    /// `log θ ~ N(mu, sigma²)`.
    LogNormal {
        /// The mean of `log θ`.
        mu: f64,
        /// The standard deviation of `log θ`, > 0.
        sigma: f64,
    },
    /// Constant density between `low` and `high`.
    Uniform {
        /// The lower end.
        low: f64,
        /// The upper end, > `low`.
        high: f64,
        /// Whether both ends are one place, as for an angle or a phase. [`MATH.md` §10](crate::math).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        periodic: bool,
    },
    /// `log θ` uniform: density `∝ 1/θ` between `low` and `high`.
    LogUniform {
        /// The lower end, > 0.
        low: f64,
        /// The upper end, > `low`.
        high: f64,
    },
    /// Density `∝ θ^{a−1}(1−θ)^{b−1}` on (0, 1).
    Beta {
        /// The exponent at 0, in [`SHAPE_RANGE`].
        a: f64,
        /// The exponent at 1, in [`SHAPE_RANGE`].
        b: f64,
    },
    /// Density `∝ θ^{shape−1} e^{−rate·θ}`.
    Gamma {
        /// The shape, in [`SHAPE_RANGE`].
        shape: f64,
        /// The rate (one over the scale), > 0.
        rate: f64,
    },
    /// Density `∝ θ^{−shape−1} e^{−scale/θ}`.
    InverseGamma {
        /// The shape, in [`SHAPE_RANGE`].
        shape: f64,
        /// The scale, > 0.
        scale: f64,
    },
    /// Density `rate·e^{−rate·θ}`.
    Exponential {
        /// The rate (one over the mean), > 0.
        rate: f64,
    },
    /// The absolute value of `N(0, scale²)`.
    HalfNormal {
        /// The scale, > 0.
        scale: f64,
    },
    /// Density `∝ 1/(1 + ((θ−location)/scale)²)`.
    Cauchy {
        /// The median.
        location: f64,
        /// Half the distance between the quartiles, > 0.
        scale: f64,
    },
    /// The absolute value of a Cauchy variable around 0.
    HalfCauchy {
        /// The median, > 0.
        scale: f64,
    },
    /// Density `∝ (1 + ((θ−location)/scale)²/dof)^{−(dof+1)/2}`.
    StudentT {
        /// The degrees of freedom, in [`SHAPE_RANGE`].
        dof: f64,
        /// The median.
        location: f64,
        /// The scale, > 0.
        scale: f64,
    },
    /// `N(mean, sd²)` given that it lies between `low` and `high`; one of the two may be infinite or left out.
    TruncatedNormal {
        /// The mean of the parent.
        mean: f64,
        /// The standard deviation of the parent, > 0.
        sd: f64,
        /// The lower end.
        #[serde(default = "minus_infinity", skip_serializing_if = "is_infinite")]
        low: f64,
        /// The upper end, > `low`.
        #[serde(default = "plus_infinity", skip_serializing_if = "is_infinite")]
        high: f64,
    },
}

fn minus_infinity() -> f64 {
    f64::NEG_INFINITY
}

fn plus_infinity() -> f64 {
    f64::INFINITY
}

// Serde calls this with a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_infinite(value: &f64) -> bool {
    value.is_infinite()
}

impl Family {
    /// The name used in problem files and messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Normal { .. } => "normal",
            Self::LogNormal { .. } => "log-normal",
            Self::Uniform { .. } => "uniform",
            Self::LogUniform { .. } => "log-uniform",
            Self::Beta { .. } => "beta",
            Self::Gamma { .. } => "gamma",
            Self::InverseGamma { .. } => "inverse-gamma",
            Self::Exponential { .. } => "exponential",
            Self::HalfNormal { .. } => "half-normal",
            Self::Cauchy { .. } => "cauchy",
            Self::HalfCauchy { .. } => "half-cauchy",
            Self::StudentT { .. } => "student-t",
            Self::TruncatedNormal { .. } => "truncated-normal",
        }
    }

    /// Checks every parameter.
    ///
    /// # Errors
    /// [`Error::Invalid`] naming the first parameter that is refused, its value and what was expected.
    pub fn validate(&self) -> Result<()> {
        let what = |parameter: &str| format!("{parameter} of the {} prior", self.name());
        let finite = |parameter, value| require_finite(&what(parameter), value);
        let positive = |parameter, value| require_positive(&what(parameter), value);
        let shape = |parameter, value: f64| {
            let (least, most) = SHAPE_RANGE;
            if value >= least && value <= most {
                Ok(value)
            } else {
                Err(Error::invalid(what(parameter), value, format!("a number between {least:e} and {most:e}")))
            }
        };
        match *self {
            Self::Normal { mean, sd } => finite("mean", mean).and(positive("sd", sd)),
            Self::LogNormal { mu, sigma } => finite("mu", mu).and(positive("sigma", sigma)),
            Self::Uniform { low, high, .. } => {
                finite("low", low).and(finite("high", high)).and(ordered(what, low, high))
            }
            Self::LogUniform { low, high } => {
                positive("low", low).and(positive("high", high)).and(ordered(what, low, high))
            }
            Self::Beta { a, b } => shape("a", a).and(shape("b", b)),
            Self::Gamma { shape: a, rate } => shape("shape", a).and(positive("rate", rate)),
            Self::InverseGamma { shape: a, scale } => shape("shape", a).and(positive("scale", scale)),
            Self::Exponential { rate } => positive("rate", rate),
            Self::HalfNormal { scale } | Self::HalfCauchy { scale } => positive("scale", scale),
            Self::Cauchy { location, scale } => finite("location", location).and(positive("scale", scale)),
            Self::StudentT { dof, location, scale } => {
                shape("dof", dof).and(finite("location", location)).and(positive("scale", scale))
            }
            Self::TruncatedNormal { mean, sd, low, high } => {
                finite("mean", mean).and(positive("sd", sd)).and_then(|_| truncation(what, (mean, sd), low, high))
            }
        }?;
        Ok(())
    }

    /// The open interval outside which the density is zero.
    #[must_use]
    pub fn support(&self) -> (f64, f64) {
        match *self {
            Self::Normal { .. } | Self::Cauchy { .. } | Self::StudentT { .. } => (f64::NEG_INFINITY, f64::INFINITY),
            Self::Uniform { low, high, .. }
            | Self::LogUniform { low, high }
            | Self::TruncatedNormal { low, high, .. } => (low, high),
            Self::Beta { .. } => (0.0, 1.0),
            Self::LogNormal { .. }
            | Self::Gamma { .. }
            | Self::InverseGamma { .. }
            | Self::Exponential { .. }
            | Self::HalfNormal { .. }
            | Self::HalfCauchy { .. } => (0.0, f64::INFINITY),
        }
    }
}

/// `low < high`, with doubles between them and a distance that does not overflow.
fn ordered(what: impl Fn(&str) -> String, low: f64, high: f64) -> Result<f64> {
    if low.next_up() < high && (high - low).is_finite() {
        Ok(high - low)
    } else if low < high {
        let expected = format!("more than {low:?} by at least two doubles and by less than {:e}", f64::MAX);
        Err(Error::invalid(what("high"), high, expected))
    } else {
        Err(Error::invalid(what("high"), high, format!("a number > {low:?}, the value of low")))
    }
}

/// The farthest end of a truncated normal, in standard deviations of its parent. The mass lies within `1/z` of an end
/// at `z`, so farther out fewer than four digits of a point's place in it would survive in a double.
const FARTHEST_END: f64 = 1e6;

/// The least distance of the two ends of a truncated normal, in standard deviations of its parent: far less than any
/// use, and gaps of `Φ(−38)` of it are still ordinary doubles.
const NARROWEST: f64 = 1e-12;

fn truncation(what: impl Fn(&str) -> String, (mean, sd): (f64, f64), low: f64, high: f64) -> Result<f64> {
    if low.is_nan() || low == f64::INFINITY {
        return Err(Error::invalid(what("low"), low, "a finite number or -inf"));
    }
    if high.is_nan() || high == f64::NEG_INFINITY {
        return Err(Error::invalid(what("high"), high, "a finite number or inf"));
    }
    if low.is_infinite() && high.is_infinite() {
        return Err(Error::invalid(what("low and high"), (low, high), "at least one finite end"));
    }
    for (end, value) in [("low", low), ("high", high)] {
        let distance = (value - mean) / sd;
        if value.is_finite() && (distance.is_nan() || distance.abs() > FARTHEST_END) {
            let expected = format!("within {FARTHEST_END:e} standard deviations ({sd:?}) of the mean ({mean:?})");
            return Err(Error::invalid(what(end), value, expected));
        }
    }
    if low.is_infinite() || high.is_infinite() {
        // An end at the largest double leaves no double beyond it.
        return if low.next_up() < high {
            Ok(f64::INFINITY)
        } else {
            Err(Error::invalid(what("low and high"), (low, high), "ends with doubles between them"))
        };
    }
    let width = ordered(&what, low, high)?;
    if width / sd < NARROWEST {
        let expected = format!("more than low ({low:?}) by at least {NARROWEST:e} standard deviations ({sd:?})");
        return Err(Error::invalid(what("high"), high, expected));
    }
    Ok(width)
}
