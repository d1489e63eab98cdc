//! One-dimensional distributions and their maps between θ and `u ~ N(0, 1)`.

use crate::numeric::normal::{self, LogTails};
use std::f64::consts::{FRAC_PI_2, LN_2, PI};

use serde::{Deserialize, Serialize};

use super::{
    family::Family,
    shapes::{Beta, Gamma, Shape, softplus},
    truncated::Interval,
};
use crate::{
    belief::log::Scale,
    error::{Error, Result},
};

/// A one-dimensional distribution with valid parameters, and its increasing map `θ = F⁻¹(Φ(u))`.
///
/// ```
/// use batchquad::prior::Distribution;
/// let prior = Distribution::gamma(0.5, 2.0)?;
/// let theta = prior.to_theta(-8.0)?;
/// assert!((prior.to_latent(theta)? + 8.0).abs() < 1e-12);
/// assert!(Distribution::normal(0.0, -1.0).is_err());
/// # Ok::<(), batchquad::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Family", into = "Family")]
pub struct Distribution(Family);

impl TryFrom<Family> for Distribution {
    type Error = Error;

    fn try_from(family: Family) -> Result<Self> {
        family.validate().map(|()| Self(family))
    }
}

impl From<Distribution> for Family {
    fn from(distribution: Distribution) -> Self {
        distribution.0
    }
}

/// One constructor for each family, all of them through [`Family::validate`].
macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $family:ident { $($parameter:ident),+ };)+) => {
        impl Distribution {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                #[doc = concat!("[`Error::Invalid`] when a parameter is not as [`Family::", stringify!($family), "`] asks.")]
                pub fn $name($($parameter: f64),+) -> Result<Self> {
                    Family::$family { $($parameter),+ }.try_into()
                }
            )+
        }
    };
}

constructors! {
    /// `N(mean, sd²)`.
    normal => Normal { mean, sd };
    /// `log θ ~ N(mu, sigma²)`.
    log_normal => LogNormal { mu, sigma };
    /// `log θ` uniform between `log low` and `log high`.
    log_uniform => LogUniform { low, high };
    /// The beta distribution on (0, 1).
    beta => Beta { a, b };
    /// The gamma distribution by shape and rate.
    gamma => Gamma { shape, rate };
    /// One over a gamma variable of this shape and the rate `scale`.
    inverse_gamma => InverseGamma { shape, scale };
    /// The exponential distribution by rate.
    exponential => Exponential { rate };
    /// The absolute value of `N(0, scale²)`.
    half_normal => HalfNormal { scale };
    /// The Cauchy distribution.
    cauchy => Cauchy { location, scale };
    /// The absolute value of a Cauchy variable around 0.
    half_cauchy => HalfCauchy { scale };
    /// Student's t with any positive degrees of freedom.
    student_t => StudentT { dof, location, scale };
    /// `N(mean, sd²)` between `low` and `high`, one of which may be infinite.
    truncated_normal => TruncatedNormal { mean, sd, low, high };
}

impl Distribution {
    /// Uniform between `low` and `high`.
    ///
    /// # Errors
    /// [`Error::Invalid`] when a parameter is not as [`Family::Uniform`] asks.
    pub fn uniform(low: f64, high: f64) -> Result<Self> {
        Family::Uniform { low, high, periodic: false }.try_into()
    }

    /// The same for a parameter whose two ends are one place: an angle, a phase.
    ///
    /// ```
    /// use batchquad::prior::Distribution;
    /// let angle = Distribution::uniform(0.0, 360.0)?.periodic()?;
    /// assert_eq!(angle.to_latent(370.0)?, angle.to_latent(10.0)?);
    /// # Ok::<(), batchquad::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] for a distribution that is not uniform.
    pub fn periodic(self) -> Result<Self> {
        match self.0 {
            Family::Uniform { low, high, .. } => Family::Uniform { low, high, periodic: true }.try_into(),
            other => Err(Error::invalid("prior of a periodic parameter", other.name(), "a uniform one")),
        }
    }

    /// The lower end and the length of the circle of a periodic parameter.
    pub(super) fn circle(&self) -> Option<(f64, f64)> {
        match self.0 {
            Family::Uniform { low, high, periodic: true } => Some((low, high - low)),
            _ => None,
        }
    }

    /// θ itself, or for a periodic parameter the same place between `low` and `high`.
    pub(super) fn wrapped(&self, theta: f64) -> f64 {
        match self.circle() {
            // What lies inside stays as it is, to the bit.
            Some((low, length)) if theta.is_finite() && !(low..=low + length).contains(&theta) => {
                (theta - length * ((theta - low) / length).floor()).clamp(low, low + length)
            }
            _ => theta,
        }
    }

    /// The family and its parameters.
    #[must_use]
    pub fn family(&self) -> &Family {
        &self.0
    }

