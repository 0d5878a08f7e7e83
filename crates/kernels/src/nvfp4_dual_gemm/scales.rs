//! The layouts of scales on the device, and the kernel that converts plain scales to blocks.

use crate::gemm::problem::MAX_EXTENT;
use crate::nvfp4::{BLOCK, ScaleLayout};
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// Threads of a CTA of the elementwise kernels.
pub(super) const THREADS: u32 = 256;

/// The most threads of an elementwise launch: a [`FastDivisor`] divides their index.
pub(super) const MAX_THREADS: u32 = (1 << 31) - 1;

/// The most groups of 16 elements of K.
pub(super) const MAX_GROUPS: u32 = MAX_EXTENT.div_ceil(BLOCK as u32);

/// Bytes of a tile of the block layout: scales of 128 rows and 64 elements of K.
pub(super) const TILE_BYTES: u32 = 512;

/// Words of a tile of the block layout; a word holds four scales of a row.
pub(super) const TILE_WORDS: u32 = TILE_BYTES / 4;

/// Returns the byte offset of the scale of a row and a group; a row has `groups` groups of 16.
#[track_caller]
pub(super) fn scale_byte_offset(
    layout: ScaleLayout,
    row: Reg<u32>,
    group: Reg<u32>,
    groups: Reg<u32>,
) -> Reg<u64> {
    match layout {
        ScaleLayout::Plain => row.mul_wide(groups) + group.cast::<u64>(),
        ScaleLayout::Block => {
            let tile =
                (row >> 7u32).mul_wide(groups.div_ceil(4u32)) + (group >> 2u32).cast::<u64>();
            let inside = ((row & 31u32) << 4u32) + ((row >> 5u32) & 3u32) * 4u32 + (group & 3u32);
            (tile << 9u32) + inside.cast::<u64>()
        }
    }
}

/// Builds the kernel that copies plain scales to the block layout, four per thread; padding is zero.
pub(super) fn arrange(target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("nvfp4_scales", target, |k| {
        let [rows, groups, words] = ["rows", "groups", "words"].map(|name| k.param::<u32>(name));
        rows.at_least(1).at_most(MAX_EXTENT);
        groups.at_least(1).at_most(MAX_GROUPS);
        words.at_most(MAX_THREADS);
        let from = k.pointer::<u8>("from").elements(extent(rows) * groups);
        let to = k.pointer::<u32>("to").elements(words);
        k.role("all").warps(THREADS / 32).body(|| {
            let word = cta_id() * THREADS + thread_id();
            if_(word.lt(words), || {
                let tiles_per_row = groups.div_ceil(4u32);
                let (tile, word_in_tile) = (word >> 7u32, word & 127u32);
                let tile_row = tile / tiles_per_row;
                let row =
                    (tile_row << 7u32) + (word_in_tile & 3u32) * 32u32 + (word_in_tile >> 2u32);
                let first_group = (tile - tile_row * tiles_per_row) * 4u32;
                let packed = Var::new(0u32);
                for i in 0..4u32 {
                    let group = first_group + i;
                    if_(row.lt(rows) & group.lt(groups), || {
                        let offset = scale_byte_offset(ScaleLayout::Plain, row, group, groups);
                        let scale = from.load(offset).cast::<u32>();
                        packed.set(packed.get() | scale << (8 * i));
                    });
                }
                to.store(word, packed.get());
            });
        });
    })
}
