//! Device memory.

use crate::context::Context;
use crate::driver::cu;
use crate::error::CudaError;
use crate::ffi::{self, CUdeviceptr};
use crate::stream::Stream;

/// A range of device memory, aligned to 256 bytes and freed on drop. Freeing waits for the
/// work that uses it.
#[derive(Debug)]
pub struct DeviceBuffer {
    context: Context,
    address: CUdeviceptr,
    len: usize,
}

impl DeviceBuffer {
    /// Allocates `len` uninitialized bytes. An empty buffer is valid; its address is null.
    pub fn alloc(context: &Context, len: usize) -> Result<Self, CudaError> {
        let mut buffer = Self {
            context: context.clone(),
            address: 0,
            len,
        };
        if len == 0 {
            return Ok(buffer);
        }
        let current = context.enter()?;
        let driver = context.driver();
        // SAFETY: writes one address; freed when `DeviceBuffer` is dropped.
        let result = unsafe { (driver.api.cuMemAlloc_v2)(&mut buffer.address, len) };
        drop(current);
        if result == ffi::CUDA_ERROR_OUT_OF_MEMORY {
            let (free, total) = context.memory()?;
            return Err(CudaError::OutOfMemory {
                ordinal: context.device().ordinal,
                requested: len as u64,
                free,
                total,
            });
        }
        driver.check("cuMemAlloc", result)?;
        Ok(buffer)
    }

    /// Allocates a buffer and copies `bytes` to it.
    pub fn from_host(context: &Context, bytes: &[u8], stream: &Stream) -> Result<Self, CudaError> {
        let mut buffer = Self::alloc(context, bytes.len())?;
        buffer.write(0, bytes, stream)?;
        Ok(buffer)
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the buffer has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the device address; null for an empty buffer.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the context of the memory.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Copies `bytes` to `offset` in stream order and waits for the copy.
    pub fn write(&mut self, offset: usize, bytes: &[u8], stream: &Stream) -> Result<(), CudaError> {
        let to = self.range("writing a buffer", offset, bytes.len(), stream)?;
        if !bytes.is_empty() {
            let _current = self.context.enter()?;
            // SAFETY: `range` has checked the device side; the host side is
            // borrowed until the stream is done with it.
            unsafe {
                cu!(
                    self.context.driver(),
                    cuMemcpyHtoDAsync_v2(to, bytes.as_ptr().cast(), bytes.len(), stream.raw())
                )
            }?;
        }
        stream.synchronize()
    }

    /// Copies `bytes.len()` bytes from `offset` in stream order and waits for the copy.
    pub fn read(&self, offset: usize, bytes: &mut [u8], stream: &Stream) -> Result<(), CudaError> {
        let from = self.range("reading a buffer", offset, bytes.len(), stream)?;
        if !bytes.is_empty() {
            let _current = self.context.enter()?;
            // SAFETY: `range` has checked the device side; the host side is
            // borrowed until the stream is done with it.
            unsafe {
                cu!(
                    self.context.driver(),
                    cuMemcpyDtoHAsync_v2(
                        bytes.as_mut_ptr().cast(),
                        from,
                        bytes.len(),
                        stream.raw()
                    )
                )
            }?;
        }
        stream.synchronize()
    }

    /// Sets every byte in stream order; does not wait.
    pub fn fill(&mut self, byte: u8, stream: &Stream) -> Result<(), CudaError> {
        let to = self.range("filling a buffer", 0, self.len, stream)?;
        if self.is_empty() {
            return Ok(());
        }
        let _current = self.context.enter()?;
        // SAFETY: the range is the whole buffer.
        unsafe {
            cu!(
                self.context.driver(),
                cuMemsetD8Async(to, byte, self.len, stream.raw())
            )
        }
    }

    /// Copies all of `source`, which has the same length, in stream order; does not wait.
    pub fn copy_from(&mut self, source: &DeviceBuffer, stream: &Stream) -> Result<(), CudaError> {
        let what = "copying a buffer";
        if source.len != self.len {
            return Err(CudaError::bad_argument(
                what,
                format!(
                    "source and destination must have the same length, not {} and {} bytes",
                    source.len, self.len
                ),
            ));
        }
        let from = source.range(what, 0, source.len, stream)?;
        let to = self.range(what, 0, self.len, stream)?;
        if self.is_empty() {
            return Ok(());
        }
        let _current = self.context.enter()?;
        // SAFETY: both ranges are whole buffers of equal length.
        unsafe {
            cu!(
                self.context.driver(),
                cuMemcpyDtoDAsync_v2(to, from, self.len, stream.raw())
            )
        }
    }

    /// Returns the address of `len` bytes at `offset`; checks the bounds and the context of the
    /// stream.
    fn range(
        &self,
        what: &str,
        offset: usize,
        len: usize,
        stream: &Stream,
    ) -> Result<CUdeviceptr, CudaError> {
        self.context.expect_same(stream.context(), || what.into())?;
        match offset.checked_add(len) {
            Some(end) if end <= self.len => Ok(self.address + offset as u64),
            _ => Err(CudaError::bad_argument(
                what,
                format!(
                    "{len} bytes at offset {offset} exceed the buffer of {} bytes",
                    self.len
                ),
            )),
        }
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if self.address == 0 {
            return;
        }
        if let Ok(_current) = self.context.enter() {
            // SAFETY: allocated by `alloc`, freed once.
            let _ = unsafe { cu!(self.context.driver(), cuMemFree_v2(self.address)) };
        }
    }
}
