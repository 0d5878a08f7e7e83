//! A call on a GPU.

use super::call::Call;
use super::plans::Plan;
use crate::device::Device;
use crate::error::Error;
use crate::tune::{TuneOptions, Tuned, tune};
use std::sync::Arc;
use warpline_cuda::Stream;
use warpline_kernels::Bound;

/// What a call came to on a GPU: good for every call that differs from it in
/// addresses alone, and in none's being on 16 bytes.
#[derive(Clone, Debug)]
pub struct Planned(pub(super) Arc<Plan>);

impl Planned {
    /// Bytes of workspace that a launch needs.
    pub fn workspace(&self) -> u64 {
        self.0.workspace
    }
}

impl Call {
    /// What it came to before, on that GPU; none where it is new.
    pub fn known(&self, device: &Device) -> Option<Planned> {
        device.gpu()?.plans.known(self).map(Planned)
    }

    /// How many different calls came to something on that GPU.
    pub fn plans(device: &Device) -> usize {
        device.gpu().map_or(0, |gpu| gpu.plans.len())
    }

    /// Plans it and brings its kernels onto the GPU, unless both are done. The
    /// stream is the one of a later launch: while it is captured, nothing can
    /// be compiled.
    pub fn plan(&self, device: &Device, stream: &Stream) -> Result<Planned, Error> {
        let gpu = device.gpu().ok_or(Error::NoGpu)?;
        gpu.plans.of(self, device, stream).map(Planned)
    }

    /// Tunes the problem of this call on the GPU, unless a winner is
    /// remembered, and waits for that; later calls take the winner. None where
    /// nothing comes out. Refused while the stream of a later launch is captured.
    pub fn tune(
        &self,
        device: &Device,
        stream: &Stream,
        options: &TuneOptions,
    ) -> Result<Option<Tuned>, Error> {
        if stream.is_capturing()? {
            let op = self.op.signature.name;
            return Err(Error::TuneInCapture { op });
        }
        let solved = self.op.solve(&self.args, &self.outs, &device.target())?;
        let tuned = solved.map(|work| {
            let mut options = options.clone();
            options.deterministic = self.deterministic;
            tune(work.as_ref(), device, &options)
        });
        tuned.transpose()
    }

    /// Puts the op into a stream; waits for nothing, and can be captured in a
    /// graph once the same call, with any addresses, was launched before.
    ///
    /// The first call of a class compiles its kernels; the first with new
    /// extents plans them; all later ones only launch. An op that needs a
    /// workspace has one that belongs to the stream, allocated once.
    ///
    /// ```no_run
    /// use warpline::cuda::{Buffer, Stream};
    /// use warpline::ops::{Call, TensorView};
    /// use warpline::{DType, Device};
    ///
    /// # fn main() -> Result<(), warpline::Error> {
    /// let device = Device::cuda(0)?;
    /// let context = device.context().expect("a GPU has a context");
    /// let stream = Stream::new(context)?;
    /// let (x, y) = (Buffer::alloc(context, 4 << 20)?, Buffer::alloc(context, 4 << 20)?);
    ///
    /// let view = |b: &Buffer| TensorView::dense(DType::F32, &[1024, 1024], b.address());
    /// let call = Call::new("softmax")?.tensor("x", view(&x))?.out(view(&y));
    /// // SAFETY: both buffers have 1024 × 1024 f32 on this device, nobody else
    /// // writes y, and the stream is waited for before they are freed.
    /// unsafe { call.launch(&device, &stream)? };
    /// stream.synchronize()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// - Every tensor's address is that of memory on `device` that holds all
    ///   elements which its shape and strides reach, readable, and writable for outputs.
    /// - It stays so until the launch is done, and other work on outputs, or
    ///   that writes inputs, is ordered before or after it by streams and events.
    /// - `stream` is of `device`, and lives until its work is done.
    /// - Someone has the device open until then: its kernels go with its last user.
    #[allow(unsafe_code, reason = "states what callers promise of raw addresses")]
    pub unsafe fn launch(&self, device: &Device, stream: &Stream) -> Result<(), Error> {
        let gpu = device.gpu().ok_or(Error::NoGpu)?;
        let planned = self.plan(device, stream)?;
        let workspace = match planned.workspace() {
            0 => 0,
            bytes => gpu.workspaces.of(stream, self.op.signature.name, bytes)?,
        };
        // SAFETY: the caller's promise, and a workspace of the stream's own.
        unsafe { self.launch_planned(&planned, stream, workspace) }
    }

    /// As [`launch`](Self::launch), with a plan of this call, in a workspace
    /// of the caller's at that address.
    ///
    /// # Safety
    /// As for [`launch`](Self::launch); and
    /// - `planned` was given for this call, or for one that differs in
    ///   addresses alone, and in none's being on 16 bytes;
    /// - the workspace is as many bytes of the device as the plan needs, zeros,
    ///   used by nothing outside of this stream until the launch is done. It
    ///   then holds zeros again.
    #[allow(unsafe_code, reason = "states what callers promise of raw addresses")]
    pub unsafe fn launch_planned(
        &self,
        planned: &Planned,
        stream: &Stream,
        workspace: u64,
    ) -> Result<(), Error> {
        // Of each call anew: a plan serves calls with other addresses.
        self.op.apart(&self.args, &self.outs)?;
        let Some(ready) = &planned.0.ready else {
            return Ok(());
        };
        let bound = Bound {
            inputs: self.addresses().collect(),
            outputs: self.outs.iter().map(|view| view.address).collect(),
            workspace,
        };
        ready.launch(stream, &bound)
    }
}
