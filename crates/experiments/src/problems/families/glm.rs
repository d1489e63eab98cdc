//! Regressions whose responses are counted: yes or no, or how many.

use anyhow::{Context, Result};

use super::{
    super::{normal_prior, real::log_sigmoid},
    DRAWS, Dice, Draft, Truth, around,
    dice::{dot, log_factorial},
};
use crate::dense::Cholesky;

/// An intercept and correlated regressors of unit variance.
pub fn design(dice: &mut Dice, rows: usize, dim: usize) -> Result<Vec<Vec<f64>>> {
    if dim == 1 {
        return Ok(vec![vec![1.0]; rows]);
    }
    let (_, factor) = dice.covariance(&vec![1.0; dim - 1], 8.0).context("regressors without a covariance")?;
    let row = |_| std::iter::once(1.0).chain(factor.multiply(&dice.normals(dim - 1))).collect();
    Ok((0..rows).map(row).collect())
}

/// The standard deviations of the posterior under a flat prior: of the inverse of `Σ w xxᵀ`.
pub fn posterior_sds(rows: &[Vec<f64>], weights: &[f64]) -> Result<Vec<f64>> {
    let d = rows.first().map_or(0, Vec::len);
    let entry = |i: usize, j: usize| rows.iter().zip(weights).map(|(x, w)| w * x[i] * x[j]).sum();
    let inverse = Cholesky::new(d, entry).context("regressors that are not independent")?.inverse();
    Ok((0..d).map(|i| inverse[i * d + i].sqrt()).collect())
}

/// A regression by the log-probability of a response given the linear predictor, its Fisher information and its draws.
struct Link {
    log_probability: fn(f64, f64) -> f64,
    information: fn(f64) -> f64,
    draw: fn(&mut Dice, f64) -> f64,
}

/// `log p = Σ log p(yᵢ | xᵢ·b)` with independent normal priors.
fn regression(dice: &mut Dice, rows: usize, truth: Vec<f64>, link: Link) -> Result<Draft> {
    let x = design(dice, rows, truth.len())?;
    let predictors: Vec<f64> = x.iter().map(|x| dot(x, &truth)).collect();
    let y: Vec<f64> = predictors.iter().map(|eta| (link.draw)(dice, *eta)).collect();
    let sds = posterior_sds(&x, &predictors.iter().map(|eta| (link.information)(*eta)).collect::<Vec<_>>())?;
    let prior = normal_prior(&around(dice, &truth, &sds))?;
    let log_likelihood =
        move |b: &[f64]| x.iter().zip(&y).map(|(x, y)| (link.log_probability)(*y, dot(x, b))).sum::<f64>();
    Ok(Draft { prior, log_likelihood: Box::new(log_likelihood), truth: Truth::Sampled(DRAWS), places: vec![truth] })
}

/// The true intercept and slopes.
fn coefficients(dice: &mut Dice, dim: usize, intercept: (f64, f64), slope: f64) -> Vec<f64> {
    let first = dice.uniform(intercept.0, intercept.1);
    std::iter::once(first).chain((1..dim).map(|_| slope * dice.normal())).collect()
}

fn sigmoid(eta: f64) -> f64 {
    1.0 / (1.0 + (-eta).exp())
}

/// `P(y = 1) = 1/(1 + e⁻ᵑ)`.
pub fn logistic(dice: &mut Dice) -> Result<Draft> {
    let (dim, rows) = (dice.whole(3, 6), dice.whole(40, 200));
    let truth = coefficients(dice, dim, (-1.0, 1.0), 0.8);
    let link = Link {
        log_probability: |y, eta| log_sigmoid(if y > 0.5 { eta } else { -eta }),
        information: |eta| sigmoid(eta) * sigmoid(-eta),
        draw: |dice, eta| f64::from(u8::from(dice.happens(sigmoid(eta)))),
    };
    regression(dice, rows, truth, link)
}

/// `y ~ Poisson(eᵑ)`.
pub fn poisson(dice: &mut Dice) -> Result<Draft> {
    let (dim, rows) = (dice.whole(2, 5), dice.whole(20, 120));
    let truth = coefficients(dice, dim, (0.0, 2.0), 0.4);
    let link = Link {
        log_probability: |y, eta| y * eta - eta.exp() - log_factorial(y),
        information: f64::exp,
        draw: |dice, eta| dice.poisson(eta.exp()),
    };
    regression(dice, rows, truth, link)
}

/// `log (1 − exp(−eᵑ))`; far to the left that is η itself.
fn log_event(eta: f64) -> f64 {
    if eta < -30.0 { eta } else { (-(-eta.exp()).exp_m1()).ln() }
}

/// `P(y = 1) = 1 − exp(−eᵑ)`, which leaves 0 slowly and reaches 1 fast.
pub fn log_log(dice: &mut Dice) -> Result<Draft> {
    let (dim, rows) = (dice.whole(2, 5), dice.whole(40, 200));
    let truth = coefficients(dice, dim, (-1.2, 0.5), 0.6);
    let link = Link {
        log_probability: |y, eta| if y > 0.5 { log_event(eta) } else { -eta.exp() },
        // (dp/dη)²/(p(1 − p)) with dp/dη = eᵑ(1 − p).
        information: |eta| (2.0 * eta - eta.exp() - log_event(eta)).exp(),
        draw: |dice, eta| f64::from(u8::from(dice.happens(log_event(eta).exp()))),
    };
    regression(dice, rows, truth, link)
}
