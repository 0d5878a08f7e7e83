//! The consumers: they decode weights into the register operand of wgmma, and multiply.

use super::context::{Context, OperandRings};
use super::decode::{DecodeTarget, two_byte_selector};
use super::scales::TILE_WORDS;
use super::units::{BLOCKS_PER_PANEL, K_BLOCK, OUTPUTS, PANEL_BYTES};
use crate::gemm::tile_scheduler::TileCoord;
use warpline_ir::Swizzle;
use warpline_ir::builder::*;

/// A lane's codes of 64 elements of K of an upper and a lower row, and for each row the word with the
/// scale.
type BlockCodes = (RegNibbles, [Reg<u32>; 2]);

/// A lane's codes of a slot, grouped by step.
type SlotCodes = Vec<Vec<BlockCodes>>;

/// Declares a consumer role; `finish` takes the accumulator of a tile.
pub(super) fn consumer<T: DecodeTarget>(
    k: Builder,
    context: &Context<'_, T>,
    i: u32,
    finish: impl FnOnce(Frag, TileCoord),
) {
    let c = context.config;
    context.consumer(k, i).body(|| {
        let lane = &LaneLayout::new();
        wait_prerequisites();
        context.each_tile(|tile| {
            let consumer_tile = ConsumerTile {
                context,
                consumer: i,
                rings: context.consumer_rings(i),
                lane,
                scale_offset: lane.scale_offset_in(context, i, tile),
                acc: Acc::new(2 * OUTPUTS, c.tile_m),
            };
            let first_panel = context.first_panel() + c.schedule.ring_index(i);
            let panels_per_round = context.rings.len() as u32;
            let operands = consumer_tile.begin_slot(first_panel);
            let last = steps(context.rounds - 1).fold(operands, |round, operands| {
                consumer_tile.multiply_slot(operands, || {
                    consumer_tile.begin_slot(first_panel + (round + 1) * panels_per_round)
                })
            });
            consumer_tile.multiply_slot(last, || ());
            finish(consumer_tile.acc.into_frag(), tile);
        });
    });
}

/// The state of a consumer for one tile.
struct ConsumerTile<'a, T: DecodeTarget> {
    context: &'a Context<'a, T>,
    consumer: u32,
    rings: &'a OperandRings<T>,
    lane: &'a LaneLayout,
    /// Word offset of the lane's upper scales in the scales of 64 elements of K.
    scale_offset: Reg<u32>,
    acc: Acc,
}

/// The decoded first step of a slot, and the codes of the remaining steps.
type SlotOperands<T> = (RegOperand<T, Nibbles>, SlotCodes);

impl<T: DecodeTarget> ConsumerTile<'_, T> {
    /// Loads the codes of a slot and decodes the first step.
    #[track_caller]
    fn begin_slot(&self, panel_index: Reg<u32>) -> SlotOperands<T> {
        let mut codes = self.load_codes(panel_index);
        let first = codes.remove(0);
        (self.lane.decode(first), codes)
    }

    /// Multiplies the weights of a slot with A. `begin_next` runs while the last wgmmas are in flight.
    #[track_caller]
    fn multiply_slot<R>(
        &self,
        (mut operand, remaining): SlotOperands<T>,
        begin_next: impl FnOnce() -> R,
    ) -> R {
        for codes in remaining {
            self.multiply_step(&operand);
            operand = self.lane.decode(codes);
        }
        self.multiply_step(&operand);
        begin_next()
    }

    /// Multiplies with one step of A. The code that follows overlaps these wgmmas; the earlier wgmmas are
    /// complete, and their operand registers are free.
    #[track_caller]
    fn multiply_step(&self, weights: &RegOperand<T, Nibbles>) {
        let x = self.rings.x.wait();
        self.acc.mma(weights, &x.tiles().with_k_order::<Nibbles>());
        x.release_after(&self.acc);
    }

    /// Loads the codes and scales of a slot into registers.
    #[track_caller]
    fn load_codes(&self, panel_index: Reg<u32>) -> SlotCodes {
        let (context, schedule) = (self.context, self.context.config.schedule);
        let outputs = context.spec.outputs;
        let upper = context.spec.first_row(self.consumer);
        let slot = self.rings.weights.wait();
        let [upper, lower] = [upper, context.spec.lower_rows() + upper]
            .map(|row| slot.0.slice(row..row + OUTPUTS, 0..PANEL_BYTES));
        let codes = RegNibbles::load_interleaved(&self.lane.code_offsets, &upper, &lower);
        let lower_words = outputs.lower_scale_words(context.config);
        let all_words = outputs.scale_words(context.config);
        let blocks: Vec<_> = (0..)
            .zip(codes)
            .map(|(block, codes)| {
                let scales = [0, 1].map(|half| {
                    let first = half * lower_words + block * TILE_WORDS;
                    let words = slot.1.slice(0..1, first..all_words);
                    let [word] = words.load_as::<u32, 1>(0u32, self.scale_offset);
                    context.zero_scales_past_k(word, panel_index * BLOCKS_PER_PANEL + block)
                });
                (codes, scales)
            })
            .collect();
        slot.release();
        blocks
            .chunks((schedule.k_per_step() / K_BLOCK) as usize)
            .map(<[_]>::to_vec)
            .collect()
    }
}

/// A lane's positions in a slot.
struct LaneLayout {
    /// Offsets of the lane's codes.
    code_offsets: NibbleOffsets,
    /// Selector of the scale of the lane's group of 16.
    scale_selector: Reg<u32>,
    /// The lane's row of the consumer's 32.
    row: Reg<u32>,
}

impl LaneLayout {
    #[track_caller]
    fn new() -> Self {
        let lane = lane_id();
        Self {
            code_offsets: NibbleOffsets::new(Swizzle::B128),
            scale_selector: two_byte_selector(lane & 3u32),
            row: (warp_in_role() & 3u32) * 8u32 + (lane >> 2u32),
        }
    }

    /// Returns the word offset of the lane's scales in the scales of 64 elements of K.
    #[track_caller]
    fn scale_offset_in<T: DecodeTarget>(
        &self,
        context: &Context<'_, T>,
        consumer: u32,
        tile: TileCoord,
    ) -> Reg<u32> {
        let output = context.output(consumer, tile) + self.row;
        context.scale_offset(output, tile.n * context.spec.weight_rows())
    }

    /// Decodes the weights of a step into a register operand.
    #[track_caller]
    fn decode<T: DecodeTarget>(&self, step: Vec<BlockCodes>) -> RegOperand<T, Nibbles> {
        let scales: Vec<_> = (step.iter())
            .map(|&(_, scales)| T::decode_scales(scales, self.scale_selector))
            .collect();
        let codes = RegNibbles::concat_k(step.into_iter().map(|(codes, _)| codes));
        codes.decode(|word, group| {
            T::decode8(word, scales[group.k as usize][usize::from(group.below)])
        })
    }
}
