//! Twins: values at places that nearly coincide tell noise from structure. `MATH.md` §15.

use super::known::Known;
use crate::points::square_distance;

/// Nodes closer than this, in latent coordinates, tell noise from structure; closer than `nodes::COINCIDENT` they would be one.
const TWINS: f64 = 1e-4;

/// Noise below this is of no interest.
const NOISELESS: f64 = 0.02;

/// The most pairs of twins that are asked for.
const MOST_TWINS: usize = 4;

/// What χ² with one, two, … degrees of freedom is below once in a hundred times.
const LEAST_CHI_SQUARE: [f64; 4] = [1.5709e-4, 0.020101, 0.11483, 0.29711];

/// Twins further below the best than this say nothing: there the slope alone makes them differ.
const TWIN_DEPTH: f64 = 30.0;

impl Known {
    /// Differences of values at nodes that nearly coincide.
    fn twins(&self) -> Vec<f64> {
        let high: Vec<usize> = (0..self.len()).filter(|&i| self.depth[i] < TWIN_DEPTH).collect();
        let mut gaps = Vec::new();
        for (k, &i) in high.iter().enumerate() {
            for &j in &high[..k] {
                if square_distance(self.nodes.row(i), self.nodes.row(j)) < TWINS * TWINS {
                    gaps.push((self.depth[i] - self.depth[j]).abs());
                }
            }
        }
        gaps
    }

    /// The largest noise η that twins allow. For `k + 1` values at one place, `Σ(yᵢ − yⱼ)² = (k + 1)η²χ²ₖ` over all pairs: with a larger η the sum would be
    /// smaller than it is once in a hundred times. A single pair may be close by chance, and says little. There is no bound before there are twins.
    pub(crate) fn noise_cap(&self) -> f64 {
        let gaps = self.twins();
        if gaps.is_empty() {
            return f64::INFINITY;
        }
        // k(k + 1)/2 pairs.
        let free = (((8 * gaps.len() + 1) as f64).sqrt() - 1.0) / 2.0;
        let least = LEAST_CHI_SQUARE[(free as usize).clamp(1, LEAST_CHI_SQUARE.len()) - 1];
        let sum: f64 = gaps.iter().map(|g| g * g).sum();
        NOISELESS.max((sum / ((free + 1.0) * least)).sqrt())
    }

    /// A point beside the best node that tells noise from structure, where a fitted noise is not explained by twins yet.
    pub(crate) fn twin_wanted(&self, noise: f64) -> Option<Vec<f64>> {
        let pairs = self.twins().len();
        let explained = pairs > 0 && noise < 0.9 * self.noise_cap();
        if noise <= 2.5 * NOISELESS || explained || pairs >= MOST_TWINS {
            return None;
        }
        let step = (0.3 + 0.1 * pairs as f64) * TWINS / (self.dim() as f64).sqrt();
        Some(self.best_node().iter().map(|v| v + step).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::Points;

    #[test]
    fn a_single_pair_that_is_close_by_chance_does_not_exclude_noise() {
        let with = |values: &[f64]| {
            let mut nodes = vec![vec![1.0], vec![-1.0]];
            let mut logs = vec![-2.0, -3.0];
            for (i, v) in values.iter().enumerate() {
                nodes.push(vec![1e-5 * i as f64]);
                logs.push(*v);
            }
            let n = logs.len();
            Known::new(Points::from_rows(&nodes).unwrap(), &logs, vec![0.0; n], vec![false; n]).unwrap().noise_cap()
        };
        assert_eq!(with(&[0.0]), f64::INFINITY);
        // The difference of two values with a noise of 0.3 is below 0.006 once in ninety times.
        assert!(with(&[0.0, 0.006]) > 0.3);
        // A third that is as close makes it incredible, and exact values have none.
        assert!(with(&[0.0, 0.006, 0.003]) < 0.05);
        assert_eq!(with(&[0.0, 1e-6]), NOISELESS);
        // Values that differ allow for at least as much as they do.
        assert!(with(&[0.0, 0.4, -0.3]) > 0.5);
    }
}
