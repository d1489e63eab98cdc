//! What the belief about the integrand says about the parameters: [`MATH.md` §7](crate::math) and §13.
//!
//! The posterior density is `∝ E[f](u) N(u; 0, I)`. Under WSABI-L, `E[f] = α + ½m²`, it is a signed mixture of
//! Gaussians, so moments, marginals and quantiles are closed forms; under the other models, and for parameters that a
//! user's own map makes of several latent coordinates, they are made of importance draws. [`Method`] says which.
//!
//! ```
//! # #[cfg(feature = "run")] {
//! use batchquad::{Config, Prior, integrate, prior::Distribution};
//! let prior = Prior::independent([("rate", Distribution::gamma(2.0, 1.0)?)])?;
//! // Five events in a unit of time: the posterior is Gamma(2 + 5, 1 + 1), with mean 3.5.
//! let integral = integrate(|t| 5.0 * t[0].ln() - t[0], prior, Config::default())?;
//! let posterior = integral.engine.posterior()?;
//! let rate = posterior.marginal(0)?;
//! assert!((rate.mean() - 3.5).abs() < 0.01);
//! let (low, high) = rate.interval(0.95)?;
//! assert!((low - 1.407).abs() < 0.01 && (high - 6.530).abs() < 0.01);
//! # }
//! # Ok::<(), batchquad::Error>(())
//! ```

mod average;
mod closed;
mod comb;
mod coordinates;
mod covariance;
mod density;
mod draws;
mod expectation;
mod joint;
mod marginal;
mod nearest;
mod proposal;
mod square;

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

pub use self::{
    average::{Average, average},
    draws::{Draws, Moments},
    expectation::Expectation,
    joint::{Joint, Surface},
    marginal::{Curve, Marginal},
    nearest::mass_nearest,
};
use self::{
    closed::Closed,
    coordinates::{Coordinates, Map},
    density::{Density1, Density2},
    proposal::{Sample, widened},
};
use crate::{
    belief::{any::Belief, surrogate::Surrogate},
    error::{Error, Result},
    numeric::linalg::Matrix,
    points::Points,
    prior::{Axis, Prior},
};

/// Where a statement about the posterior comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The integrals were done in closed form.
    ClosedForm,
    /// By importance draws.
    Draws,
}

/// Draws behind what has no closed form.
pub const DRAWS: usize = 4096;

/// Mean and covariance of the latent coordinates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatentMoments {
    /// The mean of each.
    pub mean: Vec<f64>,
    /// The rows of the covariance.
    pub covariance: Vec<Vec<f64>>,
    /// Where they come from.
    pub method: Method,
}

impl LatentMoments {
    /// `E[c + b·u + uᵀAu] = c + b·m + tr A(C + mmᵀ)`, `A` by its rows.
    ///
    /// # Errors
    /// [`Error::Length`] when a vector or matrix has another dimension.
    pub fn expect_quadratic(&self, constant: f64, linear: &[f64], quadratic: &[Vec<f64>]) -> Result<f64> {
        let d = self.mean.len();
        let wrong = [linear.len(), quadratic.len()].into_iter().chain(quadratic.iter().map(Vec::len)).find(|n| *n != d);
        if let Some(found) = wrong {
            return Err(Error::length("coefficients of a polynomial", d, found));
        }
        let mut sum = constant;
        for i in 0..d {
            sum += linear[i] * self.mean[i];
            for j in 0..d {
                sum += quadratic[i][j] * (self.covariance[i][j] + self.mean[i] * self.mean[j]);
            }
        }
        Ok(sum)
    }
}

/// The posterior that a belief about the integrand implies. It owns what it needs, can be shared between threads, and
/// works out once what several of its answers need.
#[derive(Debug)]
pub struct Posterior {
    belief: Arc<Belief>,
    prior: Prior,
    coordinates: Coordinates,
    closed: Option<Closed>,
    seed: u64,
    draws: OnceLock<Draws>,
    /// Worked out when they are first asked for: joint densities need those of both parameters.
    marginals: Vec<OnceLock<Marginal>>,
}

impl Posterior {
    /// The posterior under a belief in the latent coordinates of a prior. What has no closed form is drawn with `seed`.
    ///
    /// Cost: `n²` exponentials.
    ///
    /// # Errors
    /// [`Error::Length`] for a prior of another dimension.
    pub fn new(belief: impl Into<Arc<Belief>>, prior: Prior, seed: u64) -> Result<Self> {
        let belief = belief.into();
        belief.nodes().require_dim("prior", prior.dim())?;
        // A mass that underflows has no closed form, but draws may still find it.
        let closed = belief.warped().and_then(Surrogate::closed_form).and_then(|form| Closed::new(form).ok());
        let marginals = vec![OnceLock::new(); prior.dim()];
        Ok(Self {
            coordinates: Coordinates::of(&belief),
            belief,
            prior,
            closed,
            seed,
            draws: OnceLock::new(),
            marginals,
        })
    }

    /// How moments and the marginals of latent coordinates are found.
    #[must_use]
    pub fn method(&self) -> Method {
        if self.closed.is_some() { Method::ClosedForm } else { Method::Draws }
    }

