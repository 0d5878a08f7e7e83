//! 4-bit operands: nibbles in shared memory and registers, decoded to an A operand.

use self::sealed::K64Offsets;
use super::bits::{lop3, prmt};
use super::flow::Carry;
use super::k_order::{KOrder, Natural, Nibbles};
use super::operand::{Half, RegOperand, check_shape, warp_row_and_lane};
use super::reg::{Reg, Value as _, Var};
use super::state::{caller_scope, error};
use super::tile::{SwizzledOffset, TileRef};
use super::warp::lane_id;
use crate::layout::Swizzle;
use std::marker::PhantomData;

/// 4-bit codes in the registers of a warpgroup, m × k, eight codes per register;
/// [`decode`](Self::decode) converts them to an A operand with K in order `K`.
#[derive(Clone, Debug)]
pub struct RegNibbles<K = Nibbles> {
    m: u32,
    k: u32,
    /// Two words for each 64 rows, 64 values of K and lane row (a lane has two rows per block).
    words: Vec<Reg<u32>>,
    order: PhantomData<K>,
}

/// A lane's offsets in the tiles of [`RegNibbles::load_interleaved`], computed once before
/// the mainloop.
#[derive(Clone, Debug)]
pub struct NibbleOffsets<K = Nibbles> {
    /// The offsets of each 64 values of K.
    offsets: Vec<K64Offsets>,
    order: PhantomData<K>,
}

/// A K order in which a lane can load and decode nibbles.
pub trait NibbleOrder: KOrder + sealed::Loads {}

mod sealed {
    use super::*;

    /// A lane's offsets of 64 values of K of a row.
    #[derive(Clone, Debug)]
    pub struct K64Offsets {
        pub(super) offsets: Vec<SwizzledOffset>,
        /// Selects the lane's byte of each of two words.
        pub(super) selector: Option<Reg<u32>>,
    }

    /// Loads a lane's 16 codes of 64 values of K of a row.
    pub trait Loads {
        /// Returns the offsets in a row of a panel, for each 32 bytes.
        fn offsets(swizzle: Swizzle, row: Reg<u32>, lane: Reg<u32>) -> Vec<K64Offsets>;
        /// Returns two words, in which nibbles i and i + 4 are a pair.
        fn load(from: TileRef<u8>, offsets: &K64Offsets) -> [Reg<u32>; 2];
    }
}

impl NibbleOrder for Nibbles {}

impl sealed::Loads for Nibbles {
    #[track_caller]
    fn offsets(swizzle: Swizzle, row: Reg<u32>, lane: Reg<u32>) -> Vec<K64Offsets> {
        let col = (lane & 3) * 8;
        let at = |byte: u32| K64Offsets {
            offsets: vec![SwizzledOffset::new(swizzle, row, col + byte)],
            selector: None,
        };
        first_bytes(swizzle).map(at).collect()
    }

    #[track_caller]
    fn load(from: TileRef<u8>, at: &K64Offsets) -> [Reg<u32>; 2] {
        from.load_swizzled::<u32, 2>(at.offsets[0])
    }
}

impl NibbleOrder for Natural {}

/// Lane t of four needs codes 2t and 2t + 1 of every eight, which are byte t of a word. It loads all
/// 32 bytes, as its neighbors do, and keeps a byte of each word.
impl sealed::Loads for Natural {
    #[track_caller]
    fn offsets(swizzle: Swizzle, row: Reg<u32>, lane: Reg<u32>) -> Vec<K64Offsets> {
        let selector = (lane & 3) * 0x11 + 0x40;
        let at = |byte: u32| {
            let halves = [byte, byte + 16].map(|byte| SwizzledOffset::new(swizzle, row, byte));
            K64Offsets {
                offsets: halves.into(),
                selector: Some(selector),
            }
        };
        first_bytes(swizzle).map(at).collect()
    }

    #[track_caller]
    fn load(from: TileRef<u8>, at: &K64Offsets) -> [Reg<u32>; 2] {
        let selector = at.selector.unwrap_or_else(|| 0x40u32.reg());
        [0, 1].map(|half| {
            let [a, b, c, d] = from.load_swizzled::<u32, 4>(at.offsets[half]);
            let [low, high] = [[a, b], [c, d]].map(|[x, y]| prmt(x, y, selector));
            let bytes = prmt(low, high, 0x5410u32);
            // Low nibbles of bytes 0 to 3 become nibbles 0 to 3, high nibbles become 4 to 7.
            let choose = |mask: u32, shifted: Reg<u32>| {
                lop3(bytes, mask, shifted, |x, mask, y| x & mask | y & !mask)
            };
            let low = choose(0x0f0f_0f0f, bytes >> 4u32);
            let high = choose(0xf0f0_f0f0, bytes << 4u32);
            prmt(low, high, 0x7520u32)
        })
    }
}

/// Returns the first byte of each 64 values of K of a panel.
fn first_bytes(swizzle: Swizzle) -> impl Iterator<Item = u32> {
    (0..swizzle.span().unwrap_or(0)).step_by(32)
}

impl<K: NibbleOrder> NibbleOffsets<K> {
    /// Computes the offsets for tiles that are one panel of `swizzle` wide.
    #[track_caller]
    pub fn new(swizzle: Swizzle) -> Self {
        let _caller = caller_scope();
        let (warp, lane) = warp_row_and_lane();
        let row = (warp >> 1) + (lane >> 2);
        Self {
            offsets: K::offsets(swizzle, row, lane),
            order: PhantomData,
        }
    }
}

