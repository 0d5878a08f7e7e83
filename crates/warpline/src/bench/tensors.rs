//! Tensors on the device, and the expected outputs.

use super::check::{Check, ExpectedOutput};
use crate::compare::POISON;
use crate::error::Error;
use crate::estimate;
use std::sync::Arc;
use warpline_cuda::{Context, CudaError, DeviceBuffer, Stream};
use warpline_kernels::{AnyWorkload, BufferAddresses, HostTensor, TensorSpec};

const WHOLE: &str = "every element against float64";
const PERIODS: &str = "one period against float64; other periods bitwise against the first, and against float64 if they differ";

/// The tensors of a problem on a device. All candidates of a group share them.
pub(crate) struct BenchTensors {
    inputs: Vec<DeviceBuffer>,
    outputs: Vec<DeviceBuffer>,
    expected: Arc<[ExpectedOutput]>,
    method: &'static str,
}

/// Host inputs, and the expected outputs on the device.
struct HostData {
    /// The inputs of the problem or of its period.
    tensors: Vec<HostTensor>,
    /// The size of each input of the problem in bytes.
    bytes: Vec<usize>,
    expected: Vec<ExpectedOutput>,
    method: &'static str,
}

impl HostData {
    fn new(work: &dyn AnyWorkload, seed: u64) -> Result<Self, Error> {
        let outputs: Vec<usize> = work.outputs().iter().map(TensorSpec::bytes).collect();
        let period = work.period();
        let (drawn, method) = match &period {
            None => (work, WHOLE),
            Some(period) => (period.as_ref(), PERIODS),
        };
        let tensors = draw(drawn, seed)?;
        Ok(Self {
            bytes: work.inputs().iter().map(TensorSpec::bytes).collect(),
            expected: expected(drawn, &tensors, &outputs),
            tensors,
            method,
        })
    }
}

fn draw(work: &dyn AnyWorkload, seed: u64) -> Result<Vec<HostTensor>, Error> {
    estimate::check_host_memory(work)?;
    Ok(work.draw(seed))
}

/// Returns the expected outputs of a problem that repeats this one.
fn expected(work: &dyn AnyWorkload, inputs: &[HostTensor], bytes: &[usize]) -> Vec<ExpectedOutput> {
    let outputs = work.outputs().into_iter().zip(work.reference(inputs));
    outputs
        .zip(bytes)
        .map(|((period, reference), &bytes)| ExpectedOutput {
            period,
            reference,
            bytes,
        })
        .collect()
}

impl BenchTensors {
    /// Draws the inputs of a problem, computes the expected outputs, and copies the inputs to the
    /// device. Returns an error if the device has no memory for them and for a workspace.
    pub(crate) fn new(
        work: &dyn AnyWorkload,
        seed: u64,
        workspace: u64,
        stream: &Stream,
    ) -> Result<Self, Error> {
        check_device_memory(stream.context(), work.cost().bytes as u64 + workspace)?;
        let drawn = HostData::new(work, seed)?;
        let expected = drawn.expected.iter().cloned().collect();
        Self::from_host(&drawn, expected, stream)
    }

    /// Returns up to `max_sets` copies of the tensors, limited to half of the free memory but at
    /// least one. Launches that rotate through the copies never use an address twice in a row.
    pub(crate) fn sets(
        work: &dyn AnyWorkload,
        seed: u64,
        workspace: u64,
        max_sets: u64,
        stream: &Stream,
    ) -> Result<Vec<Self>, Error> {
        let bytes = work.cost().bytes as u64;
        check_device_memory(stream.context(), bytes + workspace)?;
        let (free, _) = stream.context().memory()?;
        let fitting = (free.saturating_sub(workspace) / 2) / bytes.max(1);
        let drawn = HostData::new(work, seed)?;
        let expected: Arc<[ExpectedOutput]> = drawn.expected.iter().cloned().collect();
        (0..fitting.clamp(1, max_sets))
            .map(|_| Self::from_host(&drawn, expected.clone(), stream))
            .collect()
    }

