//! Densities on the surfaces of spheres.

use std::f64::consts::{PI, TAU};

use anyhow::Result;
use batchquad::prior::Distribution;

use super::{super::zoo::log_normal, Dice, Draft, Truth, prior_of, shapes::Frame};
use crate::{dense::square_distance, grid::log_sum_exp};

/// `N(|z − centre|; radius, width²)` with a share.
struct Shell {
    log_share: f64,
    centre: Vec<f64>,
    radius: f64,
    width: f64,
}

impl Shell {
    fn at(&self, z: &[f64]) -> f64 {
        self.log_share + log_normal(square_distance(z, &self.centre).sqrt(), self.radius, self.width.powi(2))
    }

    /// The volume under the density: the surface `2πr` or `4πr²` around the radius, whose mean square is `r² + w²`. Radii are five
    /// widths and more, so what is missing within the centre is below 1e-6.
    fn log_volume(&self) -> f64 {
        let (r, w) = (self.radius, self.width);
        if self.centre.len() == 2 { (TAU * r).ln() } else { (4.0 * PI * (r * r + w * w)).ln() }
    }

    /// `∫ N(ρ; r, w²) ρᵈ⁻¹ ∫ N(c + ρn; 0, I) dn dρ`, over directions `n` and radii within eight widths.
    fn log_under_normal(&self) -> f64 {
        let (d, far) = (self.centre.len() as i32, square_distance(&self.centre, &vec![0.0; self.centre.len()]).sqrt());
        let step = self.width / 20.0;
        let at = |i: i32| {
            let rho = self.radius + f64::from(i) * step;
            if rho <= 0.0 {
                return f64::NEG_INFINITY;
            }
            let t = far * rho;
            // Means over directions of exp(−c·ρn): I₀(t) by the trapezoidal rule, sinh(t)/t.
            let (surface, mean) = if d == 2 {
                let all: f64 = (0..64).map(|k| (t * (TAU * f64::from(k) / 64.0).cos()).exp()).sum();
                (TAU, all / 64.0)
            } else {
                (4.0 * PI, if t < 1e-4 { 1.0 + t * t / 6.0 } else { t.sinh() / t })
            };
            let radial = log_normal(rho, self.radius, self.width.powi(2)) + f64::from(d - 1) * rho.ln();
            radial + surface.ln() + mean.ln() - 0.5 * (far * far + rho * rho + f64::from(d) * TAU.ln())
        };
        log_sum_exp((-160..=160).map(at).collect::<Vec<_>>().into_iter()) + step.ln()
    }

    /// Points on it, two for each coordinate.
    fn places(&self) -> Vec<Vec<f64>> {
        let mut all = Vec::new();
        for i in 0..self.centre.len() {
            for side in [-1.0, 1.0] {
                let mut z = self.centre.clone();
                z[i] += side * self.radius;
                all.push(z);
            }
        }
        all
    }
}

fn shells(all: &[Shell], z: &[f64]) -> f64 {
    log_sum_exp(all.iter().map(|s| s.at(z)))
}

/// Under a normal prior, or, if the member is odd, within a uniform one, six widths from its ends.
pub fn shell(dice: &mut Dice) -> Result<Draft> {
    let (dim, count) = (dice.whole(2, 3), dice.whole(1, 2));
    let shares: Vec<f64> = dice.shares(count);
    let offset = -dice.uniform(0.0, 20.0);
    if dice.even {
        let frame = Frame::new(dice, dim);
        let mut all = Vec::new();
        for share in shares {
            let centre = dice.normals(dim).iter().map(|v| 0.6 * v).collect();
            let radius = dice.uniform(0.7, 1.8);
            all.push(Shell {
                log_share: offset + share.ln(),
                centre,
                radius,
                width: radius * dice.log_uniform(0.06, 0.2),
            });
        }
        let log_z = log_sum_exp(all.iter().map(|s| s.log_share + s.log_under_normal()));
        let places: Vec<Vec<f64>> = all.iter().flat_map(Shell::places).collect();
        return frame.draft(move |z| shells(&all, z), log_z, &places);
    }
    let mut all = Vec::new();
    for share in shares {
        let radius = dice.uniform(0.1, 0.2);
        let width = radius * dice.log_uniform(0.06, 0.2);
        let edge = radius + 6.0 * width;
        let centre = (0..dim).map(|_| dice.uniform(edge, 1.0 - edge)).collect();
        all.push(Shell { log_share: offset + share.ln(), centre, radius, width });
    }
    let log_z = log_sum_exp(all.iter().map(|s| s.log_share + s.log_volume()));
    let (low, length) = (10.0 * dice.normal(), dice.log_uniform(0.5, 50.0));
    let places = all.iter().flat_map(Shell::places).map(|z| z.iter().map(|v| low + length * v).collect()).collect();
    let log_likelihood =
        move |theta: &[f64]| shells(&all, &theta.iter().map(|t| (t - low) / length).collect::<Vec<_>>());
    let prior = prior_of(&vec![Distribution::uniform(low, low + length)?; dim])?;
    Ok(Draft { prior, log_likelihood: Box::new(log_likelihood), truth: Truth::Exact(log_z), places })
}
