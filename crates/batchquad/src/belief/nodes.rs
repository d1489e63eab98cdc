//! Nodes that the model cannot tell apart are one node. [`MATH.md` §11](crate::math).

use std::collections::BTreeMap;

use crate::{
    error::{Error, Result},
    interrupt::check,
    numeric::log_sum::log_sum_exp,
    points::Points,
};

/// Nodes closer than this, in latent coordinates, are one node.
///
/// With a jitter of `10⁻¹⁰` two nodes `10⁻⁵` lengthscales apart are the same to the kernel (`1 − k ≈ ½·10⁻¹⁰`). Kept
/// apart they add nothing when they agree, and weights of `10⁹` when they do not.
pub const COINCIDENT: f64 = 1e-5;

/// Log-likelihoods at one node that differ by more than this contradict each other.
pub const CONTRADICTION: f64 = 0.05;

/// With so many values hyperparameters are searched where there are more: a marginal likelihood costs `n³` and is needed dozens of times.
const ENOUGH: usize = 500;

/// The numbers of the values with which hyperparameters are searched, at equal distances in the order of all `n`; none where all of them are few enough.
pub(crate) fn enough(n: usize) -> Option<Vec<usize>> {
    (n > ENOUGH).then(|| (0..ENOUGH).map(|k| k * n / ENOUGH).collect())
}

/// Distinct nodes with their log-likelihoods.
#[derive(Debug, Clone, PartialEq)]
pub struct Nodes {
    /// The nodes, each where the first of its kind was.
    pub points: Points,
    /// The logarithm of the mean likelihood of each.
    pub log_values: Vec<f64>,
    /// The mean log-likelihood of each, which is what noise of log-likelihoods leaves unbiased; weighted by precision
    /// where that is known.
    pub log_means: Vec<f64>,
    /// The standard deviation of the mean of each as it was given with its values; none where it was not.
    pub sds: Vec<Option<f64>>,
    /// How many values each has.
    pub counts: Vec<usize>,
    /// The standard deviation of the mean of each, from how its values scatter; zero for a single one.
    pub scatter: Vec<f64>,
    /// How many values were joined to a node that was there before.
    pub merged: usize,
    /// How many nodes have values that contradict each other: the likelihood is noisy, or jumps.
    pub contradictory: usize,
    /// Of these, how many have values that came with the standard deviation of their noise.
    pub explained: usize,
    /// How many nodes are not among these because they would be too many.
    pub left_out: usize,
}

impl Nodes {
    /// Joins what coincides: a node's likelihood is the mean of those told there. Cost: `n(d + log n)`.
    ///
    /// # Errors
    /// [`Error::Length`] when there is not one value per node, and with [`Error::NonFinitePoint`] as
    /// [`Points::from_rows`].
    pub fn new(rows: &[Vec<f64>], log_values: &[f64]) -> Result<Self> {
        Self::noisy(rows, log_values, &vec![None; rows.len()], None)
    }

    /// The same for values of which some came with the standard deviation `sᵢ` of their noise, and `common` is that of
    /// the others where it is known: a node with such values has the mean `Σwᵢlᵢ/Σwᵢ`, `wᵢ = 1/sᵢ²`, and its standard
    /// deviation `(Σwᵢ)^(−½)`.
    ///
    /// # Errors
    /// As [`Nodes::new`].
    pub fn noisy(rows: &[Vec<f64>], log_values: &[f64], sds: &[Option<f64>], common: Option<f64>) -> Result<Self> {
        for (what, found) in [("log-likelihoods", log_values.len()), ("standard deviations", sds.len())] {
            if found != rows.len() {
                return Err(Error::length(what, rows.len(), found));
            }
        }
        let mut groups: Vec<(usize, Vec<f64>)> = Vec::new();
        let mut own: Vec<Vec<Option<f64>>> = Vec::new();
        let mut places = Places::default();
        for (i, ((row, value), sd)) in rows.iter().zip(log_values).zip(sds).enumerate() {
            let same = |j: usize| {
                let square: f64 = rows[j].iter().zip(row).map(|(a, b)| (a - b) * (a - b)).sum();
                square < COINCIDENT * COINCIDENT
            };
            match places.near(row).filter(|&g| same(groups[g].0)).min() {
                Some(group) => {
                    groups[group].1.push(*value);
                    own[group].push(*sd);
                }
                None => {
                    places.add(row, groups.len());
                    groups.push((i, vec![*value]));
                    own.push(vec![*sd]);
                }
            }
        }
        let spread = |values: &[f64]| {
            let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            values.iter().any(|v| largest - v > CONTRADICTION)
        };
        let firsts: Vec<&[f64]> = groups.iter().map(|(first, _)| rows[*first].as_slice()).collect();
        let weighted = groups.iter().zip(&own).map(|((_, v), own)| match precise_mean(v, own, common) {
            Some((mean, sd)) => (mean, Some(sd)),
            None => (v.iter().sum::<f64>() / v.len() as f64, None),
        });
        let (log_means, sds): (Vec<f64>, Vec<Option<f64>>) = weighted.unzip();
        let explained = groups.iter().zip(&sds).filter(|((_, v), sd)| sd.is_some() && spread(v)).count();
        Ok(Self {
            points: Points::from_rows(&firsts)?,
            log_values: groups.iter().map(|(_, v)| mean_likelihood(v)).collect(),
            log_means,
            sds,
            counts: groups.iter().map(|(_, v)| v.len()).collect(),
            scatter: groups.iter().map(|(_, v)| scatter(v)).collect(),
            merged: rows.len() - groups.len(),
            contradictory: groups.iter().filter(|(_, v)| spread(v)).count(),
            explained,
            left_out: 0,
        })
    }

