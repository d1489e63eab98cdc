//! Dense linear algebra, [`MATH.md` §11](crate::math). The only part that names the matrix crate.
//!
//! Everything here is sequential: parallelism belongs to the loops outside, where it cannot change a bit of the result.

mod matrix;

use std::sync::OnceLock;

use faer::{
    Accum, MatMut, Par,
    dyn_stack::{MemBuffer, MemStack},
    linalg::{
        cholesky::llt,
        matmul::triangular::{self, BlockStructure},
        triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place},
    },
};

pub use self::matrix::{Matrix, mul_transpose, transpose_mul};
use crate::{
    error::{Error, Result},
    numeric::triangular::{
        Packed, SMALL, System, inverse_diagonal, invert_in_place, solve_many, solve_one, solve_one_transposed,
    },
};

/// How much is added to the diagonal of a Gram matrix, and what to do when that is not enough.
///
/// The ladder starts at `nugget · scale` and multiplies by ten, `rungs` times at the most, until the factorisation
/// succeeds. Every rung climbed counts as a repair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jitter {
    /// The first rung, relative to the scale of the diagonal.
    pub nugget: f64,
    /// How many further rungs there are.
    pub rungs: u32,
}

impl Default for Jitter {
    /// `10⁻¹⁰` to `10⁻⁴`: the first is far above rounding (`n·ε`) for a few thousand nodes and far below any accuracy
    /// asked of an evidence.
    fn default() -> Self {
        Self { nugget: 1e-10, rungs: 6 }
    }
}

/// Up to this order a factor keeps its rows as its solves read them, once it has solved: as much memory again as the factor itself.
const KEPT: usize = 1_024;

/// The Cholesky factor `L` of `K + diag(jitter)`, which grows by rows.
#[derive(Debug, Clone)]
pub struct Factor {
    lower: Matrix,
    jitter: Jitter,
    scale: f64,
    largest_jitter: f64,
    repairs: usize,
    /// The rows of `L` and of `Lᵀ`, in the order of the systems.
    packed: Box<[OnceLock<Packed>; 2]>,
}

impl Factor {
    /// Factorises the symmetric matrix whose lower triangle `gram()` gives (the upper one is not read).
    ///
    /// The matrix is made anew for each rung of the ladder and factorised in place, so that a large one is held only
    /// once. `scale` is the size of a diagonal entry to which the jitter is relative. Cost: `n³/3`.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] when the last rung of the ladder fails too.
    pub fn new(gram: impl Fn() -> Matrix, scale: f64, jitter: Jitter) -> Result<Self> {
        let mut factor = Self::empty(scale, jitter);
        factor.lower = factor.climb(gram)?;
        Ok(factor)
    }

    fn empty(scale: f64, jitter: Jitter) -> Self {
        let packed = Box::default();
        Self { lower: Matrix::zeros(0, 0), jitter, scale, largest_jitter: 0.0, repairs: 0, packed }
    }

    /// The factor of a symmetric positive definite matrix as it is, without any jitter.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`], naming `what`.
    pub fn exact(what: &str, matrix: &Matrix) -> Result<Self> {
        Self::new(|| matrix.clone(), 1.0, Jitter { nugget: 0.0, rungs: 0 }).map_err(|e| match e {
            Error::NotPositiveDefinite { pivot, value, .. } => {
                Error::NotPositiveDefinite { what: what.to_owned(), pivot, value }
            }
            other => other,
        })
    }

    /// Climbs the ladder on one symmetric block and returns its lower factor.
    fn climb(&mut self, gram: impl Fn() -> Matrix) -> Result<Matrix> {
        let mut added = self.jitter.nugget * self.scale;
        let mut failure = (0, 0.0);
        for rung in 0..=self.jitter.rungs {
            let mut lower = gram();
            for i in 0..lower.rows {
                lower.col_mut(i)[i] += added;
            }
            match cholesky_in_place(&mut lower) {
                Ok(()) => {
                    self.repairs += rung as usize;
                    self.largest_jitter = self.largest_jitter.max(added);
                    return Ok(lower);
                }
                Err(pivot) => failure = (pivot, lower.get(pivot, pivot)),
            }
            added *= 10.0;
        }
        Err(Error::NotPositiveDefinite { what: "Gram matrix".to_owned(), pivot: failure.0, value: failure.1 })
    }

