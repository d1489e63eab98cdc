//! The Gaussian process on the log posterior density: a rational quadratic kernel plus that of a shrunk quadratic, with noise. `MATH.md` §15.

use serde::{Deserialize, Serialize};

use super::own::Straight;
use crate::{
    error::{Error, Result},
    numeric::{
        linalg::{Factor, Jitter, Matrix, transpose_mul},
        pairs::{Columns, Fall, PairForm, TAIL, add_polynomial},
        simd::dot,
    },
    points::Points,
};

/// Jitter beyond the noise that is on the diagonal anyway.
const JITTER: Jitter = Jitter { nugget: 1e-15, rungs: 10 };

/// The hyperparameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hyper {
    /// The standard deviation `σ` of the part that is not quadratic.
    pub(crate) sigma: f64,
    /// Its lengthscales `λ`, one per dimension.
    pub(crate) lengthscales: Vec<f64>,
    /// The standard deviation `b` of the coefficients of the quadratic.
    pub(crate) quadratic: f64,
    /// The standard deviation `b₀` of the constant.
    pub(crate) constant: f64,
    /// The standard deviation `η` of the noise of every value.
    pub(crate) noise: f64,
}

/// The kernel `σ² (1 + q/α)^{−α} + b₀² + b²(s + ½s²)`, `q = ½ Σ (xₐ − x′ₐ)²/λₐ²`, `α = 6`, `s = x·x′`.
///
/// The last part is that of a quadratic whose coefficients are independent, `N(0, b²)` for `xₐ` and `xₐx_c/√(1 + δ)`.
impl Hyper {
    fn whiten(&self, points: &Points) -> Columns {
        let scale: Vec<f64> = self.lengthscales.iter().map(|l| l * std::f64::consts::SQRT_2).collect();
        Columns::scaled(points, &scale)
    }

    /// The kernel of a point, in straight coordinates, with itself.
    fn diagonal(&self, z: &[f64]) -> f64 {
        let s = dot(z, z);
        self.sigma * self.sigma + self.constant * self.constant + self.quadratic * self.quadratic * (s + 0.5 * s * s)
    }
}

/// Points in the two forms that the kernel needs.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    raw: Columns,
    white: Columns,
}

impl Placed {
    /// Of points in straight coordinates.
    fn new(hyper: &Hyper, straight: &Points) -> Self {
        Self { raw: Columns::scaled(straight, &vec![1.0; straight.dim()]), white: hyper.whiten(straight) }
    }

    pub(crate) fn len(&self) -> usize {
        self.raw.len()
    }
}

/// The part of the kernel that is not quadratic.
fn form<'a>(hyper: &Hyper, left: &'a Columns, right: &'a Columns) -> PairForm<'a> {
    derivative(hyper, left, right, 0)
}

/// The same, or minus its first or its second derivative in `q`.
fn derivative<'a>(hyper: &Hyper, left: &'a Columns, right: &'a Columns, order: u8) -> PairForm<'a> {
    let factor = if order == 2 { 1.0 + TAIL.recip() } else { 1.0 };
    let fall = Fall::Rational { scale: factor * hyper.sigma * hyper.sigma, order };
    PairForm { fall, differences: (left, right), sums: None }
}

/// Adds the quadratic part to rows `first..` of column `j`.
fn add_quadratic(hyper: &Hyper, left: &Placed, right: &Placed, j: usize, first: usize, out: &mut [f64]) {
    let (b0, b) = (hyper.constant * hyper.constant, hyper.quadratic * hyper.quadratic);
    add_polynomial((&left.raw, &right.raw), j, first, [b0, b, 0.5 * b], out);
}

/// The kernel between two sets of points. Cost: `2d + 8` multiplications and a division per entry.
pub(crate) fn cross(hyper: &Hyper, left: &Placed, right: &Placed) -> Matrix {
    let form = form(hyper, &left.white, &right.white);
    let mut matrix = Matrix::zeros(left.len(), right.len());
    for j in 0..right.len() {
        let column = matrix.col_mut(j);
        form.fill(j, 0, column);
        add_quadratic(hyper, left, right, j, 0, column);
    }
    matrix
}

