//! Launches of calls on a GPU.

use super::call::Call;
use super::key::CallKey;
use super::plans::CachedPlan;
use crate::device::Device;
use crate::error::Error;
use crate::tune::{TuneOptions, TuneReport, tune};
use std::sync::Arc;
use warpline_cuda::Stream;
use warpline_kernels::BufferAddresses;

/// The plan of a call on a GPU. It is valid for every call that differs only in addresses, as long as
/// the 16-byte alignment of each address is the same.
#[derive(Clone, Debug)]
pub struct PlannedCall(pub(super) Arc<CachedPlan>);

impl PlannedCall {
    /// Returns the size of the workspace that a launch needs, in bytes.
    pub fn workspace(&self) -> u64 {
        self.0.workspace
    }

    /// Returns the cached plan of a call on a GPU by its key; `None` if it is new.
    pub fn cached(key: &CallKey, device: &Device) -> Option<Self> {
        device.gpu()?.plans.get(key).map(Self)
    }

    /// Returns whether the plan is still in the cache. A tuned config replaces it, for example.
    pub fn is_current(&self) -> bool {
        !self.0.is_retired()
    }

    /// Returns whether an output shares bytes with an input or with another output. Such a call must
    /// not be launched.
    pub fn overlaps(&self, addresses: &BufferAddresses) -> bool {
        self.0.overlaps(addresses)
    }

    /// Launches the plan at given addresses. If the plan was launched before, this only patches the
    /// addresses that differ: it does not allocate, and encodes no tensor map.
    ///
    /// # Safety
    /// As for [`Call::launch_planned`], for a call with these addresses that
    /// [overlaps](Self::overlaps) nothing.
    #[allow(
        unsafe_code,
        reason = "callers guarantee the validity of raw addresses"
    )]
    pub unsafe fn launch_at(
        &self,
        stream: &Stream,
        addresses: &BufferAddresses,
    ) -> Result<(), Error> {
        self.0.launch(stream, addresses)
    }
}

impl Call {
    /// Returns the cached plan of the call on a GPU; `None` if it is new.
    pub fn cached_plan(&self, device: &Device) -> Option<PlannedCall> {
        PlannedCall::cached(&CallKey::of(self), device)
    }

    /// Returns the number of cached plans on a GPU.
    pub fn cached_plan_count(device: &Device) -> usize {
        device.gpu().map_or(0, |gpu| gpu.plans.len())
    }

    /// Plans the call and loads its kernels onto the GPU, unless the plan is cached. `stream` is the
    /// stream of the later launch: nothing can be compiled during its capture.
    pub fn plan(&self, device: &Device, stream: &Stream) -> Result<PlannedCall, Error> {
        let gpu = device.gpu().ok_or(Error::NoGpu)?;
        gpu.plans.get_or_plan(self, device, stream).map(PlannedCall)
    }

    /// Tunes the problem of this call on the GPU, unless a winner is cached, and waits for it. Later
    /// calls use the winner. Returns `None` if all outputs are empty, and an error during capture of
    /// the stream.
    pub fn tune(
        &self,
        device: &Device,
        stream: &Stream,
        options: &TuneOptions,
    ) -> Result<Option<TuneReport>, Error> {
        if stream.is_capturing()? {
            let op = self.op.signature.name;
            return Err(Error::TuneInCapture { op });
        }
        let workload = self.op.workload(&self.args, &self.outs, &device.target())?;
        let tuned = workload.map(|work| {
            let mut options = options.clone();
            options.deterministic = self.deterministic;
            tune(work.as_ref(), device, &options)
        });
        tuned.transpose()
    }

    /// Enqueues the op in a stream without waiting. A CUDA graph can capture it after the same call,
    /// with any addresses, was launched before.
    ///
    /// The first call of a class compiles its kernels, the first call with new extents plans them, and
    /// later calls only launch. An op that needs a workspace uses the stream's, which is
    /// allocated once.
    ///
    /// ```no_run
    /// use warpline::cuda::{DeviceBuffer, Stream};
    /// use warpline::ops::{Call, TensorView};
    /// use warpline::{DType, Device};
    ///
    /// # fn main() -> Result<(), warpline::Error> {
    /// let device = Device::cuda(0)?;
    /// let context = device.context().expect("a GPU has a context");
    /// let stream = Stream::new(context)?;
    /// let (x, y) = (DeviceBuffer::alloc(context, 4 << 20)?, DeviceBuffer::alloc(context, 4 << 20)?);
    ///
    /// let view = |b: &DeviceBuffer| TensorView::dense(DType::F32, &[1024, 1024], b.address());
    /// let call = Call::new("softmax")?.tensor("x", view(&x))?.out(view(&y));
    /// // SAFETY: both buffers have 1024 × 1024 f32 on this device, nothing else
    /// // writes y, and the stream is synchronized before they are freed.
    /// unsafe { call.launch(&device, &stream)? };
    /// stream.synchronize()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// - Every tensor's address points to memory on `device` that contains all elements of its shape
    ///   and strides. It is readable, and writable for outputs.
    /// - The memory stays valid until the launch is done. Other work that accesses outputs or writes
    ///   inputs is ordered before or after the launch by streams and events.
    /// - `stream` belongs to `device` and lives until its work is done.
    /// - A handle of the device stays open until then: the last handle unloads the kernels.
    #[allow(
        unsafe_code,
        reason = "callers guarantee the validity of raw addresses"
    )]
    pub unsafe fn launch(&self, device: &Device, stream: &Stream) -> Result<(), Error> {
        let gpu = device.gpu().ok_or(Error::NoGpu)?;
        let planned = self.plan(device, stream)?;
        let workspace = match planned.workspace() {
            0 => 0,
            bytes => gpu.workspaces.get(stream, self.op.signature.name, bytes)?,
        };
        // SAFETY: the caller's guarantee, and a workspace that belongs to the stream.
        unsafe { self.launch_planned(&planned, stream, workspace) }
    }

    /// Launches a plan of this call, as [`launch`](Self::launch) does, in a workspace of the caller at
    /// the given address.
    ///
    /// # Safety
    /// As for [`launch`](Self::launch), and:
    /// - `planned` belongs to this call or to one that differs only in addresses with the same 16-byte
    ///   alignment.
    /// - The workspace is device memory of the size that the plan needs. It is zero before the launch,
    ///   and nothing outside of this stream uses it until the launch is done. The launch leaves it
    ///   zero.
    #[allow(
        unsafe_code,
        reason = "callers guarantee the validity of raw addresses"
    )]
    pub unsafe fn launch_planned(
        &self,
        planned: &PlannedCall,
        stream: &Stream,
        workspace: u64,
    ) -> Result<(), Error> {
        let addresses = BufferAddresses {
            inputs: self.addresses().collect(),
            outputs: self.outs.iter().map(|view| view.address).collect(),
            workspace,
        };
        // Every call must check this, because a plan serves calls with other addresses.
        if planned.overlaps(&addresses) {
            self.op.check_aliasing(&self.args, &self.outs)?;
        }
        planned.0.launch(stream, &addresses)
    }
}
