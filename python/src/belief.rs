//! What a run has learnt: the posterior of the parameters, and evidences side by side.

use std::{sync::Arc, time::Instant};

use batchquad::{
    Config, Estimate, Settings, compare as library,
    engine::Current,
    integrate,
    posterior::{self, DRAWS, Draws, Posterior},
    prior,
};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::{
    errors::{exception, fault},
    prior::{Prior, Raised, call, matrix, vector},
    work::interruptible,
};

type Vector<'py> = Bound<'py, PyArray1<f64>>;
type Matrix<'py> = Bound<'py, PyArray2<f64>>;

/// The belief about the integrand at one moment of a run, and the posterior that it implies.
#[pyclass(frozen, module = "batchquad._batchquad")]
pub(crate) struct Belief {
    current: Arc<Current>,
    prior: prior::Prior,
    raised: Raised,
}

#[pymethods]
impl Belief {
    /// `n` equally weighted draws, a row each.
    fn samples<'py>(&self, py: Python<'py>, n: usize, seed: u64) -> PyResult<Matrix<'py>> {
        let rows = self.with_posterior(py, seed, move |posterior| {
            let draws = posterior.draws(DRAWS.max(n), seed)?;
            Ok(draws.resample(n)?.into_iter().map(|i| draws.theta().row(i).to_vec()).collect::<Vec<_>>())
        })?;
        matrix(py, &rows, self.prior.dim())
    }

    /// About `n` weighted draws, a row each, with their weights, which sum to one, and what they are worth in equally weighted ones.
    fn weighted<'py>(&self, py: Python<'py>, n: usize, seed: u64) -> PyResult<(Matrix<'py>, Vector<'py>, f64)> {
        let draws = self.with_posterior(py, seed, move |posterior| posterior.draws(n, seed))?;
        let rows: Vec<Vec<f64>> = draws.theta().rows().map(<[f64]>::to_vec).collect();
        let weights = draws.log_weights().iter().map(|w| w.exp()).collect();
        Ok((matrix(py, &rows, self.prior.dim())?, PyArray1::from_vec(py, weights), draws.effective()))
    }

    /// The expectations of the numbers that `function` makes of a point, from about `n` draws.
    fn expect(&self, py: Python<'_>, function: Py<PyAny>, n: usize, seed: u64) -> PyResult<Expectation> {
        let raised = self.raised.clone();
        let values = move |theta: &[f64]| call(&function, theta, &raised, vector).unwrap_or_default();
        let expectation = self.with_posterior(py, seed, move |posterior| posterior.expect(n, seed, values))?;
        Ok(Expectation { expectation, estimate: self.current.estimate })
    }

    /// Mean and covariance of the parameters: means and standard deviations as of the marginals, correlations from draws.
    fn moments<'py>(&self, py: Python<'py>) -> PyResult<(Vector<'py>, Matrix<'py>)> {
        let (mean, rows) = self.with_posterior(py, 0, |posterior| {
            let moments = posterior.moments()?;
            let correlations = correlations(&posterior.draws(DRAWS, 0)?);
            let d = moments.sd.len();
            let entry = |i: usize, j: usize| correlations[i][j] * moments.sd[i] * moments.sd[j];
            let rows: Vec<Vec<f64>> = (0..d).map(|i| (0..d).map(|j| entry(i, j)).collect()).collect();
            Ok((moments.mean, rows))
        })?;
        Ok((PyArray1::from_vec(py, mean), matrix(py, &rows, self.prior.dim())?))
    }

    /// The marginal of parameter number `k`.
    fn marginal(&self, py: Python<'_>, k: usize) -> PyResult<Marginal> {
        let marginal = self.with_posterior(py, 0, move |posterior| posterior.marginal(k))?;
        Ok(Marginal { marginal, raised: self.raised.clone() })
    }

    /// The joint density of parameters `k` and `l` on `n × n` points: values of both, the density, and its heights above which it holds
    /// each of the `masses`.
    fn joint<'py>(
        &self,
        py: Python<'py>,
        k: usize,
        l: usize,
        n: usize,
        masses: Vec<f64>,
    ) -> PyResult<(Vector<'py>, Vector<'py>, Matrix<'py>, Vec<f64>)> {
        let (surface, levels) = self.with_posterior(py, 0, move |posterior| {
            let surface = posterior.joint(k, l)?.surface(n)?;
            let levels = surface.levels(&masses)?;
            Ok((surface, levels))
        })?;
        let density = PyArray1::from_vec(py, surface.density).reshape([surface.first.len(), surface.second.len()])?;
        Ok((PyArray1::from_vec(py, surface.first), PyArray1::from_vec(py, surface.second), density, levels))
    }
}