/// The lower triangles of the part that is not quadratic and of the one that is.
fn lower_parts(hyper: &Hyper, nodes: &Placed) -> (Matrix, Matrix) {
    let smooth = form(hyper, &nodes.white, &nodes.white).lower();
    let mut quadratic = Matrix::zeros(nodes.len(), nodes.len());
    for j in 0..nodes.len() {
        add_quadratic(hyper, nodes, nodes, j, j, &mut quadratic.col_mut(j)[j..]);
    }
    (smooth, quadratic)
}

/// Values of a function with what is known about their errors, in the coordinates of a frame.
#[derive(Debug, Clone)]
pub(crate) struct Data {
    pub(crate) nodes: Points,
    pub(crate) targets: Vec<f64>,
    /// Variances of single values, besides the common noise.
    pub(crate) variances: Vec<f64>,
    /// Which values have the common noise; the others have the variance above alone.
    pub(crate) common: Vec<bool>,
    /// In what coordinates the kernel and the mean see the nodes, if not in these.
    pub(crate) bend: Option<Straight>,
}

/// The least noise relative to the constant's standard deviation: what values without the common noise have for the sake of the
/// factorisation.
const LEAST: f64 = 1e-7;

/// See [`Data::doubt`].
const NOISY: f64 = 10.0;

impl Data {
    /// Some of the values, by their numbers.
    pub(crate) fn select(&self, which: &[usize]) -> Self {
        Self {
            nodes: self.nodes.select(which),
            targets: which.iter().map(|&i| self.targets[i]).collect(),
            variances: which.iter().map(|&i| self.variances[i]).collect(),
            common: which.iter().map(|&i| self.common[i]).collect(),
            bend: self.bend.clone(),
        }
    }

    /// Points in straight coordinates, with the logarithm of how much these are stretched there.
    pub(crate) fn straighten(&self, points: &Points) -> (Points, Vec<f64>) {
        match &self.bend {
            Some(bend) => bend.straighten(points),
            None => (points.clone(), vec![0.0; points.len()]),
        }
    }

    /// How well the coefficients of the quadratic may be known in advance, `min(1, 10 η)`, where values without a noise of their own have a `common` one, and `η`
    /// is that or what half of the others have.
    ///
    /// The coordinates are those in which the posterior of before was `N(0, I)`, so the same values have already told that the quadratic is `−½|x|²`: where
    /// there is noise the marginal likelihood would take it for known, and the bar would be half of what it should be.
    pub(crate) fn doubt(&self, common: f64) -> f64 {
        let all = self.variances.iter().zip(&self.common);
        let mut own: Vec<f64> = all.filter(|(_, common)| !**common).map(|(v, _)| *v).collect();
        own.sort_by(f64::total_cmp);
        let given = own.get(own.len() / 2).map_or(0.0, |v| v.sqrt());
        let common = if own.len() < self.targets.len() { common } else { 0.0 };
        (NOISY * common.max(given)).min(1.0)
    }

    /// The variance of the noise of value `j`.
    fn noise(&self, hyper: &Hyper, j: usize) -> f64 {
        let common = if self.common[j] { hyper.noise } else { LEAST * hyper.constant };
        common * common + self.variances[j]
    }
}

/// `−½|x|²`: the shape of the mean `−½β|x|²`, `β ≥ 0`.
fn bowl(x: &[f64]) -> f64 {
    -0.5 * dot(x, x)
}

/// The posterior of the process given values.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) hyper: Hyper,
    pub(crate) data: Data,
    placed: Placed,
    /// What the mean does not explain, `t − μ`.
    residual: Vec<f64>,
    pub(crate) factor: Factor,
    /// `α = K⁻¹(t − μ)`.
    pub(crate) weights: Vec<f64>,
    quadratic: Quadratic,
}

/// The quadratic part of the mean: `c + x·(g + ½Ax)`.
#[derive(Debug, Clone)]
struct Quadratic {
    constant: f64,
    slope: Vec<f64>,
    /// Row by row.
    bend: Vec<f64>,
}

