//! A bend of the coordinates, in which a bent posterior is straight: what it looks like and how it is found. `MATH.md` §15.

use serde::{Deserialize, Serialize};

use super::{proposal::Normal, view::View};
use crate::{
    numeric::{
        linalg::{Factor, Matrix},
        simd::dot,
    },
    points::Points,
};

/// A width changes by no more than a factor `e^LIMIT`, however far away.
const LIMIT: f64 = 8.0;

/// The standard deviation of the prior of each coefficient.
const COEFFICIENT: f64 = 0.3;

/// A coordinate depends on another one that tells it so many nats per point, by itself.
const TOLD: f64 = 0.01;

/// Rounds of fitting the middle and the width of a coordinate by turns.
const ROUNDS: usize = 4;

/// A residual counts as no more than so many standard deviations when a width is fitted.
const OUTLIER: f64 = 4.0;

/// `z = ψ(x)`: with `y = s + Mx`, coordinate by coordinate in some order, `z_k = (y_k − m_k) e^{−s_k}`, where `m_k` is a quadratic and `s_k` a
/// bounded linear function of the coordinates before it in that order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bend {
    shift: Vec<f64>,
    /// `M`, row by row.
    matrix: Vec<f64>,
    /// Coordinates in an order in which each depends on some of those before it.
    order: Vec<usize>,
    /// On which of them, by place in the order.
    drivers: Vec<Vec<usize>>,
    /// The coefficients of `m_k`: of 1, of each of these and of their products.
    middles: Vec<Vec<f64>>,
    /// The coefficients of `s_k` before it is bounded: of 1 and of each of these.
    widths: Vec<Vec<f64>>,
}

/// 1, the coordinates, and their products.
fn quadratic(before: &[f64], out: &mut Vec<f64>) {
    linear(before, out);
    for (a, x) in before.iter().enumerate() {
        out.extend(before[..=a].iter().map(|y| x * y));
    }
}

/// 1 and the coordinates.
fn linear(before: &[f64], out: &mut Vec<f64>) {
    out.clear();
    out.push(1.0);
    out.extend_from_slice(before);
}

/// `LIMIT tanh(l/LIMIT)`.
fn bounded(l: f64) -> f64 {
    LIMIT * (l / LIMIT).tanh()
}

/// A coordinate drives others as it is up to here; beyond, it is pressed into twice as much, so that far away is no farther in straight coordinates.
const FAR: f64 = 5.0;

/// What drives others: `y` for `|y| ≤ FAR`, `± FAR (1 + tanh(|y|/FAR − 1))` beyond; with the first two derivatives.
fn pressed(y: f64) -> (f64, f64, f64) {
    if y.abs() <= FAR {
        return (y, 1.0, 0.0);
    }
    let t = (y.abs() / FAR - 1.0).tanh();
    let first = 1.0 - t * t;
    ((FAR * (1.0 + t)).copysign(y), first, -(2.0 * t * first / FAR).copysign(y))
}

/// The way back from the straight coordinates of a bend.
#[derive(Debug, Clone)]
pub(crate) struct Back {
    pub(crate) bend: Bend,
    /// `M⁻¹`, row by row, and `log |det M|`.
    inverse: (Vec<f64>, f64),
}

impl Back {
    /// `x = ψ⁻¹(z)`, in place.
    pub(crate) fn curve(&self, point: &mut [f64]) {
        let d = point.len();
        let bend = &self.bend;
        let Scratch { mut y, mut before, mut features } = Scratch::default();
        y.resize(d, 0.0);
        for (place, &k) in bend.order.iter().enumerate() {
            before.clear();
            before.extend(bend.drivers[place].iter().map(|&a| pressed(y[a]).0));
            linear(&before, &mut features);
            let s = bounded(dot(&bend.widths[place], &features));
            quadratic(&before, &mut features);
            y[k] = dot(&bend.middles[place], &features) + point[k] * s.exp();
        }
        y.iter_mut().zip(&bend.shift).for_each(|(y, s)| *y -= s);
        point.iter_mut().zip(self.inverse.0.chunks_exact(d)).for_each(|(x, row)| *x = dot(row, &y));
    }

