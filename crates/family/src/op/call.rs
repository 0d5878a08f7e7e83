//! The values of one call, by name.

use super::signature::{Kind, Param, Signature};
use super::value::Value;
use super::view::TensorView;
use crate::error::FamilyError;

/// One call of an op, whose outputs have the types and shapes that were declared.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub(crate) signature: &'a Signature,
    /// The arguments, in the order of the parameters.
    pub args: &'a [Value],
    /// The outputs.
    pub outs: &'a [TensorView],
}

impl<'a> Call<'a> {
    /// Refuses values that the signature does not have.
    pub(crate) fn new(
        signature: &'a Signature,
        args: &'a [Value],
        outs: &'a [TensorView],
    ) -> Result<Self, FamilyError> {
        let call = Self {
            signature,
            args,
            outs,
        };
        let (params, outputs) = (&signature.params, &signature.outputs);
        if args.len() != params.len() || outs.len() != outputs.len() {
            return call.refuse(format!(
                "{} arguments and {} outputs are needed, not {} and {}",
                params.len(),
                outputs.len(),
                args.len(),
                outs.len()
            ));
        }
        for (param, value) in params.iter().zip(args) {
            call.fits(param, value)?;
        }
        for view in call.inputs().chain(outs) {
            if view.strides.len() != view.shape.len() {
                return call.refuse(format!(
                    "a tensor has as many strides as dimensions, and shape {:?} comes with strides {:?}",
                    view.shape, view.strides
                ));
            }
        }
        for (output, out) in outputs.iter().zip(outs) {
            let (dtype, shape) = signature.expected(output, args)?;
            if out.dtype != dtype || out.shape != shape {
                return call.refuse(format!(
                    "{} is {dtype} {shape:?}, and what was given for it is {out}",
                    output.name
                ));
            }
        }
        call.apart()?;
        Ok(call)
    }

    fn fits(&self, param: &Param, value: &Value) -> Result<(), FamilyError> {
        let fits = match value {
            Value::None => {
                param.default.is_some() && matches!(param.kind, Kind::Tensor | Kind::Type)
            }
            Value::Tensor(_) => param.kind == Kind::Tensor,
            Value::Number(_) => param.kind == Kind::Number,
            Value::Integer(_) => param.kind == Kind::Integer,
            Value::Integers(all) => match param.kind {
                Kind::Integers => true,
                Kind::Pairs => all.len().is_multiple_of(2),
                _ => false,
            },
            Value::Text(_) => matches!(param.kind, Kind::Text | Kind::Type),
            Value::Flag(_) => param.kind == Kind::Flag,
        };
        if fits {
            return Ok(());
        }
        let wanted = match param.kind {
            Kind::Tensor => "a tensor",
            Kind::Number => "a number",
            Kind::Integer => "an integer",
            Kind::Integers => "integers",
            Kind::Pairs => "pairs of integers",
            Kind::Text => "a word",
            Kind::Type => "the name of an element type",
            Kind::Flag => "yes or no",
        };
        let given = match value {
            Value::None => "nothing".into(),
            Value::Tensor(view) => format!("a tensor ({view})"),
            Value::Number(x) => x.to_string(),
            Value::Integer(n) => n.to_string(),
            Value::Integers(all) => format!("{all:?}"),
            Value::Text(word) => format!("{word:?}"),
            Value::Flag(yes) => yes.to_string(),
        };
        self.refuse(format!("{} is {wanted}, not {given}", param.name))
    }

    /// Refuses outputs that share bytes with an input or with each other.
    pub(crate) fn apart(&self) -> Result<(), FamilyError> {
        let named = |(param, value): (&'a Param, &'a Value)| match value {
            Value::Tensor(view) => Some((param.name, view)),
            _ => None,
        };
        let signature = self.signature;
        for (i, (output, out)) in signature.outputs.iter().zip(self.outs).enumerate() {
            let inputs = signature.params.iter().zip(self.args).filter_map(named);
            let before = signature
                .outputs
                .iter()
                .map(|o| o.name)
                .zip(self.outs)
                .take(i);
            for (other, view) in inputs.chain(before) {
                if out.address != 0 && meet(out, view) {
                    return self.refuse(format!(
                        "{} shares memory with {other}, and an output must lie apart",
                        output.name
                    ));
                }
            }
        }
        Ok(())
    }

    /// A sentence that names the op.
    pub fn refuse<T>(&self, text: String) -> Result<T, FamilyError> {
        Err(FamilyError::Problem(format!(
            "{}: {text}",
            self.signature.name
        )))
    }

    fn value(&self, name: &str) -> Option<&'a Value> {
        self.signature.position(name).and_then(|i| self.args.get(i))
    }

    /// A tensor that may be left out.
    pub fn optional(&self, name: &str) -> Option<&'a TensorView> {
        match self.value(name) {
            Some(Value::Tensor(view)) => Some(view),
            _ => None,
        }
    }

    /// A tensor.
    pub fn tensor(&self, name: &str) -> Result<&'a TensorView, FamilyError> {
        match self.optional(name) {
            Some(view) => Ok(view),
            None => self.refuse(format!("{name} is a tensor, and none was given")),
        }
    }

    /// A number.
    pub fn number(&self, name: &str) -> Result<f64, FamilyError> {
        match self.value(name) {
            Some(&Value::Number(x)) => Ok(x),
            _ => self.refuse(format!("{name} is a number, and none was given")),
        }
    }

    /// An integer.
    pub fn integer(&self, name: &str) -> Result<i64, FamilyError> {
        match self.value(name) {
            Some(&Value::Integer(n)) => Ok(n),
            _ => self.refuse(format!("{name} is an integer, and none was given")),
        }
    }

    /// Integers.
    pub fn integers(&self, name: &str) -> Result<&'a [i64], FamilyError> {
        match self.value(name) {
            Some(Value::Integers(all)) => Ok(all),
            _ => self.refuse(format!("{name} is integers, and none were given")),
        }
    }

    /// A word.
    pub fn text(&self, name: &str) -> Result<&'a str, FamilyError> {
        match self.value(name) {
            Some(Value::Text(word)) => Ok(word),
            _ => self.refuse(format!("{name} is a word, and none was given")),
        }
    }

    /// Is something asked for?
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.value(name), Some(Value::Flag(true)))
    }

    /// The tensors that are given, in the order of the parameters.
    pub fn inputs(&self) -> impl Iterator<Item = &'a TensorView> {
        self.args.iter().filter_map(|value| match value {
            Value::Tensor(view) => Some(view),
            _ => None,
        })
    }

    /// Do all tensors start on 16 bytes?
    pub fn on_16_bytes(&self) -> bool {
        let mut all = self.inputs().chain(self.outs);
        all.all(TensorView::on_16_bytes)
    }
}

/// Do two tensors lie in the same memory?
fn meet(a: &TensorView, b: &TensorView) -> bool {
    match (a.bytes(), b.bytes()) {
        (Some((from, to)), Some((low, high))) => from < high && low < to,
        _ => false,
    }
}
