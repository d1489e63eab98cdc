//! Where nobody has looked yet. `MATH.md` §15.

use super::pool::Pool;
use crate::{
    belief::log::{LogBelief, Process, Scout, UNKNOWN, prior_points},
    error::Result,
    numeric::{
        linalg::{Factor, Jitter},
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
/// scout over the prior. Each is worked out when its first turn comes: among single points that is seldom.
pub(super) struct Elsewhere<'a> {
    belief: &'a LogBelief,
    pending: &'a Points,
    place: (u64, u64),
    draws: Option<Draws>,
    stream: Stream,
    twin: Option<Vec<f64>>,
    suspects: std::vec::IntoIter<Vec<f64>>,
    /// Draws from the prior in probabilities, and how far each is from the nearest node.
    spread: Option<Vec<(Vec<f64>, f64)>>,
    turn: u64,
}

impl<'a> Elsewhere<'a> {
    pub(super) fn new(belief: &'a LogBelief, pending: &'a Points, seed: u64, asked: u64) -> Self {
        let suspects: Vec<Vec<f64>> = belief.scout.suspects.iter().map(|s| s.1.clone()).collect();
        Self {
            belief,
            pending,
            place: (seed, asked),
            draws: None,
            stream: Stream::new(seed, Purpose::Select, asked << 8 | 2),
            twin: belief.twin.clone(),
            suspects: suspects.into_iter(),
            spread: None,
            turn: asked / super::FOUND,
        }
    }

    /// Draws from the prior, in latent coordinates.
    fn prior(&self) -> Result<Vec<Vec<f64>>> {
        prior_points(self.pending.dim(), 2 * SCOUTED, self.place.0, self.place.1)
    }

    fn drawn(&self) -> Result<Draws> {
        let Scout { view, process, .. } = &self.belief.scout;
        let drawn: Vec<Vec<f64>> = self.prior()?.iter().map(|u| view.enter(u)).collect();
        // Where it is known what there is, nothing is to be found.
        let variance = process.predict(&Points::from_rows(&drawn)?).variance;
        let unknown = drawn.iter().zip(&variance).filter(|(_, v)| **v > UNKNOWN).map(|(x, _)| x.clone());
        let unknown: Vec<Vec<f64>> = unknown.take(SCOUTED).collect();
        let candidates = if unknown.len() < FEW { drawn[..SCOUTED].to_vec() } else { unknown };
        let waiting = Points::new(process.dim(), self.pending.rows().flat_map(|u| view.enter(u)).collect())?;
        Draws::new(process, candidates, &waiting)
    }

    fn scattered(&self) -> Result<Vec<(Vec<f64>, f64)>> {
        let share = |u: &[f64]| u.iter().map(|v| cdf(*v)).collect::<Vec<f64>>();
        let taken: Vec<Vec<f64>> = self.belief.known.nodes.rows().chain(self.pending.rows()).map(share).collect();
        let gap = |p: Vec<f64>| {
            let gap = taken.iter().map(|t| square_distance(&p, t)).fold(f64::INFINITY, f64::min);
            (p, gap)
        };
        Ok(self.prior()?.iter().map(|u| gap(share(u))).collect())
    }

    pub(super) fn next(&mut self) -> Result<Vec<f64>> {
        if let Some(twin) = self.twin.take() {
            return Ok(twin);
        }
        self.turn += 1;
        if self.turn.is_multiple_of(2) {
            return self.emptiest();
        }
        let mut draws = match self.draws.take() {
            Some(draws) => draws,
            None => self.drawn()?,
        };
        let x = draws.next(&mut self.stream);
        self.draws = Some(draws);
        Ok(self.belief.scout.view.leave(&x))
    }

    /// The draw from the prior that is farthest from all nodes, in probabilities: no place of the prior stays empty for long.
    fn emptiest(&mut self) -> Result<Vec<f64>> {
        let mut spread = match self.spread.take() {
            Some(spread) => spread,
            None => self.scattered()?,
        };
        let best = (0..spread.len()).max_by(|&a, &b| spread[a].1.total_cmp(&spread[b].1)).unwrap_or(0);
        let chosen = spread[best].0.clone();
        spread.iter_mut().for_each(|(p, gap)| *gap = gap.min(square_distance(p, &chosen)));
        self.spread = Some(spread);
        Ok(chosen.iter().map(|p| normal_quantile(*p)).collect())
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
    fn new(process: &Process, points: Vec<Vec<f64>>, pending: &Points) -> Result<Self> {
        let count = points.len();
        let at = Points::from_rows(&points)?;
        let mean = process.mean(&at);
        let largest = process.prior_variance(&at).into_iter().fold(0.0, f64::max);
        let covariance = Pool::new(process, at, 0..0, pending, 0)?.covariances();
        // Differences of large numbers: rounding is relative to what they were before.
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
