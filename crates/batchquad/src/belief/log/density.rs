//! Densities of mixtures of normal distributions at many points at once. `MATH.md` §15.

use std::convert::Infallible;

use pulp::{Arch, Simd, WithSimd};

use super::proposal::Normal;
use crate::{
    numeric::{
        parallel::pieces,
        simd::{exp, fma},
    },
    points::Points,
};

/// Points that take each step together.
const LANES: usize = 16;

/// Points per piece of parallel work: whole lanes, so that the pieces do not depend on who computes them.
const PIECE: usize = 16 * LANES;

/// `log Σₖ pₖ N(x; μₖ, Σₖ)` at each point. Cost per point: `d²/2` for every component.
pub(crate) fn log_densities(mixture: &[(f64, Normal)], points: &Points) -> Vec<f64> {
    logs(mixture, points, true)
}

/// `log pₖ + log N(x; μₖ, Σₖ)` at each point, all components of a point together.
pub(crate) fn log_parts(mixture: &[(f64, Normal)], points: &Points) -> Vec<f64> {
    logs(mixture, points, false)
}

fn logs(mixture: &[(f64, Normal)], points: &Points, sum: bool) -> Vec<f64> {
    let dim = points.dim();
    let piece = |chunk: &[f64]| -> Result<Vec<f64>, Infallible> {
        Ok(Arch::new().dispatch(Piece { mixture, points: chunk, dim, sum }))
    };
    let cost = points.len() * mixture.len() * (2 + dim * dim / 4);
    let Ok(all) = pieces(points.as_slice(), PIECE * dim, cost, piece);
    all
}

struct Piece<'a> {
    mixture: &'a [(f64, Normal)],
    /// Row by row.
    points: &'a [f64],
    dim: usize,
    /// Whether the components are summed.
    sum: bool,
}

impl WithSimd for Piece<'_> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Vec<f64> {
        let Self { mixture, points, dim: d, sum } = self;
        let mut out = Vec::with_capacity(points.len() / d * if sum { 1 } else { mixture.len() });
        let (mut x, mut z) = (vec![[0.0; LANES]; d], vec![[0.0; LANES]; d]);
        let mut logs = vec![[0.0; LANES]; mixture.len()];
        let constants: Vec<f64> = mixture.iter().map(|(share, normal)| share.ln() + normal.log_norm()).collect();
        for chunk in points.chunks(LANES * d) {
            let count = chunk.len() / d;
            for (k, row) in chunk.chunks_exact(d).enumerate() {
                for (x, v) in x.iter_mut().zip(row) {
                    x[k] = *v;
                }
            }
            for ((log, constant), (_, normal)) in logs.iter_mut().zip(&constants).zip(mixture) {
                let mut squares = [0.0; LANES];
                for a in 0..d {
                    let row = normal.row(a);
                    let mut v = [0.0; LANES];
                    for k in 0..LANES {
                        v[k] = x[a][k] - normal.mean[a];
                    }
                    for c in 0..a {
                        for k in 0..LANES {
                            v[k] = fma::<S>(-row[c], z[c][k], v[k]);
                        }
                    }
                    let scale = row[a].recip();
                    for k in 0..LANES {
                        v[k] *= scale;
                        squares[k] = fma::<S>(v[k], v[k], squares[k]);
                    }
                    z[a] = v;
                }
                for k in 0..LANES {
                    log[k] = fma::<S>(-0.5, squares[k], *constant);
                }
            }
            if !sum {
                out.extend((0..count).flat_map(|k| logs.iter().map(move |log| log[k])));
                continue;
            }
            let mut largest = [f64::NEG_INFINITY; LANES];
            for log in &logs {
                for k in 0..LANES {
                    largest[k] = if log[k] > largest[k] { log[k] } else { largest[k] };
                }
            }
            let mut total = [0.0; LANES];
            for log in &logs {
                let mut term = [0.0; LANES];
                for k in 0..LANES {
                    term[k] = log[k] - largest[k];
                }
                exp::<S, LANES>(&mut term);
                for k in 0..LANES {
                    total[k] += term[k];
                }
            }
            out.extend((0..count).map(
                |k| {
                    if largest[k].is_finite() { largest[k] + total[k].ln() } else { largest[k] }
                },
            ));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::log_sum::log_sum_exp;

    #[test]
    fn densities_are_those_of_single_points() {
        let near =
            Normal::with_covariance(vec![0.5, 0.0, 1.0], &[1.0, 0.3, 0.1, 0.3, 2.0, 0.0, 0.1, 0.0, 0.5]).unwrap();
        let mixture = vec![(0.7, near.clone()), (0.2, near.scaled(3.0)), (0.1, near.scaled(1e-3))];
        for count in [1, 15, 16, 17, 300] {
            let flat: Vec<f64> = (0..3 * count).map(|i| 4.0 * (0.37 * i as f64).sin()).collect();
            let points = Points::new(3, flat).unwrap();
            let (sums, parts) = (log_densities(&mixture, &points), log_parts(&mixture, &points));
            assert_eq!((sums.len(), parts.len()), (count, 3 * count));
            for (i, x) in points.rows().enumerate() {
                let single: Vec<f64> = mixture.iter().map(|(p, n)| p.ln() + n.log_density(x)).collect();
                for (ours, single) in parts[3 * i..3 * i + 3].iter().zip(&single) {
                    assert!((ours - single).abs() < 1e-12 * single.abs(), "{ours} {single}");
                }
                assert!((sums[i] - log_sum_exp(&single)).abs() < 1e-12 * sums[i].abs());
            }
        }
    }
}