    /// The points in straight coordinates, and `log |∂z/∂x|` at each.
    pub(crate) fn straighten(&self, points: &Points) -> (Points, Vec<f64>) {
        let (straight, mut logs) = self.bend.straighten(points);
        logs.iter_mut().for_each(|log| *log += self.inverse.1);
        (straight, logs)
    }
}

/// The inverse of a matrix, row by row, with `log |det|`, by elimination; none where that is singular.
pub(super) fn inverse(matrix: &[f64], d: usize) -> Option<(Vec<f64>, f64)> {
    let mut left: Vec<Vec<f64>> = matrix.chunks_exact(d).map(<[f64]>::to_vec).collect();
    let mut right: Vec<Vec<f64>> = (0..d).map(|a| (0..d).map(|b| f64::from(u8::from(a == b))).collect()).collect();
    let mut log_det = 0.0;
    for c in 0..d {
        let pivot = (c..d).reduce(|a, b| if left[b][c].abs() > left[a][c].abs() { b } else { a })?;
        left.swap(c, pivot);
        right.swap(c, pivot);
        let scale = left[c][c];
        log_det += scale.abs().ln();
        left[c].iter_mut().chain(&mut right[c]).for_each(|v| *v /= scale);
        let (own, known) = (left[c].clone(), right[c].clone());
        for a in (0..d).filter(|a| *a != c) {
            let factor = left[a][c];
            left[a].iter_mut().zip(&own).chain(right[a].iter_mut().zip(&known)).for_each(|(v, w)| *v -= factor * w);
        }
    }
    let flat: Vec<f64> = right.into_iter().flatten().collect();
    (log_det.is_finite() && flat.iter().all(|v| v.is_finite())).then_some((flat, log_det))
}

/// Scratch for one point.
#[derive(Default)]
struct Scratch {
    y: Vec<f64>,
    before: Vec<f64>,
    features: Vec<f64>,
}

impl Bend {
    /// `y`, then `z` in place of it; returns `Σ s_k`.
    fn straighten_into(&self, x: &[f64], scratch: &mut Scratch, z: &mut [f64]) -> f64 {
        let d = x.len();
        let Scratch { y, before, features } = scratch;
        y.clear();
        y.extend(self.matrix.chunks_exact(d).zip(&self.shift).map(|(row, s)| s + dot(row, x)));
        let mut total = 0.0;
        for (place, &k) in self.order.iter().enumerate() {
            let (middle, width) = (&self.middles[place], &self.widths[place]);
            before.clear();
            before.extend(self.drivers[place].iter().map(|&a| pressed(y[a]).0));
            linear(before, features);
            let s = bounded(dot(width, features));
            quadratic(before, features);
            z[k] = (y[k] - dot(middle, features)) * (-s).exp();
            total += s;
        }
        total
    }

    /// The points in straight coordinates, and `log |∂z/∂x|` at each, but for a constant.
    pub(crate) fn straighten(&self, points: &Points) -> (Points, Vec<f64>) {
        let d = points.dim();
        let mut straight = points.clone();
        let mut scratch = Scratch::default();
        let logs = points
            .rows()
            .enumerate()
            .map(|(i, x)| -self.straighten_into(x, &mut scratch, &mut straight.as_mut_slice()[i * d..(i + 1) * d]))
            .collect();
        (straight, logs)
    }

    /// What leads back from straight coordinates; none where `M` has no inverse.
    pub(crate) fn back(&self) -> Option<Back> {
        Some(Back { bend: self.clone(), inverse: inverse(&self.matrix, self.shift.len())? })
    }

