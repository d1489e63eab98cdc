//! Dense linear algebra. The only file that names the matrix crate.

/// A dense matrix of `f64`, stored column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

impl Matrix {
    /// The matrix with entries `f(i, j)`.
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> f64) -> Self {
        let data = (0..cols).flat_map(|j| (0..rows).map(move |i| (i, j))).map(|(i, j)| f(i, j)).collect();
        Self { rows, cols, data }
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
}
