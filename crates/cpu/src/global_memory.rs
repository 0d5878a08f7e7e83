//! Global memory: named buffers in a separate address space.
//!
//! Buffer `i` starts at `(i + 1) << 40`, so that an address identifies its buffer and out-of-bounds
//! accesses hit unmapped addresses. Bytes are stored in 32-bit words that host threads access with
//! relaxed atomics; a bitmap marks the written bytes.

use crate::bits::masks;
use bytemuck::{AnyBitPattern, NoUninit};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use warpline_ir::{Fault, FaultKind};

/// The number of address bits for the byte offset in a buffer.
const OFFSET_BITS: u32 = 40;

/// Returns the buffer number and byte offset of an address.
pub(crate) fn split_address(addr: u64) -> (usize, u64) {
    let buffer = (addr >> OFFSET_BITS) as usize;
    (buffer.saturating_sub(1), addr & ((1 << OFFSET_BITS) - 1))
}

/// Global memory, shared by all CTAs of a launch and by the host.
#[derive(Debug, Default)]
pub struct GlobalMemory {
    buffers: Vec<Buffer>,
    /// The backing store of all addresses outside the buffers, if unbounded.
    unmapped: Option<Buffer>,
}

/// The size of the backing store of unmapped addresses: twice the longest access.
const UNMAPPED_BYTES: usize = 1 << 19;

/// A named buffer.
#[derive(Debug)]
pub(crate) struct Buffer {
    name: String,
    len: u64,
    words: Box<[AtomicU32]>,
    /// One bit per written byte; `None` if the buffer was created with data.
    written: Option<Box<[AtomicU64]>>,
}

impl GlobalMemory {
    /// Creates a memory without buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a memory in which every address is accessible, for runs that check synchronization
    /// only. Accesses outside the buffers use arbitrary bytes; bounds, alignment and races of global
    /// memory are not checked.
    pub fn unbounded() -> Self {
        let unmapped = Buffer {
            name: "unmapped memory".to_owned(),
            len: UNMAPPED_BYTES as u64,
            words: (0..UNMAPPED_BYTES / 4).map(|_| AtomicU32::new(0)).collect(),
            written: None,
        };
        Self {
            buffers: Vec::new(),
            unmapped: Some(unmapped),
        }
    }

    /// Whether every address is accessible.
    pub fn is_unbounded(&self) -> bool {
        self.unmapped.is_some()
    }

    /// Allocates a buffer of unwritten bytes; returns its address, a multiple of 256.
    pub fn alloc(&mut self, bytes: usize, name: impl Into<String>) -> u64 {
        let written = (0..bytes.div_ceil(64)).map(|_| AtomicU64::new(0));
        self.push(Buffer {
            name: name.into(),
            len: bytes as u64,
            words: (0..bytes.div_ceil(4)).map(|_| AtomicU32::new(0)).collect(),
            written: Some(written.collect()),
        })
    }

    /// Allocates a buffer with these bytes; returns its address, a multiple of 256.
    pub fn alloc_from(&mut self, bytes: &[u8], name: impl Into<String>) -> u64 {
        let (whole, rest) = bytes.as_chunks::<4>();
        let mut words: Vec<_> = whole
            .iter()
            .map(|w| AtomicU32::new(u32::from_le_bytes(*w)))
            .collect();
        if !rest.is_empty() {
            let mut last = [0; 4];
            last[..rest.len()].copy_from_slice(rest);
            words.push(AtomicU32::new(u32::from_le_bytes(last)));
        }
        self.push(Buffer {
            name: name.into(),
            len: bytes.len() as u64,
            words: words.into(),
            written: None,
        })
    }

    fn push(&mut self, b: Buffer) -> u64 {
        self.buffers.push(b);
        (self.buffers.len() as u64) << OFFSET_BITS
    }

    /// Returns the size in bytes of the buffer at an address from [`alloc`](Self::alloc).
    pub fn buffer_len(&self, addr: u64) -> Option<usize> {
        let i = (addr >> OFFSET_BITS).checked_sub(1)?;
        self.buffers.get(i as usize).map(|b| b.len as usize)
    }

    /// Returns the number of bytes from an address to the end of its buffer; `None` outside the
    /// buffers or if the memory is unbounded.
    pub fn bytes_to_end(&self, addr: u64) -> Option<u64> {
        if self.is_unbounded() {
            return None;
        }
        let len = self.buffer_len(addr)? as u64;
        len.checked_sub(addr % (1 << OFFSET_BITS))
    }

