//! The reference measure, and the coordinates in which the belief about the integrand lives. [`MATH.md`
//! §6](crate::math).

use serde::{Deserialize, Serialize};

use crate::{
    belief::measure::{Gaussian, Mixture},
    error::Result,
    numeric::{
        linalg::{Factor, Matrix},
        normal,
    },
    points::Points,
};

/// The share of the prior in a moved measure: the modelled integrand is then at most twice the likelihood, wherever the
/// rest went.
const PRIOR_SHARE: f64 = 0.5;

/// The power of the likelihood in the density that a moved measure follows.
const TEMPER: f64 = 0.5;

/// A normal distribution `N(b, B)` of the latent coordinates: where a moved measure is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// The centre `b`.
    pub mean: Vec<f64>,
    /// The rows of `B`.
    pub covariance: Vec<Vec<f64>>,
}

impl Place {
    /// The normal approximation of the tempered posterior `ℓ^½ N(0, I)`, from the posterior's mean `m` and covariance
    /// `Σ`:
    ///
    /// `B⁻¹ = ½Σ⁻¹ + ½I`, `B⁻¹b = ½Σ⁻¹m`.
    ///
    /// It is wider than the posterior and never wider than `2I`. Cost: `d³`.
    ///
    /// # Errors
    /// [`crate::Error::NotPositiveDefinite`] when `Σ` is not a covariance.
    pub fn tempered(mean: &[f64], covariance: &Matrix) -> Result<Self> {
        let d = mean.len();
        let posterior = Factor::exact("posterior covariance", covariance)?;
        let shift: Vec<f64> = posterior.solve_vec(mean).iter().map(|v| TEMPER * v).collect();
        let precision = posterior.into_inverse_lower();
        let precision = Matrix::from_fn(d, d, |i, j| {
            TEMPER * precision.get(i.max(j), i.min(j)) + if i == j { 1.0 - TEMPER } else { 0.0 }
        });
        let factor = Factor::exact("tempered precision", &precision)?;
        let mean = factor.solve_vec(&shift);
        let inverse = factor.into_inverse_lower();
        let covariance = (0..d).map(|i| (0..d).map(|j| inverse.get(i.max(j), i.min(j))).collect()).collect();
        Ok(Self { mean, covariance })
    }
}

/// Coordinates `v`, `u = b + Lv`, and the measure `q = ½ N(0, I) + ½ N(b, LLᵀ)` (in terms of `u`) that is integrated
/// against.
///
/// `Z = ∫ ℓ N(u; 0, I) du = ∫ (ℓ N(u; 0, I)/q) q du`: the integrand that is modelled is `ℓ N(u; 0, I)/q`. Around a
/// posterior that is nearly normal it is flat and round in the coordinates `v`, however narrow, tilted or far out the
/// posterior is.
#[derive(Debug, Clone)]
pub struct Frame {
    place: Option<Gaussian>,
    measure: Mixture,
}

impl From<Mixture> for Frame {
    /// Latent coordinates as they are.
    fn from(measure: Mixture) -> Self {
        Self { place: None, measure }
    }
}

impl From<Gaussian> for Frame {
    /// Latent coordinates as they are.
    fn from(measure: Gaussian) -> Self {
        Mixture::from(measure).into()
    }
}

impl Frame {
    /// The frame of a moved measure. Cost: `d³`.
    ///
    /// # Errors
    /// As [`Gaussian::new`].
    pub fn at(place: &Place) -> Result<Self> {
        let local = Gaussian::new(place.mean.clone(), &place.covariance)?;
        let d = local.dim();
        // The prior in the new coordinates: N(−L⁻¹b, L⁻¹L⁻ᵀ).
        let columns: Vec<Vec<f64>> = (0..d).map(|k| local.white(&unit(d, k))).collect();
        let covariance: Vec<Vec<f64>> =
            (0..d).map(|i| (0..d).map(|j| columns.iter().map(|c| c[i] * c[j]).sum()).collect()).collect();
        let prior = Gaussian::new(local.to_standard(&vec![0.0; d]), &covariance)?;
        let measure = Mixture::new(vec![(1.0 - PRIOR_SHARE, Gaussian::standard(d)?), (PRIOR_SHARE, prior)])?;
        Ok(Self { place: Some(local), measure })
    }

