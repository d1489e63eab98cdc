//! Weighted points from a belief about the integrand, by importance sampling with a proposal that adapts.

use crate::{
    belief::{log::LogBelief, measure::Gaussian, surrogate::Surrogate},
    choose::design::InitialDesign,
    error::{Error, Result},
    numeric::{
        log_sum::log_sum_exp,
        rng::{Purpose, Stream},
    },
    points::Points,
};

/// Proposals are adapted at most this often.
const STEPS: u64 = 12;

/// The share of draws worth having before a tempered posterior is good enough to fit the next proposal to.
const WORTH: f64 = 0.25;

/// The proposal is the fitted normal distribution made wider by this factor in every direction, so that tails are
/// covered.
const WIDER: f64 = 1.2;

/// One draw in this many comes from the measure, which bounds every weight by this multiple of the integrand.
const DEFENSIVE: usize = 8;

/// The fewest draws that a proposal can be fitted to.
const FEWEST: usize = 64;

/// Points in the coordinates of the surrogate with what their weights are made of.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) points: Points,
    /// `log E[f]`, −∞ where the belief is not positive.
    pub(super) log_mean: Vec<f64>,
    /// `log μ(x) − log q(x)`.
    pub(super) log_ratio: Vec<f64>,
    /// At how many points `E[f]` was negative.
    pub(super) negative: usize,
}

impl Sample {
    /// `n` points of the proposal that integrates a belief about the logarithm, whose measure is `dx` in its own
    /// coordinates.
    pub(super) fn of_log(belief: &LogBelief, n: usize, seed: u64) -> Result<Self> {
        let (points, log_mean, log_ratio) = belief.sample(n, seed)?;
        Ok(Self { points, log_mean, log_ratio, negative: 0 })
    }

    /// `n` scrambled Sobol points with weights for the density `∝ E[f] μ`.
    ///
    /// The proposal is a normal distribution fitted to `E[f]^β μ`, with `β` raised towards one as fast as the weights
    /// allow, mixed with `μ`. It begins with the `start`, where the moments of the posterior are known, or with `μ`.
    /// Cost: up to 12 predictions at `n` points.
    pub(super) fn adapted(belief: &Surrogate, start: Option<Gaussian>, n: usize, seed: u64) -> Result<Self> {
        if n < FEWEST {
            return Err(Error::invalid("number of posterior draws", n, format!("at least {FEWEST}")));
        }
        let known = start.is_some();
        let mut proposal = start;
        let mut best: Option<(f64, Self)> = None;
        for step in 0..STEPS {
            let sample = Self::new(belief, proposal.as_ref(), n, seed, step)?;
            let worth = sample.effective(1.0);
            let beta = sample.temper(WORTH * n as f64);
            let fitted = sample.fit(beta);
            if best.as_ref().is_none_or(|(b, _)| worth > *b) {
                best = Some((worth, sample));
            }
            match fitted {
                _ if worth == 0.0 && step == 0 => proposal = Some(around_best_node(belief)?),
                // Nothing to gain: the target itself was within reach, and the proposal has been fitted to it once.
                _ if beta >= 1.0 && (known || step > 0) => break,
                Some(fitted) => proposal = Some(fitted),
                None => break,
            }
        }
        match best {
            Some((worth, sample)) if worth > 0.0 => Ok(sample),
            _ => Err(Error::Numerical {
                what: "posterior draws".into(),
                reason: format!("the belief is positive at none of {n} draws"),
            }),
        }
    }

    fn new(belief: &Surrogate, fitted: Option<&Gaussian>, n: usize, seed: u64, step: u64) -> Result<Self> {
        let measure = belief.measure().components();
        let few = if fitted.is_some() { n / DEFENSIVE } else { n };
        let mut sources: Vec<(usize, &Gaussian)> =
            measure.iter().map(|(weight, g)| (((weight * few as f64) as usize).max(1), g)).collect();
        let given: usize = sources.iter().map(|(count, _)| count).sum();
        match fitted {
            Some(fitted) => sources.push((n.saturating_sub(given).max(1), fitted)),
            None => sources[0].0 += n.saturating_sub(given),
        }
        let all: usize = sources.iter().map(|(count, _)| count).sum();
        let mut flat = Vec::with_capacity(all * belief.measure().dim());
        for (k, (count, gaussian)) in sources.iter().enumerate() {
            // A sequence for each: every eighth point of one would not be spread evenly.
            let scramble = Stream::new(seed, Purpose::Posterior, (step << 32) | k as u64).bits();
            let standard = InitialDesign::Sobol.latent(gaussian.dim(), *count, scramble)?;
            standard.rows().for_each(|u| flat.extend(gaussian.map_standard(u)));
        }
        let points = Points::new(belief.measure().dim(), flat)?;
        let means = belief.expected(&points)?;
        let shares: Vec<f64> = sources.iter().map(|(count, _)| (*count as f64 / all as f64).ln()).collect();
        let log_ratio = points
            .rows()
            .map(|x| {
                let terms: Vec<f64> = sources.iter().zip(&shares).map(|((_, g), s)| s + g.log_density(x)).collect();
                belief.measure().log_density(x) - log_sum_exp(&terms)
            })
            .collect();
        Ok(Self {
            points,
            log_mean: means.iter().map(|m| if *m > 0.0 { m.ln() } else { f64::NEG_INFINITY }).collect(),
            log_ratio,
            negative: means.iter().filter(|m| **m < 0.0).count(),
        })
    }

