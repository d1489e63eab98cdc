//! A prior given by the user as a map from the unit cube.

use crate::numeric::normal;
use std::sync::Arc;

use crate::error::{Error, Result};

type Map = Arc<dyn Fn(&[f64]) -> Vec<f64> + Send + Sync>;
type LogDensity = Arc<dyn Fn(&[f64]) -> f64 + Send + Sync>;

/// A function that takes a point uniform in the open unit cube to θ, with its inverse and log-density where the user
/// has them.
///
/// ```
/// use batchquad::prior::{Prior, UnitCubeMap};
/// let map = UnitCubeMap::new(|v| vec![10.0 * v[0]]).with_inverse(|theta| vec![theta[0] / 10.0]);
/// let prior = Prior::from_unit_cube(["x"], map)?;
/// assert_eq!(prior.to_theta(&[0.0])?, [5.0]);
/// assert_eq!(prior.to_latent(&[5.0])?, [0.0]);
/// # Ok::<(), batchquad::Error>(())
/// ```
#[derive(Clone)]
pub struct UnitCubeMap {
    map: Map,
    inverse: Option<Map>,
    log_density: Option<LogDensity>,
}

impl std::fmt::Debug for UnitCubeMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnitCubeMap")
            .field("has_inverse", &self.inverse.is_some())
            .field("has_log_density", &self.log_density.is_some())
            .finish_non_exhaustive()
    }
}

impl<F: Fn(&[f64]) -> Vec<f64> + Send + Sync + 'static> From<F> for UnitCubeMap {
    fn from(map: F) -> Self {
        Self::new(map)
    }
}

impl UnitCubeMap {
    /// A map without inverse and density.
    pub fn new(map: impl Fn(&[f64]) -> Vec<f64> + Send + Sync + 'static) -> Self {
        Self { map: Arc::new(map), inverse: None, log_density: None }
    }

    /// With the inverse, from θ to the unit cube.
    #[must_use]
    pub fn with_inverse(mut self, inverse: impl Fn(&[f64]) -> Vec<f64> + Send + Sync + 'static) -> Self {
        self.inverse = Some(Arc::new(inverse));
        self
    }

    /// With the log-density of θ that the map implies.
    #[must_use]
    pub fn with_log_density(mut self, log_density: impl Fn(&[f64]) -> f64 + Send + Sync + 'static) -> Self {
        self.log_density = Some(Arc::new(log_density));
        self
    }

    /// θ at `v = Φ(u)`, kept off the faces of the cube, where many maps are infinite.
    pub(super) fn theta(&self, names: &[String], u: &[f64]) -> Result<Vec<f64>> {
        let cube: Vec<f64> = u.iter().map(|u| normal::cdf(*u).clamp(f64::MIN_POSITIVE, 1.0_f64.next_down())).collect();
        let theta = (self.map)(&cube);
        if theta.len() != names.len() {
            return Err(Error::length("result of the unit-cube map", names.len(), theta.len()));
        }
        match theta.iter().position(|value| !value.is_finite()) {
            Some(i) => {
                let what = format!("parameter {:?} from the unit-cube map at {cube:?}", names[i]);
                Err(Error::invalid(what, theta[i], "a finite number"))
            }
            None => Ok(theta),
        }
    }

    /// `Φ⁻¹` of the user's inverse.
    pub(super) fn latent(&self, names: &[String], theta: &[f64]) -> Result<Vec<f64>> {
        let inverse = self.inverse.as_ref().ok_or_else(|| absent("inverse", names))?;
        let cube = inverse(theta);
        if cube.len() != names.len() {
            return Err(Error::length("result of the inverse of the unit-cube map", names.len(), cube.len()));
        }
        let latent = |(name, v): (&String, &f64)| {
            if *v > 0.0 && *v < 1.0 {
                Ok(normal::LogTails { lower: v.ln(), upper: (-v).ln_1p() }.to_normal())
            } else {
                let what = format!("coordinate of {name:?} from the inverse of the unit-cube map at {theta:?}");
                Err(Error::OutsideSupport { what, value: *v, support: "(0.0, 1.0)".into() })
            }
        };
        names.iter().zip(&cube).map(latent).collect()
    }

    /// The user's log-density.
    pub(super) fn log_density(&self, names: &[String], theta: &[f64]) -> Result<f64> {
        let log_density = self.log_density.as_ref().ok_or_else(|| absent("log-density", names))?;
        let value = log_density(theta);
        if value.is_nan() || value == f64::INFINITY {
            let what = format!("log-density of the unit-cube map at {theta:?}");
            return Err(Error::invalid(what, value, "a finite number or -inf"));
        }
        Ok(value)
    }
}

fn absent(part: &str, names: &[String]) -> Error {
    let what = format!("{part} of the unit-cube map of {names:?}");
    let expected = "a map given together with it, or a prior of named distributions";
    Error::Invalid { what, value: "absent".into(), expected: expected.into() }
}
