//! Signatures of ops: name, parameters and outputs.

use super::value::ArgValue;
use super::view::TensorView;
use crate::error::FamilyError;
use serde::{Serialize, Serializer};
use std::fmt::Write;
use warpline_ir::DType;

/// The signature of an op: name, parameters and outputs.
///
/// ```
/// use warpline_family::op::{OpOutput, OpParam, OutputDim, Signature};
/// let softmax = Signature {
///     name: "softmax",
///     about: "Softmax of each row",
///     params: vec![
///         OpParam::tensor("x", "The matrix."),
///         OpParam::integer("dim", -1, "The dimension to sum over."),
///     ],
///     outputs: vec![OpOutput {
///         name: "y",
///         dims: &[OutputDim::All("x")],
///         dtype_of: "x",
///         dtype_override: None,
///         fixed_dtype: None,
///     }],
///     optional_output: None,
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
    /// The name in Python: `layer_norm`.
    pub name: &'static str,
    /// A one-line description.
    pub about: &'static str,
    /// The parameters, in order.
    pub params: Vec<OpParam>,
    /// The outputs, in order.
    pub outputs: Vec<OpOutput>,
    /// An output that a flag of the Python function adds.
    pub optional_output: Option<OptionalOutput>,
    /// A Python example on NumPy arrays, in doctest format.
    pub example: &'static str,
}

/// A parameter of an op.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OpParam {
    /// The name.
    pub name: &'static str,
    /// The kind of the parameter's values.
    pub kind: OpParamKind,
    /// A one-line description.
    pub about: &'static str,
    /// The default value; `None` if every call must pass the parameter.
    pub default: Option<DefaultValue>,
}

/// The kind of a parameter's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpParamKind {
    /// A tensor.
    Tensor,
    /// A floating-point number.
    Number,
    /// An integer.
    Integer,
    /// A list of integers in host memory.
    Integers,
    /// A list of integer pairs in host memory.
    Pairs,
    /// Two integers.
    Pair,
    /// A string.
    Text,
    /// The name of an element type.
    Type,
    /// A boolean.
    Flag,
}

/// The default value of a parameter.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum DefaultValue {
    /// `None`.
    Nothing,
    /// A floating-point number.
    Number(f64),
    /// An integer.
    Integer(i64),
    /// A string.
    Text(&'static str),
    /// A boolean.
    Flag(bool),
}

impl DefaultValue {
    /// Returns the argument value.
    pub fn value(self) -> ArgValue {
        match self {
            DefaultValue::Nothing => ArgValue::None,
            DefaultValue::Number(x) => ArgValue::Number(x),
            DefaultValue::Integer(n) => ArgValue::Integer(n),
            DefaultValue::Text(word) => ArgValue::Text(word.into()),
            DefaultValue::Flag(yes) => ArgValue::Flag(yes),
        }
    }

    /// Formats the value for Python and for a torch schema.
    pub(super) fn text(self) -> String {
        match self {
            DefaultValue::Nothing => "None".into(),
            DefaultValue::Number(x) => format!("{x:?}"),
            DefaultValue::Integer(n) => n.to_string(),
            DefaultValue::Text(word) => format!("{word:?}"),
            DefaultValue::Flag(yes) => if yes { "True" } else { "False" }.into(),
        }
    }
}

