//! Streams and events.

use std::ffi::c_void;

use crate::context::Context;
use crate::driver::cu;
use crate::error::CudaError;
use crate::ffi::{self, CUevent, CUstream};

/// A queue of work on a device.
#[derive(Debug)]
pub struct Stream {
    context: Context,
    raw: CUstream,
    owned: bool,
}

impl Stream {
    /// Creates a stream that does not synchronize with the default stream.
    pub fn new(context: &Context) -> Result<Self, CudaError> {
        let _current = context.enter()?;
        let mut raw = CUstream::NULL;
        // SAFETY: writes one handle; destroyed when `Stream` is dropped.
        unsafe {
            cu!(
                context.driver(),
                cuStreamCreate(&mut raw, ffi::CU_STREAM_NON_BLOCKING)
            )
        }?;
        Ok(Self {
            context: context.clone(),
            raw,
            owned: true,
        })
    }

    /// Returns the default stream of the context, which other users in the process share.
    pub fn default_stream(context: &Context) -> Self {
        Self {
            context: context.clone(),
            raw: CUstream::NULL,
            owned: false,
        }
    }

    /// Wraps a foreign stream, such as PyTorch's current one. Drop does not destroy it.
    ///
    /// # Safety
    /// `handle` is a `CUstream` of `context`'s device, and outlives the result.
    pub unsafe fn from_raw(context: &Context, handle: *mut c_void) -> Self {
        Self {
            context: context.clone(),
            raw: CUstream(handle),
            owned: false,
        }
    }

    /// Returns the context of the stream.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the driver's handle, valid as long as the stream.
    pub fn handle(&self) -> *mut c_void {
        self.raw.0
    }

    /// Waits until all work in the stream completes. Reports a fault of an earlier kernel
    /// ([`CudaError::is_fault`]).
    pub fn synchronize(&self) -> Result<(), CudaError> {
        let _current = self.context.enter()?;
        // SAFETY: the handle lives as long as `self`.
        unsafe { cu!(self.context.driver(), cuStreamSynchronize(self.raw)) }
    }

    /// Makes later work in this stream wait for `event`.
    pub fn wait(&self, event: &Event) -> Result<(), CudaError> {
        let _current = self.context.enter()?;
        // SAFETY: both handles live as long as their owners.
        unsafe {
            cu!(
                self.context.driver(),
                cuStreamWaitEvent(self.raw, event.raw, 0)
            )
        }
    }

    pub(crate) fn raw(&self) -> CUstream {
        self.raw
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        if let Ok(_current) = self.context.enter() {
            // SAFETY: created by `new`; the driver completes the queued work first.
            let _ = unsafe { cu!(self.context.driver(), cuStreamDestroy_v2(self.raw)) };
        }
    }
}

/// A point in a stream.
#[derive(Debug)]
pub struct Event {
    context: Context,
    raw: CUevent,
}

impl Event {
    /// Creates a timing event.
    pub fn new(context: &Context) -> Result<Self, CudaError> {
        let _current = context.enter()?;
        let mut raw = CUevent::NULL;
        // SAFETY: writes one handle; destroyed when `Event` is dropped.
        unsafe {
            cu!(
                context.driver(),
                cuEventCreate(&mut raw, ffi::CU_EVENT_DEFAULT)
            )
        }?;
        Ok(Self {
            context: context.clone(),
            raw,
        })
    }

    /// Records the event at the current end of `stream`.
    pub fn record(&self, stream: &Stream) -> Result<(), CudaError> {
        self.context
            .expect_same(&stream.context, || "recording an event".into())?;
        let _current = self.context.enter()?;
        // SAFETY: both handles live as long as their owners.
        unsafe { cu!(self.context.driver(), cuEventRecord(self.raw, stream.raw)) }
    }

    /// Returns whether the recorded work has completed.
    pub fn is_done(&self) -> Result<bool, CudaError> {
        let _current = self.context.enter()?;
        let driver = self.context.driver();
        // SAFETY: the handle lives as long as `self`.
        match unsafe { (driver.api.cuEventQuery)(self.raw) } {
            ffi::CUDA_ERROR_NOT_READY => Ok(false),
            result => driver.check("cuEventQuery", result).map(|()| true),
        }
    }

    /// Waits until the recorded work completes.
    pub fn synchronize(&self) -> Result<(), CudaError> {
        let _current = self.context.enter()?;
        // SAFETY: the handle lives as long as `self`.
        unsafe { cu!(self.context.driver(), cuEventSynchronize(self.raw)) }
    }

    /// Returns the milliseconds from `start` to this event; both must have completed.
    pub fn ms_since(&self, start: &Event) -> Result<f32, CudaError> {
        let _current = self.context.enter()?;
        let mut ms = 0.0;
        // SAFETY: writes one float; both handles live as long as their owners.
        unsafe {
            cu!(
                self.context.driver(),
                cuEventElapsedTime(&mut ms, start.raw, self.raw)
            )
        }?;
        Ok(ms)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: created by `new`.
            let _ = unsafe { cu!(self.context.driver(), cuEventDestroy_v2(self.raw)) };
        }
    }
}
