//! 4-bit operands: nibbles in shared memory and registers, decoded to an A operand.

use super::flow::Carry;
use super::k_order::Nibbles;
use super::operand::{Half, RegOperand, check_shape, warp_row_and_lane};
use super::reg::{Reg, Var};
use super::state::{caller_scope, error};
use super::tile::{SwizzledOffset, TileRef};
use super::warp::lane_id;
use crate::layout::Swizzle;

/// 4-bit codes in the registers of a warpgroup, m × k, eight adjacent codes per register;
/// [`decode`](Self::decode) converts them to an A operand.
#[derive(Clone, Debug)]
pub struct RegNibbles {
    m: u32,
    k: u32,
    /// Two words for each 64 rows, 64 values of K and lane row (a lane has two rows per block).
    words: Vec<Reg<u32>>,
}

/// A lane's offsets in the tiles of [`RegNibbles::load_interleaved`], computed once before
/// the mainloop.
#[derive(Clone, Debug)]
pub struct NibbleOffsets {
    /// One offset for each 64 values of K.
    offsets: Vec<SwizzledOffset>,
}

impl NibbleOffsets {
    /// Computes the offsets for tiles that are one panel of `swizzle` wide.
    #[track_caller]
    pub fn new(swizzle: Swizzle) -> Self {
        let _caller = caller_scope();
        let (warp, lane) = warp_row_and_lane();
        let row = (warp >> 1) + (lane >> 2);
        let col = (lane & 3) * 8;
        let bytes = (0..swizzle.span().unwrap_or(0)).step_by(32);
        Self {
            offsets: bytes
                .map(|byte| SwizzledOffset::new(swizzle, row, col + byte))
                .collect(),
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
    /// The block of 64 values of K; the lane holds the 16 values from `16 * (lane % 4)`.
    pub k: u32,
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

    /// Loads two tiles as one operand with interleaved rows: of every 16 rows, the first 8 come
    /// from `upper` and the last 8 from `lower`. The tiles are whole panels.
    ///
    /// Returns one operand for each 64 values of K.
    #[track_caller]
    pub fn load_interleaved(
        offsets: &NibbleOffsets,
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
        let parts = offsets.offsets.iter().map(|&offset| {
            let blocks = (0..m / 64).flat_map(|block| {
                [upper, lower].into_iter().flat_map(move |from| {
                    let rows = 32 * block..32 * (block + 1);
                    from.slice(rows, 0..panel).load_swizzled::<u32, 2>(offset)
                })
            });
            Self::new(m, 64, blocks.collect())
        });
        parts.collect()
    }

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
        Self { m, k, words }
    }

    /// Decodes the nibbles to an A operand: `f` receives a word of eight codes and its position,
    /// and returns four pairs, pair i of nibbles i and i + 4.
    ///
    /// The operand holds K in the order [`Nibbles`]. Decode after the wait for the previous
    /// `wgmma`, whose operand may use the same registers.
    #[track_caller]
    pub fn decode<T: Half>(
        &self,
        mut f: impl FnMut(Reg<u32>, NibbleGroup) -> [Reg<T::Pair>; 4],
    ) -> RegOperand<T, Nibbles> {
        let _caller = caller_scope();
        let mut regs = Vec::new();
        for (i, words) in (0..).zip(self.words.chunks(4)) {
            let (block, k) = (i / (self.k / 64), i % (self.k / 64));
            let [above, below] = [false, true].map(|below| {
                let group = NibbleGroup { block, below, k };
                let words = &words[2 * usize::from(below)..][..2];
                words
                    .iter()
                    .flat_map(|&word| f(word, group))
                    .collect::<Vec<_>>()
            });
            // An instruction K of 16 takes two pairs of each row; odd registers hold the row 8 below.
            regs.extend(above.iter().zip(&below).flat_map(|(x, y)| [x.id(), y.id()]));
        }
        RegOperand::new(self.m, self.k, regs)
    }
}

impl Carry for RegNibbles {
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