    /// At most `most` of the nodes, in their order, and how many were left out: beyond a few thousand a belief takes
    /// hours and tens of gigabytes, and neighbours say what has been said.
    ///
    /// Those kept are far from each other where the tempered posterior `p = ℓ^½ N(u; 0, I)` is small and closer where
    /// it is large: each in turn is the one whose least `(pᵢpⱼ)^(1/d) |uᵢ − uⱼ|²` to those before is greatest (a
    /// minimum energy design, Joseph et al. 2015). Cost: `n·most·d`.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn thinned(self, most: usize) -> Result<Self> {
        let n = self.points.len();
        if n <= most {
            return Ok(self);
        }
        let dim = self.points.dim();
        let log_prior = |u: &[f64]| u.iter().map(|u| -0.5 * u * u).sum::<f64>();
        let logs: Vec<f64> = self.points.rows().zip(&self.log_values).map(|(u, l)| 0.5 * l + log_prior(u)).collect();
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Far out all are alike, and none is zero: distance still counts.
        let charge: Vec<f64> = logs.iter().map(|l| ((l - top) / dim as f64).clamp(-300.0, 0.0).exp()).collect();
        let mut least = vec![f64::INFINITY; n];
        let mut kept = vec![false; n];
        let mut next = (0..n).find(|&i| logs[i] == top).unwrap_or(0);
        for _ in 0..most {
            check()?;
            kept[next] = true;
            let (here, weight) = (self.points.row(next).to_vec(), charge[next]);
            let mut best = (f64::NEG_INFINITY, next);
            for (i, row) in self.points.rows().enumerate().filter(|(i, _)| !kept[*i]) {
                let square: f64 = row.iter().zip(&here).map(|(a, b)| (a - b) * (a - b)).sum();
                least[i] = least[i].min(weight * charge[i] * square);
                if least[i] > best.0 {
                    best = (least[i], i);
                }
            }
            next = best.1;
        }
        let rows: Vec<&[f64]> = self.points.rows().zip(&kept).filter(|(_, kept)| **kept).map(|(row, _)| row).collect();
        Ok(Self {
            points: Points::from_rows(&rows)?,
            log_values: chosen(&self.log_values, &kept),
            log_means: chosen(&self.log_means, &kept),
            sds: chosen(&self.sds, &kept),
            counts: chosen(&self.counts, &kept),
            scatter: chosen(&self.scatter, &kept),
            merged: self.merged,
            contradictory: self.contradictory,
            explained: self.explained,
            left_out: n - most,
        })
    }
}

/// Those of `all` that are kept, in their order.
fn chosen<T: Copy>(all: &[T], kept: &[bool]) -> Vec<T> {
    all.iter().zip(kept).filter(|(_, kept)| **kept).map(|(one, _)| *one).collect()
}

/// Nodes by their projection on a slanted line: those near to each other are near on it.
#[derive(Default)]
struct Places(BTreeMap<i64, Vec<usize>>);

impl Places {
    /// The cell of the line that a point falls into; cells are a little wider than what coincides.
    fn cell(row: &[f64]) -> i64 {
        // Slanted, so that the points of a grid do not fall together.
        let slant = |k: usize| 1.0 + (k as f64 * 0.618_033_988_749_895).fract();
        let norm = (0..row.len()).map(|k| slant(k) * slant(k)).sum::<f64>().sqrt();
        let along = row.iter().enumerate().map(|(k, u)| slant(k) * u).sum::<f64>() / norm;
        (along / (4.0 * COINCIDENT)).floor() as i64
    }

