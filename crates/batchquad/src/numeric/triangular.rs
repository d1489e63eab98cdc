//! Triangular systems with many right-hand sides, and small ones with one.
//!
//! Row by row, `xᵢ = (bᵢ − Σₖ Lᵢₖ xₖ)/Lᵢᵢ` for `k < i`. Six rows and eight right-hand sides are kept in registers while
//! `k` runs over what is solved already; the rows of `L` are first copied to where that loop finds them one after the
//! other. Each column is the same arithmetic whatever columns stand beside it.

use pulp::{Arch, Simd, WithSimd};

use crate::numeric::simd::{dot, fma};

/// Rows and right-hand sides of a register tile: twelve vectors of four numbers.
const ROWS: usize = 6;
const COLS: usize = 8;
/// Tiles of rows whose part of `L` is copied together, so that whole cache lines of it are used.
const PANELS: usize = 4;

/// Columns of an inverse that are solved for together: enough to make copying `L` cheap, few enough to stay in the
/// cache.
const INVERTED: usize = 32;

/// Below this order the plain loop for one right-hand side beats a call of the matrix crate.
pub(crate) const SMALL: usize = 64;

/// Which of the two systems of a Cholesky factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    /// `L X = B`.
    Lower,
    /// `Lᵀ X = B`.
    Transposed,
}

impl System {
    /// Where row `i` stands: the transposed system is a lower one when read backwards.
    #[inline(always)]
    fn place(self, n: usize, i: usize) -> usize {
        match self {
            Self::Lower => i,
            Self::Transposed => n - 1 - i,
        }
    }
}

/// Overwrites the columns `B`, each of length `n`, with the solution.
///
/// `L` is `n × n`, its columns `stride` apart, its upper triangle not read. Cost: `n²` per column.
pub(crate) fn solve_many(system: System, n: usize, l: &[f64], stride: usize, b: &mut [f64]) {
    if n > 0 {
        Arch::new().dispatch(SolveMany { system, n, rows: Rows::Of(Source { system, n, l, stride }), b });
    }
}

/// All rows of a system where the solution finds them, for a factor that is used again and again: copying them takes as long as a solution for about
/// ten right-hand sides. The solutions have the same bits as those of [`solve_many`].
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    system: System,
    n: usize,
    rows: Vec<[f64; ROWS]>,
}

impl Packed {
    /// From the `n × n` factor `L`. Half as many numbers as `L` has.
    pub(crate) fn new(system: System, n: usize, l: &[f64]) -> Self {
        let source = Source { system, n, l, stride: n };
        let tiles = n.div_ceil(ROWS);
        let mut rows = vec![[0.0; ROWS]; tile_start(tiles)];
        for tile in 0..tiles {
            source.pack(tile * ROWS, &mut rows[tile_start(tile)..tile_start(tile + 1)]);
        }
        Self { system, n, rows }
    }

    /// Overwrites the columns `B`, each of length `n`, with the solution. Cost: `n²` per column.
    pub(crate) fn solve(&self, b: &mut [f64]) {
        if self.n > 0 {
            Arch::new().dispatch(SolveMany { system: self.system, n: self.n, rows: Rows::Packed(&self.rows), b });
        }
    }
}

/// Where the rows of a tile begin among those of all tiles: tile `t` has `(t + 1)·ROWS` of them.
fn tile_start(tile: usize) -> usize {
    ROWS * tile * (tile + 1) / 2
}

/// The diagonal of `(LLᵀ)⁻¹` for an `n × n` factor: `‖L⁻¹eᵢ‖²`. Cost: `n³/3`.
pub(crate) fn inverse_diagonal(n: usize, l: &[f64]) -> Vec<f64> {
    let mut diagonal = Vec::with_capacity(n);
    for first in (0..n).step_by(INVERTED) {
        let (m, mut block) = unit_columns(n, first);
        solve_many(System::Lower, m, &l[first * n + first..], n, &mut block);
        diagonal.extend(block.chunks_exact(m).map(|column| dot(column, column)));
    }
    diagonal
}

/// The next few columns of the `n × n` unit matrix from the column `first` on, without their first `first` rows, which
/// are zero; and how many rows are left.
fn unit_columns(n: usize, first: usize) -> (usize, Vec<f64>) {
    let (m, width) = (n - first, INVERTED.min(n - first));
    let mut block = vec![0.0; m * width];
    for j in 0..width {
        block[j * m + j] = 1.0;
    }
    (m, block)
}

