//! Mixtures of normal densities, far apart or not.

use anyhow::{Context, Result, ensure};
use batchquad::{numeric::normal::cdf, prior::Distribution};

use super::{Dice, Draft, Truth, prior_of, shapes::Frame};
use crate::{
    dense::{Cholesky, log_normal_density, square_distance},
    grid::log_sum_exp,
};

/// A normal density with its share.
struct Component {
    log_share: f64,
    centre: Vec<f64>,
    covariance: Vec<f64>,
    factor: Cholesky,
}

impl Component {
    fn at(&self, z: &[f64]) -> f64 {
        let away: Vec<f64> = z.iter().zip(&self.centre).map(|(a, b)| a - b).collect();
        self.log_share + log_normal_density(&self.factor, &away)
    }

    /// `log ∫ N(z; centre, C) N(z; 0, I) dz = log N(centre; 0, I + C)`.
    fn under_normal(&self) -> Option<f64> {
        let d = self.centre.len();
        let entry = |i: usize, j: usize| self.covariance[i * d + j] + if i == j { 1.0 } else { 0.0 };
        Some(log_normal_density(&Cholesky::new(d, entry)?, &self.centre))
    }

    /// The mass within the unit cube; the covariance is diagonal.
    fn within_cube(&self) -> f64 {
        let d = self.centre.len();
        let side = |i: usize| {
            let (c, s) = (self.centre[i], self.covariance[i * d + i].sqrt());
            (cdf((1.0 - c) / s) - cdf(-c / s)).ln()
        };
        (0..d).map(side).sum()
    }
}

fn mixture(components: &[Component], z: &[f64]) -> f64 {
    log_sum_exp(components.iter().map(|c| c.at(z)))
}

/// Centres that are further apart than `apart` of the sums of their widths; `draw` proposes one.
fn far_apart(
    dice: &mut Dice,
    widths: &[f64],
    apart: f64,
    draw: impl Fn(&mut Dice) -> Vec<f64>,
) -> Result<Vec<Vec<f64>>> {
    let mut centres: Vec<Vec<f64>> = Vec::new();
    for _ in 0..1000 {
        if centres.len() == widths.len() {
            break;
        }
        let (next, width) = (draw(dice), widths[centres.len()]);
        let clear = |(c, w): (&Vec<f64>, &f64)| square_distance(c, &next).sqrt() > apart * (w + width);
        if centres.iter().zip(widths).all(clear) {
            centres.push(next);
        }
    }
    ensure!(centres.len() == widths.len(), "no room for {} peaks", widths.len());
    Ok(centres)
}

/// How many sums of their widths separate peaks that are far apart.
const APART: f64 = 5.0;

/// Peaks far apart: under a normal prior with correlations, or, if the member is odd, under a uniform one without.
fn separate(dice: &mut Dice, count: usize) -> Result<Draft> {
    let dim = dice.whole(2, 4);
    let shares = dice.shares(count);
    let offset = -dice.uniform(0.0, 20.0);
    if dice.even {
        let frame = Frame::new(dice, dim);
        let widths: Vec<f64> = (0..count).map(|_| dice.log_uniform(0.04, 0.2)).collect();
        let centres = far_apart(dice, &widths, APART, |dice| dice.normals(dim))?;
        let log_z = offset;
        let mut components = Vec::new();
        for ((centre, width), share) in centres.into_iter().zip(widths).zip(shares) {
            let sds: Vec<f64> = (0..dim).map(|_| width * dice.uniform(0.6, 1.0)).collect();
            let (covariance, factor) = dice.covariance(&sds, 10.0).context("a covariance that is not positive")?;
            let mut component = Component { log_share: log_z + share.ln(), centre, covariance, factor };
            // The shares are those of the posterior, wherever in the prior a peak is.
            component.log_share -= component.under_normal().context("a covariance that is not positive")?;
            components.push(component);
        }
        let places: Vec<Vec<f64>> = components.iter().map(|c| c.centre.clone()).collect();
        return frame.draft(move |z| mixture(&components, z), log_z, &places);
    }
    let widths: Vec<f64> = (0..count).map(|_| dice.log_uniform(0.01, 0.05)).collect();
    let centres = far_apart(dice, &widths, APART, |dice| (0..dim).map(|_| dice.uniform(0.1, 0.9)).collect::<Vec<_>>())?;
    let mut components = Vec::new();
    for ((centre, width), share) in centres.into_iter().zip(widths).zip(shares) {
        let sds: Vec<f64> = (0..dim).map(|_| width * dice.uniform(0.6, 1.0)).collect();
        let covariance: Vec<f64> =
            (0..dim * dim).map(|n| if n / dim == n % dim { sds[n / dim].powi(2) } else { 0.0 }).collect();
        let factor = Cholesky::new(dim, |i, j| covariance[i * dim + j]).context("a width of zero")?;
        components.push(Component { log_share: offset + share.ln(), centre, covariance, factor });
    }
    let log_z = log_sum_exp(components.iter().map(|c| c.log_share + c.within_cube()));
    let ends: Vec<(f64, f64)> = (0..dim).map(|_| (10.0 * dice.normal(), dice.log_uniform(0.5, 50.0))).collect();
    let uniform: Vec<Distribution> =
        ends.iter().map(|(low, length)| Ok(Distribution::uniform(*low, low + length)?)).collect::<Result<_>>()?;
    let outward = |z: &Vec<f64>| z.iter().zip(&ends).map(|(z, (low, length))| low + length * z).collect();
    let places = components.iter().map(|c| outward(&c.centre)).collect();
    let log_likelihood = move |theta: &[f64]| {
        let z: Vec<f64> = theta.iter().zip(&ends).map(|(t, (low, length))| (t - low) / length).collect();
        mixture(&components, &z)
    };
    let prior = prior_of(&uniform)?;
    Ok(Draft { prior, log_likelihood: Box::new(log_likelihood), truth: Truth::Exact(log_z), places })
}

/// Two peaks.
pub fn two(dice: &mut Dice) -> Result<Draft> {
    separate(dice, 2)
}

/// Three to five.
pub fn several(dice: &mut Dice) -> Result<Draft> {
    let count = dice.whole(3, 5);
    separate(dice, count)
}

/// Centres half a prior width around the middle, widths 0.2 to 0.6, random correlations.
pub fn overlapping(dice: &mut Dice) -> Result<Draft> {
    let (dim, count) = (dice.whole(3, 5), dice.whole(5, 12));
    let frame = Frame::new(dice, dim);
    let mut components = Vec::new();
    for share in dice.shares(count) {
        let centre: Vec<f64> = dice.normals(dim).iter().map(|v| 0.5 * v).collect();
        let sds: Vec<f64> = (0..dim).map(|_| dice.log_uniform(0.2, 0.6)).collect();
        let (covariance, factor) = dice.covariance(&sds, 10.0).context("a covariance that is not positive")?;
        components.push(Component { log_share: share.ln(), centre, covariance, factor });
    }
    let mut each = Vec::new();
    for component in &components {
        each.push(component.log_share + component.under_normal().context("a covariance that is not positive")?);
    }
    let places: Vec<Vec<f64>> = components.iter().map(|c| c.centre.clone()).collect();
    frame.draft(move |z| mixture(&components, z), log_sum_exp(each.into_iter()), &places)
}
