//! What the belief about the integrand says about the parameters.

use crate::{
    acquire::integrand_moments,
    design::InitialDesign,
    error::{Error, Result},
    measure::Gaussian,
    points::Points,
    prior::{Prior, normal},
    surrogate::Surrogate,
};

/// Posterior means and standard deviations of the parameters, in the user's own units.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// The mean of each parameter.
    pub mean: Vec<f64>,
    /// The standard deviation of each.
    pub sd: Vec<f64>,
    /// `(Σw)²/Σw²`: how many independent draws the weighted ones are worth.
    pub effective_samples: f64,
}

/// Proposals are adapted at most this often.
const STEPS: u64 = 12;

/// The share of draws worth having before a tempered posterior is good enough to fit the next proposal to.
const WORTH: f64 = 0.25;

/// The proposal is the fitted normal distribution made wider by this factor in every direction, so that tails are covered.
const WIDER: f64 = 1.2;

/// One draw in this many comes from the prior, which bounds every weight by this multiple of the likelihood.
const DEFENSIVE: usize = 8;

/// Means and standard deviations under the density `∝ E[f](u) N(u; 0, I)`, by self-normalised importance sampling with `n`
/// scrambled Sobol points.
///
/// The proposal starts at the prior and is a normal distribution fitted to `E[f]^β N(u; 0, I)`, with `β` raised towards one as fast as the
/// weights allow, mixed with the prior. Cost: up to 12 predictions at `n` points.
///
/// # Errors
/// [`Error::Invalid`] for fewer than 64 points, [`Error::Length`] for a prior of another dimension, [`Error::Numerical`] when the belief
/// is positive at none of the draws.
pub fn moments(belief: &Surrogate, prior: &Prior, n: usize, seed: u64) -> Result<Moments> {
    if n < 64 {
        return Err(Error::invalid("number of posterior draws", n, "at least 64"));
    }
    belief.gp().nodes().require_dim("prior", prior.dim())?;
    let mut proposal = Gaussian::standard(prior.dim())?;
    let mut best: Option<Draws> = None;
    for step in 0..STEPS {
        let draws = Draws::new(belief, &proposal, n, seed.wrapping_add(step))?;
        let worth = draws.effective(1.0);
        if best.as_ref().is_none_or(|b| worth > b.effective(1.0)) {
            best = Some(draws.clone());
        }
        let beta = draws.temper(WORTH * n as f64);
        match draws.fit(beta) {
            _ if worth == 0.0 && step == 0 => proposal = around_best_node(belief)?,
            // Nothing to gain: the target itself was within reach, and the proposal has been fitted to it once.
            _ if beta >= 1.0 && step > 0 => break,
            Some(fitted) => proposal = fitted,
            None => break,
        }
    }
    let best = best.filter(|b| b.effective(1.0) > 0.0).ok_or_else(|| Error::Numerical {
        what: "posterior moments".into(),
        reason: format!("the belief is positive at none of {n} draws"),
    })?;
    best.moments(prior)
}

/// A lengthscale around the node of the highest posterior density: where to look when no draw from the prior meets the posterior.
fn around_best_node(belief: &Surrogate) -> Result<Gaussian> {
    let nodes = belief.gp().nodes();
    let values = integrand_moments(belief, nodes)?;
    let density = |i: usize| values[i].0.max(0.0).ln() + belief.measure().log_density(nodes.row(i));
    let best = (1..nodes.len()).fold(0, |b, i| if density(i) > density(b) { i } else { b });
    let lengthscales = belief.gp().kernel().lengthscales();
    Gaussian::diagonal(nodes.row(best).to_vec(), &lengthscales.iter().map(|l| l * l).collect::<Vec<_>>())
}

/// Points from a proposal with what their weights are made of.
#[derive(Clone)]
struct Draws {
    latent: Points,
    /// `log E[f]`, −∞ where the belief is not positive.
    log_mean: Vec<f64>,
    /// `log N(u; 0, I) − log q(u)`.
    log_ratio: Vec<f64>,
}