impl OpParam {
    /// Returns a required tensor parameter.
    pub const fn tensor(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            kind: OpParamKind::Tensor,
            about,
            default: None,
        }
    }

    /// Returns an optional tensor parameter.
    pub const fn optional(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            kind: OpParamKind::Tensor,
            about,
            default: Some(DefaultValue::Nothing),
        }
    }

    /// Returns a number parameter with a default.
    pub const fn number(name: &'static str, default: f64, about: &'static str) -> Self {
        Self {
            name,
            kind: OpParamKind::Number,
            about,
            default: Some(DefaultValue::Number(default)),
        }
    }

    /// Returns an optional number parameter.
    pub const fn optional_number(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            kind: OpParamKind::Number,
            about,
            default: Some(DefaultValue::Nothing),
        }
    }

    /// Returns an integer parameter with a default.
    pub const fn integer(name: &'static str, default: i64, about: &'static str) -> Self {
        Self {
            name,
            kind: OpParamKind::Integer,
            about,
            default: Some(DefaultValue::Integer(default)),
        }
    }

    /// Returns a required parameter with a list of integers.
    pub const fn integers(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            kind: OpParamKind::Integers,
            about,
            default: None,
        }
    }

    /// Returns a required parameter with a list of integer pairs.
    pub const fn pairs(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            kind: OpParamKind::Pairs,
            about,
            default: None,
        }
    }

    /// Returns an optional parameter with two integers.
    pub const fn optional_pair(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            kind: OpParamKind::Pair,
            about,
            default: Some(DefaultValue::Nothing),
        }
    }

    /// Returns a string parameter with a default.
    pub const fn text(name: &'static str, default: &'static str, about: &'static str) -> Self {
        Self {
            name,
            kind: OpParamKind::Text,
            about,
            default: Some(DefaultValue::Text(default)),
        }
    }

    /// Returns an optional element-type parameter.
    pub const fn element_type(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            kind: OpParamKind::Type,
            about,
            default: Some(DefaultValue::Nothing),
        }
    }

    /// Returns a boolean parameter whose default is false.
    pub const fn flag(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            kind: OpParamKind::Flag,
            about,
            default: Some(DefaultValue::Flag(false)),
        }
    }

    /// Returns whether a call may omit the parameter.
    pub const fn is_optional(&self) -> bool {
        self.default.is_some()
    }

    fn schema(&self) -> String {
        let ty = match (self.kind, self.default) {
            (OpParamKind::Tensor, None) => "Tensor",
            (OpParamKind::Tensor, Some(_)) => "Tensor?",
            (OpParamKind::Number, Some(DefaultValue::Nothing)) => "float?",
            (OpParamKind::Number, _) => "float",
            (OpParamKind::Integer, _) => "int",
            // Symbolic, because they are extents that a torch trace may keep dynamic.
            (OpParamKind::Integers | OpParamKind::Pairs, _) => "SymInt[]",
            (OpParamKind::Pair, _) => "SymInt[]?",
            (OpParamKind::Text, _) => "str",
            (OpParamKind::Type, _) => "str?",
            (OpParamKind::Flag, _) => "bool",
        };
        match self.default {
            None => format!("{ty} {}", self.name),
            Some(value) => format!("{ty} {}={}", self.name, value.text()),
        }
    }
}

/// An output of an op.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OpOutput {
    /// The name.
    pub name: &'static str,
    /// The dimensions, outermost first.
    pub dims: &'static [OutputDim],
    /// The parameter with the same element type.
    pub dtype_of: &'static str,
    /// The parameter that may override the element type. If the call omits it, fp8 becomes bf16 and
    /// NVFP4 codes (u8) become f16.
    pub dtype_override: Option<&'static str>,
    /// The element type, if it does not follow from a parameter.
    #[serde(serialize_with = "serialize_name")]
    pub fixed_dtype: Option<DType>,
}

fn serialize_name<S: Serializer>(dtype: &Option<DType>, to: S) -> Result<S::Ok, S::Error> {
    dtype.map(DType::name).serialize(to)
}

/// An output that a flag adds. The variant with this output is an op of its own.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OptionalOutput {
    /// The name of the variant.
    pub variant: &'static str,
    /// The flag of the Python function.
    pub flag: &'static str,
    /// A one-line description of the flag.
    pub about: &'static str,
    /// The output, the last one.
    pub output: OpOutput,
}