    /// One point in straight coordinates.
    pub(crate) fn at(&self, x: &[f64]) -> Vec<f64> {
        let mut z = vec![0.0; x.len()];
        self.straighten_into(x, &mut Scratch::default(), &mut z);
        z
    }

    /// A value with its gradient and, if there is one, its Hessian in straight coordinates as those in `x`, plus `log |∂z/∂x|`.
    pub(crate) fn pull(
        &self,
        x: &[f64],
        (value, gradient, hessian): (f64, &[f64], &[f64]),
    ) -> (f64, Vec<f64>, Vec<f64>) {
        let d = x.len();
        let with_hessian = !hessian.is_empty();
        let mut scratch = Scratch::default();
        let mut z = vec![0.0; d];
        let value = value - self.straighten_into(x, &mut scratch, &mut z);
        let y = scratch.y;
        // ∂z_k/∂y_a, row by row, and the second derivatives summed over k with the gradient.
        let mut jacobian = vec![0.0; d * d];
        let mut slope = vec![0.0; d];
        let mut bend = vec![0.0; if with_hessian { d * d } else { 0 }];
        for (at, &k) in self.order.iter().enumerate() {
            let before = &self.drivers[at];
            let place = before.len();
            let (middle, width) = (&self.middles[at], &self.widths[at]);
            let drives: Vec<(f64, f64, f64)> = before.iter().map(|&a| pressed(y[a])).collect();
            let l = width[0] + drives.iter().zip(&width[1..]).map(|(t, w)| w * t.0).sum::<f64>();
            let t = (l / LIMIT).tanh();
            let (s, s1, s2) = (LIMIT * t, 1.0 - t * t, -2.0 * t * (1.0 - t * t) / LIMIT);
            let shrink = (-s).exp();
            // Derivatives of the middle.
            let mut m1: Vec<f64> = middle[1..=place].to_vec();
            let mut m2 = vec![0.0; place * place];
            let mut at = 1 + place;
            for a in 0..place {
                for b in 0..=a {
                    let c = middle[at];
                    at += 1;
                    m1[a] += c * drives[b].0;
                    m1[b] += c * drives[a].0;
                    m2[a * place + b] += c;
                    m2[b * place + a] += c;
                }
            }
            // Of these and of `l` in the coordinates themselves.
            for a in 0..place {
                for b in 0..place {
                    m2[a * place + b] *= drives[a].1 * drives[b].1;
                }
                m2[a * place + a] += m1[a] * drives[a].2;
                m1[a] *= drives[a].1;
            }
            let l1: Vec<f64> = drives.iter().zip(&width[1..]).map(|(t, w)| w * t.1).collect();
            let l2: Vec<f64> = drives.iter().zip(&width[1..]).map(|(t, w)| w * t.2).collect();
            jacobian[k * d + k] = shrink;
            for a in 0..place {
                jacobian[k * d + before[a]] = -m1[a] * shrink - z[k] * s1 * l1[a];
                slope[before[a]] -= s1 * l1[a];
            }
            if with_hessian {
                let g = gradient[k];
                for a in 0..place {
                    let (wa, ia) = (l1[a], before[a]);
                    let own = -g * shrink * s1 * wa;
                    bend[k * d + ia] += own;
                    bend[ia * d + k] += own;
                    bend[ia * d + ia] -= (g * z[k] + 1.0) * s1 * l2[a];
                    for b in 0..place {
                        let (wb, ib) = (l1[b], before[b]);
                        let second = shrink * (-m2[a * place + b] + s1 * (m1[a] * wb + m1[b] * wa))
                            + z[k] * (s1 * s1 - s2) * wa * wb;
                        bend[ia * d + ib] += g * second - s2 * wa * wb;
                    }
                }
            }
        }
        // From z to y, from y to x.
        let through = |g: &[f64], rows: &[f64]| -> Vec<f64> {
            (0..d).map(|a| (0..d).map(|k| g[k] * rows[k * d + a]).sum()).collect()
        };
        let mut down = through(gradient, &jacobian);
        down.iter_mut().zip(&slope).for_each(|(g, s)| *g += s);
        let down = through(&down, &self.matrix);
        if !with_hessian {
            return (value, down, Vec::new());
        }
        let congruent = |inner: &[f64], rows: &[f64]| -> Vec<f64> {
            let half: Vec<f64> =
                (0..d * d).map(|i| (0..d).map(|k| inner[i / d * d + k] * rows[k * d + i % d]).sum()).collect();
            (0..d * d).map(|i| (0..d).map(|k| rows[k * d + i / d] * half[k * d + i % d]).sum()).collect()
        };
        let mut curved = congruent(hessian, &jacobian);
        curved.iter_mut().zip(&bend).for_each(|(h, b)| *h += b);
        (value, down, congruent(&curved, &self.matrix))
    }

