//! The ops in one of cudarc's streams.

use super::call::StreamCall;
use super::met;
use crate::device::Device;
use crate::error::Error;
use crate::gpu::held;
use crate::ops::call::Call;
use crate::ops::workspace::PER_THREAD;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};
use std::sync::{Arc, Mutex};
use warpline_cuda::{CudaError, Stream};

/// The ops in one of cudarc's streams: keeps the stream, the GPU with its
/// kernels, and a workspace. Make one for each stream and keep it: kernels
/// leave the GPU with its last user, so dropping one waits for the stream.
#[derive(Debug)]
pub struct StreamOps {
    pub(super) stream: Arc<CudaStream>,
    device: Device,
    /// Zeros between any two launches; cudarc frees what is replaced in the
    /// order of the stream, behind the launches that work in it.
    workspace: Mutex<Option<CudaSlice<u8>>>,
}

impl StreamOps {
    /// The ops in that stream.
    ///
    /// Refused are
    /// - contexts that are not the primary one of their device, which is
    ///   where our kernels are; `CudaContext::new` gives the primary one;
    /// - `per_thread_stream`, which is another stream in each thread, so that
    ///   slices could be freed in another stream than they were used in.
    pub fn new(stream: &Arc<CudaStream>) -> Result<Self, Error> {
        let context = stream.context();
        let ordinal = context.ordinal();
        if !context.is_primary() {
            return refuse(format!(
                "its context is not the primary one of cuda:{ordinal}, which `CudaContext::new` gives"
            ));
        }
        if stream.cu_stream() as usize == PER_THREAD {
            return refuse("it is another one in each thread; `new_stream` makes one".into());
        }
        Ok(Self {
            stream: stream.clone(),
            device: Device::cuda(ordinal as u32)?,
            workspace: Mutex::default(),
        })
    }

    /// The stream.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// The GPU that the stream is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// A call of the op of that name, with no tensors yet.
    pub fn call(&self, op: &str) -> Result<StreamCall<'_>, Error> {
        Ok(StreamCall::new(self, Call::new(op)?))
    }

    /// Puts a call into the stream.
    ///
    /// # Safety
    /// As for [`Call::launch`], of the tensors; and the stream is not captured.
    #[allow(unsafe_code, reason = "states what callers promise of raw addresses")]
    pub(super) unsafe fn launch(&self, call: &Call, stream: &Stream) -> Result<(), Error> {
        let planned = call.plan(&self.device, stream)?;
        // Held until the launch is in the stream, as another thread might
        // replace the workspace.
        let mut kept = held(&self.workspace);
        let address = match planned.workspace() {
            0 => 0,
            bytes => self.zeros(&mut kept, bytes)?,
        };
        // SAFETY: the caller's promise; a plan of this call; and zeros that
        // are used in this stream alone.
        let done = unsafe { call.launch_planned(&planned, stream, address) };
        if done.is_err() {
            // A part of the plan may have run.
            *kept = None;
        }
        done
    }

    /// The stream as ours.
    pub(super) fn borrowed(&self) -> Result<Stream, Error> {
        let context = self.device.context().ok_or(Error::NoGpu)?;
        #[allow(unsafe_code, reason = "another library's handle")]
        // SAFETY: of this device and its primary context (`new`), and kept by `self`.
        let stream = unsafe { Stream::borrowed(context, self.stream.cu_stream().cast()) };
        Ok(stream)
    }

    /// The address of at least as many bytes, all 0 when the stream gets there.
    fn zeros(&self, kept: &mut Option<CudaSlice<u8>>, bytes: u64) -> Result<u64, Error> {
        let slice = match kept.take() {
            Some(slice) if slice.len() as u64 >= bytes => slice,
            _ => self
                .stream
                .alloc_zeros(bytes as usize)
                .map_err(met("cudarc's `alloc_zeros`"))?,
        };
        let address = slice.device_ptr(&self.stream).0;
        *kept = Some(slice);
        Ok(address)
    }
}

impl Drop for StreamOps {
    fn drop(&mut self) {
        // A failure was, or will be, reported to whoever waits for the stream.
        let _ = self.stream.synchronize();
    }
}

fn refuse<T>(why: String) -> Result<T, Error> {
    let what = "ops in a cudarc stream".into();
    Err(CudaError::BadArgument { what, why }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_can_share_the_ops_of_a_stream() {
        fn shared<T: Send + Sync>() {}
        shared::<StreamOps>();
    }
}