impl Draws {
    fn new(belief: &Surrogate, proposal: &Gaussian, n: usize, seed: u64) -> Result<Self> {
        // Two sequences of their own: every eighth point of one would not be spread evenly.
        let (few, d) = (n / DEFENSIVE, proposal.dim());
        let from_prior = InitialDesign::Sobol.latent(d, few, seed ^ 1 << 63)?;
        let fitted = InitialDesign::Sobol.latent(d, n - few, seed)?;
        let rows: Vec<Vec<f64>> =
            from_prior.rows().map(<[f64]>::to_vec).chain(fitted.rows().map(|u| proposal.map_standard(u))).collect();
        let latent = Points::from_rows(&rows)?;
        let log_mean = integrand_moments(belief, &latent)?
            .into_iter()
            .map(|(mean, _)| if mean > 0.0 { mean.ln() } else { f64::NEG_INFINITY })
            .collect();
        let share = few as f64 / n as f64;
        let log_ratio = latent
            .rows()
            .map(|u| {
                let base: f64 = u.iter().map(|u| normal::log_density(*u)).sum();
                // −log(share + (1 − share) q/φ), written so that neither a large nor a small quotient overflows.
                let quotient = proposal.log_density(u) - base;
                let top = quotient.max(0.0);
                -(top + (share * (-top).exp() + (1.0 - share) * (quotient - top).exp()).ln())
            })
            .collect();
        Ok(Self { latent, log_mean, log_ratio })
    }

    /// Weights for `E[f]^β N(u; 0, I)`, the largest of them one; all zero when there is no mass.
    fn weights(&self, beta: f64) -> Vec<f64> {
        let logs: Vec<f64> = self.log_mean.iter().zip(&self.log_ratio).map(|(m, r)| beta * m + r).collect();
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if top == f64::NEG_INFINITY {
            return vec![0.0; logs.len()];
        }
        logs.iter().map(|l| (l - top).exp()).collect()
    }