impl Quadratic {
    /// `c = b₀² Σ αᵢ`, `g = b² Σ αᵢxᵢ`, `A = b² Σ αᵢxᵢxᵢᵀ − βI`.
    fn new(hyper: &Hyper, nodes: &Columns, weights: &[f64], beta: f64) -> Self {
        let d = nodes.dim();
        let b2 = hyper.quadratic * hyper.quadratic;
        let weighted = |a: usize| -> Vec<f64> { weights.iter().zip(nodes.coordinate(a)).map(|(w, x)| w * x).collect() };
        let (mut slope, mut bend) = (vec![0.0; d], vec![0.0; d * d]);
        for a in 0..d {
            let weighted = weighted(a);
            slope[a] = b2 * weighted.iter().sum::<f64>();
            for b in 0..=a {
                bend[a * d + b] = b2 * dot(&weighted, nodes.coordinate(b));
                bend[b * d + a] = bend[a * d + b];
            }
            bend[a * d + a] -= beta;
        }
        Self { constant: hyper.constant * hyper.constant * weights.iter().sum::<f64>(), slope, bend }
    }

    fn value(&self, x: &[f64]) -> f64 {
        let mut value = self.constant;
        for ((x_a, slope), row) in x.iter().zip(&self.slope).zip(self.bend.chunks_exact(x.len())) {
            let half: f64 = row.iter().zip(x).map(|(a, x)| a * x).sum();
            value += x_a * (slope + 0.5 * half);
        }
        value
    }

    fn gradient(&self, x: &[f64]) -> Vec<f64> {
        let rows = self.bend.chunks_exact(x.len());
        rows.zip(&self.slope).map(|(row, g)| g + row.iter().zip(x).map(|(a, x)| a * x).sum::<f64>()).collect()
    }
}

/// Mean and variance at points.
#[derive(Debug, Clone, Default)]
pub(crate) struct Predicted {
    pub(crate) mean: Vec<f64>,
    pub(crate) variance: Vec<f64>,
}

impl Process {
    pub(crate) fn new(hyper: Hyper, data: Data) -> Result<Self> {
        let (process, _) = Self::with_parts(hyper, data)?;
        Ok(process)
    }

    fn with_parts(hyper: Hyper, data: Data) -> Result<(Self, (Matrix, Matrix))> {
        let (straight, stretch) = data.straighten(&data.nodes);
        let placed = Placed::new(&hyper, &straight);
        let parts = lower_parts(&hyper, &placed);
        let n = data.targets.len();
        let gram = || {
            let mut k = Matrix::zeros(n, n);
            for j in 0..n {
                let column = &mut k.col_mut(j)[j..];
                let both = parts.0.col(j)[j..].iter().zip(&parts.1.col(j)[j..]);
                column.iter_mut().zip(both).for_each(|(k, (s, q))| *k = s + q);
                column[0] += data.noise(&hyper, j);
            }
            k
        };
        let scale = hyper.sigma * hyper.sigma + hyper.constant * hyper.constant;
        let factor = Factor::new(gram, scale, JITTER)?;
        let h: Vec<f64> = straight.rows().map(bowl).collect();
        let y: Vec<f64> = data.targets.iter().zip(&stretch).map(|(t, s)| t - s).collect();
        let (ky, kh) = (factor.solve_vec(&y), factor.solve_vec(&h));
        let information = dot(&h, &kh);
        let beta = if information > 0.0 { (dot(&h, &ky) / information).max(0.0) } else { 0.0 };
        let weights: Vec<f64> = ky.iter().zip(&kh).map(|(y, h)| y - beta * h).collect();
        let quadratic = Quadratic::new(&hyper, &placed.raw, &weights, beta);
        let residual = y.iter().zip(&h).map(|(y, h)| y - beta * h).collect();
        Ok((Self { hyper, data, placed, residual, factor, weights, quadratic }, parts))
    }

    pub(crate) fn dim(&self) -> usize {
        self.data.nodes.dim()
    }

    pub(crate) fn len(&self) -> usize {
        self.data.targets.len()
    }

    /// `L⁻¹ k(X, x)` for each point, one column per point. Cost: `n²` per point.
    pub(crate) fn half(&self, points: &Placed) -> Matrix {
        let mut half = cross(&self.hyper, &self.placed, points);
        self.factor.half_solve(&mut half);
        half
    }

