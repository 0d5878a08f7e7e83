//! Converts errors to Python exceptions with the same messages and codes.

use pyo3::prelude::*;
use warpline::{Error, cuda::CudaError};
use warpline_kernels::FamilyError;

/// Returns the exception of an error; its class is in `warpline._errors`.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let class = match (error, error.exit_code()) {
        (Error::Cuda(CudaError::BadArgument { .. }), _) => "KernelError",
        (Error::Cuda(_), _) | (_, 3) => "DeviceError",
        (_, 1) => "KernelError",
        _ => "InputError",
    };
    raise(py, class, &error.to_string(), error.code())
}

/// Returns the exception of bad input.
pub(crate) fn input_error(py: Python<'_>, message: String) -> PyErr {
    exception(py, &FamilyError::Problem(message).into())
}

fn raise(py: Python<'_>, class: &str, message: &str, code: &str) -> PyErr {
    let value = py
        .import("warpline._errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((message, code)));
    match value {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}