    /// The parameter, or its logarithm where its prior is uniform there, as a function of the latent coordinate; that itself where the prior is about a scale, or
    /// its quantiles are slow to work out.
    pub(crate) fn scale(&self) -> Scale {
        match self.0 {
            Family::Uniform { .. } | Family::LogUniform { .. } => Scale::Flat,
            // Farther out in a tail probabilities are too small.
            Family::TruncatedNormal { mean, sd, low, high } if (low - mean).max(mean - high) < 5.0 * sd => {
                Scale::Truncated { low: (low - mean) / sd, high: (high - mean) / sd }
            }
            Family::HalfNormal { .. } => Scale::Truncated { low: 0.0, high: f64::INFINITY },
            Family::Exponential { .. } => Scale::Exponential,
            Family::Cauchy { .. } => Scale::Cauchy,
            _ => Scale::Latent,
        }
    }

    /// The open interval outside which the density is zero.
    #[must_use]
    pub fn support(&self) -> (f64, f64) {
        self.0.support()
    }

    /// `θ(u) = F⁻¹(Φ(u))`: finite and inside the open support, even where the exact value underflows or overflows.
    ///
    /// Cost: below a microsecond for most families, tens of microseconds for beta, gamma, inverse gamma and Student's
    /// t.
    ///
    /// # Errors
    /// [`Error::Invalid`] when `u` is NaN or infinite.
    pub fn to_theta(&self, u: f64) -> Result<f64> {
        let u = require_latent(u)?;
        Ok(self.inside(self.quantile(u)))
    }

    /// `u(θ) = Φ⁻¹(F(θ))`.
    ///
    /// # Errors
    /// [`Error::OutsideSupport`] when θ is neither inside the support nor at an end of it (a periodic parameter is taken round); [`Error::Numerical`] when it
    /// is so far out that `u` is not finite.
    pub fn to_latent(&self, theta: f64) -> Result<f64> {
        let (low, high) = self.support();
        let theta = self.wrapped(theta);
        // An end of the support has probability zero and is where people evaluate: it counts as its neighbour inside.
        let theta = match theta {
            end if end == low && low.is_finite() => low.next_up(),
            end if end == high && high.is_finite() => high.next_down(),
            inside => inside,
        };
        if !(theta > low && theta < high) {
            let (what, support) = (format!("value of the {} prior", self.0.name()), format!("({low:?}, {high:?})"));
            return Err(Error::OutsideSupport { what, value: theta, support });
        }
        let u = self.latent(theta);
        if u.is_finite() {
            Ok(u)
        } else {
            let what = format!("mapping {theta:?} under the {} prior to a latent coordinate", self.0.name());
            Err(Error::Numerical { what, reason: format!("even the logarithm of its tail is {u}") })
        }
    }

    /// `log π(θ)`, −∞ outside the open support (and for NaN).
    #[must_use]
    pub fn log_density(&self, theta: f64) -> f64 {
        let (low, high) = self.support();
        if !(theta > low && theta < high) {
            return f64::NEG_INFINITY;
        }
        match self.0 {
            Family::Normal { mean, sd } => normal::log_density((theta - mean) / sd) - sd.ln(),
            Family::LogNormal { mu, sigma } => normal::log_density((theta.ln() - mu) / sigma) - sigma.ln() - theta.ln(),
            Family::Uniform { .. } => -(high - low).ln(),
            Family::LogUniform { .. } => -theta.ln() - log_ratio(high, low).ln(),
            Family::Beta { a, b } => {
                let beta = Beta { a, b };
                beta.log_density(beta.coordinate(theta)) - theta.ln() - (-theta).ln_1p()
            }
            Family::Gamma { shape, rate } => {
                Gamma { a: shape }.log_density(log_product(theta, rate, shape)) - theta.ln()
            }
            Family::InverseGamma { shape, scale } => {
                Gamma { a: shape }.log_density(log_quotient(scale, theta, shape)) - theta.ln()
            }
            Family::Exponential { rate } => rate.ln() - rate * theta,
            Family::HalfNormal { scale } => LN_2 + normal::log_density(theta / scale) - scale.ln(),
            Family::Cauchy { location, scale } => -(PI * scale).ln() - log1p_square((theta - location) / scale),
            Family::HalfCauchy { scale } => -(FRAC_PI_2 * scale).ln() - log1p_square(theta / scale),
            Family::StudentT { dof, location, scale } => {
                let t = (theta - location) / scale;
                // The density at the centre is 1/(√ν B(½, ν/2)); the beta shape knows B to full accuracy.
                let half = Beta { a: 0.5, b: 0.5 * dof };
                let (mode, centre) = (half.log_density(0.0), half.centre());
                let log_beta = -0.5 * softplus(-centre) - 0.5 * dof * softplus(centre) - mode;
                -log_beta - 0.5 * dof.ln() - scale.ln() - 0.5 * (dof + 1.0) * log1p_square(t / dof.sqrt())
            }
            Family::TruncatedNormal { sd, .. } => {
                let view = self.interval(low.is_finite());
                let gap = if low.is_finite() { (theta - low) / sd } else { (high - theta) / sd };
                -gap * (view.z + 0.5 * gap) - view.log_mass() - sd.ln()
            }
        }
    }

