//! The shared memory of one CTA: bytes, which of them were written, and which
//! belong to asynchronous work in flight.
//!
//! Most engines move whole 16-byte chunks, so that what is in flight is kept
//! per chunk; what is narrower is kept in a list.

use crate::bits::Written;
use std::ops::Range;

const CHUNK: u32 = 16;

/// How work in flight, or an access, uses memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Combines numbers with those in it, each in one step.
    Combine,
}

impl Use {
    /// Reads or writes.
    pub(crate) fn of(write: bool) -> Self {
        if write { Use::Write } else { Use::Read }
    }

    /// May the two not happen in either order?
    fn conflicts(self, other: Use) -> bool {
        self == Use::Write || self != other
    }
}

/// Shared memory of one CTA.
#[derive(Debug)]
pub(crate) struct Shared {
    bytes: Vec<u8>,
    written: Written,
    chunks: Vec<Chunk>,
    /// Claims of runs that are no whole chunks.
    narrow: Vec<(Range<u32>, Use)>,
    /// Claims that stand.
    claims: u32,
}

/// What is in flight over 16 bytes.
#[derive(Clone, Copy, Default, Debug)]
struct Chunk {
    /// Work that will write it.
    writers: u16,
    /// Work that will read it.
    readers: u16,
    /// Work that will combine numbers with those in it.
    combiners: u16,
}

impl Chunk {
    fn count(&mut self, how: Use) -> &mut u16 {
        match how {
            Use::Read => &mut self.readers,
            Use::Write => &mut self.writers,
            Use::Combine => &mut self.combiners,
        }
    }

    fn conflicts(&self, how: Use) -> bool {
        self.writers > 0
            || self.readers > 0 && how.conflicts(Use::Read)
            || self.combiners > 0 && how.conflicts(Use::Combine)
    }
}

impl Shared {
    /// Memory that nothing has written.
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            bytes: vec![0; bytes],
            written: Written::none(bytes),
            chunks: vec![Chunk::default(); bytes.div_ceil(CHUNK as usize)],
            narrow: Vec::new(),
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
    /// flight that it conflicts with.
    #[inline]
    pub(crate) fn in_flight(&self, range: &Range<u32>, how: Use) -> Option<u32> {
        if self.claims == 0 {
            return None;
        }
        let chunks = Self::chunks_of(range);
        let first = chunks.start;
        self.chunks[chunks]
            .iter()
            .position(|c| c.conflicts(how))
            .map(|i| range.start.max((first + i) as u32 * CHUNK))
            .or_else(|| self.narrow_flight(range, how))
    }

    fn narrow_flight(&self, range: &Range<u32>, how: Use) -> Option<u32> {
        let meets = |(r, u): &&(Range<u32>, Use)| {
            r.start < range.end && range.start < r.end && how.conflicts(*u)
        };
        let found = self.narrow.iter().find(meets)?;
        Some(range.start.max(found.0.start))
    }

    fn is_chunks(range: &Range<u32>) -> bool {
        range.start.is_multiple_of(CHUNK) && range.end.is_multiple_of(CHUNK)
    }

    /// Work is in flight over a range from now on.
    pub(crate) fn claim(&mut self, range: &Range<u32>, how: Use) {
        self.claims += 1;
        if !Self::is_chunks(range) {
            self.narrow.push((range.clone(), how));
            return;
        }
        for c in &mut self.chunks[Self::chunks_of(range)] {
            *c.count(how) += 1;
        }
    }

    /// Ends a claim.
    pub(crate) fn unclaim(&mut self, range: &Range<u32>, how: Use) {
        self.claims -= 1;
        if !Self::is_chunks(range) {
            if let Some(i) = self.narrow.iter().position(|c| *c == (range.clone(), how)) {
                self.narrow.swap_remove(i);
            }
            return;
        }
        for c in &mut self.chunks[Self::chunks_of(range)] {
            *c.count(how) -= 1;
        }
    }

    /// Is any work in flight over it?
    pub(crate) fn busy(&self) -> bool {
        self.claims > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_stand_beside_each_other_and_beside_nothing_else() {
        let mut s = Shared::new(64);
        s.claim(&(0..32), Use::Combine);
        assert_eq!(s.in_flight(&(16..48), Use::Combine), None);
        assert_eq!(s.in_flight(&(16..48), Use::Read), Some(16));
        assert_eq!(s.in_flight(&(20..24), Use::Write), Some(20));
        s.unclaim(&(0..32), Use::Combine);
        s.claim(&(0..32), Use::Read);
        assert_eq!(s.in_flight(&(0..16), Use::Read), None);
        assert_eq!(s.in_flight(&(0..16), Use::Combine), Some(0));
    }

    #[test]
    fn narrow_work_takes_its_bytes_alone() {
        let mut s = Shared::new(64);
        s.claim(&(4..8), Use::Write);
        s.claim(&(4..8), Use::Combine);
        assert_eq!(s.in_flight(&(8..12), Use::Write), None);
        assert_eq!(s.in_flight(&(0..16), Use::Read), Some(4));
        s.unclaim(&(4..8), Use::Write);
        assert_eq!(s.in_flight(&(0..16), Use::Combine), None);
        assert!(s.busy());
        s.unclaim(&(4..8), Use::Combine);
        assert!(!s.busy());
    }
}
