//! Pinned host memory that the host and a running kernel access concurrently.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::context::Context;
use crate::driver::cu;
use crate::error::CudaError;
use crate::ffi;

/// Page-locked host memory that is mapped on the device. Host and kernel can exchange data
/// while the kernel runs.
///
/// Words are read and written atomically. The host sees a word that the device writes after the
/// device's `fence.acq_rel.sys` or after the kernel ends.
#[derive(Debug)]
pub struct HostBuffer {
    context: Context,
    memory: Memory,
    address: u64,
    len: usize,
}

/// The host address of the mapping.
#[derive(Debug)]
struct Memory(*mut c_void);

// SAFETY: plain memory, accessed only through atomics.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl HostBuffer {
    /// Allocates `len` zero bytes, rounded up to a multiple of 8.
    pub fn zeroed(context: &Context, len: usize) -> Result<Self, CudaError> {
        let Some(len) = len.max(8).checked_next_multiple_of(8) else {
            return Err(CudaError::bad_argument(
                "host memory",
                format!("{len} bytes exceed the address space"),
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
        // SAFETY: `len` bytes were just allocated and are not shared yet.
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

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the buffer is empty; always false.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the device address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Loads the 4-byte word at a byte offset.
    pub fn u32(&self, offset: usize) -> Result<u32, CudaError> {
        Ok(self.word::<AtomicU32>(offset)?.load(Ordering::Acquire))
    }

    /// Loads the 8-byte word at a byte offset.
    pub fn u64(&self, offset: usize) -> Result<u64, CudaError> {
        Ok(self.word::<AtomicU64>(offset)?.load(Ordering::Acquire))
    }

    /// Stores a 4-byte word at a byte offset.
    pub fn set_u32(&self, offset: usize, value: u32) -> Result<(), CudaError> {
        self.word::<AtomicU32>(offset)?
            .store(value, Ordering::Release);
        Ok(())
    }

    /// Stores an 8-byte word at a byte offset.
    pub fn set_u64(&self, offset: usize, value: u64) -> Result<(), CudaError> {
        self.word::<AtomicU64>(offset)?
            .store(value, Ordering::Release);
        Ok(())
    }

    /// Returns a reference to the word at a byte offset.
    fn word<W: Word>(&self, offset: usize) -> Result<&W, CudaError> {
        let size = size_of::<W>();
        let end = offset.checked_add(size);
        if !offset.is_multiple_of(size) || end.is_none_or(|end| end > self.len) {
            return Err(CudaError::bad_argument(
                "host memory",
                format!(
                    "offset {offset} is misaligned or out of range (word size {size}, buffer size {})",
                    self.len
                ),
            ));
        }
        // SAFETY: the word is inside memory that lives as long as `self`. The memory begins on
        // a page, so the word is aligned. Host and device access whole words only, and every bit
        // pattern is valid.
        Ok(unsafe { &*self.memory.0.cast::<u8>().add(offset).cast::<W>() })
    }
}

/// The atomic word types that host and device may share.
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