    /// The kernel between two sets of points, before any value is known.
    pub(crate) fn prior_cross(&self, left: &Placed, right: &Placed) -> Matrix {
        cross(&self.hyper, left, right)
    }

    pub(crate) fn place(&self, points: &Points) -> Placed {
        Placed::new(&self.hyper, &self.data.straighten(points).0)
    }

    /// The variance at points before any value is known.
    pub(crate) fn prior_variance(&self, points: &Points) -> Vec<f64> {
        self.data.straighten(points).0.rows().map(|z| self.hyper.diagonal(z)).collect()
    }

    /// The mean alone. Cost: `n` kernel values per point.
    pub(crate) fn mean(&self, points: &Points) -> Vec<f64> {
        let (straight, stretch) = self.data.straighten(points);
        let white = self.hyper.whiten(&straight);
        let smooth = form(&self.hyper, &self.placed.white, &white).weighted_sums(&self.weights);
        let parts = straight.rows().zip(smooth).zip(stretch);
        parts.map(|((z, smooth), stretch)| self.quadratic.value(z) + smooth + stretch).collect()
    }

    /// Mean and variance. Cost: `n²` per point.
    pub(crate) fn predict(&self, points: &Points) -> Predicted {
        let mean = self.mean(points);
        let k = self.half(&self.place(points));
        let before = self.prior_variance(points);
        let variance = before.iter().enumerate().map(|(j, v)| (v - dot(k.col(j), k.col(j))).max(0.0)).collect();
        Predicted { mean, variance }
    }

    /// `Aᵀ C(x, x) A` for the posterior covariance `C` at points. Cost: `q²` kernel values and `n²q`.
    pub(crate) fn covariance_sums(&self, points: &Points, columns: &Matrix) -> Matrix {
        let (q, p) = (points.len(), columns.cols());
        let placed = self.place(points);
        let half = self.half(&placed);
        let reduced = Matrix::from_fn(self.len(), p, |i, k| (0..q).map(|s| half.get(i, s) * columns.get(s, k)).sum());
        let explained = transpose_mul(&reduced, &reduced);
        let form = form(&self.hyper, &placed.white, &placed.white);
        // Row by row, so that the whole matrix is never held.
        let mut row = vec![0.0; q];
        let mut prior = Matrix::zeros(p, p);
        for j in 0..q {
            form.fill(j, 0, &mut row);
            add_quadratic(&self.hyper, &placed, &placed, j, 0, &mut row);
            for k in 0..p {
                let with = dot(&row, columns.col(k));
                for l in 0..p {
                    prior.col_mut(k)[l] += with * columns.get(j, l);
                }
            }
        }
        Matrix::from_fn(p, p, |i, j| prior.get(i, j) - explained.get(i, j))
    }

    /// The mean with its gradient and, row by row, its Hessian at one point. Cost: `nd` and, for the Hessian, `nd²`.
    pub(crate) fn jet(&self, x: &[f64], with_hessian: bool) -> (f64, Vec<f64>, Vec<f64>) {
        let Some(bend) = &self.data.bend else { return self.straight_jet(x, with_hessian) };
        let (value, gradient, hessian) = self.straight_jet(&bend.at(x), with_hessian);
        bend.pull(x, (value, &gradient, &hessian))
    }