    /// The measure `q`, in the coordinates of the frame.
    #[must_use]
    pub fn measure(&self) -> &Mixture {
        &self.measure
    }

    /// The coordinates `v` of latent points.
    ///
    /// # Errors
    /// [`crate::Error::Length`] for points of another dimension.
    pub fn enter(&self, latent: &Points) -> Result<Points> {
        self.map(latent, Gaussian::to_standard)
    }

    /// The latent coordinates `u = b + Lv`.
    ///
    /// # Errors
    /// [`crate::Error::Length`] for points of another dimension.
    pub fn leave(&self, points: &Points) -> Result<Points> {
        self.map(points, Gaussian::map_standard)
    }

    fn map(&self, points: &Points, by: fn(&Gaussian, &[f64]) -> Vec<f64>) -> Result<Points> {
        points.require_dim("frame", self.measure.dim())?;
        match &self.place {
            None => Ok(points.clone()),
            Some(place) => Points::new(points.dim(), points.rows().flat_map(|x| by(place, x)).collect()),
        }
    }

    /// `log N(u; 0, I) − log q(u)`: what a log-likelihood gains on entering the frame.
    ///
    /// # Panics
    /// When `u` has another dimension.
    #[must_use]
    pub fn log_ratio(&self, latent: &[f64]) -> f64 {
        let Some(place) = &self.place else { return 0.0 };
        let prior: f64 = latent.iter().map(|u| normal::log_density(*u)).sum();
        // −log(s + (1 − s) N(u; b, B)/N(u; 0, I)), written so that no quotient overflows.
        let quotient = place.log_density(latent) - prior;
        let top = quotient.max(0.0);
        -(top + (PRIOR_SHARE * (-top).exp() + (1.0 - PRIOR_SHARE) * (quotient - top).exp()).ln())
    }

    /// The affine map `u = b + Lv` as `b` and the rows of `L`.
    #[must_use]
    pub fn affine(&self) -> (Vec<f64>, Vec<Vec<f64>>) {
        let d = self.measure.dim();
        match &self.place {
            None => (vec![0.0; d], (0..d).map(|k| unit(d, k)).collect()),
            Some(place) => (place.mean().to_vec(), (0..d).map(|k| place.lower_row(k)).collect()),
        }
    }

    /// `log |L|/d`: by how much a length grows on leaving the frame, in the mean over all directions.
    pub(crate) fn log_growth(&self) -> f64 {
        self.place.as_ref().map_or(0.0, |place| place.half_log_det() / place.dim() as f64)
    }

    /// Mean and covariance on leaving the frame: `b + Lm`, `LΣLᵀ`. Cost: `d³`.
    #[must_use]
    pub fn leave_moments(&self, mean: &[f64], covariance: &Matrix) -> (Vec<f64>, Matrix) {
        let (shift, rows) = self.affine();
        let d = shift.len();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let half: Vec<Vec<f64>> =
            rows.iter().map(|row| (0..d).map(|j| dot(row, covariance.col(j))).collect()).collect();
        let moved = Matrix::from_fn(d, d, |i, j| dot(&half[i], &rows[j]));
        let symmetric = Matrix::from_fn(d, d, |i, j| 0.5 * (moved.get(i, j) + moved.get(j, i)));
        ((0..d).map(|k| shift[k] + dot(&rows[k], mean)).collect(), symmetric)
    }

    /// `KL(N(b', B') ‖ N(b, B))` in nats, from this frame's `N(b, B)` to another place; infinite from latent
    /// coordinates as they are.
    ///
    /// # Errors
    /// As [`Gaussian::new`].
    pub fn divergence(&self, place: &Place) -> Result<f64> {
        let Some(own) = &self.place else { return Ok(f64::INFINITY) };
        let d = own.dim();
        let other = Gaussian::new(place.mean.clone(), &place.covariance)?;
        // ½(|L⁻¹L'|² − d + |L⁻¹(b' − b)|²) − log|L⁻¹L'|
        let stretch: f64 =
            (0..d).map(|k| square(&own.white(&(0..d).map(|i| other.lower_row(i)[k]).collect::<Vec<_>>()))).sum();
        let shift = square(&own.to_standard(other.mean()));
        Ok(0.5 * (stretch - d as f64 + shift) - (other.half_log_det() - own.half_log_det()))
    }
}

