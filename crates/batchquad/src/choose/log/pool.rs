//! Covariances of candidates. `MATH.md` §15.

use std::ops::Range;

use crate::{
    belief::log::{Placed, Process},
    error::Result,
    numeric::{
        linalg::{Factor, Jitter, Matrix, transpose_mul},
        simd::dot,
    },
    points::Points,
};

/// What is added to the covariance of points that are waited for, relative to what it was before any value: rounding of differences of large numbers.
const ROUNDING: Jitter = Jitter { nugget: 1e-14, rungs: 10 };

/// When at least so many candidates are taken, all covariances are worked out at once: a product of matrices is as quick as that many single columns.
const MANY: usize = 48;

/// Candidates with their covariances, given values that are known and at places that are waited for, conditioned on one candidate after the other.
pub(super) struct Pool<'a> {
    process: &'a Process,
    points: Points,
    placed: Placed,
    /// What values explain: the prior covariance of candidates `i` and `j` falls by the product of columns `i` and `j`.
    half: Matrix,
    /// The covariances, where they are worked out together.
    covariance: Option<Matrix>,
    /// What conditioning has taken from the covariances: `c(i, j)` falls by the product of entries `i` and `j` of each row.
    rows: Vec<Vec<f64>>,
    pub(super) variance: Vec<f64>,
    /// The candidates that stand for the integral.
    integral: Range<usize>,
    /// The covariance of each candidate with the logarithm of the integral.
    pub(super) with_z: Vec<f64>,
}

impl<'a> Pool<'a> {
    /// With values at `pending` points, of which `taken` will be taken. Cost: `(n + p)²` per candidate, with `p` pending points.
    pub(super) fn new(
        process: &'a Process,
        points: Points,
        integral: Range<usize>,
        pending: &Points,
        taken: usize,
    ) -> Result<Self> {
        let placed = process.place(&points);
        let half = given(process, &placed, process.half(&placed), pending)?;
        let before = process.prior_variance(&points);
        let variance = before.iter().enumerate().map(|(j, v)| (v - dot(half.col(j), half.col(j))).max(0.0)).collect();
        let count = integral.len().max(1) as f64;
        let mut with_z = vec![0.0; points.len()];
        if !integral.is_empty() {
            let mut mean = vec![0.0; half.rows()];
            for j in integral.clone() {
                mean.iter_mut().zip(half.col(j)).for_each(|(a, h)| *a += h / count);
            }
            let rows: Vec<&[f64]> = integral.clone().map(|j| points.row(j)).collect();
            let prior = process.prior_cross(&placed, &process.place(&Points::from_rows(&rows)?));
            for j in 0..integral.len() {
                with_z.iter_mut().zip(prior.col(j)).for_each(|(q, c)| *q += c / count);
            }
            with_z.iter_mut().enumerate().for_each(|(i, q)| *q -= dot(half.col(i), &mean));
        }
        let mut pool =
            Self { process, points, placed, half, covariance: None, rows: Vec::new(), variance, integral, with_z };
        if taken >= MANY {
            pool.covariance = Some(pool.covariances());
        }
        Ok(pool)
    }

    /// The covariances of all candidates before any of them was taken. Cost: `n + p` for each pair.
    pub(super) fn covariances(&self) -> Matrix {
        let mut covariance = self.process.prior_cross(&self.placed, &self.placed);
        let explained = transpose_mul(&self.half, &self.half);
        for j in 0..covariance.cols() {
            covariance.col_mut(j).iter_mut().zip(explained.col(j)).for_each(|(c, e)| *c -= e);
        }
        covariance
    }

    /// The covariances with candidate `j` before any was taken.
    fn column(&self, j: usize) -> Result<Vec<f64>> {
        if let Some(covariance) = &self.covariance {
            return Ok(covariance.col(j).to_vec());
        }
        let one = self.process.place(&Points::from_rows(&[self.points.row(j)])?);
        let prior = self.process.prior_cross(&self.placed, &one);
        Ok((0..self.points.len()).map(|i| prior.get(i, 0) - dot(self.half.col(i), self.half.col(j))).collect())
    }

