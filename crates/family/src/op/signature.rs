//! What callers see of an op: its name, its parameters, what comes out.

use super::value::Value;
use super::view::TensorView;
use crate::error::FamilyError;
use serde::Serialize;
use std::fmt::Write;
use warpline_ir::DType;

/// What callers see of an op.
///
/// ```
/// use warpline_family::op::{Output, Param, Side, Signature};
/// let softmax = Signature {
///     name: "softmax",
///     about: "Softmax of each row",
///     params: vec![
///         Param::tensor("x", "The matrix."),
///         Param::integer("dim", -1, "The dimension that is summed over."),
///     ],
///     outputs: vec![Output {
///         name: "y",
///         sides: &[Side::All("x")],
///         dtype_of: "x",
///         dtype_by: None,
///     }],
///     example: "",
/// };
/// assert_eq!(softmax.schema(), "softmax(Tensor x, int dim=-1) -> Tensor");
/// assert_eq!(
///     softmax.out_schema(),
///     "softmax_out(Tensor x, int dim=-1, *, Tensor(a!) y) -> ()"
/// );
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Signature {
    /// Its name in Python: `layer_norm`.
    pub name: &'static str,
    /// What it computes, in one line.
    pub about: &'static str,
    /// What it takes, in order.
    pub params: Vec<Param>,
    /// What comes out.
    pub outputs: Vec<Output>,
    /// An example in Python, on NumPy arrays; lines as in a doctest.
    pub example: &'static str,
}

/// A parameter of an op.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// What it means, in one line.
    pub about: &'static str,
    /// Its value where a call gives none; none where every call gives one.
    pub default: Option<Default>,
}

/// What a parameter is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A tensor.
    Tensor,
    /// A floating-point number.
    Number,
    /// An integer.
    Integer,
    /// Integers, known on the host.
    Integers,
    /// Pairs of integers, known on the host.
    Pairs,
    /// A word.
    Text,
    /// The name of an element type.
    Type,
    /// Yes or no.
    Flag,
}

/// The value of a parameter that a call does not give.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Default {
    /// Nothing.
    Nothing,
    /// A floating-point number.
    Number(f64),
    /// An integer.
    Integer(i64),
    /// A word.
    Text(&'static str),
    /// Yes or no.
    Flag(bool),
}

impl Default {
    /// As a value of a call.
    pub fn value(self) -> Value {
        match self {
            Default::Nothing => Value::None,
            Default::Number(x) => Value::Number(x),
            Default::Integer(n) => Value::Integer(n),
            Default::Text(word) => Value::Text(word.into()),
            Default::Flag(yes) => Value::Flag(yes),
        }
    }

    /// As it is written in Python and in a schema.
    pub(super) fn text(self) -> String {
        match self {
            Default::Nothing => "None".into(),
            Default::Number(x) => format!("{x:?}"),
            Default::Integer(n) => n.to_string(),
            Default::Text(word) => format!("{word:?}"),
            Default::Flag(yes) => if yes { "True" } else { "False" }.into(),
        }
    }
}

impl Param {
    /// A tensor that every call gives.
    pub const fn tensor(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Tensor,
            about,
            default: None,
        }
    }

    /// A tensor that a call may leave out.
    pub const fn optional(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Tensor,
            about,
            default: Some(Default::Nothing),
        }
    }

    /// A number, and what it is unless a call says otherwise.
    pub const fn number(name: &'static str, default: f64, about: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Number,
            about,
            default: Some(Default::Number(default)),
        }
    }

    /// An integer, and what it is unless a call says otherwise.
    pub const fn integer(name: &'static str, default: i64, about: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Integer,
            about,
            default: Some(Default::Integer(default)),
        }
    }

    /// Integers that every call gives.
    pub const fn integers(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Integers,
            about,
            default: None,
        }
    }

    /// Pairs of integers that every call gives.
    pub const fn pairs(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Pairs,
            about,
            default: None,
        }
    }

    /// A word, and what it is unless a call says otherwise.
    pub const fn text(name: &'static str, default: &'static str, about: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Text,
            about,
            default: Some(Default::Text(default)),
        }
    }

    /// An element type that a call may leave out.
    pub const fn element_type(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Type,
            about,
            default: Some(Default::Nothing),
        }
    }

    /// Something that is not so unless a call says so.
    pub const fn flag(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Flag,
            about,
            default: Some(Default::Flag(false)),
        }
    }

    /// May a call leave it out?
    pub const fn is_optional(&self) -> bool {
        self.default.is_some()
    }

    fn schema(&self) -> String {
        let ty = match (self.kind, self.default) {
            (Kind::Tensor, None) => "Tensor",
            (Kind::Tensor, Some(_)) => "Tensor?",
            (Kind::Number, _) => "float",
            (Kind::Integer, _) => "int",
            // Extents, so that a trace may leave them open.
            (Kind::Integers | Kind::Pairs, _) => "SymInt[]",
            (Kind::Text, _) => "str",
            (Kind::Type, _) => "str?",
            (Kind::Flag, _) => "bool",
        };
        match self.default {
            None => format!("{ty} {}", self.name),
            Some(value) => format!("{ty} {}={}", self.name, value.text()),
        }
    }
}

