//! The shared memory of one CTA: bytes, which of them were written, and which
//! belong to asynchronous work in flight.
//!
//! Engines move whole 16-byte chunks, so that what is in flight is kept per chunk.

use crate::bits::Written;
use std::ops::Range;

const CHUNK: u32 = 16;

/// Shared memory of one CTA.
#[derive(Debug)]
pub(crate) struct Shared {
    bytes: Vec<u8>,
    written: Written,
    chunks: Vec<Chunk>,
    /// Claims on chunks that stand.
    claims: u32,
}

/// What is in flight over 16 bytes.
#[derive(Clone, Copy, Default, Debug)]
struct Chunk {
    /// Work that will write it.
    writers: u16,
    /// Work that will read it.
    readers: u16,
}

impl Shared {
    /// Memory that nothing has written.
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            bytes: vec![0; bytes],
            written: Written::none(bytes),
            chunks: vec![Chunk::default(); bytes.div_ceil(CHUNK as usize)],
            claims: 0,
        }
    }

    /// Does a run lie inside?
    pub(crate) fn holds(&self, at: u32, len: u32) -> bool {
        u64::from(at) + u64::from(len) <= self.bytes.len() as u64
    }

    /// A run, which lies inside; or its first byte that was never written.
    #[inline]
    pub(crate) fn get(&self, at: u32, len: usize) -> Result<&[u8], u32> {
        match self.written.first_gap(at as usize, len) {
            Some(gap) => Err(gap as u32),
            None => Ok(&self.bytes[at as usize..at as usize + len]),
        }
    }

    /// Writes a run, which lies inside.
    #[inline]
    pub(crate) fn put(&mut self, at: u32, data: &[u8]) {
        self.bytes[at as usize..at as usize + data.len()].copy_from_slice(data);
        self.written.set(at as usize, data.len());
    }

    fn chunks_of(range: &Range<u32>) -> Range<usize> {
        (range.start / CHUNK) as usize..range.end.div_ceil(CHUNK) as usize
    }

    /// The first byte of a range that an access would share with work in
    /// flight, one of them writing.
    #[inline]
    pub(crate) fn in_flight(&self, range: &Range<u32>, write: bool) -> Option<u32> {
        if self.claims == 0 {
            return None;
        }
        let chunks = Self::chunks_of(range);
        let first = chunks.start;
        self.chunks[chunks]
            .iter()
            .position(|c| c.writers > 0 || write && c.readers > 0)
            .map(|i| range.start.max((first + i) as u32 * CHUNK))
    }

    /// Work is in flight over a range from now on.
    pub(crate) fn claim(&mut self, range: &Range<u32>, write: bool) {
        self.claims += 1;
        for c in &mut self.chunks[Self::chunks_of(range)] {
            *(if write {
                &mut c.writers
            } else {
                &mut c.readers
            }) += 1;
        }
    }

    /// Ends a claim.
    pub(crate) fn unclaim(&mut self, range: &Range<u32>, write: bool) {
        self.claims -= 1;
        for c in &mut self.chunks[Self::chunks_of(range)] {
            *(if write {
                &mut c.writers
            } else {
                &mut c.readers
            }) -= 1;
        }
    }

    /// Is any work in flight over it?
    pub(crate) fn busy(&self) -> bool {
        self.claims > 0
    }
}
