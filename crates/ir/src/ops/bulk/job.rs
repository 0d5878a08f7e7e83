//! A run of bytes on its way.

use super::Reduce;
use crate::job::{Done, Engine, PIECES, Span, part};
use crate::machine::Fault;

/// A run of bytes between global and shared memory, or from one CTA's shared memory to another's.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkJob {
    /// How it tells that it is done.
    pub done: Done,
    /// Where the bytes are.
    pub(super) from: Span,
    /// Where they go, as many.
    pub(super) to: Span,
    /// Whether they are combined with what is there; else they replace it.
    pub(super) reduce: Option<Reduce>,
}

impl BulkJob {
    /// The bytes it will read; not those it combines with.
    pub fn reads(&self, each: &mut dyn FnMut(Span)) {
        if !self.from.is_empty() {
            each(self.from);
        }
    }

    /// The bytes it will write.
    pub fn writes(&self, each: &mut dyn FnMut(Span)) {
        if !self.to.is_empty() {
            each(self.to);
        }
    }

    /// Are what it writes sums with what is there?
    pub fn combines(&self) -> bool {
        self.reduce.is_some()
    }

    /// Does it go from one CTA's shared memory to another's?
    pub fn is_sent(&self) -> bool {
        matches!((self.from, self.to), (Span::Shared(..), Span::Shared(..)))
    }

    /// Pieces it may be done in.
    pub fn pieces(&self) -> u32 {
        (self.from.len() / 16).clamp(1, PIECES)
    }

    /// Copies one piece; gives its bytes.
    pub fn complete(&self, piece: u32, e: &mut impl Engine) -> Result<u32, Fault> {
        let chunks = part(self.from.len() / 16, piece, self.pieces());
        let (at, len) = (16 * chunks.start, 16 * chunks.len() as u32);
        if len > 0 {
            let mut bytes = vec![0; len as usize];
            e.read(self.from.slice(at, len), &mut bytes)?;
            let to = self.to.slice(at, len);
            match self.reduce {
                None => e.write(to, &bytes)?,
                Some(r) => e.reduce(to, &bytes, r.dtype.bytes(), &|old, new, out| {
                    r.op.combine(r.dtype, old, new, out);
                })?,
            }
        }
        Ok(len)
    }
}
