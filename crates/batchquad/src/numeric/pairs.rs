//! Functions of quadratic forms over pairs of points: kernels, and the shape of every squared-exponential integral.
//!
//! The squared-exponential kernel, its products and its chains against Gaussians ([`MATH.md` §2](crate::math)) are all
//! `exp(c − |sᵢ − tⱼ|² − |pᵢ + qⱼ|²)` for suitably scaled vectors, so one vectorised loop serves them all, and the
//! rational quadratic kernel beside them. Differences are formed before squaring: expanding the square would cost digits
//! exactly where nodes are close together.

use pulp::{Arch, Simd, WithSimd};

use crate::{
    numeric::{
        linalg::Matrix,
        simd::{exp, fma, inner, split, total},
    },
    points::Points,
};

/// Vectors stored coordinate by coordinate, so that one coordinate of all of them is contiguous.
#[derive(Debug, Clone, Default)]
pub(crate) struct Columns {
    len: usize,
    data: Vec<f64>,
}

impl Columns {
    /// Vectors with coordinates `f(i, k)`.
    pub(crate) fn from_fn(len: usize, dim: usize, f: impl Fn(usize, usize) -> f64) -> Self {
        let mut data = Vec::with_capacity(len * dim);
        for k in 0..dim {
            data.extend((0..len).map(|i| f(i, k)));
        }
        Self { len, data }
    }

    /// Each point divided by `scale`, coordinate by coordinate.
    pub(crate) fn scaled(points: &Points, scale: &[f64]) -> Self {
        let (d, x) = (scale.len(), points.as_slice());
        Self::from_fn(points.len(), d, |i, k| x[i * d + k] / scale[k])
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn dim(&self) -> usize {
        self.data.len() / self.len.max(1)
    }

    /// Coordinate `k` of all vectors.
    pub(crate) fn coordinate(&self, k: usize) -> &[f64] {
        &self.data[k * self.len..(k + 1) * self.len]
    }

    /// Coordinate `k` of vector `i`.
    pub(crate) fn get(&self, i: usize, k: usize) -> f64 {
        self.data[k * self.len + i]
    }
}

/// How an entry falls off with its square.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fall {
    /// `exp(log_scale − r²)`.
    Exponential { log_scale: f64 },
    /// `scale (1 + r²/α)^{−α−order}` with `α` = [`TAIL`] and an order of 0, 1 or 2: the rational quadratic and, factors aside, its derivatives in `r²`.
    Rational { scale: f64, order: u8 },
}

impl Fall {
    /// Multiplies by the exponential of `log`.
    pub(crate) fn multiply(&mut self, log: f64) {
        match self {
            Self::Exponential { log_scale } => *log_scale += log,
            Self::Rational { scale, .. } => *scale *= log.exp(),
        }
    }
}

/// The exponent `α` of the rational quadratic. `MATH.md` §15 says why.
pub(crate) const TAIL: f64 = 6.0;

/// A function of `r² = |sᵢ − tⱼ|² + |pᵢ + qⱼ|²`; `p` and `q` may be absent.
pub(crate) struct PairForm<'a> {
    pub(crate) fall: Fall,
    pub(crate) differences: (&'a Columns, &'a Columns),
    pub(crate) sums: Option<(&'a Columns, &'a Columns)>,
}

impl PairForm<'_> {
    /// Column `j`, rows `first..first + out.len()`.
    pub(crate) fn fill(&self, j: usize, first: usize, out: &mut [f64]) {
        Arch::new().dispatch(Fill { form: self, j, first, out });
    }

    /// `Σᵢ wᵢ Aᵢⱼ` for every column `j`. Cost: `d` multiplications and one exponential or division an entry, and no matrix.
    pub(crate) fn weighted_sums(&self, w: &[f64]) -> Vec<f64> {
        Arch::new().dispatch(WeightedSums { form: self, w })
    }

    /// The whole matrix. Cost: `d` multiplications and one exponential or division an entry.
    pub(crate) fn matrix(&self) -> Matrix {
        let mut matrix = Matrix::zeros(self.differences.0.len(), self.differences.1.len());
        for j in 0..matrix.cols() {
            self.fill(j, 0, matrix.col_mut(j));
        }
        matrix
    }

    /// The lower triangle of a symmetric form; the upper one is left zero.
    pub(crate) fn lower(&self) -> Matrix {
        let mut matrix = Matrix::zeros(self.differences.0.len(), self.differences.1.len());
        for j in 0..matrix.cols() {
            self.fill(j, j, &mut matrix.col_mut(j)[j..]);
        }
        matrix
    }

    /// Adds `A w` to `out` for a symmetric form `A`, and returns `|w|ᵀ A |w|`. Cost: `n²/2` exponentials and no matrix.
    pub(crate) fn symmetric_mul(&self, w: &[f64], out: &mut [f64]) -> f64 {
        let sizes: Vec<f64> = w.iter().map(|v| v.abs()).collect();
        Arch::new().dispatch(SymmetricMul { form: self, w, sizes: &sizes, out })
    }

    /// `wᵀ A w` for the symmetric `A` whose lower triangle this form has. Cost: `n²/2` exponentials and no matrix.
    pub(crate) fn lower_quadratic(&self, w: &[f64]) -> f64 {
        Arch::new().dispatch(LowerQuadratic { form: self, w })
    }

    /// Adds `Σᵢ>ⱼ (uᵢvⱼ − Bᵢⱼ) Aᵢⱼ (sᵢₖ − sⱼₖ)²` to `out[k]` for each coordinate of the differences of a symmetric form
    /// `A`; `B` is read in its lower triangle. Cost: `n²/2` exponentials and no matrix.
    pub(crate) fn slopes(&self, u: &[f64], v: &[f64], b: &Matrix, out: &mut [f64]) {
        Arch::new().dispatch(Slopes { form: self, u, v, b, out });
    }
}