    /// `log dθ/du = log φ(u) − log π(θ(u))`.
    ///
    /// # Errors
    /// [`Error::Invalid`] when `u` is NaN or infinite.
    pub fn log_jacobian(&self, u: f64) -> Result<f64> {
        let u = require_latent(u)?;
        Ok(match self.0 {
            Family::Normal { sd, .. } => sd.ln(),
            Family::LogNormal { mu, sigma } => mu + sigma * u + sigma.ln(),
            Family::Beta { a, b } => {
                // Through logit θ: near 1 the rounded θ no longer tells the density.
                let beta = Beta { a, b };
                let s = beta.quantile(LogTails::of_normal(u));
                let y = beta.centre() + s;
                normal::log_density(u) - beta.log_density(s) - softplus(y) - softplus(-y)
            }
            _ => normal::log_density(u) - self.log_density(self.to_theta(u)?),
        })
    }

    /// `θ(u)` before it is put inside the support.
    fn quantile(&self, u: f64) -> f64 {
        let p = LogTails::of_normal(u);
        match self.0 {
            Family::Normal { mean, sd } => mean + sd * u,
            Family::LogNormal { mu, sigma } => (mu + sigma * u).exp(),
            Family::Uniform { low, high, .. } => {
                if u < 0.0 {
                    low + (high - low) * normal::cdf(u)
                } else {
                    high - (high - low) * normal::cdf(-u)
                }
            }
            Family::LogUniform { low, high } => {
                let span = log_ratio(high, low);
                if u < 0.0 { low * (span * normal::cdf(u)).exp() } else { high * (-span * normal::cdf(-u)).exp() }
            }
            Family::Beta { a, b } => {
                let beta = Beta { a, b };
                beta.value(beta.quantile(p))
            }
            Family::Gamma { shape, rate } => {
                let s = Gamma { a: shape }.quantile(p);
                let x = shape * s.exp();
                if x > f64::MIN_POSITIVE { x / rate } else { (s + shape.ln() - rate.ln()).exp() }
            }
            Family::InverseGamma { shape, scale } => {
                let s = Gamma { a: shape }.quantile(p.mirrored());
                let x = shape * s.exp();
                if x > f64::MIN_POSITIVE { scale / x } else { (scale.ln() - shape.ln() - s).exp() }
            }
            Family::Exponential { rate } => {
                if u < 0.0 {
                    -(-normal::cdf(u)).ln_1p() / rate
                } else {
                    -p.upper / rate
                }
            }
            Family::HalfNormal { scale } => scale * p.to_half_normal(),
            Family::Cauchy { location, scale } => {
                let distance = scale / (PI * normal::cdf(-u.abs())).tan();
                location + distance.copysign(u)
            }
            Family::HalfCauchy { scale } => {
                if u < 0.0 {
                    scale * (FRAC_PI_2 * normal::cdf(u)).tan()
                } else {
                    scale / (FRAC_PI_2 * normal::cdf(-u)).tan()
                }
            }
            Family::StudentT { dof, location, scale } => {
                if u == 0.0 {
                    return location;
                }
                // t² / ν is the odds of a Beta(½, ν/2) variable, whose tails are those of |u|.
                let half = Beta { a: 0.5, b: 0.5 * dof };
                let y = half.centre() + half.quantile(LogTails::of_half_normal(u.abs()));
                location + scale * (dof.sqrt() * (0.5 * y).exp()).copysign(u)
            }
            Family::TruncatedNormal { sd, low, high, .. } => {
                // Measured from the end on the side of the smaller tail, or from the only end there is.
                let (below, tail) = (u <= 0.0, p.lower.min(p.upper));
                let end = if below { low } else { high };
                if end.is_finite() {
                    self.at_gap(below, sd * self.interval(below).gap_of_lower(tail))
                } else {
                    self.at_gap(!below, sd * self.interval(!below).gap_of_upper(tail))
                }
            }
        }
    }

