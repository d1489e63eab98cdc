//! Double sums over the posterior covariance of a process.

use super::Gp;
use crate::{
    belief::kernel::Kernel,
    error::Result,
    numeric::linalg::{Matrix, transpose_mul},
    points::Points,
};

/// Kernel columns that are made at once.
const BLOCK: usize = 256;

/// `Σₛₜ aₛ C(xₛ, xₜ) bₜ` for all pairs of columns `a`, `b`.
pub(crate) fn covariance_sums(gp: &Gp, points: &Points, columns: &Matrix) -> Result<Matrix> {
    let mut explained = Matrix::zeros(gp.nodes().len(), columns.cols());
    let mut prior = Matrix::zeros(columns.cols(), columns.cols());
    over_blocks(points, |first, block| {
        let part = Matrix::from_fn(block.len(), columns.cols(), |s, k| columns.get(first + s, k));
        add(&mut explained, &transpose_mul(&gp.kernel().gram(block, gp.nodes())?, &part));
        let felt = transpose_mul(&gp.kernel().gram(points, block)?, columns);
        add(&mut prior, &transpose_mul(&felt, &part));
        Ok(())
    })?;
    gp.factor().half_solve(&mut explained);
    let known = transpose_mul(&explained, &explained);
    Ok(Matrix::from_fn(columns.cols(), columns.cols(), |i, j| prior.get(i, j) - known.get(i, j)))
}

/// `Σₛₜ aₛ C(xₛ, xₜ)² bₜ` for all pairs of columns `a`, `b`. Cost: a solve a point.
pub(crate) fn squared_covariance_sums(gp: &Gp, points: &Points, columns: &Matrix) -> Result<Matrix> {
    let mut half = gp.kernel().gram(gp.nodes(), points)?;
    gp.factor().half_solve(&mut half);
    let mut sum = Matrix::zeros(columns.cols(), columns.cols());
    over_blocks(points, |first, block| {
        let own = Matrix::from_fn(half.rows(), block.len(), |i, s| half.get(i, first + s));
        let explained = transpose_mul(&half, &own);
        let kernel = gp.kernel().gram(points, block)?;
        let square =
            Matrix::from_fn(points.len(), block.len(), |s, t| (kernel.get(s, t) - explained.get(s, t)).powi(2));
        let part = Matrix::from_fn(block.len(), columns.cols(), |s, k| columns.get(first + s, k));
        add(&mut sum, &transpose_mul(&transpose_mul(&square, columns), &part));
        Ok(())
    })?;
    Ok(sum)
}

/// The points in blocks, each with the number of its first.
fn over_blocks(points: &Points, mut work: impl FnMut(usize, &Points) -> Result<()>) -> Result<()> {
    for (b, flat) in points.as_slice().chunks(BLOCK * points.dim()).enumerate() {
        work(b * BLOCK, &Points::new(points.dim(), flat.to_vec())?)?;
    }
    Ok(())
}

fn add(sum: &mut Matrix, more: &Matrix) {
    for j in 0..sum.cols() {
        sum.col_mut(j).iter_mut().zip(more.col(j)).for_each(|(s, m)| *s += m);
    }
}