/// Adds `c₀ + c₁s + c₂s²`, `s` the product of vector `first + i` of the left and vector `j` of the right, to `out[i]`.
pub(crate) fn add_polynomial(
    vectors: (&Columns, &Columns),
    j: usize,
    first: usize,
    coefficients: [f64; 3],
    out: &mut [f64],
) {
    Arch::new().dispatch(AddPolynomial { vectors, j, first, coefficients, out });
}

struct AddPolynomial<'a> {
    vectors: (&'a Columns, &'a Columns),
    j: usize,
    first: usize,
    coefficients: [f64; 3],
    out: &'a mut [f64],
}

impl AddPolynomial<'_> {
    /// `N` of the values, from number `at`.
    #[inline(always)]
    fn values<S: Simd, const N: usize>(&self, at: usize) -> [f64; N] {
        let (left, right) = self.vectors;
        let mut s = [0.0; N];
        for k in 0..left.dim() {
            let x = right.get(self.j, k);
            if let Some(y) = left.coordinate(k)[at..].first_chunk::<N>() {
                for l in 0..N {
                    s[l] = fma::<S>(x, y[l], s[l]);
                }
            }
        }
        let [c0, c1, c2] = self.coefficients;
        for s in &mut s {
            *s = fma::<S>(*s, fma::<S>(c2, *s, c1), c0);
        }
        s
    }
}

impl WithSimd for AddPolynomial<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let whole = self.out.len() - self.out.len() % 16;
        for at in (0..whole).step_by(16) {
            let values: [f64; 16] = self.values::<S, 16>(self.first + at);
            for (o, v) in self.out[at..at + 16].iter_mut().zip(values) {
                *o += v;
            }
        }
        for at in whole..self.out.len() {
            let [value] = self.values::<S, 1>(self.first + at);
            self.out[at] += value;
        }
    }
}

struct WeightedSums<'a, 'b> {
    form: &'a PairForm<'b>,
    w: &'a [f64],
}

impl WithSimd for WeightedSums<'_, '_> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Vec<f64> {
        let mut column = vec![0.0; self.w.len()];
        let mut sums = vec![0.0; self.form.differences.1.len()];
        // A loop: a closure would not be compiled for the instruction set at hand.
        for (j, sum) in sums.iter_mut().enumerate() {
            fill::<S>(self.form, j, 0, &mut column);
            *sum = inner::<S>(&column, self.w);
        }
        sums
    }
}

struct SymmetricMul<'a, 'b> {
    form: &'a PairForm<'b>,
    w: &'a [f64],
    sizes: &'a [f64],
    out: &'a mut [f64],
}

impl WithSimd for SymmetricMul<'_, '_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let Self { form, w, sizes, out } = self;
        let mut column = vec![0.0; w.len()];
        let mut quadratic = 0.0;
        for j in 0..w.len() {
            let below = &mut column[j..];
            fill::<S>(form, j, j, below);
            for (o, a) in out[j + 1..].iter_mut().zip(&below[1..]) {
                *o = fma::<S>(*a, w[j], *o);
            }
            out[j] += inner::<S>(below, &w[j..]);
            quadratic += sizes[j] * (2.0 * inner::<S>(below, &sizes[j..]) - below[0] * sizes[j]);
        }
        quadratic
    }
}

struct LowerQuadratic<'a, 'b> {
    form: &'a PairForm<'b>,
    w: &'a [f64],
}

impl WithSimd for LowerQuadratic<'_, '_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let Self { form, w } = self;
        let mut column = vec![0.0; w.len()];
        let mut quadratic = 0.0;
        for j in 0..w.len() {
            let below = &mut column[j..];
            fill::<S>(form, j, j, below);
            quadratic += w[j] * (2.0 * inner::<S>(below, &w[j..]) - below[0] * w[j]);
        }
        quadratic
    }
}

struct Slopes<'a, 'b> {
    form: &'a PairForm<'b>,
    u: &'a [f64],
    v: &'a [f64],
    b: &'a Matrix,
    out: &'a mut [f64],
}

