//! Dense matrices.

use faer::{Accum, MatMut, MatRef, Par, linalg::matmul::matmul};

/// A dense matrix of `f64`, stored column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) data: Vec<f64>,
}

impl Matrix {
    /// The matrix of zeros.
    #[must_use]
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, data: vec![0.0; rows * cols] }
    }

    /// The matrix with entries `f(i, j)`.
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> f64) -> Self {
        let mut data = Vec::with_capacity(rows * cols);
        for j in 0..cols {
            data.extend((0..rows).map(|i| f(i, j)));
        }
        Self { rows, cols, data }
    }

    /// The matrix with so many rows whose columns follow each other in `data`.
    ///
    /// # Panics
    /// When `data` is no whole number of columns.
    #[must_use]
    pub fn from_columns(rows: usize, data: Vec<f64>) -> Self {
        assert!(rows > 0 && data.len().is_multiple_of(rows), "length of the data");
        Self { rows, cols: data.len() / rows, data }
    }

    /// How many rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Entry `(i, j)`.
    ///
    /// # Panics
    /// When an index is out of range, as indexing a slice does.
    #[must_use]
    pub fn get(&self, i: usize, j: usize) -> f64 {
        self.data[j * self.rows + i]
    }

    /// Column `j`.
    ///
    /// # Panics
    /// When `j` is out of range, as indexing a slice does.
    #[must_use]
    pub fn col(&self, j: usize) -> &[f64] {
        &self.data[j * self.rows..(j + 1) * self.rows]
    }

    /// Column `j`, to be written.
    ///
    /// # Panics
    /// When `j` is out of range, as indexing a slice does.
    pub fn col_mut(&mut self, j: usize) -> &mut [f64] {
        &mut self.data[j * self.rows..(j + 1) * self.rows]
    }

    /// `A x`. Cost: one multiplication per entry.
    ///
    /// # Panics
    /// When `x` is not as long as the matrix is wide.
    #[must_use]
    pub fn mul_vec(&self, x: &[f64]) -> Vec<f64> {
        assert_eq!(x.len(), self.cols, "length of the vector");
        let mut y = vec![0.0; self.rows];
        for (j, &xj) in x.iter().enumerate() {
            for (yi, &aij) in y.iter_mut().zip(self.col(j)) {
                *yi += aij * xj;
            }
        }
        y
    }

    pub(super) fn view(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(&self.data, self.rows, self.cols)
    }

    pub(super) fn view_mut(&mut self) -> MatMut<'_, f64> {
        MatMut::from_column_major_slice_mut(&mut self.data, self.rows, self.cols)
    }
}

/// `Aᵀ B`. Cost: `2·m·n·k` flops, near the machine's peak.
///
/// # Panics
/// When the numbers of rows differ.
#[must_use]
pub fn transpose_mul(a: &Matrix, b: &Matrix) -> Matrix {
    let mut c = Matrix::zeros(a.cols, b.cols);
    matmul(c.view_mut(), Accum::Replace, a.view().transpose(), b.view(), 1.0, Par::Seq);
    c
}

/// `A Bᵀ`. Cost: `2·m·n·k` flops, near the machine's peak.
///
/// # Panics
/// When the numbers of columns differ.
#[must_use]
pub fn mul_transpose(a: &Matrix, b: &Matrix) -> Matrix {
    let mut c = Matrix::zeros(a.rows, b.rows);
    matmul(c.view_mut(), Accum::Replace, a.view(), b.view().transpose(), 1.0, Par::Seq);
    c
}
