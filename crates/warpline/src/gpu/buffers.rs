//! The tensors of a plan in device memory.

use crate::compare::{DeviceOutput, POISON};
use crate::error::Error;
use warpline_cuda::{Context, DeviceBuffer, Stream};
use warpline_kernels::{BufferAddresses, HostTensor, TensorSpec};

/// The inputs, outputs and workspace of a plan in device memory.
#[derive(Debug)]
pub(super) struct Buffers {
    inputs: Vec<DeviceBuffer>,
    outputs: Vec<DeviceBuffer>,
    workspace: DeviceBuffer,
}

impl Buffers {
    pub(super) fn new(
        context: &Context,
        inputs: &[HostTensor],
        outputs: &[TensorSpec],
        workspace: u64,
        stream: &Stream,
    ) -> Result<Self, Error> {
        Ok(Self {
            inputs: (inputs.iter())
                .map(|t| DeviceBuffer::from_host(context, &t.data, stream))
                .collect::<Result<_, _>>()?,
            outputs: (outputs.iter())
                .map(|s| DeviceBuffer::alloc(context, s.bytes()))
                .collect::<Result<_, _>>()?,
            workspace: DeviceBuffer::alloc(context, workspace as usize)?,
        })
    }

    /// Returns the device addresses.
    pub(super) fn addresses(&self) -> BufferAddresses {
        BufferAddresses {
            inputs: self.inputs.iter().map(DeviceBuffer::address).collect(),
            outputs: self.outputs.iter().map(DeviceBuffer::address).collect(),
            workspace: self.workspace.address(),
        }
    }

    /// Poisons the outputs and zeroes the workspace before the first launch.
    pub(super) fn reset(&mut self, stream: &Stream) -> Result<(), Error> {
        self.poison_outputs(stream)?;
        Ok(self.workspace.fill(0, stream)?)
    }

    /// Poisons the outputs before a launch.
    pub(super) fn poison_outputs(&mut self, stream: &Stream) -> Result<(), Error> {
        for output in &mut self.outputs {
            output.fill(POISON, stream)?;
        }
        Ok(())
    }

    /// Reads the outputs after the work in `stream`. Elements that were never written keep the
    /// poison.
    pub(super) fn read_outputs(&self, stream: &Stream) -> Result<Vec<DeviceOutput>, Error> {
        let read = |buffer: &DeviceBuffer| -> Result<DeviceOutput, Error> {
            let mut bytes = vec![0; buffer.len()];
            buffer.read(0, &mut bytes, stream)?;
            Ok(DeviceOutput {
                bytes,
                never_written: Vec::new(),
            })
        };
        self.outputs.iter().map(read).collect()
    }
}
