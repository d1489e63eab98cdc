//! How well chains have mixed: split R̂ and effective sample sizes (Gelman et al., *Bayesian Data Analysis*, §11.4–11.5).

use crate::stats::mean;

/// The potential scale reduction of one quantity over chains of equal length, each split in halves: `√(((n−1)/n W + B/n)/W)`, with `W`
/// the mean variance within the halves and `B/n` the variance of their means. One if they agree; NaN for fewer than four draws.
#[must_use]
pub fn split_r_hat(chains: &[Vec<f64>]) -> f64 {
    let (within, pooled) = variances(&halves(chains));
    (pooled / within).sqrt()
}

/// The number of independent draws that would determine the mean of one quantity as well, `mn / (1 + 2 Σₜ ρₜ)` over the `m` halves
/// with `n` draws each.
///
/// The autocorrelations `ρₜ` combine all halves; their sum ends where a pair of neighbours is no longer positive, and pairs are not
/// allowed to grow (Geyer 1992). At most `mn log₁₀ mn`, where draws alternate. NaN for fewer than four draws a chain. Cost: `mn²` at worst.
#[must_use]
pub fn effective_size(chains: &[Vec<f64>]) -> f64 {
    let halves = halves(chains);
    let (within, pooled) = variances(&halves);
    let n = halves.first().map_or(0, Vec::len);
    let size = (halves.len() * n) as f64;
    if n < 2 {
        return f64::NAN;
    }
    let means: Vec<f64> = halves.iter().map(|h| mean(h)).collect();
    let rho = |lag: usize| -> f64 {
        let covariance = |(h, m): (&Vec<f64>, &f64)| -> f64 {
            h.iter().zip(&h[lag..]).map(|(a, b)| (a - m) * (b - m)).sum::<f64>() / n as f64
        };
        let covariances: Vec<f64> = halves.iter().zip(&means).map(covariance).collect();
        1.0 - (within - mean(&covariances)) / pooled
    };
    let (mut sum, mut lowest, mut lag) = (0.0, f64::INFINITY, 0);
    loop {
        let even = if lag == 0 { 1.0 } else { rho(lag) };
        let pair = even + rho(lag + 1);
        if pair <= 0.0 || lag + 4 >= n {
            // Half of a positive term at the end steadies the estimate where draws alternate; the last lags are hardly known.
            sum += 0.5 * even.max(0.0);
            break;
        }
        lowest = pair.min(lowest);
        sum += lowest;
        lag += 2;
    }
    // The sum counts lag zero once and every other lag once: 1 + 2 Σ = 2 · sum − 1.
    let time = (2.0 * sum - 1.0).max(1.0 / size.log10());
    size / time
}

fn halves(chains: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let half = chains.iter().map(Vec::len).min().unwrap_or(0) / 2;
    chains.iter().flat_map(|c| [c[..half].to_vec(), c[c.len() - half..].to_vec()]).collect()
}

/// The mean variance within chains, and the variance that all of them together suggest.
fn variances(chains: &[Vec<f64>]) -> (f64, f64) {
    let n = chains.first().map_or(0, Vec::len) as f64;
    let within = mean(&chains.iter().map(|c| variance(c)).collect::<Vec<_>>());
    let between = variance(&chains.iter().map(|c| mean(c)).collect::<Vec<_>>());
    (within, within * (n - 1.0) / n + between)
}

/// The unbiased sample variance.
fn variance(sample: &[f64]) -> f64 {
    let m = mean(sample);
    sample.iter().map(|x| (x - m).powi(2)).sum::<f64>() / (sample.len() as f64 - 1.0)
}
