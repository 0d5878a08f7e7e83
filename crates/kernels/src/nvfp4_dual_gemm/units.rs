//! Sizes that the formats fix. A group is 16 elements of K with one scale (an NVFP4 block), a block is
//! four groups, a panel is four blocks.

/// Elements of K in a block: one word of scales, and the smallest step of a consumer.
pub(crate) const K_BLOCK: u32 = 64;

/// Elements of K in a panel of codes. The cost of a TMA box grows with its number of rows, so rows are
/// long.
pub(super) const PANEL_K: u32 = 256;

/// Returns a small K of the same class: whole panels, whose plain scales load by TMA, remain whole;
/// else the remainder modulo a block remains.
pub(crate) fn reduced_k(k: u32) -> u32 {
    k.min(match k.is_multiple_of(PANEL_K) {
        true => 3 * PANEL_K,
        false => 9 * K_BLOCK + k % K_BLOCK,
    })
}

/// Blocks of a panel.
pub(super) const BLOCKS_PER_PANEL: u32 = PANEL_K / K_BLOCK;

/// Bytes of a row of a panel.
pub(super) const PANEL_BYTES: u32 = PANEL_K / 2;

/// Outputs of a consumer: the 64 rows of its accumulator are their gate and up rows.
pub(super) const OUTPUTS: u32 = 32;

/// Multiplying warps of the schedule `warps`: two per warp scheduler. With four per scheduler
/// each has too few registers, and the kernel is not faster.
pub(super) const MMA_WARPS: u32 = 8;
