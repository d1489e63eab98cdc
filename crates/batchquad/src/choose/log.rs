//! Batches for a belief about the logarithm: `MATH.md` §15.
//!
//! The covariance of the process does not depend on the values, so a batch is chosen greedily, conditioning on each point as it is chosen:
//! Kriging Believer with nothing to believe.

use crate::{
    belief::log::{
        Integral, LogBelief, Peak, Placed, Process, Scout, Search, UNKNOWN, prior_points, resample, root_weights,
    },
    error::Result,
    interrupt::check,
    numeric::{
        linalg::{Factor, Jitter, Matrix, transpose_mul},
        normal::cdf,
        optim::{Ascent, Bounds, maximise},
        quantile::normal_quantile,
        rng::{Purpose, Stream},
        simd::dot,
    },
    points::Points,
};

/// Candidates: of the surrogate's posterior, of its square root, of the proposal.
const CANDIDATES: [usize; 3] = [300, 300, 150];

/// Points of the posterior that stand for the integral.
const INTEGRAL: usize = 256;

/// Draws from the prior among which the scout chooses.
const SCOUTED: usize = 300;

/// How few unknown places are too few.
const FEW: usize = 30;

/// Points closer than this, in latent coordinates, are the same.
const SAME: f64 = 2e-5;

/// While nothing is found, so many of so many points are maxima of the surrogates, and the last looks elsewhere.
const TOPS: u64 = 6;
const SEARCHING: u64 = 8;

/// Half the widths of the boxes in which the surrogates' maxima are tried, in standard deviations of the best nodes.
const BOXES: [f64; 3] = [2.0, 0.5, 0.12];

/// Afterwards one in so many, and more where the scout still expects something.
const FOUND: u64 = 8;
const EXPECTING: u64 = 4;

/// In up to so many dimensions a few points can cover the prior: among so many first points, more of them do.
const LOW: usize = 3;
const EARLY: u64 = 64;

/// One point per batch within this distance, in posterior standard deviations, tells on which side of the likelihood's edge it is.
const EDGE: f64 = 0.3;

/// The share of `Z` from which on a suspected peak is worth a look.
const SUSPICIOUS: f64 = 0.003;

/// A point whose number modulo eight is `i` goes up to a further peak if more than `CLIMBS[i]` of eight do. The fourth and the eighth never do.
const CLIMBS: [u64; 8] = [3, 4, 0, u64::MAX, 2, 5, 1, u64::MAX];

/// A peak with a smaller share of `Z` than this needs no more values.
const NEGLIGIBLE: f64 = 1e-4;

/// The share of `Z` from which on the scout expects something.
const EXPECTED: f64 = 0.03;

/// `n` further latent points, while `pending` ones are under way and `asked` were asked before.
///
/// # Errors
/// Numerical errors when covariances cannot be factorised.
pub(crate) fn select(belief: &LogBelief, pending: &Points, n: usize, seed: u64, asked: u64) -> Result<Points> {
    let mut elsewhere = Elsewhere::new(belief, pending, seed, asked)?;
    let chosen = match Climb::new(belief.main(), pending, seed, asked)? {
        Some(climb) => find(climb, n, asked, &mut elsewhere),
        None => refine(belief, pending, n, seed, asked, &mut elsewhere)?,
    };
    // A point that is known or under way is not asked again; one that a twin asks for is beside it.
    let mut free: Vec<Vec<f64>> = Vec::new();
    for point in chosen {
        let mut point = point;
        for _ in 0..SCOUTED {
            let same = |t: &[f64]| square(t, &point) < SAME * SAME;
            let taken = belief.known.nodes.rows().chain(pending.rows()).chain(free.iter().map(Vec::as_slice)).any(same);
            if !taken {
                break;
            }
            point = elsewhere.next();
        }
        free.push(point);
    }
    Points::from_rows(&free)
}

fn square(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// Looks where nobody looked: first beside the best node if noise is in doubt, then alternately where the prior is emptiest and by joint draws of the
/// scout over the prior.
struct Elsewhere<'a> {
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
    fn new(belief: &'a LogBelief, pending: &Points, seed: u64, asked: u64) -> Result<Self> {
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
                let gap = taken.iter().map(|t| square(&p, t)).fold(f64::INFINITY, f64::min);
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
            turn: asked / FOUND,
        })
    }

    fn next(&mut self) -> Vec<f64> {
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
        self.spread.iter_mut().for_each(|(p, gap)| *gap = gap.min(square(p, &chosen)));
        chosen.iter().map(|p| normal_quantile(*p)).collect()
    }

    /// A maximum of the scout that may be another peak.
    fn suspect(&mut self) -> Option<Vec<f64>> {
        self.suspects.next()
    }
}

