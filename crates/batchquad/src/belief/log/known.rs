//! The values as the process sees them: how far each is below the best, and which of them matter. `MATH.md` §15.

use super::{
    own::Straight,
    process::{Data, Process},
    scale::Scale,
    view::{Region, View},
};
use crate::{
    error::{Error, Result},
    numeric::normal::log_density,
    points::{Points, square_distance},
};

/// A quarter of the nats that a value lies beyond those that are sharp is its tolerance.
const TOLERANCE: f64 = 0.25;

/// How many standard deviations of the noise that was given with a value it may be off: hardly any of a hundred values are off by more.
const SURE: f64 = 3.0;

/// A value is strange to a posterior if it is less than this share as deep as a normal distribution says, with a gap of so many standard deviations to
/// those that are not.
const STRANGE: f64 = 0.5;
const GAP: f64 = 5.0;

/// Latent nodes with the logarithm of likelihood times prior density.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) nodes: Points,
    f: Vec<f64>,
    sds: Vec<f64>,
    /// Which of the `sds` were given with the values: they are all the noise that these have.
    given: Vec<bool>,
    /// The largest of the `f`; where noise was given, of what they are at the least.
    pub(crate) best: f64,
    best_at: usize,
    /// How far each is below it; infinite where the likelihood is zero, negative where noise makes a value larger.
    pub(crate) depth: Vec<f64>,
    pub(crate) largest_likelihood: f64,
    /// Which belong to another peak, whatever their height.
    foreign: Vec<bool>,
    /// What the parameters are as functions of their latent coordinates.
    pub(crate) scales: Vec<Scale>,
}

/// `log N(u; 0, I)`.
pub(crate) fn log_prior(u: &[f64]) -> f64 {
    u.iter().map(|v| log_density(*v)).sum()
}

/// How many coefficients a quadratic in `d` dimensions has: `q = (d + 1)(d + 2)/2`.
pub(crate) fn coefficients(d: usize) -> usize {
    (d + 1) * (d + 2) / 2
}

/// How far down values are sharp at the least, in nats: beyond it there is nothing of the posterior in `d` dimensions.
pub(crate) fn typical_depth(d: usize) -> f64 {
    8.0 + 2.0 * d as f64
}

/// How far down most of the posterior is, in nats.
pub(crate) fn high(d: usize) -> f64 {
    4.0 + 1.5 * d as f64
}

/// A value in the data of a process: the node, the target, and the variance of its own.
type Row = (usize, f64, f64);

impl Known {
    /// # Errors
    /// [`Error::NonFiniteValue`] for NaN and +∞, [`Error::NoFiniteValue`] when all values are −∞.
    pub(crate) fn new(nodes: Points, log_values: &[f64], sds: Vec<f64>, given: Vec<bool>) -> Result<Self> {
        if let Some(i) = log_values.iter().position(|v| v.is_nan() || *v == f64::INFINITY) {
            return Err(Error::NonFiniteValue { index: i, point: nodes.row(i).to_vec(), value: log_values[i] });
        }
        let f: Vec<f64> = nodes.rows().zip(log_values).map(|(u, l)| l + log_prior(u)).collect();
        let largest_likelihood = log_values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self::from_parts(nodes, f, sds, given, largest_likelihood)
    }

    fn from_parts(
        nodes: Points,
        f: Vec<f64>,
        sds: Vec<f64>,
        given: Vec<bool>,
        largest_likelihood: f64,
    ) -> Result<Self> {
        // A value that is high by its noise is not the best.
        let sure = |i: usize| f[i] - if given[i] { SURE * sds[i] } else { 0.0 };
        let best_at = (0..f.len()).reduce(|a, b| if sure(b) > sure(a) { b } else { a }).filter(|&i| f[i].is_finite());
        let Some(best_at) = best_at else { return Err(Error::NoFiniteValue { count: f.len() }) };
        let best = f[best_at];
        let depth = f.iter().map(|f| best - f).collect();
        let foreign = vec![false; f.len()];
        let scales = vec![Scale::Latent; nodes.dim()];
        Ok(Self { nodes, f, sds, given, best, best_at, depth, largest_likelihood, foreign, scales })
    }

