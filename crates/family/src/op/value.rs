//! The arguments of a call.

use super::view::TensorView;

/// An argument.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Left out.
    None,
    /// A tensor.
    Tensor(TensorView),
    /// A floating-point number.
    Number(f64),
    /// An integer.
    Integer(i64),
    /// Integers, or pairs of them one after the other.
    Integers(Vec<i64>),
    /// A word.
    Text(String),
    /// Yes or no.
    Flag(bool),
}

impl From<TensorView> for Value {
    fn from(view: TensorView) -> Self {
        Value::Tensor(view)
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Self {
        Value::Number(x)
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Self {
        Value::Integer(n)
    }
}

impl From<Vec<i64>> for Value {
    fn from(all: Vec<i64>) -> Self {
        Value::Integers(all)
    }
}

impl From<bool> for Value {
    fn from(yes: bool) -> Self {
        Value::Flag(yes)
    }
}

impl From<&str> for Value {
    fn from(word: &str) -> Self {
        Value::Text(word.into())
    }
}
