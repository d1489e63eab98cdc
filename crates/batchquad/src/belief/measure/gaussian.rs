//! The Gaussian measure.

use crate::{
    belief::measure::Jet,
    error::{Error, Result, require_finite, require_positive},
    numeric::linalg::{Factor, Matrix},
};

/// How far apart two mirrored entries of a covariance may be, relative to the standard deviations: rounding of the
/// user's own arithmetic, not a mistake in an entry.
const SYMMETRY: f64 = 1e-12;

/// The probability measure `N(b, S)` with full covariance.
#[derive(Debug, Clone)]
pub struct Gaussian {
    mean: Vec<f64>,
    covariance: Matrix,
    precision: Matrix,
    factor: Factor,
    /// `−½ (d log 2π + log|S|)`.
    log_norm: f64,
}

impl Gaussian {
    /// `N(b, S)` from its mean and the rows of its covariance. Cost: `d³`.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Invalid`] for an empty mean, non-finite entries or an asymmetric covariance (beyond
    /// `10⁻¹²` of its diagonal), [`Error::NotPositiveDefinite`].
    pub fn new(mean: Vec<f64>, covariance: &[Vec<f64>]) -> Result<Self> {
        Self::named("Gaussian measure", mean, covariance)
    }

    /// [`Gaussian::new`], with errors that speak of `what`.
    pub(crate) fn named(what: &str, mean: Vec<f64>, covariance: &[Vec<f64>]) -> Result<Self> {
        let d = mean.len();
        if d == 0 {
            return Err(Error::invalid(format!("dimension of the {what}"), d, "at least 1"));
        }
        for (i, &v) in mean.iter().enumerate() {
            require_finite(&format!("mean[{i}] of the {what}"), v)?;
        }
        if covariance.len() != d {
            return Err(Error::length(format!("covariance of the {what}"), d, covariance.len()));
        }
        for (i, row) in covariance.iter().enumerate() {
            if row.len() != d {
                return Err(Error::length(format!("row {i} of the covariance of the {what}"), d, row.len()));
            }
            for (j, &v) in row.iter().enumerate() {
                require_finite(&format!("covariance[{i}][{j}] of the {what}"), v)?;
            }
        }
        for i in 0..d {
            for j in 0..i {
                let (a, b) = (covariance[i][j], covariance[j][i]);
                let size = covariance[i][i].abs().sqrt() * covariance[j][j].abs().sqrt();
                if (a - b).abs() > SYMMETRY * size {
                    let expected = format!("{b:?}, the value of covariance[{j}][{i}]");
                    return Err(Error::invalid(format!("covariance[{i}][{j}] of the {what}"), a, expected));
                }
            }
        }
        let covariance = Matrix::from_fn(d, d, |i, j| 0.5 * covariance[i][j] + 0.5 * covariance[j][i]);
        let factor = Factor::exact(&format!("covariance of the {what}"), &covariance)?;
        for i in 0..d {
            // A pivot that is mere rounding of the diagonal stands for a singular matrix.
            let pivot = factor.lower().get(i, i).powi(2);
            if pivot <= f64::EPSILON * i as f64 * covariance.get(i, i) {
                let what = format!("covariance of the {what}");
                return Err(Error::NotPositiveDefinite { what, pivot: i, value: pivot });
            }
        }
        let lower = factor.inverse_lower();
        let precision = Matrix::from_fn(d, d, |i, j| lower.get(i.max(j), i.min(j)));
        let log_norm = -0.5 * (d as f64 * std::f64::consts::TAU.ln() + factor.log_det());
        Ok(Self { mean, covariance, precision, factor, log_norm })
    }

    /// `N(b, diag(variances))`.
    ///
    /// # Errors
    /// As [`Gaussian::new`]; [`Error::Invalid`] for variances that are not positive.
    pub fn diagonal(mean: Vec<f64>, variances: &[f64]) -> Result<Self> {
        for &v in variances {
            require_positive("variance of the Gaussian measure", v)?;
        }
        let d = variances.len();
        let rows: Vec<Vec<f64>> =
            (0..d).map(|i| (0..d).map(|j| if i == j { variances[i] } else { 0.0 }).collect()).collect();
        Self::new(mean, &rows)
    }

    /// The standard normal `N(0, I)` in `dim` dimensions: the latent image of every prior.
    ///
    /// # Errors
    /// [`Error::Invalid`] for dimension 0.
    pub fn standard(dim: usize) -> Result<Self> {
        Self::diagonal(vec![0.0; dim], &vec![1.0; dim])
    }

    /// The dimension.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.mean.len()
    }

    /// The mean `b`.
    #[must_use]
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The covariance `S`.
    #[must_use]
    pub fn covariance(&self) -> &Matrix {
        &self.covariance
    }

    /// `b + L u`, which is `N(b, S)` when `u ~ N(0, I)`; `L` is the Cholesky factor of `S`.
    ///
    /// # Panics
    /// When `u` has another dimension.
    #[must_use]
    pub fn map_standard(&self, u: &[f64]) -> Vec<f64> {
        self.factor.lower_mul(u).iter().zip(&self.mean).map(|(l, b)| l + b).collect()
    }

    /// `L⁻¹(x − b)`, the inverse of [`Gaussian::map_standard`].
    ///
    /// # Panics
    /// When `x` has another dimension.
    #[must_use]
    pub fn to_standard(&self, x: &[f64]) -> Vec<f64> {
        let centred: Vec<f64> = x.iter().zip(&self.mean).map(|(x, b)| x - b).collect();
        self.white(&centred)
    }

    /// `L⁻¹x`.
    pub(crate) fn white(&self, x: &[f64]) -> Vec<f64> {
        self.factor.half_solve_vec(x)
    }

    /// Row `k` of `L`.
    pub(crate) fn lower_row(&self, k: usize) -> Vec<f64> {
        (0..self.dim()).map(|j| if j <= k { self.factor.lower().get(k, j) } else { 0.0 }).collect()
    }

    /// `log |L|`.
    pub(crate) fn half_log_det(&self) -> f64 {
        0.5 * self.factor.log_det()
    }

    /// `log N(x; b, S) = −½ (d log 2π + log|S| + |L⁻¹(x − b)|²)`. Cost: `d²`.
    ///
    /// # Panics
    /// When `x` has another dimension.
    #[must_use]
    pub fn log_density(&self, x: &[f64]) -> f64 {
        let white = self.to_standard(x);
        self.log_norm - 0.5 * white.iter().map(|v| v * v).sum::<f64>()
    }

    /// [`Gaussian::log_density`] with its gradient `−S⁻¹(x − b)` and Hessian `−S⁻¹`. Cost: `d²`.
    ///
    /// # Panics
    /// When `x` has another dimension.
    #[must_use]
    pub fn log_density_jet(&self, x: &[f64]) -> Jet {
        let d = self.dim();
        let mut gradient = vec![0.0; d];
        let mut square = 0.0;
        for j in 0..d {
            let centred = x[j] - self.mean[j];
            for (g, p) in gradient.iter_mut().zip(self.precision.col(j)) {
                *g -= p * centred;
            }
        }
        for j in 0..d {
            square -= gradient[j] * (x[j] - self.mean[j]);
        }
        let hessian = (0..d * d).map(|i| -self.precision.get(i / d, i % d)).collect();
        Jet { value: self.log_norm - 0.5 * square, gradient, hessian }
    }
}
