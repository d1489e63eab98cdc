//! The posterior of WSABI-L in one and two dimensions by the values of its density: [`MATH.md` §7](crate::math).
//!
//! Nodes close together have weights that cancel. In the square `½ m(x)²` this costs the digits that it costs in `m`;
//! in the sum over pairs it costs twice as many. With few dimensions nodes do come close together, but then so few
//! points are needed that the square can be had where it is wanted, and be integrated over the other coordinate by the
//! trapezoidal rule, which converges exponentially.

use rayon::prelude::*;

use super::{
    comb::{BEFORE, shares},
    coordinates::{Functional, product},
};
use crate::{
    belief::{
        kernel::{Kernel, SquaredExponential},
        measure::Mixture,
        warp::Process,
    },
    error::Result,
    numeric::simd::dot,
    points::Points,
};

/// `(α + ½ m²) μ` at points, not normalised, without the factor that the whole belief carries.
#[derive(Debug, Clone)]
pub(super) struct Square {
    kernel: SquaredExponential,
    nodes: Points,
    weights: Vec<f64>,
    alpha: f64,
    measure: Mixture,
}

impl Square {
    pub(super) fn new(Process { gp, measure, alpha }: Process<'_>) -> Self {
        Self {
            kernel: gp.kernel().clone(),
            nodes: gp.nodes().clone(),
            weights: gp.weights().to_vec(),
            alpha,
            measure: measure.clone(),
        }
    }

    /// Cost: one exponential a node and point.
    pub(super) fn at(&self, points: &Points) -> Result<Vec<f64>> {
        let gram = self.kernel.gram(&self.nodes, points)?;
        let value = |(j, x): (usize, &[f64])| {
            let mean = dot(&self.weights, gram.col(j));
            (self.alpha + 0.5 * mean * mean) * self.measure.log_density(x).exp()
        };
        Ok(points.rows().enumerate().map(value).collect())
    }
}

/// What the quadrature of a density of one quantity needs to know.
pub(super) struct Extent {
    /// Beyond these there is nothing.
    pub(super) range: (f64, f64),
    /// The narrowest Gaussian in it.
    pub(super) grain: f64,
}

impl Extent {
    /// How many steps of the given number a grain.
    fn steps(&self, a_grain: f64) -> usize {
        ((self.range.1 - self.range.0) / self.grain * a_grain).ceil() as usize
    }
}

/// Steps of a table in the narrowest Gaussian: interpolation from sixteen is then good to `3·10⁻¹³` of the summit.
const FINE: f64 = 8.0;

/// Steps of the trapezoidal rule in the narrowest Gaussian: its error is `exp(−2π²·1.6²)`, below rounding.
const COARSE: f64 = 1.6;

/// The most exponentials that a table may cost: about two seconds.
const MOST: f64 = 1e9;

/// A density by its values on a regular grid, interpolated by polynomials through sixteen.
#[derive(Debug, Clone)]
pub(super) struct Table {
    origin: f64,
    step: f64,
    /// With zeros on both sides, so that every window is whole.
    values: Vec<f64>,
    /// The mass before each of the values.
    before: Vec<f64>,
    grain: f64,
    range: (f64, f64),
}

impl Table {
    /// The density of `quantity`, in one or two dimensions; `other` is a direction in which it does not change, with
    /// the extent of the density along it. `None` when that would take too long.
    pub(super) fn new(
        square: &Square,
        quantity: &Functional,
        extent: &Extent,
        other: Option<(&[f64], Extent)>,
    ) -> Result<Option<Self>> {
        let (steps, across) = (extent.steps(FINE), other.as_ref().map_or(1, |(_, e)| e.steps(COARSE) + 1));
        if steps as f64 * across as f64 * square.nodes.len() as f64 > MOST {
            return Ok(None);
        }
        let (low, step) = (extent.range.0, (extent.range.1 - extent.range.0) / steps as f64);
        let norm = product(&quantity.row, &quantity.row);
        let value = |i: usize| -> Result<f64> {
            let along = (low + i as f64 * step - quantity.shift) / norm;
            let place = |r: f64| -> Vec<f64> {
                let direction = other.as_ref().map(|(v, _)| *v);
                (0..quantity.row.len()).map(|k| along * quantity.row[k] + direction.map_or(0.0, |v| r * v[k])).collect()
            };
            let rows: Vec<Vec<f64>> = match &other {
                None => vec![place(0.0)],
                Some((_, e)) => {
                    let width = (e.range.1 - e.range.0) / (across - 1) as f64;
                    (0..across).map(|j| place(e.range.0 + j as f64 * width)).collect()
                }
            };
            Ok(square.at(&Points::from_rows(&rows)?)?.iter().sum())
        };
        let values: Vec<f64> = (0..=steps).into_par_iter().map(value).collect::<Result<_>>()?;
        let pad = vec![0.0; BEFORE + 2];
        let mut table = Self {
            origin: low - (BEFORE + 2) as f64 * step,
            step,
            values: [&pad[..], &values, &pad].concat(),
            before: Vec::new(),
            grain: extent.grain,
            range: extent.range,
        };
        table.integrate();
        Ok(Some(table))
    }

    /// Finds the mass before each value and makes the whole of it one.
    fn integrate(&mut self) {
        let mut before = vec![0.0; self.values.len()];
        for cell in BEFORE..self.values.len() - BEFORE - 1 {
            before[cell + 1] = before[cell] + self.part(cell, 1.0);
        }
        let total = before[self.values.len() - BEFORE - 1];
        before[self.values.len() - BEFORE..].fill(total);
        self.values.iter_mut().chain(&mut before).for_each(|v| *v /= total);
        self.before = before;
    }

    /// The cell of `t` and the fraction of it before `t`.
    fn cell(&self, t: f64) -> Option<(usize, f64)> {
        let place = (t - self.origin) / self.step;
        let last = self.values.len() - BEFORE - 2;
        if !(place >= BEFORE as f64 && place < (last + 1) as f64) {
            return None;
        }
        let cell = (place as usize).min(last);
        Some((cell, place - cell as f64))
    }

    fn inside(&self, cell: usize, fraction: f64) -> f64 {
        let share = shares(fraction + BEFORE as f64);
        product(&share, &self.values[cell - BEFORE..])
    }

    /// The mass of the first part of a cell: a polynomial of degree fifteen, which eight points integrate exactly.
    fn part(&self, cell: usize, fraction: f64) -> f64 {
        let point = |(x, w): &(f64, f64)| {
            w * (self.inside(cell, 0.5 * fraction * (1.0 - x)) + self.inside(cell, 0.5 * fraction * (1.0 + x)))
        };
        0.5 * fraction * self.step * LEGENDRE.iter().map(point).sum::<f64>()
    }

    pub(super) fn at(&self, t: f64) -> f64 {
        self.cell(t).map_or(0.0, |(cell, fraction)| self.inside(cell, fraction))
    }

    pub(super) fn below(&self, t: f64) -> f64 {
        match self.cell(t) {
            Some((cell, fraction)) => self.before[cell] + self.part(cell, fraction),
            None if t < self.origin + 0.5 * self.step * self.values.len() as f64 => 0.0,
            None => 1.0,
        }
    }

    pub(super) fn range(&self) -> (f64, f64) {
        self.range
    }

    pub(super) fn grain(&self) -> f64 {
        self.grain
    }
}

/// The positive nodes and the weights of the Gauss–Legendre rule with eight points.
const LEGENDRE: [(f64, f64); 4] = [
    (0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
    (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
];
