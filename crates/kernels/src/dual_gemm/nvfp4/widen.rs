//! The steps that make of A what the line takes: 16 bits of each number, with
//! K in the order of the weights' operand.

use super::decode::{Decoded, SMALLER, both, selector};
use super::scales::{THREADS, byte_of};
use crate::nvfp4::ScaleLayout;
use half::f16;
use warpline_ir::build::*;
use warpline_ir::{BuildErrors, Element, Kernel, Scalar};

/// Numbers of a thread: half of each of the four groups of 16 that 64 of K have.
pub(super) const EACH: u32 = 32;

/// Those groups.
const GROUPS: usize = 4;

/// Makes f16 of A's codes; of a `whole` number of blocks, all loads are issued at once.
pub(super) fn widen(layout: ScaleLayout, whole: bool) -> Result<Kernel, BuildErrors> {
    Kernel::build("nvfp4_widen", |k| {
        let place = Place::declare(k);
        let (codes, scales) = (k.pointer::<u32>("codes"), k.pointer::<u8>("scales"));
        let to = k.pointer::<f16>("to");
        place.each(k, to, |at| {
            let first = at.row.mul_wide(place.groups * 2u32) + at.half.cast::<u64>();
            let word = |i: u32| codes.load(first + ((at.group + i) * 2u32).cast::<u64>());
            let byte = |i: u32| byte_of(layout, at.row, at.group + i, place.groups);
            let groups = 0..GROUPS as u32;
            let loaded: Vec<_> = match (layout, whole) {
                // The scales of four groups lie in one word.
                (ScaleLayout::Block, true) => {
                    let [four] = scales.load_as::<u32, 1>(byte(0));
                    let words: Vec<_> = groups.map(word).collect();
                    (0..)
                        .zip(words)
                        .map(|(i, word)| (word, four >> (8u32 * i)))
                        .collect()
                }
                (ScaleLayout::Plain, true) => groups
                    .map(|i| (word(i), scales.load(byte(i)).cast::<u32>()))
                    .collect(),
                _ => groups
                    .map(|i| {
                        let both = [0, 1].map(|_| Var::new(0u32));
                        if_((at.group + i).lt(place.groups), || {
                            both[0].set(word(i));
                            both[1].set(scales.load(byte(i)).cast::<u32>());
                        });
                        (both[0].get(), both[1].get())
                    })
                    .collect(),
            };
            std::array::from_fn(|i| {
                let (word, scale) = loaded[i];
                let scale = f16::scale(scale, selector(0u32.reg()));
                f16::numbers(word, scale).map(|pair| pair * both(SMALLER))
            })
        });
    })
}

/// Puts K of an A that is of 16 bits in order.
pub(super) fn permute() -> Result<Kernel, BuildErrors> {
    Kernel::build("nvfp4_permute", |k| {
        let place = Place::declare(k);
        let stride = k.param::<u64>("stride");
        let (from, to) = (k.pointer::<u16>("from"), k.pointer::<u16>("to"));
        place.each(k, to, |at| {
            std::array::from_fn(|i| {
                let group = at.group + i as u32;
                let words: [Var<u32>; 4] = std::array::from_fn(|_| Var::new(0u32));
                if_(group.lt(place.groups), || {
                    let first = at.row.cast::<u64>() * stride;
                    let inside = group * 16u32 + at.half * 8u32;
                    let loaded = from.load_as::<u32, 4>(first + inside.cast::<u64>());
                    for (word, loaded) in words.iter().zip(loaded) {
                        word.set(loaded);
                    }
                });
                // Numbers i and i + 4 as a pair: words i / 2 and i / 2 + 2, low or high.
                let words = words.map(|word| word.get());
                [(0, 0x5410), (0, 0x7632), (1, 0x5410), (1, 0x7632)]
                    .map(|(i, halves)| prmt(words[i], words[i + 2], halves as u32))
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

/// Halves of the groups of 16 that 64 of K have, and the row they are in.
struct At {
    row: Reg<u32>,
    /// The first of the four groups.
    group: Reg<u32>,
    half: Reg<u32>,
}

impl Place {
    /// Declares the parameters, which come first.
    fn declare(k: Builder) -> Self {
        let [groups, across, count] =
            ["groups", "across", "count"].map(|name| k.param::<u32>(name));
        let by_row = k.divisor("by_row");
        Self {
            groups,
            across,
            count,
            by_row,
        }
    }

    /// Writes `f` of every half of four groups: pairs i of these lie together.
    fn each<T: Element, P: Scalar>(
        &self,
        k: Builder,
        to: Global<T>,
        f: impl Fn(At) -> [[Reg<P>; 4]; GROUPS],
    ) {
        k.role("all").warps(THREADS / 32).body(|| {
            launch_dependents();
            let i = cta_id() * THREADS + thread_id();
            if_(i.lt(self.count), || {
                let row = self.by_row.of(i);
                let place = i - row * self.across;
                let four = f(At {
                    row,
                    group: (place >> 1u32) * GROUPS as u32,
                    half: place & 1u32,
                });
                for pair in 0..4usize {
                    let at = i.mul_wide(EACH) + (8 * pair) as u64;
                    to.store_as(at, four.map(|pairs| pairs[pair]));
                }
            });
        });
    }
}
