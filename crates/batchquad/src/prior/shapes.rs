//! The gamma and beta distributions in the coordinate in which they are log-concave.
//!
//! A gamma variable `x` of shape `a` is described by `s = log(x/a)`, a beta variable by `s = logit x − log(a/b)`: the
//! mode of the density of `s` is at 0. Densities are in the deviance form of Loader, where nothing cancels for large
//! shapes.

use super::logconcave::{increasing_root, integral};
use crate::numeric::normal::{HALF_LN_2PI, LogTails, log1mexp};

/// The farthest `s` that is looked at: beyond it `x` has underflowed for every shape that is allowed.
const FARTHEST: f64 = 1e12;

/// A one-parameter exponential family in the coordinate `s` with mode 0.
pub(crate) trait Shape {
    /// `log D(s)`, the log-density of `s`.
    fn log_density(&self, s: f64) -> f64;

    /// The logarithm of the tail beyond `s`, seen from the mode, and the same without its factor `D(s)`.
    fn outer_tail(&self, s: f64) -> (f64, f64);

    /// `log D(0) − log D(s)` and its derivative.
    fn deviance(&self, s: f64) -> (f64, f64);

    /// The standard deviation of the normal density that touches `D` at its mode.
    fn width(&self) -> f64;

    /// Both tails at `s`.
    fn tails(&self, s: f64) -> LogTails {
        let outer = LogTails::from_lower(self.outer_tail(s).0);
        if s >= 0.0 { outer.mirrored() } else { outer }
    }

    /// The `s` with the tails `p`. Cost: five to ten evaluations of [`Shape::tails`], some 10 µs.
    fn quantile(&self, p: LogTails) -> f64 {
        // The signed root of twice the deviance is nearly normal: a cheap first guess from the density alone.
        let u = p.to_normal();
        let (sign, square) = (u.signum(), 0.5 * u * u);
        let guess = |z: f64| {
            let (value, slope) = self.deviance(sign * z);
            (value - square, sign * slope)
        };
        let start = sign * increasing_root(guess, (0.0, FARTHEST), u.abs() * self.width(), 0.1 * self.width().min(1.0));
        let residual = |s: f64| {
            let (outer, log_integral) = self.outer_tail(s);
            let inner = log1mexp(outer);
            let (lower, upper) = if s >= 0.0 { (inner, outer) } else { (outer, inner) };
            // The slope is D over the tail; far out D and the tail are huge in logarithms, so they are not subtracted.
            let slope = |tail: f64| (outer - tail - log_integral).exp();
            if p.lower <= p.upper { (lower - p.lower, slope(lower)) } else { (p.upper - upper, slope(upper)) }
        };
        increasing_root(residual, (-FARTHEST, FARTHEST), start, 1e-8 * self.width().min(1.0))
    }
}

/// The gamma distribution of unit rate, `s = log(x/a)`.
pub(crate) struct Gamma {
    /// The shape.
    pub a: f64,
}

impl Shape for Gamma {
    fn log_density(&self, s: f64) -> f64 {
        0.5 * self.a.ln() - HALF_LN_2PI - stirling_error(self.a) - self.a * exp_m1_minus(s)
    }

    fn outer_tail(&self, s: f64) -> (f64, f64) {
        let density = self.log_density(s);
        if density == f64::NEG_INFINITY {
            return (density, 0.0);
        }
        let (slope, curvature, sign) = (self.a * s.exp_m1().abs(), self.a * s.exp(), if s >= 0.0 { 1.0 } else { -1.0 });
        let g = |t: f64| slope * t + curvature * exp_m1_minus(sign * t);
        let log_integral = integral(g, f64::INFINITY, self.width().min(slope.recip())).ln();
        (density + log_integral, log_integral)
    }

    fn deviance(&self, s: f64) -> (f64, f64) {
        (self.a * exp_m1_minus(s), self.a * s.exp_m1())
    }

    fn width(&self) -> f64 {
        self.a.sqrt().recip()
    }
}

/// The beta distribution, `s = logit x − log(a/b)`.
pub(crate) struct Beta {
    /// The exponent of `x`.
    pub a: f64,
    /// The exponent of `1 − x`.
    pub b: f64,
}

impl Beta {
    /// `logit x` at `s = 0`.
    pub fn centre(&self) -> f64 {
        (self.a / self.b).ln()
    }

    /// `x` at `s`, through the odds: the sum `log(a/b) + s` would round away digits of `s` for large shapes.
    pub fn value(&self, s: f64) -> f64 {
        let odds = self.a / self.b * s.exp();
        if odds.is_normal() { (1.0 + odds.recip()).recip() } else { logistic(self.centre() + s) }
    }

