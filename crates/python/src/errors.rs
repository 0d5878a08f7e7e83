//! Our errors as Python exceptions, with the same sentences and codes.

use pyo3::prelude::*;
use warpline::{Error, cuda::CudaError};
use warpline_kernels::FamilyError;

/// The exception of an error: its class is in `warpline._errors`, by what went wrong.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let class = match (error, error.exit_code()) {
        (Error::Cuda(CudaError::BadArgument { .. }), _) => "RefusedError",
        (Error::Cuda(_), _) | (_, 3) => "DeviceError",
        (_, 1) => "RefusedError",
        _ => "InputError",
    };
    raise(py, class, &error.to_string(), error.code())
}

/// The exception of bad input.
pub(crate) fn input(py: Python<'_>, sentence: String) -> PyErr {
    exception(py, &FamilyError::Problem(sentence).into())
}

fn raise(py: Python<'_>, class: &str, sentence: &str, code: &str) -> PyErr {
    let made = py
        .import("warpline._errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((sentence, code)));
    match made {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}
