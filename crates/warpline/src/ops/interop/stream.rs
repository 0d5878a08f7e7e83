//! Ops in a cudarc stream.

use super::call::StreamCall;
use super::driver_error;
use crate::device::Device;
use crate::error::Error;
use crate::gpu::lock;
use crate::ops::call::Call;
use crate::ops::workspace::PER_THREAD;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};
use std::sync::{Arc, Mutex};
use warpline_cuda::{CudaError, Stream};

/// Runs ops in a cudarc stream. It keeps the stream, the GPU with its kernels, and a workspace. Create
/// one per stream and keep it. Dropping it synchronizes the stream, because the last handle of a GPU
/// unloads its kernels.
#[derive(Debug)]
pub struct StreamOps {
    pub(super) stream: Arc<CudaStream>,
    device: Device,
    /// Zero between launches. cudarc frees a replaced workspace in stream order, after the launches
    /// that use it.
    workspace: Mutex<Option<CudaSlice<u8>>>,
}

impl StreamOps {
    /// Returns the ops of a stream.
    ///
    /// Rejects
    /// - contexts other than the primary context of their device, in which Warpline loads its kernels;
    ///   `CudaContext::new` returns the primary context;
    /// - `per_thread_stream`, which differs between threads, so that a slice could be freed in another
    ///   stream than the one that uses it.
    pub fn new(stream: &Arc<CudaStream>) -> Result<Self, Error> {
        let context = stream.context();
        let ordinal = context.ordinal();
        if !context.is_primary() {
            return reject(format!(
                "its context is not the primary context of cuda:{ordinal}\nhelp: use `CudaContext::new`"
            ));
        }
        if stream.cu_stream() as usize == PER_THREAD {
            return reject(
                "the per-thread stream differs between threads\nhelp: use `new_stream`".into(),
            );
        }
        Ok(Self {
            stream: stream.clone(),
            device: Device::cuda(ordinal as u32)?,
            workspace: Mutex::default(),
        })
    }

    /// Returns the stream.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Returns the GPU of the stream.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns a call of an op by name, without tensors.
    pub fn call(&self, op: &str) -> Result<StreamCall<'_>, Error> {
        Ok(StreamCall::new(self, Call::new(op)?))
    }

    /// Enqueues a call in the stream.
    ///
    /// # Safety
    /// As for [`Call::launch`] regarding the tensors. The stream must not be captured.
    #[allow(
        unsafe_code,
        reason = "callers guarantee the validity of raw addresses"
    )]
    pub(super) unsafe fn launch(&self, call: &Call, stream: &Stream) -> Result<(), Error> {
        let planned = call.plan(&self.device, stream)?;
        // Locked until the launch is enqueued, because another thread could
        // replace the workspace.
        let mut workspace = lock(&self.workspace);
        let address = match planned.workspace() {
            0 => 0,
            bytes => self.zeroed_workspace(&mut workspace, bytes)?,
        };
        // SAFETY: the caller's guarantee, a plan of this call, and a zeroed
        // workspace that only this stream uses.
        let done = unsafe { call.launch_planned(&planned, stream, address) };
        if done.is_err() {
            // Part of the plan may have run, so the workspace may not be zero.
            *workspace = None;
        }
        done
    }

    /// Returns the stream as a Warpline stream.
    pub(super) fn as_stream(&self) -> Result<Stream, Error> {
        let context = self.device.context().ok_or(Error::NoGpu)?;
        #[allow(unsafe_code, reason = "another library's handle")]
        // SAFETY: the stream belongs to the primary context of this device
        // (`new`), and `self` keeps it.
        let stream = unsafe { Stream::from_raw(context, self.stream.cu_stream().cast()) };
        Ok(stream)
    }

    /// Returns the address of at least `bytes` bytes that are zero in stream order.
    fn zeroed_workspace(
        &self,
        workspace: &mut Option<CudaSlice<u8>>,
        bytes: u64,
    ) -> Result<u64, Error> {
        let slice = match workspace.take() {
            Some(slice) if slice.len() as u64 >= bytes => slice,
            _ => self
                .stream
                .alloc_zeros(bytes as usize)
                .map_err(driver_error("cudarc's `alloc_zeros`"))?,
        };
        let address = slice.device_ptr(&self.stream).0;
        *workspace = Some(slice);
        Ok(address)
    }
}

impl Drop for StreamOps {
    fn drop(&mut self) {
        // Other waits on the stream report the same error.
        let _ = self.stream.synchronize();
    }
}

fn reject<T>(why: String) -> Result<T, Error> {
    let what = "ops in a cudarc stream".into();
    Err(CudaError::BadArgument { what, why }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_ops_are_send_and_sync() {
        fn is_send_and_sync<T: Send + Sync>() {}
        is_send_and_sync::<StreamOps>();
    }
}