    /// The factor of the matrix extended by `q` rows: `cross` is `K(old, new)` (`n × q`), `corner` is `K(new, new)`.
    ///
    /// `L₂₁ = (L⁻¹ K₁₂)ᵀ`, `L₂₂ L₂₂ᵀ = K₂₂ + jitter − L₂₁ L₂₁ᵀ`; the new rows climb the jitter ladder on their own, so
    /// the old ones are never factorised again. Cost: `n²q`.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] when the last rung fails too.
    pub fn append(&self, cross: Matrix, corner: Matrix) -> Result<Self> {
        let (n, q) = (self.len(), corner.rows);
        let mut half = cross;
        self.half_solve(&mut half);
        let mut schur = corner;
        triangular::matmul(
            schur.view_mut(),
            BlockStructure::TriangularLower,
            Accum::Add,
            half.view().transpose(),
            BlockStructure::Rectangular,
            half.view(),
            BlockStructure::Rectangular,
            -1.0,
            Par::Seq,
        );
        let Self { scale, jitter, largest_jitter, repairs, .. } = *self;
        let mut grown = Self { largest_jitter, repairs, ..Self::empty(scale, jitter) };
        let tail = grown.climb(|| schur.clone())?;
        let mut data = Vec::with_capacity((n + q) * (n + q));
        for j in 0..n {
            data.resize(data.len() + j, 0.0);
            data.extend_from_slice(&self.lower.col(j)[j..]);
            data.extend((0..q).map(|a| half.data[a * n + j]));
        }
        for a in 0..q {
            data.resize(data.len() + n + a, 0.0);
            data.extend_from_slice(&tail.col(a)[a..]);
        }
        grown.lower = Matrix { rows: n + q, cols: n + q, data };
        Ok(grown)
    }

    /// The factor of `c·K`, for `c > 0`. Cost: `n²`.
    #[must_use]
    pub fn scaled(mut self, c: f64) -> Self {
        let root = c.sqrt();
        self.lower.data.iter_mut().for_each(|v| *v *= root);
        let (scale, largest_jitter) = (self.scale * c, self.largest_jitter * c);
        Self { lower: self.lower, largest_jitter, repairs: self.repairs, ..Self::empty(scale, self.jitter) }
    }

