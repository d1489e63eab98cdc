//! Shapes with one peak, in coordinates in which the prior is `N(0, I)` and so stays what it is under rotations.

use anyhow::{Context, Result};
use batchquad::numeric::normal::log_cdf;

use super::{
    super::{LogLikelihood, normal_prior, zoo::log_normal},
    Dice, Draft, Truth,
    dice::{dot, log_student},
};
use crate::{
    dense::{Cholesky, log_normal_density},
    grid::{log_integral_1d, log_sum_exp},
};

/// Normal priors of any place and width, and a rotation of what is left of them.
pub struct Frame {
    parameters: Vec<(f64, f64)>,
    axes: Vec<Vec<f64>>,
}

impl Frame {
    /// In so many dimensions.
    pub fn new(dice: &mut Dice, dim: usize) -> Self {
        let parameters = (0..dim).map(|_| (5.0 * dice.normal(), dice.log_uniform(0.2, 20.0))).collect();
        Self { parameters, axes: dice.rotation(dim) }
    }

    /// `z = Rᵀ (θ − m)/s`.
    fn inward(&self, theta: &[f64]) -> Vec<f64> {
        let u: Vec<f64> = theta.iter().zip(&self.parameters).map(|(t, (mean, sd))| (t - mean) / sd).collect();
        self.axes.iter().map(|axis| dot(axis, &u)).collect()
    }

    /// The θ of a `z`.
    fn outward(&self, z: &[f64]) -> Vec<f64> {
        let u = |i: usize| -> f64 { self.axes.iter().zip(z).map(|(axis, z)| axis[i] * z).sum() };
        self.parameters.iter().enumerate().map(|(i, (mean, sd))| mean + sd * u(i)).collect()
    }

    /// The problem whose likelihood is `shape` of `z`.
    pub fn draft(
        self,
        shape: impl Fn(&[f64]) -> f64 + Send + Sync + 'static,
        log_z: f64,
        places: &[Vec<f64>],
    ) -> Result<Draft> {
        let prior = normal_prior(&self.parameters)?;
        let places = places.iter().map(|z| self.outward(z)).collect();
        let log_likelihood: Box<LogLikelihood> = Box::new(move |theta: &[f64]| shape(&self.inward(theta)));
        Ok(Draft { prior, log_likelihood, truth: Truth::Exact(log_z), places })
    }
}

/// One factor of [`skewed`]: at a place, of a width, and how skewed.
struct Skewed {
    place: f64,
    width: f64,
    shape: f64,
    log_gamma: bool,
}

impl Skewed {
    /// With `x = (z − place)/width`: `shape · x − eˣ`, or `log φ(x) + log 2Φ(shape · x)`.
    fn at(&self, z: f64) -> f64 {
        let x = (z - self.place) / self.width;
        if self.log_gamma {
            self.shape * x - x.exp()
        } else {
            log_normal(x, 0.0, 1.0) + std::f64::consts::LN_2 + log_cdf(self.shape * x)
        }
    }
}

/// Products of log-gamma densities with shapes from 1 to 4 and of skew-normal ones with slants from 2 to 6.
pub fn skewed(dice: &mut Dice) -> Result<Draft> {
    let dim = dice.whole(3, 6);
    let frame = Frame::new(dice, dim);
    let width = dice.log_uniform(5.0, 40.0).recip();
    let factors: Vec<Skewed> = (0..dim)
        .map(|_| {
            let log_gamma = dice.happens(0.5);
            let shape = if log_gamma { dice.uniform(1.0, 4.0) } else { dice.sign() * dice.uniform(2.0, 6.0) };
            let place = 0.7 * dice.normal();
            Skewed { place, width: width * dice.uniform(0.7, 1.4), shape, log_gamma }
        })
        .collect();
    // A slant of 6 is a feature of width 1/6: eight nodes to it.
    let log_z = factors.iter().map(|f| log_integral_1d(f.width / 50.0, |z| f.at(z))).sum();
    let top = |f: &Skewed| f.place + f.width * if f.log_gamma { f.shape.ln() } else { 0.3 * f.shape.signum() };
    let places = [factors.iter().map(top).collect()];
    frame.draft(move |z| z.iter().zip(&factors).map(|(z, f)| f.at(*z)).sum(), log_z, &places)
}

/// Widths of a density's coordinates, 1/60 to 1/5 of the prior's and up to twice apart.
fn widths(dice: &mut Dice, dim: usize) -> Vec<f64> {
    let width = dice.log_uniform(5.0, 60.0).recip();
    (0..dim).map(|_| width * dice.uniform(0.7, 1.4)).collect()
}

/// `z − centre`.
fn away(z: &[f64], centre: &[f64]) -> Vec<f64> {
    z.iter().zip(centre).map(|(a, b)| a - b).collect()
}

