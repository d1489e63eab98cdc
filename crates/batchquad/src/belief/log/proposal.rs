//! Mixtures of normal distributions to draw from, and their adaptation to a density. `MATH.md` §15.

use super::{
    bend::{Back, Bend},
    density::{log_densities, log_parts},
};
use crate::{
    error::Result,
    numeric::{
        linalg::{Factor, Matrix},
        log_sum::log_add,
        pairs::Columns,
        quantile::normal_quantile,
        rng::{Purpose, Stream},
        simd::{dot, exponentials},
        sobol::SobolSequence,
    },
    points::Points,
};

/// A normal distribution in the coordinates of the frame.
#[derive(Debug, Clone)]
pub(crate) struct Normal {
    pub(crate) mean: Vec<f64>,
    /// The lower factor of the covariance, row by row.
    lower: Vec<f64>,
    log_norm: f64,
}

impl Normal {
    /// From a mean and the lower factor of the covariance, row by row.
    pub(crate) fn new(mean: Vec<f64>, lower: Vec<f64>) -> Self {
        let d = mean.len();
        let half_log_det: f64 = (0..d).map(|a| lower[a * d + a].ln()).sum();
        let log_norm = -half_log_det - 0.5 * d as f64 * std::f64::consts::TAU.ln();
        Self { mean, lower, log_norm }
    }

    /// From a covariance, row by row; none when that is not positive definite.
    pub(crate) fn with_covariance(mean: Vec<f64>, covariance: &[f64]) -> Option<Self> {
        let d = mean.len();
        let matrix = Matrix::from_fn(d, d, |i, j| covariance[i * d + j]);
        let factor = Factor::exact("covariance", &matrix).ok()?;
        let lower = (0..d * d).map(|k| if k / d >= k % d { factor.lower().get(k / d, k % d) } else { 0.0 }).collect();
        let made = Self::new(mean, lower);
        made.log_norm.is_finite().then_some(made)
    }

    /// The same about its mean, so many times wider.
    pub(crate) fn scaled(&self, factor: f64) -> Self {
        Self::new(self.mean.clone(), self.lower.iter().map(|l| l * factor).collect())
    }

    /// `L⁻¹(x − mean)`.
    pub(crate) fn white(&self, x: &[f64]) -> Vec<f64> {
        let mut z = vec![0.0; x.len()];
        self.white_into(x, &mut z);
        z
    }

    /// [`Normal::white`] into `z`.
    pub(crate) fn white_into(&self, x: &[f64], z: &mut [f64]) {
        let d = x.len();
        for a in 0..d {
            let mut v = x[a] - self.mean[a];
            for c in 0..a {
                v -= self.lower[a * d + c] * z[c];
            }
            z[a] = v / self.lower[a * d + a];
        }
    }

    pub(crate) fn log_density(&self, x: &[f64]) -> f64 {
        self.log_norm - 0.5 * self.white(x).iter().map(|z| z * z).sum::<f64>()
    }

    /// The logarithm of the density at the mean.
    pub(crate) fn log_norm(&self) -> f64 {
        self.log_norm
    }

    /// `mean + Lz`.
    pub(crate) fn at(&self, z: &[f64]) -> Vec<f64> {
        let mut x = Vec::with_capacity(z.len());
        self.extend_at(z, &mut x);
        x
    }

    /// `mean + Lz` at the end of other numbers.
    fn extend_at(&self, z: &[f64], flat: &mut Vec<f64>) {
        for (row, mean) in self.lower.chunks_exact(z.len()).zip(&self.mean) {
            // Beyond the diagonal there are zeros.
            flat.push(mean + row.iter().zip(z).map(|(l, z)| l * z).sum::<f64>());
        }
    }

    /// Row `a` of `L`.
    pub(crate) fn row(&self, a: usize) -> &[f64] {
        let d = self.mean.len();
        &self.lower[a * d..(a + 1) * d]
    }

    /// The covariance, row by row.
    pub(crate) fn covariance(&self) -> Vec<f64> {
        let d = self.mean.len();
        let entry = |a: usize, b: usize| (0..=a.min(b)).map(|c| self.lower[a * d + c] * self.lower[b * d + c]).sum();
        (0..d * d).map(|k| entry(k / d, k % d)).collect()
    }
}

/// The share of a component that is twice as wide.
const WIDE_SHARE: f64 = 0.15;

/// The share of the prior, below which nothing bounded can fall off more slowly.
const PRIOR_SHARE: f64 = 0.05;

/// Points with their straight coordinates, where the posterior is bent.
#[derive(Debug, Clone)]
pub(crate) struct Draws {
    pub(crate) points: Points,
    /// With the logarithm of how much they are stretched at each.
    straight: Option<(Points, Vec<f64>)>,
}

