//! A log-joint density that counts its evaluations, and its derivatives by differences.

use crate::{
    belief::measure::Jet,
    error::{Error, Result},
};

/// `log ℓ + log π` as the caller gave it, counted and checked.
pub(super) struct LogJoint<F> {
    function: F,
    pub(super) evaluations: usize,
    pub(super) budget: usize,
}

/// One coordinate's central difference: the step and the values on both sides.
#[derive(Debug, Clone)]
struct Pair {
    step: f64,
    plus: f64,
    minus: f64,
}

/// How far from the point, in standard deviations of the curvature, second differences are taken.
///
/// With the step `h` and rounding `η` of the values, a second derivative is off by `h² f⁗/12 + 4η/h²`. A Laplace
/// approximation is itself off by about `f⁗/8` (in units of the standard deviation), so at `h = 0.03` the differences
/// add only `h²/3 = 3·10⁻⁴` of the error that is there anyhow, and they forgive a likelihood that is exact to only ten
/// digits. (A step of twice the length is not refined, which makes it 10⁻³.) Where the values are so large that
/// rounding would dominate, the step balances the two terms.
fn second_difference_step(size: f64) -> f64 {
    (48.0 * f64::EPSILON * size.abs()).powf(0.25).clamp(0.03, 0.5)
}

/// The same for the first difference, `h² f‴/6 + η/h`; smaller, because the scale may be known only to a power of ten
/// or two.
fn first_difference_step(size: f64) -> f64 {
    (3.0 * f64::EPSILON * size.abs()).cbrt().clamp(1e-5, 0.1)
}

impl<F: FnMut(&[f64]) -> f64> LogJoint<F> {
    pub(super) fn new(function: F, budget: usize) -> Self {
        Self { function, evaluations: 0, budget }
    }

    /// Whether the budget is spent.
    pub(super) fn exhausted(&self) -> bool {
        self.evaluations >= self.budget
    }

    /// The log-joint at `x`: finite or −∞.
    pub(super) fn at(&mut self, x: &[f64]) -> Result<f64> {
        if self.exhausted() {
            return Err(Error::Numerical {
                what: "Laplace approximation".to_owned(),
                reason: format!("its budget of {} evaluations of the log-joint is spent", self.budget),
            });
        }
        if let Some(coordinate) = x.iter().position(|v| !v.is_finite()) {
            return Err(Error::NonFinitePoint { index: self.evaluations, coordinate, value: x[coordinate] });
        }
        let value = (self.function)(x);
        let index = self.evaluations;
        self.evaluations += 1;
        if value.is_nan() || value == f64::INFINITY {
            return Err(Error::NonFiniteValue { index, point: x.to_vec(), value });
        }
        Ok(value)
    }

    /// Value and gradient, by central differences (`2d` further evaluations). Next to a region where the density is
    /// zero the difference is taken on the side that is not; between two it is NaN.
    pub(super) fn gradient(&mut self, x: &[f64], scales: &[f64]) -> Result<(f64, Vec<f64>)> {
        let here = self.at(x)?;
        if !here.is_finite() {
            return Ok((here, vec![f64::NAN; x.len()]));
        }
        let mut gradient = Vec::with_capacity(x.len());
        for (j, scale) in scales.iter().enumerate() {
            let step = representable(x[j], first_difference_step(here) * scale);
            let Pair { plus, minus, .. } = self.pair(x, j, step)?;
            gradient.push(match (plus.is_finite(), minus.is_finite()) {
                (true, true) => (plus - minus) / (2.0 * step),
                (true, false) => (plus - here) / step,
                (false, true) => (here - minus) / step,
                (false, false) => f64::NAN,
            });
        }
        Ok((here, gradient))
    }

    fn pair(&mut self, x: &[f64], j: usize, step: f64) -> Result<Pair> {
        let mut y = x.to_vec();
        y[j] = x[j] + step;
        let plus = self.at(&y)?;
        y[j] = x[j] - step;
        let minus = self.at(&y)?;
        Ok(Pair { step, plus, minus })
    }

