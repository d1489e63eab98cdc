//! A peak in probabilities: what a normal distribution of these explains. `MATH.md` §15.

use super::{integral::resample, known::Known, peak::Peak, proposal::Normal};
use crate::numeric::normal::cdf;

/// Points of the posterior that stand for it.
const POINTS: usize = 512;

/// A normal distribution of the probabilities `p = Φ(u)` under the prior, with the mean and the covariance of the posterior.
///
/// Under a uniform prior these are the parameters but for their unit. A likelihood that is normal in them is not in latent coordinates, which go to ±∞ at the
/// ends of the prior: there it falls off far more slowly than any quadratic expects.
pub(super) struct Chart {
    normal: Normal,
    /// The largest log-likelihood of the peak.
    top: f64,
}

impl Chart {
    /// None where the covariance is not positive definite.
    pub(super) fn new(peak: &Peak) -> Option<Self> {
        let d = peak.known.dim();
        let chosen = resample(&peak.integral.weights, POINTS, 0.5);
        let rows: Vec<Vec<f64>> =
            chosen.iter().map(|&k| shares(&peak.view.leave(peak.integral.points.row(k)))).collect();
        let average = |f: &dyn Fn(&[f64]) -> f64| rows.iter().map(|r| f(r)).sum::<f64>() / rows.len() as f64;
        let mean: Vec<f64> = (0..d).map(|a| average(&|r| r[a])).collect();
        let product = |k: usize| average(&|r| (r[k / d] - mean[k / d]) * (r[k % d] - mean[k % d]));
        let covariance: Vec<f64> = (0..d * d).map(product).collect();
        Some(Self { normal: Normal::with_covariance(mean.clone(), &covariance)?, top: peak.known.largest_near() })
    }

    /// How far below the top a log-likelihood is, relative to how far it is expected to be.
    pub(super) fn share(&self, known: &Known, i: usize) -> f64 {
        let white = self.normal.white(&shares(known.nodes.row(i)));
        let expected = 0.5 * white.iter().map(|z| z * z).sum::<f64>();
        (self.top - known.log_likelihood(i)) / expected.max(f64::MIN_POSITIVE)
    }
}

fn shares(u: &[f64]) -> Vec<f64> {
    u.iter().map(|v| cdf(*v)).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::search, *};
    use crate::points::Points;

    /// Under a uniform prior, a likelihood that is normal in the parameter is explained in probabilities as far as the ends of the prior, and in latent
    /// coordinates it is not.
    #[test]
    fn a_normal_likelihood_under_a_uniform_prior_is_explained_to_its_ends() {
        let places: Vec<Vec<f64>> = (0..30)
            .map(|i| vec![if i < 20 { 0.15 * (1.7 * f64::from(i)).sin() } else { 0.3 * f64::from(i - 20) }])
            .collect();
        let logs: Vec<f64> = places.iter().map(|u| -0.5 * ((cdf(u[0]) - 0.5) / 0.02).powi(2)).collect();
        let nodes = Points::from_rows(&places).unwrap();
        let known = Known::new(nodes, &logs, vec![0.0; 30], vec![false; 30]).unwrap();
        let belief = search(&known, None, 1).unwrap();
        let peak = belief.main();
        let chart = Chart::new(peak).unwrap();
        for i in 24..30 {
            let share = chart.share(&peak.known, i);
            assert!((share - 1.0).abs() < 0.2, "{i}: {share}");
        }
        let normal = 0.5 * peak.view.enter(known.nodes.row(29)).iter().map(|x| x * x).sum::<f64>();
        assert!(known.depth[29] < 0.5 * normal, "{} {normal}", known.depth[29]);
    }
}
