//! The kernel that copies rows of codes to 16-byte-aligned rows, as TMA needs them.

use super::scales::{MAX_GROUPS, MAX_THREADS, THREADS};
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// Builds the kernel. It pads rows of an odd number of 8-byte words with zeros; each thread copies one
/// word.
pub(super) fn align_rows(target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("nvfp4_rows", target, |k| {
        // Words of an input row and of an output row; number of threads.
        let [words, padded_words, threads] =
            ["words", "across", "count"].map(|name| k.param::<u32>(name));
        words.at_least(1).at_most(MAX_GROUPS);
        padded_words
            .at_least(2)
            .at_most(MAX_GROUPS + 1)
            .multiple_of(2);
        threads.at_most(MAX_THREADS);
        let by_row = k.divisor("by_row");
        let (from, to) = (k.pointer::<u64>("from"), k.pointer::<u64>("to"));
        to.elements(threads);
        k.role("all").warps(THREADS / 32).body(|| {
            let i = cta_id() * THREADS + thread_id();
            if_(i.lt(threads), || {
                let row = by_row.divide(i);
                let col = i - row * padded_words;
                let word = Var::new(0u64);
                if_(col.lt(words), || {
                    word.set(from.load(row.mul_wide(words) + col.cast::<u64>()));
                });
                to.store(i, word.get());
            });
        });
    })
}