/// One or more dimensions of an output, derived from a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputDim {
    /// All dimensions of the parameter.
    All(&'static str),
    /// All dimensions except the last.
    Leading(&'static str),
    /// The dimension at this index.
    Index(&'static str, usize),
    /// The last dimension.
    Last(&'static str),
    /// The dimension at this index; half of it if the call omits the other parameter.
    HalfUnless(&'static str, usize, &'static str),
    /// The product of the dimension at this index and all inner ones.
    Flattened(&'static str, usize),
    /// The dimensions of `[…, S, H, D]` without the last one, as `[…, H, S]`.
    RowsLast(&'static str),
    /// The dimensions of the product of two parameters, as torch.matmul defines them: the broadcast
    /// batch, the rows of the first and the columns of the second. A vector has neither.
    MatMul(&'static str, &'static str),
}

/// Returns the shape of a matrix product. The op rejects batches that cannot be broadcast.
fn matmul_shape(a: &TensorView, b: &TensorView) -> Vec<u64> {
    let batch = |view: &TensorView| {
        let len = view.shape.len().saturating_sub(2);
        view.shape[..len].to_vec()
    };
    let (a_batch, b_batch) = (batch(a), batch(b));
    let len = a_batch.len().max(b_batch.len());
    let dim = |dims: &[u64], i: usize| (i + dims.len()).checked_sub(len).map_or(1, |i| dims[i]);
    let mut shape: Vec<u64> = (0..len)
        .map(|i| match (dim(&a_batch, i), dim(&b_batch, i)) {
            (1, y) => y,
            (x, _) => x,
        })
        .collect();
    let matrix_dim = |view: &TensorView, from_end: usize| {
        let at = view.shape.len().checked_sub(from_end)?;
        (view.shape.len() > 1).then(|| view.shape[at])
    };
    shape.extend(matrix_dim(a, 2));
    shape.extend(matrix_dim(b, 1));
    shape
}

impl Signature {
    /// Returns the torch schema of the functional variant, which returns new outputs.
    pub fn schema(&self) -> String {
        let params: Vec<_> = self.params.iter().map(OpParam::schema).collect();
        let outputs = match self.outputs.len() {
            1 => "Tensor".into(),
            n => format!("({})", vec!["Tensor"; n].join(", ")),
        };
        format!("{}({}) -> {outputs}", self.name, params.join(", "))
    }

    /// Returns the torch schema of the variant that writes outputs of the caller.
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

    /// Returns the variant with the optional output.
    pub fn with_optional_output(&self) -> Option<Self> {
        let OptionalOutput {
            variant, output, ..
        } = self.optional_output?;
        Some(Self {
            name: variant,
            outputs: self.outputs.iter().copied().chain([output]).collect(),
            optional_output: None,
            ..self.clone()
        })
    }

    /// Returns the index of the parameter with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|p| p.name == name)
    }

    /// Returns the element type and shape of an output for the given arguments.
    pub fn expected(
        &self,
        output: &OpOutput,
        args: &[ArgValue],
    ) -> Result<(DType, Vec<u64>), FamilyError> {
        let view = |name: &str| -> Result<&TensorView, FamilyError> {
            let value = self.position(name).and_then(|i| args.get(i));
            match value {
                Some(ArgValue::Tensor(view)) => Ok(view),
                _ => Err(FamilyError::Problem(format!(
                    "{}: {name} must be a tensor, not None",
                    self.name
                ))),
            }
        };
        let mut shape = Vec::new();
        for dim in output.dims {
            match *dim {
                OutputDim::All(param) => shape.extend(&view(param)?.shape),
                OutputDim::Leading(param) => {
                    let dims = &view(param)?.shape;
                    shape.extend(&dims[..dims.len().saturating_sub(1)]);
                }
                OutputDim::Index(param, i) => shape.extend(view(param)?.shape.get(i)),
                OutputDim::Last(param) => shape.extend(view(param)?.shape.last()),
                OutputDim::HalfUnless(param, i, other) => {
                    let divisor = if view(other).is_ok() { 1 } else { 2 };
                    shape.extend(view(param)?.shape.get(i).map(|n| n / divisor));
                }
                OutputDim::RowsLast(param) => {
                    let dims = &view(param)?.shape;
                    shape.extend(&dims[..dims.len().saturating_sub(1)]);
                    if let [.., rows, heads] = &mut shape[..] {
                        std::mem::swap(rows, heads);
                    }
                }
                OutputDim::MatMul(a, b) => shape.extend(matmul_shape(view(a)?, view(b)?)),
                OutputDim::Flattened(param, i) => {
                    let dims = view(param)?.shape.iter().skip(i);
                    shape.push(dims.fold(1, |n: u64, &dim| n.saturating_mul(dim)));
                }
            }
        }
        if let Some(dtype) = output.fixed_dtype {
            return Ok((dtype, shape));
        }
        let overriding = output.dtype_override.and_then(|param| self.position(param));
        let dtype = match overriding.and_then(|i| args.get(i)) {
            Some(ArgValue::Text(name)) => DType::from_name(name).ok_or_else(|| {
                FamilyError::Problem(format!("{}: unknown element type {name:?}", self.name))
            })?,
            _ => match view(output.dtype_of)?.dtype {
                DType::E4m3 | DType::E5m2 if output.dtype_override.is_some() => DType::Bf16,
                DType::U8 if output.dtype_override.is_some() => DType::F16,
                same => same,
            },
        };
        Ok((dtype, shape))
    }
}
