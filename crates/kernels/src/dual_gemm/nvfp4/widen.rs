//! The step that makes f16 of A's codes, with K in the order of the weights' operand.

use super::decode::{SMALLER, both, pair, scale, selector};
use super::scales::{THREADS, byte_of};
use crate::nvfp4::ScaleLayout;
use half::f16;
use warpline_ir::build::*;
use warpline_ir::{BuildErrors, F16x2, Kernel};

/// Eight numbers for each thread: one pair of each of the four groups of 16
/// that 64 of K have. Behind K they are zero.
pub(super) fn widen(layout: ScaleLayout) -> Result<Kernel, BuildErrors> {
    Kernel::build("nvfp4_widen", |k| {
        // Groups of 16 of a row; threads of a row; threads.
        let [groups, across, count] =
            ["groups", "across", "count"].map(|name| k.param::<u32>(name));
        let by_row = k.divisor("by_row");
        let (codes, scales) = (k.pointer::<u32>("codes"), k.pointer::<u8>("scales"));
        let to = k.pointer::<f16>("to");
        k.role("all").warps(THREADS / 32).body(|| {
            launch_dependents();
            let i = cta_id() * THREADS + thread_id();
            if_(i.lt(count), || {
                let row = by_row.of(i);
                let place = i - row * across;
                let (block, which) = (place >> 3u32, place & 7u32);
                let words: [Reg<F16x2>; 4] = std::array::from_fn(|lane| {
                    let group = block * 4u32 + lane as u32;
                    let word = Var::new(0u32);
                    if_(group.lt(groups), || {
                        // Of the group's two words the one that has the pair.
                        let first = row.mul_wide(groups * 2u32);
                        let at = first + (group * 2u32 + (which >> 2u32)).cast::<u64>();
                        let shifted = codes.load(at) >> ((which & 3u32) * 4u32);
                        let byte = scales.load(byte_of(layout, row, group, groups));
                        let number =
                            pair(shifted, 0) * scale(byte.cast::<u32>(), selector(0u32.reg()));
                        word.set((number * both(SMALLER)).bitcast::<u32>());
                    });
                    word.get().bitcast()
                });
                to.store_as(i.mul_wide(8u32), words);
            });
        });
    })
}
