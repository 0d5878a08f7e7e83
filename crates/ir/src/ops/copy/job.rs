//! The copies of one warp in flight.

use crate::job::{Engine, PIECES, Span, joined, part};
use crate::machine::{Fault, Mask, SharedAt};

/// The copies of one `cp.async`, of all lanes that run it.
#[derive(Clone, PartialEq, Debug)]
pub struct CopyJob {
    /// Bytes that each lane writes.
    bytes: u32,
    /// By lane, lowest first.
    copies: Vec<One>,
}

/// One lane's copy.
#[derive(Clone, Copy, PartialEq, Debug)]
struct One {
    lane: usize,
    to: SharedAt,
    from: u64,
    /// Bytes that are read; the rest is zero.
    read: u32,
}

impl CopyJob {
    /// No copies yet, of so many bytes each.
    pub(super) fn new(bytes: u32) -> Self {
        let copies = Vec::new();
        Self { bytes, copies }
    }

    /// Adds the copy of a lane; lanes ascend.
    pub(super) fn add(&mut self, lane: usize, to: SharedAt, from: u64, read: u32) {
        let one = One {
            lane,
            to,
            from,
            read,
        };
        self.copies.push(one);
    }

    /// The lanes that copy.
    pub fn lanes(&self) -> Mask {
        self.copies.iter().fold(0, |m, c| m | 1 << c.lane)
    }

    /// The bytes it will read.
    pub fn reads(&self, each: &mut dyn FnMut(Span)) {
        let copies = self.copies.iter();
        joined(each, |each| {
            copies.for_each(|c| each(Span::Global(c.from, c.read)));
        });
    }

    /// The lanes, each with the address and the number of bytes it will read.
    pub fn read(&self) -> impl Iterator<Item = (usize, u64, u32)> {
        self.copies.iter().map(|c| (c.lane, c.from, c.read))
    }

    /// The bytes it will write.
    pub fn writes(&self, each: &mut dyn FnMut(Span)) {
        let copies = self.copies.iter();
        joined(each, |each| {
            copies.for_each(|c| each(Span::Shared(c.to, self.bytes)));
        });
    }

    /// The bytes that each lane will write: the lane, where, and how many.
    pub fn each_write(&self, each: &mut dyn FnMut(usize, SharedAt, u32)) {
        for c in &self.copies {
            each(c.lane, c.to, self.bytes);
        }
    }

    /// The bytes that a piece will write.
    pub fn piece_writes(&self, piece: u32, each: &mut dyn FnMut(Span)) {
        let copies = self.piece(piece).iter();
        joined(each, |each| {
            copies.for_each(|c| each(Span::Shared(c.to, self.bytes)));
        });
    }

    /// Pieces it may be done in: each has some of the lanes.
    pub fn pieces(&self) -> u32 {
        (self.copies.len() as u32).clamp(1, PIECES)
    }

    fn piece(&self, piece: u32) -> &[One] {
        let lanes = part(self.copies.len() as u32, piece, self.pieces());
        &self.copies[lanes.start as usize..lanes.end as usize]
    }

    /// The lanes of a piece, each with the bytes it writes.
    pub fn written(&self, piece: u32) -> impl Iterator<Item = (usize, SharedAt, u32)> {
        self.piece(piece).iter().map(|c| (c.lane, c.to, self.bytes))
    }

    /// Copies for some of the lanes; gives the bytes written.
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
