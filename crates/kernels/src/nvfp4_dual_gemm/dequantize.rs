//! The schedule `dequantizer`: a warpgroup decodes weights from one ring into a second ring, from which
//! the consumers multiply.

use super::context::Context;
use super::decode::{DecodeTarget, byte_selector};
use super::scales::TILE_WORDS;
use super::units::{BLOCKS_PER_PANEL, K_BLOCK, OUTPUTS, PANEL_BYTES};
use crate::gemm::tile_scheduler::TileCoord;
use warpline_ir::Swizzle;
use warpline_ir::builder::*;

/// Threads of the dequantizer. Each decodes one row of a weight tile, or every 128th row.
const THREADS: u32 = 128;

/// Declares the ring of decoded weights and the role that fills it.
pub(super) fn role<T: DecodeTarget>(k: Builder, context: &Context<'_, T>) -> Ring<Tile<T>> {
    let c = context.config;
    let tile_n = c.schedule.tile_n();
    let rows = 2 * tile_n;
    let ring = k.ring("decoded", c.stages, |s| s.tile::<T>(rows, K_BLOCK));
    let ring = ring.broadcast();
    let role = k.role("dequant").warps(THREADS / 32);
    let role = role.registers_opt(c.schedule.dequantizer_registers());
    role.body(|| {
        let threads: Vec<_> = (0..rows)
            .step_by(THREADS as usize)
            .map(|first| WeightRow::new(tile_n, first))
            .collect();
        let selectors = std::array::from_fn(|i| byte_selector((i as u32).reg()));
        let weights = context.rings[0].weights;
        context.each(|tile| {
            let offsets: Vec<_> = threads
                .iter()
                .map(|row| row.offset(context, tile))
                .collect();
            let first = context.first_panel();
            steps(context.rounds).each(|round| {
                let codes = weights.wait();
                for block in 0..BLOCKS_PER_PANEL {
                    let to = ring.acquire();
                    for (row, &offset) in threads.iter().zip(&offsets) {
                        let unit = || {
                            let [four] =
                                codes.1.load_as::<u32, 1>(0u32, offset + block * TILE_WORDS);
                            let four = context.zero_scales_past_k(
                                four,
                                (first + round) * BLOCKS_PER_PANEL + block,
                            );
                            row.decode(block, codes.0, four, selectors, to.tiles());
                        };
                        match row.exists {
                            Some(exists) => if_(exists, unit),
                            None => unit(),
                        }
                    }
                    to.commit();
                }
                codes.release();
            });
        });
    });
    ring
}

/// Declares a consumer that multiplies its 64 rows of decoded weights; `end` gets the accumulator of a
/// tile.
pub(super) fn consumer<T: DecodeTarget>(
    k: Builder,
    context: &Context<'_, T>,
    decoded: Ring<Tile<T>>,
    i: u32,
    end: impl FnOnce(Frag, TileCoord),
) {
    let c = context.config;
    context.consumer(k, i).body(|| {
        wait_prerequisites();
        let rows = 2 * OUTPUTS * i..2 * OUTPUTS * (i + 1);
        context.each(|tile| {
            let acc = Acc::new(2 * OUTPUTS, c.tile_m);
            let step = || {
                let weights = decoded.wait();
                let x = context.rings[0].x.wait();
                let tile = weights.tiles().slice(rows.clone(), 0..K_BLOCK);
                acc.mma(
                    &tile.with_k_order::<Nibbles>(),
                    &x.tiles().with_k_order::<Nibbles>(),
                );
                weights.release_after(&acc);
                x.release_after(&acc);
            };
            steps(context.rounds).each(|_| (0..BLOCKS_PER_PANEL).for_each(|_| step()));
            end(acc.into_frag(), tile);
        });
    });
}

/// A row of a weight tile that a thread decodes.
struct WeightRow {
    /// The row in its weight, gate or up.
    own: Reg<u32>,
    is_up: Reg<bool>,
    /// Does the row exist? `None`: it exists in every thread.
    exists: Option<Reg<bool>>,
    /// Offsets of each 16 bytes of the row: of the codes, and of the decoded numbers.
    from: Vec<SwizzledOffset>,
    to: Vec<SwizzledOffset>,
}

impl WeightRow {
    /// Returns this thread's row of the 128 rows from `first` on.
    #[track_caller]
    fn new(tile_n: u32, first: u32) -> Self {
        let row = thread_in_role() + first;
        let is_up = row.ge(tile_n);
        let own = select(is_up, row - tile_n, row);
        // Blocks of eight rows of gate and up alternate.
        let up = select(is_up, 8u32, 0u32);
        let below = ((own >> 3u32) << 4u32) + (own & 7u32) + up;
        let spots = |row: Reg<u32>| {
            let bytes = (0..PANEL_BYTES).step_by(16);
            bytes
                .map(|byte| SwizzledOffset::new(Swizzle::B128, row, byte))
                .collect()
        };
        Self {
            own,
            is_up,
            exists: (first + THREADS > 2 * tile_n).then(|| row.lt(2 * tile_n)),
            from: spots(row),
            to: spots(below),
        }
    }

    /// Returns the word offset in a slot of this row's scales for the first 64 elements of K.
    #[track_caller]
    fn offset<T: DecodeTarget>(&self, context: &Context<'_, T>, tile: TileCoord) -> Reg<u32> {
        let schedule = context.config.schedule;
        let first = tile.n * schedule.tile_n();
        let weight_words = schedule.scale_words(schedule.tile_n());
        let offset = context.scale_offset(first + self.own, first);
        offset + select(self.is_up, weight_words, 0u32)
    }

    /// Decodes a block of 64 elements of K. Pair i of each half of a group is stored next to those of the
    /// other three groups: the K order of A.
    #[track_caller]
    fn decode<T: DecodeTarget>(
        &self,
        block: u32,
        codes: TileRef<u8>,
        four: Reg<u32>,
        selectors: [Reg<u32>; 4],
        to: TileRef<T>,
    ) {
        let words = [0, 1].map(|i| {
            let spot = self.from[2 * block as usize + i];
            codes.load_swizzled::<u32, 4>(spot)
        });
        let scales = selectors.map(|pick| T::decode_scale(four, pick));
        for half in 0..2 {
            let pairs: [_; 4] = std::array::from_fn(|group| {
                let word = words[group / 2][2 * (group % 2) + half];
                T::decode8(word, scales[group])
            });
            for pair in 0..4 {
                to.store_swizzled(self.to[4 * half + pair], pairs.map(|p| p[pair]));
            }
        }
    }
}
