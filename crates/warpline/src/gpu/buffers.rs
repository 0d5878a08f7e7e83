//! The tensors of a plan in device memory.

use crate::compare::{POISON, Produced};
use crate::error::Error;
use warpline_cuda::{Buffer, Context, Stream};
use warpline_kernels::{Bound, HostTensor, TensorSpec};

/// Inputs, outputs and workspace of a plan on a device.
#[derive(Debug)]
pub(super) struct Buffers {
    inputs: Vec<Buffer>,
    outputs: Vec<Buffer>,
    workspace: Buffer,
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
                .map(|t| Buffer::from_host(context, &t.data, stream))
                .collect::<Result<_, _>>()?,
            outputs: (outputs.iter())
                .map(|s| Buffer::alloc(context, s.bytes()))
                .collect::<Result<_, _>>()?,
            workspace: Buffer::alloc(context, workspace as usize)?,
        })
    }

    /// Where they are.
    pub(super) fn bound(&self) -> Bound {
        Bound {
            inputs: self.inputs.iter().map(Buffer::address).collect(),
            outputs: self.outputs.iter().map(Buffer::address).collect(),
            workspace: self.workspace.address(),
        }
    }

    /// As before a first run: outputs that no bound admits, zeros to work in.
    pub(super) fn reset(&mut self, stream: &Stream) -> Result<(), Error> {
        for output in &mut self.outputs {
            output.fill(POISON, stream)?;
        }
        Ok(self.workspace.fill(0, stream)?)
    }

    /// The outputs after the work in `stream`. What was never written still is
    /// the poison.
    pub(super) fn fetch(&self, stream: &Stream) -> Result<Vec<Produced>, Error> {
        let read = |buffer: &Buffer| -> Result<Produced, Error> {
            let mut bytes = vec![0; buffer.len()];
            buffer.read(0, &mut bytes, stream)?;
            Ok(Produced {
                bytes,
                never_written: Vec::new(),
            })
        };
        self.outputs.iter().map(read).collect()
    }
}
