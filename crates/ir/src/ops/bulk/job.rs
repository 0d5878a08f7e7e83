//! A bulk copy in flight.

use super::BulkReduce;
use crate::job::{Engine, JobCompletion, PIECES, Span, piece_range};
use crate::machine::Fault;

/// A bulk copy between global and shared memory, or from one CTA's shared memory to another's.
#[derive(Clone, PartialEq, Debug)]
pub struct BulkJob {
    /// The completion mechanism.
    pub completion: JobCompletion,
    /// The source.
    pub(super) from: Span,
    /// The destination, of the same length.
    pub(super) to: Span,
    /// The reduction into the destination; `None`: a copy.
    pub(super) reduce: Option<BulkReduce>,
}

impl BulkJob {
    /// Calls `each` with the bytes that the job will read, without the destination of a reduction.
    pub fn reads(&self, each: &mut dyn FnMut(Span)) {
        if !self.from.is_empty() {
            each(self.from);
        }
    }

    /// Calls `each` with the bytes that the job will write.
    pub fn writes(&self, each: &mut dyn FnMut(Span)) {
        if !self.to.is_empty() {
            each(self.to);
        }
    }

    /// Returns whether the job reduces into the destination.
    pub fn is_reduction(&self) -> bool {
        self.reduce.is_some()
    }

    /// Returns whether the copy goes from one CTA's shared memory to another's.
    pub fn is_shared_to_shared(&self) -> bool {
        matches!((self.from, self.to), (Span::Shared(..), Span::Shared(..)))
    }

    /// Returns the number of pieces.
    pub fn pieces(&self) -> u32 {
        (self.from.len() / 16).clamp(1, PIECES)
    }

    /// Completes one piece and returns its bytes.
    pub fn complete(&self, piece: u32, e: &mut impl Engine) -> Result<u32, Fault> {
        let chunks = piece_range(self.from.len() / 16, piece, self.pieces());
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
