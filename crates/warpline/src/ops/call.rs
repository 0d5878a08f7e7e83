//! An op and its arguments.

use super::all;
use crate::error::Error;
use warpline_kernels::AnyOp;
use warpline_kernels::op::{TensorView, Value};
use warpline_kernels::{BufferBytes, FamilyError};

/// A call of an op: what is not given has its default.
#[derive(Clone, Debug)]
pub struct Call {
    pub(super) op: &'static AnyOp,
    /// Which op it is.
    pub(super) index: usize,
    pub(super) args: Vec<Value>,
    pub(super) outs: Vec<TensorView>,
    /// Must every run give the same bits?
    pub(super) deterministic: bool,
}

impl Call {
    /// A call of the op of that name, with no tensors yet.
    ///
    /// ```
    /// use warpline::ops::Call;
    /// let error = Call::new("softmin").unwrap_err();
    /// assert!(error.to_string().starts_with("there is no op \"softmin\"; the ops are "));
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
            |p: &warpline_kernels::op::Param| p.default.map_or(Value::None, |d| d.value());
        let args = all()[index].signature.params.iter().map(default).collect();
        Ok(Self::with(index, args, Vec::new()))
    }

    /// A call of the op at that place of [`all`], with every argument in the
    /// order of the parameters.
    ///
    /// # Panics
    /// Where there is no such op.
    pub fn with(index: usize, args: Vec<Value>, outs: Vec<TensorView>) -> Self {
        Self {
            op: &all()[index],
            index,
            args,
            outs,
            deterministic: true,
        }
    }

    /// May bits differ from run to run? They are the same unless this allows
    /// what is [tuned](mod@crate::tune) to differ.
    pub fn deterministic(mut self, must: bool) -> Self {
        self.deterministic = must;
        self
    }

    /// With a tensor for a parameter.
    pub fn tensor(self, name: &str, view: TensorView) -> Result<Self, Error> {
        self.value(name, view)
    }

    /// With a number, an integer, integers, a word or a tensor for a parameter.
    pub fn value(mut self, name: &str, value: impl Into<Value>) -> Result<Self, Error> {
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

    /// With the next output.
    pub fn out(mut self, view: TensorView) -> Self {
        self.outs.push(view);
        self
    }

    /// A sentence that names the op.
    pub(super) fn refuse<T>(&self, text: String) -> Result<T, Error> {
        let op = self.op.signature.name;
        Err(FamilyError::Problem(format!("{op}: {text}")).into())
    }

    /// Where the plan's inputs are: the tensors that are given, in the order of
    /// the parameters. Integers have a place among them, and no kernel reads it.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.args.iter().filter_map(|value| match value {
            Value::Tensor(view) => Some(view.address),
            Value::Integers(_) => Some(0),
            _ => None,
        })
    }

    /// The bytes behind [`addresses`](Self::addresses) and those of the outputs, as far as
    /// shapes and strides reach, in a workspace of so many.
    pub(super) fn bytes(&self, workspace: u64) -> BufferBytes {
        let reach = |view: &TensorView| {
            // A view without elements reaches nothing.
            let end = view.bytes().map_or(0, |(_, end)| end);
            u64::try_from(end - i128::from(view.address)).unwrap_or(0)
        };
        let inputs = self.args.iter().filter_map(|value| match value {
            Value::Tensor(view) => Some(Some(reach(view))),
            Value::Integers(_) => Some(None),
            _ => None,
        });
        BufferBytes {
            inputs: inputs.collect(),
            outputs: self.outs.iter().map(|view| Some(reach(view))).collect(),
            workspace,
        }
    }

    /// The tensors that are given, in the order of the parameters.
    pub(super) fn inputs(&self) -> impl Iterator<Item = (&'static str, &TensorView)> {
        let named = self.op.signature.params.iter().zip(&self.args);
        named.filter_map(|(param, value)| match value {
            Value::Tensor(view) => Some((param.name, view)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_ir::DType;

    #[test]
    fn a_name_that_is_none_is_refused_with_those_that_are() {
        let call = Call::new("rms_norm").unwrap();
        let error = call.value("epsilon", 0.5).unwrap_err();
        assert_eq!(
            (error.code(), error.exit_code(), error.to_string().as_str()),
            (
                "unknown-parameter",
                2,
                "rms_norm has no parameter \"epsilon\"; it takes x, weight, eps"
            )
        );
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let row = TensorView::dense(DType::F32, &[1, 4], 0);
        let call = Call::new("rms_norm")
            .unwrap()
            .tensor("x", row.clone())
            .unwrap();
        assert_eq!(call.args[1..], [Value::None, Value::Number(1e-6)]);
        let inputs: Vec<_> = call.inputs().collect();
        assert_eq!(inputs, [("x", &row)]);
    }

    #[test]
    fn integers_have_a_place_among_the_inputs() {
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