/// Overwrites the lower triangle of the `n × n` factor `L` with that of `(LLᵀ)⁻¹`. Cost: `2n³/3`.
///
/// Below its diagonal, a column of the inverse needs only the part of `L` to the right of it and below. So the columns
/// are solved for from the left, and each takes the place of a column of `L` that is not needed any more.
pub(crate) fn invert_in_place(n: usize, l: &mut [f64]) {
    for first in (0..n).step_by(INVERTED) {
        let (m, mut block) = unit_columns(n, first);
        let corner = &l[first * n + first..];
        solve_many(System::Lower, m, corner, n, &mut block);
        solve_many(System::Transposed, m, corner, n, &mut block);
        for (j, column) in block.chunks_exact(m).enumerate() {
            l[(first + j) * n + first + j..(first + j + 1) * n].copy_from_slice(&column[j..]);
        }
    }
}

/// Overwrites `b` with `L⁻¹ b`, without any allocation.
pub(crate) fn solve_one(l: &[f64], b: &mut [f64]) {
    let n = b.len();
    for j in 0..n {
        let column = &l[j * n..(j + 1) * n];
        b[j] /= column[j];
        let x = b[j];
        for (b, l) in b[j + 1..].iter_mut().zip(&column[j + 1..]) {
            *b -= l * x;
        }
    }
}

/// Overwrites `b` with `L⁻ᵀ b`, without any allocation.
pub(crate) fn solve_one_transposed(l: &[f64], b: &mut [f64]) {
    let n = b.len();
    for j in (0..n).rev() {
        let column = &l[j * n..(j + 1) * n];
        b[j] = (b[j] - dot(&column[j + 1..], &b[j + 1..])) / column[j];
    }
}

/// A triangular system as it stands in memory.
struct Source<'a> {
    system: System,
    n: usize,
    l: &'a [f64],
    stride: usize,
}

/// The rows of a system: copied when they are needed, or before.
enum Rows<'a> {
    Of(Source<'a>),
    Packed(&'a [[f64; ROWS]]),
}

struct SolveMany<'a> {
    system: System,
    n: usize,
    rows: Rows<'a>,
    b: &'a mut [f64],
}

impl Source<'_> {
    /// Rows `first..first + ROWS` of the system, up to the diagonal, whose reciprocals take its place.
    #[inline(always)]
    fn pack(&self, first: usize, out: &mut [[f64; ROWS]]) {
        let (n, stride) = (self.n, self.stride);
        let (left, triangle) = out.split_at_mut(first);
        let full = first + ROWS <= n;
        match self.system {
            System::Lower if full => {
                for (k, entries) in left.iter_mut().enumerate() {
                    entries.copy_from_slice(&self.l[k * stride + first..][..ROWS]);
                }
            }
            System::Transposed if full => {
                let columns: [&[f64]; ROWS] = std::array::from_fn(|r| {
                    let j = n - 1 - first - r;
                    &self.l[j * stride + n - first..j * stride + n]
                });
                for (k, entries) in left.iter_mut().enumerate() {
                    for r in 0..ROWS {
                        entries[r] = columns[r][first - 1 - k];
                    }
                }
            }
            _ => {
                for (k, entries) in left.iter_mut().enumerate() {
                    *entries = std::array::from_fn(|r| self.entry(first + r, k));
                }
            }
        }
        for (k, entries) in triangle.iter_mut().enumerate() {
            *entries = std::array::from_fn(|r| self.entry(first + r, first + k));
            entries[k] = 1.0 / entries[k];
        }
    }

    /// Entry `(i, k)` of the system, continued by the unit matrix.
    #[inline(always)]
    fn entry(&self, i: usize, k: usize) -> f64 {
        if i >= self.n || k > i {
            return if i == k { 1.0 } else { 0.0 };
        }
        match self.system {
            System::Lower => self.l[k * self.stride + i],
            System::Transposed => self.l[(self.n - 1 - i) * self.stride + self.n - 1 - k],
        }
    }
}

