//! What is believed about one parameter.

use serde::Serialize;

use super::{
    Method,
    coordinates::Map,
    density::{Density1, bisect},
};
use crate::{
    error::{Error, Result},
    prior::Family,
};

/// The posterior of one parameter, all others integrated out.
#[derive(Debug, Clone)]
pub struct Marginal {
    name: String,
    method: Method,
    density: Density1,
    map: Map,
    /// Of the prior in the coordinate of the density: `N(mean, sd²)`.
    prior: Option<(f64, f64)>,
    mean: f64,
    sd: f64,
}

/// A marginal density on a grid.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// Values of the parameter, increasing.
    pub theta: Vec<f64>,
    /// The posterior density at each.
    pub density: Vec<f64>,
    /// The prior density at each; empty where it is not known in closed form.
    pub prior: Vec<f64>,
    /// At how many the density came out negative, by more than rounding, and was set to zero.
    pub negative: usize,
}

/// Steps of the moments' quadrature in the narrowest Gaussian: the trapezoidal rule has long converged.
const STEPS: f64 = 6.0;

/// The most steps of a grid; a posterior that needs more is a needle, whose ends are found by quantiles first.
const MOST: usize = 20_000;

/// What is beyond these masses is not looked at when highest densities are sought.
const TAIL: f64 = 1e-12;

/// A moment of which so much comes from the outermost tenth of the range has no value that could be computed.
const OUTER: f64 = 1e-3;

impl Marginal {
    pub(super) fn new(
        name: &str,
        method: Method,
        density: Density1,
        map: Map,
        prior: Option<(f64, f64)>,
    ) -> Result<Self> {
        let mut marginal = Self { name: name.into(), method, density, map, prior, mean: f64::NAN, sd: f64::NAN };
        (marginal.mean, marginal.sd) = marginal.moments()?;
        Ok(marginal)
    }

    /// The same with moments that are known otherwise.
    pub(super) fn with_moments(
        name: &str,
        density: Density1,
        map: Map,
        prior: Option<(f64, f64)>,
        mean: f64,
        sd: f64,
    ) -> Self {
        Self { name: name.into(), method: Method::Draws, density, map, prior, mean, sd }
    }

    /// The name of the parameter.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it comes from.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }

    /// The posterior mean; NaN where the tails are too heavy for there to be one.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The posterior standard deviation; NaN where the tails are too heavy for there to be one.
    #[must_use]
    pub fn sd(&self) -> f64 {
        self.sd
    }

    /// The density at `theta`, `p(t)/(dθ/dt)`; zero outside the support and where a negative lobe was cut off.
    ///
    /// # Errors
    /// [`Error::Invalid`] for NaN; [`Error::Numerical`] for a value so far out that it has no latent coordinate.
    pub fn density(&self, theta: f64) -> Result<f64> {
        let t = self.latent(theta)?;
        if t.is_infinite() {
            return Ok(0.0);
        }
        Ok(self.density.at(t).max(0.0) * (-self.map.log_slope(t)?).exp())
    }

    /// The prior density at `theta`; `None` where it is not known in closed form.
    ///
    /// # Errors
    /// As [`Marginal::density`].
    pub fn prior_density(&self, theta: f64) -> Result<Option<f64>> {
        let Some((mean, sd)) = self.prior else { return Ok(None) };
        let t = self.latent(theta)?;
        if t.is_infinite() {
            return Ok(Some(0.0));
        }
        let log_density = crate::numeric::normal::log_density((t - mean) / sd) - sd.ln() - self.map.log_slope(t)?;
        Ok(Some(log_density.exp()))
    }

    /// The posterior probability that the parameter is below `theta`.
    ///
    /// # Errors
    /// As [`Marginal::density`].
    pub fn cdf(&self, theta: f64) -> Result<f64> {
        match self.latent(theta)? {
            f64::NEG_INFINITY => Ok(0.0),
            f64::INFINITY => Ok(1.0),
            t => Ok(self.density.below(t).clamp(0.0, 1.0)),
        }
    }

    /// The value that the parameter is below with probability `p`.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless `0 < p < 1`.
    pub fn quantile(&self, p: f64) -> Result<f64> {
        require_probability("probability of a quantile", p)?;
        self.map.theta(self.density.quantile(p))
    }

    /// The central interval that holds the parameter with probability `mass`: as much is below it as above.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless `0 < mass < 1`.
    pub fn interval(&self, mass: f64) -> Result<(f64, f64)> {
        require_probability("mass of an interval", mass)?;
        Ok((self.quantile(0.5 * (1.0 - mass))?, self.quantile(0.5 * (1.0 + mass))?))
    }

