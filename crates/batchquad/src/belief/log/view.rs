//! Coordinates in which the posterior is about `N(0, I)`. `MATH.md` §15.

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

use super::proposal::Normal;
use crate::error::{Error, Result};

/// A normal distribution of the latent coordinates, the covariance row by row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Region {
    pub(crate) centre: Vec<f64>,
    pub(crate) covariance: Vec<f64>,
}

impl Region {
    /// `N(centre, r²I)`.
    pub(crate) fn round(centre: &[f64], radius: f64) -> Self {
        let d = centre.len();
        let covariance = (0..d * d).map(|k| if k / d == k % d { radius * radius } else { 0.0 }).collect();
        Self { centre: centre.to_vec(), covariance }
    }
}

/// Coordinates `x`, `u = b + Lx`, where the region is `N(b, LLᵀ)`.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) region: Region,
    normal: Normal,
    /// `log |L|`.
    pub(crate) log_volume: f64,
    /// The prior `N(0, I)` of `u`, in the coordinates `x`.
    pub(crate) prior: Normal,
}

impl View {
    /// The coordinates of a region; none when its covariance is not positive definite.
    pub(crate) fn new(region: Region) -> Option<Self> {
        let d = region.centre.len();
        let normal = Normal::with_covariance(region.centre.clone(), &region.covariance)?;
        let log_volume = -normal.log_density(&region.centre) - 0.5 * d as f64 * TAU.ln();
        // Mean −L⁻¹b, factor L⁻¹.
        let mean = normal.white(&vec![0.0; d]);
        let mut lower = vec![0.0; d * d];
        for c in 0..d {
            let mut moved = region.centre.clone();
            moved[c] += 1.0;
            for (a, v) in normal.white(&moved).iter().enumerate().skip(c) {
                lower[a * d + c] = *v;
            }
        }
        Some(Self { region, normal, log_volume, prior: Normal::new(mean, lower) })
    }

    /// The coordinates of a region.
    ///
    /// # Errors
    /// [`Error::Numerical`] when its covariance is not positive definite.
    pub(crate) fn made(region: Region) -> Result<Self> {
        Self::new(region).ok_or_else(|| Error::Numerical {
            what: "coordinates of the posterior".into(),
            reason: "they are not positive definite".into(),
        })
    }

    /// The region as a normal distribution of `u`.
    pub(crate) fn normal(&self) -> &Normal {
        &self.normal
    }

    pub(crate) fn enter(&self, u: &[f64]) -> Vec<f64> {
        self.normal.white(u)
    }

    pub(crate) fn leave(&self, x: &[f64]) -> Vec<f64> {
        self.normal.at(x)
    }

    /// The shift `b` and the rows of `L`.
    pub(crate) fn affine(&self) -> (Vec<f64>, Vec<Vec<f64>>) {
        let d = self.region.centre.len();
        (self.region.centre.clone(), (0..d).map(|a| self.normal.row(a).to_vec()).collect())
    }

    /// A gradient in these coordinates as one in those of another view: `(L⁻¹L′)ᵀg`.
    pub(crate) fn pull(&self, gradient: &[f64], other: &Self) -> Vec<f64> {
        let d = gradient.len();
        let origin = self.normal.white(&other.region.centre);
        let mut unit = vec![0.0; d];
        let column = |a: usize, unit: &mut Vec<f64>| {
            unit[a] = 1.0;
            let moved = self.normal.white(&other.normal.at(unit));
            unit[a] = 0.0;
            moved.iter().zip(&origin).zip(gradient).map(|((m, o), g)| (m - o) * g).sum()
        };
        (0..d).map(|a| column(a, &mut unit)).collect()
    }

    /// The region of `u` with the mean and covariance (row by row) that `x` has: `b + Lm`, `LCLᵀ`.
    pub(crate) fn leave_moments(&self, mean: &[f64], covariance: &[f64]) -> Region {
        let d = mean.len();
        let (shift, rows) = self.affine();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        // C is symmetric: its rows are its columns.
        let half: Vec<Vec<f64>> =
            rows.iter().map(|row| (0..d).map(|j| dot(row, &covariance[j * d..(j + 1) * d])).collect()).collect();
        let entry = |i: usize, j: usize| 0.5 * (dot(&half[i], &rows[j]) + dot(&half[j], &rows[i]));
        Region {
            centre: (0..d).map(|a| shift[a] + dot(&rows[a], mean)).collect(),
            covariance: (0..d * d).map(|k| entry(k / d, k % d)).collect(),
        }
    }
}

/// `KL(N(mean, covariance) ‖ N(0, I))`: how far the posterior is from where the coordinates expect it; infinite for what is no covariance.
pub(crate) fn divergence(mean: &[f64], covariance: &[f64]) -> f64 {
    let d = mean.len();
    let Some(normal) = Normal::with_covariance(mean.to_vec(), covariance) else { return f64::INFINITY };
    let log_det = 2.0 * (-normal.log_density(mean) - 0.5 * d as f64 * TAU.ln());
    let trace: f64 = (0..d).map(|a| covariance[a * d + a]).sum();
    0.5 * (trace + mean.iter().map(|m| m * m).sum::<f64>() - d as f64 - log_det)
}
