//! Tuning the problem of a call, and what may be chosen for it.

use crate::errors::exception;
use crate::launch::asked;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::cell::Cell;
use std::ffi::CString;
use warpline::TuneOptions;

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
    let asked = asked(py, index, args, outs, stream)?;
    let options = TuneOptions::default();
    let tuned = py.detach(|| asked.call.tune(&asked.device, &asked.stream, &options));
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