impl Belief {
    pub(crate) fn new(current: Current, prior: prior::Prior, raised: Raised) -> Self {
        Self { current: Arc::new(current), prior, raised }
    }

    fn with_posterior<T: Send + 'static>(
        &self,
        py: Python<'_>,
        seed: u64,
        work: impl FnOnce(&Posterior<'_>) -> batchquad::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let (current, prior) = (Arc::clone(&self.current), self.prior.clone());
        let found = interruptible(py, move || work(&Posterior::new(&current.surrogate, &prior, seed)?));
        self.raised.instead_of(found)
    }
}

fn correlations(draws: &Draws) -> Vec<Vec<f64>> {
    let moments = draws.moments();
    let d = moments.mean.len();
    let entry = |i: usize, j: usize| {
        if i == j {
            return 1.0;
        }
        let product = |(theta, w): (&[f64], &f64)| {
            w.exp() * (theta[i] - moments.mean[i]) / moments.sd[i] * ((theta[j] - moments.mean[j]) / moments.sd[j])
        };
        draws.theta().rows().zip(draws.log_weights()).map(product).sum()
    };
    (0..d).map(|i| (0..d).map(|j| entry(i, j)).collect()).collect()
}

/// Posterior expectations, with what is not known about them.
#[pyclass(frozen, module = "batchquad._batchquad")]
pub(crate) struct Expectation {
    expectation: posterior::Expectation,
    estimate: Estimate,
}

#[pymethods]
impl Expectation {
    /// The expectations.
    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> Vector<'py> {
        PyArray1::from_slice(py, &self.expectation.mean)
    }

    /// The standard deviation of each: because the likelihood is known at the nodes only, and because draws are finite.
    #[getter]
    fn sd<'py>(&self, py: Python<'py>) -> Vector<'py> {
        let all = (0..self.expectation.mean.len()).map(|k| self.expectation.error(k)).collect();
        PyArray1::from_vec(py, all)
    }
}

/// Expectations of several models averaged by their probabilities, `log_odds` being the logarithms of their prior odds: means and standard deviations.
#[pyfunction]
pub(crate) fn average<'py>(
    py: Python<'py>,
    models: Vec<PyRef<'py, Expectation>>,
    log_odds: Vec<f64>,
) -> PyResult<(Vector<'py>, Vector<'py>)> {
    let shifted = |(model, odds): (&PyRef<'_, Expectation>, f64)| {
        (Estimate { log_z: model.estimate.log_z + odds, ..model.estimate }, model.expectation.clone())
    };
    let models: Vec<_> = models.iter().zip(log_odds).map(shifted).collect();
    let found = interruptible(py, move || {
        posterior::average(&models.iter().map(|(estimate, of)| (*estimate, of)).collect::<Vec<_>>())
    })?;
    let sd = found.sd.iter().zip(&found.monte_carlo).map(|(a, b)| a.hypot(*b)).collect();
    Ok((PyArray1::from_vec(py, found.mean), PyArray1::from_vec(py, sd)))
}

/// The posterior of one parameter, all others integrated out.
#[pyclass(frozen, module = "batchquad._batchquad")]
pub(crate) struct Marginal {
    marginal: posterior::Marginal,
    raised: Raised,
}

#[pymethods]
impl Marginal {
    /// The name of the parameter.
    #[getter]
    fn name(&self) -> &str {
        self.marginal.name()
    }

    /// Its posterior mean.
    #[getter]
    fn mean(&self) -> f64 {
        self.marginal.mean()
    }

    /// Its posterior standard deviation.
    #[getter]
    fn sd(&self) -> f64 {
        self.marginal.sd()
    }