    /// The order `n` of the matrix.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lower.rows
    }

    /// Whether the matrix has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lower.rows == 0
    }

    /// How many rungs of the jitter ladder were climbed in all.
    #[must_use]
    pub fn repairs(&self) -> usize {
        self.repairs
    }

    /// The largest number that was added to a diagonal entry.
    #[must_use]
    pub fn largest_jitter(&self) -> f64 {
        self.largest_jitter
    }

    /// The lower factor; its upper triangle is not defined.
    #[must_use]
    pub fn lower(&self) -> &Matrix {
        &self.lower
    }

    /// `log |K|  =  2 Σ log Lᵢᵢ`.
    #[must_use]
    pub fn log_det(&self) -> f64 {
        2.0 * (0..self.len()).map(|i| self.lower.get(i, i).ln()).sum::<f64>()
    }

    /// A lower bound on the condition number of `K`: `(max Lᵢᵢ / min Lᵢᵢ)²`.
    #[must_use]
    pub fn condition(&self) -> f64 {
        let (low, high) = (0..self.len())
            .map(|i| self.lower.get(i, i))
            .fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        if self.is_empty() { 1.0 } else { (high / low).powi(2) }
    }

    /// Overwrites `B` with `L⁻¹ B`, each column the same whatever stands beside it. Cost: `n²` per column.
    ///
    /// # Panics
    /// When `B` has another number of rows than the factor.
    pub fn half_solve(&self, b: &mut Matrix) {
        self.solve_half(System::Lower, b);
    }

    /// Overwrites `B` with `L⁻ᵀ B`, the second half of a solve. Cost: `n²` per column.
    ///
    /// # Panics
    /// When `B` has another number of rows than the factor.
    pub fn half_solve_transposed(&self, b: &mut Matrix) {
        self.solve_half(System::Transposed, b);
    }

    fn solve_half(&self, system: System, b: &mut Matrix) {
        let n = self.len();
        assert_eq!(b.rows, n, "rows of the right-hand side");
        if n > KEPT {
            solve_many(system, n, &self.lower.data, n, &mut b.data);
        } else {
            let kept = &self.packed[usize::from(system == System::Transposed)];
            kept.get_or_init(|| Packed::new(system, n, &self.lower.data)).solve(&mut b.data);
        }
    }

    /// Overwrites `b` with `L⁻¹ b`.
    fn half_solve_one(&self, b: &mut [f64]) {
        assert_eq!(b.len(), self.len(), "length of the right-hand side");
        if self.len() <= SMALL {
            solve_one(&self.lower.data, b);
        } else {
            let column = MatMut::from_column_major_slice_mut(b, self.len(), 1);
            solve_lower_triangular_in_place(self.lower.view(), column, Par::Seq);
        }
    }

    fn half_solve_transposed_one(&self, b: &mut [f64]) {
        assert_eq!(b.len(), self.len(), "length of the right-hand side");
        if self.len() <= SMALL {
            solve_one_transposed(&self.lower.data, b);
        } else {
            let column = MatMut::from_column_major_slice_mut(b, self.len(), 1);
            solve_upper_triangular_in_place(self.lower.view().transpose(), column, Par::Seq);
        }
    }

    /// `L⁻¹ b`. Cost: `n²`.
    ///
    /// # Panics
    /// When `b` has another length than the factor.
    #[must_use]
    pub fn half_solve_vec(&self, b: &[f64]) -> Vec<f64> {
        let mut x = b.to_vec();
        self.half_solve_one(&mut x);
        x
    }

    /// `K⁻¹ b = L⁻ᵀ L⁻¹ b`. Cost: `2n²`.
    ///
    /// # Panics
    /// When `b` has another length than the factor.
    #[must_use]
    pub fn solve_vec(&self, b: &[f64]) -> Vec<f64> {
        let mut x = b.to_vec();
        self.half_solve_one(&mut x);
        self.half_solve_transposed_one(&mut x);
        x
    }

    /// `L x`, for drawing from `N(0, K)` and mapping latent to correlated coordinates. Cost: `n²`.
    ///
    /// # Panics
    /// When `x` has another length than the factor.
    #[must_use]
    pub fn lower_mul(&self, x: &[f64]) -> Vec<f64> {
        assert_eq!(x.len(), self.len(), "length of the vector");
        let mut y = vec![0.0; x.len()];
        for (j, &xj) in x.iter().enumerate() {
            for i in j..x.len() {
                y[i] += self.lower.get(i, j) * xj;
            }
        }
        y
    }

    /// The lower triangle of `K⁻¹ = L⁻ᵀ L⁻¹` (the upper one is not defined). Cost: `2n³/3`.
    #[must_use]
    pub fn inverse_lower(&self) -> Matrix {
        self.clone().into_inverse_lower()
    }

    /// The diagonal of `K⁻¹`. Cost: `n³/3`.
    #[must_use]
    pub fn inverse_diagonal(&self) -> Vec<f64> {
        inverse_diagonal(self.len(), &self.lower.data)
    }

    /// [`Factor::inverse_lower`] in the memory of the factor.
    #[must_use]
    pub fn into_inverse_lower(mut self) -> Matrix {
        invert_in_place(self.len(), &mut self.lower.data);
        self.lower
    }
}

