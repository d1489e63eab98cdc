//! Models side by side.

use serde::Serialize;

use crate::{
    choose::design::InitialDesign,
    error::{Error, Result, require_finite},
};

/// How a model fares against the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Standing {
    /// `log Z` less that of the best model: the logarithm of the Bayes factor.
    pub log_bayes_factor: f64,
    /// Its standard deviation, `√(sd² + sd_best²)`; zero for the best model itself.
    pub log_bayes_factor_sd: f64,
    /// The posterior probability of the model under equal prior odds, averaged over what is not known about the
    /// evidences.
    pub probability: f64,
    /// The standard deviation of that probability over the same.
    pub probability_sd: f64,
}

/// Points of the average over the evidences.
pub(crate) const DRAWS: usize = 1 << 14;

/// Bayes factors against the best of several models and posterior model probabilities, from `(log Z, sd)` of each.
///
/// Every evidence is log-normal, `log Zᵢ ~ N(log_zᵢ, sdᵢ²)`: error bars are those of `log Z`, and a run that has not
/// arrived, with a bar of forty nats, is as probably better than another as it is worse. The probabilities are
/// `E[Zᵢ/Σⱼ Zⱼ]`, by 16 384 scrambled Sobol points.
///
/// # Errors
/// [`Error::Length`] without models, [`Error::Invalid`] for a `log Z` that is not finite or an sd that is negative or
/// not finite.
pub fn compare(evidences: &[(f64, f64)]) -> Result<Vec<Standing>> {
    let mut sums = vec![(0.0, 0.0); evidences.len()];
    over_evidences(evidences, |_, probabilities| {
        for (sum, p) in sums.iter_mut().zip(probabilities) {
            *sum = (sum.0 + p, sum.1 + p * p);
        }
    })?;
    let best = (1..evidences.len()).fold(0, |b, i| if evidences[i].0 > evidences[b].0 { i } else { b });
    let (top, top_sd) = evidences[best];
    let standing = |i: usize, (log_z, sd): (f64, f64)| {
        let (mean, square) = (sums[i].0 / DRAWS as f64, sums[i].1 / DRAWS as f64);
        Standing {
            log_bayes_factor: log_z - top,
            log_bayes_factor_sd: if i == best { 0.0 } else { sd.hypot(top_sd) },
            probability: mean,
            probability_sd: (square - mean * mean).max(0.0).sqrt(),
        }
    };
    Ok(evidences.iter().enumerate().map(|(i, e)| standing(i, *e)).collect())
}

/// Visits [`DRAWS`] equally likely states of the evidences: for each model how many standard deviations its `log Z` is
/// off, and its probability then.
///
/// # Errors
/// As [`compare`].
pub(crate) fn over_evidences(evidences: &[(f64, f64)], mut visit: impl FnMut(&[f64], &[f64])) -> Result<()> {
    if evidences.is_empty() {
        return Err(Error::length("list of models", 1, 0));
    }
    for (i, (log_z, sd)) in evidences.iter().enumerate() {
        require_finite(&format!("log_z of model {i}"), *log_z)?;
        if !(sd.is_finite() && *sd >= 0.0) {
            return Err(Error::invalid(format!("log_z_sd of model {i}"), sd, "a finite number >= 0"));
        }
    }
    let top = evidences.iter().map(|(log_z, _)| *log_z).fold(f64::NEG_INFINITY, f64::max);
    for u in InitialDesign::Sobol.latent(evidences.len(), DRAWS, 0)?.rows() {
        let logs: Vec<f64> = evidences.iter().zip(u).map(|((log_z, sd), u)| log_z - top + sd * u).collect();
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let shares: Vec<f64> = logs.iter().map(|l| (l - largest).exp()).collect();
        let total: f64 = shares.iter().sum();
        visit(u, &shares.iter().map(|share| share / total).collect::<Vec<_>>());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_models_agree_with_quadrature_of_the_logistic_function() {
        // Δ = log Z₁ − log Z₂ is normal, so E[1/(1 + e^−Δ)] is a one-dimensional integral: trapezoid over ±12 sd.
        for (a, b) in [((-3.0, 0.3), (-4.0, 0.2)), ((1e6, 1.0), (1e6 - 0.5, 2.0)), ((0.0, 0.0), (0.0, 0.0))] {
            let found = compare(&[a, b]).unwrap();
            let mean: f64 = a.0 - b.0;
            let sd: f64 = f64::hypot(a.1, b.1);
            let (mut total, mut sum) = (0.0, 0.0);
            for i in -12_000..=12_000 {
                let t = f64::from(i) * 1e-3;
                let weight = (-0.5 * t * t).exp();
                total += weight;
                sum += weight / (1.0 + (-(mean + sd * t)).exp());
            }
            // Scrambled Sobol points of this many err by about 1e-5 for so smooth a function.
            assert!((found[0].probability - sum / total).abs() < 1e-4, "{found:?} {}", sum / total);
            assert!((found[0].probability + found[1].probability - 1.0).abs() < 1e-12);
            assert_eq!(found[1].log_bayes_factor, b.0 - a.0);
            assert_eq!(found[1].log_bayes_factor_sd, sd);
        }
    }

    #[test]
    fn certain_evidences_give_the_ratio() {
        let found = compare(&[(2.0_f64.ln(), 0.0), (1.0_f64.ln(), 0.0), (5.0_f64.ln(), 0.0)]).unwrap();
        for (standing, p) in found.iter().zip([0.25, 0.125, 0.625]) {
            assert!((standing.probability - p).abs() < 1e-12 && standing.probability_sd < 1e-7, "{found:?}");
        }
    }

    /// One that has not arrived is neither certainly better nor certainly worse.
    #[test]
    fn a_wide_bar_makes_no_model_certain() {
        let found = compare(&[(-34.0, 0.1), (-30.0, 40.0)]).unwrap();
        assert!((found[0].probability - 0.5).abs() < 0.1 && found[0].probability_sd > 0.4, "{found:?}");
    }

    #[test]
    fn what_cannot_be_compared_is_refused_by_number() {
        assert!(compare(&[]).is_err());
        let error = compare(&[(0.0, 0.1), (f64::NEG_INFINITY, f64::INFINITY)]).unwrap_err().to_string();
        assert!(error.contains("model 1"), "{error}");
    }
}
