//! Where to look before anything is known, and where to look when the model cannot say: [`MATH.md` §12](crate::math).
//!
//! All points are in latent coordinates `u ~ N(0, I)` ([`MATH.md` §1](crate::math)).

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    numeric::quantile::normal_quantile,
    numeric::rng::{Purpose, Stream},
    numeric::sobol::SobolSequence,
    points::Points,
};

/// How the first nodes are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitialDesign {
    /// Scrambled Sobol points carried to `N(0, I)` by the normal quantile: they cover the prior evenly.
    #[default]
    Sobol,
    /// Independent draws from the prior.
    Draws,
}

impl InitialDesign {
    /// `n` latent points in `dim` dimensions, a function of `seed` alone. A larger design begins with the smaller one.
    ///
    /// # Errors
    /// [`Error::Invalid`] for `dim == 0` or `n == 0`, for Sobol points in more than [`SobolSequence::MAX_DIM`]
    /// dimensions, and for sizes beyond 2³² points or beyond the memory.
    pub fn latent(self, dim: usize, n: usize, seed: u64) -> Result<Points> {
        if dim == 0 {
            return Err(Error::invalid("dimension of the initial design", dim, "at least 1"));
        }
        if n == 0 {
            return Err(Error::invalid("size of the initial design", n, "at least 1"));
        }
        match self {
            Self::Sobol => {
                let sobol = SobolSequence::new(dim, seed)?;
                collect(dim, n, |i| latent_point(&sobol, i))
            }
            Self::Draws => collect(dim, n, |i| Stream::new(seed, Purpose::Design, u64::from(i)).normals(dim)),
        }
    }
}

/// How many Sobol points are looked at for one place in [`space_filling`].
const CANDIDATES: u32 = 64;

/// The next `n` latent Sobol points from index `offset` on that stay `min_distance` away from `avoid` and from each
/// other.
///
/// The sequence is the one that [`InitialDesign::Sobol`] takes its points from. When none of 64 points in a row keeps
/// the distance, it is halved until the farthest of them does, which is then taken; so `n` points always come back,
/// after looking at no more than `64 n`. Past index 2³² − 1 the sequence begins again.
///
/// Costs at most `64 n (|avoid| + n)` distances.
///
/// # Errors
/// [`Error::Length`] when `avoid` has another dimension, [`Error::Invalid`] for a negative or non-finite distance, for
/// a dimension that [`SobolSequence`] does not have and for an `n` beyond 2³² or beyond the memory.
pub fn space_filling(
    dim: usize,
    n: usize,
    seed: u64,
    offset: u32,
    avoid: &Points,
    min_distance: f64,
) -> Result<Points> {
    let sobol = SobolSequence::new(dim, seed)?;
    if avoid.dim() != dim {
        return Err(Error::length("points to avoid", dim, avoid.dim()));
    }
    if !(min_distance.is_finite() && min_distance >= 0.0) {
        return Err(Error::invalid("minimal distance", min_distance, "a finite number ≥ 0"));
    }
    let mut chosen: Vec<f64> = room_for(n, dim, "number of space-filling points")?;
    let mut distance = min_distance;
    let mut index = offset;
    for _ in 0..n {
        let mut best: Option<(f64, Vec<f64>)> = None;
        for _ in 0..CANDIDATES {
            let candidate = latent_point(&sobol, index);
            index = index.wrapping_add(1);
            let clearance = avoid
                .rows()
                .chain(chosen.chunks_exact(dim))
                .map(|other| euclidean(&candidate, other))
                .fold(f64::INFINITY, f64::min);
            if best.as_ref().is_none_or(|(farthest, _)| clearance > *farthest) {
                best = Some((clearance, candidate));
            }
            if clearance >= distance {
                break;
            }
        }
        if let Some((clearance, point)) = best {
            while clearance < distance {
                distance *= 0.5;
            }
            chosen.extend(point);
        }
    }
    Points::new(dim, chosen)
}

/// Points 0 to `n − 1`.
fn collect(dim: usize, n: usize, point: impl Fn(u32) -> Vec<f64>) -> Result<Points> {
    let mut coordinates = room_for(n, dim, "size of the initial design")?;
    (0..=u32::MAX).take(n).for_each(|i| coordinates.extend(point(i)));
    Points::new(dim, coordinates)
}

/// Sobol point `index` carried to `N(0, I)`.
fn latent_point(sobol: &SobolSequence, index: u32) -> Vec<f64> {
    let mut point = sobol.point(index);
    point.iter_mut().for_each(|p| *p = normal_quantile(*p));
    point
}

fn euclidean(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// An empty vector with room for `n` points, so that an absurd size is an error and not the end of the process.
fn room_for(n: usize, dim: usize, what: &str) -> Result<Vec<f64>> {
    let too_many = || {
        let what = format!("{what} in {dim} dimensions");
        Error::invalid(what, n, "at most 2³² points, and no more than fit in memory")
    };
    let mut coordinates = Vec::new();
    let length = n.checked_mul(dim).filter(|_| (n as u64) <= 1 << 32).ok_or_else(too_many)?;
    coordinates.try_reserve_exact(length).map_err(|_| too_many())?;
    Ok(coordinates)
}
