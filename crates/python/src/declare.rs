//! Ops and benchmark suites as JSON.

use crate::errors::exception;
use pyo3::prelude::*;
use serde_json::Value as Json;
use warpline::ops::{AnyOp, all};
use warpline_ir::Target;
use warpline_kernels::{AnyFamily, BenchCall, FamilyError, registry};

/// Returns every op as JSON: signature, torch schemas, type stub.
#[pyfunction]
pub(crate) fn ops() -> String {
    Json::from_iter(all().iter().map(AnyOp::to_json)).to_string()
}

/// Returns every benchmark problem as JSON: its suite and its call.
#[pyfunction]
pub(crate) fn suites(py: Python<'_>) -> PyResult<String> {
    to_json(py, |family| family.bench_calls(&Target::default()))
}

/// Returns every problem of the surveys as JSON: its suite and its call.
#[pyfunction]
pub(crate) fn surveys(py: Python<'_>) -> PyResult<String> {
    to_json(py, |family| family.survey_calls(&Target::default()))
}

/// Returns the names of the surveys.
#[pyfunction]
pub(crate) fn survey_names() -> Vec<&'static str> {
    registry().iter().flat_map(|f| f.surveys()).collect()
}

fn to_json(
    py: Python<'_>,
    calls: impl Fn(&dyn AnyFamily) -> Result<Vec<BenchCall>, FamilyError>,
) -> PyResult<String> {
    let mut problems = Vec::new();
    for family in registry() {
        for call in calls(family).map_err(|e| exception(py, &e.into()))? {
            let op = all().iter().find(|op| op.signature.name == call.op);
            let params = op.map_or(&[][..], |op| &op.signature.params);
            problems.push(call.to_json(params));
        }
    }
    Ok(Json::from(problems).to_string())
}

/// Returns the version of the package and the commit that it was built from.
#[pyfunction]
pub(crate) fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let info = pyo3::types::PyDict::new(py);
    info.set_item("version", env!("CARGO_PKG_VERSION"))?;
    info.set_item("commit", option_env!("WARPLINE_COMMIT"))?;
    Ok(info.into_any())
}
