//! Priors, also those that are Python functions.

use std::sync::{Arc, Mutex, PoisonError};

use batchquad::prior::{
    self, Distribution, Family, JointPrior, MultivariateNormal, Parameter, Parameters, UnitCubeMap,
};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyDict};
use serde::{
    Deserialize,
    de::value::{Error as ValueError, MapAccessDeserializer, MapDeserializer},
};

use crate::{
    errors::{exception, fault},
    work::interruptible,
};

/// What a Python function raised while the library called it: the library has only numbers to return.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn set(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// The result, or what a Python function raised on the way to it.
    pub(crate) fn instead_of<T>(&self, result: PyResult<T>) -> PyResult<T> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) if result.is_err() => Err(error),
            _ => result,
        }
    }
}

/// A prior over named parameters.
#[pyclass(frozen, module = "batchquad._batchquad")]
pub(crate) struct Prior {
    pub(crate) prior: prior::Prior,
    pub(crate) problem: serde_json::Value,
    pub(crate) raised: Raised,
    is_portable: bool,
}

#[pymethods]
impl Prior {
    /// From blocks `(names, family, parameters)` with `family` a word of problem files; for `"multivariate-normal"` the parameters are
    /// `(mean, covariance)`, for `"unit-cube"` the functions `(transform, inverse, log_density)`.
    #[new]
    fn new(py: Python<'_>, blocks: Vec<(Vec<String>, String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let raised = Raised::default();
        let (mut parameters, mut priors, mut is_portable) = (Vec::new(), Vec::new(), true);
        let refused = |e: &batchquad::Error| exception(py, e);
        for (names, family, given) in blocks {
            match family.as_str() {
                "multivariate-normal" => {
                    let (mean, covariance): (Vec<f64>, Vec<Vec<f64>>) = given.extract()?;
                    let normal = MultivariateNormal::new(mean.clone(), covariance.clone()).map_err(|e| refused(&e))?;
                    parameters
                        .push(Parameter::Joint { names: names.clone(), prior: JointPrior::MultivariateNormal(normal) });
                    priors.push(prior::Prior::multivariate_normal(names, mean, covariance).map_err(|e| refused(&e))?);
                }
                "unit-cube" => {
                    is_portable = false;
                    let map = cube_map(&given, names.len(), &raised)?;
                    let (described, cube) = (names.clone(), map.clone());
                    let parameter = interruptible(py, move || Parameter::unit_cube(described, cube));
                    parameters.push(raised.instead_of(parameter)?);
                    priors.push(prior::Prior::from_unit_cube(names, map).map_err(|e| refused(&e))?);
                }
                _ => {
                    let name = names.into_iter().next().ok_or_else(|| fault("a block without a name"))?;
                    let prior = distribution(py, &family, &given)?;
                    parameters.push(Parameter::Scalar { name: name.clone(), prior });
                    priors.push(prior::Prior::independent([(name, prior)]).map_err(|e| refused(&e))?);
                }
            }
        }
        let parameters = Parameters::new(parameters).map_err(|e| refused(&e))?;
        parameters.require_free_names().map_err(|e| refused(&e))?;
        let prior = prior::Prior::product(priors).map_err(|e| refused(&e))?;
        let problem = serde_json::to_value(&parameters).map_err(|e| fault(&e.to_string()))?;
        Ok(Self { prior, problem, raised, is_portable })
    }

    /// The names of the parameters, in order.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.prior.names().to_vec()
    }

    /// The number of parameters.
    #[getter]
    fn dim(&self) -> usize {
        self.prior.dim()
    }

    /// Whether a store can hold it: a prior made of functions has to be given again.
    #[getter]
    fn is_portable(&self) -> bool {
        self.is_portable
    }

    /// θ at each latent point, one per row; latent coordinates are standard normal.
    fn to_theta<'py>(
        &self,
        py: Python<'py>,
        latent: numpy::PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let prior = self.prior.clone();
        self.map(py, latent, move |u| prior.to_theta(u))
    }

    /// The latent point of each θ, one per row.
    fn to_latent<'py>(
        &self,
        py: Python<'py>,
        theta: numpy::PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let prior = self.prior.clone();
        self.map(py, theta, move |theta| prior.to_latent(theta))
    }

    /// log π at each θ, one θ per row.
    fn log_density<'py>(
        &self,
        py: Python<'py>,
        theta: numpy::PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let prior = self.prior.clone();
        let rows = rows_of(&theta);
        let found =
            interruptible(py, move || rows.iter().map(|theta| prior.log_density(theta)).collect::<Result<Vec<_>, _>>());
        Ok(PyArray1::from_vec(py, self.raised.instead_of(found)?))
    }
}

