//! Python values as arguments of a call.

use crate::errors::input;
use pyo3::prelude::*;
use warpline::DType;
use warpline::ops::{self, AnyOp, Value};
use warpline_kernels::op::{Kind, Param};

/// The op at that place, which the Python side has from the same list.
pub(crate) fn op(py: Python<'_>, index: usize) -> PyResult<&'static AnyOp> {
    ops::all()
        .get(index)
        .ok_or_else(|| input(py, format!("there is no op {index}")))
}

/// A number or an integer, as the parameter wants it; none for a tensor.
pub(crate) fn number(op: &AnyOp, param: &Param, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let (number, wanted) = match param.kind {
        Kind::Tensor => return Ok(Value::None),
        Kind::Number => (value.extract().map(Value::Number), "a number"),
        Kind::Integer => (value.extract().map(Value::Integer), "an integer"),
    };
    number.map_err(|_| {
        let given = match value.repr() {
            Ok(text) if text.len().is_ok_and(|n| n < 40) => text.to_string(),
            _ => format!(
                "of type {}",
                value
                    .get_type()
                    .name()
                    .map_or(String::new(), |n| n.to_string())
            ),
        };
        let (op, name) = (op.signature.name, param.name);
        input(value.py(), format!("{op}: {name} is {wanted}, not {given}"))
    })
}

/// The element type of that name.
pub(crate) fn dtype_named(py: Python<'_>, name: &str) -> PyResult<DType> {
    use DType::*;
    let all = [U8, U16, U32, I32, U64, I64, F32, F16, Bf16, E4m3, E5m2];
    all.into_iter()
        .find(|dtype| dtype.name() == name)
        .ok_or_else(|| input(py, format!("there is no element type {name:?}")))
}
