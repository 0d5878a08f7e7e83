//! The arguments and outputs of one call, by name.

use super::signature::{DefaultValue, OpParam, OpParamKind, Signature};
use super::value::ArgValue;
use super::view::TensorView;
use crate::error::FamilyError;

/// The arguments and outputs of one op call. Types and shapes match the signature.
#[derive(Clone, Copy, Debug)]
pub struct OpArgs<'a> {
    pub(crate) signature: &'a Signature,
    /// The arguments, in the order of the parameters.
    pub args: &'a [ArgValue],
    /// The outputs.
    pub outs: &'a [TensorView],
}

impl<'a> OpArgs<'a> {
    /// Rejects arguments and outputs that do not match the signature.
    pub(crate) fn new(
        signature: &'a Signature,
        args: &'a [ArgValue],
        outs: &'a [TensorView],
    ) -> Result<Self, FamilyError> {
        let call = Self {
            signature,
            args,
            outs,
        };
        let (params, outputs) = (&signature.params, &signature.outputs);
        if args.len() != params.len() || outs.len() != outputs.len() {
            return call.reject(format!(
                "the op takes {} arguments and {} outputs, not {} and {}",
                params.len(),
                outputs.len(),
                args.len(),
                outs.len()
            ));
        }
        for (param, value) in params.iter().zip(args) {
            call.check_kind(param, value)?;
        }
        for view in call.inputs().chain(outs) {
            if view.strides.len() != view.shape.len() {
                return call.reject(format!(
                    "shape {:?} and strides {:?} must have the same length",
                    view.shape, view.strides
                ));
            }
        }
        for (output, out) in outputs.iter().zip(outs) {
            let (dtype, shape) = signature.expected(output, args)?;
            if out.dtype != dtype || out.shape != shape {
                return call.reject(format!(
                    "{} must be {dtype} {shape:?}, not {out}",
                    output.name
                ));
            }
        }
        call.check_aliasing()?;
        Ok(call)
    }

    fn check_kind(&self, param: &OpParam, value: &ArgValue) -> Result<(), FamilyError> {
        let matches = match value {
            ArgValue::None => param.default == Some(DefaultValue::Nothing),
            ArgValue::Tensor(_) => param.kind == OpParamKind::Tensor,
            ArgValue::Number(_) => param.kind == OpParamKind::Number,
            ArgValue::Integer(_) => param.kind == OpParamKind::Integer,
            ArgValue::Integers(all) => match param.kind {
                OpParamKind::Integers => true,
                OpParamKind::Pairs => all.len().is_multiple_of(2),
                _ => false,
            },
            ArgValue::Pair(_) => param.kind == OpParamKind::Pair,
            ArgValue::Text(_) => matches!(param.kind, OpParamKind::Text | OpParamKind::Type),
            ArgValue::Flag(_) => param.kind == OpParamKind::Flag,
        };
        if matches {
            return Ok(());
        }
        let expected = match param.kind {
            OpParamKind::Tensor => "a tensor",
            OpParamKind::Number => "a number",
            OpParamKind::Integer => "an integer",
            OpParamKind::Integers => "integers",
            OpParamKind::Pairs => "pairs of integers",
            OpParamKind::Pair => "two integers",
            OpParamKind::Text => "a string",
            OpParamKind::Type => "the name of an element type",
            OpParamKind::Flag => "a bool",
        };
        let actual = match value {
            ArgValue::None => "None".into(),
            ArgValue::Tensor(view) => format!("a tensor ({view})"),
            ArgValue::Number(x) => x.to_string(),
            ArgValue::Integer(n) => n.to_string(),
            ArgValue::Integers(all) => format!("{all:?}"),
            ArgValue::Pair(pair) => format!("{pair:?}"),
            ArgValue::Text(word) => format!("{word:?}"),
            ArgValue::Flag(yes) => yes.to_string(),
        };
        self.reject(format!("{} must be {expected}, not {actual}", param.name))
    }

