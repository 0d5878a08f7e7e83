//! The schedule with a dequantizer: a warpgroup decodes weights from one ring to a second one, and
//! consumers multiply from there.

use super::context::Context;
use super::decode::{Decoded, selector};
use super::scales::TILE_WORDS;
use super::units::{BLOCK, BLOCKS, OUTPUTS, PANEL};
use crate::gemm::tile_scheduler::TileCoord;
use warpline_ir::Swizzle;
use warpline_ir::build::*;

/// Threads of the dequantizer: one for each row of a tile of weights,
/// or of every so many.
const THREADS: u32 = 128;

/// Declares the ring of numbers, and the role that fills it.
pub(super) fn role<T: Decoded>(k: Builder, context: &Context<'_, T>) -> Ring<Tile<T>> {
    let c = context.config;
    let tile_n = c.schedule.tile_n();
    let rows = 2 * tile_n;
    let ring = k.ring("decoded", c.stages, |s| s.tile::<T>(rows, BLOCK));
    let ring = ring.shared();
    let role = k.role("dequant").warps(THREADS / 32);
    let role = role.registers_opt(c.schedule.dequantizer_registers());
    role.body(|| {
        let threads: Vec<_> = (0..rows)
            .step_by(THREADS as usize)
            .map(|first| Row::new(tile_n, first))
            .collect();
        let picks = std::array::from_fn(|i| selector((i as u32).reg()));
        let weights = context.feeds[0].weights;
        context.each(|tile| {
            let places: Vec<_> = threads.iter().map(|row| row.place(context, tile)).collect();
            let first = context.first();
            steps(context.rounds).each(|round| {
                let codes = weights.wait();
                for block in 0..BLOCKS {
                    let to = ring.acquire();
                    for (row, &place) in threads.iter().zip(&places) {
                        let unit = || {
                            let [four] =
                                codes.1.load_as::<u32, 1>(0u32, place + block * TILE_WORDS);
                            let four = context.inside(four, (first + round) * BLOCKS + block);
                            row.decode(block, codes.0, four, picks, to.tiles());
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

/// Declares a role that multiplies its 64 rows of decoded weights; `end` takes the sums of a tile.
pub(super) fn consumer<T: Decoded>(
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
                let x = context.feeds[0].x.wait();
                let tile = weights.tiles().slice(rows.clone(), 0..BLOCK);
                acc.mma(
                    &tile.in_order::<Nibbles>(),
                    &x.tiles().in_order::<Nibbles>(),
                );
                weights.release_after(&acc);
                x.release_after(&acc);
            };
            steps(context.rounds).each(|_| (0..BLOCKS).for_each(|_| step()));
            end(acc.finish(), tile);
        });
    });
}

/// A row of a tile of weights that a thread decodes.
struct Row {
    /// The row of its tensor, the gate or the other weight.
    own: Reg<u32>,
    is_up: Reg<bool>,
    /// Is there such a row? `None`: in every thread.
    exists: Option<Reg<bool>>,
    /// Every 16 bytes of the row of codes, and of numbers.
    from: Vec<Spot>,
    to: Vec<Spot>,
}

impl Row {
    /// That of a thread, of the 128 rows from `first` on.
    #[track_caller]
    fn new(tile_n: u32, first: u32) -> Self {
        let row = thread_in_role() + first;
        let is_up = row.ge(tile_n);
        let own = select(is_up, row - tile_n, row);
        // Eight of the gate, eight of the other.
        let up = select(is_up, 8u32, 0u32);
        let below = ((own >> 3u32) << 4u32) + (own & 7u32) + up;
        let spots = |row: Reg<u32>| {
            let bytes = (0..PANEL).step_by(16);
            bytes
                .map(|byte| Spot::new(Swizzle::B128, row, byte))
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

    /// Where a slot has its scales of the first 64 of K, in a tile.
    #[track_caller]
    fn place<T: Decoded>(&self, context: &Context<'_, T>, tile: TileCoord) -> Reg<u32> {
        let schedule = context.config.schedule;
        let first = tile.n * schedule.tile_n();
        let of_weight = schedule.slot_words(schedule.tile_n());
        let place = context.place_of_scale(first + self.own, first);
        place + select(self.is_up, of_weight, 0u32)
    }

    /// Makes numbers of a block of 64 of K: pair i of each half of a group
    /// beside those of the other three groups, in the order of A.
    #[track_caller]
    fn decode<T: Decoded>(
        &self,
        block: u32,
        codes: TileRef<u8>,
        four: Reg<u32>,
        picks: [Reg<u32>; 4],
        to: TileRef<T>,
    ) {
        let words = [0, 1].map(|i| {
            let spot = self.from[2 * block as usize + i];
            codes.load_spot::<u32, 4>(spot)
        });
        let scales = picks.map(|pick| T::scale(four, pick));
        for half in 0..2 {
            let pairs: [_; 4] = std::array::from_fn(|group| {
                let word = words[group / 2][2 * (group % 2) + half];
                T::numbers(word, scales[group])
            });
            for pair in 0..4 {
                to.store_spot(self.to[4 * half + pair], pairs.map(|p| p[pair]));
            }
        }
    }
}
