//! What a run has learnt: the posterior of the parameters, and evidences side by side.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use batchquad::{
    Config, Estimate, Settings, belief,
    infer::{self, DRAWS, Posterior, compare as standings_of},
    integrate, prior,
    run::Current,
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
    belief: Arc<belief::Belief>,
    estimate: Estimate,
    /// Made when it is first asked for.
    posterior: Arc<OnceLock<Posterior>>,
    prior: prior::Prior,
    raised: Raised,
}

#[pymethods]
impl Belief {
    /// The interval that holds log Z with a probability.
    fn log_z_interval(&self, py: Python<'_>, probability: f64) -> PyResult<(f64, f64)> {
        self.estimate.interval(probability).map_err(|e| exception(py, &e))
    }

    /// `n` equally weighted draws, one per row.
    fn samples<'py>(&self, py: Python<'py>, n: usize, seed: u64) -> PyResult<Matrix<'py>> {
        let rows = self.with_posterior(py, move |posterior| {
            let draws = posterior.draws(DRAWS.max(n), seed)?;
            Ok(draws.resample(n)?.into_iter().map(|i| draws.theta().row(i).to_vec()).collect::<Vec<_>>())
        })?;
        matrix(py, &rows, self.prior.dim())
    }

    /// About `n` weighted draws, one per row, their weights, which sum to one, and the number of equally weighted draws that they are worth.
    fn weighted<'py>(&self, py: Python<'py>, n: usize, seed: u64) -> PyResult<(Matrix<'py>, Vector<'py>, f64)> {
        let draws = self.with_posterior(py, move |posterior| posterior.draws(n, seed))?;
        let rows: Vec<Vec<f64>> = draws.theta().rows().map(<[f64]>::to_vec).collect();
        let weights = draws.log_weights().iter().map(|w| w.exp()).collect();
        Ok((matrix(py, &rows, self.prior.dim())?, PyArray1::from_vec(py, weights), draws.effective()))
    }

    /// The expectations of the numbers that `function` makes of a point, from about `n` draws.
    fn expect(&self, py: Python<'_>, function: Py<PyAny>, n: usize, seed: u64) -> PyResult<Expectation> {
        let raised = self.raised.clone();
        let values = move |theta: &[f64]| call(&function, theta, &raised, vector).unwrap_or_default();
        let expectation = self.with_posterior(py, move |posterior| posterior.expect(n, seed, values))?;
        Ok(Expectation { expectation, estimate: self.estimate })
    }

    /// Mean and covariance of the parameters: means and standard deviations as of the marginals, correlations from draws.
    fn moments<'py>(&self, py: Python<'py>) -> PyResult<(Vector<'py>, Matrix<'py>)> {
        let (mean, rows) =
            self.with_posterior(py, |posterior| Ok((posterior.moments()?.mean, posterior.covariance()?)))?;
        Ok((PyArray1::from_vec(py, mean), matrix(py, &rows, self.prior.dim())?))
    }

    /// A point with its periodic parameters taken round to where the posterior is shown; NaN stays.
    fn wrapped(&self, py: Python<'_>, theta: Vec<f64>) -> PyResult<Vec<f64>> {
        self.prior.wrapped(&theta).map_err(|e| exception(py, &e))
    }

    /// The marginal of parameter number `k`.
    fn marginal(&self, py: Python<'_>, k: usize) -> PyResult<Marginal> {
        let marginal = self.with_posterior(py, move |posterior| posterior.marginal(k))?;
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
        let (surface, levels) = self.with_posterior(py, move |posterior| {
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
        let Current { surrogate: belief, estimate, believed, .. } = current;
        // The cuts of a belief were made for this prior.
        let prior = prior.cut_at(&believed.cuts).unwrap_or(prior);
        Self { belief, estimate, posterior: Arc::default(), prior, raised }
    }

    fn with_posterior<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Posterior) -> batchquad::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let (belief, prior, kept) = (Arc::clone(&self.belief), self.prior.clone(), Arc::clone(&self.posterior));
        let found = interruptible(py, move || {
            if let Some(posterior) = kept.get() {
                return work(posterior);
            }
            let posterior = Posterior::new(belief, prior, 0)?;
            work(kept.get_or_init(|| posterior))
        });
        self.raised.instead_of(found)
    }
}

/// Posterior expectations, with what is not known about them.
#[pyclass(frozen, module = "batchquad._batchquad")]
pub(crate) struct Expectation {
    expectation: infer::Expectation,
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
        infer::average(&models.iter().map(|(estimate, of)| (*estimate, of)).collect::<Vec<_>>())
    })?;
    let sd = found.sd.iter().zip(&found.monte_carlo).map(|(a, b)| a.hypot(*b)).collect();
    Ok((PyArray1::from_vec(py, found.mean), PyArray1::from_vec(py, sd)))
}

/// The posterior of one parameter, all others integrated out.
#[pyclass(frozen, module = "batchquad._batchquad")]
pub(crate) struct Marginal {
    marginal: infer::Marginal,
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
        of: impl Fn(&infer::Marginal, f64) -> batchquad::Result<f64> + Send + 'static,
    ) -> PyResult<Vector<'py>> {
        let values = values.as_array().to_vec();
        let found =
            self.work(py, move |marginal| values.iter().map(|v| of(marginal, *v)).collect::<Result<Vec<_>, _>>())?;
        Ok(PyArray1::from_vec(py, found))
    }

    fn work<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&infer::Marginal) -> batchquad::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let marginal = self.marginal.clone();
        self.raised.instead_of(interruptible(py, move || work(&marginal)))
    }
}

/// Bayes factors against the best and probabilities of models from `(log_z, log_z_sd)` of each:
/// `(log_bayes_factor, its sd, probability, its sd)`.
#[pyfunction]
pub(crate) fn compare(py: Python<'_>, evidences: Vec<(f64, f64)>) -> PyResult<Vec<(f64, f64, f64, f64)>> {
    let standings = interruptible(py, move || standings_of(&evidences))?;
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
