//! What is believed about two parameters together.

use serde::Serialize;

use super::{Marginal, Method, density::Density2};
use crate::error::{Error, Result};

/// The posterior of two parameters, all others integrated out.
#[derive(Debug, Clone)]
pub struct Joint {
    first: Marginal,
    second: Marginal,
    method: Method,
    density: Density2,
}

/// A density of two parameters on a grid.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Surface {
    /// Values of the first parameter, increasing.
    pub first: Vec<f64>,
    /// Values of the second parameter, increasing.
    pub second: Vec<f64>,
    /// The density at `(first[i], second[j])` is number `i · second.len() + j`.
    pub density: Vec<f64>,
    /// At how many points the density came out negative, by more than rounding, and was set to zero.
    pub negative: usize,
}

impl Joint {
    pub(super) fn new(first: Marginal, second: Marginal, method: Method, density: Density2) -> Self {
        Self { first, second, method, density }
    }

    /// The names of the two parameters.
    #[must_use]
    pub fn names(&self) -> (&str, &str) {
        (self.first.name(), self.second.name())
    }

    /// Where it comes from.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }

    /// The density on `n × n` points, over the same values as the curves of the two marginals.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two values per side.
    pub fn surface(&self, n: usize) -> Result<Surface> {
        let [first, second] = [&self.first, &self.second].map(|m| m.spread(m.window().0, m.window().1, n));
        self.on(&first?, &second?)
    }

    /// The density on a grid of values inside the supports.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a value that is not finite, [`Error::OutsideSupport`] for one outside the support.
    pub fn on(&self, first: &[f64], second: &[f64]) -> Result<Surface> {
        let latent = |marginal: &Marginal, theta: &[f64]| -> Result<(Vec<f64>, Vec<f64>)> {
            let mut out = (Vec::new(), Vec::new());
            for value in theta {
                let t = marginal.map().latent(*value)?;
                if !t.is_finite() {
                    let what = format!("value of parameter {:?}", marginal.name());
                    return Err(Error::invalid(what, value, "a number inside the support"));
                }
                out.0.push(t);
                out.1.push((-marginal.map().log_slope(t)?).exp());
            }
            Ok(out)
        };
        let ((s, s_slopes), (t, t_slopes)) = (latent(&self.first, first)?, latent(&self.second, second)?);
        let mut density = self.density.on(&s, &t)?;
        let (mut negative, rounding) = (0, self.density.rounding());
        for (i, d) in density.iter_mut().enumerate() {
            negative += usize::from(*d < -rounding);
            *d = d.max(0.0) * s_slopes[i / t.len()] * t_slopes[i % t.len()];
        }
        Ok(Surface { first: first.to_vec(), second: second.to_vec(), density, negative })
    }
}

impl Surface {
    /// For each of `masses`, the height above which the density holds that much of what is on the grid: contours of
    /// highest density.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a mass that is not between 0 and 1.
    pub fn levels(&self, masses: &[f64]) -> Result<Vec<f64>> {
        let widths = |v: &[f64]| -> Vec<f64> {
            (0..v.len()).map(|i| 0.5 * (v[(i + 1).min(v.len() - 1)] - v[i.saturating_sub(1)])).collect()
        };
        let (rows, columns) = (widths(&self.first), widths(&self.second));
        let mut cells: Vec<(f64, f64)> = self
            .density
            .iter()
            .enumerate()
            .map(|(i, d)| (*d, d * rows[i / columns.len()] * columns[i % columns.len()]))
            .collect();
        cells.sort_by(|a, b| b.0.total_cmp(&a.0));
        let total: f64 = cells.iter().map(|(_, mass)| mass).sum();
        masses
            .iter()
            .map(|&wanted| {
                if !(wanted > 0.0 && wanted < 1.0) {
                    return Err(Error::invalid("mass of a contour", wanted, "a number between 0 and 1, both excluded"));
                }
                let mut held = 0.0;
                let level = cells.iter().find(|(_, mass)| {
                    held += mass;
                    held >= wanted * total
                });
                Ok(level.map_or(0.0, |(density, _)| *density))
            })
            .collect()
    }
}
