//! Points: many vectors of one dimension, validated once.

use crate::error::{Error, Result};

/// `Σ (aₖ − bₖ)²`.
pub(crate) fn square_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// An ordered list of finite points in `d ≥ 1` dimensions, stored row by row.
///
/// ```
/// use batchquad::Points;
/// let points = Points::new(2, vec![0.0, 1.0, 2.0, 3.0])?;
/// assert_eq!(points.len(), 2);
/// assert_eq!(points.row(1), &[2.0, 3.0]);
/// assert!(Points::new(2, vec![0.0, f64::NAN]).is_err());
/// # Ok::<(), batchquad::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Points {
    dim: usize,
    coordinates: Vec<f64>,
}

impl Points {
    /// Points from their coordinates, row by row. An empty list is legal; dimension 0 is not.
    ///
    /// # Errors
    /// [`Error::Invalid`] for `dim == 0`, [`Error::Length`] when the coordinates do not fill whole rows,
    /// [`Error::NonFinitePoint`] for NaN or infinite coordinates.
    pub fn new(dim: usize, coordinates: Vec<f64>) -> Result<Self> {
        if dim == 0 {
            return Err(Error::invalid("dimension", dim, "at least 1"));
        }
        if !coordinates.len().is_multiple_of(dim) {
            let rows = coordinates.len().div_ceil(dim);
            return Err(Error::length(
                format!("coordinates of {dim}-dimensional points"),
                rows * dim,
                coordinates.len(),
            ));
        }
        if let Some(i) = coordinates.iter().position(|v| !v.is_finite()) {
            return Err(Error::NonFinitePoint { index: i / dim, coordinate: i % dim, value: coordinates[i] });
        }
        Ok(Self { dim, coordinates })
    }

    /// Points from rows.
    ///
    /// # Errors
    /// As [`Points::new`]; [`Error::Length`] when the rows differ in length or there is none to tell the dimension.
    pub fn from_rows<R: AsRef<[f64]>>(rows: &[R]) -> Result<Self> {
        let dim = rows.first().map_or(0, |r| r.as_ref().len());
        if rows.is_empty() {
            return Err(Error::length("list of points", 1, 0));
        }
        for (i, row) in rows.iter().enumerate() {
            if row.as_ref().len() != dim {
                return Err(Error::length(format!("point {i}"), dim, row.as_ref().len()));
            }
        }
        Self::new(dim, rows.iter().flat_map(|r| r.as_ref().iter().copied()).collect())
    }

    /// The dimension, at least 1.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How many points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.coordinates.len() / self.dim
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.coordinates.is_empty()
    }

    /// Point `i`.
    ///
    /// # Panics
    /// When `i` is out of range, as indexing a slice does.
    #[must_use]
    pub fn row(&self, i: usize) -> &[f64] {
        &self.coordinates[i * self.dim..(i + 1) * self.dim]
    }

    /// The points in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.coordinates.chunks_exact(self.dim)
    }

    /// All coordinates, row by row.
    #[must_use]
    pub fn as_slice(&self) -> &[f64] {
        &self.coordinates
    }

    /// The coordinates, point by point, to be replaced by finite ones.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.coordinates
    }

    /// Some of the points, by their numbers.
    pub(crate) fn select(&self, which: &[usize]) -> Self {
        Self { dim: self.dim, coordinates: which.iter().flat_map(|&i| self.row(i).iter().copied()).collect() }
    }

    /// These points followed by `more`.
    ///
    /// # Errors
    /// [`Error::Length`] when the dimensions differ.
    pub fn concat(&self, more: &Self) -> Result<Self> {
        self.require_dim("appended points", more.dim)?;
        Ok(Self { dim: self.dim, coordinates: [self.as_slice(), more.as_slice()].concat() })
    }

    /// Checks that something of dimension `found` fits these points.
    ///
    /// # Errors
    /// [`Error::Length`] naming `what`.
    pub fn require_dim(&self, what: &str, found: usize) -> Result<()> {
        if found == self.dim { Ok(()) } else { Err(Error::length(what, self.dim, found)) }
    }
}
