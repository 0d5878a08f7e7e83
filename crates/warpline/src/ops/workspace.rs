//! Workspaces of streams.

use crate::error::Error;
use crate::gpu::lock;
use std::collections::HashMap;
use std::sync::Mutex;
use std::thread::{self, ThreadId};
use warpline_cuda::{DeviceBuffer, Stream};

/// The minimum allocation in bytes.
const MIN_BYTES: u64 = 4096;

/// One workspace per stream. Its plans share it, because they run in order and every plan leaves
/// zeros behind.
#[derive(Debug, Default)]
pub(crate) struct Workspaces(Mutex<HashMap<StreamKey, Vec<DeviceBuffer>>>);

/// A stream: its handle and, for the per-thread default stream, the thread.
type StreamKey = (usize, Option<ThreadId>);

/// The handle of the per-thread default stream.
pub(super) const PER_THREAD: usize = 2;

impl Workspaces {
    /// Returns the address of a zeroed workspace of the stream. If it is too small, allocates a larger
    /// one and keeps the old one, which running kernels may still use.
    pub(super) fn get(&self, stream: &Stream, op: &'static str, bytes: u64) -> Result<u64, Error> {
        let handle = stream.handle() as usize;
        let key = (
            handle,
            (handle == PER_THREAD).then(|| thread::current().id()),
        );
        let mut all = lock(&self.0);
        let buffers = all.entry(key).or_default();
        if let Some(buffer) = buffers.last().filter(|b| b.len() as u64 >= bytes) {
            return Ok(buffer.address());
        }
        if stream.is_capturing()? {
            return Err(Error::WorkspaceInCapture { op, bytes });
        }
        let len = bytes.max(MIN_BYTES).next_power_of_two() as usize;
        let mut buffer = DeviceBuffer::alloc(stream.context(), len)?;
        buffer.fill(0, stream)?;
        let address = buffer.address();
        buffers.push(buffer);
        Ok(address)
    }
}