fn unit(d: usize, k: usize) -> Vec<f64> {
    (0..d).map(|j| if j == k { 1.0 } else { 0.0 }).collect()
}

fn square(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::rng::{Purpose, Stream};

    fn place() -> Place {
        Place { mean: vec![1.5, -0.5], covariance: vec![vec![0.09, 0.05], vec![0.05, 0.04]] }
    }

    #[test]
    fn a_gaussian_likelihood_is_tempered_to_its_square_root() {
        // ℓ = N(u; a, s²) to the power ½ is N(u; a, 2s²) but for a factor: precision 1 + 1/(2s²), and a/(2s²) of it at
        // a.
        let (a, s2) = (3.0, 0.25);
        let (precision, mean) = (1.0 + 1.0 / s2, a / s2 / (1.0 + 1.0 / s2));
        let found = Place::tempered(&[mean], &Matrix::from_fn(1, 1, |_, _| 1.0 / precision)).unwrap();
        let b = 1.0 / (1.0 + 0.5 / s2);
        assert!((found.covariance[0][0] - b).abs() < 1e-15);
        assert!((found.mean[0] - 0.5 * a / s2 * b).abs() < 1e-14);
        assert!(Place::tempered(&[0.0], &Matrix::zeros(1, 1)).is_err());
    }

    #[test]
    fn entering_and_leaving_cancel_and_keep_the_integrand() {
        let frame = Frame::at(&place()).unwrap();
        let mut stream = Stream::new(1, Purpose::Design, 0);
        let latent = Points::from_rows(&(0..20).map(|_| stream.normals(2)).collect::<Vec<_>>()).unwrap();
        let entered = frame.enter(&latent).unwrap();
        for ((u, v), back) in latent.rows().zip(entered.rows()).zip(frame.leave(&entered).unwrap().rows()) {
            // Rounding of two products with L and its inverse.
            assert!(u.iter().zip(back).all(|(a, b)| (a - b).abs() < 1e-13), "{u:?} {back:?}");
            // q du = q_v dv: the density in the frame is that of u times |L|.
            let prior: f64 = u.iter().map(|u| normal::log_density(*u)).sum();
            let from_ratio = prior - frame.log_ratio(u) + 2.0 * frame.log_growth();
            assert!((frame.measure().log_density(v) - from_ratio).abs() < 1e-12, "{u:?}");
        }
        assert!(frame.enter(&Points::new(3, vec![0.0; 3]).unwrap()).is_err());
    }

    #[test]
    fn the_divergence_is_that_of_one_dimension_and_zero_at_home() {
        let frame = Frame::at(&place()).unwrap();
        assert!(frame.divergence(&place()).unwrap().abs() < 1e-14);
        let line = |mean: f64, variance: f64| Place { mean: vec![mean], covariance: vec![vec![variance]] };
        // KL(N(1, 4) ‖ N(0, 1)) = ½(4 − 1 + 1) − log 2.
        let found = Frame::at(&line(0.0, 1.0)).unwrap().divergence(&line(1.0, 4.0)).unwrap();
        assert!((found - (2.0 - 2.0_f64.ln())).abs() < 1e-14);
        let latent: Frame = Gaussian::standard(1).unwrap().into();
        assert_eq!(latent.divergence(&line(0.0, 1.0)).unwrap(), f64::INFINITY);
    }

    #[test]
    fn moments_leave_as_points_do() {
        let frame = Frame::at(&place()).unwrap();
        let (mean, covariance) = frame.leave_moments(&[0.0, 0.0], &Matrix::from_fn(2, 2, |i, j| f64::from(i == j)));
        assert_eq!(mean, place().mean);
        for i in 0..2 {
            for j in 0..2 {
                assert!((covariance.get(i, j) - place().covariance[i][j]).abs() < 1e-16);
            }
        }
    }
}