    fn effective(&self, beta: f64) -> f64 {
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

    /// The normal distribution with the moments of the draws under `β`; `None` when they do not span the space.
    fn fit(&self, beta: f64) -> Option<Gaussian> {
        let w = self.weights(beta);
        let total: f64 = w.iter().sum();
        let d = self.latent.dim();
        let average =
            |of: &dyn Fn(&[f64]) -> f64| self.latent.rows().zip(&w).map(|(u, w)| w * of(u)).sum::<f64>() / total;
        let mean: Vec<f64> = (0..d).map(|k| average(&|u| u[k])).collect();
        let covariance: Vec<Vec<f64>> = (0..d)
            .map(|i| (0..d).map(|j| WIDER * WIDER * average(&|u| (u[i] - mean[i]) * (u[j] - mean[j]))).collect())
            .collect();
        Gaussian::new(mean, &covariance).ok()
    }

    fn moments(&self, prior: &Prior) -> Result<Moments> {
        let w = self.weights(1.0);
        let total: f64 = w.iter().sum();
        let (mut thetas, mut shares) = (Vec::new(), Vec::new());
        for (u, w) in self.latent.rows().zip(&w).filter(|(_, w)| **w > 0.0) {
            thetas.push(prior.to_theta(u)?);
            shares.push(w / total);
        }
        let average = |of: &dyn Fn(&[f64]) -> f64| thetas.iter().zip(&shares).map(|(t, s)| s * of(t)).sum::<f64>();
        let mean: Vec<f64> = (0..prior.dim()).map(|k| average(&|t| t[k])).collect();
        let sd = (0..prior.dim()).map(|k| average(&|t| (t[k] - mean[k]).powi(2)).sqrt()).collect();
        Ok(Moments { mean, sd, effective_samples: self.effective(1.0) })
    }
}

/// Mean and covariance of `∝ (α + ½m²)μ` in latent coordinates, in closed form. Cost: `n²d` a component.
///
/// # Errors
/// When the total mass is not positive.
pub fn latent_moments(belief: &Surrogate) -> Result<(Vec<f64>, crate::linalg::Matrix)> {
    use crate::{embed::EmbedProducts, linalg::{Factor, Matrix}, measure::Mixture};
    let gp = belief.gp();
    let (kernel, nodes, w) = (gp.kernel(), gp.nodes(), gp.weights());
    let (n, d) = (nodes.len(), nodes.dim());
    let mut total = 0.0;
    let mut first = vec![0.0; d];
    let mut second = vec![vec![0.0; d]; d];
    for (rho, g) in belief.measure().components() {
        let p = kernel.product(&Mixture::from(g.clone()), nodes, nodes)?;
        let sf = Factor::exact("S", g.covariance())?;
        let sinv = sf.inverse_lower();
        let sinv = |i: usize, j: usize| sinv.get(i.max(j), i.min(j));
        let l = kernel.lengthscales();
        let prec = Matrix::from_fn(d, d, |i, j| sinv(i, j) + if i == j { 2.0 / (l[i] * l[i]) } else { 0.0 });
        let tinv = Factor::exact("T", &prec)?.inverse_lower();
        let t = |i: usize, j: usize| tinv.get(i.max(j), i.min(j));
        let sb: Vec<f64> = (0..d).map(|i| (0..d).map(|j| sinv(i, j) * g.mean()[j]).sum()).collect();
        let c: Vec<Vec<f64>> = nodes
            .rows()
            .map(|x| (0..d).map(|i| (0..d).map(|j| t(i, j) * (2.0 * x[j] / (l[j] * l[j]) + sb[j])).sum()).collect())
            .collect();
        let mut weight = 0.0;
        let mut row = vec![0.0; n];
        let mut wc = vec![vec![0.0; d]; n];
        for j in 0..n {
            for i in 0..n {
                let v = 0.5 * rho * w[i] * w[j] * p.get(i, j);
                row[i] += v;
                for a in 0..d {
                    wc[i][a] += v * c[j][a];
                }
            }
        }
        for i in 0..n {
            weight += row[i];
        }
        let alpha = rho * belief.alpha();
        total += weight + alpha;
        for a in 0..d {
            first[a] += alpha * g.mean()[a];
            for i in 0..n {
                first[a] += row[i] * c[i][a];
            }
            for b in 0..d {
                second[a][b] += weight * t(a, b) + alpha * (g.covariance().get(a, b) + g.mean()[a] * g.mean()[b]);
                for i in 0..n {
                    second[a][b] += 0.5 * row[i] * c[i][a] * c[i][b] + 0.5 * c[i][a] * wc[i][b];
                }
            }
        }
    }
    if !(total > 0.0) {
        return Err(Error::Numerical { what: "moments".into(), reason: "no mass".into() });
    }
    let mean: Vec<f64> = first.iter().map(|f| f / total).collect();
    let covariance = Matrix::from_fn(d, d, |a, b| 0.5 * (second[a][b] + second[b][a]) / total - mean[a] * mean[b]);
    Ok(belief.frame().leave_moments(&mean, &covariance))
}

/// The share of the prior that lies nearer to one of `these` latent points than to any of `others`: what is known only by
/// guessing when `these` failed and `others` have values. From `n` scrambled Sobol points; cost `n` times the number of points.
///
/// # Errors
/// [`Error::Length`] for points of different dimensions, [`Error::Invalid`] for `n = 0`.
pub fn mass_nearest(these: &Points, others: &Points, n: usize, seed: u64) -> Result<f64> {
    these.require_dim("other points", others.dim())?;
    let nearest = |u: &[f64], points: &Points| {
        let square = |x: &[f64]| x.iter().zip(u).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        points.rows().map(square).fold(f64::INFINITY, f64::min)
    };
    let draws = InitialDesign::Sobol.latent(these.dim(), n, seed)?;
    let near = draws.rows().filter(|u| nearest(u, these) < nearest(u, others)).count();
    Ok(near as f64 / n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{kernel::SquaredExponential, linalg::Jitter, prior::Distribution, warp::Model};

    /// A belief whose integrand is exactly `exp(−|u − x|²/ℓ²)`: one node with the value 1, one very far away with the value 0.
    fn bump(x: &[f64], lengthscale: f64) -> Surrogate {
        let far: Vec<f64> = x.iter().map(|x| x + 1e3).collect();
        let nodes = Points::from_rows(&[x.to_vec(), far]).unwrap();
        let kernel = SquaredExponential::new(1.0, vec![lengthscale; x.len()]).unwrap();
        let measure = Gaussian::standard(x.len()).unwrap().into();
        let logs = [0.0, f64::NEG_INFINITY];
        Surrogate::with_kernel(Model::WsabiL, measure, &nodes, &logs, kernel, Jitter::default()).unwrap()
    }

    #[test]
    fn a_gaussian_posterior_has_its_closed_form() {
        // In units of the posterior sd: quasi-random draws worth over 200 independent ones err by far less than 0.1.
        for (x, lengthscale) in
            [(vec![0.5], 1.0), (vec![1.0, -2.0], 0.5), (vec![3.0, 3.0, -3.0, 0.0], 0.01), (vec![1.0; 8], 0.3)]
        {
            let names: Vec<String> = (0..x.len()).map(|k| format!("p{k}")).collect();
            let prior = Prior::independent(names.iter().map(|n| (n.clone(), Distribution::normal(10.0, 2.0).unwrap())))
                .unwrap();
            let found = moments(&bump(&x, lengthscale), &prior, 4096, 1).unwrap();
            let precision = 1.0 + 2.0 / (lengthscale * lengthscale);
            let sd = 2.0 / precision.sqrt();
            assert!(found.effective_samples > 200.0, "{x:?} {lengthscale}: {found:?}");
            for k in 0..x.len() {
                let mean = 10.0 + 2.0 * x[k] * (precision - 1.0) / precision;
                assert!((found.mean[k] - mean).abs() < 0.1 * sd, "{x:?} {lengthscale}: {found:?}");
                assert!((found.sd[k] / sd - 1.0).abs() < 0.1, "{x:?} {lengthscale}: {found:?}");
            }
        }
    }

    #[test]
    fn mass_that_no_draw_from_the_prior_meets_is_found() {
        // At 50 prior sds, a thousandth wide; elsewhere the belief is negative or zero.
        let nodes = Points::new(1, vec![50.0]).unwrap();
        let measure = Gaussian::standard(1).unwrap().into();
        let kernel = SquaredExponential::new(1.0, vec![1e-3]).unwrap();
        let belief = Surrogate::with_kernel(Model::Plain, measure, &nodes, &[0.0], kernel, Jitter::default()).unwrap();
        let belief = belief.condition(&Points::new(1, vec![0.0]).unwrap(), &[-1.0]).unwrap();
        let prior = Prior::independent([("x", Distribution::normal(0.0, 1.0).unwrap())]).unwrap();
        assert!((moments(&belief, &prior, 64, 0).unwrap().mean[0] - 50.0).abs() < 0.01);
        assert!(matches!(moments(&belief, &prior, 8, 0), Err(Error::Invalid { .. })));
    }

    #[test]
    fn the_mass_near_failures_is_their_share_of_the_prior() {
        let one = Points::new(1, vec![1.0]).unwrap();
        let other = Points::new(1, vec![-1.0]).unwrap();
        let half = mass_nearest(&one, &other, 1024, 3).unwrap();
        assert!((half - 0.5).abs() < 0.01, "{half}");
        let none = mass_nearest(&Points::new(1, vec![]).unwrap(), &other, 64, 3).unwrap();
        assert_eq!(none, 0.0);
    }
}