impl Draws {
    fn new(points: Points, back: Option<&Back>) -> Self {
        let straight = back.map(|back| back.straighten(&points));
        Self { points, straight }
    }

    /// The points in straight coordinates.
    pub(crate) fn straight(&self) -> &Points {
        self.straight.as_ref().map_or(&self.points, |s| &s.0)
    }

    /// The logarithm of how much these are stretched at each point; none where they are the coordinates themselves.
    pub(crate) fn stretch(&self) -> Option<&[f64]> {
        self.straight.as_ref().map(|s| &s.1[..])
    }

    pub(crate) fn concat(&self, more: &Self) -> Result<Self> {
        let straight = match (&self.straight, &more.straight) {
            (Some(own), Some(more)) => Some((own.0.concat(&more.0)?, [&own.1[..], &more.1].concat())),
            _ => None,
        };
        Ok(Self { points: self.points.concat(&more.points)?, straight })
    }
}

/// A mixture to draw from: components that adapt, each with a wider twin, in the coordinates in which the posterior is straight, and the prior.
#[derive(Debug, Clone)]
pub(crate) struct Proposal {
    /// Shares that sum to one, and the components that adapt.
    pub(crate) components: Vec<(f64, Normal)>,
    /// The prior, as it is.
    prior: Option<(f64, Normal)>,
    /// The components and their twins, with the prior's share so many that sum to one.
    straight: Vec<(f64, Normal)>,
    back: Option<Back>,
}

impl Proposal {
    pub(crate) fn new(mut components: Vec<(f64, Normal)>, prior: &Normal, bend: Option<&Bend>) -> Self {
        let total: f64 = components.iter().map(|c| c.0).sum();
        components.iter_mut().for_each(|c| c.0 /= total);
        let mut straight = Vec::new();
        for (share, normal) in &components {
            let share = share * (1.0 - PRIOR_SHARE);
            straight.push((share * (1.0 - WIDE_SHARE), normal.clone()));
            straight.push((share * WIDE_SHARE, normal.scaled(2.0)));
        }
        Self { components, prior: Some((PRIOR_SHARE, prior.clone())), straight, back: bend.and_then(Bend::back) }
    }

    /// Points as this proposal sees them.
    pub(crate) fn place(&self, points: Points) -> Draws {
        Draws::new(points, self.back.as_ref())
    }

    /// Densities per volume of the coordinates that are not straight.
    pub(crate) fn log_densities(&self, draws: &Draws) -> Vec<f64> {
        let Some(stretch) = draws.stretch() else {
            let all: Vec<(f64, Normal)> = self.prior.iter().chain(&self.straight).cloned().collect();
            return log_densities(&all, &draws.points);
        };
        let mut logs = log_densities(&self.straight, draws.straight());
        logs.iter_mut().zip(stretch).for_each(|(log, s)| *log += s);
        if let Some(prior) = &self.prior {
            let prior = log_densities(std::slice::from_ref(prior), &draws.points);
            logs.iter_mut().zip(prior).for_each(|(log, p)| *log = log_add(*log, p));
        }
        logs
    }

    /// The same mixture with shares that are whole numbers of draws out of `count`, so that it can be drawn from without chance.
    pub(crate) fn rounded(mut self, count: usize) -> Self {
        let mut given = 0;
        let mut sum = 0.0;
        for (share, _) in self.prior.iter_mut().chain(&mut self.straight) {
            sum += *share;
            let until = ((sum * count as f64).round() as usize).min(count);
            *share = (until - given) as f64 / count as f64;
            given = until;
        }
        self.prior = self.prior.filter(|c| c.0 > 0.0);
        self.straight.retain(|c| c.0 > 0.0);
        self
    }

    /// Draws from the [`Proposal::rounded`] mixture: each component has its share of `count` points, a net of its own, in each of `shifts`
    /// independent shifts, one after the other.
    pub(crate) fn draw(&self, count: usize, shifts: usize, seed: u64, round: u64) -> Result<Draws> {
        let d = self.components[0].1.mean.len();
        let sobol = SobolSequence::new(d, seed)?;
        let all: Vec<&(f64, Normal)> = self.prior.iter().chain(&self.straight).collect();
        let counts: Vec<usize> = all.iter().map(|c| (c.0 * count as f64).round() as usize).collect();
        let longest = counts.iter().copied().max().unwrap_or(0);
        let base: Vec<Vec<f64>> = (0..longest).map(|i| sobol.unscrambled_point(i as u32)).collect();
        let mut flat = Vec::with_capacity(shifts * count * d);
        let mut z = vec![0.0; d];
        for s in 0..shifts {
            let mut stream = Stream::new(seed, Purpose::Integral, round << 8 | s as u64);
            for (k, ((_, normal), &count)) in all.iter().zip(&counts).enumerate() {
                let back = self.back.as_ref().filter(|_| self.prior.is_none() || k > 0);
                let shift: Vec<f64> = (0..d).map(|_| stream.uniform_open()).collect();
                for p in &base[..count] {
                    for k in 0..d {
                        let v = p[k] + shift[k];
                        let v = if v >= 1.0 { v - 1.0 } else { v };
                        z[k] = normal_quantile(v.clamp(f64::EPSILON, 1.0 - f64::EPSILON));
                    }
                    normal.extend_at(&z, &mut flat);
                    if let Some(back) = back {
                        let first = flat.len() - d;
                        back.curve(&mut flat[first..]);
                    }
                }
            }
        }
        Ok(self.place(Points::new(d, flat)?))
    }
}

