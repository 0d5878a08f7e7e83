//! Runs of calls on the CPU executor.

use super::call::Call;
use crate::cpu;
use crate::device::Device;
use crate::error::Error;
use crate::estimate;
use crate::prepare::prepare;
use crate::run::{Job, RunOptions};
use warpline_ir::DType;
use warpline_kernels::op::{ArgValue, TensorView};
use warpline_kernels::{AnyWorkload, HostTensor, TensorSpec};

impl Call {
    /// Runs the op on the CPU executor. `inputs` has the dense little-endian bytes of every input
    /// tensor, in the order of the parameters. Returns the bytes of every output.
    ///
    /// Rejects a call that takes longer than [`estimate::DEFAULT_SIMULATION_LIMIT_S`], unless
    /// `options.simulate` is set.
    pub fn simulate(&self, inputs: &[&[u8]], options: &RunOptions) -> Result<Vec<Vec<u8>>, Error> {
        let target = Device::cpu().target();
        let workload = self.simulated_workload(options)?;
        let inputs = self.plan_inputs(self.host_tensors(inputs)?);
        for (output, view) in self.op.signature.outputs.iter().zip(&self.outs) {
            self.check_dense(output.name, view)?;
        }
        let Some(work) = workload else {
            return Ok(vec![Vec::new(); self.outs.len()]);
        };
        work.check_values(&inputs)?;
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

    /// Rejects a call that no kernel supports, or that exceeds the simulation time limit unless
    /// `options.simulate` is set. Tensors need not be dense.
    pub fn check_simulation(&self, options: &RunOptions) -> Result<(), Error> {
        self.simulated_workload(options).map(|_| ())
    }

    fn simulated_workload(
        &self,
        options: &RunOptions,
    ) -> Result<Option<Box<dyn AnyWorkload>>, Error> {
        let target = Device::cpu().target();
        let workload = self.op.workload(&self.args, &self.outs, &target)?;
        if let Some(work) = &workload {
            estimate::check_simulation_time(work.as_ref(), options)?;
            estimate::check_host_memory(work.as_ref())?;
        }
        Ok(workload)
    }

    /// Returns the plan's inputs: the tensors, and lists of integers as i64 tensors.
    fn plan_inputs(&self, tensors: Vec<HostTensor>) -> Vec<HostTensor> {
        let mut tensors = tensors.into_iter();
        let named = self.op.signature.params.iter().zip(&self.args);
        named
            .filter_map(|(param, value)| match value {
                ArgValue::Tensor(_) => tensors.next(),
                ArgValue::Integers(all) => Some(HostTensor {
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
        let expected = self.inputs().count();
        if expected != inputs.len() {
            return self.reject(format!(
                "the call has {expected} input tensors, but bytes for {} were passed",
                inputs.len()
            ));
        }
        let tensor = |((name, view), bytes): ((&'static str, &TensorView), &&[u8])| {
            self.check_dense(name, view)?;
            let spec = TensorSpec {
                name,
                dtype: view.dtype,
                shape: view.shape.iter().map(|&n| n as usize).collect(),
            };
            if spec.bytes() != bytes.len() {
                return self.reject(format!(
                    "{name} is {view}, which needs {} bytes, not {}",
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

    fn check_dense(&self, name: &str, view: &TensorView) -> Result<(), Error> {
        let address = view.address;
        if *view
            == (TensorView {
                address,
                ..view.packed()
            })
        {
            return Ok(());
        }
        self.reject(format!(
            "{name} has strides {:?} and shape {:?}; the CPU executor needs dense tensors",
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
    fn an_op_maps_input_bytes_to_output_bytes() {
        let call = Call::new("add").unwrap();
        let call = call.tensor("a", view(&[2, 3])).unwrap();
        let call = call.tensor("b", view(&[2, 3])).unwrap().out(view(&[2, 3]));
        let (a, b) = (bytes(&[1., 2., 3., 4., 5., 6.]), bytes(&[0.5; 6]));
        let sum = call.simulate(&[&a, &b], &RunOptions::default()).unwrap();
        assert_eq!(sum, [bytes(&[1.5, 2.5, 3.5, 4.5, 5.5, 6.5])]);

        let short = call.simulate(&[&a, &b[4..]], &RunOptions::default());
        assert_eq!(
            short.unwrap_err().to_string(),
            "add: b is f32 [2, 3], which needs 24 bytes, not 20"
        );
        let few = call.simulate(&[&a], &RunOptions::default()).unwrap_err();
        assert_eq!(
            few.to_string(),
            "add: the call has 2 input tensors, but bytes for 1 were passed"
        );
    }

    #[test]
    fn a_long_simulation_is_rejected() {
        let large = view(&[1 << 15, 1 << 15]);
        let call = Call::new("softmax").unwrap();
        let call = call.tensor("x", large.clone()).unwrap().out(large);
        let error = call.simulate(&[], &RunOptions::default()).unwrap_err();
        assert_eq!((error.code(), error.exit_code()), ("too-long", 2));
    }

    #[test]
    fn empty_inputs_give_empty_outputs() {
        let call = Call::new("softmax").unwrap();
        let call = call.tensor("x", view(&[0, 7])).unwrap().out(view(&[0, 7]));
        let empty = call.simulate(&[&[]], &RunOptions::default()).unwrap();
        assert_eq!(empty, [Vec::<u8>::new()]);
    }
}
