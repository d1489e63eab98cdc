//! Densities of one and of two quantities: signed mixtures of Gaussians, on combs where there are many.

use rayon::prelude::*;

use super::{
    comb::{Line, Mark, Plane, REACH},
    square::{Square, Table},
};
use crate::{
    error::{Error, Result},
    numeric::normal,
    points::Points,
};

/// The rounding of a sum of terms of size one, each a product of a few numbers that are rounded themselves.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// A density on the line.
#[derive(Debug, Clone)]
pub(super) enum Density1 {
    /// A signed mixture of Gaussians.
    Mixture(Mixture1),
    /// By its values.
    Table(Table),
}

/// `Σ wᵢ N(t; cᵢ, s²)` over combs of equal Gaussians, and a few Gaussians beside them.
#[derive(Debug, Clone)]
pub(super) struct Mixture1 {
    /// Standard deviation of the Gaussians and their centres in its units.
    pub(super) combs: Vec<(f64, Line)>,
    /// Weight, mean and standard deviation.
    pub(super) bells: Vec<(f64, f64, f64)>,
    /// The sum of all weights.
    pub(super) total: f64,
    /// The sum of the sizes of those on combs.
    pub(super) sizes: f64,
}

impl Mixture1 {
    fn sum(&self, comb: impl Fn(f64, &Line) -> f64, bell: impl Fn(f64, f64) -> f64) -> f64 {
        let combs: f64 = self.combs.iter().map(|(sd, line)| comb(*sd, line)).sum();
        let bells: f64 = self.bells.iter().map(|(w, mean, sd)| w * bell(*mean, *sd)).sum();
        (combs + bells) / self.total
    }
}

impl Density1 {
    /// The density at `t`. Cost: 250 exponentials a comb.
    pub(super) fn at(&self, t: f64) -> f64 {
        let bell = |mean: f64, sd: f64| normal::log_density((t - mean) / sd).exp() / sd;
        match self {
            Self::Mixture(m) => m.sum(|sd, line| line.density(t / sd) / sd, bell),
            Self::Table(table) => table.at(t),
        }
    }

    /// The mass below `t`.
    pub(super) fn below(&self, t: f64) -> f64 {
        match self {
            Self::Mixture(m) => m.sum(|sd, line| line.mass_below(t / sd), |mean, sd| normal::cdf((t - mean) / sd)),
            Self::Table(table) => table.below(t),
        }
    }

    /// How far from the truth rounding may take the density where terms of both signs cancel.
    pub(super) fn rounding(&self) -> f64 {
        match self {
            Self::Mixture(m) => ROUNDING * m.sizes / (m.total * self.grain()),
            Self::Table(_) => ROUNDING / self.grain(),
        }
    }

    /// Beyond these there is nothing.
    pub(super) fn range(&self) -> (f64, f64) {
        let m = match self {
            Self::Mixture(m) => m,
            Self::Table(table) => return table.range(),
        };
        let combs = m.combs.iter().map(|(sd, line)| (line.range().0 * sd, line.range().1 * sd));
        let bells = m.bells.iter().map(|(_, mean, sd)| (mean - REACH * sd, mean + REACH * sd));
        combs.chain(bells).fold((f64::INFINITY, f64::NEG_INFINITY), |all, one| (all.0.min(one.0), all.1.max(one.1)))
    }

    /// The narrowest of the Gaussians: nothing in this density is finer.
    pub(super) fn grain(&self) -> f64 {
        match self {
            Self::Mixture(m) => {
                let bells = m.bells.iter().map(|(_, _, sd)| *sd);
                m.combs.iter().map(|(sd, _)| *sd).chain(bells).fold(f64::INFINITY, f64::min)
            }
            Self::Table(table) => table.grain(),
        }
    }

    /// The `t` with mass `p` below it, by bisection to the last bit.
    pub(super) fn quantile(&self, p: f64) -> f64 {
        let (low, high) = self.range();
        bisect(low, high, |t| self.below(t) < p)
    }

