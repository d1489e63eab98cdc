//! Where nobody has looked yet. `MATH.md` §15.

use super::pool::Pool;
use crate::{
    belief::log::{LogBelief, Process, Scout, UNKNOWN, prior_points},
    error::Result,
    numeric::{
        linalg::{Factor, Jitter, Matrix, transpose_mul},
        normal::cdf,
        quantile::normal_quantile,
        rng::{Purpose, Stream},
    },
    points::{Points, square_distance},
};

/// Draws from the prior among which the scout chooses.
pub(super) const SCOUTED: usize = 300;

/// How few unknown places are too few.
const FEW: usize = 30;

/// Looks where nobody looked: first beside the best node if noise is in doubt, then alternately where the prior is emptiest and by joint draws of the
/// scout over the prior.
pub(super) struct Elsewhere<'a> {
    belief: &'a LogBelief,
    draws: Draws,
    stream: Stream,
    twin: Option<Vec<f64>>,
    suspects: std::vec::IntoIter<Vec<f64>>,
    /// Draws from the prior in probabilities, and how far each is from the nearest node.
    spread: Vec<(Vec<f64>, f64)>,
    turn: u64,
}

impl<'a> Elsewhere<'a> {
    pub(super) fn new(belief: &'a LogBelief, pending: &Points, seed: u64, asked: u64) -> Result<Self> {
        let Scout { view, process, .. } = &belief.scout;
        let waiting: Vec<Vec<f64>> = pending.rows().map(|u| view.enter(u)).collect();
        let drawn: Vec<Vec<f64>> =
            prior_points(process.dim(), 2 * SCOUTED, seed, asked)?.iter().map(|u| view.enter(u)).collect();
        // Where it is known what there is, nothing is to be found.
        let variance = process.predict(&Points::from_rows(&drawn)?).variance;
        let unknown = drawn.iter().zip(&variance).filter(|(_, v)| **v > UNKNOWN).map(|(x, _)| x.clone());
        let unknown: Vec<Vec<f64>> = unknown.take(SCOUTED).collect();
        let candidates = if unknown.len() < FEW { drawn[..SCOUTED].to_vec() } else { unknown };
        let share = |u: &[f64]| u.iter().map(|v| cdf(*v)).collect::<Vec<f64>>();
        let taken: Vec<Vec<f64>> = belief.known.nodes.rows().chain(pending.rows()).map(share).collect();
        let spread = prior_points(process.dim(), 2 * SCOUTED, seed, asked)?
            .iter()
            .map(|u| {
                let p = share(u);
                let gap = taken.iter().map(|t| square_distance(&p, t)).fold(f64::INFINITY, f64::min);
                (p, gap)
            })
            .collect();
        let suspects: Vec<Vec<f64>> = belief.scout.suspects.iter().map(|s| s.1.clone()).collect();
        Ok(Self {
            belief,
            draws: Draws::new(process, candidates, &waiting)?,
            stream: Stream::new(seed, Purpose::Select, asked << 8 | 2),
            twin: belief.twin.clone(),
            suspects: suspects.into_iter(),
            spread,
            turn: asked / super::FOUND,
        })
    }

    pub(super) fn next(&mut self) -> Vec<f64> {
        if let Some(twin) = self.twin.take() {
            return twin;
        }
        self.turn += 1;
        if self.turn.is_multiple_of(2) {
            self.emptiest()
        } else {
            self.belief.scout.view.leave(&self.draws.next(&mut self.stream))
        }
    }

    /// The draw from the prior that is farthest from all nodes, in probabilities: no place of the prior stays empty for long.
    fn emptiest(&mut self) -> Vec<f64> {
        let best = (0..self.spread.len()).max_by(|&a, &b| self.spread[a].1.total_cmp(&self.spread[b].1)).unwrap_or(0);
        let chosen = self.spread[best].0.clone();
        self.spread.iter_mut().for_each(|(p, gap)| *gap = gap.min(square_distance(p, &chosen)));
        chosen.iter().map(|p| normal_quantile(*p)).collect()
    }

    /// A maximum of the scout that may be another peak.
    pub(super) fn suspect(&mut self) -> Option<Vec<f64>> {
        self.suspects.next()
    }
}

/// Joint draws of the process over candidates, each of which is taken once (Thompson sampling).
struct Draws {
    points: Vec<Vec<f64>>,
    mean: Vec<f64>,
    factor: Factor,
    free: Vec<bool>,
}

impl Draws {
    fn new(process: &Process, points: Vec<Vec<f64>>, pending: &[Vec<f64>]) -> Result<Self> {
        let count = points.len();
        let all: Vec<&[f64]> = points.iter().chain(pending).map(Vec::as_slice).collect();
        let at = Points::from_rows(&all)?;
        let mean = process.mean(&at);
        let mut pool = Pool::new(process, at, 0..0)?;
        for j in count..all.len() {
            pool.condition(j)?;
        }
        let prior = process.prior_cross(&pool.placed, &pool.placed);
        let explained = transpose_mul(&pool.half, &pool.half);
        let covariance = Matrix::from_fn(count, count, |i, j| {
            let told: f64 = pool.rows.iter().map(|row| row[i] * row[j]).sum();
            prior.get(i, j) - explained.get(i, j) - told
        });
        // Differences of large numbers: rounding is relative to what they were before.
        let largest = pool.points.rows().map(|x| process.hyper.diagonal(x)).fold(0.0, f64::max);
        let scale = (0..count).map(|i| covariance.get(i, i)).fold(1e-4 * largest, f64::max).max(1e-12);
        let factor = Factor::new(|| covariance.clone(), scale, Jitter { nugget: 1e-10, rungs: 8 })?;
        Ok(Self { mean, points, factor, free: vec![true; count] })
    }

    fn next(&mut self, stream: &mut Stream) -> Vec<f64> {
        let draw = self.factor.lower_mul(&stream.normals(self.points.len()));
        let height = |i: usize| self.mean[i] + draw[i];
        let free = (0..self.points.len()).filter(|&i| self.free[i]);
        let best = free.max_by(|&a, &b| height(a).total_cmp(&height(b))).unwrap_or(0);
        self.free[best] = false;
        self.points[best].clone()
    }
}
