//! A sinusoid of unknown period in noise of unit variance, seen at random times.

use std::f64::consts::TAU;

use anyhow::{Context, Result};
use batchquad::prior::Distribution;

use super::{Dice, Draft, Truth, dice::dot, prior_of};
use crate::{dense::Cholesky, grid::log_sum_exp};

/// Periods on a logarithmic grid. A peak's width is 0.002 of a logarithm at the shortest period, ten times the step.
const NODES: usize = 40_000;

/// `y ~ N(p sin ωt + q cos ωt [+ level], 1)` with `p, q ~ N(0, s²)` and a log-uniform period. The parameters are p and q or, if the
/// member is odd, the power `p² + q²`, which is exponential, and the phase, which is uniform; then the period and in half of the
/// members the level. With `W` the waves, `S` their prior variances and `A = WᵀW + S⁻¹`, one period has
/// `log Z = −½ (yᵀy − yᵀWA⁻¹Wᵀy + n log 2π + log |SA|)`.
pub fn signal(dice: &mut Dice) -> Result<Draft> {
    let levelled = dice.happens(0.5);
    let rows = dice.whole(20, 40);
    let end = dice.uniform(15.0, 40.0);
    let times = dice.times(rows, end);
    let sd = dice.log_uniform(1.0, 3.0);
    let (short, long) = (dice.uniform(0.8, 1.5), dice.uniform(20.0, 40.0));
    let period = dice.log_uniform(1.2 * short, 0.5 * long);
    let (amplitude, phase) = (dice.uniform(1.0, 2.5), dice.uniform(0.0, TAU));
    let (p, q) = (amplitude * phase.cos(), amplitude * phase.sin());
    let level_sd = 3.0;
    let level = if levelled { dice.normal() } else { 0.0 };
    let y: Vec<f64> = times
        .iter()
        .map(|t| {
            let (sin, cos) = (TAU * t / period).sin_cos();
            p * sin + q * cos + level + dice.normal()
        })
        .collect();
    let dim = if levelled { 3 } else { 2 };
    let variances = [sd * sd, sd * sd, level_sd * level_sd];
    let constant = dot(&y, &y) + rows as f64 * TAU.ln() + variances[..dim].iter().map(|v| v.ln()).sum::<f64>();
    let of_period = |period: f64| {
        let mut inner = [[0.0; 3]; 3];
        let mut seen = [0.0; 3];
        for (t, y) in times.iter().zip(&y) {
            let (sin, cos) = (TAU * t / period).sin_cos();
            let wave = [sin, cos, 1.0];
            for i in 0..3 {
                seen[i] += wave[i] * y;
                for j in 0..=i {
                    inner[i][j] += wave[i] * wave[j];
                }
            }
        }
        let factor = Cholesky::new(dim, |i, j| inner[i][j] + if i == j { variances[i].recip() } else { 0.0 })?;
        let explained = factor.half_solve(&seen[..dim]);
        Some(-0.5 * (constant - dot(&explained, &explained) + factor.log_det()))
    };
    let node = |i: usize| of_period(short * ((long / short).ln() * (i as f64 + 0.5) / NODES as f64).exp());
    let logs = (0..NODES).map(node).collect::<Option<Vec<f64>>>().context("waves that are not independent")?;
    let log_z = log_sum_exp(logs.into_iter()) - (NODES as f64).ln();
    let own = if dice.even {
        [Distribution::normal(0.0, sd)?; 2]
    } else {
        [Distribution::exponential(0.5 / (sd * sd))?, Distribution::uniform(0.0, TAU)?.periodic()?]
    };
    let mut parameters = own.to_vec();
    parameters.push(Distribution::log_uniform(short, long)?);
    let mut place = if dice.even { vec![p, q, period] } else { vec![amplitude * amplitude, phase, period] };
    if levelled {
        parameters.push(Distribution::normal(0.0, level_sd)?);
        place.push(level);
    }
    let cartesian = dice.even;
    let square = rows as f64 * TAU.ln();
    let log_likelihood = move |theta: &[f64]| {
        let (p, q) = if cartesian {
            (theta[0], theta[1])
        } else {
            (theta[0].sqrt() * theta[1].cos(), theta[0].sqrt() * theta[1].sin())
        };
        let level = if levelled { theta[3] } else { 0.0 };
        let residual = |(t, y): (&f64, &f64)| {
            let (sin, cos) = (TAU * t / theta[2]).sin_cos();
            y - p * sin - q * cos - level
        };
        -0.5 * (times.iter().zip(&y).map(|row| residual(row).powi(2)).sum::<f64>() + square)
    };
    let prior = prior_of(&parameters)?;
    Ok(Draft { prior, log_likelihood: Box::new(log_likelihood), truth: Truth::Exact(log_z), places: vec![place] })
}
