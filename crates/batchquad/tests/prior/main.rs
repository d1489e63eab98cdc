//! Priors against mpmath, against themselves (round trips, Jacobians) and against hostile parameters.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod kinds;
mod maps;
mod mpmath;

use batchquad::prior::Distribution;

#[derive(serde::Deserialize)]
pub(crate) struct Reference {
    pub(crate) cases: Vec<Case>,
    pub(crate) normal: Vec<NormalTail>,
}

#[derive(serde::Deserialize)]
pub(crate) struct Case {
    pub(crate) distribution: Distribution,
    pub(crate) points: Vec<Point>,
}

#[derive(serde::Deserialize)]
pub(crate) struct Point {
    pub(crate) u: f64,
    pub(crate) theta: f64,
    pub(crate) log_density: Option<f64>,
    pub(crate) log_jacobian: Option<f64>,
}

#[derive(serde::Deserialize)]
pub(crate) struct NormalTail {
    pub(crate) u: f64,
    pub(crate) log_cdf: f64,
}

pub(crate) fn reference() -> Reference {
    serde_json::from_str(include_str!("../data/prior_reference.json")).unwrap()
}

pub(crate) fn ulp(x: f64) -> f64 {
    x.abs().next_up() - x.abs()
}

/// What the arithmetic may lose in units of `u`: log-tails near −34 at |u| = 8 carry about 1e-14, divided by the hazard |u|;
/// the rest is the conditioning of needle-like shapes, `ε√shape`, and of `log θ` when θ is near the ends of the doubles.
pub(crate) const LATENT_TOLERANCE: f64 = 1e-13;

/// Whether θ was moved because its exact value does not fit a double: then u is gone.
pub(crate) fn is_clamped(theta: f64) -> bool {
    theta.abs() <= f64::MIN_POSITIVE || theta.abs() == f64::MAX
}

/// `u → θ → u` to `1e-12 (1 + |u|)` and what a double θ can hold, `4 ulp(θ)/|dθ/du|`.
pub(crate) fn round_trip(distribution: Distribution, u: f64) -> Result<(), String> {
    let theta = distribution.to_theta(u).map_err(|e| e.to_string())?;
    let (low, high) = distribution.support();
    if !(theta > low && theta < high && theta.is_finite()) {
        return Err(format!("{distribution:?} at {u}: {theta:?} is not inside the support"));
    }
    let log_jacobian = distribution.log_jacobian(u).map_err(|e| e.to_string())?;
    if is_clamped(theta) || log_jacobian == f64::NEG_INFINITY {
        return Ok(());
    }
    let back = distribution.to_latent(theta).map_err(|e| e.to_string())?;
    let held = 4.0 * (ulp(theta).ln() - log_jacobian).exp();
    // When a double cannot tell u from its neighbours the linear bound no longer describes the map; θ is then next to an end.
    if held > 0.1 || (back - u).abs() <= 1e-12 * (1.0 + u.abs()) + held {
        Ok(())
    } else {
        Err(format!("{distribution:?}: u = {u:?} → θ = {theta:?} → u = {back:?} (a double holds {held:e})"))
    }
}