    fn near(&self, row: &[f64]) -> impl Iterator<Item = usize> {
        let cell = Self::cell(row);
        self.0.range(cell.saturating_sub(1)..=cell.saturating_add(1)).flat_map(|(_, groups)| groups.iter().copied())
    }

    fn add(&mut self, row: &[f64], group: usize) {
        self.0.entry(Self::cell(row)).or_default().push(group);
    }
}

/// The mean of finite values weighted by their precision, and its standard deviation: where one of them came with its
/// own and that of the others is known. Values without any noise count alone.
fn precise_mean(values: &[f64], own: &[Option<f64>], common: Option<f64>) -> Option<(f64, f64)> {
    if own.iter().all(Option::is_none) || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let sds = own.iter().map(|sd| sd.or(common)).collect::<Option<Vec<f64>>>()?;
    if let ([value], [sd]) = (values, sds.as_slice()) {
        return Some((*value, *sd));
    }
    let least = sds.iter().copied().fold(f64::INFINITY, f64::min);
    // Relative to the most precise, so that no square overflows.
    let weight = |sd: f64| match (least == 0.0, sd == 0.0) {
        (true, exact) => f64::from(u8::from(exact)),
        (false, _) => (least / sd).powi(2),
    };
    let total: f64 = sds.iter().map(|sd| weight(*sd)).sum();
    let mean = values.iter().zip(&sds).map(|(v, sd)| weight(*sd) * v).sum::<f64>() / total;
    Some((mean, least / total.sqrt()))
}

/// `√(Σ (lᵢ − l̄)²/(n(n − 1)))` of finite values.
fn scatter(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 || !mean.is_finite() {
        return 0.0;
    }
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n * (n - 1.0))).sqrt()
}