/// Candidates of one peak.
struct Field<'a> {
    peak: &'a Peak,
    share: f64,
    rows: Vec<Vec<f64>>,
    /// The logarithm of the integrand at each candidate, relative to the best node of all.
    level: Vec<f64>,
    /// Where it is not known whether the likelihood is zero, the integrand varies by as much as it is itself.
    edge: Vec<f64>,
    free: Vec<bool>,
    pool: Pool<'a>,
}

impl<'a> Field<'a> {
    fn new(belief: &LogBelief, peak: &'a Peak, share: f64, pending: &Points, offset: f64) -> Result<Self> {
        let (view, integral) = (&peak.view, &peak.integral);
        let mut indices = candidates(integral, offset);
        indices.retain(|&i| integral.levels[i].is_finite());
        let sample = resample(&integral.weights, INTEGRAL, 0.5);
        let mut rows: Vec<Vec<f64>> = indices.iter().chain(&sample).map(|&i| integral.points.row(i).to_vec()).collect();
        rows.extend(pending.rows().map(|u| view.enter(u)));
        let shift = peak.known.best - belief.known.best;
        let level = indices.iter().map(|&i| integral.levels[i] + shift).collect();
        let within = indices.len()..indices.len() + sample.len();
        let mut pool = Pool::new(&peak.process, Points::from_rows(&rows)?, within.clone())?;
        for j in within.end..rows.len() {
            pool.condition(j)?;
        }
        rows.truncate(indices.len());
        let edge = match &peak.support {
            Some(support) => support.log_probability(&Points::from_rows(&rows)?).iter().map(|p| -p).collect(),
            None => vec![0.0; indices.len()],
        };
        Ok(Self { peak, share, level, edge, free: vec![true; rows.len()], rows, pool })
    }

