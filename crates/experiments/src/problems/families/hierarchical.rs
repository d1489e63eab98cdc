//! Means of groups around a common one, as of the eight schools.

use anyhow::Result;
use batchquad::prior::Distribution;

use super::{super::zoo::log_normal, Dice, Draft, Truth, prior_of};
use crate::{
    dense::{Cholesky, log_normal_density},
    grid::log_integral_1d,
};

/// The step of the integral over `log τ`, in standard deviations of its prior, over which the integrand is smooth.
const STEP: f64 = 0.05;

/// `yⱼ ~ N(θⱼ, sⱼ²)` with `θⱼ ~ N(μ, τ²)`; the parameters are μ, log τ and the groups. Even members take `(θⱼ − μ)/τ` for these, under
/// `N(0, 1)`. Odd ones take `θⱼ` itself under a wide normal prior, by whose density the likelihood is divided: the evidence is the same.
/// For one τ, `y ~ N(m 1, diag(s² + τ²) + v 11ᵀ)` with the prior `N(m, v)` of μ.
pub fn hierarchical(dice: &mut Dice) -> Result<Draft> {
    let groups = dice.whole(3, 6);
    let scale = dice.log_uniform(1.0, 10.0);
    let tau = scale * dice.log_uniform(0.3, 3.0);
    let mu = scale * 3.0 * dice.normal();
    let sds: Vec<f64> = (0..groups).map(|_| scale * dice.log_uniform(0.4, 2.0)).collect();
    let effects = dice.normals(groups);
    let y: Vec<f64> = (0..groups).map(|j| mu + tau * effects[j] + sds[j] * dice.normal()).collect();
    let mu_sd = scale * dice.log_uniform(3.0, 20.0);
    let (mean, tau_sd) = (mu + mu_sd * dice.normal(), dice.uniform(0.7, 1.3));
    let log_tau = tau.ln() + tau_sd * dice.normal();
    let log_z = log_integral_1d(STEP, |u| {
        let variance = (2.0 * (log_tau + tau_sd * u)).exp();
        let entry = |i: usize, j: usize| mu_sd * mu_sd + if i == j { sds[i] * sds[i] + variance } else { 0.0 };
        let away: Vec<f64> = y.iter().map(|y| y - mean).collect();
        Cholesky::new(groups, entry).map_or(f64::NEG_INFINITY, |factor| log_normal_density(&factor, &away))
    });
    let shared = [Distribution::normal(mean, mu_sd)?, Distribution::normal(log_tau, tau_sd)?];
    let seen = move |j: usize, theta: f64| log_normal(y[j], theta, sds[j] * sds[j]);
    let truth = Truth::Exact(log_z);
    if dice.even {
        let log_likelihood = move |x: &[f64]| (0..groups).map(|j| seen(j, x[0] + x[1].exp() * x[2 + j])).sum::<f64>();
        let own = vec![Distribution::normal(0.0, 1.0)?; groups];
        let place = [mu, tau.ln()].into_iter().chain(effects).collect();
        let prior = prior_of(&[&shared[..], &own].concat())?;
        return Ok(Draft { prior, log_likelihood: Box::new(log_likelihood), truth, places: vec![place] });
    }
    let own_sd = (mu_sd * mu_sd + 9.0 * tau * tau).sqrt();
    let log_likelihood = move |x: &[f64]| {
        let group = |j: usize| {
            let (theta, variance) = (x[2 + j], (2.0 * x[1]).exp());
            seen(j, theta) + log_normal(theta, x[0], variance) - log_normal(theta, mean, own_sd * own_sd)
        };
        (0..groups).map(group).sum::<f64>()
    };
    let own = vec![Distribution::normal(mean, own_sd)?; groups];
    let place = [mu, tau.ln()].into_iter().chain(effects.iter().map(|e| mu + tau * e)).collect();
    let prior = prior_of(&[&shared[..], &own].concat())?;
    Ok(Draft { prior, log_likelihood: Box::new(log_likelihood), truth, places: vec![place] })
}