    /// Allocates a buffer with these elements; returns its address, a multiple of 256.
    ///
    /// ```
    /// let mut memory = warpline_cpu::GlobalMemory::new();
    /// let x = memory.alloc_slice(&[1.0f32, 2.0, 3.0], "x");
    /// assert_eq!(memory.read_as::<f32>(x + 4, 2)?, [2.0, 3.0]);
    /// # Ok::<(), warpline_ir::Fault>(())
    /// ```
    pub fn alloc_slice<T: NoUninit>(&mut self, elements: &[T], name: impl Into<String>) -> u64 {
        self.alloc_from(bytemuck::cast_slice(elements), name)
    }

    /// Copies elements to the host; an unwritten element is a fault.
    pub fn read_as<T: AnyBitPattern>(&self, addr: u64, len: usize) -> Result<Vec<T>, Fault> {
        let bytes = self.read(addr, len * size_of::<T>())?;
        let elements = bytes.chunks_exact(size_of::<T>().max(1));
        Ok(elements.map(bytemuck::pod_read_unaligned).collect())
    }

    /// Copies bytes to the host; an unwritten byte is a fault.
    pub fn read(&self, addr: u64, len: usize) -> Result<Vec<u8>, Fault> {
        let mut out = vec![0; len];
        self.load(addr, &mut out)?;
        Ok(out)
    }

    /// Copies bytes to the host; unwritten bytes are 0.
    pub fn read_lossy(&self, addr: u64, len: usize) -> Result<Vec<u8>, Fault> {
        let (b, at) = self.find(addr, len)?;
        let mut out = vec![0; len];
        b.get(at, &mut out);
        Ok(out)
    }

    /// Copies bytes from the host.
    pub fn write(&self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        let (b, at) = self.find(addr, data.len())?;
        b.put(at, data);
        Ok(())
    }

    /// Reads written bytes.
    pub(crate) fn load(&self, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        let (b, at) = self.find(addr, out.len())?;
        b.check_written(at, out.len())?;
        b.get(at, out);
        Ok(())
    }

    /// Returns the buffer of a range, and the range's offset.
    #[inline]
    pub(crate) fn find(&self, addr: u64, len: usize) -> Result<(&Buffer, usize), Fault> {
        let at = addr & ((1 << OFFSET_BITS) - 1);
        if let Some(i) = (addr >> OFFSET_BITS).checked_sub(1)
            && let Some(b) = self.buffers.get(i as usize)
            && at + len as u64 <= b.len
        {
            return Ok((b, at as usize));
        }
        match &self.unmapped {
            Some(b) if len <= UNMAPPED_BYTES / 2 => Ok((b, at as usize % (UNMAPPED_BYTES / 2))),
            _ => Err(self.out_of_bounds(addr, len)),
        }
    }

    /// Describes a byte of a buffer: `byte 12 of buffer out`.
    pub(crate) fn byte_name(&self, buffer: usize, byte: u64) -> String {
        let name = self.buffers.get(buffer).map_or("?", |b| &b.name);
        format!("byte {byte} of buffer {name}")
    }

    #[cold]
    fn out_of_bounds(&self, addr: u64, len: usize) -> Fault {
        let index = (addr >> OFFSET_BITS) as usize;
        let at = addr & ((1 << OFFSET_BITS) - 1);
        let buffer = |i: usize| i.checked_sub(1).and_then(|i| self.buffers.get(i));
        let before = (1u64 << OFFSET_BITS) - at;
        let text = match (buffer(index), buffer(index + 1)) {
            (_, Some(next)) if before < 1 << (OFFSET_BITS - 1) => format!(
                "accesses {len} bytes of global memory {before} bytes before the start of buffer {}",
                next.name
            ),
            (Some(b), _) => format!(
                "accesses {len} bytes at byte {at} of buffer {}, which has {} bytes",
                b.name, b.len
            ),
            (None, _) => {
                format!("accesses {len} bytes at address {addr:#x}, which is in no buffer")
            }
        };
        Fault::new(FaultKind::OutOfBounds, text)
    }
}

