//! The warpgroups that decode weights into the operand of the tensor cores that
//! is in registers, and multiply.

use super::context::{Context, Feed};
use super::decode::{Decoded, selector_of_two};
use super::scales::TILE_WORDS;
use super::units::{BLOCK, BLOCKS, OUTPUTS, PANEL};
use crate::gemm::tile_scheduler::TileCoord;
use warpline_ir::Swizzle;
use warpline_ir::build::*;

/// What a lane has of 64 of K of the weights: codes, and for its row of each
/// weight the word that has the scale.
type Block = (RegNibbles, [Reg<u32>; 2]);

/// The same of some steps.
type Codes = Vec<Vec<Block>>;

/// A role that decodes and multiplies; `end` is what it does with the sums of a tile.
pub(super) fn consumer<T: Decoded>(
    k: Builder,
    context: &Context<'_, T>,
    i: u32,
    end: impl FnOnce(Frag, TileCoord),
) {
    let c = context.config;
    context.consumer(k, i).body(|| {
        let lane = &Lane::new();
        wait_prerequisites();
        context.each(|tile| {
            let part = Part {
                context,
                consumer: i,
                feed: context.feed(i),
                lane,
                place: lane.place_in(context, i, tile),
                acc: Acc::new(2 * OUTPUTS, c.tile_m),
            };
            let first = context.first() + c.schedule.turn_of(i);
            let each = context.feeds.len() as u32;
            let begun = part.begin(first);
            let last = steps(context.rounds - 1).fold(begun, |round, begun| {
                part.slot(begun, || part.begin(first + (round + 1) * each))
            });
            part.slot(last, || ());
            end(part.acc.finish(), tile);
        });
    });
}

/// A consumer's part of a tile.
struct Part<'a, T: Decoded> {
    context: &'a Context<'a, T>,
    consumer: u32,
    feed: &'a Feed<T>,
    lane: &'a Lane,
    /// Where the scale of its row of the gate is, of those of 64 of K.
    place: Reg<u32>,
    acc: Acc,
}

/// The first operand of a slot's weights, and the codes of the others.
type Begun<T> = (RegOperand<T, Nibbles>, Codes);

impl<T: Decoded> Part<'_, T> {
    /// Takes a slot's weights, and decodes the first.
    #[track_caller]
    fn begin(&self, number: Reg<u32>) -> Begun<T> {
        let mut codes = self.codes(number);
        let first = codes.remove(0);
        (self.lane.decode(first), codes)
    }

    /// Multiplies the weights of a slot with A. While the last products run, so does `next`.
    #[track_caller]
    fn slot<R>(&self, (mut now, rest): Begun<T>, next: impl FnOnce() -> R) -> R {
        for codes in rest {
            self.multiply(&now);
            now = self.lane.decode(codes);
        }
        self.multiply(&now);
        next()
    }

    /// Multiplies with a step of A. What comes next runs beside these products;
    /// those before are done, and the registers of their operand free.
    #[track_caller]
    fn multiply(&self, weights: &RegOperand<T, Nibbles>) {
        let x = self.feed.x.wait();
        self.acc.mma(weights, &x.tiles().in_order::<Nibbles>());
        x.release_after(&self.acc);
    }

    /// The weights of a slot, as they are.
    #[track_caller]
    fn codes(&self, number: Reg<u32>) -> Codes {
        let (context, schedule) = (self.context, self.context.config.schedule);
        let (row, rows) = (schedule.row_of(self.consumer), schedule.tile_n());
        let slot = self.feed.weights.wait();
        let [gate, up] = [row, rows + row].map(|row| slot.0.slice(row..row + OUTPUTS, 0..PANEL));
        let codes = RegNibbles::beside(&self.lane.seat, &gate, &up);
        let of_weight = schedule.slot_words(rows);
        let blocks: Vec<_> = (0..)
            .zip(codes)
            .map(|(block, codes)| {
                let scales = [0, 1].map(|weight| {
                    let first = weight * of_weight + block * TILE_WORDS;
                    let all = slot.1.slice(0..1, first..(weight + 1) * of_weight);
                    let [four] = all.load_as::<u32, 1>(0u32, self.place);
                    context.inside(four, number * BLOCKS + block)
                });
                (codes, scales)
            })
            .collect();
        slot.release();
        blocks
            .chunks((schedule.depth() / BLOCK) as usize)
            .map(<[_]>::to_vec)
            .collect()
    }
}

/// What is a lane's own of every slot.
struct Lane {
    /// Where its codes are.
    seat: NibbleSeat,
    /// Picks the scale of its group of 16 of four.
    pick: Reg<u32>,
    /// Its row of its consumer's 32.
    row: Reg<u32>,
}

impl Lane {
    #[track_caller]
    fn new() -> Self {
        let lane = lane_id();
        Self {
            seat: NibbleSeat::new(Swizzle::B128),
            pick: selector_of_two(lane & 3u32),
            row: (warp_in_role() & 3u32) * 8u32 + (lane >> 2u32),
        }
    }

    /// Where the scale of its row of a tile is, of those of 64 of K.
    #[track_caller]
    fn place_in<T: Decoded>(
        &self,
        context: &Context<'_, T>,
        consumer: u32,
        tile: TileCoord,
    ) -> Reg<u32> {
        let output = context.output(consumer, tile) + self.row;
        context.place_of_scale(output, tile.n * context.config.schedule.tile_n())
    }

    /// Weights of a step as an operand.
    #[track_caller]
    fn decode<T: Decoded>(&self, step: Vec<Block>) -> RegOperand<T, Nibbles> {
        let scales: Vec<_> = (step.iter())
            .map(|&(_, scales)| T::scales(scales, self.pick))
            .collect();
        let codes = RegNibbles::joined(step.into_iter().map(|(codes, _)| codes));
        codes.decode(|word, group| {
            T::numbers(word, scales[group.k as usize][usize::from(group.below)])
        })
    }
}