    /// A smooth density through weighted values, with their mean and variance.
    ///
    /// A Gaussian of the width `h = s(4/3n)^{1/5}` around each, `n` the effective number of values; the values are
    /// first drawn together by `√(1 − h²/s²)` so that the variance stays.
    pub(super) fn smoothed(values: &[f64], weights: &[f64], effective: f64) -> Result<Self> {
        let smooth = Smooth::new(values, weights, effective, 1)?;
        let (low, high) = smooth.ends();
        let mut line = Line::over(low, high)?;
        line.add(Mark::ORIGIN, &line.marks(&smooth.centres, 1.0)?, weights, 0.0);
        let total = weights.iter().sum();
        let combs = vec![(smooth.width, line.finish())];
        Ok(Self::Mixture(Mixture1 { combs, bells: Vec::new(), total, sizes: total }))
    }
}

/// The last double between `low` and `high` for which `before` holds; it holds up to some place.
pub(super) fn bisect(mut low: f64, mut high: f64, before: impl Fn(f64) -> bool) -> f64 {
    // Halving an interval of doubles ends when nothing is left between its ends.
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if before(middle) { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// A weight of less than this, relative to the mean one, does not count.
const NEGLIGIBLE: f64 = 1e-9;

/// Values drawn together, in units of the width that smooths them.
struct Smooth {
    width: f64,
    centres: Vec<f64>,
}

impl Smooth {
    fn new(values: &[f64], weights: &[f64], effective: f64, dim: usize) -> Result<Self> {
        let total: f64 = weights.iter().sum();
        let mean = values.iter().zip(weights).map(|(v, w)| w * v).sum::<f64>() / total;
        let square = values.iter().zip(weights).map(|(v, w)| w * (v - mean).powi(2)).sum::<f64>() / total;
        let sd = square.sqrt();
        if !(sd.is_finite() && sd > 0.0 && effective > 1.0) {
            return Err(Error::Numerical {
                what: "density of posterior draws".into(),
                reason: format!(
                    "the draws are worth {effective:.1} independent ones and their standard deviation is {sd}"
                ),
            });
        }
        let (n, d) = (effective, dim as f64);
        let share = (4.0 / (n * (d + 2.0))).powf(1.0 / (d + 4.0)).min(0.9);
        let (width, together) = (share * sd, (1.0 - share * share).sqrt());
        Ok(Self { width, centres: values.iter().map(|v| (mean + together * (v - mean)) / width).collect() })
    }

    fn ends(&self) -> (f64, f64) {
        ends(&self.centres)
    }
}

pub(super) fn ends(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)))
}

/// A lower triangular 2 × 2 matrix `[[a, 0], [b, c]]`: the factor of a covariance.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lower {
    a: f64,
    b: f64,
    c: f64,
}

impl Lower {
    /// The factor of `[[xx, xy], [xy, yy]]`.
    pub(super) fn of(xx: f64, xy: f64, yy: f64) -> Result<Self> {
        let a = xx.sqrt();
        let b = xy / a;
        let rest = yy - b * b;
        // A pivot that is mere rounding stands for two quantities that are one.
        if a > 0.0 && rest > 4.0 * f64::EPSILON * yy {
            Ok(Self { a, b, c: rest.sqrt() })
        } else {
            Err(Error::NotPositiveDefinite { what: "covariance of two quantities".into(), pivot: 1, value: rest })
        }
    }

    /// `L⁻¹(x, y)`.
    pub(super) fn whiten(&self, x: f64, y: f64) -> (f64, f64) {
        let first = x / self.a;
        (first, (y - self.b * first) / self.c)
    }

    fn determinant(&self) -> f64 {
        self.a * self.c
    }
}

/// A density in the plane.
#[derive(Debug, Clone)]
pub(super) enum Density2 {
    /// A signed mixture of Gaussians.
    Mixture(Mixture2),
    /// By its values, where the two quantities are all there is: the density with the inverse of the map to them.
    Square {
        /// The density, not normalised.
        square: Square,
        /// The rows of `A⁻¹` and the shifts: `x = A⁻¹(q − shift)`.
        inverse: ([[f64; 2]; 2], [f64; 2]),
        /// The mass times `|det A|`.
        total: f64,
    },
}

/// As [`Mixture1`].
#[derive(Debug, Clone)]
pub(super) struct Mixture2 {
    pub(super) combs: Vec<(Lower, Plane)>,
    /// Weight, mean and factor of the covariance.
    pub(super) bells: Vec<(f64, [f64; 2], Lower)>,
    pub(super) total: f64,
    pub(super) sizes: f64,
}

