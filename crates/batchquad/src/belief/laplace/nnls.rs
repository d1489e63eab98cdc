//! Least squares with non-negative unknowns.

use crate::{
    error::Result,
    numeric::linalg::{Factor, Jitter, Matrix},
};

/// The `w ≥ 0` that minimises `|A w − b|²`, from `G = AᵀA` (symmetric) and `r = Aᵀb`: the active-set method of Lawson
/// and Hanson.
///
/// Unknowns enter the free set one at a time, the one with the steepest descent first; when the unconstrained solution
/// on the free set turns negative, the way there is cut short at the first zero, which leaves the set again. Columns
/// are taken to unit length, so that their scales do not matter. Cost: `K³` for each of about `K` steps.
///
/// # Errors
/// [`crate::Error::NotPositiveDefinite`] when the Gram matrix is not finite.
pub(super) fn nnls(gram: &Matrix, rhs: &[f64]) -> Result<Vec<f64>> {
    let k = rhs.len();
    let length: Vec<f64> = (0..k).map(|a| gram.get(a, a).sqrt()).collect();
    let usable: Vec<bool> = length.iter().map(|&l| l > 0.0).collect();
    let unit = |a: usize, b: usize| gram.get(a, b) / (length[a] * length[b]);
    let r: Vec<f64> = (0..k).map(|a| if usable[a] { rhs[a] / length[a] } else { 0.0 }).collect();
    // Below this a slope is rounding: the columns have unit length, so |r| is at most |b|.
    let noise = 1e-13 * r.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    let mut w = vec![0.0; k];
    let mut free = vec![false; k];
    // Each pass lowers the objective, so no free set can recur; the limit is for rounding.
    for _ in 0..4 * k {
        let slope = |a: usize| r[a] - (0..k).filter(|&b| free[b]).map(|b| unit(a, b) * w[b]).sum::<f64>();
        let entering = (0..k)
            .filter(|&a| usable[a] && !free[a])
            .map(|a| (a, slope(a)))
            .filter(|(_, s)| *s > noise)
            .max_by(|x, y| x.1.total_cmp(&y.1));
        let Some((a, _)) = entering else { break };
        free[a] = true;
        loop {
            let set: Vec<usize> = (0..k).filter(|&b| free[b]).collect();
            let block = Matrix::from_fn(set.len(), set.len(), |i, j| unit(set[i], set[j]));
            let target: Vec<f64> = set.iter().map(|&b| r[b]).collect();
            // Components that nearly coincide share their weight instead of fighting over it.
            let jitter = Jitter { nugget: 1e-14, rungs: 8 };
            let solution = Factor::new(|| block.clone(), 1.0, jitter)?.solve_vec(&target);
            let step = set
                .iter()
                .zip(&solution)
                .filter(|(_, s)| **s <= 0.0)
                .map(|(&b, &s)| w[b] / (w[b] - s))
                .fold(1.0, f64::min);
            for (&b, &s) in set.iter().zip(&solution) {
                w[b] += step * (s - w[b]);
                if s <= 0.0 && w[b] <= f64::EPSILON * s.abs() {
                    w[b] = 0.0;
                    free[b] = false;
                }
            }
            if step >= 1.0 || !free.contains(&true) {
                break;
            }
        }
    }
    Ok((0..k).map(|a| if usable[a] { w[a] / length[a] } else { 0.0 }).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normal_equations(a: &[Vec<f64>], b: &[f64]) -> (Matrix, Vec<f64>) {
        let k = a[0].len();
        let gram = Matrix::from_fn(k, k, |i, j| a.iter().map(|row| row[i] * row[j]).sum());
        (gram, (0..k).map(|i| a.iter().zip(b).map(|(row, b)| row[i] * b).sum()).collect())
    }

    proptest! {
        /// The conditions of Karush, Kuhn and Tucker are necessary and sufficient here, so they are the whole
        /// specification.
        #[test]
        fn satisfies_the_optimality_conditions(
            rows in prop::collection::vec(prop::collection::vec(-1.0..1.0_f64, 5), 12),
            b in prop::collection::vec(-1.0..1.0_f64, 12),
        ) {
            let (gram, rhs) = normal_equations(&rows, &b);
            let w = nnls(&gram, &rhs).unwrap();
            for (a, fitted) in gram.mul_vec(&w).iter().enumerate() {
                // Rounding of sums of a dozen products of order one, magnified by the condition of a random 12 × 5
                // matrix.
                let slope = rhs[a] - fitted;
                prop_assert!(w[a] >= 0.0 && slope < 1e-9 && (w[a] == 0.0 || slope.abs() < 1e-9), "{w:?} {slope}");
            }
        }
    }

    #[test]
    fn survives_equal_and_empty_columns() {
        let rows: Vec<Vec<f64>> = (0..6).map(|i| vec![f64::from(i), f64::from(i), 0.0, 1.0]).collect();
        let b: Vec<f64> = (0..6).map(|i| 2.0 * f64::from(i) + 3.0).collect();
        let (gram, rhs) = normal_equations(&rows, &b);
        let w = nnls(&gram, &rhs).unwrap();
        assert!((w[0] + w[1] - 2.0).abs() < 1e-9 && w[2] == 0.0 && (w[3] - 3.0).abs() < 1e-9, "{w:?}");
        assert_eq!(nnls(&gram, &rhs.iter().map(|v| -v).collect::<Vec<_>>()).unwrap(), vec![0.0; 4]);
    }
}