    /// Rejects outputs that share bytes with an input or with each other.
    pub(crate) fn check_aliasing(&self) -> Result<(), FamilyError> {
        let tensor_arg = |(param, value): (&'a OpParam, &'a ArgValue)| match value {
            ArgValue::Tensor(view) => Some((param.name, view)),
            _ => None,
        };
        let signature = self.signature;
        for (i, (output, out)) in signature.outputs.iter().zip(self.outs).enumerate() {
            let inputs = signature
                .params
                .iter()
                .zip(self.args)
                .filter_map(tensor_arg);
            let earlier_outputs = signature
                .outputs
                .iter()
                .map(|o| o.name)
                .zip(self.outs)
                .take(i);
            for (other, view) in inputs.chain(earlier_outputs) {
                if out.address != 0 && overlap(out, view) {
                    return self.reject(format!(
                        "{} shares memory with {other}; an output must not overlap another tensor",
                        output.name
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns an error with the name of the op.
    pub fn reject<T>(&self, text: String) -> Result<T, FamilyError> {
        Err(FamilyError::Problem(format!(
            "{}: {text}",
            self.signature.name
        )))
    }

    /// Returns the error of a valid call that no kernel computes.
    pub fn unsupported<T>(&self, text: String) -> Result<T, FamilyError> {
        Err(FamilyError::Unsupported(format!(
            "{}: {text}",
            self.signature.name
        )))
    }

    /// Returns the error of a valid call with a tensor that no kernel addresses.
    pub fn unsupported_layout<T>(&self, text: String) -> Result<T, FamilyError> {
        Err(FamilyError::Layout(format!(
            "{}: {text}",
            self.signature.name
        )))
    }

    fn value(&self, name: &str) -> Option<&'a ArgValue> {
        self.signature.position(name).and_then(|i| self.args.get(i))
    }

    /// Returns a tensor that may be omitted.
    pub fn optional(&self, name: &str) -> Option<&'a TensorView> {
        match self.value(name) {
            Some(ArgValue::Tensor(view)) => Some(view),
            _ => None,
        }
    }

    /// Returns a tensor.
    pub fn tensor(&self, name: &str) -> Result<&'a TensorView, FamilyError> {
        match self.optional(name) {
            Some(view) => Ok(view),
            None => self.reject(format!("{name} must be a tensor, not None")),
        }
    }

    /// Returns a number.
    pub fn number(&self, name: &str) -> Result<f64, FamilyError> {
        match self.value(name) {
            Some(&ArgValue::Number(x)) => Ok(x),
            _ => self.reject(format!("{name} must be a number, not None")),
        }
    }

    /// Returns a number that may be omitted.
    pub fn optional_number(&self, name: &str) -> Option<f64> {
        match self.value(name) {
            Some(&ArgValue::Number(x)) => Some(x),
            _ => None,
        }
    }

    /// Returns an integer.
    pub fn integer(&self, name: &str) -> Result<i64, FamilyError> {
        match self.value(name) {
            Some(&ArgValue::Integer(n)) => Ok(n),
            _ => self.reject(format!("{name} must be an integer, not None")),
        }
    }

    /// Returns a list of integers.
    pub fn integers(&self, name: &str) -> Result<&'a [i64], FamilyError> {
        match self.value(name) {
            Some(ArgValue::Integers(all)) => Ok(all),
            _ => self.reject(format!("{name} must be integers, not None")),
        }
    }

    /// Returns two integers that may be omitted.
    pub fn optional_pair(&self, name: &str) -> Option<[i64; 2]> {
        match self.value(name) {
            Some(&ArgValue::Pair(pair)) => Some(pair),
            _ => None,
        }
    }

    /// Returns a string.
    pub fn text(&self, name: &str) -> Result<&'a str, FamilyError> {
        match self.value(name) {
            Some(ArgValue::Text(word)) => Ok(word),
            _ => self.reject(format!("{name} must be a string, not None")),
        }
    }

    /// Returns whether a flag is set.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.value(name), Some(ArgValue::Flag(true)))
    }

    /// Iterates over the tensor arguments in the order of the parameters.
    pub fn inputs(&self) -> impl Iterator<Item = &'a TensorView> {
        self.args.iter().filter_map(|value| match value {
            ArgValue::Tensor(view) => Some(view),
            _ => None,
        })
    }

    /// Returns whether all tensors are 16-byte aligned.
    pub fn is_16_byte_aligned(&self) -> bool {
        let mut all = self.inputs().chain(self.outs);
        all.all(TensorView::is_16_byte_aligned)
    }
}

/// Returns whether the address ranges of two tensors overlap.
fn overlap(a: &TensorView, b: &TensorView) -> bool {
    match (a.bytes(), b.bytes()) {
        (Some((a_start, a_end)), Some((b_start, b_end))) => a_start < b_end && b_start < a_end,
        _ => false,
    }
}
