//! Tuning the problem of a call, and what may be chosen for it.

use crate::errors::exception;
use crate::launch::{call, device, handle};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::cell::Cell;
use std::ffi::{CString, c_void};
use warpline::cuda::Stream;
use warpline::{Error, TuneOptions};

thread_local! {
    static MAY_DIFFER: Cell<bool> = const { Cell::new(false) };
}

/// Allows the calls of this thread what gives other bits from run to run, or
/// forbids it; gives what was allowed before.
#[pyfunction]
pub(crate) fn may_differ(allowed: bool) -> bool {
    MAY_DIFFER.replace(allowed)
}

/// Must the calls of this thread give the same bits in every run?
pub(crate) fn deterministic() -> bool {
    !MAY_DIFFER.get()
}

/// Tunes the problem of a call, unless a winner is remembered, and waits for
/// that. Arguments are those of `launch`.
#[pyfunction]
#[pyo3(signature = (index, args, outs, stream=None))]
pub(crate) fn tune(
    py: Python<'_>,
    index: usize,
    args: &Bound<'_, PyTuple>,
    outs: &Bound<'_, PyTuple>,
    stream: Option<usize>,
) -> PyResult<()> {
    let (call, ordinal) = call(py, index, args, outs)?;
    let device = device(ordinal).map_err(|e| exception(py, &e))?;
    let context = device
        .context()
        .ok_or_else(|| exception(py, &Error::NoGpu))?;
    let handle = handle(py, stream, ordinal)?;
    // SAFETY: the handle is that of a stream of this device: torch's own, or
    // the one that the caller works with.
    let stream = unsafe { Stream::borrowed(context, handle as *mut c_void) };
    let options = TuneOptions::default();
    let tuned = py.detach(|| call.tune(&device, &stream, &options));
    warn(py)?;
    tuned.map(drop).map_err(|e| exception(py, &e))
}

/// Says what is to be known of tuned configs, as warnings of Python's.
pub(crate) fn warn(py: Python<'_>) -> PyResult<()> {
    for notice in warpline::tune::notices() {
        let text = CString::new(notice).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    Ok(())
}
