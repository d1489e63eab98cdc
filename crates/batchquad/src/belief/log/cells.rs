//! Which peak a place belongs to, where the posterior has several. `MATH.md` §15.

use super::{
    proposal::Normal,
    view::{Region, View},
};
use crate::error::Result;

/// Peaks whose cells are told apart by less than this, in nats, are near the border between them.
const BORDER: f64 = 1.0;

/// How much wider a peak is taken to be when one asks whether it reaches the border.
const WIDER: f64 = 1.4;

/// A part of the latent space for every peak: the places at which its normal approximation is the largest. No cells stand for one that is everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cells {
    normals: Vec<Normal>,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell<'a> {
    cells: &'a Cells,
    own: usize,
}

impl Cells {
    /// The cells of peaks that are where these regions are. Cost per place: `d²` for every peak.
    ///
    /// # Errors
    /// When a covariance is not positive definite.
    pub(crate) fn new(regions: &[Region]) -> Result<Self> {
        if regions.len() < 2 {
            return Ok(Self::default());
        }
        let normal = |region: &Region| View::made(region.clone()).map(|view| view.normal().scaled(WIDER));
        Ok(Self { normals: regions.iter().map(normal).collect::<Result<_>>()? })
    }

    /// The cell of a peak; none where that is everything.
    pub(crate) fn cell(&self, own: usize) -> Option<Cell<'_>> {
        (!self.normals.is_empty()).then_some(Cell { cells: self, own })
    }

    /// The number of the peak to which a latent point belongs.
    pub(crate) fn at(&self, u: &[f64]) -> usize {
        self.two_largest(u).0
    }

    /// Whether a latent point is near the border between two cells.
    pub(crate) fn near_border(&self, u: &[f64]) -> bool {
        self.two_largest(u).1 < BORDER
    }

    /// The number of the cell, and by how many nats it is ahead of the next.
    fn two_largest(&self, u: &[f64]) -> (usize, f64) {
        let (mut best, mut first, mut second) = (0, f64::NEG_INFINITY, f64::NEG_INFINITY);
        for (k, normal) in self.normals.iter().enumerate() {
            let density = normal.log_density(u);
            if density > first {
                (best, second, first) = (k, first, density);
            } else {
                second = second.max(density);
            }
        }
        (best, first - second)
    }
}

impl Cell<'_> {
    /// Whether a latent point belongs to it.
    pub(crate) fn contains(&self, u: &[f64]) -> bool {
        self.cells.at(u) == self.own
    }
}