fn cholesky_in_place(a: &mut Matrix) -> std::result::Result<(), usize> {
    if let Some(bad) = (0..a.rows).find(|&i| !a.get(i, i).is_finite()) {
        return Err(bad);
    }
    let params = Default::default();
    let scratch = llt::factor::cholesky_in_place_scratch::<f64>(a.rows, Par::Seq, params);
    let mut memory = MemBuffer::new(scratch);
    match llt::factor::cholesky_in_place(a.view_mut(), Default::default(), Par::Seq, MemStack::new(&mut memory), params)
    {
        Ok(_) => Ok(()),
        Err(llt::factor::LltError::NonPositivePivot { index }) => Err(index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spd(n: usize) -> Matrix {
        Matrix::from_fn(n, n, |i, j| (-(i as f64 - j as f64).powi(2) / 8.0).exp() + if i == j { 0.1 } else { 0.0 })
    }

    fn reconstruct(f: &Factor) -> Matrix {
        let l = Matrix::from_fn(f.len(), f.len(), |i, j| if i >= j { f.lower().get(i, j) } else { 0.0 });
        Matrix::from_fn(f.len(), f.len(), |i, j| (0..f.len()).map(|k| l.get(i, k) * l.get(j, k)).sum())
    }

    #[test]
    fn factor_solves_and_inverts() {
        for n in [1, 7, 64, 130] {
            let k = spd(n);
            let f = Factor::exact("test", &k).unwrap();
            let back = reconstruct(&f);
            let b: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
            let residual = k.mul_vec(&f.solve_vec(&b));
            let inverse = f.inverse_lower();
            let full = Matrix::from_fn(n, n, |i, j| inverse.get(i.max(j), i.min(j)));
            for i in 0..n {
                assert!((residual[i] - b[i]).abs() < 1e-13 * n as f64);
                for j in 0..n {
                    assert!((back.get(i, j) - k.get(i, j)).abs() < 1e-14 * n as f64);
                }
                let e = k.mul_vec(full.col(i));
                assert!((e[i] - 1.0).abs() < 1e-12 * n as f64);
            }
        }
    }

    #[test]
    fn append_equals_refactorisation() {
        let (n, q) = (50, 9);
        let k = spd(n + q);
        let head = Matrix::from_fn(n, n, |i, j| k.get(i, j));
        let cross = Matrix::from_fn(n, q, |i, j| k.get(i, n + j));
        let corner = Matrix::from_fn(q, q, |i, j| k.get(n + i, n + j));
        let jitter = Jitter::default();
        let grown = Factor::new(|| head.clone(), 1.0, jitter).unwrap().append(cross, corner).unwrap();
        let whole = Factor::new(|| k.clone(), 1.0, jitter).unwrap();
        for j in 0..n + q {
            for i in j..n + q {
                // Backward error of both routes is a few n·ε on entries of order one.
                let bound = 8.0 * (n + q) as f64 * f64::EPSILON;
                assert!((grown.lower().get(i, j) - whole.lower().get(i, j)).abs() < bound);
            }
        }
    }

    #[test]
    fn ladder_is_climbed_and_counted() {
        let ones = Matrix::from_fn(4, 4, |_, _| 1.0);
        let f = Factor::new(|| ones.clone(), 1.0, Jitter { nugget: 1e-20, rungs: 12 }).unwrap();
        assert!(f.repairs() > 0 && f.largest_jitter() > 1e-17);
        assert!(matches!(Factor::exact("ones", &ones), Err(Error::NotPositiveDefinite { .. })));
        let nan = Matrix::from_fn(2, 2, |_, _| f64::NAN);
        assert!(Factor::new(|| nan.clone(), 1.0, Jitter::default()).is_err());
    }
}