    /// The same in straight coordinates, without what these are stretched by.
    pub(crate) fn straight_jet(&self, x: &[f64], with_hessian: bool) -> (f64, Vec<f64>, Vec<f64>) {
        let d = x.len();
        let (mut value, mut gradient) = (self.quadratic.value(x), self.quadratic.gradient(x));
        let mut hessian = if with_hessian { self.quadratic.bend.clone() } else { Vec::new() };
        // Whitened coordinates are smaller by √2.
        let scale: Vec<f64> = self.hyper.lengthscales.iter().map(|l| l * std::f64::consts::SQRT_2).collect();
        let white = Columns::from_fn(1, d, |_, k| x[k] / scale[k]);
        let weighted = |order: u8| -> Vec<f64> {
            let mut entries = vec![0.0; self.len()];
            derivative(&self.hyper, &self.placed.white, &white, order).fill(0, 0, &mut entries);
            entries.iter_mut().zip(&self.weights).for_each(|(e, w)| *e *= w);
            entries
        };
        value += weighted(0).iter().sum::<f64>();
        let pull = weighted(1);
        let (bend, total) = if with_hessian { (weighted(2), pull.iter().sum()) } else { (Vec::new(), 0.0) };
        let offsets =
            |a: usize| -> Vec<f64> { self.placed.white.coordinate(a).iter().map(|y| y - white.get(0, a)).collect() };
        for a in 0..d {
            let own = offsets(a);
            gradient[a] += 2.0 * dot(&pull, &own) / scale[a];
            if with_hessian {
                let bent: Vec<f64> = bend.iter().zip(&own).map(|(e, o)| e * o).collect();
                for c in 0..=a {
                    let both = 4.0 * dot(&bent, &offsets(c)) / (scale[a] * scale[c]);
                    hessian[a * d + c] += both;
                    if a == c {
                        hessian[a * d + a] -= 2.0 * total / (scale[a] * scale[a]);
                    } else {
                        hessian[c * d + a] += both;
                    }
                }
            }
        }
        (value, gradient, hessian)
    }
}

