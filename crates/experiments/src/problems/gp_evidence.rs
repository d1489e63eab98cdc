//! The paper's model evidence: a Gaussian process on Branin data, its lengthscale and variance integrated out.

use std::sync::OnceLock;

use anyhow::Result;

use super::{Problem, normal_prior};
use crate::{
    branin::{Evaluation, committed, log_marginal, standardise},
    grid::log_integral_2d,
};

/// Means and standard deviations of the independent normal priors on the log lengthscale (about 0.3 of the unit square) and on the log
/// variance of the standardised targets.
pub const PRIOR: [(f64, f64); 2] = [(-1.2, 1.0), (0.0, 1.5)];

/// The step of the grid behind the truth; halving it changes log Z by less than 1e-8.
const STEP: f64 = 0.05;

/// The log evidence by the trapezoidal rule with the given step in latent coordinates.
#[must_use]
pub fn evidence_at(data: &[Evaluation], step: f64) -> f64 {
    let targets = standardise(data);
    let [(m1, s1), (m2, s2)] = PRIOR;
    log_integral_2d(step, |u| log_marginal(data, &targets, m1 + s1 * u[0], m2 + s2 * u[1]))
}

/// The evidence of a Gaussian process with isotropic SE kernel and noise variance 1e-4 on standardised targets, over
/// (log lengthscale, log variance).
///
/// # Errors
/// When the committed data cannot be read.
pub fn gp_evidence() -> Result<Problem> {
    static TRUTH: OnceLock<f64> = OnceLock::new();
    let data = committed()?;
    let log_z = *TRUTH.get_or_init(|| evidence_at(&data, STEP));
    let targets = standardise(&data);
    Ok(Problem {
        name: "gp-evidence".into(),
        prior: normal_prior(&PRIOR)?,
        log_likelihood: Box::new(move |x| log_marginal(&data, &targets, x[0], x[1])),
        log_z,
    })
}