    /// How many coefficients it has that would be zero if nothing were bent.
    pub(crate) fn coefficients(&self) -> usize {
        self.middles.iter().chain(&self.widths).map(|c| c.len() - 1).sum()
    }

    /// The same bend in the coordinates of another view.
    pub(crate) fn moved(&self, from: &View, to: &View) -> Self {
        let d = self.shift.len();
        let origin = from.enter(&to.leave(&vec![0.0; d]));
        let mut unit = vec![0.0; d];
        let columns: Vec<Vec<f64>> = (0..d)
            .map(|a| {
                unit[a] = 1.0;
                let moved = from.enter(&to.leave(&unit));
                unit[a] = 0.0;
                moved.iter().zip(&origin).map(|(m, o)| m - o).collect()
            })
            .collect();
        let rows = || self.matrix.chunks_exact(d);
        Self {
            shift: rows().zip(&self.shift).map(|(row, s)| s + dot(row, &origin)).collect(),
            matrix: rows().flat_map(|row| columns.iter().map(|c| dot(row, c)).collect::<Vec<_>>()).collect(),
            ..self.clone()
        }
    }

    /// The bend that makes an equally weighted sample most nearly normal, with the nats per point by which it does; the sample is taken to say as
    /// much as `count` points. None where that is nothing.
    ///
    /// It is looked for along the coordinates, and along others, of which the first is the direction that [drives](driver) most.
    pub(crate) fn fit(sample: &Points, count: usize) -> Option<(Self, f64)> {
        let d = sample.dim();
        let identity = (0..d * d).map(|i| if i / d == i % d { 1.0 } else { 0.0 }).collect();
        let plain = Self::fit_along(sample, (vec![0.0; d], identity), count);
        let turned = turned(sample).and_then(|(affine, told)| {
            let (bend, gain) = Self::fit_along(sample, affine, count)?;
            // Beside independent normal coordinates, as the other.
            Some((bend, gain + told))
        });
        let score = |(bend, gain): &(Self, f64)| gain * count as f64 - bend.coefficients() as f64;
        match (plain, turned) {
            (Some(plain), Some(turned)) => Some(if score(&turned) > score(&plain) { turned } else { plain }),
            (plain, turned) => plain.or(turned),
        }
    }

