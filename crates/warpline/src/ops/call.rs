//! Calls: an op and its arguments.

use super::all;
use crate::device::Device;
use crate::error::Error;
use warpline_kernels::AnyOp;
use warpline_kernels::op::{ArgValue, TensorView};
use warpline_kernels::{BufferBytes, FamilyError};

/// A call of an op. Parameters that are not set have their defaults.
#[derive(Clone, Debug)]
pub struct Call {
    pub(super) op: &'static AnyOp,
    /// The index of the op in [`all`].
    pub(super) index: usize,
    pub(super) args: Vec<ArgValue>,
    pub(super) outs: Vec<TensorView>,
    /// Whether every run must produce the same bits.
    pub(super) deterministic: bool,
}

impl Call {
    /// Returns a call of an op by name, without tensors.
    ///
    /// ```
    /// use warpline::ops::Call;
    /// let error = Call::new("softmin").unwrap_err();
    /// assert!(error.to_string().starts_with("unknown op \"softmin\"\nhelp: the ops are "));
    /// ```
    pub fn new(name: &str) -> Result<Self, Error> {
        let index = all().iter().position(|op| op.signature.name == name);
        let Some(index) = index else {
            return Err(Error::UnknownOp {
                name: name.to_owned(),
                known: all().iter().map(|op| op.signature.name).collect(),
            });
        };
        let default =
            |p: &warpline_kernels::op::OpParam| p.default.map_or(ArgValue::None, |d| d.value());
        let args = all()[index].signature.params.iter().map(default).collect();
        Ok(Self::with(index, args, Vec::new()))
    }

    /// Returns a call of the op at an index of [`all`], with all arguments in the order of the
    /// parameters.
    ///
    /// # Panics
    /// If the index is out of range.
    pub fn with(index: usize, args: Vec<ArgValue>, outs: Vec<TensorView>) -> Self {
        Self {
            op: &all()[index],
            index,
            args,
            outs,
            deterministic: true,
        }
    }

    /// Sets whether every run must produce the same bits; true by default. If false,
    /// [tuned](mod@crate::tune) configs may be nondeterministic.
    pub fn deterministic(mut self, is_required: bool) -> Self {
        self.deterministic = is_required;
        self
    }

    /// Sets a tensor parameter.
    pub fn tensor(self, name: &str, view: TensorView) -> Result<Self, Error> {
        self.value(name, view)
    }

    /// Sets a parameter to a number, an integer, integers, a string or a tensor.
    pub fn value(mut self, name: &str, value: impl Into<ArgValue>) -> Result<Self, Error> {
        let signature = &self.op.signature;
        match signature.position(name) {
            Some(i) => {
                self.args[i] = value.into();
                Ok(self)
            }
            None => Err(Error::UnknownParameter {
                op: signature.name,
                name: name.to_owned(),
                known: signature.params.iter().map(|p| p.name).collect(),
            }),
        }
    }

    /// Adds the next output.
    pub fn out(mut self, view: TensorView) -> Self {
        self.outs.push(view);
        self
    }

    /// Rejects a call that breaks a rule of the op. A valid call passes even if no kernel supports it.
    ///
    /// ```
    /// use warpline::DType;
    /// use warpline::ops::{Call, TensorView};
    /// # fn main() -> Result<(), warpline::Error> {
    /// let columns = TensorView { strides: vec![1, 4], ..TensorView::dense(DType::F32, &[4, 8], 0) };
    /// let call = Call::new("softmax")?.tensor("x", columns)?.out(TensorView::dense(DType::F32, &[4, 8], 0));
    /// assert!(call.check().is_ok());
    /// assert!(call.value("dim", 2)?.check().is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn check(&self) -> Result<(), Error> {
        let target = Device::cpu().target();
        match self.op.workload(&self.args, &self.outs, &target) {
            Ok(_) | Err(FamilyError::Unsupported(_) | FamilyError::Layout(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns an error with the name of the op.
    pub(super) fn reject<T>(&self, text: String) -> Result<T, Error> {
        let op = self.op.signature.name;
        Err(FamilyError::Problem(format!("{op}: {text}")).into())
    }

    /// Returns the addresses of the plan's inputs: the tensors in the order of the parameters. A list
    /// of integers also occupies an input, but no kernel reads it.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.args.iter().filter_map(|value| match value {
            ArgValue::Tensor(view) => Some(view.address),
            ArgValue::Integers(_) => Some(0),
            _ => None,
        })
    }

    /// Returns the buffer sizes: the bytes that the shapes and strides of inputs and outputs span, and
    /// the workspace.
    pub(super) fn bytes(&self, workspace: u64) -> BufferBytes {
        let span = |view: &TensorView| {
            let end = view.bytes().map_or(0, |(_, end)| end);
            u64::try_from(end - i128::from(view.address)).unwrap_or(0)
        };
        let inputs = self.args.iter().filter_map(|value| match value {
            ArgValue::Tensor(view) => Some(Some(span(view))),
            ArgValue::Integers(_) => Some(None),
            _ => None,
        });
        BufferBytes {
            inputs: inputs.collect(),
            outputs: self.outs.iter().map(|view| Some(span(view))).collect(),
            workspace,
        }
    }

    /// Returns the tensors with their names, in the order of the parameters.
    pub(super) fn inputs(&self) -> impl Iterator<Item = (&'static str, &TensorView)> {
        let named = self.op.signature.params.iter().zip(&self.args);
        named.filter_map(|(param, value)| match value {
            ArgValue::Tensor(view) => Some((param.name, view)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_ir::DType;

    #[test]
    fn an_unknown_parameter_is_rejected_with_the_valid_names() {
        let call = Call::new("rms_norm").unwrap();
        let error = call.value("epsilon", 0.5).unwrap_err();
        assert_eq!(
            (error.code(), error.exit_code(), error.to_string().as_str()),
            (
                "unknown-parameter",
                2,
                "rms_norm has no parameter \"epsilon\"\nhelp: its parameters are x, weight, eps, batch_invariant"
            )
        );
    }

    #[test]
    fn unset_parameters_have_their_defaults() {
        let row = TensorView::dense(DType::F32, &[1, 4], 0);
        let call = Call::new("rms_norm")
            .unwrap()
            .tensor("x", row.clone())
            .unwrap();
        let defaults = [
            ArgValue::None,
            ArgValue::Number(1e-6),
            ArgValue::Flag(false),
        ];
        assert_eq!(call.args[1..], defaults);
        let inputs: Vec<_> = call.inputs().collect();
        assert_eq!(inputs, [("x", &row)]);
    }

    #[test]
    fn integers_occupy_an_input() {
        let at = |address| TensorView::dense(DType::F16, &[8], address);
        let call = Call::new("ms_deform_attn").unwrap();
        let call = call.value("spatial_shapes", vec![4, 4]).unwrap();
        let call = call.value("level_start_index", vec![0]).unwrap();
        let call = call.tensor("value", at(16)).unwrap();
        let call = call.tensor("attention_weights", at(48)).unwrap();
        let call = call.tensor("sampling_locations", at(32)).unwrap();
        let inputs: Vec<_> = call.addresses().collect();
        assert_eq!(inputs, [16, 0, 0, 32, 48]);
    }
}