/// Something that comes out.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Output {
    /// Its name.
    pub name: &'static str,
    /// Its sides, outermost first.
    pub sides: &'static [Side],
    /// The parameter whose element type it has.
    pub dtype_of: &'static str,
    /// The parameter that may name another; where there is one and a call does
    /// not give it, the type is bf16 for a float of 8 bits, and f16 for codes (u8).
    pub dtype_by: Option<&'static str>,
}

/// One or more sides of an output, each that of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// All sides of a parameter.
    All(&'static str),
    /// All but the last.
    Leading(&'static str),
    /// One of them.
    At(&'static str, usize),
    /// The last.
    Last(&'static str),
    /// One of them, or half of it where a call does not give that other parameter.
    Shared(&'static str, usize, &'static str),
    /// One of them and all behind it, as one.
    Joined(&'static str, usize),
}

impl Signature {
    /// The schema that torch registers: new outputs.
    pub fn schema(&self) -> String {
        let params: Vec<_> = self.params.iter().map(Param::schema).collect();
        let outputs = match self.outputs.len() {
            1 => "Tensor".into(),
            n => format!("({})", vec!["Tensor"; n].join(", ")),
        };
        format!("{}({}) -> {outputs}", self.name, params.join(", "))
    }

    /// The schema that torch registers for outputs of the caller, which it writes.
    pub fn out_schema(&self) -> String {
        let mut text = format!("{}_out(", self.name);
        for param in &self.params {
            let _ = write!(text, "{}, ", param.schema());
        }
        text.push('*');
        for (alias, output) in ('a'..).zip(&self.outputs) {
            let _ = write!(text, ", Tensor({alias}!) {}", output.name);
        }
        text + ") -> ()"
    }

    /// Which parameter has that name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|p| p.name == name)
    }

    /// Type and shape of an output of a call with those arguments.
    pub fn expected(
        &self,
        output: &Output,
        args: &[Value],
    ) -> Result<(DType, Vec<u64>), FamilyError> {
        let view = |name: &str| -> Result<&TensorView, FamilyError> {
            let value = self.position(name).and_then(|i| args.get(i));
            match value {
                Some(Value::Tensor(view)) => Ok(view),
                _ => Err(FamilyError::Problem(format!(
                    "{}: {name} is a tensor, and none was given",
                    self.name
                ))),
            }
        };
        let mut shape = Vec::new();
        for side in output.sides {
            match *side {
                Side::All(of) => shape.extend(&view(of)?.shape),
                Side::Leading(of) => {
                    let all = &view(of)?.shape;
                    shape.extend(&all[..all.len().saturating_sub(1)]);
                }
                Side::At(of, i) => shape.extend(view(of)?.shape.get(i)),
                Side::Last(of) => shape.extend(view(of)?.shape.last()),
                Side::Shared(of, i, other) => {
                    let by = if view(other).is_ok() { 1 } else { 2 };
                    shape.extend(view(of)?.shape.get(i).map(|n| n / by));
                }
                Side::Joined(of, i) => {
                    let sides = view(of)?.shape.iter().skip(i);
                    shape.push(sides.fold(1, |n: u64, &side| n.saturating_mul(side)));
                }
            }
        }
        let named = output.dtype_by.and_then(|by| self.position(by));
        let dtype = match named.and_then(|i| args.get(i)) {
            Some(Value::Text(name)) => DType::of_name(name).ok_or_else(|| {
                FamilyError::Problem(format!("{}: there is no element type {name:?}", self.name))
            })?,
            _ => match view(output.dtype_of)?.dtype {
                DType::E4m3 | DType::E5m2 if output.dtype_by.is_some() => DType::Bf16,
                DType::U8 if output.dtype_by.is_some() => DType::F16,
                same => same,
            },
        };
        Ok((dtype, shape))
    }
}