/// Student's t with scale `A`: normal with `A/g` for `g` gamma distributed around 1, so `Z` is the mean of `N(c; 0, I + A/g)`.
pub fn heavy(dice: &mut Dice) -> Result<Draft> {
    let dim = dice.whole(2, 5);
    let frame = Frame::new(dice, dim);
    let dof = dice.uniform(3.0, 6.0);
    let sds = widths(dice, dim);
    let (scale, factor) = dice.covariance(&sds, 20.0).context("a scale that is not positive")?;
    let centre: Vec<f64> = dice.normals(dim).iter().map(|v| 0.8 * v).collect();
    // Over log g from e⁻³⁰, where the gamma density is below 1e-19 times its peak, to e⁵, where it is below e⁻²⁰⁰.
    let step = 0.02;
    let half = 0.5 * dof;
    let node = |i: i32| {
        let x = f64::from(i) * step;
        let entry = |i: usize, j: usize| scale[i * dim + j] * (-x).exp() + if i == j { 1.0 } else { 0.0 };
        let inner = Cholesky::new(dim, entry).map_or(f64::NEG_INFINITY, |factor| log_normal_density(&factor, &centre));
        inner + half * (half.ln() + x - x.exp()) - libm::lgamma(half)
    };
    let log_z = log_sum_exp((-1500..=250).map(node).collect::<Vec<_>>().into_iter()) + step.ln();
    let places = [centre.clone()];
    let shape = move |z: &[f64]| {
        let white = factor.half_solve(&away(z, &centre));
        log_student(dot(&white, &white), dof, dim, factor.log_det())
    };
    frame.draft(shape, log_z, &places)
}

/// `N(z; c, C)`, whose evidence is `N(c; 0, I + C)`.
pub fn normal(dice: &mut Dice) -> Result<Draft> {
    let dim = dice.whole(3, 8);
    let frame = Frame::new(dice, dim);
    let sds = widths(dice, dim);
    let (covariance, factor) = dice.covariance(&sds, 50.0).context("a covariance that is not positive")?;
    let centre = dice.normals(dim);
    let entry = |i: usize, j: usize| covariance[i * dim + j] + if i == j { 1.0 } else { 0.0 };
    let sum = Cholesky::new(dim, entry).context("a covariance that is not positive")?;
    let log_z = log_normal_density(&sum, &centre);
    let places = [centre.clone()];
    frame.draft(move |z| log_normal_density(&factor, &away(z, &centre)), log_z, &places)
}

/// `N(z₁; a, s²) Π N(zₖ; bₖ + cₖ(z₁ − a)², sₖ²)`; given `z₁`, the others integrate to `N(bₖ + cₖ(z₁ − a)²; 0, 1 + sₖ²)`.
pub fn bent(dice: &mut Dice) -> Result<Draft> {
    let dim = dice.whole(2, 5);
    let frame = Frame::new(dice, dim);
    let (a, s) = (0.5 * dice.normal(), dice.uniform(0.2, 0.7));
    let across: Vec<(f64, f64, f64)> = (1..dim)
        .map(|k| {
            let width = s * dice.log_uniform(0.1, 0.4);
            // The first is bent by 1 to 5 of its widths one width away, the others by as much as none.
            let by = if k == 1 { dice.uniform(1.0, 5.0) } else { dice.uniform(0.0, 1.0) };
            (0.5 * dice.normal(), dice.sign() * by * width / (s * s), width)
        })
        .collect();
    let ridge = move |z: f64, (b, c, _): (f64, f64, f64)| b + c * (z - a).powi(2);
    let given = |z: f64| -> f64 { across.iter().map(|&k| log_normal(ridge(z, k), 0.0, 1.0 + k.2 * k.2)).sum() };
    let log_z = log_integral_1d(0.005, |z| log_normal(z, a, s * s) + given(z));
    let places = [std::iter::once(a).chain(across.iter().map(|k| k.0)).collect()];
    let shape = move |z: &[f64]| {
        let others = z[1..].iter().zip(&across).map(|(v, &k)| log_normal(*v, ridge(z[0], k), k.2 * k.2));
        log_normal(z[0], a, s * s) + others.sum::<f64>()
    };
    frame.draft(shape, log_z, &places)
}

/// `Π N(zₖ; cₖ, w² e^{2kz₁})`; given `z₁`, each integrates to `N(cₖ; 0, 1 + w² e^{2kz₁})`.
pub fn funnel(dice: &mut Dice) -> Result<Draft> {
    let dim = dice.whole(2, 4);
    let frame = Frame::new(dice, dim);
    let (width, growth) = (dice.log_uniform(0.1, 0.5), dice.uniform(0.6, 1.3));
    let centres: Vec<f64> = (1..dim).map(|_| 0.5 * dice.normal()).collect();
    let variance = move |v: f64| width * width * (2.0 * growth * v).exp();
    let given = |v: f64| -> f64 { centres.iter().map(|c| log_normal(*c, 0.0, 1.0 + variance(v))).sum() };
    let log_z = log_integral_1d(0.005, given);
    let places = [std::iter::once(0.0).chain(centres.iter().copied()).collect()];
    let shape =
        move |z: &[f64]| z[1..].iter().zip(&centres).map(|(v, c)| log_normal(*v, *c, variance(z[0]))).sum::<f64>();
    frame.draft(shape, log_z, &places)
}