    /// The number of parameters.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.prior.dim()
    }

    /// The prior.
    #[must_use]
    pub fn prior(&self) -> &Prior {
        &self.prior
    }

    /// Mean and covariance of the latent coordinates.
    ///
    /// # Errors
    /// [`Error::Numerical`] when there is no closed form and no draw has any weight.
    pub fn latent_moments(&self) -> Result<LatentMoments> {
        let d = self.dim();
        if let (Some(closed), Some(surrogate)) = (&self.closed, self.belief.warped()) {
            let (mean, covariance) = closed.moments();
            let (mean, covariance) = surrogate.frame().leave_moments(&mean, &covariance);
            let covariance = (0..d).map(|i| (0..d).map(|j| covariance.get(i, j)).collect()).collect();
            return Ok(LatentMoments { mean, covariance, method: Method::ClosedForm });
        }
        let draws = self.own_draws()?;
        let w = draws.weights();
        let average = |of: &dyn Fn(&[f64]) -> f64| draws.latent().rows().zip(&w).map(|(u, w)| w * of(u)).sum::<f64>();
        let mean: Vec<f64> = (0..d).map(|k| average(&|u| u[k])).collect();
        let covariance =
            (0..d).map(|i| (0..d).map(|j| average(&|u| (u[i] - mean[i]) * (u[j] - mean[j]))).collect()).collect();
        Ok(LatentMoments { mean, covariance, method: Method::Draws })
    }

    /// The marginal of parameter `k`, in the user's units.
    ///
    /// In closed form under WSABI-L, unless the parameter is made by a map of the user's own from several latent
    /// coordinates. Cost: `n²/2` exponentials and some 100 multiplications per pair of nodes.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a parameter that is not there, [`Error::Numerical`] as [`Posterior::draws`].
    pub fn marginal(&self, k: usize) -> Result<Marginal> {
        self.require_parameter(k)?;
        if let Some(known) = self.marginals[k].get() {
            return Ok(known.clone());
        }
        let made = self.make_marginal(k)?;
        Ok(self.marginals[k].get_or_init(|| made).clone())
    }

    fn make_marginal(&self, k: usize) -> Result<Marginal> {
        let name = &self.prior.names()[k];
        let axis = self.coordinates.parameter(&self.prior, k);
        let prior = self.prior_of(k);
        if let (Some(closed), Some((quantity, map))) = (&self.closed, &axis)
            && let Ok(density) = closed.line(quantity)
        {
            return Marginal::new(name, Method::ClosedForm, density, *map, prior);
        }
        let draws = self.own_draws()?;
        let (values, map) = self.drawn(draws, k);
        let density = Density1::smoothed(&values, &draws.weights(), draws.effective())?;
        let moments = draws.moments();
        Ok(Marginal::with_moments(name, density, map, prior, moments.mean[k], moments.sd[k]))
    }

    /// The marginal of latent coordinate `k`, `N(0, 1)` under the prior; named after the parameter with the same
    /// number.
    ///
    /// # Errors
    /// As [`Posterior::marginal`].
    pub fn latent_marginal(&self, k: usize) -> Result<Marginal> {
        self.require_parameter(k)?;
        let (name, prior) = (&self.prior.names()[k], Some((0.0, 1.0)));
        if let Some(closed) = &self.closed
            && let Ok(density) = closed.line(&self.coordinates.coordinates()[k])
        {
            return Marginal::new(name, Method::ClosedForm, density, Map::Identity, prior);
        }
        let draws = self.own_draws()?;
        let values: Vec<f64> = draws.latent().rows().map(|u| u[k]).collect();
        let density = Density1::smoothed(&values, &draws.weights(), draws.effective())?;
        Marginal::new(name, Method::Draws, density, Map::Identity, prior)
    }

    /// The marginals of all parameters.
    ///
    /// # Errors
    /// As [`Posterior::marginal`].
    pub fn marginals(&self) -> Result<Vec<Marginal>> {
        (0..self.dim()).map(|k| self.marginal(k)).collect()
    }

    /// The joint marginal of parameters `k` and `l`. Cost: `n²/2` exponentials and some 400 multiplications per pair of
    /// nodes.
    ///
    /// # Errors
    /// As [`Posterior::marginal`]; [`Error::Invalid`] when both are the same.
    pub fn joint(&self, k: usize, l: usize) -> Result<Joint> {
        if k == l {
            return Err(Error::invalid("second parameter of a joint density", l, "a parameter other than the first"));
        }
        let (first, second) = (self.marginal(k)?, self.marginal(l)?);
        let axes = (self.coordinates.parameter(&self.prior, k), self.coordinates.parameter(&self.prior, l));
        if let (Some(closed), (Some((a, _)), Some((b, _)))) = (&self.closed, &axes)
            && let Ok(density) = closed.plane(a, b)
        {
            return Ok(Joint::new(first, second, Method::ClosedForm, density));
        }
        let draws = self.own_draws()?;
        let (x, y) = (self.drawn(draws, k).0, self.drawn(draws, l).0);
        let density = Density2::smoothed([&x, &y], &draws.weights(), draws.effective())?;
        Ok(Joint::new(first, second, Method::Draws, density))
    }

    /// Means and standard deviations of the parameters, in the user's units.
    ///
    /// # Errors
    /// As [`Posterior::marginal`].
    pub fn moments(&self) -> Result<Moments> {
        let marginals = self.marginals()?;
        let effective_samples = if self.closed.is_some() { f64::INFINITY } else { self.own_draws()?.effective() };
        Ok(Moments {
            mean: marginals.iter().map(Marginal::mean).collect(),
            sd: marginals.iter().map(Marginal::sd).collect(),
            effective_samples,
        })
    }

    /// About `n` weighted draws, a function of the belief and the seed alone. Cost: a prediction at `n` points, up to
    /// twelve where the moments are not known in closed form or the posterior is far from normal.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than 64, [`Error::Numerical`] when the belief is positive at none of the points
    /// tried.
    pub fn draws(&self, n: usize, seed: u64) -> Result<Draws> {
        let start = self.closed.as_ref().and_then(|closed| {
            let (mean, covariance) = closed.moments();
            let rows: Vec<Vec<f64>> = (0..mean.len()).map(|j| covariance.col(j).to_vec()).collect();
            widened(mean, &rows)
        });
        let sample = match &*self.belief {
            Belief::Warped(surrogate) => Sample::adapted(surrogate, start, n, seed)?,
            Belief::Log(belief) => Sample::of_log(belief, n, seed)?,
        };
        Draws::new(&sample, &self.coordinates, &self.prior, seed)
    }

    /// The nodes of the belief in latent coordinates.
    pub(crate) fn latent_nodes(&self) -> Result<Points> {
        self.coordinates.latent(self.belief.nodes())
    }

    /// The draws behind what has no closed form.
    fn own_draws(&self) -> Result<&Draws> {
        if let Some(draws) = self.draws.get() {
            return Ok(draws);
        }
        let draws = self.draws(DRAWS, self.seed)?;
        Ok(self.draws.get_or_init(|| draws))
    }

    /// The values of parameter `k` over the draws, in the coordinate in which they are smoothed.
    fn drawn(&self, draws: &Draws, k: usize) -> (Vec<f64>, Map) {
        match self.coordinates.parameter(&self.prior, k) {
            // In latent coordinates no mass can be smoothed across an end of the support.
            Some((_, map @ Map::Scalar(_))) => (draws.latent().rows().map(|u| u[k]).collect(), map),
            _ => (draws.theta().rows().map(|t| t[k]).collect(), Map::Identity),
        }
    }

    /// Mean and standard deviation of the prior in the coordinate that densities are held in.
    fn prior_of(&self, k: usize) -> Option<(f64, f64)> {
        match self.prior.axis(k) {
            Axis::Scalar(_) => Some((0.0, 1.0)),
            Axis::Affine { row, shift } => Some((shift, coordinates::product(&row, &row).sqrt())),
            Axis::Coupled => None,
        }
    }

    fn require_parameter(&self, k: usize) -> Result<()> {
        if k < self.dim() {
            return Ok(());
        }
        Err(Error::invalid("number of a parameter", k, format!("less than {}", self.dim())))
    }
}