    /// The best free candidate, by what it tells about `Z` or by how much the integrand varies there.
    fn best(&self, by_z: bool) -> Option<(f64, usize)> {
        let noise = self.peak.process.hyper.noise.powi(2);
        let score = |i: usize| -> f64 {
            let v = self.pool.variance[i] + self.edge[i];
            if by_z {
                ((self.share * self.pool.with_z[i]).powi(2) / (v + noise)).ln()
            } else {
                2.0 * self.level[i] + v.min(4.0) + v.min(30.0).exp_m1().ln()
            }
        };
        let free = (0..self.rows.len()).filter(|&i| self.free[i]);
        free.map(|i| (score(i), i)).filter(|s| !s.0.is_nan()).max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Takes a candidate: what follows counts on its value.
    fn take(&mut self, i: usize) -> Result<Vec<f64>> {
        self.free[i] = false;
        self.pool.condition(i)?;
        let near = |x: &[f64]| square(x, &self.rows[i]) < EDGE * EDGE;
        (0..self.rows.len()).filter(|&j| near(&self.rows[j])).for_each(|j| self.edge[j] = 0.0);
        Ok(self.peak.view.leave(&self.rows[i]))
    }
}

/// The posterior is found: alternately the point that lowers the variance of `Z` most, `(Σ wⱼ c(x, uⱼ))²/(v + η²)`, and the one at which the integrand
/// varies most, `2m + v + log(eᵛ − 1)`, of all peaks.
fn refine(
    belief: &LogBelief,
    pending: &Points,
    n: usize,
    seed: u64,
    asked: u64,
    elsewhere: &mut Elsewhere<'_>,
) -> Result<Vec<Vec<f64>>> {
    let offset = Stream::new(seed, Purpose::Select, asked << 8).uniform();
    let mut fields = Vec::new();
    for (share, peak) in belief.shares().zip(&belief.peaks) {
        if share > NEGLIGIBLE {
            fields.push(Field::new(belief, peak, share, pending, offset)?);
        }
    }
    // A peak that matters and is not found any more comes before further ones.
    let lost = belief.shares().zip(&belief.peaks).find(|(share, peak)| *share > NEGLIGIBLE && peak.search.is_some());
    let mut climb = match lost.map(|l| l.1).or(belief.climb.as_ref()) {
        Some(peak) => Climb::new(peak, pending, seed, asked)?,
        None => None,
    };
    let eighths = belief.recipe.eighths();
    let early = asked < EARLY && belief.known.dim() <= LOW;
    let period = if early || belief.unseen() > EXPECTED { EXPECTING } else { FOUND };
    let suspicious = belief.scout.suspects.first().is_some_and(|s| s.0 > SUSPICIOUS);
    let suspected = if suspicious { EXPECTING } else { FOUND };
    let mut chosen = Vec::new();
    for k in 0..n {
        check()?;
        let number = asked + k as u64;
        if CLIMBS[(number % 8) as usize] < eighths {
            chosen.push(match &mut climb {
                Some(climb) => climb.next(),
                None => elsewhere.next(),
            });
            continue;
        }
        if number % suspected == 1
            && let Some(u) = elsewhere.suspect()
        {
            chosen.push(u);
            continue;
        }
        let all =
            fields.iter().enumerate().filter_map(|(f, field)| field.best(number.is_multiple_of(2)).map(|b| (b, f)));
        let best = all.max_by(|a, b| a.0.0.total_cmp(&b.0.0));
        chosen.push(match best {
            Some(((_, i), f)) if number % period != period - 1 => fields[f].take(i)?,
            _ => elsewhere.next(),
        });
    }
    Ok(chosen)
}

/// Candidates for refinement, by their numbers in the sample of the integral.
fn candidates(integral: &Integral, offset: f64) -> Vec<usize> {
    let [posterior, tempered, spread] = CANDIDATES;
    let half = root_weights(integral);
    let mut indices = resample(&integral.weights, posterior, offset);
    indices.extend(resample(&half, tempered, offset));
    indices.extend((0..spread).map(|i| i * (integral.points.len() / spread)));
    indices.sort_unstable();
    indices.dedup();
    indices
}

/// The posterior is not found: the way up, and every eighth point elsewhere. Which is whose turn depends on the number of the point, so single points
/// take the same turns as batches.
fn find(mut climb: Climb<'_>, n: usize, asked: u64, elsewhere: &mut Elsewhere<'_>) -> Vec<Vec<f64>> {
    let numbers = asked..asked + n as u64;
    let turn = |number: u64| number % SEARCHING;
    numbers
        .map(|number| match turn(number) {
            t if t < TOPS => climb.next(),
            t if t == SEARCHING - 1 => elsewhere.next(),
            _ => climb.draw(),
        })
        .collect()
}

/// The way up to a peak that is not found: the maxima of its surrogates in boxes around the best node, then draws of the searching surrogate's posterior.
struct Climb<'a> {
    search: &'a Search,
    tops: std::vec::IntoIter<Vec<f64>>,
    stream: Stream,
}

impl<'a> Climb<'a> {
    /// None if the peak is found.
    fn new(peak: &'a Peak, pending: &Points, seed: u64, asked: u64) -> Result<Option<Self>> {
        let Some(search) = &peak.search else { return Ok(None) };
        let mut tops = tops(peak, search, pending)?;
        if !tops.is_empty() {
            let first = asked as usize % tops.len();
            tops.rotate_left(first);
        }
        let stream = Stream::new(seed, Purpose::Select, asked << 8 | 1);
        Ok(Some(Self { search, tops: tops.into_iter(), stream }))
    }

    fn next(&mut self) -> Vec<f64> {
        match self.tops.next() {
            Some(top) => top,
            None => self.draw(),
        }
    }

    fn draw(&mut self) -> Vec<f64> {
        let Search { view, integral, .. } = self.search;
        let drawn = resample(&integral.weights, 1, self.stream.uniform());
        view.leave(integral.points.row(drawn[0]))
    }
}

