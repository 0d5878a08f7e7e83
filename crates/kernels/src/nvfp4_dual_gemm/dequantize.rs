//! The schedule `dequantizer`: a warpgroup decodes weights from one ring into a second ring that
//! the consumers read.

use super::context::Context;
use super::decode::{DecodeTarget, byte_selector};
use super::units::{BLOCKS_PER_PANEL, K_BLOCK, OUTPUTS, PANEL_BYTES};
use crate::gemm::tile_scheduler::TileCoord;
use warpline_ir::Swizzle;
use warpline_ir::builder::*;

/// Threads of the dequantizer. Each thread decodes one row of a weight tile, or every 128th row.
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
        let weight_rows: Vec<_> = (0..rows)
            .step_by(THREADS as usize)
            .map(|first| WeightRow::new(tile_n, first))
            .collect();
        let selectors = std::array::from_fn(|i| byte_selector((i as u32).reg()));
        let weights = context.rings[0].weights;
        let block_words = context.spec.scale_boxes.block_words();
        context.each_tile(|tile| {
            let offsets: Vec<_> = weight_rows
                .iter()
                .map(|row| row.offset(context, tile))
                .collect();
            let first_panel = context.first_panel();
            steps(context.rounds).each(|round| {
                let codes = weights.wait();
                for block in 0..BLOCKS_PER_PANEL {
                    let decoded = ring.acquire();
                    for (row, &offset) in weight_rows.iter().zip(&offsets) {
                        let decode_row = || {
                            let [scale_word] = codes
                                .1
                                .load_as::<u32, 1>(0u32, offset + block * block_words);
                            let scale_word = context.zero_scales_past_k(
                                scale_word,
                                (first_panel + round) * BLOCKS_PER_PANEL + block,
                            );
                            row.decode(block, codes.0, scale_word, selectors, decoded.tiles());
                        };
                        match row.in_range {
                            Some(in_range) => if_(in_range, decode_row),
                            None => decode_row(),
                        }
                    }
                    decoded.commit();
                }
                codes.release();
            });
        });
    });
    ring
}

/// Declares a consumer that multiplies its 64 rows of decoded weights; `finish` takes the accumulator
/// of a tile.
pub(super) fn consumer<T: DecodeTarget>(
    k: Builder,
    context: &Context<'_, T>,
    decoded: Ring<Tile<T>>,
    i: u32,
    finish: impl FnOnce(Frag, TileCoord),
) {
    let c = context.config;
    context.consumer(k, i).body(|| {
        wait_prerequisites();
        let rows = 2 * OUTPUTS * i..2 * OUTPUTS * (i + 1);
        context.each_tile(|tile| {
            let acc = Acc::new(2 * OUTPUTS, c.tile_m);
            let multiply_block = || {
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
            steps(context.rounds).each(|_| (0..BLOCKS_PER_PANEL).for_each(|_| multiply_block()));
            finish(acc.into_frag(), tile);
        });
    });
}

/// A row of a weight tile that a thread decodes.
struct WeightRow {
    /// The row in its weight, gate or up.
    row_in_weight: Reg<u32>,
    is_up: Reg<bool>,
    /// Is the row in the tile? `None`: it is in every thread.
    in_range: Option<Reg<bool>>,
    /// Offsets of each 16 bytes of the row's codes.
    code_offsets: Vec<SwizzledOffset>,
    /// Offsets of each 16 bytes of the decoded row.
    decoded_offsets: Vec<SwizzledOffset>,
}

impl WeightRow {
    /// Returns this thread's row of the 128 rows from `first` on.
    #[track_caller]
    fn new(tile_n: u32, first: u32) -> Self {
        let row = thread_in_role() + first;
        let is_up = row.ge(tile_n);
        let row_in_weight = select(is_up, row - tile_n, row);
        // Blocks of eight rows of gate and up alternate in the decoded tile.
        let up = select(is_up, 8u32, 0u32);
        let decoded_row = ((row_in_weight >> 3u32) << 4u32) + (row_in_weight & 7u32) + up;
        let row_offsets = |row: Reg<u32>| {
            let bytes = (0..PANEL_BYTES).step_by(16);
            bytes
                .map(|byte| SwizzledOffset::new(Swizzle::B128, row, byte))
                .collect()
        };
        Self {
            row_in_weight,
            is_up,
            in_range: (first + THREADS > 2 * tile_n).then(|| row.lt(2 * tile_n)),
            code_offsets: row_offsets(row),
            decoded_offsets: row_offsets(decoded_row),
        }
    }

    /// Returns the word offset in a slot of this row's scales for the first 64 elements of K.
    #[track_caller]
    fn offset<T: DecodeTarget>(&self, context: &Context<'_, T>, tile: TileCoord) -> Reg<u32> {
        let schedule = context.config.schedule;
        let first = tile.n * schedule.tile_n();
        let weight_words = context.spec.lower_scale_words();
        let offset = context.scale_offset(first + self.row_in_weight, first);
        offset + select(self.is_up, weight_words, 0u32)
    }

    /// Decodes a block of 64 elements of K. It stores pair i of each half of a group next to pair i of the
    /// other three groups: the K order of A.
    #[track_caller]
    fn decode<T: DecodeTarget>(
        &self,
        block: u32,
        codes: TileRef<u8>,
        scale_word: Reg<u32>,
        selectors: [Reg<u32>; 4],
        to: TileRef<T>,
    ) {
        let words = [0, 1]
            .map(|i| codes.load_swizzled::<u32, 4>(self.code_offsets[2 * block as usize + i]));
        let scales = selectors.map(|selector| T::decode_scale(scale_word, selector));
        for half in 0..2 {
            let pairs: [_; 4] = std::array::from_fn(|group| {
                let word = words[group / 2][2 * (group % 2) + half];
                T::decode8(word, [scales[group]; 2])
            });
            for pair in 0..4 {
                to.store_swizzled(
                    self.decoded_offsets[4 * half + pair],
                    pairs.map(|p| p[pair]),
                );
            }
        }
    }
}
