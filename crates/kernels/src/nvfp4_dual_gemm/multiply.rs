//! The consumers: they decode weights into the register operand of wgmma, and multiply.

use super::context::{Context, OperandRings};
use super::decode::{DecodeTarget, two_byte_selector};
use super::units::{BLOCKS_PER_PANEL, K_BLOCK, OUTPUTS, PANEL_BYTES};
use crate::gemm::tile_scheduler::TileCoord;
use warpline_ir::Swizzle;
use warpline_ir::builder::*;

/// A lane's codes of 64 elements of K of an upper and a lower row, and for each row the word with the
/// scale.
type BlockCodes<K> = (RegNibbles<K>, [Reg<u32>; 2]);

/// A lane's codes of a slot, grouped by step.
type SlotCodes<K> = Vec<Vec<BlockCodes<K>>>;

/// The K order of weights in registers.
pub(super) trait WeightOrder: NibbleOrder {
    /// Decodes a step; `selector` picks the scale of the lane's group of 16, where a lane holds one group.
    fn decode<T: DecodeTarget>(
        step: Vec<BlockCodes<Self>>,
        selector: Reg<u32>,
    ) -> RegOperand<T, Self>;
}

/// A lane holds one group of 16 of each row, so it decodes one scale. A launch before permutes A.
impl WeightOrder for Nibbles {
    #[track_caller]
    fn decode<T: DecodeTarget>(
        step: Vec<BlockCodes<Self>>,
        selector: Reg<u32>,
    ) -> RegOperand<T, Self> {
        let scales: Vec<_> = (step.iter())
            .map(|&(_, scales)| T::decode_scales(scales, selector))
            .collect();
        let codes = RegNibbles::concat_k(step.into_iter().map(|(codes, _)| codes));
        codes.decode(|word, group| {
            let scale = scales[group.k as usize][usize::from(group.below)];
            T::decode8(word, [scale; 2])
        })
    }
}

/// A lane holds codes of all four groups of 16, so it decodes four scales. A is read as it is.
impl WeightOrder for Natural {
    #[track_caller]
    fn decode<T: DecodeTarget>(step: Vec<BlockCodes<Self>>, _: Reg<u32>) -> RegOperand<T, Self> {
        let scales_of = |words| {
            let selectors = [0x40u32, 0x51, 0x62, 0x73];
            selectors.map(|selector| T::decode_scales(words, selector.reg()))
        };
        let scales: Vec<_> = step.iter().map(|&(_, words)| scales_of(words)).collect();
        let codes = RegNibbles::concat_k(step.into_iter().map(|(codes, _)| codes));
        codes.decode(|word, group| {
            let groups = &scales[group.k as usize][2 * group.word as usize..][..2];
            let row = usize::from(group.below);
            T::decode8(word, [groups[0][row], groups[1][row]])
        })
    }
}

/// Declares a consumer role; `finish` takes the accumulator of a tile.
pub(super) fn consumer<T: DecodeTarget>(
    k: Builder,
    context: &Context<'_, T>,
    i: u32,
    finish: impl FnOnce(Frag, TileCoord),
) {
    let spec = context.spec;
    match spec.outputs.decodes_in_natural_order(&spec.config) {
        true => consumer_in_order::<T, Natural>(k, context, i, finish),
        false => consumer_in_order::<T, Nibbles>(k, context, i, finish),
    }
}

/// Declares a consumer role that holds K of the weights in the order `K`.
fn consumer_in_order<T: DecodeTarget, K: WeightOrder>(
    k: Builder,
    context: &Context<'_, T>,
    i: u32,
    finish: impl FnOnce(Frag, TileCoord),
) {
    let c = context.config;
    context.consumer(k, i).body(|| {
        let lane = &LaneLayout::<K>::new();
        if !context.spec.is_single_launch() {
            wait_prerequisites();
        }
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
struct ConsumerTile<'a, T: DecodeTarget, K: WeightOrder> {
    context: &'a Context<'a, T>,
    consumer: u32,
    rings: &'a OperandRings<T>,
    lane: &'a LaneLayout<K>,
    /// Word offset of the lane's upper scales in the scales of 64 elements of K.
    scale_offset: Reg<u32>,
    acc: Acc,
}

/// The decoded first step of a slot, and the codes of the remaining steps.
type SlotOperands<T, K> = (RegOperand<T, K>, SlotCodes<K>);

impl<T: DecodeTarget, K: WeightOrder> ConsumerTile<'_, T, K> {
    /// Loads the codes of a slot and decodes the first step.
    #[track_caller]
    fn begin_slot(&self, panel_index: Reg<u32>) -> SlotOperands<T, K> {
        let mut codes = self.load_codes(panel_index);
        let first = codes.remove(0);
        (self.decode(first), codes)
    }

    /// Multiplies the weights of a slot with A. `begin_next` runs while the last wgmmas are in flight.
    #[track_caller]
    fn multiply_slot<R>(
        &self,
        (mut operand, remaining): SlotOperands<T, K>,
        begin_next: impl FnOnce() -> R,
    ) -> R {
        for codes in remaining {
            self.multiply_step(&operand);
            operand = self.decode(codes);
        }
        self.multiply_step(&operand);
        begin_next()
    }

    /// Multiplies with one step of A. The code that follows overlaps these wgmmas; the earlier wgmmas are
    /// complete, and their operand registers are free.
    #[track_caller]
    fn multiply_step(&self, weights: &RegOperand<T, K>) {
        let x = self.rings.x.wait();
        self.acc.mma(weights, &x.tiles().with_k_order::<K>());
        x.release_after(&self.acc);
    }

    /// Decodes the weights of a step into a register operand.
    #[track_caller]
    fn decode(&self, step: Vec<BlockCodes<K>>) -> RegOperand<T, K> {
        K::decode(step, self.lane.scale_selector)
    }

    /// Loads the codes and scales of a slot into registers.
    #[track_caller]
    fn load_codes(&self, panel_index: Reg<u32>) -> SlotCodes<K> {
        let (context, schedule) = (self.context, self.context.config.schedule);
        let spec = context.spec;
        let upper = context.spec.first_row(self.consumer);
        let slot = self.rings.weights.wait();
        let [upper, lower] = [upper, context.spec.lower_rows() + upper]
            .map(|row| slot.0.slice(row..row + OUTPUTS, 0..PANEL_BYTES));
        let codes = RegNibbles::load_interleaved(&self.lane.code_offsets, &upper, &lower);
        let (lower_words, all_words) = (spec.lower_scale_words(), spec.weight_scale_words());
        let blocks: Vec<_> = (0..)
            .zip(codes)
            .map(|(block, codes)| {
                let scales = [0, 1].map(|half| {
                    let first = half * lower_words + block * spec.scale_boxes.block_words();
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
struct LaneLayout<K> {
    /// Offsets of the lane's codes.
    code_offsets: NibbleOffsets<K>,
    /// Selector of the scale of the lane's group of 16.
    scale_selector: Reg<u32>,
    /// The lane's row of the consumer's 32.
    row: Reg<u32>,
}

impl<K: WeightOrder> LaneLayout<K> {
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
}
