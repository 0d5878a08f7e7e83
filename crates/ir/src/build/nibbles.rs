//! Operands of nibbles: four bits of each number in shared memory and registers, decoded on the way.

use super::flow::Carry;
use super::korder::Nibbles;
use super::operand::{Half, RegOperand, seat, whole};
use super::reg::{Reg, Var};
use super::state::{error, here};
use super::tile::{Spot, TileRef};
use super::warp::lane_id;
use crate::layout::Swizzle;

/// Numbers of 4 bits in the registers of a warpgroup, m × k in words of eight
/// neighbours: what a left operand is [decoded](Self::decode) from.
#[derive(Clone, Debug)]
pub struct RegNibbles {
    m: u32,
    k: u32,
    /// For each 64 rows, 64 of K and row of the lane's two there: two words.
    words: Vec<Reg<u32>>,
}

/// Where a lane's nibbles are in the tiles of [`RegNibbles::beside`]: the same in
/// every step, so worked out before the loop.
#[derive(Clone, Debug)]
pub struct NibbleSeat {
    /// For every 64 of K.
    spots: Vec<Spot>,
}

impl NibbleSeat {
    /// In tiles of that swizzle, a panel wide.
    #[track_caller]
    pub fn new(swizzle: Swizzle) -> Self {
        let _at = here();
        let (warp, lane) = seat();
        let row = (warp >> 1) + (lane >> 2);
        let col = (lane & 3) * 8;
        let bytes = (0..swizzle.span().unwrap_or(0)).step_by(32);
        Self {
            spots: bytes
                .map(|byte| Spot::new(swizzle, row, col + byte))
                .collect(),
        }
    }
}

/// One of a lane's rows of an operand, and 16 of its K there, which lie together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NibbleGroup {
    /// The block of 64 rows.
    pub block: u32,
    /// Is it the row eight below the lane's first of the block?
    pub below: bool,
    /// The block of 64 of K, of which the lane has group `lane % 4` of 16.
    pub k: u32,
}

impl RegNibbles {
    /// Reads a tile of bytes from shared memory: two neighbours of K in each,
    /// the first in the low half, so m × k/2 bytes.
    #[track_caller]
    pub fn load(from: &TileRef<u8>) -> Self {
        let _at = here();
        let (m, k) = (from.rows(), 2 * from.cols());
        if !whole("an operand of nibbles", m, k, 64) {
            return Self::new(m, k, Vec::new());
        }
        let (warp, lane) = seat();
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

    /// Reads two tiles as one operand, in which eight rows of the one stand
    /// above eight of the other: 32 rows of each in 64. The tiles are whole panels.
    #[track_caller]
    pub fn beside(seat: &NibbleSeat, upper: &TileRef<u8>, lower: &TileRef<u8>) -> Vec<Self> {
        let _at = here();
        let (m, k) = (2 * upper.rows(), 2 * upper.cols());
        let panel = 32 * seat.spots.len() as u32;
        if (lower.rows(), lower.cols()) != (upper.rows(), upper.cols()) || upper.cols() != panel {
            error(
                "operand-shape",
                format!(
                    "rows of two tiles of {panel} bytes a row stand in eights, not of {} x {} and {} x {}",
                    upper.rows(),
                    upper.cols(),
                    lower.rows(),
                    lower.cols()
                ),
            );
            return Vec::new();
        }
        if !whole("an operand of nibbles", m, k, 64) {
            return Vec::new();
        }
        let parts = seat.spots.iter().map(|&spot| {
            let blocks = (0..m / 64).flat_map(|block| {
                [upper, lower].into_iter().flat_map(move |from| {
                    let rows = 32 * block..32 * (block + 1);
                    from.slice(rows, 0..panel).load_spot::<u32, 2>(spot)
                })
            });
            Self::new(m, 64, blocks.collect())
        });
        parts.collect()
    }

    /// Operands of 64 rows and 64 of K each, which follow each other along K, as one.
    #[track_caller]
    pub fn joined(parts: impl IntoIterator<Item = Self>) -> Self {
        let _at = here();
        let mut all = Self::new(64, 0, Vec::new());
        for part in parts {
            if (part.m, part.k) != (64, 64) {
                let (m, k) = (part.m, part.k);
                let text = format!("operands of 64 x 64 are joined along K, not of {m} x {k}");
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

    /// Makes numbers of the nibbles: `f` gets a word of eight and where it
    /// lies, and gives four pairs, pair i of nibbles i and i + 4.
    ///
    /// The operand has K in the order [`Nibbles`]. Decode after the wait for
    /// the products before: their operand may be in the same registers.
    #[track_caller]
    pub fn decode<T: Half>(
        &self,
        mut f: impl FnMut(Reg<u32>, NibbleGroup) -> [Reg<T::Pair>; 4],
    ) -> RegOperand<T, Nibbles> {
        let _at = here();
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
            // A step of 16 takes two pairs of each row, rows +8 for odd registers.
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
