//! Sizes that follow from the formats: blocks of scales, panels of codes, outputs of a consumer.

/// Elements of K of a block of scales, and the fewest that a consumer decodes and multiplies at a
/// time.
pub(super) const BLOCK: u32 = 64;

/// Elements of K of a panel of codes. The cost of a TMA box is counted in rows, so rows are long.
pub(super) const WIDTH: u32 = 256;

/// Blocks of a panel.
pub(super) const BLOCKS: u32 = WIDTH / BLOCK;

/// Bytes of a row of a panel of codes.
pub(super) const PANEL: u32 = WIDTH / 2;

/// Outputs of a consumer: the 64 rows of its accumulator are theirs in the gate and in the other
/// weight.
pub(super) const OUTPUTS: u32 = 32;

/// Warps that multiply each for itself: two for each scheduler. With four they have too few
/// registers, and are no faster.
pub(super) const WARPS: u32 = 8;