impl Prior {
    fn map<'py>(
        &self,
        py: Python<'py>,
        points: numpy::PyReadonlyArray2<'py, f64>,
        of: impl Fn(&[f64]) -> batchquad::Result<Vec<f64>> + Send + 'static,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let rows = rows_of(&points);
        let found = interruptible(py, move || rows.iter().map(|row| of(row)).collect::<Result<Vec<_>, _>>());
        matrix(py, &self.raised.instead_of(found)?, self.prior.dim())
    }
}

/// The rows of an array.
pub(crate) fn rows_of(points: &numpy::PyReadonlyArray2<'_, f64>) -> Vec<Vec<f64>> {
    let d = points.shape()[1];
    let flat: Vec<f64> = points.as_array().iter().copied().collect();
    if d == 0 { vec![Vec::new(); points.shape()[0]] } else { flat.chunks(d).map(<[f64]>::to_vec).collect() }
}

/// An array of rows of length `d`.
pub(crate) fn matrix<'py>(py: Python<'py>, rows: &[Vec<f64>], d: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
    PyArray1::from_vec(py, rows.concat()).reshape([rows.len(), d])
}

/// The one parameter of a distribution that is not a number.
const PERIODIC: &str = "periodic";

/// Raises for a family that is unknown or parameters that it does not accept.
#[pyfunction]
pub(crate) fn check_distribution(py: Python<'_>, family: &str, parameters: &Bound<'_, PyAny>) -> PyResult<()> {
    distribution(py, family, parameters).map(|_| ())
}

fn distribution(py: Python<'_>, family: &str, parameters: &Bound<'_, PyAny>) -> PyResult<Distribution> {
    let given = parameters.cast::<PyDict>()?;
    let is_number = |key: &Bound<'_, PyAny>| key.extract::<String>().is_ok_and(|key| key != PERIODIC);
    let parameters: Vec<(String, f64)> = given
        .iter()
        .filter(|(key, _)| is_number(key))
        .map(|(key, value)| Ok((key.extract()?, value.extract()?)))
        .collect::<PyResult<_>>()?;
    let periodic = given.get_item(PERIODIC)?.map_or(Ok(false), |value| value.extract())?;
    let written = MapDeserializer::new([(family, MapDeserializer::new(parameters.into_iter()))].into_iter());
    let family = Family::deserialize(MapAccessDeserializer::new(written)).map_err(|e: ValueError| {
        exception(py, &batchquad::Error::invalid("prior", e.to_string(), "a family of batchquad with its parameters"))
    })?;
    let distribution = Distribution::try_from(family);
    if periodic { distribution.and_then(Distribution::periodic) } else { distribution }.map_err(|e| exception(py, &e))
}

/// The library's map that calls Python functions, each with an array of its own.
fn cube_map(given: &Bound<'_, PyAny>, dim: usize, raised: &Raised) -> PyResult<UnitCubeMap> {
    type Function = Option<Py<PyAny>>;
    let (transform, inverse, log_density): (Py<PyAny>, Function, Function) = given.extract()?;
    let vector = |function: Py<PyAny>, raised: Raised| {
        move |point: &[f64]| call(&function, point, &raised, |found| numbers(found, dim)).unwrap_or_default()
    };
    let mut map = UnitCubeMap::new(vector(transform, raised.clone()));
    if let Some(inverse) = inverse {
        map = map.with_inverse(vector(inverse, raised.clone()));
    }
    if let Some(function) = log_density {
        let raised = raised.clone();
        map = map.with_log_density(move |theta| {
            call(&function, theta, &raised, |found| found.extract::<f64>()).unwrap_or(f64::NAN)
        });
    }
    Ok(map)
}

/// Calls a Python function with an array of its own; what it raises is kept for later.
pub(crate) fn call<T>(
    function: &Py<PyAny>,
    point: &[f64],
    raised: &Raised,
    read: impl Fn(&Bound<'_, PyAny>) -> PyResult<T>,
) -> Option<T> {
    // An interpreter that is about to end runs nothing any more.
    Python::try_attach(|py| {
        let found = function.bind(py).call1((PyArray1::from_slice(py, point),)).and_then(|found| read(&found));
        found.map_err(|error| raised.set(error)).ok()
    })
    .flatten()
}

fn numbers(found: &Bound<'_, PyAny>, dim: usize) -> PyResult<Vec<f64>> {
    let wrong = |_| PyTypeError::new_err(format!("the prior transform returned {found:?}, expected {dim} numbers"));
    vector(found).map_err(wrong)
}

/// What a Python function returned, as numbers.
pub(crate) fn vector(found: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    if found.is_none() {
        return Err(PyTypeError::new_err("the function returned None, expected numbers"));
    }
    let array = found.py().import("numpy")?.call_method1("asarray", (found, "float64"))?;
    let array: PyReadonlyArray1<'_, f64> = array.extract()?;
    Ok(array.as_array().to_vec())
}