    /// A value will be known at candidate `j`. Cost: `n + p` per candidate where covariances are not worked out together, and 1 for each taken before.
    pub(super) fn condition(&mut self, j: usize) -> Result<()> {
        let mut row = self.column(j)?;
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

/// `L⁻¹ k` as it is when values at pending points are known as well: theirs are further rows.
fn given(process: &Process, placed: &Placed, half: Matrix, pending: &Points) -> Result<Matrix> {
    if pending.is_empty() {
        return Ok(half);
    }
    let waiting = process.place(pending);
    let known = process.half(&waiting);
    let (prior, explained) = (process.prior_cross(&waiting, &waiting), transpose_mul(&known, &known));
    let noise = process.hyper.noise.powi(2);
    let gram = || {
        Matrix::from_fn(pending.len(), pending.len(), |i, j| {
            prior.get(i, j) - explained.get(i, j) + if i == j { noise } else { 0.0 }
        })
    };
    let largest = process.prior_variance(pending).into_iter().fold(0.0, f64::max);
    let factor = Factor::new(gram, largest, ROUNDING)?;
    let mut more = process.prior_cross(&waiting, placed);
    let explained = transpose_mul(&known, &half);
    for j in 0..more.cols() {
        more.col_mut(j).iter_mut().zip(explained.col(j)).for_each(|(c, e)| *c -= e);
    }
    factor.half_solve(&mut more);
    let (n, p) = (half.rows(), more.rows());
    Ok(Matrix::from_fn(n + p, half.cols(), |i, j| if i < n { half.get(i, j) } else { more.get(i - n, j) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        belief::log::{Known, search},
        numeric::rng::{Purpose, Stream},
    };

    fn points(n: usize, address: u64) -> Points {
        let mut stream = Stream::new(5, Purpose::Experiment, address);
        Points::new(3, stream.normals(3 * n)).unwrap()
    }

    /// What is waited for together is as if its points had been taken one after the other, and covariances worked out together are those worked out
    /// one by one, but for rounding of variances that are 10⁴ before any value is known.
    #[test]
    fn together_is_one_by_one() {
        let nodes = points(30, 0);
        let logs: Vec<f64> = nodes.rows().map(|x| (2.0 * x[0]).sin() + 0.3 * x[1] * x[2] - dot(x, x)).collect();
        let known = Known::new(nodes, &logs, vec![0.0; 30], vec![false; 30]).unwrap();
        let process = search(&known, None, 1).unwrap().main().process.clone();
        let (candidates, pending) = (points(40, 1), points(7, 2));
        let none = Points::new(3, Vec::new()).unwrap();
        let mut single = Pool::new(&process, candidates.concat(&pending).unwrap(), 10..40, &none, 1).unwrap();
        (40..47).for_each(|j| single.condition(j).unwrap());
        let mut block = Pool::new(&process, candidates.clone(), 10..40, &pending, 1).unwrap();
        let mut all = Pool::new(&process, candidates, 10..40, &pending, MANY).unwrap();
        for j in [3, 8, 5] {
            for i in 0..40 {
                for other in [&block, &all] {
                    assert!((single.variance[i] - other.variance[i]).abs() < 1e-8, "{i}");
                    assert!((single.with_z[i] - other.with_z[i]).abs() < 1e-8, "{i}");
                }
            }
            for pool in [&mut single, &mut block, &mut all] {
                pool.condition(j).unwrap();
            }
        }
        assert!(single.variance[3] < 0.1 * process.prior_variance(&points(40, 1)).into_iter().fold(0.0, f64::max));
    }

    /// By how much the variance of `log Z` falls when values at these candidates are known.
    fn reduction(fresh: &Pool<'_>, chosen: &[usize]) -> f64 {
        let mut pool = fresh.fresh().unwrap();
        let mut total = 0.0;
        for &j in chosen {
            total += pool.tells(j);
            pool.condition(j).unwrap();
        }
        total
    }

    impl Pool<'_> {
        fn fresh(&self) -> Result<Self> {
            let none = Points::new(self.points.dim(), Vec::new())?;
            Pool::new(self.process, self.points.clone(), self.integral.clone(), &none, MANY)
        }

        /// By how much a value at one candidate lowers the variance of `log Z`.
        fn tells(&self, j: usize) -> f64 {
            self.with_z[j].powi(2) / (self.variance[j] + self.process.hyper.noise.powi(2))
        }

        fn best(&self) -> usize {
            (0..self.points.len()).max_by(|&a, &b| self.tells(a).total_cmp(&self.tells(b))).unwrap()
        }
    }

    /// Points that are chosen one after the other, and the same when each is then exchanged for the best beside all others, again and again until that
    /// brings nothing: all points of the batch are climbed together. `DESIGN.md`, why points are chosen one after the other.
    #[test]
    fn choosing_all_points_together_brings_little() {
        for (dim, count) in [(2, 30), (4, 60), (6, 90)] {
            for batch in [4, 16] {
                let mut stream = Stream::new(9, Purpose::Experiment, dim as u64);
                let nodes = Points::new(dim, stream.normals(dim * count)).unwrap();
                let logs: Vec<f64> =
                    nodes.rows().map(|x| (2.0 * x[0]).sin() + 0.3 * x[1] * x[1] * x[0] - dot(x, x)).collect();
                let known = Known::new(nodes, &logs, vec![0.0; count], vec![false; count]).unwrap();
                let process = search(&known, None, 1).unwrap().main().process.clone();
                let candidates = Points::new(dim, stream.normals(dim * 500)).unwrap();
                let none = Points::new(dim, Vec::new()).unwrap();
                let first = Pool::new(&process, candidates, 250..500, &none, MANY).unwrap();
                let before: f64 = first.with_z[250..].iter().sum::<f64>() / 250.0;
                let mut pool = first.fresh().unwrap();
                let mut greedy = Vec::new();
                for _ in 0..batch {
                    greedy.push(pool.best());
                    pool.condition(greedy[greedy.len() - 1]).unwrap();
                }
                let (mut together, mut looks) = (greedy.clone(), batch);
                loop {
                    let last = together.clone();
                    for k in 0..batch {
                        let mut pool = first.fresh().unwrap();
                        (0..batch).filter(|&l| l != k).for_each(|l| pool.condition(together[l]).unwrap());
                        let best = pool.best();
                        if pool.tells(best) > 1.0001 * pool.tells(together[k]) {
                            together[k] = best;
                        }
                        looks += batch;
                    }
                    if together == last {
                        break;
                    }
                }
                let (one, all) = (before - reduction(&first, &greedy), before - reduction(&first, &together));
                println!(
                    "{dim} parameters, batch {batch}: standard deviation of log Z {:.2e}, after the batch {:.3e}, together {:.3e} ({:.3}), {:.0} times the work",
                    before.sqrt(),
                    one.sqrt(),
                    all.sqrt(),
                    (all / one).sqrt(),
                    looks as f64 / batch as f64
                );
                assert!(all <= one * 1.000_001 && all.sqrt() > 0.7 * one.sqrt(), "{dim} {batch}: {all} {one}");
            }
        }
    }
}