    /// Weights for `E[f]^β μ`, the largest of them one; all zero when there is no mass.
    pub(super) fn weights(&self, beta: f64) -> Vec<f64> {
        let logs: Vec<f64> = self.log_mean.iter().zip(&self.log_ratio).map(|(m, r)| beta * m + r).collect();
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if top == f64::NEG_INFINITY {
            return vec![0.0; logs.len()];
        }
        logs.iter().map(|l| (l - top).exp()).collect()
    }

    /// The integral of `max(E[f], 0)` against the measure.
    pub(super) fn mass(&self) -> f64 {
        let terms = self.log_mean.iter().zip(&self.log_ratio).map(|(m, r)| (m + r).exp());
        terms.sum::<f64>() / self.log_ratio.len() as f64
    }

    /// `(Σw)²/Σw²`: how many independent draws the weighted ones are worth.
    pub(super) fn effective(&self, beta: f64) -> f64 {
        let w = self.weights(beta);
        let (sum, squares) = (w.iter().sum::<f64>(), w.iter().map(|w| w * w).sum::<f64>());
        if squares > 0.0 { sum * sum / squares } else { 0.0 }
    }

    /// The largest `β ≤ 1` for which at least `wanted` effective draws remain, by bisection.
    fn temper(&self, wanted: f64) -> f64 {
        if self.effective(1.0) >= wanted {
            return 1.0;
        }
        let (mut low, mut high) = (0.0, 1.0);
        // Sharp posteriors need an exponent that is small by many orders of magnitude.
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.effective(middle) >= wanted { low = middle } else { high = middle }
        }
        low
    }

    /// The normal distribution with the moments of the draws under `β`, widened; `None` when they do not span the
    /// space.
    fn fit(&self, beta: f64) -> Option<Gaussian> {
        let w = self.weights(beta);
        let total: f64 = w.iter().sum();
        let d = self.points.dim();
        let average =
            |of: &dyn Fn(&[f64]) -> f64| self.points.rows().zip(&w).map(|(x, w)| w * of(x)).sum::<f64>() / total;
        let mean: Vec<f64> = (0..d).map(|k| average(&|x| x[k])).collect();
        let covariance: Vec<Vec<f64>> =
            (0..d).map(|i| (0..d).map(|j| average(&|x| (x[i] - mean[i]) * (x[j] - mean[j]))).collect()).collect();
        widened(mean, &covariance)
    }
}

/// The proposal for a posterior of these moments; `None` when they are not those of a normal distribution.
pub(super) fn widened(mean: Vec<f64>, covariance: &[Vec<f64>]) -> Option<Gaussian> {
    let wider: Vec<Vec<f64>> = covariance.iter().map(|row| row.iter().map(|v| WIDER * WIDER * v).collect()).collect();
    Gaussian::new(mean, &wider).ok()
}

/// A lengthscale around the node of the highest posterior density: where to look when no draw from the measure meets
/// the posterior.
fn around_best_node(belief: &Surrogate) -> Result<Gaussian> {
    let (nodes, values) = (belief.nodes(), belief.node_values());
    let density = |i: usize| values[i].max(0.0).ln() + belief.measure().log_density(nodes.row(i));
    let best = (1..nodes.len()).fold(0, |b, i| if density(i) > density(b) { i } else { b });
    let lengthscales = belief.lengthscales();
    Gaussian::diagonal(nodes.row(best).to_vec(), &lengthscales.iter().map(|l| l * l).collect::<Vec<_>>())
}
