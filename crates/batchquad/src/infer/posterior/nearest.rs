//! Which part of the prior is nearest to which points.

use crate::{choose::design::InitialDesign, error::Result, points::Points};

/// The share of the prior that lies nearer to one of `these` latent points than to any of `others`: what is known only
/// by guessing when `these` failed and `others` have values. From `n` scrambled Sobol points; cost `n` times the number
/// of points.
///
/// # Errors
/// [`crate::Error::Length`] for points of different dimensions, [`crate::Error::Invalid`] for `n = 0`.
pub fn mass_nearest(these: &Points, others: &Points, n: usize, seed: u64) -> Result<f64> {
    these.require_dim("other points", others.dim())?;
    let nearest = |u: &[f64], points: &Points| {
        let square = |x: &[f64]| x.iter().zip(u).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        points.rows().map(square).fold(f64::INFINITY, f64::min)
    };
    let draws = InitialDesign::Sobol.latent(these.dim(), n, seed)?;
    let near = draws.rows().filter(|u| nearest(u, these) < nearest(u, others)).count();
    Ok(near as f64 / n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mass_near_failures_is_their_share_of_the_prior() {
        let one = Points::new(1, vec![1.0]).unwrap();
        let other = Points::new(1, vec![-1.0]).unwrap();
        let half = mass_nearest(&one, &other, 1024, 3).unwrap();
        assert!((half - 0.5).abs() < 0.01, "{half}");
        let none = mass_nearest(&Points::new(1, vec![]).unwrap(), &other, 64, 3).unwrap();
        assert_eq!(none, 0.0);
    }
}
