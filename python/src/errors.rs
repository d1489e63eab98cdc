//! Errors of the library as exceptions of the package.

use batchquad::Error;
use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyDict};

/// The exception for an error: a class of `batchquad._errors` with the library's message and the details as attributes.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error {
        Error::NoFiniteValue { .. } => "NoEvidence",
        Error::Numerical { .. } => "NumericalError",
        Error::StoreLocked { .. } => "StoreLocked",
        Error::StoreDamaged { .. } => "StoreDamaged",
        Error::StoreDiffers { .. } => "StoreDiffers",
        Error::Io { .. }
        | Error::StoreExists { .. }
        | Error::NotAStore { .. }
        | Error::StoreVersion { .. }
        | Error::StoreFailed { .. } => "StoreError",
        _ => "InvalidInput",
    };
    let details = |details: &Bound<'_, PyDict>| -> PyResult<()> {
        match error {
            Error::StoreLocked { path, pid, host } => {
                details.set_item("path", path)?;
                details.set_item("pid", pid)?;
                details.set_item("host", host)
            }
            Error::StoreDamaged { path, record, .. } => {
                details.set_item("path", path)?;
                details.set_item("record", record)
            }
            Error::StoreDiffers { differences } => details.set_item("differences", differences),
            _ => Ok(()),
        }
    };
    let build = || -> PyResult<PyErr> {
        let raised = py.import("batchquad._errors")?.getattr(class)?.call1((error.to_string(),))?;
        let attributes = PyDict::new(py);
        details(&attributes)?;
        for (name, value) in attributes {
            raised.setattr(name.extract::<String>()?.as_str(), value)?;
        }
        Ok(PyErr::from_value(raised))
    };
    build().unwrap_or_else(|e| e)
}

/// The exception for a fault of ours: something that should not happen did.
pub(crate) fn fault(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("a fault of batchquad itself, please report it: {what}"))
}