    /// `u(θ)` for θ inside the open support.
    fn latent(&self, theta: f64) -> f64 {
        match self.0 {
            Family::Normal { mean, sd } => (theta - mean) / sd,
            Family::LogNormal { mu, sigma } => (theta.ln() - mu) / sigma,
            Family::Uniform { low, high, .. } => {
                let width = high - low;
                LogTails { lower: ((theta - low) / width).ln(), upper: ((high - theta) / width).ln() }.to_normal()
            }
            Family::LogUniform { low, high } => {
                let span = log_ratio(high, low);
                let (lower, upper) = (log_ratio(theta, low) / span, log_ratio(high, theta) / span);
                LogTails { lower: lower.ln(), upper: upper.ln() }.to_normal()
            }
            Family::Beta { a, b } => {
                let beta = Beta { a, b };
                beta.tails(beta.coordinate(theta)).to_normal()
            }
            Family::Gamma { shape, rate } => Gamma { a: shape }.tails(log_product(theta, rate, shape)).to_normal(),
            Family::InverseGamma { shape, scale } => {
                Gamma { a: shape }.tails(log_quotient(scale, theta, shape)).mirrored().to_normal()
            }
            Family::Exponential { rate } => {
                let x = rate * theta;
                LogTails { lower: (-(-x).exp_m1()).ln(), upper: -x }.to_normal()
            }
            Family::HalfNormal { scale } => LogTails::of_half_normal(theta / scale).to_normal(),
            Family::Cauchy { location, scale } => {
                let z = (theta - location) / scale;
                let tail = (z.abs().recip().atan() / PI).min(0.5);
                (-normal::quantile_of_log_cdf(tail.ln())).copysign(z)
            }
            Family::HalfCauchy { scale } => {
                let z = theta / scale;
                let (lower, upper) = (z.atan() / FRAC_PI_2, z.recip().atan() / FRAC_PI_2);
                LogTails { lower: lower.ln(), upper: upper.ln() }.to_normal()
            }
            Family::StudentT { dof, location, scale } => {
                let t = (theta - location) / scale;
                if t == 0.0 {
                    return 0.0;
                }
                let half = Beta { a: 0.5, b: 0.5 * dof };
                let y = 2.0 * t.abs().ln() - dof.ln();
                half.tails(y - half.centre()).to_half_normal().copysign(t)
            }
            Family::TruncatedNormal { sd, low, high, .. } => {
                let (gap, rest) = ((theta - low) / sd, (high - theta) / sd);
                if low.is_finite() {
                    self.interval(true).tails(gap, rest).to_normal()
                } else {
                    self.interval(false).tails(rest, gap).mirrored().to_normal()
                }
            }
        }
    }

    /// A truncated normal in units of its parent, seen from its lower or its upper end.
    fn interval(&self, from_low: bool) -> Interval {
        let Family::TruncatedNormal { mean, sd, low, high } = self.0 else {
            return Interval { z: 0.0, width: f64::INFINITY };
        };
        let z = if from_low { (low - mean) / sd } else { (mean - high) / sd };
        Interval { z, width: (high - low) / sd }
    }

    /// The point at the distance `gap` from the lower or the upper end of the support.
    fn at_gap(&self, from_low: bool, gap: f64) -> f64 {
        let (low, high) = self.support();
        if from_low { low + gap } else { high - gap }
    }

    /// The nearest point that is finite and inside the open support; on the side of 0, one that is not subnormal.
    fn inside(&self, theta: f64) -> f64 {
        let (low, high) = self.support();
        let least = if low == 0.0 { f64::MIN_POSITIVE.min(high.next_down()) } else { low.next_up() };
        let most = if high == 0.0 { (-f64::MIN_POSITIVE).max(low.next_up()) } else { high.next_down() };
        theta.clamp(least, most)
    }
}

/// `u`, if it is finite, kept where its log-density `−u²/2` is finite too.
fn require_latent(u: f64) -> Result<f64> {
    if u.is_finite() {
        Ok(u.clamp(-1e150, 1e150))
    } else {
        Err(Error::invalid("latent coordinate", u, "a finite number"))
    }
}

/// `log(y/x)` for `0 < x ≤ y`, relatively accurate where they are close and without overflow where they are not.
fn log_ratio(y: f64, x: f64) -> f64 {
    if y < 2.0 * x { ((y - x) / x).ln_1p() } else { y.ln() - x.ln() }
}

/// `log(xy/z)`, by the product where that is an ordinary number.
fn log_product(x: f64, y: f64, z: f64) -> f64 {
    let value = x * y / z;
    if value.is_normal() { value.ln() } else { x.ln() + y.ln() - z.ln() }
}

/// `log(x/(yz))`, by the quotient where that is an ordinary number.
fn log_quotient(x: f64, y: f64, z: f64) -> f64 {
    let value = x / y / z;
    if value.is_normal() { value.ln() } else { x.ln() - y.ln() - z.ln() }
}

/// `log(1 + z²)` without overflow.
fn log1p_square(z: f64) -> f64 {
    if z.abs() < 1e150 { (z * z).ln_1p() } else { 2.0 * z.abs().ln() }
}
