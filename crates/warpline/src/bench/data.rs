//! Tensors on the device, and what must come out.

use super::check::{Check, Expected};
use crate::compare::POISON;
use crate::error::Error;
use crate::estimate;
use std::sync::Arc;
use warpline_cuda::{Buffer, Context, CudaError, Stream};
use warpline_kernels::{AnyWork, Bound, HostTensor, TensorSpec};

const WHOLE: &str = "every element against float64";
const PERIODS: &str = "one period against float64, the others against it bit by bit, or against float64 where they differ";

/// The tensors of a problem on a device; all contenders of a heat share them.
pub(crate) struct Data {
    inputs: Vec<Buffer>,
    outputs: Vec<Buffer>,
    expected: Arc<[Expected]>,
    how: &'static str,
}

/// What is drawn on the host, and what it becomes on the device.
struct Drawn {
    /// Inputs of the problem or of its period.
    tensors: Vec<HostTensor>,
    /// Bytes of each input of the problem.
    bytes: Vec<usize>,
    expected: Vec<Expected>,
    how: &'static str,
}

impl Drawn {
    fn new(work: &dyn AnyWork, seed: u64) -> Result<Self, Error> {
        let outputs: Vec<usize> = work.outputs().iter().map(TensorSpec::bytes).collect();
        let period = work.period();
        let (drawn, how) = match &period {
            None => (work, WHOLE),
            Some(period) => (period.as_ref(), PERIODS),
        };
        let tensors = draw(drawn, seed)?;
        Ok(Self {
            bytes: work.inputs().iter().map(TensorSpec::bytes).collect(),
            expected: expected(drawn, &tensors, &outputs),
            tensors,
            how,
        })
    }
}

fn draw(work: &dyn AnyWork, seed: u64) -> Result<Vec<HostTensor>, Error> {
    estimate::fits_host(work)?;
    Ok(work.draw(seed))
}

/// What must come out of a problem that repeats this one.
fn expected(work: &dyn AnyWork, inputs: &[HostTensor], bytes: &[usize]) -> Vec<Expected> {
    let each = work.outputs().into_iter().zip(work.reference(inputs));
    each.zip(bytes)
        .map(|((period, reference), &bytes)| Expected {
            period,
            reference,
            bytes,
        })
        .collect()
}

impl Data {
    /// Draws the inputs of a problem, computes what must come out, and brings
    /// the inputs to the device, if that has the memory for them and for a
    /// workspace.
    pub(crate) fn new(
        work: &dyn AnyWork,
        seed: u64,
        workspace: u64,
        stream: &Stream,
    ) -> Result<Self, Error> {
        fits(stream.context(), work.cost().bytes as u64 + workspace)?;
        let drawn = Drawn::new(work, seed)?;
        let expected = drawn.expected.iter().cloned().collect();
        Self::of(&drawn, expected, stream)
    }

    /// The same tensors in several places, as many as there is ample memory
    /// for and at least one: whoever goes from one to the next meets no
    /// address twice in a row.
    pub(crate) fn places(
        work: &dyn AnyWork,
        seed: u64,
        workspace: u64,
        most: u64,
        stream: &Stream,
    ) -> Result<Vec<Self>, Error> {
        let bytes = work.cost().bytes as u64;
        fits(stream.context(), bytes + workspace)?;
        let (free, _) = stream.context().memory()?;
        let ample = (free.saturating_sub(workspace) / 2) / bytes.max(1);
        let drawn = Drawn::new(work, seed)?;
        let expected: Arc<[Expected]> = drawn.expected.iter().cloned().collect();
        (0..ample.clamp(1, most))
            .map(|_| Self::of(&drawn, expected.clone(), stream))
            .collect()
    }

    fn of(drawn: &Drawn, expected: Arc<[Expected]>, stream: &Stream) -> Result<Self, Error> {
        let outputs = drawn.expected.iter().map(|e| e.bytes);
        let inputs = drawn.tensors.iter().zip(&drawn.bytes);
        Ok(Self {
            inputs: inputs
                .map(|(t, &bytes)| repeated(&t.data, bytes, stream))
                .collect::<Result<_, _>>()?,
            outputs: outputs
                .map(|bytes| Buffer::alloc(stream.context(), bytes))
                .collect::<Result<_, _>>()?,
            expected,
            how: drawn.how,
        })
    }

    /// The addresses, for a plan with a workspace of its own.
    pub(crate) fn bound(&self, workspace: &Buffer) -> Bound {
        Bound {
            inputs: self.inputs.iter().map(Buffer::address).collect(),
            outputs: self.outputs.iter().map(Buffer::address).collect(),
            workspace: workspace.address(),
        }
    }

    /// Makes every output wrong until it is written.
    pub(crate) fn poison(&mut self, stream: &Stream) -> Result<(), Error> {
        for output in &mut self.outputs {
            output.fill(POISON, stream)?;
        }
        Ok(())
    }

    /// Compares what is in the outputs with what must come out.
    pub(crate) fn check(&self, stream: &Stream) -> Result<Check, Error> {
        let mut found = Vec::new();
        for (expected, output) in self.expected.iter().zip(&self.outputs) {
            found.push(expected.judge(|at, bytes| Ok(output.read(at, bytes, stream)?))?);
        }
        Ok(Check::all(self.how, found))
    }
}

/// A buffer of `bytes` bytes that holds `period` over and over.
fn repeated(period: &[u8], bytes: usize, stream: &Stream) -> Result<Buffer, Error> {
    let mut buffer = Buffer::alloc(stream.context(), bytes)?;
    for at in (0..bytes).step_by(period.len().max(1)) {
        buffer.write(at, &period[..period.len().min(bytes - at)], stream)?;
    }
    Ok(buffer)
}

/// Refuses what the device has no memory for before anything is allocated.
fn fits(context: &Context, needed: u64) -> Result<(), Error> {
    let (free, total) = context.memory()?;
    if needed <= free {
        return Ok(());
    }
    Err(Error::Cuda(CudaError::OutOfMemory {
        ordinal: context.device().ordinal,
        asked: needed,
        free,
        total,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_ir::Target;
    use warpline_kernels::Work;
    use warpline_kernels::vector_add::{Choice, Float, Problem, VectorAdd};

    fn drawn(n: u64) -> Drawn {
        let dtype = Float::F32;
        let problem = Problem { n, dtype };
        let work = Work::<VectorAdd>::new(problem, &Choice::default(), &Target::SM_90A);
        Drawn::new(&work.unwrap(), 3).unwrap()
    }

    #[test]
    fn a_small_problem_is_drawn_and_compared_whole() {
        let small = drawn(1000);
        assert_eq!(
            (small.bytes.as_slice(), small.how),
            (&[4000, 4000][..], WHOLE)
        );
        assert_eq!(small.expected[0].reference.len(), 1000);
        assert_eq!(small.expected[0].bytes, small.expected[0].period.bytes());
    }

    #[test]
    fn of_a_large_problem_only_a_period_is_drawn() {
        let n = 5 << 21;
        let large = drawn(n);
        assert_eq!(large.how, PERIODS);
        assert_eq!(large.bytes, [4 * n as usize; 2]);
        assert!(large.tensors.iter().all(|t| t.data.len() < 4 * n as usize));
        let expected = &large.expected[0];
        assert_eq!(expected.bytes, 4 * n as usize);
        assert_eq!(expected.reference.len(), expected.period.elements());
    }
}
