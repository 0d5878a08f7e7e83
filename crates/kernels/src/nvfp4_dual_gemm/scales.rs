//! Where scales lie, and the step that brings them from one layout to the other.

use crate::gemm::problem::MOST;
use crate::nvfp4::{BLOCK, ScaleLayout};
use warpline_ir::build::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// Threads of a CTA that works element by element.
pub(super) const THREADS: u32 = 256;

/// The most threads of a step that works element by element: they are divided by [`Divisor`]s.
pub(super) const MOST_THREADS: u32 = (1 << 31) - 1;

/// The most groups of 16 of K.
pub(super) const MOST_GROUPS: u32 = MOST.div_ceil(BLOCK as u32);

/// Bytes of the scales of 128 rows and 64 of K in the layout of blocks.
pub(super) const TILE: u32 = 512;

/// The same in words, each of which has the four scales of a row.
pub(super) const TILE_WORDS: u32 = TILE / 4;

/// The byte of the scale of a row and a group of 16 of `groups`.
#[track_caller]
pub(super) fn byte_of(
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

/// Copies plain scales to the layout of blocks, four of a row for each thread;
/// what lies outside is zero.
pub(super) fn arrange(target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("nvfp4_scales", target, |k| {
        let [rows, groups, words] = ["rows", "groups", "words"].map(|name| k.param::<u32>(name));
        rows.at_least(1).at_most(MOST);
        groups.at_least(1).at_most(MOST_GROUPS);
        words.at_most(MOST_THREADS);
        let from = k.pointer::<u8>("from").elements(extent(rows) * groups);
        let to = k.pointer::<u32>("to").elements(words);
        k.role("all").warps(THREADS / 32).body(|| {
            let word = cta_id() * THREADS + thread_id();
            if_(word.lt(words), || {
                let across = groups.div_ceil(4u32);
                let (tile, inside) = (word >> 7u32, word & 127u32);
                let down = tile / across;
                let row = (down << 7u32) + (inside & 3u32) * 32u32 + (inside >> 2u32);
                let first = (tile - down * across) * 4u32;
                let packed = Var::new(0u32);
                for i in 0..4u32 {
                    let group = first + i;
                    if_(row.lt(rows) & group.lt(groups), || {
                        let at = byte_of(ScaleLayout::Plain, row, group, groups);
                        let scale = from.load(at).cast::<u32>();
                        packed.set(packed.get() | scale << (8 * i));
                    });
                }
                to.store(word, packed.get());
            });
        });
    })
}