    /// The same along the coordinates `y = s + Mx`.
    fn fit_along(sample: &Points, (shift, matrix): (Vec<f64>, Vec<f64>), count: usize) -> Option<(Self, f64)> {
        let (n, d) = (sample.len(), sample.dim());
        let column =
            |k: usize| -> Vec<f64> { sample.rows().map(|x| shift[k] + dot(&matrix[k * d..(k + 1) * d], x)).collect() };
        let columns: Vec<Vec<f64>> = (0..d).map(column).collect();
        // How much each coordinate is told by each other one.
        let told: Vec<f64> = (0..d * d)
            .map(|i| {
                if i / d == i % d {
                    0.0
                } else {
                    Coordinate::fit(&columns, i / d, &[i % d], count).map_or(0.0, |c| c.gain)
                }
            })
            .collect();
        let mut left: Vec<usize> = (0..d).collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            let score = |c: usize| -> f64 { left.iter().map(|&j| told[j * d + c] - told[c * d + j]).sum() };
            let next = left.iter().copied().reduce(|a, b| if score(b) > score(a) { b } else { a })?;
            left.retain(|k| *k != next);
            order.push(next);
        }
        let mut gain = 0.0;
        let (mut drivers, mut middles, mut widths) = (Vec::new(), Vec::new(), Vec::new());
        for (place, &k) in order.iter().enumerate() {
            let own: Vec<usize> = order[..place].iter().copied().filter(|&c| told[k * d + c] > TOLD).collect();
            let fitted = Coordinate::fit(&columns, k, &own, count)?;
            gain += fitted.gain;
            drivers.push(own);
            middles.push(fitted.middle);
            widths.push(fitted.width);
        }
        let bend = Self { shift, matrix, order, drivers, middles, widths };
        (n > 0 && gain > 0.0).then_some((bend, gain))
    }
}

/// White coordinates of a sample, the first of which drives the others most: `s` and `M` of `y = s + Mx`; and by how many nats per point they are more nearly
/// independent than those of the sample.
#[allow(clippy::type_complexity)]
fn turned(sample: &Points) -> Option<((Vec<f64>, Vec<f64>), f64)> {
    let (n, d) = (sample.len() as f64, sample.dim());
    if d < 2 {
        return None;
    }
    let mut mean = vec![0.0; d];
    for x in sample.rows() {
        mean.iter_mut().zip(x).for_each(|(m, x)| *m += x / n);
    }
    let mut covariance = vec![0.0; d * d];
    for x in sample.rows() {
        for a in 0..d {
            for b in 0..d {
                covariance[a * d + b] += (x[a] - mean[a]) * (x[b] - mean[b]) / n;
            }
        }
    }
    let normal = Normal::with_covariance(mean, &covariance)?;
    let white: Vec<Vec<f64>> = sample.rows().map(|x| normal.white(x)).collect();
    let v = driver(&white)?;
    // The reflection that takes v to the first coordinate, or to its negative, whichever is farther.
    let mut w = v.clone();
    w[0] += if v[0] < 0.0 { -1.0 } else { 1.0 };
    let length = dot(&w, &w);
    // White coordinates are L⁻¹(x − mean): the columns of L⁻¹ and the shift, then reflected.
    let reflected = |z: Vec<f64>| -> Vec<f64> {
        let along = 2.0 * dot(&w, &z) / length;
        z.iter().zip(&w).map(|(z, w)| z - along * w).collect()
    };
    let shift = reflected(normal.white(&vec![0.0; d]));
    let mut matrix = vec![0.0; d * d];
    for c in 0..d {
        let mut unit = normal.mean.clone();
        unit[c] += 1.0;
        for (a, v) in reflected(normal.white(&unit)).into_iter().enumerate() {
            matrix[a * d + c] = v;
        }
    }
    let told = 0.5 * (0..d).map(|a| covariance[a * d + a].ln()).sum::<f64>()
        - (0..d).map(|a| normal.row(a)[a].ln()).sum::<f64>();
    Some(((shift, matrix), told))
}

/// Steps from each start, and how long the first is.
const STEPS: usize = 25;
const STEP: f64 = 1.0;