    /// `"closed-form"` or `"draws"`.
    #[getter]
    fn method(&self) -> PyResult<String> {
        let word = serde_json::to_value(self.marginal.method()).map_err(|e| fault(&e.to_string()))?;
        word.as_str().map(str::to_owned).ok_or_else(|| fault("a method without a name"))
    }

    /// The density at each of the values.
    fn density<'py>(&self, py: Python<'py>, values: PyReadonlyArray1<'py, f64>) -> PyResult<Vector<'py>> {
        self.map(py, &values, |marginal, value| marginal.density(value))
    }

    /// The share of the posterior below each of the values.
    fn cdf<'py>(&self, py: Python<'py>, values: PyReadonlyArray1<'py, f64>) -> PyResult<Vector<'py>> {
        self.map(py, &values, |marginal, value| marginal.cdf(value))
    }

    /// The values below which these shares of the posterior lie.
    fn quantile<'py>(&self, py: Python<'py>, shares: PyReadonlyArray1<'py, f64>) -> PyResult<Vector<'py>> {
        self.map(py, &shares, |marginal, share| marginal.quantile(share))
    }

    /// The interval that leaves out as much below as above and holds `mass`.
    fn interval(&self, py: Python<'_>, mass: f64) -> PyResult<(f64, f64)> {
        self.work(py, move |marginal| marginal.interval(mass))
    }

    /// The shortest set of intervals that holds `mass`.
    fn highest_density(&self, py: Python<'_>, mass: f64) -> PyResult<Vec<(f64, f64)>> {
        self.work(py, move |marginal| marginal.highest_density(mass))
    }

    /// `n` values, the density at each, and the prior's where it is known.
    fn curve<'py>(&self, py: Python<'py>, n: usize) -> PyResult<(Vector<'py>, Vector<'py>, Option<Vector<'py>>)> {
        let curve = self.work(py, move |marginal| marginal.curve(n))?;
        let prior = (curve.prior.len() == curve.theta.len()).then(|| PyArray1::from_vec(py, curve.prior));
        Ok((PyArray1::from_vec(py, curve.theta), PyArray1::from_vec(py, curve.density), prior))
    }
}

impl Marginal {
    fn map<'py>(
        &self,
        py: Python<'py>,
        values: &PyReadonlyArray1<'py, f64>,
        of: impl Fn(&posterior::Marginal, f64) -> batchquad::Result<f64> + Send + 'static,
    ) -> PyResult<Vector<'py>> {
        let values = values.as_array().to_vec();
        let found =
            self.work(py, move |marginal| values.iter().map(|v| of(marginal, *v)).collect::<Result<Vec<_>, _>>())?;
        Ok(PyArray1::from_vec(py, found))
    }

    fn work<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&posterior::Marginal) -> batchquad::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let marginal = self.marginal.clone();
        self.raised.instead_of(interruptible(py, move || work(&marginal)))
    }
}

/// Bayes factors against the best and probabilities of models from `(log_z, log_z_sd)` of each:
/// `(log_bayes_factor, its sd, probability, its sd)`.
#[pyfunction]
pub(crate) fn compare(py: Python<'_>, evidences: Vec<(f64, f64)>) -> PyResult<Vec<(f64, f64, f64, f64)>> {
    let standings = interruptible(py, move || library::compare(&evidences))?;
    Ok(standings.iter().map(|s| (s.log_bayes_factor, s.log_bayes_factor_sd, s.probability, s.probability_sd)).collect())
}

/// Seconds of a run entirely in Rust on the log-likelihood `−½‖(θ − 1)/½‖²`, and its log Z: what the package's overhead is measured against.
#[pyfunction]
pub(crate) fn reference_run(py: Python<'_>, prior: &Prior, settings: &str, seed: u64) -> PyResult<(f64, f64)> {
    let settings: Settings = serde_json::from_str(settings).map_err(|e| fault(&e.to_string()))?;
    settings.validate().map_err(|e| exception(py, &e))?;
    let prior = prior.prior.clone();
    interruptible(py, move || {
        let begin = Instant::now();
        let config = Config { settings, seed, workers: 1 };
        let integral = integrate(|t| -2.0 * t.iter().map(|t| (t - 1.0) * (t - 1.0)).sum::<f64>(), prior, config)?;
        Ok((begin.elapsed().as_secs_f64(), integral.estimate.log_z))
    })
}