impl WithSimd for Slopes<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { form, u, v, b, out } = self;
        let nodes = form.differences.0;
        let mut column = vec![0.0; u.len()];
        for j in 0..u.len() {
            let below = &mut column[j + 1..];
            fill::<S>(form, j, j + 1, below);
            for ((a, u), b) in below.iter_mut().zip(&u[j + 1..]).zip(&b.col(j)[j + 1..]) {
                *a *= fma::<S>(*u, v[j], -b);
            }
            for (k, out) in out.iter_mut().enumerate() {
                *out += weighted_squares::<S>(below, &nodes.coordinate(k)[j + 1..], nodes.get(j, k));
            }
        }
    }
}

/// `Σ aᵢ (xᵢ − o)²`.
#[inline(always)]
fn weighted_squares<S: Simd>(a: &[f64], x: &[f64], origin: f64) -> f64 {
    #[inline(always)]
    fn part<S: Simd, const N: usize>(a: &[[f64; N]], x: &[[f64; N]], origin: f64) -> f64 {
        let mut lanes = [0.0; N];
        for (a, x) in a.iter().zip(x) {
            for k in 0..N {
                let offset = x[k] - origin;
                lanes[k] = fma::<S>(a[k] * offset, offset, lanes[k]);
            }
        }
        total(lanes)
    }
    let ([a16, a4, a1], [x16, x4, x1]) = (split(a), split(x));
    part::<S, 16>(a16.as_chunks().0, x16.as_chunks().0, origin)
        + (part::<S, 4>(a4.as_chunks().0, x4.as_chunks().0, origin)
            + part::<S, 1>(a1.as_chunks().0, x1.as_chunks().0, origin))
}

struct Fill<'a, 'b> {
    form: &'a PairForm<'b>,
    j: usize,
    first: usize,
    out: &'a mut [f64],
}

impl WithSimd for Fill<'_, '_> {
    type Output = ();

    // Inlined into a function compiled for the widest instruction set at hand; the plain loops below then vectorise.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        fill::<S>(self.form, self.j, self.first, self.out);
    }
}

/// Column `j` of the form, rows `first..first + out.len()`.
#[inline(always)]
fn fill<S: Simd>(form: &PairForm, j: usize, first: usize, out: &mut [f64]) {
    let [sixteens, fours, _] = split(out).map(|part| part.len());
    for (b, block) in out.as_chunks_mut().0.iter_mut().enumerate() {
        *block = entries::<S, 16>(form, j, first + b * 16);
    }
    for (b, block) in out[sixteens..].as_chunks_mut().0.iter_mut().enumerate() {
        *block = entries::<S, 4>(form, j, first + sixteens + b * 4);
    }
    let (length, done) = (out.len(), sixteens + fours);
    if done == length {
        return;
    }
    if let Some(last) = out.last_chunk_mut() {
        // Some of these again, with the same result: cheaper than one at a time.
        *last = entries::<S, 4>(form, j, first + length - 4);
    } else {
        for (i, entry) in out.iter_mut().enumerate() {
            [*entry] = entries::<S, 1>(form, j, first + i);
        }
    }
}

/// `N` entries of column `j` from row `at`: the same arithmetic for each, whatever `N`.
#[inline(always)]
fn entries<S: Simd, const N: usize>(form: &PairForm, j: usize, at: usize) -> [f64; N] {
    let start = match form.fall {
        Fall::Exponential { log_scale } => log_scale,
        Fall::Rational { .. } => 0.0,
    };
    let mut exponent = [start; N];
    let (left, right) = form.differences;
    for k in 0..left.dim() {
        subtract_squares::<S, N>(&mut exponent, &left.coordinate(k)[at..], -right.get(j, k));
    }
    if let Some((left, right)) = form.sums {
        for k in 0..left.dim() {
            subtract_squares::<S, N>(&mut exponent, &left.coordinate(k)[at..], right.get(j, k));
        }
    }
    match form.fall {
        Fall::Exponential { .. } => exp::<S, N>(&mut exponent),
        Fall::Rational { scale, order: 0 } => rational::<S, N, 0>(&mut exponent, scale),
        Fall::Rational { scale, order: 1 } => rational::<S, N, 1>(&mut exponent, scale),
        Fall::Rational { scale, .. } => rational::<S, N, 2>(&mut exponent, scale),
    }
    exponent
}

/// `scale (1 − x/α)^{−6−ORDER}`: a power that is a whole number needs no exponential.
#[inline(always)]
fn rational<S: Simd, const N: usize, const ORDER: u8>(x: &mut [f64; N], scale: f64) {
    for x in x {
        let base = fma::<S>(*x, -TAIL.recip(), 1.0);
        let square = base * base;
        let fourth = square * square;
        let power = match ORDER {
            0 => fourth * square,
            1 => fourth * square * base,
            _ => fourth * fourth,
        };
        *x = scale / power;
    }
}

#[inline(always)]
fn subtract_squares<S: Simd, const N: usize>(exponent: &mut [f64; N], values: &[f64], shift: f64) {
    if let Some(values) = values.first_chunk::<N>() {
        for l in 0..N {
            let v = values[l] + shift;
            exponent[l] = fma::<S>(-v, v, exponent[l]);
        }
    }
}