/// The position of a word of nibbles in the operand: a row of the lane, and 16 adjacent k.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NibbleGroup {
    /// The block of 64 rows.
    pub block: u32,
    /// Whether the word is in the lane's second row of the block, 8 below the first.
    pub below: bool,
    /// The block of 64 values of K. In the order [`Nibbles`] the lane holds the 16 values from
    /// `16 * (lane % 4)`.
    pub k: u32,
    /// The word of the block. In the order [`Natural`] its pair i has values from `32 * word + 8 * i`.
    pub word: u32,
}

impl RegNibbles {
    /// Loads m × k/2 bytes from shared memory; each byte holds two adjacent k, the first in the
    /// low nibble.
    #[track_caller]
    pub fn load(from: &TileRef<u8>) -> Self {
        let _caller = caller_scope();
        let (m, k) = (from.rows(), 2 * from.cols());
        if !check_shape("an operand of nibbles", m, k, 64) {
            return Self::new(m, k, Vec::new());
        }
        let (warp, lane) = warp_row_and_lane();
        let row = warp + (lane >> 2);
        let col = (lane_id() & 3) * 8;
        let mut words = Vec::new();
        for block in 0..m / 64 {
            for byte in (0..k / 2).step_by(32) {
                for down in [0, 1] {
                    let row = row + (64 * block + 8 * down);
                    words.extend(from.load_as::<u32, 2>(row, col + byte));
                }
            }
        }
        Self::new(m, k, words)
    }
}

impl<K: NibbleOrder> RegNibbles<K> {
    /// Loads two tiles as one operand with interleaved rows: of every 16 rows, the first 8 come
    /// from `upper` and the last 8 from `lower`. The tiles are whole panels.
    ///
    /// Returns one operand for each 64 values of K.
    #[track_caller]
    pub fn load_interleaved(
        offsets: &NibbleOffsets<K>,
        upper: &TileRef<u8>,
        lower: &TileRef<u8>,
    ) -> Vec<Self> {
        let _caller = caller_scope();
        let (m, k) = (2 * upper.rows(), 2 * upper.cols());
        let panel = 32 * offsets.offsets.len() as u32;
        if (lower.rows(), lower.cols()) != (upper.rows(), upper.cols()) || upper.cols() != panel {
            error(
                "operand-shape",
                format!(
                    "load_interleaved() needs two equal tiles with rows of {panel} bytes; the tiles are {} x {} and {} x {}",
                    upper.rows(),
                    upper.cols(),
                    lower.rows(),
                    lower.cols()
                ),
            );
            return Vec::new();
        }
        if !check_shape("an operand of nibbles", m, k, 64) {
            return Vec::new();
        }
        let parts = offsets.offsets.iter().map(|offset| {
            let blocks = (0..m / 64).flat_map(|block| {
                [upper, lower].into_iter().flat_map(move |from| {
                    let rows = 32 * block..32 * (block + 1);
                    K::load(from.slice(rows, 0..panel), offset)
                })
            });
            Self::new(m, 64, blocks.collect())
        });
        parts.collect()
    }
}

impl<K: KOrder> RegNibbles<K> {
    /// Concatenates operands of 64 × 64 along K.
    #[track_caller]
    pub fn concat_k(parts: impl IntoIterator<Item = Self>) -> Self {
        let _caller = caller_scope();
        let mut all = Self::new(64, 0, Vec::new());
        for part in parts {
            if (part.m, part.k) != (64, 64) {
                let (m, k) = (part.m, part.k);
                let text = format!("concat_k() got an operand of {m} x {k}; each must be 64 x 64");
                error("operand-shape", text);
                return all;
            }
            all.k += part.k;
            all.words.extend(part.words);
        }
        all
    }

    fn new(m: u32, k: u32, words: Vec<Reg<u32>>) -> Self {
        Self {
            m,
            k,
            words,
            order: PhantomData,
        }
    }

    /// Decodes the nibbles to an A operand: `f` receives a word of eight codes and its position,
    /// and returns four pairs, pair i of nibbles i and i + 4.
    ///
    /// The operand holds K in the order `K`. Decode after the wait for the previous
    /// `wgmma`, whose operand may use the same registers.
    #[track_caller]
    pub fn decode<T: Half>(
        &self,
        mut f: impl FnMut(Reg<u32>, NibbleGroup) -> [Reg<T::Pair>; 4],
    ) -> RegOperand<T, K> {
        let _caller = caller_scope();
        let mut regs = Vec::new();
        for (i, words) in (0..).zip(self.words.chunks(4)) {
            let (block, k) = (i / (self.k / 64), i % (self.k / 64));
            let [above, below] = [false, true].map(|below| {
                let words = &words[2 * usize::from(below)..][..2];
                let pairs = (0..).zip(words).flat_map(|(word, &codes)| {
                    let group = NibbleGroup {
                        block,
                        below,
                        k,
                        word,
                    };
                    f(codes, group)
                });
                pairs.collect::<Vec<_>>()
            });
            // An instruction K of 16 takes two pairs of each row; odd registers hold the row 8 below.
            regs.extend(above.iter().zip(&below).flat_map(|(x, y)| [x.id(), y.id()]));
        }
        RegOperand::new(self.m, self.k, regs)
    }
}

impl<K: KOrder> Carry for RegNibbles<K> {
    type Vars = (u32, u32, Vec<Var<u32>>);
    #[track_caller]
    fn open(self) -> Self::Vars {
        (self.m, self.k, self.words.open())
    }
    #[track_caller]
    fn load(vars: &Self::Vars) -> Self {
        Self::new(vars.0, vars.1, Carry::load(&vars.2))
    }
    #[track_caller]
    fn store(vars: &Self::Vars, value: Self) {
        Carry::store(&vars.2, value.words);
    }
}