impl WithSimd for SolveMany<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { system, n, rows, b } = self;
        let padded = n.next_multiple_of(ROWS);
        let groups = (b.len() / n).div_ceil(COLS);
        let mut x = vec![[0.0; COLS]; padded * groups];
        for (j, column) in b.chunks_exact(n).enumerate() {
            let group = &mut x[j / COLS * padded..][..n];
            for (i, row) in group.iter_mut().enumerate() {
                row[j % COLS] = column[system.place(n, i)];
            }
        }
        let mut copies = match &rows {
            Rows::Of(_) => vec![[0.0; ROWS]; padded * PANELS],
            Rows::Packed(_) => Vec::new(),
        };
        for first in (0..padded).step_by(ROWS * PANELS) {
            let last = padded.min(first + ROWS * PANELS);
            if let Rows::Of(source) = &rows {
                for (i, copy) in (first..last).step_by(ROWS).zip(copies.chunks_exact_mut(padded)) {
                    source.pack(i, &mut copy[..i + ROWS]);
                }
            }
            for group in x.chunks_exact_mut(padded) {
                for i in (first..last).step_by(ROWS) {
                    let tile = match &rows {
                        Rows::Of(_) => &copies[(i - first) / ROWS * padded..][..i + ROWS],
                        Rows::Packed(rows) => &rows[tile_start(i / ROWS)..][..i + ROWS],
                    };
                    let (solved, rest) = group.split_at_mut(i);
                    if let Some(rows) = rest.first_chunk_mut() {
                        eliminate::<S>(&tile[..i], solved, rows);
                        substitute::<S>(&tile[i..], rows);
                    }
                }
            }
        }
        for (j, column) in b.chunks_exact_mut(n).enumerate() {
            let group = &x[j / COLS * padded..][..n];
            for (i, row) in group.iter().enumerate() {
                column[system.place(n, i)] = row[j % COLS];
            }
        }
    }
}

/// `rows −= L x` over all that is solved.
#[inline(always)]
fn eliminate<S: Simd>(l: &[[f64; ROWS]], x: &[[f64; COLS]], rows: &mut [[f64; COLS]; ROWS]) {
    let mut sums = *rows;
    for (l, x) in l.iter().zip(x) {
        for r in 0..ROWS {
            for c in 0..COLS {
                sums[r][c] = fma::<S>(-l[r], x[c], sums[r][c]);
            }
        }
    }
    *rows = sums;
}

/// Solves the triangle on the diagonal, which holds reciprocals there.
#[inline(always)]
fn substitute<S: Simd>(l: &[[f64; ROWS]], rows: &mut [[f64; COLS]; ROWS]) {
    for k in 0..ROWS {
        for c in 0..COLS {
            rows[k][c] *= l[k][k];
        }
        let solved = rows[k];
        // Written with constant bounds, so that it unrolls.
        for r in 0..ROWS {
            if r > k {
                for c in 0..COLS {
                    rows[r][c] = fma::<S>(-l[k][r], solved[c], rows[r][c]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every remainder of tiles and panels, both systems, against the definition of a solution.
    #[test]
    fn solutions_solve() {
        for n in (1..=31).chain([48, 101]) {
            let l: Vec<f64> = (0..n * n)
                .map(|e| match (e % n, e / n) {
                    (i, j) if i == j => 2.0 + (e as f64).sin(),
                    (i, j) if i > j => (1.7 * e as f64).sin() / n as f64,
                    _ => f64::NAN,
                })
                .collect();
            for q in [1, 7, 8, 19] {
                for system in [System::Lower, System::Transposed] {
                    let b: Vec<f64> = (0..n * q).map(|e| (0.3 * e as f64).cos()).collect();
                    let mut x = b.clone();
                    solve_many(system, n, &l, n, &mut x);
                    let mut again = b.clone();
                    Packed::new(system, n, &l).solve(&mut again);
                    assert_eq!(x, again);
                    for (x, b) in x.chunks(n).zip(b.chunks(n)) {
                        for i in 0..n {
                            let back: f64 = match system {
                                System::Lower => (0..=i).map(|k| l[k * n + i] * x[k]).sum(),
                                System::Transposed => (i..n).map(|k| l[i * n + k] * x[k]).sum(),
                            };
                            // A sum of n products of order one over n.
                            assert!((back - b[i]).abs() < 1e-14, "{system:?} {n} {q}: {back} {}", b[i]);
                        }
                        let mut one = b.to_vec();
                        match system {
                            System::Lower => solve_one(&l, &mut one),
                            System::Transposed => solve_one_transposed(&l, &mut one),
                        }
                        assert!(one.iter().zip(x).all(|(a, b)| (a - b).abs() < 1e-14));
                    }
                }
            }
        }
        solve_many(System::Lower, 0, &[], 0, &mut []);
    }

    #[test]
    fn columns_do_not_depend_on_their_company() {
        let n = 50;
        let l: Vec<f64> = (0..n * n).map(|e| if e % n == e / n { 1.5 } else { (e as f64).sin() / 50.0 }).collect();
        let b: Vec<f64> = (0..n * 11).map(|e| (0.7 * e as f64).sin()).collect();
        for system in [System::Lower, System::Transposed] {
            let mut together = b.clone();
            solve_many(system, n, &l, n, &mut together);
            for (together, b) in together.chunks(n).zip(b.chunks(n)) {
                let mut alone = b.to_vec();
                solve_many(system, n, &l, n, &mut alone);
                assert_eq!(alone, together);
            }
        }
    }
}
