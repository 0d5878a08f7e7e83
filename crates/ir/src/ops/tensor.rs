//! Copies of a box of a tensor, described by a tensor map.
//!
//! A box is a list of *rows*: runs of elements along the innermost dimension,
//! one after the other in shared memory, 16-byte chunks permuted by the
//! swizzle of the absolute shared byte. What lies outside the tensor reads as
//! zero, is not stored, and still counts as bytes. A box starts on 16 bytes of a
//! row; a load may start before the tensor, a store may not.
//!
//! The rows of a tiled box step through its outer dimensions, the second
//! fastest, by the map's element strides. The rows of an im2col copy are
//! pixels: they walk the window's positions (W, then H, then D, then N) from
//! the given one on, by the map's element strides, and each is read at its
//! position plus the offsets of the filter tap. A position runs from the lower
//! corner to the last element plus the upper corner.

mod issue;
mod job;
mod load;
mod prefetch;
mod store;

pub use issue::legal_start;
pub use job::TensorJob;
pub use load::TensorLoad;
pub use prefetch::{TensorPrefetch, TensorPrefetchBox};
pub use store::TensorStore;

use crate::value::Operand;

/// The mode in PTX: only a window takes offsets.
fn mode(offsets: &[Operand]) -> &'static str {
    if offsets.is_empty() { "tile" } else { "im2col" }
}

#[cfg(test)]
mod tests;
