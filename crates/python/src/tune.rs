//! Autotunes the problem of a call; allows or forbids nondeterministic configs.

use crate::errors::exception;
use crate::launch::launch_request;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::cell::Cell;
use std::ffi::CString;
use warpline::TuneOptions;

thread_local! {
    static NONDETERMINISTIC_ALLOWED: Cell<bool> = const { Cell::new(false) };
}

/// Allows or forbids configs whose results may differ in bits from run to run, for the calls of
/// this thread; returns the previous setting.
#[pyfunction]
pub(crate) fn allow_nondeterministic(allowed: bool) -> bool {
    NONDETERMINISTIC_ALLOWED.replace(allowed)
}

/// Returns whether the calls of this thread must be bitwise reproducible.
pub(crate) fn deterministic() -> bool {
    !NONDETERMINISTIC_ALLOWED.get()
}

/// Autotunes the problem of a call, unless a tuned config is cached; blocks until it is done.
/// Takes the arguments of `launch`.
#[pyfunction]
#[pyo3(signature = (index, args, outs, stream=None))]
pub(crate) fn tune(
    py: Python<'_>,
    index: usize,
    args: &Bound<'_, PyTuple>,
    outs: &Bound<'_, PyTuple>,
    stream: Option<usize>,
) -> PyResult<()> {
    let request = launch_request(py, index, args, outs, stream)?;
    let options = TuneOptions::default();
    let tuned = py.detach(|| {
        request
            .call
            .tune(&request.device, &request.stream, &options)
    });
    warn(py)?;
    tuned.map(drop).map_err(|e| exception(py, &e))
}

/// Issues the notices about tuned configs as Python warnings.
pub(crate) fn warn(py: Python<'_>) -> PyResult<()> {
    for notice in warpline::tune::notices() {
        let text = CString::new(notice).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    Ok(())
}
