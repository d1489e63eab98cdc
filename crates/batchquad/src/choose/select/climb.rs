//! The search that all rules share: climb from many starts at once, take the highest summit that keeps its distance.
//! [`MATH.md` §5](crate::math).4.

use crate::{
    belief::surrogate::Surrogate,
    choose::{
        acquire::Acquisition,
        design::space_filling,
        select::{Search, Selection},
    },
    error::Result,
    numeric::{
        jets::{Jets, Order, run},
        optim::{Ascent, Bounds, Heat, Summit, race},
        rng::{Purpose, Stream},
    },
    points::Points,
};

/// The least distance, in lengthscales, between a chosen point and any node, pending point or other chosen point.
pub const MIN_SEPARATION: f64 = 1e-3;

/// Nodes near which the first search starts too: those where the integrand is largest.
const BEST_NODES: usize = 5;

/// Fresh starts for every further point of a batch, for each dimension: half from the measure, half around the last
/// choice.
const FRESH_PER_DIM: usize = 2;

/// Only the starts that are highest after four looks are climbed to the top. With two looks instead of four, errors on the GP evidence are 1.5 times
/// those of climbing all.
fn heat(dim: usize) -> Heat {
    Heat { evaluations: 4, winners: dim + 4 }
}

/// So many of the places that a search has reached are starts for the next point of the batch: the highest.
fn most_kept(dim: usize) -> usize {
    4 * (dim + 1)
}

/// Summits closer than this many lengthscales are the same.
const SAME_SUMMIT: f64 = 0.05;

/// In lengthscales and nats: a point that is a thousandth of a nat below its summit tells as much.
const ASCENT: Ascent = Ascent { max_evaluations: 20, gradient_tolerance: 2e-2, value_tolerance: 2e-3, max_step: 2.0 };

/// The state of choosing one batch.
pub(crate) struct Climb<'a> {
    search: Search<'a>,
    lengthscales: Vec<f64>,
    bounds: Bounds,
    /// Where the next search starts.
    starts: Vec<Vec<f64>>,
    /// Nodes, pending and chosen points.
    taken: Points,
    chosen: Vec<Vec<f64>>,
    fallbacks: usize,
    evaluations: usize,
}

impl<'a> Climb<'a> {
    /// Prepares a batch: starts drawn from the measure and near the best nodes.
    pub(crate) fn new(belief: &Surrogate, pending: &Points, search: Search<'a>) -> Result<Self> {
        let nodes = belief.nodes();
        let lengthscales = belief.lengthscales().to_vec();
        let mut climb = Self {
            bounds: bounds(belief, &lengthscales)?,
            search,
            starts: Vec::new(),
            taken: nodes.concat(pending)?,
            chosen: Vec::new(),
            fallbacks: 0,
            evaluations: 0,
            lengthscales,
        };
        let mut stream = climb.stream(0);
        climb.starts = (0..search.starts_per_dim * nodes.dim()).map(|_| draw(belief, &mut stream)).collect();
        let height = |(u, f): (&[f64], f64)| belief.measure().log_density(u) + f.ln();
        let heights: Vec<f64> = nodes.rows().zip(belief.node_values()).map(height).collect();
        // A value of zero below an offset may have been rounded to less than nothing, which has no logarithm.
        let mut best: Vec<usize> = (0..nodes.len()).filter(|&i| !heights[i].is_nan()).collect();
        best.sort_by(|&a, &b| heights[b].total_cmp(&heights[a]));
        for &i in best.iter().take(BEST_NODES) {
            climb.starts.push(climb.near(nodes.row(i), &mut stream));
        }
        Ok(climb)
    }

    /// A stream of its own for every point of the run and every use within it.
    pub(crate) fn stream(&self, usage: u64) -> Stream {
        let point = self.search.asked + self.chosen.len() as u64;
        Stream::new(self.search.seed, Purpose::Select, point << 8 | usage)
    }

    /// A point about half a lengthscale from `x` in each coordinate.
    fn near(&self, x: &[f64], stream: &mut Stream) -> Vec<f64> {
        x.iter().zip(&self.lengthscales).map(|(x, l)| x + 0.5 * l * stream.normal()).collect()
    }

    pub(crate) fn lengthscales(&self) -> &[f64] {
        &self.lengthscales
    }

    /// Chooses the next point of the batch: the highest summit of `acquisition` that keeps its distance.
    pub(crate) fn choose(&mut self, belief: &Surrogate, acquisition: &dyn Acquisition) -> Result<Vec<f64>> {
        let heat = heat(self.lengthscales.len());
        let mut summits = climb_all(acquisition, &self.starts, &self.lengthscales, &self.bounds, (ASCENT, heat))?;
        self.evaluations += summits.iter().map(|s| s.evaluations).sum::<usize>();
        summits.retain(|s| s.value > f64::NEG_INFINITY);
        summits.sort_by(|a, b| b.value.total_cmp(&a.value));
        let point = summits.iter().map(|s| &s.x).find(|x| self.is_free(x)).cloned();
        let point = match point {
            Some(x) => x,
            None => self.fall_back()?,
        };
        self.take(&point)?;
        self.next_starts(belief, &summits, &point);
        Ok(point)
    }

