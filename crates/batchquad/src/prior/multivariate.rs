//! The multivariate normal distribution, `θ = mean + L u` with `L Lᵀ` its covariance.

use serde::{Deserialize, Serialize};

use crate::{
    belief::measure::Gaussian,
    error::{Error, Result},
};

/// A normal distribution in `d` dimensions with full covariance.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct MultivariateNormal {
    covariance: Vec<Vec<f64>>,
    gaussian: Gaussian,
}

impl PartialEq for MultivariateNormal {
    fn eq(&self, other: &Self) -> bool {
        self.mean() == other.mean() && self.covariance == other.covariance
    }
}

/// The written form.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    mean: Vec<f64>,
    covariance: Vec<Vec<f64>>,
}

impl TryFrom<Written> for MultivariateNormal {
    type Error = Error;

    fn try_from(written: Written) -> Result<Self> {
        Self::new(written.mean, written.covariance)
    }
}

impl From<MultivariateNormal> for Written {
    fn from(normal: MultivariateNormal) -> Self {
        Self { mean: normal.mean().to_vec(), covariance: normal.covariance }
    }
}

impl MultivariateNormal {
    /// The normal distribution with this mean and these rows of the covariance. Cost: `d³/3`.
    ///
    /// # Errors
    /// [`Error::Length`] when the covariance is not `d × d` or `d` is 0, [`Error::Invalid`] for entries that are not
    /// finite or not symmetric, [`Error::NotPositiveDefinite`].
    pub fn new(mean: Vec<f64>, covariance: Vec<Vec<f64>>) -> Result<Self> {
        let gaussian = Gaussian::named("multivariate normal prior", mean, &covariance)?;
        Ok(Self { covariance, gaussian })
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> &[f64] {
        self.gaussian.mean()
    }

    /// The rows of the covariance, as given.
    #[must_use]
    pub fn covariance(&self) -> &[Vec<f64>] {
        &self.covariance
    }

    pub(super) fn dim(&self) -> usize {
        self.gaussian.dim()
    }

    /// Row `k` of `L`.
    pub(super) fn row(&self, k: usize) -> Vec<f64> {
        self.gaussian.lower_row(k)
    }

    /// `mean + L u`, kept finite. Cost: `d²`.
    pub(super) fn theta(&self, u: &[f64]) -> Vec<f64> {
        self.gaussian.map_standard(u).iter().map(|v| v.clamp(f64::MIN, f64::MAX)).collect()
    }

    /// `L⁻¹(θ − mean)`. Cost: `d²`.
    pub(super) fn latent(&self, theta: &[f64]) -> Vec<f64> {
        self.gaussian.to_standard(theta)
    }

    /// `log |det L|`.
    pub(super) fn log_jacobian(&self) -> f64 {
        self.gaussian.half_log_det()
    }

    /// `−½‖L⁻¹(θ − mean)‖² − log det L − (d/2) log 2π`. Cost: `d²`.
    pub(super) fn log_density(&self, theta: &[f64]) -> f64 {
        let value = self.gaussian.log_density(theta);
        // A θ that is NaN or so far out that the arithmetic overflows has no density left.
        if value.is_nan() { f64::NEG_INFINITY } else { value }
    }
}
