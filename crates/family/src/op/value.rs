//! The values of op arguments.

use super::view::TensorView;

/// The value of an op argument.
#[derive(Clone, PartialEq, Debug)]
pub enum ArgValue {
    /// The argument is omitted.
    None,
    /// A tensor.
    Tensor(TensorView),
    /// A floating-point number.
    Number(f64),
    /// An integer.
    Integer(i64),
    /// A list of integers; pairs are flattened.
    Integers(Vec<i64>),
    /// Two integers.
    Pair([i64; 2]),
    /// A string.
    Text(String),
    /// A boolean.
    Flag(bool),
}

impl From<TensorView> for ArgValue {
    fn from(view: TensorView) -> Self {
        ArgValue::Tensor(view)
    }
}

impl From<f64> for ArgValue {
    fn from(x: f64) -> Self {
        ArgValue::Number(x)
    }
}

impl From<i64> for ArgValue {
    fn from(n: i64) -> Self {
        ArgValue::Integer(n)
    }
}

impl From<Vec<i64>> for ArgValue {
    fn from(all: Vec<i64>) -> Self {
        ArgValue::Integers(all)
    }
}

impl From<bool> for ArgValue {
    fn from(flag: bool) -> Self {
        ArgValue::Flag(flag)
    }
}

impl From<&str> for ArgValue {
    fn from(text: &str) -> Self {
        ArgValue::Text(text.into())
    }
}
