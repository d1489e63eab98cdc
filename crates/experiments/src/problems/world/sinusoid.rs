//! A sinusoid of unknown period, seen about once a day.

use std::f64::consts::TAU;

use anyhow::Result;
use batchquad::prior::{Distribution, Prior};

use super::{super::real::numbers, Parts};
use crate::grid::log_sum_exp;

/// The standard deviation of the amplitudes' priors.
const AMPLITUDE_SD: f64 = 2.0;

/// The ends of the log-uniform prior of the period, in days.
const PERIODS: (f64, f64) = (1.1, 40.0);

/// Periods on a logarithmic grid, about 90 to the width of the highest mode; half as many change log Z by less than 1e-10.
const NODES: usize = 20_000;

/// `y ~ N(p sin(2πt/P) + q cos(2πt/P), 1)`. For one period the amplitudes have a closed form: with `W` the two waves and
/// `A = WWᵀ + I/s²`, `log Z(P) = −½ (yᵀy − yᵀWᵀA⁻¹Wy + n log 2π + log |s²A|)`. One cycle a day minus the frequency fits nearly as well
/// as the frequency itself.
pub fn sinusoid() -> Result<Parts> {
    let rows = numbers::<2>(include_str!("../../../data/sinusoid.csv"))?;
    let constant = rows.len() as f64 * TAU.ln();
    let of_period = |period: f64| {
        let ridge = AMPLITUDE_SD.powi(-2);
        let (mut a, mut b, mut c, mut f, mut g, mut square) = (ridge, 0.0, ridge, 0.0, 0.0, 0.0);
        for [t, y] in &rows {
            let (sin, cos) = (TAU * t / period).sin_cos();
            a += sin * sin;
            b += sin * cos;
            c += cos * cos;
            f += sin * y;
            g += cos * y;
            square += y * y;
        }
        let det = a * c - b * b;
        let explained = (c * f * f - 2.0 * b * f * g + a * g * g) / det;
        -0.5 * (square - explained + constant + (det * AMPLITUDE_SD.powi(4)).ln())
    };
    let (low, high) = PERIODS;
    let period = |i: usize| low * ((high / low).ln() * (i as f64 + 0.5) / NODES as f64).exp();
    let logs: Vec<f64> = (0..NODES).map(|i| of_period(period(i))).collect();
    let log_z = log_sum_exp(logs.into_iter()) - (NODES as f64).ln();
    let amplitude = Distribution::normal(0.0, AMPLITUDE_SD)?;
    let prior = Prior::independent([
        ("sin", amplitude),
        ("cos", amplitude),
        ("period", Distribution::log_uniform(low, high)?),
    ])?;
    let log_likelihood = move |theta: &[f64]| {
        let residual = |[t, y]: &[f64; 2]| {
            let (sin, cos) = (TAU * t / theta[2]).sin_cos();
            y - theta[0] * sin - theta[1] * cos
        };
        -0.5 * (rows.iter().map(|row| residual(row).powi(2)).sum::<f64>() + constant)
    };
    Ok((prior, Box::new(log_likelihood), log_z))
}
