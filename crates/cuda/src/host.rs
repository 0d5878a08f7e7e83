//! Host memory that a running kernel and the host see at the same time.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::context::Context;
use crate::driver::cu;
use crate::error::CudaError;
use crate::ffi;

/// Page-locked host memory with an address on the device: what a kernel
/// writes, the host can read while it runs, and the other way round.
///
/// Words are read and written whole; a word that the device writes is seen
/// once it is flushed (`fence.acq_rel.sys`) or the kernel has ended.
#[derive(Debug)]
pub struct HostBuffer {
    context: Context,
    memory: Memory,
    address: u64,
    len: usize,
}

#[derive(Debug)]
struct Memory(*mut c_void);

// SAFETY: plain memory, read and written by atomic words alone.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl HostBuffer {
    /// `len` bytes of zeros, rounded up to a multiple of 8.
    pub fn zeroed(context: &Context, len: usize) -> Result<Self, CudaError> {
        let Some(len) = len.max(8).checked_next_multiple_of(8) else {
            return Err(CudaError::bad_argument(
                "host memory",
                format!("{len} bytes are more than there are addresses"),
            ));
        };
        let driver = context.driver();
        let _current = context.enter()?;
        let mut memory = ptr::null_mut();
        let flags = ffi::CU_MEMHOSTALLOC_PORTABLE | ffi::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: writes one pointer; freed when `HostBuffer` is dropped.
        unsafe { cu!(driver, cuMemHostAlloc(&mut memory, len, flags)) }?;
        let mut buffer = Self {
            context: context.clone(),
            memory: Memory(memory),
            address: 0,
            len,
        };
        // SAFETY: so many bytes were just allocated, and nobody else has them.
        unsafe { ptr::write_bytes(memory.cast::<u8>(), 0, len) };
        // SAFETY: writes one address; the memory is mapped, and flags are 0.
        unsafe {
            cu!(
                driver,
                cuMemHostGetDevicePointer_v2(&mut buffer.address, memory, 0)
            )
        }?;
        Ok(buffer)
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes, which is never so.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The 4-byte word at a byte offset, as it is now.
    pub fn u32(&self, offset: usize) -> Result<u32, CudaError> {
        Ok(self.word::<AtomicU32>(offset)?.load(Ordering::Acquire))
    }

    /// The 8-byte word at a byte offset, as it is now.
    pub fn u64(&self, offset: usize) -> Result<u64, CudaError> {
        Ok(self.word::<AtomicU64>(offset)?.load(Ordering::Acquire))
    }

    /// Writes a 4-byte word at a byte offset.
    pub fn set_u32(&self, offset: usize, value: u32) -> Result<(), CudaError> {
        self.word::<AtomicU32>(offset)?
            .store(value, Ordering::Release);
        Ok(())
    }

    /// Writes an 8-byte word at a byte offset.
    pub fn set_u64(&self, offset: usize, value: u64) -> Result<(), CudaError> {
        self.word::<AtomicU64>(offset)?
            .store(value, Ordering::Release);
        Ok(())
    }

    /// A word inside the buffer; `W` is one of the two atomics.
    fn word<W: Word>(&self, offset: usize) -> Result<&W, CudaError> {
        let size = size_of::<W>();
        let end = offset.checked_add(size);
        if !offset.is_multiple_of(size) || end.is_none_or(|end| end > self.len) {
            return Err(CudaError::bad_argument(
                "host memory",
                format!(
                    "offset {offset} is no place of a word of {size} bytes in {} bytes",
                    self.len
                ),
            ));
        }
        // SAFETY: the word lies inside memory that lives as long as `self` and
        // begins on a page, so it is aligned; host and device touch it by
        // whole words only, and every bit pattern is a number.
        Ok(unsafe { &*self.memory.0.cast::<u8>().add(offset).cast::<W>() })
    }
}

/// What may lie in shared memory of host and device.
trait Word {}
impl Word for AtomicU32 {}
impl Word for AtomicU64 {}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: allocated once, freed once.
            let _ = unsafe { cu!(self.context.driver(), cuMemFreeHost(self.memory.0)) };
        }
    }
}
