//! The shared memory of one CTA: bytes, written flags, and claims of asynchronous ops in flight.
//!
//! Most engines move whole 16-byte chunks, so claims are counted per chunk. A list holds the narrower
//! claims.

use crate::bits::WrittenBytes;
use std::ops::Range;

const CHUNK: u32 = 16;

/// How an asynchronous op or an access uses memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemoryUse {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Atomic reduction per element.
    Reduce,
}

impl MemoryUse {
    /// Returns the use of a plain access.
    pub(crate) fn of(write: bool) -> Self {
        if write {
            MemoryUse::Write
        } else {
            MemoryUse::Read
        }
    }

    /// Whether two unordered uses are a race.
    fn conflicts(self, other: MemoryUse) -> bool {
        self == MemoryUse::Write || self != other
    }
}

/// Shared memory of one CTA.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    bytes: Vec<u8>,
    written: WrittenBytes,
    chunks: Vec<Chunk>,
    /// Claims that do not cover whole chunks.
    narrow: Vec<(Range<u32>, MemoryUse)>,
    /// The number of claims.
    claims: u32,
}

/// The claims on 16 bytes.
#[derive(Clone, Copy, Default, Debug)]
struct Chunk {
    /// Ops that will write it.
    writers: u16,
    /// Ops that will read it.
    readers: u16,
    /// Reductions into it.
    reducers: u16,
}

impl Chunk {
    fn count(&mut self, usage: MemoryUse) -> &mut u16 {
        match usage {
            MemoryUse::Read => &mut self.readers,
            MemoryUse::Write => &mut self.writers,
            MemoryUse::Reduce => &mut self.reducers,
        }
    }

    fn conflicts(&self, usage: MemoryUse) -> bool {
        self.writers > 0
            || self.readers > 0 && usage.conflicts(MemoryUse::Read)
            || self.reducers > 0 && usage.conflicts(MemoryUse::Reduce)
    }
}

impl SharedMemory {
    /// Creates unwritten memory.
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            bytes: vec![0; bytes],
            written: WrittenBytes::none(bytes),
            chunks: vec![Chunk::default(); bytes.div_ceil(CHUNK as usize)],
            narrow: Vec::new(),
            claims: 0,
        }
    }

    /// Whether a range is in bounds.
    pub(crate) fn is_in_bounds(&self, at: u32, len: u32) -> bool {
        u64::from(at) + u64::from(len) <= self.bytes.len() as u64
    }

    /// Returns an in-bounds range, or its first unwritten byte.
    #[inline]
    pub(crate) fn get(&self, at: u32, len: usize) -> Result<&[u8], u32> {
        match self.written.first_gap(at as usize, len) {
            Some(gap) => Err(gap as u32),
            None => Ok(&self.bytes[at as usize..at as usize + len]),
        }
    }

    /// Writes an in-bounds range.
    #[inline]
    pub(crate) fn put(&mut self, at: u32, data: &[u8]) {
        self.bytes[at as usize..at as usize + data.len()].copy_from_slice(data);
        self.written.set(at as usize, data.len());
    }

    fn chunks_of(range: &Range<u32>) -> Range<usize> {
        (range.start / CHUNK) as usize..range.end.div_ceil(CHUNK) as usize
    }

    /// Returns the first byte of a range that conflicts with a claim.
    #[inline]
    pub(crate) fn in_flight(&self, range: &Range<u32>, usage: MemoryUse) -> Option<u32> {
        if self.claims == 0 {
            return None;
        }
        let chunks = Self::chunks_of(range);
        let first = chunks.start;
        self.chunks[chunks]
            .iter()
            .position(|c| c.conflicts(usage))
            .map(|i| range.start.max((first + i) as u32 * CHUNK))
            .or_else(|| self.narrow_in_flight(range, usage))
    }

    fn narrow_in_flight(&self, range: &Range<u32>, usage: MemoryUse) -> Option<u32> {
        let conflicts = |(r, u): &&(Range<u32>, MemoryUse)| {
            r.start < range.end && range.start < r.end && usage.conflicts(*u)
        };
        let found = self.narrow.iter().find(conflicts)?;
        Some(range.start.max(found.0.start))
    }

    fn is_chunk_aligned(range: &Range<u32>) -> bool {
        range.start.is_multiple_of(CHUNK) && range.end.is_multiple_of(CHUNK)
    }

    /// Claims a range for an asynchronous op.
    pub(crate) fn claim(&mut self, range: &Range<u32>, usage: MemoryUse) {
        self.claims += 1;
        if !Self::is_chunk_aligned(range) {
            self.narrow.push((range.clone(), usage));
            return;
        }
        for c in &mut self.chunks[Self::chunks_of(range)] {
            *c.count(usage) += 1;
        }
    }

    /// Ends a claim.
    pub(crate) fn unclaim(&mut self, range: &Range<u32>, usage: MemoryUse) {
        self.claims -= 1;
        if !Self::is_chunk_aligned(range) {
            if let Some(i) = self
                .narrow
                .iter()
                .position(|c| *c == (range.clone(), usage))
            {
                self.narrow.swap_remove(i);
            }
            return;
        }
        for c in &mut self.chunks[Self::chunks_of(range)] {
            *c.count(usage) -= 1;
        }
    }

    /// Whether any claim exists.
    pub(crate) fn has_claims(&self) -> bool {
        self.claims > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_conflict_with_everything_but_reductions() {
        let mut s = SharedMemory::new(64);
        s.claim(&(0..32), MemoryUse::Reduce);
        assert_eq!(s.in_flight(&(16..48), MemoryUse::Reduce), None);
        assert_eq!(s.in_flight(&(16..48), MemoryUse::Read), Some(16));
        assert_eq!(s.in_flight(&(20..24), MemoryUse::Write), Some(20));
        s.unclaim(&(0..32), MemoryUse::Reduce);
        s.claim(&(0..32), MemoryUse::Read);
        assert_eq!(s.in_flight(&(0..16), MemoryUse::Read), None);
        assert_eq!(s.in_flight(&(0..16), MemoryUse::Reduce), Some(0));
    }

    #[test]
    fn narrow_claims_cover_only_their_bytes() {
        let mut s = SharedMemory::new(64);
        s.claim(&(4..8), MemoryUse::Write);
        s.claim(&(4..8), MemoryUse::Reduce);
        assert_eq!(s.in_flight(&(8..12), MemoryUse::Write), None);
        assert_eq!(s.in_flight(&(0..16), MemoryUse::Read), Some(4));
        s.unclaim(&(4..8), MemoryUse::Write);
        assert_eq!(s.in_flight(&(0..16), MemoryUse::Reduce), None);
        assert!(s.has_claims());
        s.unclaim(&(4..8), MemoryUse::Reduce);
        assert!(!s.has_claims());
    }
}