    /// `s` at `x`.
    pub fn coordinate(&self, x: f64) -> f64 {
        let ratio = x / (1.0 - x) * (self.b / self.a);
        if ratio.is_normal() { ratio.ln() } else { x.ln() - (-x).ln_1p() - self.centre() }
    }

    /// `log(x/x₀)` and `log((1−x)/(1−x₀))`, `x₀ = a/(a+b)`: through `log1p` near the mode, where the logarithms would
    /// cancel.
    fn log_ratios(&self, s: f64) -> (f64, f64) {
        let (centre, y) = (self.centre(), self.centre() + s);
        let (up, down) = if s >= 0.0 {
            let shift = logistic(y) * (-s).exp_m1();
            (-self.b / self.a * shift, shift)
        } else {
            let shift = logistic(-y) * s.exp_m1();
            (shift, -self.a / self.b * shift)
        };
        let near = |ratio: f64, far: f64| if ratio.abs() < 0.5 { ratio.ln_1p() } else { far };
        (near(up, softplus(-centre) - softplus(-y)), near(down, softplus(centre) - softplus(y)))
    }

    /// [`Shape::outer_tail`] at `s ≥ 0`.
    fn upper_tail(&self, s: f64) -> (f64, f64) {
        let density = self.log_density(s);
        if density == f64::NEG_INFINITY {
            return (density, 0.0);
        }
        let y = self.centre() + s;
        let (x, rest, n) = (logistic(y), logistic(-y), self.a + self.b);
        let slope = -x * self.b * (-s).exp_m1();
        // n(log(1 + x(eᵗ − 1)) − xt), written for whichever of x and 1 − x is the smaller.
        let g = |t: f64| {
            let bend = if x > 0.5 {
                rest * t + (rest * (-t).exp_m1()).ln_1p()
            } else if t < 700.0 {
                (x * t.exp_m1()).ln_1p() - x * t
            } else {
                rest * t + x.ln()
            };
            slope * t + n * bend
        };
        let log_integral = integral(g, f64::INFINITY, self.width().min(slope.recip())).ln();
        (density + log_integral, log_integral)
    }
}

impl Shape for Beta {
    fn log_density(&self, s: f64) -> f64 {
        let (a, b) = (self.a, self.b);
        // ½ log(ab/n) so ordered that nothing overflows or underflows.
        let height = 0.5 * (a.min(b).ln() - (a.min(b) / a.max(b)).ln_1p()) - HALF_LN_2PI;
        let errors = stirling_error(a + b) - stirling_error(a) - stirling_error(b);
        height + errors - self.deviance(s).0
    }

    fn outer_tail(&self, s: f64) -> (f64, f64) {
        if s >= 0.0 { self.upper_tail(s) } else { Self { a: self.b, b: self.a }.upper_tail(-s) }
    }

    fn deviance(&self, s: f64) -> (f64, f64) {
        let (up, down) = self.log_ratios(s);
        let y = self.centre() + s;
        let slope = if s >= 0.0 { -logistic(y) * self.b * (-s).exp_m1() } else { logistic(-y) * self.a * s.exp_m1() };
        (self.a * exp_m1_minus(up) + self.b * exp_m1_minus(down), slope)
    }

    fn width(&self) -> f64 {
        (self.a.recip() + self.b.recip()).sqrt()
    }
}

/// `1/(1 + e^{−y})`.
fn logistic(y: f64) -> f64 {
    (1.0 + (-y).exp()).recip()
}

/// `log(1 + eʸ)`.
pub(crate) fn softplus(y: f64) -> f64 {
    y.max(0.0) + (-y.abs()).exp().ln_1p()
}

/// `eʳ − 1 − r`, which is near `r²/2`.
fn exp_m1_minus(r: f64) -> f64 {
    if r.abs() < 0.02 {
        let series = (3..=8).rev().fold(1.0, |sum, k| 1.0 + r / f64::from(k) * sum);
        0.5 * r * r * series
    } else {
        r.exp_m1() - r
    }
}

/// What Stirling's formula leaves: `log Γ(a+1) − ((a+½) log a − a + ½ log 2π)`.
fn stirling_error(a: f64) -> f64 {
    if a < 16.0 {
        libm::lgamma(a) - (a - 0.5) * a.ln() + a - HALF_LN_2PI
    } else {
        let r = a.recip();
        let q = r * r;
        r * (1.0 / 12.0 - q * (1.0 / 360.0 - q * (1.0 / 1260.0 - q * (1.0 / 1680.0 - q / 1188.0))))
    }
}