/// `log(Σ ℓᵢ / n)`; a single value comes back to its bits.
fn mean_likelihood(values: &[f64]) -> f64 {
    match values {
        [only] => *only,
        _ => log_sum_exp(values) - (values.len() as f64).ln(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_coincides_is_found_wherever_it_is() {
        // On a grid, far out, and a hair on either side of a cell's edge; beside every point one that coincides and one
        // that does not.
        let mut rows: Vec<Vec<f64>> =
            (0..400).map(|i| vec![f64::from(i % 20) - 10.0, f64::from(i / 20) - 10.0]).collect();
        rows.extend((0..2000).map(|i| vec![1e-5 * f64::from(i) * 1.7, 37.0]));
        let beside = |d: f64| rows.iter().map(|r| vec![r[0] + 0.6 * d, r[1] - 0.7 * d]).collect::<Vec<_>>();
        let all = [rows.clone(), beside(1e-5), beside(-1e-5)].concat();
        let nodes = Nodes::new(&all, &vec![0.0; all.len()]).unwrap();
        // By comparing all with all.
        let mut firsts: Vec<&Vec<f64>> = Vec::new();
        for row in &all {
            let near = |f: &&Vec<f64>| (f[0] - row[0]).powi(2) + (f[1] - row[1]).powi(2) < COINCIDENT * COINCIDENT;
            if !firsts.iter().any(near) {
                firsts.push(row);
            }
        }
        assert_eq!(
            nodes.points.rows().map(<[f64]>::to_vec).collect::<Vec<_>>(),
            firsts.into_iter().cloned().collect::<Vec<_>>()
        );
    }

    #[test]
    fn too_many_nodes_are_thinned_to_those_that_say_most() {
        let rows: Vec<Vec<f64>> =
            (0..40_000).map(|i| vec![f64::from(i % 200) * 0.04 - 4.0, f64::from(i / 200) * 0.04 - 4.0]).collect();
        let logs: Vec<f64> = rows.iter().map(|r| -8.0 * ((r[0] - 1.0).powi(2) + r[1].powi(2))).collect();
        let all = Nodes::new(&rows, &logs).unwrap();
        assert_eq!(all.clone().thinned(40_000).unwrap(), all);
        let few = all.clone().thinned(100).unwrap();
        assert_eq!((few.points.len(), few.log_values.len(), few.left_out), (100, 100, 39_900));
        // The best is there, most are where the posterior is, and some are everywhere.
        assert!(few.log_values.contains(&logs.iter().copied().fold(f64::NEG_INFINITY, f64::max)));
        let near = few.points.rows().filter(|r| (r[0] - 0.9).abs() < 1.0 && r[1].abs() < 1.0).count();
        assert!((50..100).contains(&near), "{near}");
        let same = |r: &[f64]| rows.iter().position(|x| x.as_slice() == r);
        let kept: Vec<_> = few.points.rows().map(|r| same(r).unwrap()).collect();
        assert!(kept.windows(2).all(|w| w[0] < w[1]), "in their order");
    }

    #[test]
    fn what_is_known_of_a_node_stays_with_it_when_others_go() {
        // Node i has i % 3 + 1 values that scatter by an amount of its own.
        let told =
            |i: u32| (0..=i % 3).map(move |k| (vec![0.1 * f64::from(i)], -f64::from(i) - 0.01 * f64::from(i * k)));
        let (rows, logs): (Vec<_>, Vec<_>) = (0..60).flat_map(told).unzip();
        let all = Nodes::new(&rows, &logs).unwrap();
        let few = all.clone().thinned(20).unwrap();
        assert_eq!((few.points.len(), few.merged, few.contradictory), (20, all.merged, all.contradictory));
        for (i, row) in few.points.rows().enumerate() {
            let j = all.points.rows().position(|r| r == row).unwrap();
            let of =
                |nodes: &Nodes, k: usize| (nodes.log_values[k], nodes.log_means[k], nodes.counts[k], nodes.scatter[k]);
            assert_eq!(of(&few, i), of(&all, j));
        }
        assert_eq!([few.log_values.len(), few.log_means.len(), few.counts.len(), few.scatter.len()], [20; 4]);
    }

    #[test]
    fn values_with_a_known_noise_are_averaged_by_their_precision() {
        let rows = vec![vec![0.0]; 3];
        let one = |values: &[f64], sds: &[Option<f64>], common: Option<f64>| {
            let nodes = Nodes::noisy(&rows[..values.len()], values, sds, common).unwrap();
            assert_eq!(nodes.points.len(), 1);
            (nodes.log_means[0], nodes.sds[0])
        };
        // Weights 1/0.01 and 1/0.04: four fifths of the first.
        let (mean, sd) = one(&[-1.0, -2.0], &[Some(0.1), Some(0.2)], None);
        assert!((mean + 1.2).abs() < 1e-14 && (sd.unwrap() - 125.0_f64.sqrt().recip()).abs() < 1e-15);
        // The common one stands in for those without, and alone it is none that was given.
        assert_eq!(one(&[-1.0, -2.0], &[Some(0.1), None], Some(0.2)), (mean, sd));
        assert_eq!(one(&[-1.0, -2.0], &[None, None], Some(0.2)), (-1.5, None));
        // Without it nobody knows how much the other is worth.
        assert_eq!(one(&[-1.0, -2.0], &[Some(0.1), None], None), (-1.5, None));
        // What is exact counts alone, also beside the smallest and the largest.
        assert_eq!(one(&[-1.0, -2.0, -4.0], &[Some(0.5), Some(0.0), Some(0.0)], None), (-3.0, Some(0.0)));
        let (mean, sd) = one(&[-1.0, -2.0], &[Some(1e-200), Some(1e200)], None);
        assert_eq!((mean, sd), (-1.0, Some(1e-200)));
        // A likelihood of zero is zero, and a single value comes back to its bits.
        assert_eq!(one(&[f64::NEG_INFINITY], &[Some(0.3)], None), (f64::NEG_INFINITY, None));
        assert_eq!(one(&[-0.1], &[Some(0.3)], None), (-0.1, Some(0.3)));
    }

    #[test]
    fn what_coincides_is_joined_and_counted() {
        let rows = [vec![0.0, 0.0], vec![1.0, 0.0], vec![1e-14, 0.0], vec![1.0, 1e-6], vec![0.0, 1e-3]];
        let logs = [-1.0, 0.0, -1.0, 0.3, f64::NEG_INFINITY];
        let nodes = Nodes::new(&rows, &logs).unwrap();
        assert_eq!(nodes.points.len(), 3);
        assert_eq!((nodes.merged, nodes.contradictory), (2, 1));
        assert!((nodes.log_values[0] + 1.0).abs() < 1e-15);
        assert!((nodes.log_values[1] - (0.5 * (1.0 + 0.3_f64.exp())).ln()).abs() < 1e-15);
        assert_eq!(nodes.log_values[2], f64::NEG_INFINITY);
        // Likelihood zero and not zero at one place is a contradiction too.
        let clash = Nodes::new(&[vec![0.0], vec![0.0]], &[f64::NEG_INFINITY, 0.0]).unwrap();
        assert_eq!(clash.contradictory, 1);
        assert!((clash.log_values[0] + 2.0_f64.ln()).abs() < 1e-15);
        let zero = Nodes::new(&[vec![0.0], vec![0.0]], &[f64::NEG_INFINITY; 2]).unwrap();
        assert_eq!((zero.contradictory, zero.log_values[0]), (0, f64::NEG_INFINITY));
    }
}
