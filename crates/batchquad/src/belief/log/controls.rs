//! The mean of weights by control variates, with its error. `MATH.md` §15.

use rayon::prelude::*;

use super::{
    density::log_parts,
    known::coefficients,
    proposal::{Draws, Normal, Proposal},
};
use crate::{
    error::Result,
    numeric::{
        linalg::{Factor, Jitter, Matrix, mul_transpose},
        simd::dot,
    },
};

/// Independently shifted nets of the final sample, whose disagreement is its error.
pub(super) const SHIFTS: usize = 8;

/// The standard error of a mean from the means of the shifted nets; a third more for the few of them.
pub(super) fn between_shifts(values: &[f64], mean: f64) -> f64 {
    let size = values.len() / SHIFTS;
    let square = |net: &[f64]| (net.iter().sum::<f64>() / size as f64 - mean).powi(2);
    let sum: f64 = values.chunks(size).map(square).sum();
    1.33 * (sum / (SHIFTS * (SHIFTS - 1)) as f64).sqrt()
}

/// Most control variates.
const CONTROLS: usize = 140;

/// The mean of the weights with its standard error, by regression on functions whose means under the proposal are known.
///
/// For a normal density `g` of the proposal `q` and `z` its white coordinate, `g/q` has mean 1, and `g zₐ/q`, `g zₐz_b/q` (less 1 for `a = b`), …
/// have mean 0. Weights that are a combination of these are integrated without error: a posterior that is nearly a mixture of
/// normals costs next to nothing. Without them the mean is the plain one.
pub(super) fn controlled(
    proposal: &Proposal,
    draws: &Draws,
    log_proposal: &[f64],
    weights: &[f64],
) -> Result<(f64, f64)> {
    let points = draws.straight();
    let (d, n) = (points.dim(), weights.len());
    let plain = weights.iter().sum::<f64>() / n as f64;
    let plain_error = between_shifts(weights, plain);
    let most = CONTROLS.min(n / 20);
    let quadratic = coefficients(d);
    let cubic = quadratic + d * (d + 1) * (d + 2) / 6;
    let mut order: Vec<usize> = (0..proposal.components.len()).collect();
    order.sort_by(|&a, &b| proposal.components[b].0.total_cmp(&proposal.components[a].0));
    let mut plans: Vec<(usize, usize)> = Vec::new();
    let mut count = 0;
    for &k in &order {
        let (degree, size) = match most.saturating_sub(count) {
            room if room >= cubic && d <= 4 => (3, cubic),
            room if room >= quadratic => (2, quadratic),
            room if room > d => (1, d + 1),
            0 => break,
            _ => (0, 1),
        };
        plans.push((k, degree));
        count += size;
    }
    if count == 0 {
        return Ok((plain, plain_error));
    }
    // Column 0 is the constant; the others have mean zero.
    let p = count + 1;
    let normals: Vec<(f64, Normal)> = plans.iter().map(|&(k, _)| (1.0, proposal.components[k].1.clone())).collect();
    let densities = log_parts(&normals, points);
    // Densities of straight coordinates per volume of those that are not.
    let log_proposal: Vec<f64> = match draws.stretch() {
        Some(stretch) => log_proposal.iter().zip(stretch).map(|(q, s)| q - s).collect(),
        None => log_proposal.to_vec(),
    };
    let mut rows = vec![1.0; n * p];
    let each = rows.par_chunks_mut(p).zip(points.as_slice().par_chunks(d)).zip(densities.par_chunks(normals.len()));
    each.zip(&log_proposal).for_each_init(
        || vec![0.0; d],
        |z, (((row, x), densities), log_q)| {
            let mut at = 1;
            let mut push = |v: f64| {
                row[at] = v;
                at += 1;
            };
            for ((&(_, degree), (_, normal)), log) in plans.iter().zip(&normals).zip(densities) {
                let ratio = (log - log_q).exp();
                push(ratio - 1.0);
                if degree >= 1 {
                    normal.white_into(x, z);
                    z.iter().for_each(|z| push(ratio * z));
                }
                if degree >= 2 {
                    for a in 0..d {
                        for b in 0..=a {
                            push(ratio * (z[a] * z[b] - if a == b { 1.0 } else { 0.0 }));
                        }
                    }
                }
                if degree >= 3 {
                    for a in 0..d {
                        for b in 0..=a {
                            for c in 0..=b {
                                // The third Hermite polynomial of the normal distribution.
                                let mut h = z[a] * z[b] * z[c];
                                if a == b {
                                    h -= z[c];
                                }
                                if a == c {
                                    h -= z[b];
                                }
                                if b == c {
                                    h -= z[a];
                                }
                                push(ratio * h);
                            }
                        }
                    }
                }
            }
        },
    );
    // A column for each point.
    let flat = Matrix::from_columns(p, rows);
    let gram = mul_transpose(&flat, &flat);
    let right = flat.mul_vec(weights);
    let factor = Factor::new(|| gram.clone(), n as f64, Jitter { nugget: 1e-12, rungs: 6 })?;
    let beta = factor.solve_vec(&right);
    let residual: Vec<f64> = weights.iter().enumerate().map(|(i, w)| w - dot(flat.col(i), &beta)).collect();
    let error = between_shifts(&residual, 0.0);
    // The mean of the fitted part is its constant.
    if beta[0] > 0.0 && error <= plain_error { Ok((beta[0], error)) } else { Ok((plain, plain_error)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mixture that is drawn from exactly, and what it integrates.
    fn proposal() -> (Proposal, Draws, Vec<f64>) {
        let unit = vec![1.0, 0.0, 0.0, 1.0];
        let prior = Normal::new(vec![0.0, 0.0], vec![3.0, 0.0, 0.0, 3.0]);
        let near = Normal::new(vec![0.5, 0.0], unit);
        let far = Normal::with_covariance(vec![2.0, 2.0], &[0.5, 0.2, 0.2, 0.5]).unwrap();
        let q = Proposal::new(vec![(0.7, near), (0.3, far)], &prior, None).rounded(1024);
        let points = q.draw(1024, SHIFTS, 7, 0).unwrap();
        let logs = q.log_densities(&points);
        (q, points, logs)
    }

    #[test]
    fn controls_integrate_what_they_are_made_of_without_error() {
        let (q, points, logs) = proposal();
        // A normal density a little beside a component is nearly a combination of its derivatives.
        let target = Normal::with_covariance(vec![0.55, 0.02], &[1.05, 0.03, 0.03, 0.97]).unwrap();
        let weights: Vec<f64> =
            points.points.rows().zip(&logs).map(|(x, l)| 2.5 * (target.log_density(x) - l).exp()).collect();
        let (mean, error) = controlled(&q, &points, &logs, &weights).unwrap();
        assert!((mean - 2.5).abs() < 1e-4 && error < 1e-4, "{mean} ± {error}");
        let plain = weights.iter().sum::<f64>() / weights.len() as f64;
        assert!((plain - 2.5).abs() > 3.0 * (mean - 2.5).abs());
    }

    #[test]
    fn the_stated_error_is_about_the_real_one() {
        let (q, points, logs) = proposal();
        // A bent density, which no combination of the controls is: its integral over all is √(2π·0.3)·√(2π·0.5).
        let log_f = |x: &[f64]| -0.5 * (x[0] * x[0] / 0.5 + (x[1] - x[0] * x[0]).powi(2) / 0.3);
        let truth = std::f64::consts::TAU * 0.15_f64.sqrt();
        let weights: Vec<f64> = points.points.rows().zip(&logs).map(|(x, l)| (log_f(x) - l).exp()).collect();
        let (mean, error) = controlled(&q, &points, &logs, &weights).unwrap();
        assert!((mean - truth).abs() < 4.0 * error && error < 0.01 * truth, "{mean} ± {error}, {truth}");
    }
}