/// The logarithm of the marginal likelihood, with its gradient in `(log σ, log b, log η, log λ₁, …)`.
///
/// `log p(t) = −½ (t − μ)ᵀK⁻¹(t − μ) − ½ log|K| − ½ n log 2π`, gradient `½ tr((ααᵀ − K⁻¹) ∂K)`; the curvature `β` of the mean is at its
/// own maximum, so it does not enter the gradient. Cost: `n³`.
pub(crate) fn log_marginal(hyper: &Hyper, data: &Data) -> Result<(f64, Vec<f64>)> {
    let (process, (smooth, quadratic)) = Process::with_parts(hyper.clone(), data.clone())?;
    let n = data.targets.len();
    let alpha = &process.weights;
    let value =
        -0.5 * (dot(&process.residual, alpha) + process.factor.log_det() + n as f64 * std::f64::consts::TAU.ln());
    if !value.is_finite() {
        return Err(Error::Numerical { what: "marginal likelihood".into(), reason: "not a number".into() });
    }
    let d = data.nodes.dim();
    let inverse = process.factor.into_inverse_lower();
    let b0 = hyper.constant * hyper.constant;
    let mut gradient = vec![0.0; 3 + d];
    for j in 0..n {
        let (inv, se, quad) = (inverse.col(j), smooth.col(j), quadratic.col(j));
        let on_diagonal = alpha[j] * alpha[j] - inv[j];
        let (mut gs, mut gq) = (0.5 * on_diagonal * se[j], 0.5 * on_diagonal * (quad[j] - b0));
        for i in j + 1..n {
            let g = alpha[i] * alpha[j] - inv[i];
            gs += g * se[i];
            gq += g * (quad[i] - b0);
        }
        gradient[0] += 2.0 * gs;
        gradient[1] += 2.0 * gq;
        if data.common[j] {
            gradient[2] += hyper.noise * hyper.noise * on_diagonal;
        }
    }
    let mut slopes = vec![0.0; d];
    derivative(hyper, &process.placed.white, &process.placed.white, 1).slopes(alpha, alpha, &inverse, &mut slopes);
    // Both triangles, times the 2 by which whitened squares are smaller: ½·2·2.
    for (g, s) in gradient[3..].iter_mut().zip(slopes) {
        *g = 2.0 * s;
    }
    Ok((value, gradient))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::rng::{Purpose, Stream};

    fn data() -> Data {
        let mut stream = Stream::new(3, Purpose::Experiment, 0);
        let nodes = Points::from_rows(&(0..12).map(|_| stream.normals(3)).collect::<Vec<_>>()).unwrap();
        let targets = nodes.rows().map(|x| -dot(x, x) + (2.0 * x[0]).sin() + 0.3 * x[1] * x[2]).collect();
        let variances = (0..12).map(|i| 0.01 * f64::from(i % 3)).collect();
        Data { nodes, targets, variances, common: (0..12).map(|i| i % 4 != 1).collect(), bend: None }
    }

    fn hyper(log: &[f64]) -> Hyper {
        Hyper {
            sigma: log[0].exp(),
            quadratic: log[1].exp(),
            noise: log[2].exp(),
            lengthscales: log[3..].iter().map(|l| l.exp()).collect(),
            constant: 5.0,
        }
    }

    #[test]
    fn the_gradient_of_the_marginal_likelihood_is_its_slope() {
        let at = [0.3, -0.5, -2.0, 0.2, 0.6, -0.1];
        let (_, gradient) = log_marginal(&hyper(&at), &data()).unwrap();
        for k in 0..at.len() {
            let moved = |h: f64| {
                let mut log = at;
                log[k] += h;
                log_marginal(&hyper(&log), &data()).unwrap().0
            };
            // Central differences: an error of h² times third derivatives of order ten.
            let slope = (moved(1e-4) - moved(-1e-4)) / 2e-4;
            assert!((gradient[k] - slope).abs() < 1e-6 * (1.0 + slope.abs()), "{k}: {} {slope}", gradient[k]);
        }
    }

    #[test]
    fn a_value_with_a_noise_of_its_own_does_not_know_the_common_one() {
        let at = |log_noise: f64| hyper(&[0.3, -0.5, log_noise, 0.2, 0.6, -0.1]);
        let marginal = |data: &Data, log_noise: f64| log_marginal(&at(log_noise), data).unwrap();
        // Told as its own variance or as the common noise, it is the same noise.
        let mut own = data();
        own.variances = vec![0.04; 12];
        own.common = vec![false; 12];
        let mut common = own.clone();
        common.variances = vec![0.0; 12];
        common.common = vec![true; 12];
        let ((a, slope), (b, _)) = (marginal(&own, -7.0), marginal(&common, 0.2_f64.ln()));
        assert!((a - b).abs() < 1e-9, "{a} {b}");
        assert_eq!(slope[2], 0.0);
        assert_eq!(marginal(&own, 1.0).0, a);
    }

    #[test]
    fn the_mean_has_its_derivatives() {
        let process = Process::new(hyper(&[0.3, -0.5, -2.0, 0.2, 0.6, -0.1]), data()).unwrap();
        let x = [0.3, -0.2, 0.5];
        let (value, gradient, hessian) = process.jet(&x, true);
        let at = |x: [f64; 3]| process.jet(&x, false);
        assert!((process.mean(&Points::from_rows(&[x]).unwrap())[0] - value).abs() < 1e-10);
        for a in 0..3 {
            let moved = |h: f64| {
                let mut y = x;
                y[a] += h;
                at(y)
            };
            let (up, down) = (moved(1e-5), moved(-1e-5));
            assert!((gradient[a] - (up.0 - down.0) / 2e-5).abs() < 1e-6);
            for b in 0..3 {
                assert!((hessian[a * 3 + b] - (up.1[b] - down.1[b]) / 2e-5).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn sums_of_covariances_are_those_of_the_matrix() {
        let process = Process::new(hyper(&[0.3, -0.5, -2.0, 0.2, 0.6, -0.1]), data()).unwrap();
        let points = Points::from_rows(&[[0.1, 0.2, 0.3], [-1.0, 0.5, 0.0], [0.0, 2.0, 1.0]]).unwrap();
        let columns = Matrix::from_fn(3, 2, |i, j| 0.5 + i as f64 - 2.0 * j as f64);
        let placed = process.place(&points);
        let (prior, half) = (process.prior_cross(&placed, &placed), process.half(&placed));
        let sums = process.covariance_sums(&points, &columns);
        for k in 0..2 {
            for l in 0..2 {
                let mut direct = 0.0;
                for s in 0..3 {
                    for t in 0..3 {
                        let c = prior.get(s, t) - dot(half.col(s), half.col(t));
                        direct += columns.get(s, k) * c * columns.get(t, l);
                    }
                }
                assert!((sums.get(k, l) - direct).abs() < 1e-9 * (1.0 + direct.abs()));
            }
        }
    }
}
