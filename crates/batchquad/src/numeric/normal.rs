//! The standard normal distribution, accurate in both tails.
//!
//! Everything rests on `erf` and `erfc` of `libm` (good to an ulp) near the middle and on the continued fraction of the
//! Mills ratio far out, where `erfc` underflows.

use std::f64::consts::{FRAC_2_PI, LN_2, SQRT_2};

/// `½ log 2π`.
pub(crate) const HALF_LN_2PI: f64 = 0.918_938_533_204_672_8;

/// Below this the Mills ratio by continued fraction takes over from `erfc`.
const FAR_TAIL: f64 = -8.0;

/// The log-density `log φ(u) = −u²/2 − ½ log 2π`.
#[must_use]
pub fn log_density(u: f64) -> f64 {
    -0.5 * u * u - HALF_LN_2PI
}

/// The distribution function `Φ(u) = ½ erfc(−u/√2)`, relatively accurate in the lower tail down to its underflow at
/// `u ≈ −38`.
#[must_use]
pub fn cdf(u: f64) -> f64 {
    0.5 * libm::erfc(-u / SQRT_2)
}

/// `log Φ(u)`, relatively accurate for every `u`: `log Φ(−50)` is about −1255, where `Φ(−50)` itself is 0.
#[must_use]
pub fn log_cdf(u: f64) -> f64 {
    if u > 0.0 {
        (-cdf(-u)).ln_1p()
    } else if u > FAR_TAIL {
        cdf(u).ln()
    } else {
        log_density(u) + mills(-u).ln()
    }
}

/// The probability that the sum of `dof` squares of standard normals exceeds `x`; one for no squares.
///
/// By `Q_{k+2} = Q_k + (x/2)^{k/2} e^{−x/2}/Γ(k/2 + 1)` from `Q₁ = 2Φ(−√x)` or `Q₂ = e^{−x/2}`.
#[must_use]
pub fn chi_square_tail(x: f64, dof: usize) -> f64 {
    if dof == 0 || x <= 0.0 {
        return 1.0;
    }
    let half = 0.5 * x;
    let odd = dof % 2 == 1;
    let mut tail = if odd { 2.0 * cdf(-x.sqrt()) } else { (-half).exp() };
    let mut k = if odd { 1.0 } else { 2.0 };
    while k < dof as f64 {
        tail += (0.5 * k * half.ln() - half - libm::lgamma(0.5 * k + 1.0)).exp();
        k += 2.0;
    }
    tail.min(1.0)
}

/// The `u` with `log Φ(u) = log_p`: the quantile function of a probability given by its logarithm.
///
/// Relatively accurate for `log_p ≤ log ½`. Above, the answer is as good as `1 − p` can be known from `log_p`: who has
/// the logarithm of the upper tail should use `Φ⁻¹(p) = −Φ⁻¹(1 − p)` instead. NaN for `log_p > 0` or NaN. Cost: some
/// five evaluations of `erfc`.
#[must_use]
pub fn quantile_of_log_cdf(log_p: f64) -> f64 {
    if log_p.is_nan() || log_p > 0.0 {
        f64::NAN
    } else if log_p > -LN_2 {
        -lower_quantile(log1mexp(log_p))
    } else {
        lower_quantile(log_p)
    }
}

/// Newton's rule for `log Φ(u) = log_p ≤ log ½`.
///
/// `Φ(u) ≤ ½ exp(−u²/2)` gives a start left of the root, and because `log Φ` is concave the iterates rise to it
/// monotonically.
fn lower_quantile(log_p: f64) -> f64 {
    let mut u = -(-2.0 * (log_p + LN_2)).max(0.0).sqrt();
    if u.is_infinite() {
        return u;
    }
    for _ in 0..64 {
        let value = log_cdf(u);
        let slope = if u > FAR_TAIL { (log_density(u) - value).exp() } else { mills(-u).recip() };
        let step = (log_p - value) / slope;
        u += step;
        // The convergence is quadratic: after a step this small nothing is left but rounding.
        if step.abs() <= 1e-9 * u.abs().max(1.0) {
            break;
        }
    }
    u
}

/// The Mills ratio `(1 − Φ(x))/φ(x)` for `x ≥ 0`.
pub(crate) fn mills(x: f64) -> f64 {
    if x < -FAR_TAIL {
        (cdf(-x).ln() - log_density(x)).exp()
    } else {
        // 1/(x + 1/(x + 2/(x + 3/(x + …)))): from x = 8 on, 40 terms leave less than an ulp.
        (1..=40).rev().fold(x, |tail, k| x + f64::from(k) / tail).recip()
    }
}

/// `log(1 − eˣ)` for `x ≤ 0`.
pub(crate) fn log1mexp(x: f64) -> f64 {
    if x > -LN_2 { (-x.exp_m1()).ln() } else { (-x.exp()).ln_1p() }
}

/// A probability by the logarithms of both its tails, so that the smaller is never the rounded complement of the
/// larger.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LogTails {
    /// `log p`.
    pub lower: f64,
    /// `log (1 − p)`.
    pub upper: f64,
}

impl LogTails {
    /// The tails of a standard normal variable at `u`.
    pub fn of_normal(u: f64) -> Self {
        Self { lower: log_cdf(u), upper: log_cdf(-u) }
    }

    /// The tails of the absolute value of a standard normal variable at `x ≥ 0`: `erf(x/√2)` and `2Φ(−x)`.
    pub fn of_half_normal(x: f64) -> Self {
        Self { lower: libm::erf(x / SQRT_2).ln(), upper: LN_2 + log_cdf(-x) }
    }

    /// From `log p` alone.
    pub fn from_lower(lower: f64) -> Self {
        Self { lower, upper: log1mexp(lower) }
    }

    /// The same probability of the mirrored variable.
    pub fn mirrored(self) -> Self {
        Self { lower: self.upper, upper: self.lower }
    }

    /// The quantile of the standard normal distribution.
    pub fn to_normal(self) -> f64 {
        if self.lower <= self.upper { quantile_of_log_cdf(self.lower) } else { -quantile_of_log_cdf(self.upper) }
    }

    /// The quantile of the absolute value of a standard normal variable, relatively accurate next to 0 too.
    pub fn to_half_normal(self) -> f64 {
        if self.upper < -1.0 {
            return -quantile_of_log_cdf(self.upper - LN_2);
        }
        // log erf(eᵗ/√2) is concave in t and erf(x/√2) ≤ x√(2/π) starts left of the root: Newton rises monotonically.
        let mut t = self.lower - 0.5 * FRAC_2_PI.ln();
        for _ in 0..64 {
            let x = t.exp();
            let mass = libm::erf(x / SQRT_2);
            if mass == 0.0 {
                return 0.0;
            }
            let step = (self.lower - mass.ln()) * mass / (2.0 * x * log_density(x).exp());
            t += step;
            if step.abs() <= 1e-9 {
                break;
            }
        }
        t.exp()
    }
}
