//! What problems are drawn from.

use std::f64::consts::PI;

use batchquad::numeric::{Purpose, Stream};

use crate::dense::Cholesky;

/// The random numbers behind one problem.
#[derive(Debug)]
pub struct Dice {
    stream: Stream,
    /// Whether the number of the problem is even: families with two forms take turns.
    pub even: bool,
}

impl Dice {
    /// Those at one address.
    pub fn new(seed: u64, address: u64) -> Self {
        Self { stream: Stream::new(seed, Purpose::Experiment, address), even: seed.is_multiple_of(2) }
    }

    /// Uniform between two ends.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.stream.uniform_open()
    }

    /// The logarithm is uniform.
    pub fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        self.uniform(low.ln(), high.ln()).exp()
    }

    /// A whole number from `low` to `high`, both included.
    pub fn whole(&mut self, low: usize, high: usize) -> usize {
        low + self.stream.index(high + 1 - low).unwrap_or(0)
    }

    /// Standard normal.
    pub fn normal(&mut self) -> f64 {
        self.stream.normal()
    }

    /// `n` of them.
    pub fn normals(&mut self, n: usize) -> Vec<f64> {
        self.stream.normals(n)
    }

    /// 1 or −1.
    pub fn sign(&mut self) -> f64 {
        if self.stream.bits().is_multiple_of(2) { 1.0 } else { -1.0 }
    }

    /// True with this probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.stream.uniform() < probability
    }

    /// Events of a unit rate until `mean`.
    pub fn poisson(&mut self, mean: f64) -> f64 {
        let (mut count, mut time) = (0.0, -self.stream.uniform_open().ln());
        while time < mean {
            count += 1.0;
            time -= self.stream.uniform_open().ln();
        }
        count
    }

    /// Gamma with shape at least one and unit rate, by Marsaglia and Tsang (2000).
    pub fn gamma(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        loop {
            let x = self.normal();
            let v = (1.0 + x / (9.0 * d).sqrt()).powi(3);
            if v > 0.0 && self.stream.uniform_open().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    /// Shares of a whole, the largest up to four times the smallest.
    pub fn shares(&mut self, n: usize) -> Vec<f64> {
        let all: Vec<f64> = (0..n).map(|_| self.log_uniform(1.0, 4.0)).collect();
        let sum: f64 = all.iter().sum();
        all.iter().map(|v| v / sum).collect()
    }

    /// Increasing times between 0 and `end`.
    pub fn times(&mut self, n: usize, end: f64) -> Vec<f64> {
        let mut all: Vec<f64> = (0..n).map(|_| self.uniform(0.0, end)).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    /// Orthonormal directions, uniform over all rotations: normals made orthogonal one after the other.
    pub fn rotation(&mut self, d: usize) -> Vec<Vec<f64>> {
        let mut rows: Vec<Vec<f64>> = Vec::new();
        while rows.len() < d {
            let mut x = self.normals(d);
            for row in &rows {
                let along = dot(row, &x);
                x.iter_mut().zip(row).for_each(|(v, r)| *v -= along * r);
            }
            let length = dot(&x, &x).sqrt();
            if length > 1e-3 {
                rows.push(x.iter().map(|v| v / length).collect());
            }
        }
        rows
    }

    /// A random correlation matrix, row by row: from a rotation and variances up to `spread` apart.
    pub fn correlation(&mut self, d: usize, spread: f64) -> Vec<f64> {
        let rows = self.rotation(d);
        let variances: Vec<f64> = (0..d).map(|_| self.log_uniform(1.0, spread)).collect();
        let entry = |i: usize, j: usize| -> f64 { (0..d).map(|k| rows[k][i] * variances[k] * rows[k][j]).sum() };
        let scale: Vec<f64> = (0..d).map(|i| entry(i, i).sqrt()).collect();
        (0..d * d).map(|n| entry(n / d, n % d) / (scale[n / d] * scale[n % d])).collect()
    }

    /// The factor of a covariance with these standard deviations and random correlations; none only by rounding.
    pub fn covariance(&mut self, sds: &[f64], spread: f64) -> Option<(Vec<f64>, Cholesky)> {
        let d = sds.len();
        let correlation = self.correlation(d, spread);
        let covariance: Vec<f64> = (0..d * d).map(|n| correlation[n] * sds[n / d] * sds[n % d]).collect();
        let factor = Cholesky::new(d, |i, j| covariance[i * d + j])?;
        Some((covariance, factor))
    }
}

/// `Σ xᵢyᵢ`.
pub fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| a * b).sum()
}

/// `log Γ(n + 1)`.
pub fn log_factorial(n: f64) -> f64 {
    libm::lgamma(n + 1.0)
}

/// `log` of the density of Student's t in `d` dimensions at the squared distance `square` in its scale, whose log-determinant is
/// `log_det`.
pub fn log_student(square: f64, dof: f64, d: usize, log_det: f64) -> f64 {
    let d = d as f64;
    let constant = libm::lgamma(0.5 * (dof + d)) - libm::lgamma(0.5 * dof) - 0.5 * (d * (dof * PI).ln() + log_det);
    constant - 0.5 * (dof + d) * (square / dof).ln_1p()
}
