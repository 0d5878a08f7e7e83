//! The step that moves rows of codes to where boxes of them can be copied.

use super::scales::{MOST_GROUPS, MOST_THREADS, THREADS};
use warpline_ir::build::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// Copies rows of an odd number of 8 bytes so that each starts on 16, with
/// zeros behind it: 8 bytes for each thread.
pub(super) fn apart(target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("nvfp4_rows", target, |k| {
        // Words of a row, there and here; threads.
        let [words, across, count] = ["words", "across", "count"].map(|name| k.param::<u32>(name));
        words.at_least(1).at_most(MOST_GROUPS);
        across.at_least(2).at_most(MOST_GROUPS + 1).multiple_of(2);
        count.at_most(MOST_THREADS);
        let by_row = k.divisor("by_row");
        let (from, to) = (k.pointer::<u64>("from"), k.pointer::<u64>("to"));
        to.elements(count);
        k.role("all").warps(THREADS / 32).body(|| {
            let i = cta_id() * THREADS + thread_id();
            if_(i.lt(count), || {
                let row = by_row.of(i);
                let col = i - row * across;
                let word = Var::new(0u64);
                if_(col.lt(words), || {
                    word.set(from.load(row.mul_wide(words) + col.cast::<u64>()));
                });
                to.store(i, word.get());
            });
        });
    })
}
