//! A call on the simulator.

use super::call::Call;
use crate::cpu;
use crate::device::Device;
use crate::error::Error;
use crate::estimate;
use crate::prepare::prepare;
use crate::run::{Job, RunOptions};
use warpline_ir::DType;
use warpline_kernels::op::{TensorView, Value};
use warpline_kernels::{AnyWork, HostTensor, TensorSpec};

impl Call {
    /// Runs the op on the CPU simulator: the bytes of every input that is
    /// given, in the order of the parameters, without gaps and little-endian;
    /// gives the bytes of every output.
    ///
    /// Work that would take longer than [`estimate::UNASKED_SECONDS`] is
    /// refused unless `options.simulate` is set.
    pub fn simulate(&self, inputs: &[&[u8]], options: &RunOptions) -> Result<Vec<Vec<u8>>, Error> {
        let target = Device::cpu().target();
        let solved = self.simulated(options)?;
        let inputs = self.plan_inputs(self.host_tensors(inputs)?);
        for (output, view) in self.op.signature.outputs.iter().zip(&self.outs) {
            self.is_dense(output.name, view)?;
        }
        let Some(work) = solved else {
            return Ok(vec![Vec::new(); self.outs.len()]);
        };
        let prepared = prepare(work.as_ref(), &target)?;
        let job = Job {
            prepared: &prepared,
            inputs: &inputs,
            outputs: &work.outputs(),
            options,
        };
        let done = cpu::run(&job)?;
        Ok(done.outputs.into_iter().map(|out| out.bytes).collect())
    }

    /// Refuses a call that no kernel serves, and one that would take the
    /// simulator long, unless that was asked for. Tensors need not be dense.
    pub fn can_simulate(&self, options: &RunOptions) -> Result<(), Error> {
        self.simulated(options).map(|_| ())
    }

    fn simulated(&self, options: &RunOptions) -> Result<Option<Box<dyn AnyWork>>, Error> {
        let target = Device::cpu().target();
        let solved = self.op.solve(&self.args, &self.outs, &target)?;
        if let Some(work) = &solved {
            estimate::affordable(work.as_ref(), options)?;
            estimate::fits_host(work.as_ref())?;
        }
        Ok(solved)
    }

    /// What the plan takes: the tensors, and integers at their place.
    fn plan_inputs(&self, tensors: Vec<HostTensor>) -> Vec<HostTensor> {
        let mut tensors = tensors.into_iter();
        let named = self.op.signature.params.iter().zip(&self.args);
        named
            .filter_map(|(param, value)| match value {
                Value::Tensor(_) => tensors.next(),
                Value::Integers(all) => Some(HostTensor {
                    spec: TensorSpec {
                        name: param.name,
                        dtype: DType::I64,
                        shape: vec![all.len()],
                    },
                    data: all.iter().flat_map(|n| n.to_le_bytes()).collect(),
                }),
                _ => None,
            })
            .collect()
    }

    fn host_tensors(&self, inputs: &[&[u8]]) -> Result<Vec<HostTensor>, Error> {
        let given = self.inputs().count();
        if given != inputs.len() {
            return self.refuse(format!("{given} inputs have bytes, not {}", inputs.len()));
        }
        let tensor = |((name, view), bytes): ((&'static str, &TensorView), &&[u8])| {
            self.is_dense(name, view)?;
            let spec = TensorSpec {
                name,
                dtype: view.dtype,
                shape: view.shape.iter().map(|&n| n as usize).collect(),
            };
            if spec.bytes() != bytes.len() {
                return self.refuse(format!(
                    "{name} is {view}, which is {} bytes, not {}",
                    spec.bytes(),
                    bytes.len()
                ));
            }
            Ok(HostTensor {
                spec,
                data: bytes.to_vec(),
            })
        };
        self.inputs().zip(inputs).map(tensor).collect()
    }

    fn is_dense(&self, name: &str, view: &TensorView) -> Result<(), Error> {
        let address = view.address;
        if *view
            == (TensorView {
                address,
                ..view.packed()
            })
        {
            return Ok(());
        }
        self.refuse(format!(
            "the simulator takes dense tensors, and {name} has strides {:?} over shape {:?}",
            view.strides, view.shape
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    fn view(shape: &[u64]) -> TensorView {
        TensorView::dense(DType::F32, shape, 0)
    }

    #[test]
    fn an_op_takes_bytes_and_gives_bytes() {
        let call = Call::new("add").unwrap();
        let call = call.tensor("a", view(&[2, 3])).unwrap();
        let call = call.tensor("b", view(&[2, 3])).unwrap().out(view(&[2, 3]));
        let (a, b) = (bytes(&[1., 2., 3., 4., 5., 6.]), bytes(&[0.5; 6]));
        let sum = call.simulate(&[&a, &b], &RunOptions::default()).unwrap();
        assert_eq!(sum, [bytes(&[1.5, 2.5, 3.5, 4.5, 5.5, 6.5])]);

        let short = call.simulate(&[&a, &b[4..]], &RunOptions::default());
        assert_eq!(
            short.unwrap_err().to_string(),
            "add: b is f32 [2, 3], which is 24 bytes, not 20"
        );
        let few = call.simulate(&[&a], &RunOptions::default()).unwrap_err();
        assert_eq!(few.to_string(), "add: 2 inputs have bytes, not 1");
    }

    #[test]
    fn what_would_take_long_must_be_asked_for() {
        let large = view(&[1 << 15, 1 << 15]);
        let call = Call::new("softmax").unwrap();
        let call = call.tensor("x", large.clone()).unwrap().out(large);
        let error = call.simulate(&[], &RunOptions::default()).unwrap_err();
        assert_eq!((error.code(), error.exit_code()), ("too-long", 2));
    }

    #[test]
    fn empty_tensors_give_empty_tensors() {
        let call = Call::new("softmax").unwrap();
        let call = call.tensor("x", view(&[0, 7])).unwrap().out(view(&[0, 7]));
        let empty = call.simulate(&[&[]], &RunOptions::default()).unwrap();
        assert_eq!(empty, [Vec::<u8>::new()]);
    }
}