/// Most components that adapt.
const MOST: usize = 12;

/// A component with less than this share is dropped.
const LEAST_SHARE: f64 = 5e-3;

/// A draw with less than this share of the largest weight changes no component.
const NOTHING: f64 = 1e-9;

/// One step of expectation–maximisation of the components on a weighted sample, `rounds` times. Cost of each: `d²` per point and component.
pub(crate) fn refine(
    mut components: Vec<(f64, Normal)>,
    points: &Points,
    weights: &[f64],
    rounds: usize,
) -> Vec<(f64, Normal)> {
    let d = points.dim();
    let nothing = NOTHING * weights.iter().copied().fold(0.0, f64::max);
    let something: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > nothing).collect();
    let weights: Vec<f64> = something.iter().map(|&i| weights[i]).collect();
    let points = points.select(&something);
    let coordinates = Columns::scaled(&points, &vec![1.0; d]);
    for _ in 0..rounds {
        let shares = responsibilities(&components, &points, &weights);
        let mass: f64 = shares.iter().flatten().sum();
        let mut next = Vec::new();
        for (own, (_, old)) in shares.iter().zip(&components) {
            let total: f64 = own.iter().sum();
            let share = total / mass;
            if share.is_nan() || share < LEAST_SHARE {
                continue;
            }
            let effective = total * total / dot(own, own);
            let centre: Vec<f64> = (0..d).map(|a| dot(own, coordinates.coordinate(a)) / total).collect();
            let offset = |a: usize| coordinates.coordinate(a).iter().map(|x| x - centre[a]).collect::<Vec<f64>>();
            let offsets: Vec<Vec<f64>> = (0..d).map(offset).collect();
            // What few draws cannot say is taken from before.
            let (trust, mut covariance) = (effective / (effective + 2.0 * d as f64), old.covariance());
            for a in 0..d {
                let weighted: Vec<f64> = own.iter().zip(&offsets[a]).map(|(r, x)| r * x).collect();
                for b in 0..=a {
                    let v = trust * dot(&weighted, &offsets[b]) / total + (1.0 - trust) * covariance[a * d + b];
                    covariance[a * d + b] = v;
                    covariance[b * d + a] = v;
                }
            }
            match Normal::with_covariance(centre, &covariance) {
                Some(normal) => next.push((share, normal)),
                None => next.push((share, old.clone())),
            }
        }
        if next.is_empty() {
            return components;
        }
        components = next;
    }
    components
}

/// How much of the weight of each point is due to each component: a list for each of these.
fn responsibilities(components: &[(f64, Normal)], points: &Points, weights: &[f64]) -> Vec<Vec<f64>> {
    let k = components.len();
    let mut parts = log_parts(components, points);
    for logs in parts.chunks_exact_mut(k) {
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        logs.iter_mut().for_each(|l| *l -= largest);
    }
    exponentials(&mut parts);
    let mut shares = vec![vec![0.0; weights.len()]; k];
    for (i, (densities, w)) in parts.chunks_exact(k).zip(weights).enumerate() {
        let sum: f64 = densities.iter().sum();
        // Where no component has a density there is no sum.
        if sum.is_finite() {
            shares.iter_mut().zip(densities).for_each(|(share, density)| share[i] = w * density / sum);
        }
    }
    shares
}

/// A further component where the mixture has too little: at the point with the largest weight.
pub(crate) fn deficient(components: &mut Vec<(f64, Normal)>, points: &Points, weights: &[f64]) {
    if components.len() >= MOST {
        return;
    }
    let total: f64 = weights.iter().sum();
    let Some((i, w)) = weights.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)) else { return };
    if *w < 0.01 * total {
        return;
    }
    let x = points.row(i);
    let nearest = components.iter().max_by(|a, b| a.1.log_density(x).total_cmp(&b.1.log_density(x)));
    if let Some((_, normal)) = nearest {
        let mut moved = normal.scaled(0.5);
        moved.mean = x.to_vec();
        components.push((0.1, moved));
    }
}