/// `aᵀ S b`.
fn bilinear(s: &Matrix, a: &[f64], b: &[f64]) -> f64 {
    (0..b.len()).map(|j| b[j] * coordinates::product(s.col(j), a)).sum()
}

/// Mean and covariance of the latent coordinates under `(α + ½m²)μ`, whatever the reading of the Gaussian process:
/// [`MATH.md` §7](crate::math). Cost: `(d + 2)n²/2` exponentials per Gaussian of the measure.
///
/// # Errors
/// [`Error::Numerical`] when that density has no mass.
pub(crate) fn closed_moments(belief: &Surrogate) -> Result<(Vec<f64>, Matrix)> {
    let form = belief.square_form().ok_or_else(|| Error::Numerical {
        what: "closed moments of the posterior".into(),
        reason: "the process is not on the square root of the integrand".into(),
    })?;
    let (mean, covariance) = Closed::new(form)?.moments();
    Ok(belief.frame().leave_moments(&mean, &covariance))
}

/// Means and standard deviations of the parameters by `n` importance draws, whatever the model.
///
/// # Errors
/// [`Error::Invalid`] for fewer than 64 points, [`Error::Length`] for a prior of another dimension,
/// [`Error::Numerical`] when the belief is positive at none of the draws.
pub fn moments(belief: &Surrogate, prior: &Prior, n: usize, seed: u64) -> Result<Moments> {
    belief.nodes().require_dim("prior", prior.dim())?;
    let sample = Sample::adapted(belief, None, n, seed)?;
    Ok(Draws::new(&sample, &Coordinates::of_surrogate(belief), prior, seed)?.moments())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        belief::{kernel::SquaredExponential, measure::Gaussian, warp::Model},
        numeric::linalg::Jitter,
        prior::Distribution,
    };

    /// A belief whose integrand is exactly `exp(−|u − x|²/ℓ²)`: one node with the value 1, one very far away with the
    /// value 0.
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
}
