//! Ops and suites, as JSON for the Python side.

use crate::errors::exception;
use pyo3::prelude::*;
use serde_json::{Value as Json, json};
use warpline::ops::{AnyOp, all};
use warpline_ir::Target;
use warpline_kernels::MeasuredCall;
use warpline_kernels::op::Value;
use warpline_kernels::registry;

/// Every op, as JSON: its signature and the schemas that torch registers.
#[pyfunction]
pub(crate) fn ops() -> String {
    let op = |op: &AnyOp| {
        let mut all = json!(op.signature);
        for (param, json) in op.signature.params.iter().zip(params(&mut all)) {
            json["optional"] = param.is_optional().into();
        }
        all["family"] = op.family.into();
        all["schema"] = op.signature.schema().into();
        all["out_schema"] = op.signature.out_schema().into();
        all
    };
    Json::from_iter(all().iter().map(op)).to_string()
}

fn params(op: &mut Json) -> &mut [Json] {
    let list = op["params"].as_array_mut();
    list.map_or(&mut [], Vec::as_mut_slice)
}

/// Every problem that is measured, as JSON: its suite, and the call that asks it.
#[pyfunction]
pub(crate) fn suites(py: Python<'_>) -> PyResult<String> {
    let mut all = Vec::new();
    for family in registry() {
        let calls = family.calls(&Target::default());
        let calls = calls.map_err(|e| exception(py, &e.into()))?;
        all.extend(calls.iter().map(measured));
    }
    Ok(Json::from(all).to_string())
}

fn measured(call: &MeasuredCall) -> Json {
    let op = all().iter().find(|op| op.signature.name == call.op);
    let params = op.map_or(&[][..], |op| &op.signature.params);
    let arg = |(param, value): (&warpline_kernels::op::Param, &Value)| match value {
        Value::None => json!({ "name": param.name, "value": null }),
        Value::Number(x) => json!({ "name": param.name, "value": x }),
        Value::Integer(n) => json!({ "name": param.name, "value": n }),
        Value::Integers(all) => json!({ "name": param.name, "value": all }),
        Value::Text(word) => json!({ "name": param.name, "value": word }),
        Value::Flag(yes) => json!({ "name": param.name, "value": yes }),
        Value::Tensor(view) => json!({
            "name": param.name,
            "tensor": { "dtype": view.dtype.name(), "shape": view.shape, "strides": view.strides },
        }),
    };
    let cost = call.work.cost();
    json!({
        "suite": call.suite,
        "family": call.work.family(),
        "op": call.op,
        "problem": call.work.problem(),
        "flops": cost.flops,
        "bytes": cost.bytes,
        "args": params.iter().zip(&call.args).map(arg).collect::<Vec<_>>(),
    })
}

/// The version of the package, and the commit that it was built from.
#[pyfunction]
pub(crate) fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let info = pyo3::types::PyDict::new(py);
    info.set_item("version", env!("CARGO_PKG_VERSION"))?;
    info.set_item("commit", option_env!("WARPLINE_COMMIT"))?;
    Ok(info.into_any())
}