/// Where the surrogates expect the most within smaller and smaller boxes around the best node: the smaller, the more they can be believed.
fn tops(peak: &Peak, search: &Search, pending: &Points) -> Result<Vec<Vec<f64>>> {
    let Search { view, process, .. } = search;
    let waiting: Vec<Vec<f64>> = pending.rows().map(|u| view.enter(u)).collect();
    let known: Vec<Vec<f64>> = peak.known.nodes.rows().map(|u| view.enter(u)).collect();
    let mut tops: Vec<Vec<f64>> = Vec::new();
    for r in BOXES {
        let own = |x: &[f64]| {
            let (value, gradient, _) = peak.process.jet(&peak.view.enter(&view.leave(x)), false);
            (value, peak.view.pull(&gradient, view), Vec::new())
        };
        let found = [summit(|x| process.jet(x, false), process.dim(), r)?, summit(own, process.dim(), r)?];
        for x in found.into_iter().flatten() {
            let near = |t: &Vec<f64>| square(t, &x) < (0.2 * r).powi(2);
            if !tops.iter().chain(&waiting).any(near) && !known.iter().any(|t| square(t, &x) < 1e-6) {
                tops.push(x);
            }
        }
    }
    Ok(tops.iter().map(|x| view.leave(x)).collect())
}

/// Where a function with its gradient is largest in the box `[−r, r]ᵈ`, climbing from its middle.
fn summit(jet: impl Fn(&[f64]) -> (f64, Vec<f64>, Vec<f64>), d: usize, r: f64) -> Result<Option<Vec<f64>>> {
    let ascent = Ascent { max_evaluations: 60, gradient_tolerance: 1e-4, value_tolerance: 1e-6, max_step: r };
    let found = maximise(&[vec![0.0; d]], &Bounds::cube(d, -r, r)?, ascent, |trials| {
        Ok(trials.iter().map(|x| jet(x)).map(|(value, gradient, _)| (value, gradient)).collect())
    })?;
    Ok(found.into_iter().next().filter(|s| s.value.is_finite()).map(|s| s.x))
}

/// Candidates with their covariances, conditioned on one point after the other.
struct Pool<'a> {
    process: &'a Process,
    points: Points,
    placed: Placed,
    half: Matrix,
    /// What conditioning has taken from the covariances: `c(i, j)` falls by the product of entries `i` and `j` of each row.
    rows: Vec<Vec<f64>>,
    variance: Vec<f64>,
    /// The candidates that stand for the integral.
    integral: std::ops::Range<usize>,
    /// The covariance of each candidate with the logarithm of the integral.
    with_z: Vec<f64>,
}

impl<'a> Pool<'a> {
    fn new(process: &'a Process, points: Points, integral: std::ops::Range<usize>) -> Result<Self> {
        let placed = process.place(&points);
        let half = process.half(&placed);
        let variance = (0..points.len())
            .map(|j| (process.hyper.diagonal(points.row(j)) - dot(half.col(j), half.col(j))).max(0.0))
            .collect();
        let count = integral.len().max(1) as f64;
        let mut with_z = vec![0.0; points.len()];
        if !integral.is_empty() {
            let mut mean = vec![0.0; process.len()];
            for j in integral.clone() {
                mean.iter_mut().zip(half.col(j)).for_each(|(a, h)| *a += h / count);
            }
            let rows: Vec<&[f64]> = integral.clone().map(|j| points.row(j)).collect();
            let prior = process.prior_cross(&placed, &process.place(&Points::from_rows(&rows)?));
            for (i, q) in with_z.iter_mut().enumerate() {
                *q = (0..integral.len()).map(|j| prior.get(i, j)).sum::<f64>() / count - dot(half.col(i), &mean);
            }
        }
        Ok(Self { process, points, placed, half, rows: Vec::new(), variance, integral, with_z })
    }

    /// A value will be known at candidate `j`. Cost: `n` per candidate.
    fn condition(&mut self, j: usize) -> Result<()> {
        let one = self.process.place(&Points::from_rows(&[self.points.row(j)])?);
        let prior = self.process.prior_cross(&self.placed, &one);
        let mut row: Vec<f64> =
            (0..self.points.len()).map(|i| prior.get(i, 0) - dot(self.half.col(i), self.half.col(j))).collect();
        for earlier in &self.rows {
            let factor = earlier[j];
            row.iter_mut().zip(earlier).for_each(|(c, r)| *c -= factor * r);
        }
        let scale = (self.variance[j] + self.process.hyper.noise.powi(2)).sqrt().max(1e-150);
        row.iter_mut().for_each(|c| *c /= scale);
        self.variance.iter_mut().zip(&row).for_each(|(v, r)| *v = (*v - r * r).max(0.0));
        let with_z = row[self.integral.clone()].iter().sum::<f64>() / self.integral.len().max(1) as f64;
        self.with_z.iter_mut().zip(&row).for_each(|(q, r)| *q -= r * with_z);
        self.rows.push(row);
        Ok(())
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
