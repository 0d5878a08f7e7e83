//! Timed work: a plan on its buffers, a device copy.

use super::tensors::BenchTensors;
use crate::error::Error;
use crate::gpu::{BoundPlan, LoadedPlan};
use std::sync::Arc;
use warpline_cuda::{DeviceBuffer, Stream};
use warpline_kernels::{AnyWorkload, Cost};

/// Work that can be timed.
pub(crate) trait Timed {
    /// Returns the name for messages.
    fn name(&self) -> &str;
    /// Returns the minimum cost.
    fn cost(&self) -> Cost;
    /// Enqueues the work in a stream without waiting.
    fn enqueue(&mut self, stream: &Stream) -> Result<(), Error>;
}

/// A workload that is bound to its buffers.
pub(crate) struct PlannedCandidate {
    name: String,
    cost: Cost,
    plan: BoundPlan,
    /// The plan's kernels use this workspace, so it must outlive them.
    _workspace: Arc<DeviceBuffer>,
}

impl PlannedCandidate {
    /// Binds a loaded plan to tensors that it shares with other candidates.
    pub(crate) fn new(
        work: &dyn AnyWorkload,
        loaded: &LoadedPlan,
        workspace: u64,
        tensors: &BenchTensors,
        stream: &Stream,
    ) -> Result<Self, Error> {
        let workspace = Self::zeroed_workspace(loaded, workspace, stream)?;
        Self::with_workspace(work, loaded, workspace, tensors)
    }

    /// Allocates a zeroed workspace.
    pub(crate) fn zeroed_workspace(
        loaded: &LoadedPlan,
        bytes: u64,
        stream: &Stream,
    ) -> Result<Arc<DeviceBuffer>, Error> {
        let mut workspace = DeviceBuffer::alloc(loaded.context(), bytes as usize)?;
        workspace.fill(0, stream)?;
        Ok(Arc::new(workspace))
    }

    /// Binds a loaded plan to tensors and a workspace. The same plan on other tensors may share the
    /// workspace.
    pub(crate) fn with_workspace(
        work: &dyn AnyWorkload,
        loaded: &LoadedPlan,
        workspace: Arc<DeviceBuffer>,
        tensors: &BenchTensors,
    ) -> Result<Self, Error> {
        Ok(Self {
            name: format!("{} {}", work.family(), work.config()),
            cost: work.cost(),
            plan: loaded.bind(&tensors.addresses(&workspace))?,
            _workspace: workspace,
        })
    }
}

impl Timed for PlannedCandidate {
    fn name(&self) -> &str {
        &self.name
    }
    fn cost(&self) -> Cost {
        self.cost
    }
    fn enqueue(&mut self, stream: &Stream) -> Result<(), Error> {
        self.plan.launch(stream)
    }
}

/// A device-to-device copy, which measures the memory bandwidth.
pub(crate) struct DeviceCopy {
    from: DeviceBuffer,
    to: DeviceBuffer,
}

/// The size of the copied buffer; large enough that start-up cost is negligible.
const COPY_BYTES: u64 = 1 << 30;

impl DeviceCopy {
    /// Returns a copy of 1 GiB, or of an eighth of the free memory if that is less.
    pub(crate) fn new(stream: &Stream) -> Result<Self, Error> {
        let context = stream.context();
        let (free, _) = context.memory()?;
        let bytes = COPY_BYTES.min(free / 8) as usize;
        let mut from = DeviceBuffer::alloc(context, bytes)?;
        from.fill(1, stream)?;
        Ok(Self {
            from,
            to: DeviceBuffer::alloc(context, bytes)?,
        })
    }
}

impl Timed for DeviceCopy {
    fn name(&self) -> &str {
        "copy"
    }
    fn cost(&self) -> Cost {
        // Every byte is read and written.
        Cost {
            flops: 0.0,
            bytes: 2.0 * self.from.len() as f64,
        }
    }
    fn enqueue(&mut self, stream: &Stream) -> Result<(), Error> {
        Ok(self.to.copy_from(&self.from, stream)?)
    }
}
