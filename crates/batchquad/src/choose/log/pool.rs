//! Covariances of candidates. `MATH.md` §15.

use crate::{
    belief::log::{Placed, Process},
    error::Result,
    numeric::{linalg::Matrix, simd::dot},
    points::Points,
};

/// Candidates with their covariances, conditioned on one point after the other.
pub(super) struct Pool<'a> {
    pub(super) process: &'a Process,
    pub(super) points: Points,
    pub(super) placed: Placed,
    pub(super) half: Matrix,
    /// What conditioning has taken from the covariances: `c(i, j)` falls by the product of entries `i` and `j` of each row.
    pub(super) rows: Vec<Vec<f64>>,
    pub(super) variance: Vec<f64>,
    /// The candidates that stand for the integral.
    integral: std::ops::Range<usize>,
    /// The covariance of each candidate with the logarithm of the integral.
    pub(super) with_z: Vec<f64>,
}

impl<'a> Pool<'a> {
    pub(super) fn new(process: &'a Process, points: Points, integral: std::ops::Range<usize>) -> Result<Self> {
        let placed = process.place(&points);
        let half = process.half(&placed);
        let variance = (0..points.len())
            .map(|j| (process.hyper.diagonal(points.row(j)) - dot(half.col(j), half.col(j))).max(0.0))
            .collect();
        let count = integral.len().max(1) as f64;
        let mut with_z = vec![0.0; points.len()];
        if !integral.is_empty() {
            let mut mean = vec![0.0; process.len()];
            for j in integral.clone() {
                mean.iter_mut().zip(half.col(j)).for_each(|(a, h)| *a += h / count);
            }
            let rows: Vec<&[f64]> = integral.clone().map(|j| points.row(j)).collect();
            let prior = process.prior_cross(&placed, &process.place(&Points::from_rows(&rows)?));
            for (i, q) in with_z.iter_mut().enumerate() {
                *q = (0..integral.len()).map(|j| prior.get(i, j)).sum::<f64>() / count - dot(half.col(i), &mean);
            }
        }
        Ok(Self { process, points, placed, half, rows: Vec::new(), variance, integral, with_z })
    }

    /// A value will be known at candidate `j`. Cost: `n` per candidate.
    pub(super) fn condition(&mut self, j: usize) -> Result<()> {
        let one = self.process.place(&Points::from_rows(&[self.points.row(j)])?);
        let prior = self.process.prior_cross(&self.placed, &one);
        let mut row: Vec<f64> =
            (0..self.points.len()).map(|i| prior.get(i, 0) - dot(self.half.col(i), self.half.col(j))).collect();
        for earlier in &self.rows {
            let factor = earlier[j];
            row.iter_mut().zip(earlier).for_each(|(c, r)| *c -= factor * r);
        }
        let scale = (self.variance[j] + self.process.hyper.noise.powi(2)).sqrt().max(1e-150);
        row.iter_mut().for_each(|c| *c /= scale);
        self.variance.iter_mut().zip(&row).for_each(|(v, r)| *v = (*v - r * r).max(0.0));
        let with_z = row[self.integral.clone()].iter().sum::<f64>() / self.integral.len().max(1) as f64;
        self.with_z.iter_mut().zip(&row).for_each(|(q, r)| *q -= r * with_z);
        self.rows.push(row);
        Ok(())
    }
}