    /// The step along `j` over which the log-joint bends by about `½h²`, `h` being [`second_difference_step`]; `None`
    /// where none is found: the log-joint is flat, straight or broken along this coordinate.
    ///
    /// A parabola through three values extrapolates to the step that is wanted, so two or three pairs are enough when
    /// the first scale is right to a few powers of ten.
    fn bend(&mut self, x: &[f64], j: usize, value: f64, scale: f64) -> Result<Option<Pair>> {
        let wanted = 0.5 * second_difference_step(value).powi(2);
        let mut step = second_difference_step(value) * scale;
        // Beyond this the density has been seen to be zero.
        let mut edge = f64::INFINITY;
        for _ in 0..30 {
            step = representable(x[j], step);
            if step == 0.0 || !(x[j] + step).is_finite() || !(x[j] - step).is_finite() {
                return Ok(None);
            }
            let pair = self.pair(x, j, step)?;
            let Pair { plus, minus, .. } = pair;
            if !(plus.is_finite() && minus.is_finite()) {
                edge = edge.min(step);
                step *= 0.1;
                continue;
            }
            let bent = (value - 0.5 * (plus + minus)).abs();
            let rounding = 16.0 * f64::EPSILON * value.abs().max(plus.abs()).max(minus.abs());
            let seen = bent > rounding;
            if seen && (0.1 * wanted..4.0 * wanted).contains(&bent) {
                return Ok(Some(pair));
            }
            let next = if seen { step * (wanted / bent).sqrt().clamp(0.01, 100.0) } else { step * 100.0 };
            if next >= 0.5 * edge {
                // No room for a larger step: this one will do if it tells anything.
                return Ok(seen.then_some(pair));
            }
            step = next;
        }
        Ok(None)
    }

    /// Widths of the log-joint, one per coordinate: `|∂²f/∂xⱼ²|^{−½}`, or the old scale where there is no curvature to
    /// be seen.
    pub(super) fn widths(&mut self, x: &[f64], value: f64, scales: &[f64]) -> Result<Vec<f64>> {
        let mut widths = Vec::with_capacity(x.len());
        for (j, &scale) in scales.iter().enumerate() {
            widths.push(self.bend(x, j, value, scale)?.map_or(scale, |pair| {
                let bent = (value - 0.5 * (pair.plus + pair.minus)).abs();
                pair.step / (2.0 * bent).sqrt()
            }));
        }
        Ok(widths)
    }

    /// Value, gradient and Hessian at a point where the value is known, with steps found by looking for curvature.
    ///
    /// `Hⱼⱼ = (f₊ − 2f + f₋)/hⱼ²`, `Hᵢⱼ = (f₊₊ + f₋₋ − f₊ᵢ − f₋ᵢ − f₊ⱼ − f₋ⱼ + 2f)/(2hᵢhⱼ)`: `d(d + 1)` evaluations
    /// besides the search for the steps.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] when a coordinate shows no curvature, [`Error::Invalid`] when a neighbour is −∞.
    pub(super) fn jet(&mut self, x: &[f64], value: f64, scales: &[f64]) -> Result<Jet> {
        let mut pairs = Vec::with_capacity(x.len());
        for (j, &scale) in scales.iter().enumerate() {
            let pair = self.bend(x, j, value, scale)?.ok_or_else(|| Error::NotPositiveDefinite {
                what: format!("minus the Hessian of the log-joint at {x:?} (no curvature along coordinate {j})"),
                pivot: j,
                value: 0.0,
            })?;
            pairs.push(pair);
        }
        self.jet_from(x, value, &pairs)
    }

    /// As [`LogJoint::jet`], with steps that follow from widths already known.
    pub(super) fn jet_with(&mut self, x: &[f64], value: f64, widths: &[f64]) -> Result<Jet> {
        let mut pairs = Vec::with_capacity(x.len());
        for (j, width) in widths.iter().enumerate() {
            pairs.push(self.pair(x, j, representable(x[j], second_difference_step(value) * width))?);
        }
        self.jet_from(x, value, &pairs)
    }

    fn jet_from(&mut self, x: &[f64], value: f64, pairs: &[Pair]) -> Result<Jet> {
        let d = x.len();
        let mut gradient = Vec::with_capacity(d);
        let mut hessian = vec![0.0; d * d];
        for (j, Pair { step, plus, minus }) in pairs.iter().enumerate() {
            gradient.push((plus - minus) / (2.0 * step));
            hessian[j * d + j] = (plus - value + (minus - value)) / (step * step);
            for (i, other) in pairs[..j].iter().enumerate() {
                let mut corner = |sign: f64| {
                    let mut y = x.to_vec();
                    y[i] += sign * other.step;
                    y[j] += sign * step;
                    self.at(&y)
                };
                let corners = (corner(1.0)? - value) + (corner(-1.0)? - value);
                let sides = (other.plus - value) + (other.minus - value) + (plus - value) + (minus - value);
                hessian[i * d + j] = (corners - sides) / (2.0 * other.step * step);
                hessian[j * d + i] = hessian[i * d + j];
            }
        }
        if gradient.iter().chain(&hessian).any(|v| !v.is_finite()) {
            let what = format!("log-joint in the neighbourhood of {x:?}");
            return Err(Error::invalid(what, f64::NEG_INFINITY, "finite numbers: a mode lies inside the support"));
        }
        Ok(Jet { value, gradient, hessian })
    }
}

/// A step of about `step` that `x + step` represents exactly, so that the difference is over the distance it is divided
/// by.
fn representable(x: f64, step: f64) -> f64 {
    (x + step) - x
}
