//! TMA copies of a box of a tensor, described by a tensor map (`cp.async.bulk.tensor`).
//!
//! A box is a list of *rows*: consecutive elements along the innermost
//! dimension. Rows are consecutive in shared memory; the swizzle permutes their
//! 16-byte chunks by the absolute shared address. Out-of-bounds elements load
//! as zero, are not stored, and still count as transaction bytes. A box starts
//! at a multiple of 16 bytes along the innermost dimension. A load may start
//! before the tensor, a store may not.
//!
//! The rows of a tiled box traverse its outer dimensions, dimension 1 fastest,
//! with the element strides of the map. The rows of an im2col copy are pixels:
//! they traverse the positions of the bounding box (W, then H, then D, then N)
//! from the given start, with the element strides of the map. A pixel is read at
//! its position plus the im2col offsets of the filter tap. Positions run from
//! the lower corner to the last element plus the upper corner.

mod issue;
mod job;
mod load;
mod prefetch;
mod store;

pub use issue::legal_first_coord;
pub use job::TensorJob;
pub use load::TensorLoad;
pub use prefetch::{TensorPrefetch, TensorPrefetchBox};
pub use store::TensorStore;

use crate::value::Operand;

/// Returns the PTX mode; only im2col copies have offsets.
fn mode(offsets: &[Operand]) -> &'static str {
    if offsets.is_empty() { "tile" } else { "im2col" }
}

#[cfg(test)]
mod tests;
