//! The steps that widen A to 16 bits, with K in the order of the weights' operand.

use super::decode::{Decoded, SMALLER, both, selector};
use super::scales::{MOST_GROUPS, MOST_THREADS, THREADS, byte_of};
use crate::gemm::problem::MOST;
use crate::nvfp4::ScaleLayout;
use half::f16;
use warpline_ir::build::*;
use warpline_ir::{BuildErrors, Element, Extent, Kernel, Scalar, Target};

/// Numbers of a thread: of the 64 of K of a block the even or the odd pairs, so
/// that two threads side by side fill whole sectors of memory.
pub(super) const EACH: u32 = 32;

/// Groups of 16 of a block.
const GROUPS: usize = 4;

/// What a thread writes at a time: a pair of each group.
type Chunk<P> = [Reg<P>; GROUPS];

/// Makes f16 of A's codes; of a `whole` number of blocks, all loads are issued at once.
pub(super) fn widen(
    layout: ScaleLayout,
    whole: bool,
    target: &Target,
) -> Result<Kernel, BuildErrors> {
    Kernel::build("nvfp4_widen", target, |k| {
        let place = Place::declare(k);
        let (codes, scales) = (k.pointer::<u32>("codes"), k.pointer::<u8>("scales"));
        let to = k.pointer::<f16>("to").elements(place.written());
        place.each(k, to, |at| {
            let first = (at.row.mul_wide(place.groups) + at.group.cast::<u64>()) * 2u64;
            let byte = |i: usize| byte_of(layout, at.row, at.group + i as u32, place.groups);
            // Of each group the words of its halves, and its scale.
            let groups: [_; GROUPS] = match whole {
                true => {
                    // In both layouts the scales of a block lie in one word.
                    let [four] = scales.load_as::<u32, 1>(byte(0));
                    let words = [0u64, 4].map(|i| codes.load_as::<u32, 4>(first + i));
                    std::array::from_fn(|i| {
                        let word = |half: usize| words[i / 2][2 * (i % 2) + half];
                        ([word(0), word(1)], four >> (8 * i as u32))
                    })
                }
                false => std::array::from_fn(|i| {
                    let read = [0; 3].map(|zero: u32| Var::new(zero));
                    if_((at.group + i as u32).lt(place.groups), || {
                        let words = codes.load_as::<u32, 2>(first + 2 * i as u64);
                        let scale = scales.load(byte(i)).cast::<u32>();
                        let found = words.into_iter().chain([scale]);
                        found.zip(&read).for_each(|(x, var)| var.set(x));
                    });
                    let [first, last, scale] = read.map(|var| var.get());
                    ([first, last], scale)
                }),
            };
            // Odd codes are where the even ones are after a shift.
            let shift = at.odd * 4u32;
            let numbers = groups.map(|(words, scale)| {
                let scale = f16::scale(scale, selector(0u32.reg()));
                words.map(|word| f16::numbers(word >> shift, scale).map(|x| x * both(SMALLER)))
            });
            at.chunks(|half, pair| numbers.map(|halves| halves[half][pair]))
        });
    })
}

/// Puts K of an A that is of 16 bits in order.
pub(super) fn permute(target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("nvfp4_permute", target, |k| {
        let place = Place::declare(k);
        let stride = k.param::<u64>("stride").at_least(16).multiple_of(8);
        let (from, to) = (k.pointer::<u16>("from"), k.pointer::<u16>("to"));
        to.elements(place.written());
        place.each(k, to, |at| {
            let row = at.row.cast::<u64>() * stride;
            // Of each group four words of each half, each of two neighbours.
            let groups: [_; GROUPS] = std::array::from_fn(|i| {
                let group = at.group + i as u32;
                let words = [0; 8].map(|zero: u32| Var::new(zero));
                if_(group.lt(place.groups), || {
                    let first = row + (group * 16u32).cast::<u64>();
                    let loaded = [0u64, 8].map(|i| from.load_as::<u32, 4>(first + i));
                    let loaded = loaded.into_iter().flatten();
                    loaded.zip(&words).for_each(|(x, word)| word.set(x));
                });
                words.map(|word| word.get())
            });
            // Numbers i and i + 4 are a pair: of words i / 2 and i / 2 + 2, low or high.
            let halves = select(at.odd.ne(0u32), 0x7632u32, 0x5410u32);
            at.chunks(|half, pair| {
                groups.map(|words| {
                    let word = 4 * half + pair / 2;
                    prmt(words[word], words[word + 2], halves)
                })
            })
        });
    })
}

/// Who does what.
struct Place {
    /// Groups of 16 of a row; threads of a row; threads.
    groups: Reg<u32>,
    across: Reg<u32>,
    count: Reg<u32>,
    by_row: Divisor,
}

/// A thread's part of a block.
struct At {
    row: Reg<u32>,
    /// The first of the four groups.
    group: Reg<u32>,
    /// 1 where it has the odd pairs.
    odd: Reg<u32>,
}

impl At {
    /// What `f` gives of each half of the groups and its two pairs, counted as
    /// if they were the even ones: 0 and 2.
    fn chunks<P: Scalar>(&self, f: impl Fn(usize, usize) -> Chunk<P>) -> [Chunk<P>; 4] {
        std::array::from_fn(|i| f(i / 2, 2 * (i % 2)))
    }
}

impl Place {
    /// Declares the parameters, which come first.
    fn declare(k: Builder) -> Self {
        let [groups, across, count] =
            ["groups", "across", "count"].map(|name| k.param::<u32>(name));
        groups.at_least(1).at_most(MOST_GROUPS);
        across.at_least(1).at_most(MOST.div_ceil(EACH));
        count.at_most(MOST_THREADS);
        let by_row = k.divisor("by_row");
        Self {
            groups,
            across,
            count,
            by_row,
        }
    }

    /// Numbers that all threads write.
    fn written(&self) -> Extent {
        extent(self.count) * EACH
    }

    /// Writes `f` of every block: pairs i of its groups lie together.
    fn each<T: Element, P: Scalar>(
        &self,
        k: Builder,
        to: Global<T>,
        f: impl Fn(At) -> [Chunk<P>; 4],
    ) {
        k.role("all").warps(THREADS / 32).body(|| {
            launch_dependents();
            let i = cta_id() * THREADS + thread_id();
            if_(i.lt(self.count), || {
                let row = self.by_row.of(i);
                let place = i - row * self.across;
                let odd = place & 1u32;
                let chunks = f(At {
                    row,
                    group: (place >> 1u32) * GROUPS as u32,
                    odd,
                });
                // Chunks of 8 numbers: those of a block, of which every other is this thread's.
                let first = (i >> 1u32).mul_wide(2 * EACH) + (odd * 8u32).cast::<u64>();
                for (at, chunk) in (0u64..).step_by(16).zip(chunks) {
                    to.store_as(first + at, chunk);
                }
            });
        });
    }
}
