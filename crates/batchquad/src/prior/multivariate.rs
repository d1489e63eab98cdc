//! The multivariate normal distribution, `θ = mean + L u` with `L Lᵀ` its covariance.

use serde::{Deserialize, Serialize};

use super::normal::HALF_LN_2PI;
use crate::error::{Error, Result, require_finite};

/// How far apart two mirrored entries of a covariance may be, relative to the standard deviations: rounding of the user's own
/// arithmetic, not a mistake in an entry.
const SYMMETRY: f64 = 1e-12;

/// A normal distribution in `d` dimensions with full covariance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Moments", into = "Moments")]
pub struct MultivariateNormal {
    mean: Vec<f64>,
    covariance: Vec<Vec<f64>>,
    /// The rows of the lower Cholesky factor, each up to its diagonal.
    factor: Vec<Vec<f64>>,
}

/// The written form.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Moments {
    mean: Vec<f64>,
    covariance: Vec<Vec<f64>>,
}

impl TryFrom<Moments> for MultivariateNormal {
    type Error = Error;

    fn try_from(moments: Moments) -> Result<Self> {
        Self::new(moments.mean, moments.covariance)
    }
}

impl From<MultivariateNormal> for Moments {
    fn from(normal: MultivariateNormal) -> Self {
        Self { mean: normal.mean, covariance: normal.covariance }
    }
}

impl MultivariateNormal {
    /// The normal distribution with this mean and these rows of the covariance. Cost: `d³/3`.
    ///
    /// # Errors
    /// [`Error::Length`] when the covariance is not `d × d` or `d` is 0, [`Error::Invalid`] for entries that are not finite or not symmetric,
    /// [`Error::NotPositiveDefinite`].
    pub fn new(mean: Vec<f64>, covariance: Vec<Vec<f64>>) -> Result<Self> {
        let dim = mean.len();
        if dim == 0 {
            return Err(Error::length("mean of the multivariate normal prior", 1, 0));
        }
        if covariance.len() != dim {
            return Err(Error::length("covariance of the multivariate normal prior", dim, covariance.len()));
        }
        for (i, value) in mean.iter().enumerate() {
            require_finite(&format!("mean[{i}] of the multivariate normal prior"), *value)?;
        }
        for (i, row) in covariance.iter().enumerate() {
            if row.len() != dim {
                let what = format!("row {i} of the covariance of the multivariate normal prior");
                return Err(Error::length(what, dim, row.len()));
            }
            for (j, value) in row.iter().enumerate() {
                require_finite(&format!("covariance[{i}][{j}] of the multivariate normal prior"), *value)?;
            }
        }
        for i in 0..dim {
            for j in 0..i {
                let scale = (covariance[i][i].abs().sqrt()) * covariance[j][j].abs().sqrt();
                if (covariance[i][j] - covariance[j][i]).abs() > SYMMETRY * scale {
                    let what = format!("covariance[{i}][{j}] of the multivariate normal prior");
                    let expected = format!("{:?}, the value of covariance[{j}][{i}]", covariance[j][i]);
                    return Err(Error::invalid(what, covariance[i][j], expected));
                }
            }
        }
        let factor = cholesky(&covariance)?;
        Ok(Self { mean, covariance, factor })
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The rows of the covariance, as given.
    #[must_use]
    pub fn covariance(&self) -> &[Vec<f64>] {
        &self.covariance
    }

    pub(super) fn dim(&self) -> usize {
        self.mean.len()
    }

    /// `mean + L u`, kept finite. Cost: `d²`.
    pub(super) fn theta(&self, u: &[f64]) -> Vec<f64> {
        self.factor.iter().zip(&self.mean).map(|(row, mean)| (mean + dot(row, u)).clamp(f64::MIN, f64::MAX)).collect()
    }

    /// `L⁻¹(θ − mean)`. Cost: `d²`.
    pub(super) fn latent(&self, theta: &[f64]) -> Vec<f64> {
        let mut u = Vec::with_capacity(self.dim());
        for (i, row) in self.factor.iter().enumerate() {
            u.push((theta[i] - self.mean[i] - dot(&row[..i], &u)) / row[i]);
        }
        u
    }

    /// `log |det L|`.
    pub(super) fn log_jacobian(&self) -> f64 {
        self.factor.iter().enumerate().map(|(i, row)| row[i].ln()).sum()
    }

    /// `−½‖L⁻¹(θ − mean)‖² − log det L − (d/2) log 2π`. Cost: `d²`.
    pub(super) fn log_density(&self, theta: &[f64]) -> f64 {
        let u = self.latent(theta);
        let value = u.iter().map(|v| -0.5 * v * v - HALF_LN_2PI).sum::<f64>() - self.log_jacobian();
        // A θ that is NaN or so far out that the arithmetic overflows has no density left.
        if value.is_nan() { f64::NEG_INFINITY } else { value }
    }
}

/// The sum of the products of two slices, up to the end of the shorter.
fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| a * b).sum()
}

/// The rows of the lower Cholesky factor of a symmetric matrix, from its lower triangle.
fn cholesky(matrix: &[Vec<f64>]) -> Result<Vec<Vec<f64>>> {
    let mut factor: Vec<Vec<f64>> = Vec::with_capacity(matrix.len());
    for (i, entries) in matrix.iter().enumerate() {
        let mut row = Vec::with_capacity(i + 1);
        for j in 0..i {
            row.push((entries[j] - dot(&row, &factor[j][..j])) / factor[j][j]);
        }
        let pivot = entries[i] - dot(&row, &row);
        // A pivot that is mere rounding of the diagonal stands for a singular matrix.
        if !(pivot.is_finite() && pivot > f64::EPSILON * (i as f64) * entries[i].abs()) {
            let what = "covariance of the multivariate normal prior".into();
            return Err(Error::NotPositiveDefinite { what, pivot: i, value: pivot });
        }
        row.push(pivot.sqrt());
        factor.push(row);
    }
    Ok(factor)
}
