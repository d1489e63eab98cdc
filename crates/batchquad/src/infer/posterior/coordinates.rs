//! From the coordinates of the surrogate to latent ones and to the parameters: the one place that knows how they
//! differ.

use crate::{
    belief::{any::Belief, surrogate::Surrogate},
    error::Result,
    points::Points,
    prior::{Axis, Distribution, Prior},
};

/// `u = b + L x`: latent coordinates from those of the surrogate's frame.
#[derive(Debug, Clone)]
pub(super) struct Coordinates {
    shift: Vec<f64>,
    rows: Vec<Vec<f64>>,
}

impl Coordinates {
    pub(super) fn of(belief: &Belief) -> Self {
        let (shift, rows) = belief.affine();
        Self { shift, rows }
    }

    pub(super) fn of_surrogate(surrogate: &Surrogate) -> Self {
        let (shift, rows) = surrogate.frame().affine();
        Self { shift, rows }
    }

    /// The latent coordinates of points of the surrogate.
    pub(super) fn latent(&self, points: &Points) -> Result<Points> {
        let coordinate = |x: &[f64], k: usize| self.shift[k] + product(&self.rows[k], x);
        let flat = points.rows().flat_map(|x| (0..self.shift.len()).map(move |k| coordinate(x, k))).collect();
        Points::new(self.shift.len(), flat)
    }

    /// `shift + row·u` as a function of the surrogate's coordinates.
    pub(super) fn functional(&self, row: &[f64], shift: f64) -> Functional {
        let d = self.shift.len();
        let own = (0..d).map(|k| (0..d).map(|j| row[j] * self.rows[j][k]).sum()).collect();
        Functional { row: own, shift: shift + product(row, &self.shift) }
    }

    /// The latent coordinates, each as a function of the surrogate's.
    pub(super) fn coordinates(&self) -> Vec<Functional> {
        let own = |k: usize| Functional { row: self.rows[k].clone(), shift: self.shift[k] };
        (0..self.shift.len()).map(own).collect()
    }

    /// A parameter as an increasing function of an affine one of the surrogate's coordinates; `None` when it is not.
    pub(super) fn parameter(&self, prior: &Prior, k: usize) -> Option<(Functional, Map)> {
        let d = self.shift.len();
        match prior.axis(k) {
            Axis::Scalar(distribution) => {
                let row: Vec<f64> = (0..d).map(|j| if j == k { 1.0 } else { 0.0 }).collect();
                Some((self.functional(&row, 0.0), Map::Scalar(*distribution)))
            }
            Axis::Affine { row, shift } => Some((self.functional(&row, shift), Map::Identity)),
            Axis::Coupled => None,
        }
    }
}

/// `shift + row·x` in the coordinates of the surrogate.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Functional {
    pub(super) row: Vec<f64>,
    pub(super) shift: f64,
}

impl Functional {
    pub(super) fn at(&self, x: &[f64]) -> f64 {
        self.shift + product(&self.row, x)
    }
}

pub(super) fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The increasing map from a latent quantity to a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Map {
    /// The quantity is the parameter itself.
    Identity,
    /// Through the quantile function of its prior.
    Scalar(Distribution),
}

impl Map {
    pub(super) fn theta(&self, t: f64) -> Result<f64> {
        match self {
            Self::Identity => Ok(t),
            Self::Scalar(distribution) => distribution.to_theta(t),
        }
    }

    /// The inverse; ∓∞ below and above the support.
    pub(super) fn latent(&self, theta: f64) -> Result<f64> {
        match self {
            Self::Identity => Ok(theta),
            Self::Scalar(distribution) => {
                let (low, high) = distribution.support();
                match theta {
                    t if t <= low => Ok(f64::NEG_INFINITY),
                    t if t >= high => Ok(f64::INFINITY),
                    t => distribution.to_latent(t),
                }
            }
        }
    }

    /// `log dθ/dt`.
    pub(super) fn log_slope(&self, t: f64) -> Result<f64> {
        match self {
            Self::Identity => Ok(0.0),
            Self::Scalar(distribution) => distribution.log_jacobian(t),
        }
    }
}
