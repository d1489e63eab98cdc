//! The native module `batchquad._batchquad`: sessions, priors and beliefs of the library as Python objects.
//!
//! Conversion and nothing else. Whatever computes runs on a thread of its own without the interpreter's lock (`work`), so that
//! other Python threads go on and an interrupt is heeded at once.

mod belief;
mod chooser;
mod desk;
mod errors;
mod prior;
mod report;
mod session;
mod words;
mod work;

use pyo3::prelude::*;

/// Sessions, priors and beliefs: the native half of batchquad. Use the package `batchquad` instead.
#[pymodule]
mod _batchquad {
    use super::{Bound, PyModule, PyResult};
    use pyo3::types::PyModuleMethods;

    #[pymodule_export]
    use super::belief::{Belief, Expectation, Marginal, average, compare, reference_run};
    #[pymodule_export]
    use super::prior::{Prior, check_distribution};
    #[pymodule_export]
    use super::report::{conclusion, duration, probability, program, rounded};
    #[pymodule_export]
    use super::session::Session;
    #[pymodule_export]
    use super::words::clean;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
