//! A `cp.async` of one warp in flight.

use crate::job::{Engine, PIECES, Span, join_spans, piece_range};
use crate::machine::{Fault, Mask, ResolvedAddress};

/// The copies of one `cp.async`, for all lanes that execute it.
#[derive(Clone, PartialEq, Debug)]
pub struct CopyJob {
    /// Bytes that each lane writes.
    bytes: u32,
    /// One copy per lane, lowest lane first.
    copies: Vec<LaneCopy>,
}

/// One lane's copy.
#[derive(Clone, Copy, PartialEq, Debug)]
struct LaneCopy {
    lane: usize,
    to: ResolvedAddress,
    from: u64,
    /// Bytes to read; the rest is zero.
    read: u32,
}

impl CopyJob {
    /// Creates a job without copies; each copy writes `bytes` bytes.
    pub(super) fn new(bytes: u32) -> Self {
        let copies = Vec::new();
        Self { bytes, copies }
    }

    /// Adds the copy of a lane; lanes must be added in ascending order.
    pub(super) fn add(&mut self, lane: usize, to: ResolvedAddress, from: u64, read: u32) {
        let copy = LaneCopy {
            lane,
            to,
            from,
            read,
        };
        self.copies.push(copy);
    }

    /// Returns the lanes that copy.
    pub fn lanes(&self) -> Mask {
        self.copies.iter().fold(0, |m, c| m | 1 << c.lane)
    }

    /// Calls `each` with the bytes that the job will read.
    pub fn reads(&self, each: &mut dyn FnMut(Span)) {
        let copies = self.copies.iter();
        join_spans(each, |each| {
            copies.for_each(|c| each(Span::Global(c.from, c.read)));
        });
    }

    /// Iterates over the reads: lane, address, length.
    pub fn read(&self) -> impl Iterator<Item = (usize, u64, u32)> {
        self.copies.iter().map(|c| (c.lane, c.from, c.read))
    }

    /// Calls `each` with the bytes that the job will write.
    pub fn writes(&self, each: &mut dyn FnMut(Span)) {
        let copies = self.copies.iter();
        join_spans(each, |each| {
            copies.for_each(|c| each(Span::Shared(c.to, self.bytes)));
        });
    }

    /// Calls `each` with the write of each lane: lane, address, length.
    pub fn each_write(&self, each: &mut dyn FnMut(usize, ResolvedAddress, u32)) {
        for c in &self.copies {
            each(c.lane, c.to, self.bytes);
        }
    }

    /// Calls `each` with the bytes that a piece will write.
    pub fn piece_writes(&self, piece: u32, each: &mut dyn FnMut(Span)) {
        let copies = self.piece(piece).iter();
        join_spans(each, |each| {
            copies.for_each(|c| each(Span::Shared(c.to, self.bytes)));
        });
    }

    /// Returns the number of pieces; each has some of the lanes.
    pub fn pieces(&self) -> u32 {
        (self.copies.len() as u32).clamp(1, PIECES)
    }

    fn piece(&self, piece: u32) -> &[LaneCopy] {
        let lanes = piece_range(self.copies.len() as u32, piece, self.pieces());
        &self.copies[lanes.start as usize..lanes.end as usize]
    }

    /// Iterates over the writes of a piece: lane, address, length.
    pub fn written(&self, piece: u32) -> impl Iterator<Item = (usize, ResolvedAddress, u32)> {
        self.piece(piece).iter().map(|c| (c.lane, c.to, self.bytes))
    }

    /// Completes the copies of a piece and returns the bytes written.
    pub fn complete(&self, piece: u32, e: &mut impl Engine) -> Result<u32, Fault> {
        for c in self.piece(piece) {
            let mut data = [0; 16];
            if c.read > 0 {
                let read = &mut data[..c.read as usize];
                e.read(Span::Global(c.from, c.read), read)?;
            }
            e.write(Span::Shared(c.to, self.bytes), &data[..self.bytes as usize])?;
        }
        Ok(self.bytes * self.piece(piece).len() as u32)
    }
}
