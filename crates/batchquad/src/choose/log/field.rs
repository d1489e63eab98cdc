//! The candidates of a peak that is found. `MATH.md` §15.

use super::pool::Pool;
use crate::{
    belief::log::{Integral, LogBelief, Peak, resample, root_weights},
    choose::select::{Apart, Penalisation, scaled_square},
    error::Result,
    numeric::log_sum::log_sum_exp,
    points::{Points, square_distance},
};

/// Candidates: of the surrogate's posterior, of its square root, of the proposal.
const CANDIDATES: [usize; 3] = [300, 300, 150];

/// For a batch that is a larger share of them than one in so many, there are so many for each of its points, up to a number beyond which
/// covariances would fill the memory.
const CHOICE: usize = 4;
const MOST: usize = 2000;

/// Points of the posterior that stand for the integral.
const INTEGRAL: usize = 256;

/// One point per batch within this distance, in posterior standard deviations, tells on which side of the likelihood's edge it is.
const EDGE: f64 = 0.3;

/// Candidates of one peak.
pub(super) struct Field<'a> {
    peak: &'a Peak,
    share: f64,
    rows: Vec<Vec<f64>>,
    /// The logarithm of the integrand at each candidate, relative to the best node of all.
    level: Vec<f64>,
    /// Where it is not known whether the likelihood is zero, the integrand varies by as much as it is itself.
    edge: Vec<f64>,
    free: Vec<bool>,
    pool: Pool<'a>,
    cones: Option<Cones>,
}

impl<'a> Field<'a> {
    pub(super) fn new(
        belief: &LogBelief,
        (peak, share): (&'a Peak, f64),
        apart: Apart,
        pending: &Points,
        (n, offset): (usize, f64),
    ) -> Result<Self> {
        let (view, integral) = (&peak.view, &peak.integral);
        let mut indices = candidates(integral, n, offset);
        indices.retain(|&i| integral.levels[i].is_finite());
        let sample = resample(&integral.weights, INTEGRAL, 0.5);
        let mut rows: Vec<Vec<f64>> = indices.iter().chain(&sample).map(|&i| integral.points.row(i).to_vec()).collect();
        let waiting: Vec<Vec<f64>> = pending.rows().map(|u| view.enter(u)).collect();
        let shift = peak.known.best - belief.known.best;
        let level = indices.iter().map(|&i| integral.levels[i] + shift).collect();
        let within = indices.len()..rows.len();
        let told = if apart == Apart::Conditioned { waiting.concat() } else { Vec::new() };
        let told = Points::new(pending.dim(), told)?;
        let pool = Pool::new(&peak.process, Points::from_rows(&rows)?, within, &told, n)?;
        rows.truncate(indices.len());
        let edge = match &peak.support {
            Some(support) => support.log_probability(&Points::from_rows(&rows)?).iter().map(|p| -p).collect(),
            None => vec![0.0; indices.len()],
        };
        let mut field = Self { peak, share, level, edge, free: vec![true; rows.len()], rows, pool, cones: None };
        if let Apart::Cones(constants) = apart {
            field.cones = Some(Cones::new(&field, constants, waiting));
        }
        Ok(field)
    }

    /// How much the integrand varies at a candidate: the logarithm of its variance, `2m + v + log(eᵛ − 1)`, with v capped.
    fn variation(&self, i: usize) -> f64 {
        let v = self.pool.variance[i] + self.edge[i];
        2.0 * self.level[i] + v.min(4.0) + v.min(30.0).exp_m1().ln()
    }

    /// The best free candidate, by what it tells about `Z` or by how much the integrand varies there.
    pub(super) fn best(&self, by_z: bool) -> Option<(f64, usize)> {
        let noise = self.peak.process.hyper.noise.powi(2);
        let score = |i: usize| -> f64 {
            match &self.cones {
                Some(cones) => cones.cut(self.variation(i), &self.rows[i]),
                None if by_z => {
                    let v = self.pool.variance[i] + self.edge[i];
                    ((self.share * self.pool.with_z[i]).powi(2) / (v + noise)).ln()
                }
                None => self.variation(i),
            }
        };
        let free = (0..self.rows.len()).filter(|&i| self.free[i]);
        free.map(|i| (score(i), i)).filter(|s| !s.0.is_nan()).max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Takes a candidate: what follows counts on its value.
    pub(super) fn take(&mut self, i: usize) -> Result<Vec<f64>> {
        self.free[i] = false;
        match &mut self.cones {
            Some(cones) => cones.tips.push(self.rows[i].clone()),
            None => self.pool.condition(i)?,
        }
        let near = |x: &[f64]| square_distance(x, &self.rows[i]) < EDGE * EDGE;
        (0..self.rows.len()).filter(|&j| near(&self.rows[j])).for_each(|j| self.edge[j] = 0.0);
        Ok(self.peak.view.leave(&self.rows[i]))
    }
}

/// Cones with their tips at points that are taken, under which what is left of the acquisition lies: local penalisation.
struct Cones {
    constants: Penalisation,
    /// The logarithm of their slope, per lengthscale.
    log_slope: f64,
    lengthscales: Vec<f64>,
    tips: Vec<Vec<f64>>,
}

impl Cones {
    /// With `L = max |aᵢ − aⱼ|/‖xᵢ − xⱼ‖` over pairs of candidates for the Lipschitz constant of the acquisition a. Cost: `d` for each pair.
    fn new(field: &Field<'_>, constants: Penalisation, tips: Vec<Vec<f64>>) -> Self {
        let lengthscales = field.peak.process.hyper.lengthscales.clone();
        let logs: Vec<f64> = (0..field.rows.len()).map(|i| field.variation(i)).collect();
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let heights: Vec<f64> = logs.iter().map(|l| (l - largest).exp()).collect();
        let mut steepest = 0.0_f64;
        for (i, x) in field.rows.iter().enumerate() {
            for (y, h) in field.rows[..i].iter().zip(&heights) {
                let rise = heights[i] - h;
                let square = scaled_square(x, y, &lengthscales);
                if square > 0.0 {
                    steepest = steepest.max(rise * rise / square);
                }
            }
        }
        let log_slope = largest + constants.slope.ln() + 0.5 * steepest.ln();
        Self { constants, log_slope, lengthscales, tips }
    }

    /// The logarithm of the soft minimum of an acquisition and the cones, `−(1/p) log Σᵢ exp(−p log fᵢ)`.
    fn cut(&self, log: f64, x: &[f64]) -> f64 {
        let p = self.constants.power;
        let cone = |tip: &Vec<f64>| self.log_slope + 0.5 * scaled_square(x, tip, &self.lengthscales).ln();
        let terms: Vec<f64> = std::iter::once(log).chain(self.tips.iter().map(cone)).map(|f| -p * f).collect();
        -log_sum_exp(&terms) / p
    }
}

/// Candidates for refinement, by their numbers in the sample of the integral.
fn candidates(integral: &Integral, n: usize, offset: f64) -> Vec<usize> {
    let usual: usize = CANDIDATES.iter().sum();
    let [posterior, tempered, spread] = CANDIDATES.map(|count| count * (CHOICE * n).clamp(usual, MOST) / usual);
    let half = root_weights(integral);
    let mut indices = resample(&integral.weights, posterior, offset);
    indices.extend(resample(&half, tempered, offset));
    let step = (integral.points.len() / spread).max(1);
    indices.extend((0..spread).map(|i| i * step).take_while(|&i| i < integral.points.len()));
    indices.sort_unstable();
    indices.dedup();
    indices
}