    /// Some of the values, by their numbers. The largest likelihood stays that of all: it bounds what is credible anywhere.
    ///
    /// # Errors
    /// [`Error::NoFiniteValue`] when all of them are −∞.
    pub(crate) fn subset(&self, members: &[usize]) -> Result<Self> {
        let subset = Self::from_parts(
            self.nodes.select(members),
            members.iter().map(|&i| self.f[i]).collect(),
            members.iter().map(|&i| self.sds[i]).collect(),
            members.iter().map(|&i| self.given[i]).collect(),
            self.largest_likelihood,
        )?;
        Ok(subset.on(&self.scales))
    }

    /// The same values of parameters on these scales.
    pub(crate) fn on(self, scales: &[Scale]) -> Self {
        Self { scales: scales.to_vec(), ..self }
    }

    /// The same values, of which some belong to another peak.
    pub(crate) fn without(&self, foreign: &[usize]) -> Self {
        let mut known = self.clone();
        known.foreign.iter_mut().enumerate().for_each(|(i, f)| *f = foreign.contains(&i));
        known
    }

    /// The numbers of those that belong to another peak.
    pub(crate) fn foreign(&self) -> Vec<usize> {
        (0..self.foreign.len()).filter(|&i| self.foreign[i]).collect()
    }

    /// Values that matter by their height, but not to a posterior in a region: they are far higher than it explains, and there is a gap around them. None
    /// if they are so much higher than all others that these are nothing beside them.
    pub(crate) fn strangers(&self, region: &Region) -> Result<Vec<usize>> {
        let view = View::made(region.clone())?;
        let rows: Vec<(usize, Vec<f64>)> =
            self.near().rows.iter().map(|r| (r.0, view.enter(self.nodes.row(r.0)))).collect();
        let explained =
            |(i, x): &(usize, Vec<f64>)| self.depth[*i] >= STRANGE * 0.5 * x.iter().map(|v| v * v).sum::<f64>();
        let (mut own, mut others): (Vec<_>, Vec<_>) = rows.into_iter().partition(explained);
        // What is near to what belongs to the posterior belongs to it.
        loop {
            let near = |other: &(usize, Vec<f64>)| own.iter().any(|o| square_distance(&o.1, &other.1) < GAP * GAP);
            let (more, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(near);
            others = rest;
            if more.is_empty() {
                break;
            }
            own.extend(more);
        }
        let highest = own.iter().map(|o| self.depth[o.0]).fold(f64::INFINITY, f64::min);
        Ok(if highest > high(self.dim()) { Vec::new() } else { others.into_iter().map(|o| o.0).collect() })
    }

    /// The finite values that a process on the values that matter leaves out, `active` ones aside.
    pub(crate) fn left_out(&self, active: &[usize]) -> Vec<usize> {
        self.near().far.into_iter().filter(|i| self.depth[*i].is_finite() && !active.contains(i)).collect()
    }

    pub(crate) fn dim(&self) -> usize {
        self.nodes.dim()
    }

    pub(crate) fn len(&self) -> usize {
        self.f.len()
    }

    /// The standard deviation of the noise that came with a value.
    pub(crate) fn noise(&self, i: usize) -> f64 {
        self.sds[i]
    }

    /// Whether any value came with the standard deviation of its noise.
    pub(crate) fn noise_given(&self) -> bool {
        self.given.iter().any(|given| *given)
    }

    pub(crate) fn best_node(&self) -> &[f64] {
        self.nodes.row(self.best_at)
    }

    /// The finite depths, smallest first; the first is zero.
    pub(crate) fn sorted_depths(&self) -> Vec<f64> {
        let mut sorted: Vec<f64> = self.depth.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// The log-likelihood below which there is nothing of the posterior.
    pub(crate) fn floor(&self) -> f64 {
        self.largest_likelihood - typical_depth(self.dim())
    }

    /// By how much the best `2(d + 1)` values differ: what may still be gained while the posterior is not found.
    pub(crate) fn unrest(&self) -> f64 {
        let sorted = self.sorted_depths();
        sorted[(2 * self.dim() + 2).min(sorted.len()) - 1]
    }

    /// How many nodes are as high as most of the posterior is.
    pub(crate) fn near_count(&self) -> usize {
        let deep = high(self.dim());
        self.depth.iter().filter(|v| **v <= deep).count()
    }

    fn data(&self, view: &View, rows: &[Row]) -> Result<Data> {
        let flat: Vec<f64> = rows.iter().flat_map(|r| view.enter(self.nodes.row(r.0))).collect();
        Ok(Data {
            nodes: Points::new(self.dim(), flat)?,
            targets: rows.iter().map(|r| r.1).collect(),
            variances: rows.iter().map(|r| r.2).collect(),
            common: rows.iter().map(|r| !self.given[r.0]).collect(),
            bend: None,
        })
    }

    /// All values, with depths `D` beyond the limit `T` compressed to `T(1 + log(D/T))`, and the logarithm of the compression's Jacobian.
    /// A likelihood of zero counts as half as deep again as the deepest finite one, or is left out.
    pub(crate) fn compressed(&self, view: &View, limit: f64, zeros: bool) -> Result<(Data, f64)> {
        let deepest = self.sorted_depths().last().copied().unwrap_or(0.0);
        let mut jacobian = 0.0;
        let rows: Vec<Row> = (0..self.f.len())
            .filter(|&i| zeros || self.depth[i].is_finite())
            .map(|i| {
                let depth = if self.depth[i].is_finite() { self.depth[i] } else { 1.5 * deepest + 10.0 };
                let seen = if depth > limit {
                    jacobian += (limit / depth).ln();
                    limit * (1.0 + (depth / limit).ln())
                } else {
                    depth
                };
                // Noise is compressed with its value.
                let shrunk = if self.given[i] && depth > limit { limit / depth } else { 1.0 };
                (i, -seen, (shrunk * self.sds[i]).powi(2))
            })
            .collect();
        Ok((self.data(view, &rows)?, jacobian))
    }

    /// The depth down to which values are sharp: all of the posterior, and enough values for a quadratic and half as many again.
    fn sharp(&self) -> f64 {
        let d = self.dim();
        let sorted = self.sorted_depths();
        let enough = (3 * coefficients(d)).div_ceil(2);
        typical_depth(d).max(sorted[enough.min(sorted.len()) - 1])
    }

    /// The values that matter, and the nodes that are left out because they are more than twice as deep as what is sharp.
    pub(crate) fn near(&self) -> Near {
        let sharp = self.sharp();
        let outer = 2.0 * sharp;
        let (mut rows, mut far) = (Vec::new(), Vec::new());
        for i in 0..self.f.len() {
            // What noise alone may have made low stays: to leave it out would leave the high ones.
            let depth = self.depth[i] - if self.given[i] { SURE * self.sds[i] } else { 0.0 };
            if depth <= outer && !self.foreign[i] {
                let tolerance = TOLERANCE * (depth - sharp).max(0.0);
                rows.push((i, -self.depth[i], self.sds[i].powi(2) + tolerance * tolerance));
            } else {
                far.push(i);
            }
        }
        Near { rows, far, outer }
    }

    /// The data of a process on the values that matter and on the `active` of those left out, which are taken to be at the outer depth.
    pub(crate) fn near_data(
        &self,
        view: &View,
        near: &Near,
        active: &[usize],
        bend: Option<&Straight>,
    ) -> Result<Data> {
        let mut rows = near.rows.clone();
        rows.extend(active.iter().map(|&i| (i, -near.outer, (TOLERANCE * near.outer).powi(2))));
        Ok(Data { bend: bend.cloned(), ..self.data(view, &rows)? })
    }

    /// What a [`Support`] rests on: half the distance from each node to the nearest one on the other side of the likelihood's edge, negative where the
    /// likelihood is zero. The edge may be anywhere in between, so the variance is that of a uniform distribution.
    pub(crate) fn distances(&self, view: &View, near: &Near) -> Result<Data> {
        let place = |i: usize| view.enter(self.nodes.row(i));
        let inside: Vec<Vec<f64>> = near.rows.iter().map(|r| place(r.0)).collect();
        let zero = near.far.iter().filter(|&&i| self.depth[i].is_infinite());
        let outside: Vec<Vec<f64>> = zero.map(|&i| place(i)).collect();
        let nearest = |x: &[f64], others: &[Vec<f64>]| {
            0.5 * others.iter().map(|y| square_distance(x, y)).fold(f64::INFINITY, f64::min).sqrt()
        };
        let mut targets: Vec<f64> = inside.iter().map(|x| nearest(x, &outside)).collect();
        targets.extend(outside.iter().map(|x| -nearest(x, &inside)));
        let variances = targets.iter().map(|t| t * t / 3.0).collect();
        let common = vec![true; targets.len()];
        Ok(Data { nodes: Points::from_rows(&[inside, outside].concat())?, targets, variances, common, bend: None })
    }

    /// Nodes left out, not `active` yet, at which the process expects more than there can be.
    pub(crate) fn contradicted(
        &self,
        view: &View,
        process: &Process,
        near: &Near,
        active: &[usize],
    ) -> Result<Vec<usize>> {
        let left: Vec<usize> = near.far.iter().copied().filter(|i| !active.contains(i) && !self.foreign[*i]).collect();
        let flat: Vec<f64> = left.iter().flat_map(|&i| view.enter(self.nodes.row(i))).collect();
        let means = process.mean(&Points::new(self.dim(), flat)?);
        Ok(left.into_iter().zip(means).filter(|(_, m)| *m > -near.outer).map(|(i, _)| i).collect())
    }

    /// The variance with which a value of this depth is compared.
    pub(crate) fn tolerance(&self, depth: f64) -> f64 {
        (TOLERANCE * (depth - self.sharp()).max(0.0)).powi(2)
    }

    /// The second moments of the best `2(d + 1)` nodes about the very best: a region that moves, turns and shrinks with them. Half of
    /// what ties the coordinates together is kept, since few nodes say little about it.
    pub(crate) fn elite(&self) -> Region {
        let d = self.dim();
        let mut order: Vec<usize> = (0..self.f.len()).filter(|&i| i != self.best_at && self.f[i].is_finite()).collect();
        order.sort_by(|&a, &b| self.depth[a].total_cmp(&self.depth[b]));
        order.truncate(2 * (d + 1));
        let centre = self.best_node();
        let mut covariance = vec![0.0; d * d];
        for &i in &order {
            let u = self.nodes.row(i);
            for a in 0..d {
                for b in 0..d {
                    covariance[a * d + b] += (u[a] - centre[a]) * (u[b] - centre[b]) / order.len() as f64;
                }
            }
        }
        let mean = (0..d).map(|a| covariance[a * d + a]).sum::<f64>() / d as f64;
        if mean.is_nan() || mean <= 0.0 {
            return Region::round(centre, 1.0);
        }
        for a in 0..d {
            for b in 0..d {
                covariance[a * d + b] =
                    if a == b { covariance[a * d + b] + 0.05 * mean } else { 0.5 * covariance[a * d + b] };
            }
        }
        Region { centre: centre.to_vec(), covariance }
    }

    /// `log` of the largest density relative to the prior's that is credible, in the coordinates of a view: a little more than the largest
    /// likelihood seen.
    pub(crate) fn ceiling(&self, view: &View) -> f64 {
        self.largest_likelihood - self.best + 2.0 + 0.5 * self.dim() as f64 - view.log_volume
    }

    /// The log-likelihood of a value.
    pub(crate) fn log_likelihood(&self, i: usize) -> f64 {
        self.f[i] - log_prior(self.nodes.row(i))
    }

    /// The largest log-likelihood among the values that matter.
    pub(crate) fn largest_near(&self) -> f64 {
        self.near().rows.iter().map(|r| self.log_likelihood(r.0)).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Where the climb to the surrogate's maxima begins: the best nodes and the middle of the view.
    pub(crate) fn starts(&self, view: &View) -> Vec<Vec<f64>> {
        let mut order: Vec<usize> = (0..self.f.len()).collect();
        order.sort_by(|&a, &b| self.depth[a].total_cmp(&self.depth[b]));
        let mut starts: Vec<Vec<f64>> = order.iter().take(8).map(|&i| view.enter(self.nodes.row(i))).collect();
        starts.push(vec![0.0; self.dim()]);
        starts
    }
}

/// The values that matter to the integral.
#[derive(Debug, Clone)]
pub(crate) struct Near {
    rows: Vec<Row>,
    far: Vec<usize>,
    outer: f64,
}

impl Near {
    /// The numbers of the values that matter.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.rows.iter().map(|row| row.0)
    }

    /// Whether a node is left out.
    pub(crate) fn leaves_out(&self, i: usize) -> bool {
        self.far.contains(&i)
    }

    /// The places, among those that matter, of nodes from number `first` on.
    pub(crate) fn places(&self, first: usize) -> impl Iterator<Item = usize> {
        self.rows.iter().enumerate().filter(move |(_, row)| row.0 >= first).map(|(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values around the origin, whose posterior has a standard deviation of 0.1 in each of two coordinates, and further ones at places of their own, so
    /// many nats below the best.
    fn known(further: &[([f64; 2], f64)]) -> Known {
        let mut nodes: Vec<Vec<f64>> = Vec::new();
        let mut depths = Vec::new();
        for i in 0..24 {
            let (angle, radius) = (0.7 * f64::from(i), 0.015 * f64::from(i));
            nodes.push(vec![radius * angle.cos(), radius * angle.sin()]);
            depths.push(0.5 * (radius / 0.1).powi(2));
        }
        for (at, depth) in further {
            nodes.push(at.to_vec());
            depths.push(*depth);
        }
        let logs: Vec<f64> = nodes.iter().zip(&depths).map(|(u, d)| -d - log_prior(u)).collect();
        let count = logs.len();
        Known::new(Points::from_rows(&nodes).unwrap(), &logs, vec![0.0; count], vec![false; count]).unwrap()
    }

    fn posterior() -> Region {
        Region { centre: vec![0.0, 0.0], covariance: vec![0.01, 0.0, 0.0, 0.01] }
    }

    #[test]
    fn values_of_another_peak_are_strangers() {
        let lower = [([2.0, 0.0], 9.0), ([2.0, 0.1], 8.0), ([1.9, 0.0], 11.0)];
        let known = known(&lower);
        assert_eq!(known.strangers(&posterior()).unwrap(), [24, 25, 26]);
        let alone = known.without(&[24, 25, 26]);
        assert_eq!(alone.near().rows.len(), known.near().rows.len() - 3);
        assert_eq!(alone.foreign(), [24, 25, 26]);
        // They are what a climb begins with.
        assert!([24, 25, 26].iter().all(|i| alone.left_out(&[]).contains(i)));
    }

    #[test]
    fn an_arm_of_the_posterior_is_no_stranger() {
        let arm: Vec<([f64; 2], f64)> = (1..6).map(|i| ([0.35 + 0.4 * f64::from(i), 0.0], 6.0)).collect();
        assert!(known(&arm).strangers(&posterior()).unwrap().is_empty());
        // Without its nearer half there is a gap.
        assert_eq!(known(&arm[3..]).strangers(&posterior()).unwrap(), [24, 25]);
    }

    #[test]
    fn a_higher_peak_is_a_stranger_until_the_posterior_is_nothing_beside_it() {
        assert_eq!(known(&[([2.0, 0.0], -3.0)]).strangers(&posterior()).unwrap(), [24]);
        assert!(known(&[([2.0, 0.0], -30.0)]).strangers(&posterior()).unwrap().is_empty());
    }
}
