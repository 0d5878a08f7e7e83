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

/// A number, an integer, integers or a word, as the parameter wants it; none for a tensor.
pub(crate) fn plain(op: &AnyOp, param: &Param, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let (number, wanted) = match param.kind {
        Kind::Tensor => return Ok(Value::None),
        Kind::Number => (value.extract().map(Value::Number), "a number"),
        Kind::Integer => (value.extract().map(Value::Integer), "an integer"),
        Kind::Integers => (value.extract().map(Value::Integers), "integers"),
        Kind::Pairs => (value.extract().map(Value::Integers), "pairs of integers"),
        Kind::Type if value.is_none() => return Ok(Value::None),
        Kind::Type => (
            value.extract().map(Value::Text),
            "the name of an element type",
        ),
        Kind::Flag => (value.extract().map(Value::Flag), "True or False"),
        Kind::Text => (value.extract().map(Value::Text), "a word"),
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
    let named = DType::of_name(name).filter(|&dtype| dtype != DType::Tf32);
    named.ok_or_else(|| input(py, format!("there is no element type {name:?}")))
}
