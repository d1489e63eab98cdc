//! Predictions averaged over models: [`MATH.md` §13](crate::math).

use serde::Serialize;

use super::Expectation;
use crate::{
    belief::estimate::Estimate,
    error::{Error, Result},
    infer::compare::{self, Standing, compare},
};

/// Expectations averaged over models by their posterior probabilities.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Average {
    /// `Σᵢ pᵢ E[f | model i]` of each function.
    pub mean: Vec<f64>,
    /// Its standard deviation: from the evidences, which decide the probabilities, and from each model's own
    /// uncertainty.
    pub sd: Vec<f64>,
    /// The standard error from the finite number of draws.
    pub monte_carlo: Vec<f64>,
    /// How each model fares against the others.
    pub standings: Vec<Standing>,
}

/// The mixture of several models' predictions of the same quantities, each model weighted by its posterior probability
/// under equal prior odds. (For other odds, add their logarithms to `log_z`.)
///
/// The evidences are log-normal as in [`compare()`], and each expectation moves with its evidence as
/// [`Expectation::with_log_z`] says. Averages are over 16 384 Sobol points.
///
/// ```
/// # #[cfg(feature = "run")] {
/// use batchquad::{Config, Engine, Prior, integrate, infer::average, prior::Distribution};
/// // Is the coin fair (no free parameter to speak of), or does it have a bias? Nine heads of twelve.
/// let log_likelihood = |t: &[f64]| 9.0 * t[0].ln() + 3.0 * (1.0 - t[0]).ln();
/// let model = |prior| integrate(log_likelihood, Prior::independent([("p", prior)])?, Config::default());
/// let (fair, biased) = (model(Distribution::beta(2000.0, 2000.0)?)?, model(Distribution::beta(1.0, 1.0)?)?);
/// let next = |t: &[f64]| vec![t[0]];
/// let of = |run: &Engine| run.posterior()?.expect(4096, 0, next);
/// let (a, b) = (of(&fair.engine)?, of(&biased.engine)?);
/// let mixed = average(&[(fair.estimate, &a), (biased.estimate, &b)])?;
/// // Z is 2⁻¹² and B(10, 4) = 9! 3!/13!, and the biased coin gives 10/14.
/// let (z0, z1) = (2.0_f64.powi(-12), 6.0 / (10.0 * 11.0 * 12.0 * 13.0));
/// assert!((mixed.mean[0] - (z0 * 0.5 + z1 * 10.0 / 14.0) / (z0 + z1)).abs() < 3e-3);
/// # }
/// # Ok::<(), batchquad::Error>(())
/// ```
///
/// # Errors
/// [`Error::Length`] without models or when they predict different numbers of quantities, [`Error::Invalid`] as
/// [`compare()`].
pub fn average(models: &[(Estimate, &Expectation)]) -> Result<Average> {
    let evidences: Vec<(f64, f64)> = models.iter().map(|(e, _)| (e.log_z, e.log_z_sd)).collect();
    let standings = compare(&evidences)?;
    let count = models[0].1.mean.len();
    for (i, (_, expectation)) in models.iter().enumerate() {
        if expectation.mean.len() != count {
            return Err(Error::length(format!("predictions of model {i}"), count, expectation.mean.len()));
        }
    }
    // What a standard deviation of log Z does to the expectation, and what is left of its variance when log Z is known.
    let tie = |i: usize, k: usize| if evidences[i].1 > 0.0 { models[i].1.with_log_z[k] / evidences[i].1 } else { 0.0 };
    let rest = |i: usize, k: usize| (models[i].1.sd[k].powi(2) - tie(i, k).powi(2)).max(0.0);
    let mut sums = vec![[0.0; 4]; count];
    compare::over_evidences(&evidences, |off, probabilities| {
        for (k, sum) in sums.iter_mut().enumerate() {
            let (mut mixed, mut own, mut drawn) = (0.0, 0.0, 0.0);
            for (i, p) in probabilities.iter().enumerate() {
                mixed += p * (models[i].1.mean[k] + tie(i, k) * off[i]);
                own += p * p * rest(i, k);
                drawn += (p * models[i].1.monte_carlo[k]).powi(2);
            }
            for (sum, term) in sum.iter_mut().zip([mixed, mixed * mixed, own, drawn]) {
                *sum += term / compare::DRAWS as f64;
            }
        }
    })?;
    Ok(Average {
        mean: sums.iter().map(|[mean, ..]| *mean).collect(),
        sd: sums.iter().map(|[mean, square, own, _]| ((square - mean * mean).max(0.0) + own).sqrt()).collect(),
        monte_carlo: sums.iter().map(|[.., drawn]| drawn.sqrt()).collect(),
        standings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(log_z: f64, log_z_sd: f64, mean: f64, sd: f64, with_log_z: f64) -> (Estimate, Expectation) {
        let estimate = Estimate::from_log(log_z, log_z_sd, log_z);
        let expectation = Expectation {
            mean: vec![mean],
            sd: vec![sd],
            monte_carlo: vec![0.0],
            covariance: vec![vec![sd * sd]],
            with_log_z: vec![with_log_z],
            effective: 1e3,
        };
        (estimate, expectation)
    }

    #[test]
    fn uncertain_evidences_and_predictions_agree_with_simulation() {
        let models = [model(-3.0, 0.4, 0.2, 0.05, 0.015), model(-3.5, 0.3, 0.9, 0.1, -0.01)];
        let found = average(&models.each_ref().map(|(e, x)| (*e, x))).unwrap();
        // 400 000 independent joint normal draws: errors of the mean below 5e-4.
        let mut stream = crate::numeric::rng::Stream::new(5, crate::numeric::rng::Purpose::Experiment, 0);
        let (mut sum, mut square, n) = (0.0, 0.0, 400_000);
        for _ in 0..n {
            let (mut weight, mut mixed) = (0.0, 0.0);
            for (e, x) in &models {
                let (a, b) = (stream.normal(), stream.normal());
                let tie = x.with_log_z[0] / e.log_z_sd;
                let prediction = x.mean[0] + tie * a + (x.sd[0].powi(2) - tie * tie).sqrt() * b;
                let z = (e.log_z + e.log_z_sd * a).exp();
                weight += z;
                mixed += z * prediction;
            }
            sum += mixed / weight;
            square += (mixed / weight).powi(2);
        }
        let mean = sum / f64::from(n);
        let sd = (square / f64::from(n) - mean * mean).sqrt();
        assert!((found.mean[0] - mean).abs() < 1e-3, "{found:?} {mean}");
        assert!((found.sd[0] / sd - 1.0).abs() < 0.01, "{found:?} {sd}");
        assert!((found.standings[0].probability + found.standings[1].probability - 1.0).abs() < 1e-12);
    }

    #[test]
    fn models_that_predict_different_things_are_refused() {
        let (e, a) = model(0.0, 0.1, 0.2, 0.1, 0.0);
        let mut b = a.clone();
        b.mean.push(1.0);
        assert!(matches!(average(&[(e, &a), (e, &b)]), Err(Error::Length { .. })));
        assert!(average(&[]).is_err());
    }
}