    /// The smallest set that holds the parameter with probability `mass`: where the density of θ is highest, as
    /// intervals from left to right.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless `0 < mass < 1`.
    pub fn highest_density(&self, mass: f64) -> Result<Vec<(f64, f64)>> {
        require_probability("mass of a highest-density set", mass)?;
        let (low, high) = (self.density.quantile(TAIL), self.density.quantile(1.0 - TAIL));
        let grid = spread(low, high, (4.0 * (high - low) / self.density.grain()) as usize);
        let height = |t: f64| -> Result<f64> { Ok(self.density.at(t).max(0.0).ln() - self.map.log_slope(t)?) };
        let heights: Vec<f64> = grid.iter().map(|t| height(*t)).collect::<Result<_>>()?;
        // The intervals on which the height is above a level, in the coordinate of the density.
        let above = |level: f64| -> Result<Vec<(f64, f64)>> {
            let mut pieces = Vec::new();
            let mut start = (heights[0] > level).then_some(grid[0]);
            for (t, h) in grid.windows(2).zip(heights.windows(2)) {
                let crossing = || root(t[0], t[1], h[0] - level, h[1] - level, |t| Ok(height(t)? - level));
                match start {
                    None if h[1] > level => start = Some(crossing()?),
                    Some(from) if h[1] <= level => {
                        pieces.push((from, crossing()?));
                        start = None;
                    }
                    _ => {}
                }
            }
            pieces.extend(start.map(|from| (from, grid[grid.len() - 1])));
            Ok(pieces)
        };
        let held = |pieces: &[(f64, f64)]| -> f64 {
            pieces.iter().map(|(a, b)| self.density.below(*b) - self.density.below(*a)).sum()
        };
        let top = heights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Everything is within 10⁻³⁰ of the top where anything is.
        let excess = |level: f64| -> Result<f64> { Ok(held(&above(level)?) - mass) };
        let floor = top - 70.0;
        let level = root(floor, top, excess(floor)?, -mass, excess)?;
        let end = |t: f64| -> Result<f64> {
            match self.map {
                // A density that rises up to the end of its support has its highest part there.
                Map::Scalar(d) if t == low && d.support().0.is_finite() => Ok(d.support().0),
                Map::Scalar(d) if t == high && d.support().1.is_finite() => Ok(d.support().1),
                _ => self.map.theta(t),
            }
        };
        above(level)?.into_iter().map(|(a, b)| Ok((end(a)?, end(b)?))).collect()
    }

    /// The density on `n` values between the quantiles that leave out `10⁻⁴` on each side and a little beyond, evenly
    /// spread in the latent coordinate.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two values.
    pub fn curve(&self, n: usize) -> Result<Curve> {
        let (low, high) = self.window();
        let theta = self.spread(low, high, n)?;
        self.on(&theta)
    }

    /// The density at the given values.
    ///
    /// # Errors
    /// As [`Marginal::density`].
    pub fn on(&self, theta: &[f64]) -> Result<Curve> {
        let negative = |t: &f64| -> Result<bool> {
            let t = self.latent(*t)?;
            Ok(t.is_finite() && self.density.at(t) < -self.density.rounding())
        };
        Ok(Curve {
            theta: theta.to_vec(),
            density: theta.iter().map(|t| self.density(*t)).collect::<Result<_>>()?,
            prior: theta.iter().filter_map(|t| self.prior_density(*t).transpose()).collect::<Result<_>>()?,
            negative: theta.iter().map(negative).collect::<Result<Vec<_>>>()?.into_iter().filter(|n| *n).count(),
        })
    }

    /// Where there is something to see, in the latent coordinate.
    pub(super) fn window(&self) -> (f64, f64) {
        let (low, high) = (self.density.quantile(1e-4), self.density.quantile(1.0 - 1e-4));
        let margin = 0.05 * (high - low);
        (low - margin, high + margin)
    }

    /// Values of the parameter, evenly spread in the latent coordinate.
    pub(super) fn spread(&self, low: f64, high: f64, n: usize) -> Result<Vec<f64>> {
        if n < 2 {
            return Err(Error::invalid("number of values on a grid", n, "at least 2"));
        }
        let step = (high - low) / (n - 1) as f64;
        (0..n).map(|i| self.map.theta(low + i as f64 * step)).collect()
    }

    pub(super) fn map(&self) -> &Map {
        &self.map
    }

