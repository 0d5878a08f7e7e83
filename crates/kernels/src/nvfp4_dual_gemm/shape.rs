//! The part of a problem on which configs depend, for one weight and for two.

use super::kernel_spec::Outputs;
use super::scale_boxes::ScaleBoxes;
use super::units;
use crate::nvfp4::ScaleLayout;

/// The part of a problem on which configs depend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Rows of A and C.
    pub(crate) m: u32,
    /// Columns of C.
    pub(crate) n: u32,
    /// The summed dimension.
    pub(crate) k: u32,
    /// Is A in NVFP4?
    pub(crate) a_is_coded: bool,
    /// Are the weights read once, and too large for the L2 cache?
    pub(crate) streams_weights: bool,
    /// Bytes that move if every tensor moves once.
    pub(crate) bytes: f64,
    /// How scales are loaded.
    pub(crate) scale_boxes: ScaleBoxes,
    /// The weights and the outputs.
    pub(crate) outputs: Outputs,
}

impl Shape {
    /// Returns K rounded up to whole blocks of 64.
    pub(crate) fn padded_k(&self) -> u64 {
        u64::from(self.k.next_multiple_of(units::K_BLOCK))
    }

    /// Is K a multiple of 64, so that no block reaches past K?
    pub(crate) fn has_whole_blocks(&self) -> bool {
        self.k.is_multiple_of(units::K_BLOCK)
    }

    /// Returns the row stride of codes in bytes, rounded up to the multiple of 16 that TMA needs.
    pub(crate) fn aligned_row_bytes(&self) -> u64 {
        u64::from(self.k / 2).next_multiple_of(16)
    }

    /// Must an earlier launch rearrange the scales?
    pub(crate) fn rearranges_scales(&self, layout: ScaleLayout) -> bool {
        layout == ScaleLayout::Plain && self.scale_boxes == ScaleBoxes::Blocks
    }

    /// Must rows of codes be copied, because their stride is not a multiple of 16 bytes?
    pub(crate) fn needs_aligned_copy(&self) -> bool {
        self.aligned_row_bytes() != u64::from(self.k / 2)
    }
}
