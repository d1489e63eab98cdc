//! Nodes that the model cannot tell apart are one node. `MATH.md` §11.

use crate::{error::Result, numeric::log_sum::log_sum_exp, points::Points};

/// Nodes closer than this, in latent coordinates, are one node.
///
/// With a jitter of `10⁻¹⁰` two nodes `10⁻⁵` lengthscales apart are the same to the kernel (`1 − k ≈ ½·10⁻¹⁰`). Kept apart they add
/// nothing when they agree, and weights of `10⁹` when they do not.
pub const COINCIDENT: f64 = 1e-5;

/// Log-likelihoods at one node that differ by more than this contradict each other.
pub const CONTRADICTION: f64 = 0.05;

/// Distinct nodes with their log-likelihoods.
#[derive(Debug, Clone, PartialEq)]
pub struct Nodes {
    /// The nodes, each where the first of its kind was.
    pub points: Points,
    /// The logarithm of the mean likelihood of each.
    pub log_values: Vec<f64>,
    /// The mean log-likelihood of each, which is what noise of log-likelihoods leaves unbiased.
    pub log_means: Vec<f64>,
    /// How many values each has.
    pub counts: Vec<usize>,
    /// The standard deviation of the mean of each, from how its values scatter; zero for a single one.
    pub scatter: Vec<f64>,
    /// How many values were joined to a node that was there before.
    pub merged: usize,
    /// How many nodes have values that contradict each other: the likelihood is noisy, or jumps.
    pub contradictory: usize,
}

impl Nodes {
    /// Joins what coincides: a node's likelihood is the mean of those told there. Cost: `n²d`.
    ///
    /// # Errors
    /// [`crate::Error::Length`] and [`crate::Error::NonFinitePoint`] as [`Points::from_rows`].
    pub fn new(rows: &[Vec<f64>], log_values: &[f64]) -> Result<Self> {
        let mut groups: Vec<(usize, Vec<f64>)> = Vec::new();
        for (i, (row, value)) in rows.iter().zip(log_values).enumerate() {
            let same = |j: usize| {
                let square: f64 = rows[j].iter().zip(row).map(|(a, b)| (a - b) * (a - b)).sum();
                square < COINCIDENT * COINCIDENT
            };
            match groups.iter_mut().find(|(first, _)| same(*first)) {
                Some((_, values)) => values.push(*value),
                None => groups.push((i, vec![*value])),
            }
        }
        let spread = |values: &[f64]| {
            let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            values.iter().any(|v| largest - v > CONTRADICTION)
        };
        let firsts: Vec<&[f64]> = groups.iter().map(|(first, _)| rows[*first].as_slice()).collect();
        Ok(Self {
            points: Points::from_rows(&firsts)?,
            log_values: groups.iter().map(|(_, v)| mean_likelihood(v)).collect(),
            log_means: groups.iter().map(|(_, v)| v.iter().sum::<f64>() / v.len() as f64).collect(),
            counts: groups.iter().map(|(_, v)| v.len()).collect(),
            scatter: groups.iter().map(|(_, v)| scatter(v)).collect(),
            merged: rows.len() - groups.len(),
            contradictory: groups.iter().filter(|(_, v)| spread(v)).count(),
        })
    }
}

/// `√(Σ (lᵢ − l̄)²/(n(n − 1)))` of finite values.
fn scatter(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 || !mean.is_finite() {
        return 0.0;
    }
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n * (n - 1.0))).sqrt()
}

/// `log(Σ ℓᵢ / n)`; a single value comes back to its bits.
fn mean_likelihood(values: &[f64]) -> f64 {
    match values {
        [only] => *only,
        _ => log_sum_exp(values) - (values.len() as f64).ln(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_coincides_is_joined_and_counted() {
        let rows = [vec![0.0, 0.0], vec![1.0, 0.0], vec![1e-14, 0.0], vec![1.0, 1e-6], vec![0.0, 1e-3]];
        let logs = [-1.0, 0.0, -1.0, 0.3, f64::NEG_INFINITY];
        let nodes = Nodes::new(&rows, &logs).unwrap();
        assert_eq!(nodes.points.len(), 3);
        assert_eq!((nodes.merged, nodes.contradictory), (2, 1));
        assert!((nodes.log_values[0] + 1.0).abs() < 1e-15);
        assert!((nodes.log_values[1] - (0.5 * (1.0 + 0.3_f64.exp())).ln()).abs() < 1e-15);
        assert_eq!(nodes.log_values[2], f64::NEG_INFINITY);
        // Likelihood zero and not zero at one place is a contradiction too.
        let clash = Nodes::new(&[vec![0.0], vec![0.0]], &[f64::NEG_INFINITY, 0.0]).unwrap();
        assert_eq!(clash.contradictory, 1);
        assert!((clash.log_values[0] + 2.0_f64.ln()).abs() < 1e-15);
        let zero = Nodes::new(&[vec![0.0], vec![0.0]], &[f64::NEG_INFINITY; 2]).unwrap();
        assert_eq!((zero.contradictory, zero.log_values[0]), (0, f64::NEG_INFINITY));
    }
}
