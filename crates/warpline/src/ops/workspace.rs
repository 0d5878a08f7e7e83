//! Where ops work that were given no workspace.

use crate::error::Error;
use crate::gpu::held;
use std::collections::HashMap;
use std::sync::Mutex;
use std::thread::{self, ThreadId};
use warpline_cuda::{Buffer, Stream};

/// The least that is allocated.
const LEAST: u64 = 4096;

/// One workspace for each stream: what is in a stream is done in order, and
/// every plan leaves zeros behind, so its plans can share it.
#[derive(Debug, Default)]
pub(crate) struct Workspaces(Mutex<HashMap<Key, Vec<Buffer>>>);

/// A stream: its handle, and the thread where the handle means each thread's own.
type Key = (usize, Option<ThreadId>);

/// The handle that means each thread's own stream.
pub(super) const PER_THREAD: usize = 2;

impl Workspaces {
    /// The address of zeros that belong to the stream. A longer one is
    /// allocated beside a shorter one, which may still be worked in.
    pub(super) fn of(&self, stream: &Stream, op: &'static str, bytes: u64) -> Result<u64, Error> {
        let handle = stream.handle() as usize;
        let key = (
            handle,
            (handle == PER_THREAD).then(|| thread::current().id()),
        );
        let mut all = held(&self.0);
        let buffers = all.entry(key).or_default();
        if let Some(buffer) = buffers.last().filter(|b| b.len() as u64 >= bytes) {
            return Ok(buffer.address());
        }
        if stream.is_capturing()? {
            return Err(Error::WorkspaceInCapture { op, bytes });
        }
        let len = bytes.max(LEAST).next_power_of_two() as usize;
        let mut buffer = Buffer::alloc(stream.context(), len)?;
        buffer.fill(0, stream)?;
        let address = buffer.address();
        buffers.push(buffer);
        Ok(address)
    }
}