impl Density2 {
    /// The density on a grid, the second coordinate running fastest. Cost: 250 exponentials per point and comb, or one
    /// per point and node.
    ///
    /// # Errors
    /// For values that are not finite.
    pub(super) fn on(&self, first: &[f64], second: &[f64]) -> Result<Vec<f64>> {
        match self {
            Self::Mixture(mixture) => Ok(mixture.on(first, second)),
            Self::Square { square, inverse: (rows, shift), total } => {
                let row = |s: &f64| -> Result<Vec<f64>> {
                    let place = |t: &f64| {
                        let q = [s - shift[0], t - shift[1]];
                        rows.map(|r| r[0] * q[0] + r[1] * q[1])
                    };
                    let points = Points::from_rows(&second.iter().map(place).collect::<Vec<_>>())?;
                    Ok(square.at(&points)?.iter().map(|v| v / total).collect())
                };
                Ok(first.par_iter().map(row).collect::<Result<Vec<_>>>()?.concat())
            }
        }
    }

    /// As [`Density1::rounding`].
    pub(super) fn rounding(&self) -> f64 {
        match self {
            Self::Mixture(m) => {
                let grain = m.combs.iter().map(|(lower, _)| lower.determinant()).fold(f64::INFINITY, f64::min);
                ROUNDING * m.sizes / (m.total * grain)
            }
            Self::Square { .. } => 0.0,
        }
    }

    /// A smooth density through weighted pairs of values, as [`Density1::smoothed`]. Values that do not count are left out: the plane must not reach
    /// to where a proposal has drawn in vain. Where it reaches too far all the same, the bells are wider.
    pub(super) fn smoothed(values: [&[f64]; 2], weights: &[f64], effective: f64) -> Result<Self> {
        let least = NEGLIGIBLE * weights.iter().sum::<f64>() / weights.len() as f64;
        let counting = |all: &[f64]| -> Vec<f64> {
            all.iter().zip(weights).filter(|(_, w)| **w > least).map(|(v, _)| *v).collect()
        };
        let (values, weights) = ([counting(values[0]), counting(values[1])], &counting(weights)[..]);
        let plane = |effective: f64| -> Result<(Smooth, Smooth, Plane)> {
            let [x, y] =
                [Smooth::new(&values[0], weights, effective, 2)?, Smooth::new(&values[1], weights, effective, 2)?];
            let plane = Plane::over(x.ends(), y.ends())?;
            Ok((x, y, plane))
        };
        let (x, y, mut plane) = match plane(effective) {
            Err(_) if effective > 64.0 => plane(64.0)?,
            made => made?,
        };
        let [a, b] = plane.marks([&x.centres, &y.centres], 1.0)?;
        plane.add([Mark::ORIGIN; 2], [&a, &b], weights, 0.0);
        let lower = Lower { a: x.width, b: 0.0, c: y.width };
        let total = weights.iter().sum();
        Ok(Self::Mixture(Mixture2 { combs: vec![(lower, plane)], bells: Vec::new(), total, sizes: total }))
    }
}

impl Mixture2 {
    /// Each cut through the plane at a value of the first quantity is a line in the second.
    fn on(&self, first: &[f64], second: &[f64]) -> Vec<f64> {
        let row = |s: &f64| -> Vec<f64> {
            let cuts: Vec<(&Lower, Line)> =
                self.combs.iter().map(|(lower, plane)| (lower, plane.cut(lower.whiten(*s, 0.0).0))).collect();
            let at = |t: &f64| {
                let combs: f64 =
                    cuts.iter().map(|(lower, line)| line.density(lower.whiten(*s, *t).1) / lower.determinant()).sum();
                let bell = |(w, mean, lower): &(f64, [f64; 2], Lower)| {
                    let (x, y) = lower.whiten(s - mean[0], t - mean[1]);
                    w * (normal::log_density(x) + normal::log_density(y)).exp() / lower.determinant()
                };
                (combs + self.bells.iter().map(bell).sum::<f64>()) / self.total
            };
            second.iter().map(at).collect()
        };
        first.par_iter().map(row).collect::<Vec<_>>().concat()
    }
}