impl Buffer {
    /// Reads an in-bounds range.
    #[inline]
    pub(crate) fn get(&self, at: usize, out: &mut [u8]) {
        let word = |i: usize| self.words[i].load(Relaxed).to_le_bytes();
        if !at.is_multiple_of(4) {
            for (i, b) in out.iter_mut().enumerate() {
                *b = word((at + i) / 4)[(at + i) % 4];
            }
            return;
        }
        let (chunks, rest) = out.as_chunks_mut::<4>();
        let words = &self.words[at / 4..];
        for (c, w) in chunks.iter_mut().zip(words) {
            *c = w.load(Relaxed).to_le_bytes();
        }
        if !rest.is_empty() {
            let last = words[chunks.len()].load(Relaxed).to_le_bytes();
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }

    /// Writes an in-bounds range.
    #[inline]
    pub(crate) fn put(&self, at: usize, data: &[u8]) {
        let head = (at.next_multiple_of(4) - at).min(data.len());
        let (head, body) = data.split_at(head);
        self.write_within_word(at, head);
        let at_body = at + head.len();
        let (chunks, rest) = body.as_chunks::<4>();
        for (w, c) in self.words[at_body / 4..].iter().zip(chunks) {
            w.store(u32::from_le_bytes(*c), Relaxed);
        }
        self.write_within_word(at_body + 4 * chunks.len(), rest);
        self.mark_written(at, data.len());
    }

    /// Writes part of one word; other threads may write the other bytes.
    fn write_within_word(&self, at: usize, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        let from = at % 4;
        let patched = |old: u32| {
            let mut b = old.to_le_bytes();
            b[from..from + data.len()].copy_from_slice(data);
            Some(u32::from_le_bytes(b))
        };
        // The closure always returns a word.
        let _ = self.words[at / 4].fetch_update(Relaxed, Relaxed, patched);
    }

    /// Marks a range as written.
    fn mark_written(&self, at: usize, len: usize) {
        let Some(written) = &self.written else { return };
        for (w, m) in masks(at, len) {
            if written[w].load(Relaxed) & m != m {
                written[w].fetch_or(m, Relaxed);
            }
        }
    }

    /// Checks that all bytes of a range were written.
    #[inline]
    pub(crate) fn check_written(&self, at: usize, len: usize) -> Result<(), Fault> {
        let Some(written) = &self.written else {
            return Ok(());
        };
        for (w, m) in masks(at, len) {
            let gap = m & !written[w].load(Relaxed);
            if gap != 0 {
                return Err(self.never_written(w * 64 + gap.trailing_zeros() as usize));
            }
        }
        Ok(())
    }

    #[cold]
    fn never_written(&self, byte: usize) -> Fault {
        Fault::new(
            FaultKind::NeverWritten,
            format!(
                "reads byte {byte} of buffer {}, which was never written",
                self.name
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip_at_any_alignment() {
        let mut m = GlobalMemory::new();
        let a = m.alloc(64, "a");
        assert_eq!(a % 256, 0);
        for at in 0..9u64 {
            for len in 0..9usize {
                let data: Vec<u8> = (0..len as u8).map(|i| i * 17 + at as u8).collect();
                m.write(a + at, &data).unwrap();
                assert_eq!(m.read(a + at, len).unwrap(), data);
            }
        }
        let b = m.alloc_from(&[1, 2, 3, 4, 5], "b");
        assert_eq!(m.read(b, 5).unwrap(), [1, 2, 3, 4, 5]);
        assert_eq!(m.buffer_len(b), Some(5));
    }

    #[test]
    fn an_unwritten_byte_is_named() {
        let mut m = GlobalMemory::new();
        let a = m.alloc(200, "out");
        m.write(a, &[7; 100]).unwrap();
        let f = m.read(a, 200).unwrap_err();
        assert_eq!(f.kind, FaultKind::NeverWritten);
        assert_eq!(
            f.text,
            "reads byte 100 of buffer out, which was never written"
        );
        assert_eq!(m.read_lossy(a, 200).unwrap()[99..101], [7, 0]);
    }

    #[test]
    fn an_out_of_bounds_access_names_the_nearest_buffer() {
        let mut m = GlobalMemory::new();
        let a = m.alloc(10, "a");
        let b = m.alloc(10, "b");
        assert!(
            m.read(a, 11)
                .unwrap_err()
                .text
                .contains("buffer a, which has 10 bytes")
        );
        assert!(
            m.read(b - 4, 4)
                .unwrap_err()
                .text
                .contains("4 bytes before the start of buffer b")
        );
        assert!(m.read(16, 4).unwrap_err().text.contains("no buffer"));
        assert_eq!(m.read(a, 11).unwrap_err().kind, FaultKind::OutOfBounds);
    }
}
