//! A peak in probabilities: what a normal distribution of these explains. `MATH.md` §15.

use super::{
    bend::least_squares,
    integral::resample,
    known::{Known, coefficients, typical_depth},
    peak::Peak,
    proposal::Normal,
};
use crate::numeric::{
    linalg::{Factor, Matrix},
    normal::cdf,
    simd::dot,
};

/// Points of the posterior that stand for it.
const POINTS: usize = 512;

/// A quadratic is taken for what the log-likelihood is if it leaves no more than this of the values near the top, in nats, and if these are so many
/// times as many as its coefficients.
const EXACT: f64 = 0.02;
const DETERMINED: f64 = 1.25;

/// A normal distribution of the probabilities `p = Φ(u)` under the prior: the quadratic through the values near the top, if it goes through them, else the
/// distribution with the mean and the covariance of the posterior.
///
/// Under a uniform prior these are the parameters but for their unit. A likelihood that is normal in them is not in latent coordinates, which go to ±∞ at the
/// ends of the prior: there it falls off far more slowly than any quadratic expects.
pub(super) struct Chart {
    normal: Normal,
    /// The largest log-likelihood of the peak.
    top: f64,
    /// In the coordinates in which the distribution is round.
    quadratic: Option<Quadratic>,
}

/// `c + gᵀz + ½zᵀHz`, and its maximum.
struct Quadratic {
    coefficients: Vec<f64>,
    top: f64,
}

/// `1`, the coordinates, and their products.
fn terms(z: &[f64]) -> Vec<f64> {
    let products =
        (0..z.len()).flat_map(|a| (0..=a).map(move |b| if a == b { 0.5 * z[a] * z[a] } else { z[a] * z[b] }));
    std::iter::once(1.0).chain(z.iter().copied()).chain(products).collect()
}

impl Quadratic {
    /// By least squares. None if it does not go through the values, or has no maximum.
    fn through(places: &[Vec<f64>], values: &[f64]) -> Option<Self> {
        let d = places.first()?.len();
        if (values.len() as f64) < DETERMINED * coefficients(d) as f64 {
            return None;
        }
        let rows: Vec<Vec<f64>> = places.iter().map(|z| terms(z)).collect();
        let coefficients = least_squares(&rows, values, &vec![1.0; values.len()], 0.0)?;
        let off = |(row, v): (&Vec<f64>, &f64)| (dot(row, &coefficients) - v).powi(2);
        let left = rows.iter().zip(values).map(off).sum::<f64>() / (values.len() - coefficients.len()) as f64;
        if left.is_nan() || left > EXACT * EXACT {
            return None;
        }
        let at = |a: usize, b: usize| coefficients[1 + d + a.max(b) * (a.max(b) + 1) / 2 + a.min(b)];
        let falling = Factor::exact("quadratic", &Matrix::from_fn(d, d, |a, b| -at(a, b))).ok()?;
        let (gradient, constant) = (&coefficients[1..=d], coefficients[0]);
        let top = constant + 0.5 * dot(gradient, &falling.solve_vec(gradient));
        Some(Self { coefficients, top })
    }

    fn depth(&self, z: &[f64]) -> f64 {
        self.top - dot(&terms(z), &self.coefficients)
    }
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
        let normal = Normal::with_covariance(mean.clone(), &covariance)?;
        let top = |i: &usize| peak.known.depth[*i] <= typical_depth(d);
        let near: Vec<usize> = peak.known.near().numbers().filter(top).collect();
        let places: Vec<Vec<f64>> = near.iter().map(|&i| normal.white(&shares(peak.known.nodes.row(i)))).collect();
        let values: Vec<f64> = near.iter().map(|&i| peak.known.log_likelihood(i)).collect();
        let quadratic = Quadratic::through(&places, &values);
        Some(Self { normal, top: peak.known.largest_near(), quadratic })
    }

    /// How far below the top a log-likelihood is, relative to how far it is expected to be.
    pub(super) fn share(&self, known: &Known, i: usize) -> f64 {
        let white = self.normal.white(&shares(known.nodes.row(i)));
        let (top, expected) = match &self.quadratic {
            Some(quadratic) => (quadratic.top, quadratic.depth(&white)),
            None => (self.top, 0.5 * dot(&white, &white)),
        };
        (top - known.log_likelihood(i)) / expected.max(f64::MIN_POSITIVE)
    }
}

fn shares(u: &[f64]) -> Vec<f64> {
    u.iter().map(|v| cdf(*v)).collect()
}

#[cfg(test)]
mod tests {
    use super::{
        super::{LogBelief, search},
        *,
    };
    use crate::{numeric::quantile::normal_quantile, points::Points};

    /// A belief about a log-likelihood of the probability, from values at latent places.
    fn belief(places: &[f64], log_likelihood: impl Fn(f64) -> f64) -> LogBelief {
        let nodes: Vec<Vec<f64>> = places.iter().map(|u| vec![*u]).collect();
        let logs: Vec<f64> = places.iter().map(|u| log_likelihood(cdf(*u))).collect();
        let count = logs.len();
        let known = Known::new(Points::from_rows(&nodes).unwrap(), &logs, vec![0.0; count], vec![false; count]);
        search(&known.unwrap(), None, 1).unwrap()
    }

    /// Under a uniform prior, a likelihood that is normal in the parameter is explained in probabilities as far as the ends of the prior, and in latent
    /// coordinates it is not.
    #[test]
    fn a_normal_likelihood_under_a_uniform_prior_is_explained_to_its_ends() {
        let place = |i: i32| if i < 20 { 0.15 * (1.7 * f64::from(i)).sin() } else { 0.3 * f64::from(i - 20) };
        let belief = belief(&(0..30).map(place).collect::<Vec<_>>(), |p| -0.5 * ((p - 0.5) / 0.02).powi(2));
        let peak = belief.main();
        let chart = Chart::new(peak).unwrap();
        for i in 24..30 {
            let share = chart.share(&peak.known, i);
            assert!((share - 1.0).abs() < 0.2, "{i}: {share}");
        }
        let normal = 0.5 * peak.view.enter(peak.known.nodes.row(29)).iter().map(|x| x * x).sum::<f64>();
        assert!(peak.known.depth[29] < 0.5 * normal, "{} {normal}", peak.known.depth[29]);
    }

    /// A peak that the end of a uniform prior cuts off is no normal distribution, but the quadratic through its values explains all others exactly.
    #[test]
    fn a_quadratic_explains_what_the_end_of_the_prior_cuts_off() {
        let place = |i: i32| if i < 18 { 0.002 + 0.0045 * f64::from(i) } else { 0.15 * f64::from(i - 17) };
        let places: Vec<f64> = (0..24).map(|i| normal_quantile(place(i))).collect();
        let belief = belief(&places, |p| -0.5 * ((p - 0.01) / 0.02).powi(2));
        let peak = belief.main();
        let chart = Chart::new(peak).unwrap();
        for i in 18..24 {
            let share = chart.share(&peak.known, i);
            assert!((share - 1.0).abs() < 1e-6, "{i}: {share}");
        }
        let moments = Chart { quadratic: None, ..chart };
        assert!((moments.share(&peak.known, 20) - 1.0).abs() > 0.1);
    }
}