/// The direction `v` on which the middles and widths of the others depend most. With the third moments `K` of a white sample and `A_ab = Σ_c K_abc v_c`, a small
/// dependence makes the others more nearly normal by `S(v) = ¼(‖A‖² − |Av|²)` nats per point; `∇S = ½Mv − A²v` with `M_cc′ = Σ_ab K_abc K_abc′`.
fn driver(white: &[Vec<f64>]) -> Option<Vec<f64>> {
    let (n, d) = (white.len() as f64, white.first()?.len());
    let mut third = vec![0.0; d * d * d];
    for x in white {
        for a in 0..d {
            for b in 0..d {
                let ab = x[a] * x[b] / n;
                third[(a * d + b) * d..(a * d + b + 1) * d].iter_mut().zip(x).for_each(|(k, x)| *k += ab * x);
            }
        }
    }
    let slopes = |v: &[f64]| -> (f64, Vec<f64>) {
        let a: Vec<f64> = third.chunks_exact(d).map(|row| dot(row, v)).collect();
        let times = |u: &[f64]| -> Vec<f64> { a.chunks_exact(d).map(|row| dot(row, u)).collect() };
        let along = times(v);
        let score = 0.25 * (dot(&a, &a) - dot(&along, &along));
        let twice = times(&along);
        let mut gradient: Vec<f64> = twice.iter().map(|t| -t).collect();
        for (a, row) in a.iter().zip(third.chunks_exact(d)) {
            gradient.iter_mut().zip(row).for_each(|(g, k)| *g += 0.5 * a * k);
        }
        (score, gradient)
    };
    let mut best: Option<(f64, Vec<f64>)> = None;
    for start in 0..d {
        let mut v: Vec<f64> = (0..d).map(|a| f64::from(u8::from(a == start))).collect();
        let (mut score, mut gradient) = slopes(&v);
        let mut step = STEP;
        for _ in 0..STEPS {
            let along = dot(&gradient, &v);
            let mut next: Vec<f64> = v.iter().zip(&gradient).map(|(v, g)| v + step * (g - along * v)).collect();
            let length = dot(&next, &next).sqrt();
            next.iter_mut().for_each(|v| *v /= length);
            let (higher, slope) = slopes(&next);
            if higher > score {
                (v, score, gradient) = (next, higher, slope);
                step *= 1.5;
            } else {
                step *= 0.3;
            }
        }
        if score.is_finite() && best.as_ref().is_none_or(|b| score > b.0) {
            best = Some((score, v));
        }
    }
    best.map(|b| b.1)
}

/// One coordinate as a normal one whose middle and width depend on others.
struct Coordinate {
    middle: Vec<f64>,
    width: Vec<f64>,
    /// By how many nats per point that is better than a middle and a width that are the same everywhere.
    gain: f64,
}

impl Coordinate {
    /// Penalised maximum likelihood: least squares for the middle, scoring for the logarithm of the width, by turns.
    fn fit(columns: &[Vec<f64>], own: usize, before: &[usize], count: usize) -> Option<Self> {
        let y = &columns[own];
        let n = y.len();
        let mut features = Vec::new();
        let (mut middles, mut widths) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for i in 0..n {
            let at: Vec<f64> = before.iter().map(|&b| pressed(columns[b][i]).0).collect();
            quadratic(&at, &mut features);
            middles.push(features.clone());
            linear(&at, &mut features);
            widths.push(features.clone());
        }
        let penalty = n as f64 / (count as f64 * COEFFICIENT * COEFFICIENT);
        let mean = y.iter().sum::<f64>() / n as f64;
        let variance = y.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
        if variance.is_nan() || variance <= 0.0 {
            return None;
        }
        let mut width = vec![0.0; 1 + before.len()];
        width[0] = 0.5 * variance.ln();
        let mut middle = Vec::new();
        for _ in 0..ROUNDS {
            let logs: Vec<f64> = widths.iter().map(|f| bounded(dot(f, &width))).collect();
            let weights: Vec<f64> = logs.iter().map(|s| (-2.0 * s).exp()).collect();
            middle = least_squares(&middles, y, &weights, penalty)?;
            if before.is_empty() {
                break;
            }
            // A step of scoring: the logarithm of the width moves towards what the squares of the residuals ask for.
            let asked: Vec<f64> = (0..n)
                .map(|i| {
                    let z = (y[i] - dot(&middles[i], &middle)) * (-logs[i]).exp();
                    logs[i] + 0.5 * (z.clamp(-OUTLIER, OUTLIER).powi(2) - 1.0)
                })
                .collect();
            width = least_squares(&widths, &asked, &vec![2.0; n], penalty)?;
        }
        let score: f64 = (0..n)
            .map(|i| {
                let s = bounded(dot(&widths[i], &width));
                let z = (y[i] - dot(&middles[i], &middle)) * (-s).exp();
                -0.5 * z * z - s
            })
            .sum::<f64>()
            / n as f64;
        let gain = score + 0.5 + 0.5 * variance.ln();
        gain.is_finite().then_some(Self { middle, width, gain })
    }
}