    /// A space-filling point instead of a summit.
    pub(crate) fn fall_back(&mut self) -> Result<Vec<f64>> {
        self.fallbacks += 1;
        let offset = u32::try_from(self.search.asked + self.chosen.len() as u64).unwrap_or(u32::MAX / 2);
        // A Euclidean distance that is long enough in every direction.
        let longest = self.lengthscales.iter().copied().fold(0.0, f64::max);
        let dim = self.lengthscales.len();
        let points = space_filling(dim, 1, self.search.seed, offset, &self.taken, MIN_SEPARATION * longest)?;
        Ok(points.row(0).to_vec())
    }

    /// Counts `point` among the chosen.
    pub(crate) fn take(&mut self, point: &[f64]) -> Result<()> {
        self.taken = self.taken.concat(&Points::new(point.len(), point.to_vec())?)?;
        self.chosen.push(point.to_vec());
        Ok(())
    }

    /// Whether `x` keeps its distance from everything taken.
    pub(crate) fn is_free(&self, x: &[f64]) -> bool {
        self.taken.rows().all(|t| scaled_square(x, t, &self.lengthscales) >= MIN_SEPARATION * MIN_SEPARATION)
    }

    /// A chosen point changes an acquisition only near itself: the other summits are almost right already, and new ones
    /// appear around it or where nobody has looked.
    fn next_starts(&mut self, belief: &Surrogate, summits: &[Summit], point: &[f64]) {
        let mut starts: Vec<Vec<f64>> = Vec::new();
        let most = most_kept(point.len());
        for s in summits {
            let distinct = |y: &[f64]| scaled_square(&s.x, y, &self.lengthscales) > SAME_SUMMIT * SAME_SUMMIT;
            if starts.len() < most && distinct(point) && starts.iter().all(|y| distinct(y)) {
                starts.push(s.x.clone());
            }
        }
        let mut stream = self.stream(1);
        for k in 0..FRESH_PER_DIM * point.len() {
            let start = if k % 2 == 0 { draw(belief, &mut stream) } else { self.near(point, &mut stream) };
            starts.push(start);
        }
        self.starts = starts;
    }

    /// The batch as chosen.
    pub(crate) fn finish(self) -> Result<Selection> {
        Ok(Selection {
            points: Points::from_rows(&self.chosen)?,
            fallbacks: self.fallbacks,
            evaluations: self.evaluations,
        })
    }
}

/// A draw from the belief's measure.
pub(crate) fn draw(belief: &Surrogate, stream: &mut Stream) -> Vec<f64> {
    let components = belief.measure().components();
    let mut u = stream.uniform();
    let mut index = 0;
    while index + 1 < components.len() && u >= components[index].0 {
        u -= components[index].0;
        index += 1;
    }
    let normals = stream.normals(belief.measure().dim());
    components[index].1.map_standard(&normals)
}

/// Eight standard deviations of every component around its mean, in lengthscales: beyond, there is nothing to
/// integrate.
fn bounds(belief: &Surrogate, lengthscales: &[f64]) -> Result<Bounds> {
    let d = lengthscales.len();
    let (mut low, mut high) = (vec![f64::INFINITY; d], vec![f64::NEG_INFINITY; d]);
    for (_, component) in belief.measure().components() {
        for k in 0..d {
            let reach = 8.0 * component.covariance().get(k, k).sqrt();
            low[k] = low[k].min((component.mean()[k] - reach) / lengthscales[k]);
            high[k] = high[k].max((component.mean()[k] + reach) / lengthscales[k]);
        }
    }
    Bounds::new(low, high)
}

/// Climbs from all starts at once, the highest to the top, in units of the lengthscales; summits are given back in the coordinates of the
/// starts.
pub(crate) fn climb_all(
    acquisition: &dyn Acquisition,
    starts: &[Vec<f64>],
    lengthscales: &[f64],
    bounds: &Bounds,
    (ascent, heat): (Ascent, Heat),
) -> Result<Vec<Summit>> {
    let down: Vec<Vec<f64>> = starts.iter().map(|x| x.iter().zip(lengthscales).map(|(x, l)| x / l).collect()).collect();
    let mut summits = race(&down, bounds, ascent, heat, |trials| {
        let jets = acquisition.log_jets(&unscaled(trials, lengthscales)?, Order::Gradient)?;
        Ok((0..trials.len()).map(|at| (jets.value[at], scaled_gradient(&jets, at, lengthscales))).collect())
    })?;
    for s in &mut summits {
        s.x.iter_mut().zip(lengthscales).for_each(|(x, l)| *x *= l);
    }
    Ok(summits)
}

/// `Σ ((xₐ − yₐ)/λₐ)²`.
pub(crate) fn scaled_square(x: &[f64], y: &[f64], lengthscales: &[f64]) -> f64 {
    x.iter().zip(y).zip(lengthscales).map(|((x, y), l)| ((x - y) / l).powi(2)).sum()
}

/// Points from their coordinates in lengthscales.
pub(crate) fn unscaled(scaled: &[Vec<f64>], lengthscales: &[f64]) -> Result<Points> {
    let flat = scaled.iter().flat_map(|y| y.iter().zip(lengthscales).map(|(y, l)| y * l)).collect();
    Points::new(lengthscales.len(), flat)
}

/// `∇ log a` in lengthscales, at point `at`.
pub(crate) fn scaled_gradient(jets: &Jets, at: usize, lengthscales: &[f64]) -> Vec<f64> {
    run(&jets.gradient, at, lengthscales.len()).iter().zip(lengthscales).map(|(g, l)| g * l).collect()
}
