//! Ratios of integrals with an error: `∫ f ℓ dπ / ∫ ℓ dπ` for several `f` at once. [`MATH.md` §13](crate::math).

use serde::Serialize;

use super::{Draws, Posterior};
use crate::{
    error::{Error, Result},
    numeric::linalg::{Factor, Matrix, transpose_mul},
};

/// Posterior expectations of several functions, with what is not known about them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Expectation {
    /// `E[f]` of each function.
    pub mean: Vec<f64>,
    /// The standard deviation of each under the belief, because the likelihood is known only at the nodes. Numerator
    /// and denominator of the ratio are uncertain together.
    pub sd: Vec<f64>,
    /// The standard error of each from the finite number of draws; more draws make it smaller.
    pub monte_carlo: Vec<f64>,
    /// The covariances behind `sd`, by rows.
    pub covariance: Vec<Vec<f64>>,
    /// The covariance of each with `log Z`, under the belief.
    pub with_log_z: Vec<f64>,
    /// How many independent draws the weighted ones are worth.
    pub effective: f64,
}

impl Expectation {
    /// `√(sd² + monte_carlo²)` of function `k`.
    ///
    /// # Panics
    /// When there is no such function, as indexing a slice does.
    #[must_use]
    pub fn error(&self, k: usize) -> f64 {
        self.sd[k].hypot(self.monte_carlo[k])
    }
}

/// Effective draws for each coefficient of a regression that is to be trusted.
const DRAWS_EACH: f64 = 20.0;

impl Posterior {
    /// `∫ f ℓ dπ / ∫ ℓ dπ` for each component of `f(θ)`, from about `n` draws.
    ///
    /// With `r` the ratio, `δ = f − r`, the linearised variance of the ratio is that of `∫ δ ℓ dπ` over `E²`:
    /// `∬ δ(x)m(x) C(x, x') m(x')δ(x') dμdμ / E²`, a double sum over draws. Where the moments of the latent coordinates
    /// are known, `f` is regressed on polynomials of degree two in them, and only what they do not explain is left to
    /// the draws. Cost: `n²` exponentials, `n` per node, and one call of `f` per draw.
    ///
    /// # Errors
    /// [`Error::Length`] when `f` gives different numbers of values or none, [`Error::Invalid`] when one is not finite;
    /// as [`Posterior::draws`].
    pub fn expect(&self, n: usize, seed: u64, f: impl Fn(&[f64]) -> Vec<f64>) -> Result<Expectation> {
        let draws = self.draws(n, seed)?;
        let values = evaluate(&draws, f)?;
        let weights = draws.weights();
        let mean: Vec<f64> = (0..values.cols()).map(|k| super::coordinates::product(&weights, values.col(k))).collect();
        let (mean, monte_carlo) = match self.explained(&draws, &weights, &values)? {
            Some(better) => better,
            None => {
                let error = |k: usize| monte_carlo_error(&weights, values.col(k).iter().map(|v| v - mean[k]));
                (mean.clone(), (0..mean.len()).map(error).collect())
            }
        };
        let covariance = self.error_covariance(&draws, &values, &mean)?;
        let count = mean.len();
        let block = |i: usize, j: usize| covariance.get(i, j);
        Ok(Expectation {
            sd: (0..count).map(|k| block(k, k).max(0.0).sqrt()).collect(),
            covariance: (0..count).map(|i| (0..count).map(|j| block(i, j)).collect()).collect(),
            with_log_z: (0..count).map(|k| block(k, count)).collect(),
            mean,
            monte_carlo,
            effective: draws.effective(),
        })
    }

