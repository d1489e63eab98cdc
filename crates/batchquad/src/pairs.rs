//! Exponentials of quadratic forms over pairs of points: the shape of every squared-exponential integral.
//!
//! The kernel, its products and its chains against Gaussians (`MATH.md` §2) are all
//! `exp(c − |sᵢ − tⱼ|² − |pᵢ + qⱼ|²)` for suitably scaled vectors, so one vectorised loop serves them all. Differences are formed
//! before squaring: expanding the square would cost digits exactly where nodes are close together.

use pulp::{Arch, Simd, WithSimd};

use crate::{
    linalg::Matrix,
    points::Points,
    simd::{exp, fma},
};

/// Vectors stored coordinate by coordinate, so that one coordinate of all of them is contiguous.
#[derive(Debug, Clone, Default)]
pub(crate) struct Columns {
    len: usize,
    data: Vec<f64>,
}

impl Columns {
    /// `map(point)` for each point; every result has length `dim`.
    pub(crate) fn map(points: &Points, dim: usize, mut map: impl FnMut(&[f64], &mut [f64])) -> Self {
        let len = points.len();
        let mut data = vec![0.0; len * dim];
        let mut image = vec![0.0; dim];
        for (i, row) in points.rows().enumerate() {
            map(row, &mut image);
            for (k, &v) in image.iter().enumerate() {
                data[k * len + i] = v;
            }
        }
        Self { len, data }
    }

    /// Each point divided by `scale`, coordinate by coordinate.
    pub(crate) fn scaled(points: &Points, scale: &[f64]) -> Self {
        Self::map(points, scale.len(), |x, out| {
            for ((o, &v), &s) in out.iter_mut().zip(x).zip(scale) {
                *o = v / s;
            }
        })
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

/// `exp(log_scale − |sᵢ − tⱼ|² − |pᵢ + qⱼ|²)`; `p` and `q` may have dimension 0.
pub(crate) struct PairForm<'a> {
    pub(crate) log_scale: f64,
    pub(crate) differences: (&'a Columns, &'a Columns),
    pub(crate) sums: Option<(&'a Columns, &'a Columns)>,
}

impl PairForm<'_> {
    /// Column `j`, rows `first..first + out.len()`.
    pub(crate) fn fill(&self, j: usize, first: usize, out: &mut [f64]) {
        Arch::new().dispatch(Fill { form: self, j, first, out });
    }

    /// The whole matrix. Cost: `d` multiplications and one exponential an entry.
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
}

struct Fill<'a, 'b> {
    form: &'a PairForm<'b>,
    j: usize,
    first: usize,
    out: &'a mut [f64],
}

/// Entries handled together: a few vector registers of any width.
const BLOCK: usize = 32;

impl WithSimd for Fill<'_, '_> {
    type Output = ();

    // Inlined into a function compiled for the widest instruction set at hand; the plain loops below then vectorise.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { form, j, first, out } = self;
        for (b, block) in out.chunks_mut(BLOCK).enumerate() {
            let at = first + b * BLOCK;
            let mut exponent = [form.log_scale; BLOCK];
            let (left, right) = form.differences;
            for k in 0..left.dim() {
                let t = right.get(j, k);
                let s = &left.coordinate(k)[at..at + block.len()];
                subtract_squares::<S>(&mut exponent, s, -t);
            }
            if let Some((left, right)) = form.sums {
                for k in 0..left.dim() {
                    let q = right.get(j, k);
                    let p = &left.coordinate(k)[at..at + block.len()];
                    subtract_squares::<S>(&mut exponent, p, q);
                }
            }
            for e in &mut exponent {
                *e = exp::<S>(*e);
            }
            block.copy_from_slice(&exponent[..block.len()]);
        }
    }
}

#[inline(always)]
fn subtract_squares<S: Simd>(exponent: &mut [f64; BLOCK], values: &[f64], shift: f64) {
    if let Ok(whole) = <&[f64; BLOCK]>::try_from(values) {
        for l in 0..BLOCK {
            let v = whole[l] + shift;
            exponent[l] = fma::<S>(-v, v, exponent[l]);
        }
    } else {
        for (e, &x) in exponent.iter_mut().zip(values) {
            let v = x + shift;
            *e = fma::<S>(-v, v, *e);
        }
    }
}
