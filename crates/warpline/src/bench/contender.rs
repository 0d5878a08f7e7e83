//! What is timed: a plan on its buffers, a device copy.

use super::data::Data;
use crate::error::Error;
use crate::gpu::{Launches, Ready};
use std::sync::Arc;
use warpline_cuda::{Buffer, Stream};
use warpline_kernels::{AnyWork, Cost};

/// Something to time.
pub(crate) trait Contender {
    /// Its name, for messages.
    fn name(&self) -> &str;
    /// What it costs at least.
    fn cost(&self) -> Cost;
    /// Puts it into a stream; waits for nothing.
    fn enqueue(&mut self, stream: &Stream) -> Result<(), Error>;
}

/// Work on its buffers.
pub(crate) struct Planned {
    name: String,
    cost: Cost,
    launches: Launches,
    /// Used by kernels; kept as long as they may run.
    _workspace: Arc<Buffer>,
}

impl Planned {
    /// Work whose kernels are ready, on tensors that it shares with others.
    pub(crate) fn new(
        work: &dyn AnyWork,
        ready: &Ready,
        workspace: u64,
        data: &Data,
        stream: &Stream,
    ) -> Result<Self, Error> {
        let workspace = Self::workspace(ready, workspace, stream)?;
        Self::in_workspace(work, ready, workspace, data)
    }

    /// A workspace, as a plan finds it before its first run.
    pub(crate) fn workspace(
        ready: &Ready,
        bytes: u64,
        stream: &Stream,
    ) -> Result<Arc<Buffer>, Error> {
        let mut workspace = Buffer::alloc(ready.context(), bytes as usize)?;
        workspace.fill(0, stream)?;
        Ok(Arc::new(workspace))
    }

    /// The same in a workspace that it shares with its like on other tensors.
    pub(crate) fn in_workspace(
        work: &dyn AnyWork,
        ready: &Ready,
        workspace: Arc<Buffer>,
        data: &Data,
    ) -> Result<Self, Error> {
        Ok(Self {
            name: format!("{} {}", work.family(), work.config()),
            cost: work.cost(),
            launches: ready.bind(&data.bound(&workspace))?,
            _workspace: workspace,
        })
    }
}

impl Contender for Planned {
    fn name(&self) -> &str {
        &self.name
    }
    fn cost(&self) -> Cost {
        self.cost
    }
    fn enqueue(&mut self, stream: &Stream) -> Result<(), Error> {
        self.launches.launch(stream)
    }
}

/// A copy from one buffer of the device to another: what memory can do.
pub(crate) struct Copy {
    from: Buffer,
    to: Buffer,
}

/// Bytes of the copied buffer: long enough that its start and end do not count.
const COPY_BYTES: u64 = 1 << 30;

impl Copy {
    /// A copy of 1 GiB, or of an eighth of the memory that is free where that is less.
    pub(crate) fn new(stream: &Stream) -> Result<Self, Error> {
        let context = stream.context();
        let (free, _) = context.memory()?;
        let bytes = COPY_BYTES.min(free / 8) as usize;
        let mut from = Buffer::alloc(context, bytes)?;
        from.fill(1, stream)?;
        Ok(Self {
            from,
            to: Buffer::alloc(context, bytes)?,
        })
    }
}

impl Contender for Copy {
    fn name(&self) -> &str {
        "copy"
    }
    fn cost(&self) -> Cost {
        // Read once, written once.
        Cost {
            flops: 0.0,
            bytes: 2.0 * self.from.len() as f64,
        }
    }
    fn enqueue(&mut self, stream: &Stream) -> Result<(), Error> {
        Ok(self.to.copy_from(&self.from, stream)?)
    }
}