    /// Means and Monte Carlo errors with polynomials in the latent coordinates as control variates; `None` where their
    /// moments are not known or the draws too few.
    #[allow(clippy::type_complexity)]
    fn explained(&self, draws: &Draws, weights: &[f64], values: &Matrix) -> Result<Option<(Vec<f64>, Vec<f64>)>> {
        let d = self.dim();
        let terms = 1 + d + d * (d + 1) / 2;
        if self.closed.is_none() || draws.effective() < DRAWS_EACH * terms as f64 {
            return Ok(None);
        }
        let moments = self.latent_moments()?;
        let sd: Vec<f64> = (0..d).map(|k| moments.covariance[k][k].sqrt()).collect();
        if !sd.iter().all(|s| *s > 0.0) {
            return Ok(None);
        }
        // Standardised, so that the normal equations are about as good as they can be; all but the first have mean
        // zero.
        let pairs: Vec<(usize, usize)> = (0..d).flat_map(|i| (0..=i).map(move |j| (i, j))).collect();
        let tie = |i: usize, j: usize| moments.covariance[i][j] / (sd[i] * sd[j]);
        let basis = |u: &[f64]| -> Vec<f64> {
            let z: Vec<f64> = (0..d).map(|k| (u[k] - moments.mean[k]) / sd[k]).collect();
            let squares = pairs.iter().map(|&(i, j)| z[i] * z[j] - tie(i, j));
            std::iter::once(1.0).chain(z.iter().copied()).chain(squares).collect()
        };
        let rows: Vec<Vec<f64>> = draws.latent().rows().map(basis).collect();
        let roots: Vec<f64> = weights.iter().map(|w| w.sqrt()).collect();
        let design = Matrix::from_fn(rows.len(), terms, |s, t| roots[s] * rows[s][t]);
        let Ok(factor) = Factor::exact("normal equations of control variates", &transpose_mul(&design, &design)) else {
            return Ok(None);
        };
        let (mut mean, mut error) = (Vec::new(), Vec::new());
        for k in 0..values.cols() {
            let right: Vec<f64> = values.col(k).iter().zip(&roots).map(|(v, r)| v * r).collect();
            let projected: Vec<f64> = (0..terms).map(|t| super::coordinates::product(design.col(t), &right)).collect();
            let coefficients = factor.solve_vec(&projected);
            let left = rows.iter().zip(values.col(k)).map(|(b, v)| v - super::coordinates::product(b, &coefficients));
            error.push(monte_carlo_error(weights, left));
            mean.push(coefficients[0]);
        }
        Ok(Some((mean, error)))
    }

    /// The covariance of all ratios and of `log Z`, which comes last.
    fn error_covariance(&self, draws: &Draws, values: &Matrix, mean: &[f64]) -> Result<Matrix> {
        let (points, count) = (draws.own(), mean.len());
        // Where a belief is negative there is no posterior, and the ratio is over the rest.
        let total = match self.belief.warped().filter(|surrogate| surrogate.is_positive()) {
            Some(surrogate) => surrogate.estimate()?.mean,
            None => draws.mass(),
        };
        let ratio: Vec<f64> = draws.log_ratio().iter().map(|l| l.exp() / total).collect();
        let deviation = |s: usize, k: usize| if k < count { values.get(s, k) - mean[k] } else { 1.0 };
        let columns = Matrix::from_fn(points.len(), count + 1, |s, k| ratio[s] * deviation(s, k));
        let covariance = self.belief.covariance_sums(points, &columns)?;
        // Products over blocks are symmetric but for rounding.
        Ok(Matrix::from_fn(count + 1, count + 1, |i, j| 0.5 * (covariance.get(i, j) + covariance.get(j, i))))
    }
}

/// `f(θ)` at each draw, one column per component.
fn evaluate(draws: &Draws, f: impl Fn(&[f64]) -> Vec<f64>) -> Result<Matrix> {
    let rows: Vec<Vec<f64>> = draws.theta().rows().map(f).collect();
    let count = rows[0].len();
    if count == 0 {
        return Err(Error::length("values of the function of the parameters", 1, 0));
    }
    for (row, theta) in rows.iter().zip(draws.theta().rows()) {
        if row.len() != count {
            let what = format!("values of the function of the parameters at {theta:?}");
            return Err(Error::length(what, count, row.len()));
        }
        if let Some(k) = row.iter().position(|v| !v.is_finite()) {
            let what = format!("value {k} of the function of the parameters at {theta:?}");
            return Err(Error::invalid(what, row[k], "a finite number"));
        }
    }
    Ok(Matrix::from_fn(rows.len(), count, |s, k| rows[s][k]))
}

/// `√Σ w²r²`: the standard error of a self-normalised average with residuals `r`, as if the draws were independent
/// (they are spread more evenly, so this is on the safe side).
fn monte_carlo_error(weights: &[f64], residuals: impl Iterator<Item = f64>) -> f64 {
    weights.iter().zip(residuals).map(|(w, r)| (w * r).powi(2)).sum::<f64>().sqrt()
}