/// `argmin Σ wᵢ(yᵢ − fᵢ·c)² + p Σ c²`, the first coefficient without a penalty.
pub(super) fn least_squares(features: &[Vec<f64>], y: &[f64], weights: &[f64], penalty: f64) -> Option<Vec<f64>> {
    let p = features.first()?.len();
    let mut gram = Matrix::zeros(p, p);
    let mut right = vec![0.0; p];
    for ((f, y), w) in features.iter().zip(y).zip(weights) {
        for a in 0..p {
            let wf = w * f[a];
            right[a] += wf * y;
            let column = gram.col_mut(a);
            for b in a..p {
                column[b] += wf * f[b];
            }
        }
    }
    for a in 1..p {
        gram.col_mut(a)[a] += penalty;
    }
    let factor = Factor::exact("least squares", &gram).ok()?;
    let solved = factor.solve_vec(&right);
    solved.iter().all(|c| c.is_finite()).then_some(solved)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::numeric::rng::{Purpose, Stream};

    /// A function of straight coordinates with its derivatives.
    pub(in super::super) fn wavy(z: &[f64]) -> (f64, Vec<f64>, Vec<f64>) {
        let value = (0.5 * z[0]).sin() * z[1] - z[2] * z[2];
        let gradient = vec![0.5 * (0.5 * z[0]).cos() * z[1], (0.5 * z[0]).sin(), -2.0 * z[2]];
        let cross = 0.5 * (0.5 * z[0]).cos();
        let hessian = vec![-0.25 * (0.5 * z[0]).sin() * z[1], cross, 0.0, cross, 0.0, 0.0, 0.0, 0.0, -2.0];
        (value, gradient, hessian)
    }

    fn normals(n: usize, d: usize) -> Points {
        let mut stream = Stream::new(5, Purpose::Experiment, 1);
        Points::from_rows(&(0..n).map(|_| stream.normals(d)).collect::<Vec<_>>()).unwrap()
    }

    /// Three coordinates, of which the last is the driver: it bends the first and widens the second.
    fn bent(z: &[f64]) -> Vec<f64> {
        vec![0.8 * z[0] + 0.6 * (z[2] * z[2] - 1.0), z[1] * (0.7 * z[2]).exp(), z[2]]
    }

    fn fitted() -> (Bend, Points) {
        let z = normals(2000, 3);
        let x = Points::from_rows(&z.rows().map(bent).collect::<Vec<_>>()).unwrap();
        (Bend::fit(&x, 500).unwrap().0, x)
    }

    #[test]
    fn what_is_bent_becomes_straight() {
        let (bend, x) = fitted();
        let (straight, logs) = bend.straighten(&x);
        let mut squares = [0.0; 4];
        for ((z, x), log) in straight.rows().zip(x.rows()).zip(logs) {
            let truth = [(x[0] - 0.6 * (x[2] * x[2] - 1.0)) / 0.8, x[1] * (-0.7 * x[2]).exp(), x[2]];
            (0..3).for_each(|k| squares[k] += (z[k] - truth[k]).powi(2) / 2000.0);
            squares[3] += (log + 0.7 * x[2] + 0.8_f64.ln()).powi(2) / 2000.0;
        }
        // Two thousand draws tell a coefficient to a few percent; as they are, the first two coordinates are off by 0.9 and more.
        assert!(squares.iter().all(|s| s.sqrt() < 0.15), "{squares:?}");
        // What is straight is left alone.
        assert!(Bend::fit(&normals(2000, 3), 500).is_none_or(|(_, gain)| gain < 0.01));
    }

    #[test]
    fn the_stretch_is_the_determinant_of_the_derivatives() {
        let (bend, x) = fitted();
        for x in x.rows().take(5) {
            let mut there = bend.at(x);
            bend.back().unwrap().curve(&mut there);
            assert!(there.iter().zip(x).all(|(a, b)| (a - b).abs() < 1e-12 * (1.0 + b.abs())), "{there:?} {x:?}");
            let at = |k: usize, h: f64| {
                let mut moved = x.to_vec();
                moved[k] += h;
                bend.at(&moved)
            };
            let (a, b, c): (Vec<f64>, Vec<f64>, Vec<f64>) = {
                let column = |k| at(k, 1e-5).iter().zip(at(k, -1e-5)).map(|(u, d)| (u - d) / 2e-5).collect();
                (column(0), column(1), column(2))
            };
            let det = a[0] * (b[1] * c[2] - b[2] * c[1]) - b[0] * (a[1] * c[2] - a[2] * c[1])
                + c[0] * (a[1] * b[2] - a[2] * b[1]);
            let (_, logs) = bend.straighten(&Points::from_rows(&[x]).unwrap());
            assert!((det.ln() - logs[0]).abs() < 1e-7, "{} {}", det.ln(), logs[0]);
        }
    }

    #[test]
    fn derivatives_are_pulled_back() {
        let (bend, x) = fitted();
        let region = |shift: f64| super::super::view::Region {
            centre: vec![shift, 0.3, -0.2],
            covariance: vec![1.5, 0.3, 0.1, 0.3, 0.8, 0.2, 0.1, 0.2, 1.1],
        };
        let (from, to) = (View::new(region(0.0)).unwrap(), View::new(region(0.4)).unwrap());
        let moved = bend.moved(&from, &to);
        let jet = |x: &[f64]| {
            let (value, gradient, hessian) = wavy(&moved.at(x));
            moved.pull(x, (value, &gradient, &hessian))
        };
        // Far away as well, where what drives is pressed.
        let far = [[0.4, 1.0, 7.0], [-0.3, 0.2, -8.0]];
        for x in x.rows().take(5).chain(far.iter().map(|x| &x[..])) {
            let mut back = moved.at(x);
            moved.back().unwrap().curve(&mut back);
            assert!(back.iter().zip(x).all(|(a, b)| (a - b).abs() < 1e-9 * (1.0 + b.abs())), "{back:?} {x:?}");
            // The same place in both views.
            let (here, there) = (bend.at(&from.enter(&to.leave(x))), moved.at(x));
            assert!(here.iter().zip(&there).all(|(a, b)| (a - b).abs() < 1e-9 * (1.0 + a.abs())), "{here:?} {there:?}");
            let (value, gradient, hessian) = jet(x);
            let (straight, logs) = moved.straighten(&Points::from_rows(&[x]).unwrap());
            assert!((value - wavy(straight.row(0)).0 - logs[0]).abs() < 1e-9 * (1.0 + value.abs()));
            for a in 0..3 {
                let at = |h: f64| {
                    let mut y = x.to_vec();
                    y[a] += h;
                    jet(&y)
                };
                let (up, down) = (at(1e-5), at(-1e-5));
                let close = |exact: f64, slope: f64| (exact - slope).abs() < 1e-5 * (1.0 + exact.abs());
                assert!(close(gradient[a], (up.0 - down.0) / 2e-5), "{a}");
                for b in 0..3 {
                    assert!(close(hessian[a * 3 + b], (up.1[b] - down.1[b]) / 2e-5), "{a} {b}");
                }
            }
        }
    }
}
