//! The kernels that widen A to 16 bits or permute it, with K in the order of the decoded weights.

use super::decode::{DECODE_SCALE, DecodeTarget, byte_selector, splat};
use super::scales::{MAX_GROUPS, MAX_THREADS, THREADS, scale_byte_offset};
use crate::gemm::problem::MAX_EXTENT;
use crate::nvfp4::ScaleLayout;
use half::f16;
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, Element, Extent, Kernel, Scalar, Target};

/// Numbers per thread: the even or the odd pairs of a block of 64, so that two adjacent threads fill
/// whole sectors.
pub(super) const NUMBERS_PER_THREAD: u32 = 32;

/// Groups of 16 in a block.
const GROUPS: usize = 4;

/// A pair of each group, stored at once.
type Chunk<P> = [Reg<P>; GROUPS];

/// Builds the kernel that decodes A to f16. With `whole_blocks` (K is a multiple of 64) it issues all loads
/// part once.
pub(super) fn widen(
    layout: ScaleLayout,
    whole_blocks: bool,
    target: &Target,
) -> Result<Kernel, BuildErrors> {
    Kernel::build("nvfp4_widen", target, |k| {
        let grid = WidenGrid::declare(k);
        let (codes, scales) = (k.pointer::<u32>("codes"), k.pointer::<u8>("scales"));
        let to = k.pointer::<f16>("to").elements(grid.stored());
        grid.each(k, to, |part| {
            let first = (part.row.mul_wide(grid.groups) + part.group.cast::<u64>()) * 2u64;
            let scale_offset =
                |i: usize| scale_byte_offset(layout, part.row, part.group + i as u32, grid.groups);
            // The code words of both halves of each group, and its scale.
            let groups: [_; GROUPS] = match whole_blocks {
                true => {
                    // In both layouts the scales of a block are one word.
                    let [scale_word] = scales.load_as::<u32, 1>(scale_offset(0));
                    let words = [0u64, 4].map(|i| codes.load_as::<u32, 4>(first + i));
                    std::array::from_fn(|i| {
                        let word = |half: usize| words[i / 2][2 * (i % 2) + half];
                        ([word(0), word(1)], scale_word >> (8 * i as u32))
                    })
                }
                false => std::array::from_fn(|i| {
                    let vars = [0; 3].map(|zero: u32| Var::new(zero));
                    if_((part.group + i as u32).lt(grid.groups), || {
                        let words = codes.load_as::<u32, 2>(first + 2 * i as u64);
                        let scale = scales.load(scale_offset(i)).cast::<u32>();
                        let loaded = words.into_iter().chain([scale]);
                        loaded.zip(&vars).for_each(|(x, var)| var.set(x));
                    });
                    let [first, last, scale] = vars.map(|var| var.get());
                    ([first, last], scale)
                }),
            };
            // A shift moves the odd codes to the positions of the even ones.
            let shift = part.odd * 4u32;
            let numbers = groups.map(|(words, scale)| {
                let scale = f16::decode_scale(scale, byte_selector(0u32.reg()));
                words.map(|word| {
                    f16::decode8(word >> shift, [scale; 2]).map(|x| x * splat(DECODE_SCALE))
                })
            });
            part.chunks(|half, pair| numbers.map(|halves| halves[half][pair]))
        });
    })
}

/// Builds the kernel that permutes K of a 16-bit A.
pub(super) fn permute(target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("nvfp4_permute", target, |k| {
        let grid = WidenGrid::declare(k);
        let stride = k.param::<u64>("stride").at_least(16).multiple_of(8);
        let (from, to) = (k.pointer::<u16>("from"), k.pointer::<u16>("to"));
        to.elements(grid.stored());
        grid.each(k, to, |part| {
            let row = part.row.cast::<u64>() * stride;
            // Four words of each half of each group; a word holds two consecutive numbers.
            let groups: [_; GROUPS] = std::array::from_fn(|i| {
                let group = part.group + i as u32;
                let words = [0; 8].map(|zero: u32| Var::new(zero));
                if_(group.lt(grid.groups), || {
                    let first = row + (group * 16u32).cast::<u64>();
                    let loaded = [0u64, 8].map(|i| from.load_as::<u32, 4>(first + i));
                    let loaded = loaded.into_iter().flatten();
                    loaded.zip(&words).for_each(|(x, word)| word.set(x));
                });
                words.map(|word| word.get())
            });
            // Numbers i and i + 4 form a pair: the low or high halves of words i / 2 and i / 2 + 2.
            let halves = select(part.odd.ne(0u32), 0x7632u32, 0x5410u32);
            part.chunks(|half, pair| {
                groups.map(|words| {
                    let word = 4 * half + pair / 2;
                    prmt(words[word], words[word + 2], halves)
                })
            })
        });
    })
}

/// The division of work among threads.
struct WidenGrid {
    /// Groups of 16 per row.
    groups: Reg<u32>,
    threads_per_row: Reg<u32>,
    /// Threads of the launch.
    threads: Reg<u32>,
    by_row: FastDivisor,
}

/// A thread's part of a block.
struct BlockPart {
    row: Reg<u32>,
    /// The first of its four groups.
    group: Reg<u32>,
    /// 1 for the odd pairs, 0 for the even ones.
    odd: Reg<u32>,
}

impl BlockPart {
    /// Returns `f(half, pair)` for both halves of the groups and both of the thread's pairs. `pair` is 0 or 2,
    /// also in a thread of the odd pairs.
    fn chunks<P: Scalar>(&self, f: impl Fn(usize, usize) -> Chunk<P>) -> [Chunk<P>; 4] {
        std::array::from_fn(|i| f(i / 2, 2 * (i % 2)))
    }
}

impl WidenGrid {
    /// Declares the parameters.
    fn declare(k: Builder) -> Self {
        let [groups, threads_per_row, threads] =
            ["groups", "across", "count"].map(|name| k.param::<u32>(name));
        groups.at_least(1).at_most(MAX_GROUPS);
        threads_per_row
            .at_least(1)
            .at_most(MAX_EXTENT.div_ceil(NUMBERS_PER_THREAD));
        threads.at_most(MAX_THREADS);
        let by_row = k.divisor("by_row");
        Self {
            groups,
            threads_per_row,
            threads,
            by_row,
        }
    }

    /// Returns how many numbers all threads store.
    fn stored(&self) -> Extent {
        extent(self.threads) * NUMBERS_PER_THREAD
    }

    /// Stores the chunks that `f` returns for each block.
    fn each<T: Element, P: Scalar>(
        &self,
        k: Builder,
        to: Global<T>,
        f: impl Fn(BlockPart) -> [Chunk<P>; 4],
    ) {
        k.role("all").warps(THREADS / 32).body(|| {
            launch_dependents();
            let i = cta_id() * THREADS + thread_id();
            if_(i.lt(self.threads), || {
                let row = self.by_row.divide(i);
                let thread_in_row = i - row * self.threads_per_row;
                let odd = thread_in_row & 1u32;
                let chunks = f(BlockPart {
                    row,
                    group: (thread_in_row >> 1u32) * GROUPS as u32,
                    odd,
                });
                // Chunks of 8 numbers; every other chunk of a block belongs to this thread.
                let first =
                    (i >> 1u32).mul_wide(2 * NUMBERS_PER_THREAD) + (odd * 8u32).cast::<u64>();
                for (offset, chunk) in (0u64..).step_by(16).zip(chunks) {
                    to.store_as(first + offset, chunk);
                }
            });
        });
    }
}