    fn from_host(
        drawn: &HostData,
        expected: Arc<[ExpectedOutput]>,
        stream: &Stream,
    ) -> Result<Self, Error> {
        let outputs = drawn.expected.iter().map(|e| e.bytes);
        let inputs = drawn.tensors.iter().zip(&drawn.bytes);
        Ok(Self {
            inputs: inputs
                .map(|(t, &bytes)| repeated(&t.data, bytes, stream))
                .collect::<Result<_, _>>()?,
            outputs: outputs
                .map(|bytes| DeviceBuffer::alloc(stream.context(), bytes))
                .collect::<Result<_, _>>()?,
            expected,
            method: drawn.method,
        })
    }

    /// Returns the buffer addresses for a plan with this workspace.
    pub(crate) fn addresses(&self, workspace: &DeviceBuffer) -> BufferAddresses {
        BufferAddresses {
            inputs: self.inputs.iter().map(DeviceBuffer::address).collect(),
            outputs: self.outputs.iter().map(DeviceBuffer::address).collect(),
            workspace: workspace.address(),
        }
    }

    /// Fills every output with poison, so that unwritten elements fail the comparison.
    pub(crate) fn poison(&mut self, stream: &Stream) -> Result<(), Error> {
        for output in &mut self.outputs {
            output.fill(POISON, stream)?;
        }
        Ok(())
    }

    /// Compares the outputs with the expected values.
    pub(crate) fn check(&self, stream: &Stream) -> Result<Check, Error> {
        let mut found = Vec::new();
        for (expected, output) in self.expected.iter().zip(&self.outputs) {
            found.push(expected.check(|offset, bytes| Ok(output.read(offset, bytes, stream)?))?);
        }
        Ok(Check::sum(self.method, found))
    }
}

/// Returns a buffer of `bytes` bytes that repeats `period`.
fn repeated(period: &[u8], bytes: usize, stream: &Stream) -> Result<DeviceBuffer, Error> {
    let mut buffer = DeviceBuffer::alloc(stream.context(), bytes)?;
    for offset in (0..bytes).step_by(period.len().max(1)) {
        let chunk = &period[..period.len().min(bytes - offset)];
        buffer.write(offset, chunk, stream)?;
    }
    Ok(buffer)
}

/// Returns an error before anything is allocated if the device has less free memory than needed.
fn check_device_memory(context: &Context, needed: u64) -> Result<(), Error> {
    let (free, total) = context.memory()?;
    if needed <= free {
        return Ok(());
    }
    Err(Error::Cuda(CudaError::OutOfMemory {
        ordinal: context.device().ordinal,
        requested: needed,
        free,
        total,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_ir::Target;
    use warpline_kernels::Workload;
    use warpline_kernels::vector_add::{Choice, FloatType, Problem, VectorAdd};

    fn drawn(n: u64) -> HostData {
        let dtype = FloatType::F32;
        let problem = Problem { n, dtype };
        let work = Workload::<VectorAdd>::new(problem, &Choice::default(), &Target::SM_90A);
        HostData::new(&work.unwrap(), 3).unwrap()
    }

    #[test]
    fn a_small_problem_is_drawn_and_compared_whole() {
        let small = drawn(1000);
        assert_eq!(
            (small.bytes.as_slice(), small.method),
            (&[4000, 4000][..], WHOLE)
        );
        assert_eq!(small.expected[0].reference.len(), 1000);
        assert_eq!(small.expected[0].bytes, small.expected[0].period.bytes());
    }

    #[test]
    fn a_large_problem_draws_only_a_period() {
        let n = 5 << 21;
        let large = drawn(n);
        assert_eq!(large.method, PERIODS);
        assert_eq!(large.bytes, [4 * n as usize; 2]);
        assert!(large.tensors.iter().all(|t| t.data.len() < 4 * n as usize));
        let expected = &large.expected[0];
        assert_eq!(expected.bytes, 4 * n as usize);
        assert_eq!(expected.reference.len(), expected.period.elements());
    }
}
