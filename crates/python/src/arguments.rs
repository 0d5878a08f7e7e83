//! Converts Python values to arguments of a call.

use crate::errors::input_error;
use pyo3::prelude::*;
use warpline::DType;
use warpline::ops::{self, AnyOp, ArgValue};
use warpline_kernels::op::{DefaultValue, OpParam, OpParamKind};

/// Returns the op at an index of the list that `ops()` returns.
pub(crate) fn op(py: Python<'_>, index: usize) -> PyResult<&'static AnyOp> {
    ops::all()
        .get(index)
        .ok_or_else(|| input_error(py, format!("unknown op index {index}")))
}

/// Converts a value that is not a tensor to the kind of its parameter; returns `ArgValue::None` for
/// a tensor parameter.
pub(crate) fn convert_value(
    op: &AnyOp,
    param: &OpParam,
    value: &Bound<'_, PyAny>,
) -> PyResult<ArgValue> {
    if value.is_none() && param.default == Some(DefaultValue::Nothing) {
        return Ok(ArgValue::None);
    }
    let (converted, expected) = match param.kind {
        OpParamKind::Tensor => return Ok(ArgValue::None),
        OpParamKind::Number => (value.extract().map(ArgValue::Number), "a number"),
        OpParamKind::Integer => (value.extract().map(ArgValue::Integer), "an integer"),
        OpParamKind::Integers => (value.extract().map(ArgValue::Integers), "integers"),
        OpParamKind::Pairs => (value.extract().map(ArgValue::Integers), "pairs of integers"),
        OpParamKind::Pair => (value.extract().map(ArgValue::Pair), "two integers"),
        OpParamKind::Type => (
            value.extract().map(ArgValue::Text),
            "the name of an element type",
        ),
        OpParamKind::Flag => (value.extract().map(ArgValue::Flag), "True or False"),
        OpParamKind::Text => (value.extract().map(ArgValue::Text), "a string"),
    };
    converted.map_err(|_| {
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
        input_error(
            value.py(),
            format!("{op}: {name} must be {expected}, not {given}"),
        )
    })
}

/// Returns the element type of a name.
pub(crate) fn dtype_named(py: Python<'_>, name: &str) -> PyResult<DType> {
    let named = DType::from_name(name).filter(|&dtype| dtype != DType::Tf32);
    named.ok_or_else(|| input_error(py, format!("unknown element type {name:?}")))
}