    fn latent(&self, theta: f64) -> Result<f64> {
        if theta.is_nan() {
            return Err(Error::invalid(format!("value of parameter {:?}", self.name), theta, "a number"));
        }
        self.map.latent(theta)
    }

    /// Whether the map grows without bound faster than a straight line.
    fn steep(&self) -> bool {
        match self.map {
            Map::Identity => false,
            Map::Scalar(d) => !self.bounded() && !matches!(d.family(), Family::Normal { .. }),
        }
    }

    /// Whether the parameter is confined to an interval, so that every moment exists.
    fn bounded(&self) -> bool {
        match self.map {
            Map::Identity => false,
            Map::Scalar(d) => d.support().0.is_finite() && d.support().1.is_finite(),
        }
    }

    /// Mean and standard deviation by the trapezoidal rule over the latent coordinate.
    fn moments(&self) -> Result<(f64, f64)> {
        let (low, high) = self.density.range();
        let grid = spread(low, high, (STEPS * (high - low) / self.density.grain()) as usize);
        let mut terms = Vec::new();
        for (i, t) in grid.iter().enumerate() {
            let p = self.density.at(*t);
            // A map that grows fast would make much of rounding errors far out.
            if p.abs() > self.density.rounding() || !self.steep() {
                terms.push((i, p, self.map.theta(*t)?));
            }
        }
        let total: f64 = terms.iter().map(|(_, p, _)| p).sum();
        // Of what there is, which may end before the grid does.
        let (first, last) = (terms.first().map_or(0, |t| t.0), terms.last().map_or(0, |t| t.0));
        let rim = (last - first) / 20;
        let bounded = self.bounded();
        let outer = |i: usize| i < first + rim || i > last - rim;
        let average = |of: &dyn Fn(f64) -> f64| {
            let (mut sum, mut size, mut far) = (0.0, 0.0, 0.0);
            for (i, p, theta) in &terms {
                let term = p * of(*theta);
                sum += term;
                size += term.abs();
                far += if outer(*i) { term.abs() } else { 0.0 };
            }
            if bounded || far <= OUTER * size { sum / total } else { f64::NAN }
        };
        let mean = average(&|theta| theta);
        let variance = average(&|theta| (theta - mean).powi(2));
        // Not `max`, which would make a zero of what is not a number.
        Ok((mean, if variance < 0.0 { 0.0 } else { variance.sqrt() }))
    }
}

/// From `low` to `high` in about `n` equal steps, neither too few to see anything nor too many to be worth it.
fn spread(low: f64, high: f64, n: usize) -> Vec<f64> {
    let n = n.clamp(64, MOST);
    (0..=n).map(|i| low + (high - low) * i as f64 / n as f64).collect()
}

/// A zero of `f` between `a` and `b`, where it has the values `fa` and `fb` of different signs: false position with
/// halved values at the end that stays (Illinois), and bisection when that is slow.
fn root(mut a: f64, mut b: f64, mut fa: f64, mut fb: f64, f: impl Fn(f64) -> Result<f64>) -> Result<f64> {
    if !(fa.is_finite() && fb.is_finite()) || fa.signum() == fb.signum() {
        // No line can be drawn to −∞: halve.
        let rising = fb > fa;
        let failure = std::cell::RefCell::new(None);
        let found = bisect(a, b, |t| match f(t) {
            Ok(v) => (v < 0.0) == rising,
            Err(e) => {
                failure.borrow_mut().get_or_insert(e);
                false
            }
        });
        return failure.into_inner().map_or(Ok(found), Err);
    }
    let width = (b - a).abs();
    for step in 0..200 {
        if fa == 0.0 {
            return Ok(a);
        }
        if fb == 0.0 {
            return Ok(b);
        }
        // A value may be −∞ on the way, to which no line can be drawn.
        let halve = step % 3 == 2 || !(fa.is_finite() && fb.is_finite());
        let t = if halve { 0.5 * (a + b) } else { (a * fb - b * fa) / (fb - fa) };
        let value = f(t)?;
        if (value < 0.0) == (fb < 0.0) {
            (b, fb) = (t, value);
            fa *= if halve { 1.0 } else { 0.5 };
        } else {
            (a, fa) = (t, value);
            fb *= if halve { 1.0 } else { 0.5 };
        }
        if (b - a).abs() <= 1e-13 * width {
            break;
        }
    }
    Ok(0.5 * (a + b))
}

fn require_probability(what: &str, p: f64) -> Result<()> {
    if p > 0.0 && p < 1.0 { Ok(()) } else { Err(Error::invalid(what, p, "a number between 0 and 1, both excluded")) }
}
