//! For few tokens: warps that decode A and weights and multiply, each for itself.
//!
//! Where a tile has 16 tokens the tensor cores have little to do, and A is so
//! small that every warp may decode its part of it anew: so no step comes before
//! the kernel, and one slot has all that a warp needs. Each has 32 outputs, of both
//! weights, and blocks of 64 of K, which the warps of the same outputs share; a
//! role behind adds up what these have, and finishes the tile.

use super::context::{Coded, Context, Tokens};
use super::decode::{Decoded, selector_of_two};
use super::epilogue::{Epilogue, finish};
use super::scales::TILE_WORDS;
use super::schedule::WarpTile;
use super::units::{BLOCK, BLOCKS, OUTPUTS, PANEL, WARPS, WIDTH};
use crate::gemm::tile_scheduler::TileCoord;
use warpline_ir::Swizzle;
use warpline_ir::build::*;

/// The rows of a warp's 32 outputs that are a lane's, from twice its place of
/// eight on: rows that lanes read at a time then lie in different banks.
const ROWS: [u32; 4] = [0, 1, 16, 17];

/// The kernel, and the tile of its warps.
struct Kernel<'a, T: Decoded> {
    context: &'a Context<'a, T>,
    warps: WarpTile,
}

impl<T: Decoded> Kernel<'_, T> {
    /// Rows of bytes of a panel of a slot: of the gate, of the other weight, and of A.
    fn rows_of_panel(&self) -> u32 {
        let tokens = rows_of_token(self.context.spec.a_is_coded) * self.context.config.tile_m;
        2 * self.tile_n() + tokens
    }

    /// Words of scales of a slot, in the same order.
    fn words_of_scales(&self) -> u32 {
        let tokens = match self.context.spec.a_is_coded {
            true => self.slot_words(self.context.config.tile_m),
            false => 0,
        };
        2 * self.slot_words(self.tile_n()) + tokens
    }

    /// Words of a slot of scales for `rows` rows.
    fn slot_words(&self, rows: u32) -> u32 {
        self.context.config.schedule.slot_words(rows)
    }

    /// Columns of C in a tile.
    fn tile_n(&self) -> u32 {
        self.context.config.schedule.tile_n()
    }
}

/// Rows of 128 bytes that a panel has of A, for each token: of codes or of numbers.
fn rows_of_token(coded: bool) -> u32 {
    if coded { 1 } else { WIDTH * 2 / PANEL }
}

/// A panel of a slot: bytes and scales.
type Panel = (TileRef<u8>, TileRef<u32>);

/// A lane's 16 of K of a row, in the order in which they are decoded: pairs, of
/// which `mma.sync` takes two at a time.
type Pairs<T> = [Reg<T>; 8];

/// Sums of a warp: for each of a lane's outputs and 8 tokens what `mma.sync`
/// leaves in a lane, of the gate above the other weight.
type Sums = Vec<[Reg<f32>; 4]>;

/// Declares the roles.
pub(super) fn roles<T: Decoded>(k: Builder, context: &Context<'_, T>, warps: WarpTile) {
    let kernel = &Kernel { context, warps };
    let c = context.config;
    let slots = k.ring("slots", c.stages, |s| {
        let rows = warps.panels() * kernel.rows_of_panel();
        (s.tile(rows, PANEL), s.vector(kernel.words_of_scales()))
    });
    // For each part of the sums and 32 outputs, as a warpgroup's tile lies in lanes.
    let (halves, rows) = (warps.halves(), c.tile_m / 8);
    let handed = k.ring("parts", 1, |s| {
        s.plain::<f32>(warps.parts() * halves * rows, 512)
    });
    let handed = handed.by_threads();
    // Where no step comes before there is nothing to wait for.
    let wait = || {
        if !context.spec.is_settled {
            wait_prerequisites();
        }
    };
    // First, as what it runs is fetched from memory before anything else can be.
    k.role("load").warpgroups(1).body(|| {
        elect(|| {
            wait();
            context.each(|tile| {
                let first = context.first();
                steps(context.rounds).each(|round| {
                    let slot = slots.acquire();
                    fill(kernel, &slot, tile, first + round * warps.panels());
                    slot.commit();
                });
            });
        });
    });
    k.role("multiply").warps(WARPS).body(|| {
        let warp = Warp::new(kernel);
        context.each(|tile| {
            let sums = warp.sums(slots, tile);
            let slot = handed.acquire();
            warp.hand(&sums, slot.tiles());
            slot.commit();
        });
    });
    let ends: Vec<_> = (0..halves)
        .map(|i| Epilogue::declare(k, context, i))
        .collect();
    k.role("finish").warpgroups(1).body(|| {
        elect(|| context.out.prefetch());
        wait();
        context.each(|tile| {
            let slot = handed.wait();
            let zeros = Frag::zeros(2 * OUTPUTS, c.tile_m);
            let part = |i: u32, half: u32| {
                let first = (i * halves + half) * rows;
                zeros.load_lanes(&slot.slice(first..first + rows, 0..512))
            };
            let sums = (0..halves).map(|half| {
                let first = part(0, half);
                (1..warps.parts()).fold(first, |sums, i| sums.zip(&part(i, half), |x, y| x + y))
            });
            let sums: Vec<_> = sums.collect();
            slot.release();
            finish(&ends, sums, tile);
        });
    });
}

/// Fills a slot with weights and A from a place along K on.
#[track_caller]
fn fill<T: Decoded>(
    kernel: &Kernel<'_, T>,
    slot: &Slot<Coded, Filling>,
    tile: TileCoord,
    number: Reg<u32>,
) {
    let (context, tile_n, tile_m) = (
        kernel.context,
        kernel.tile_n(),
        kernel.context.config.tile_m,
    );
    let token = tile.m * tile_m;
    context.fill_scales(slot, tile, number);
    let load = |map, row: u32, at: Reg<u32>| {
        let to = slot.0.slice(row..row + tile_m, 0..PANEL);
        slot.load(map, to, [at * PANEL, token]);
    };
    if let Tokens::Coded([_, scales]) = context.tokens {
        let first = 2 * kernel.slot_words(tile_n);
        let to = slot.1.slice(0..1, first..first + kernel.slot_words(tile_m));
        slot.load(scales, to, [0u32.reg(), number * BLOCKS, token >> 7u32]);
    }
    for panel in 0..kernel.warps.panels() {
        let (row, number) = (panel * kernel.rows_of_panel(), number + panel);
        context.fill_codes(slot, row, tile, number);
        let row = row + 2 * tile_n;
        match context.tokens {
            Tokens::Coded([codes, _]) => load(codes, row, number),
            Tokens::Numbers(bytes) => {
                let each = rows_of_token(false);
                for i in 0..each {
                    load(bytes, row + i * tile_m, number * each + i);
                }
            }
        }
    }
}

/// What is a warp's own of every slot.
struct Warp<'a, T: Decoded> {
    kernel: &'a Kernel<'a, T>,
    /// The first of the tile's outputs that are its lane's.
    output: Reg<u32>,
    /// Which part of the sums is its own.
    part: Reg<u32>,
    /// Its block of a panel.
    block: Reg<u32>,
    /// Its first panel of a slot.
    panel: Reg<u32>,
    /// Where the gate's codes of each of its outputs are in its first panel.
    codes: [Spot; 4],
    /// Where its tokens are in its first panel, of those that it has: codes of 16
    /// of K, or the first and the last eight numbers.
    tokens: Vec<Spot>,
    /// Picks the scale of the lane's group of 16 of four.
    pick: Reg<u32>,
}

impl<'a, T: Decoded> Warp<'a, T> {
    #[track_caller]
    fn new(kernel: &'a Kernel<'a, T>) -> Self {
        let (context, warps, warp) = (kernel.context, kernel.warps, warp_in_role());
        let part = warp & (warps.parts() - 1);
        let (block, turn) = (part & (BLOCKS - 1), part >> BLOCKS.ilog2());
        let panel = turn * warps.panels_each();
        let (row, group) = (lane_id() >> 2u32, lane_id() & 3u32);
        let output = (warp >> warps.parts().ilog2()) * OUTPUTS + row * 2u32;
        let behind = panel * (kernel.rows_of_panel() * PANEL);
        let spot = |row, byte| Spot::new(Swizzle::B128, row, byte).plus(behind);
        let byte = block * (BLOCK / 2) + group * 8u32;
        let tokens = match context.tokens {
            Tokens::Coded(_) => vec![spot(row, byte)],
            Tokens::Numbers(_) => {
                let inside = block * (context.config.tile_m * PANEL);
                let half = |i: u32| spot(row, group * 32u32 + 16 * i).plus(inside);
                vec![half(0), half(1)]
            }
        };
        Self {
            kernel,
            output,
            part,
            block,
            panel,
            codes: ROWS.map(|i| spot(output + i, byte)),
            tokens,
            pick: selector_of_two(group),
        }
    }

    /// The sums of a tile.
    #[track_caller]
    fn sums(&self, slots: Ring<Coded>, tile: TileCoord) -> Sums {
        let (context, warps) = (self.kernel.context, self.kernel.warps);
        let tile_m = context.config.tile_m;
        let of_output = ROWS.map(|i| self.place(self.output + i, tile.n * self.kernel.tile_n()));
        let row = lane_id() >> 2u32;
        let of_token = |i| self.place(row + 8 * i, tile.m * tile_m);
        let of_token: Vec<_> = (0..tile_m / 8).map(of_token).collect();
        let first = context.first() + self.panel;
        let zeros = vec![[0.0f32.reg(); 4]; ROWS.len() * (tile_m / 8) as usize];
        steps(context.rounds).fold(zeros, |round, sums| {
            let slot = slots.wait();
            let taken = (0..warps.panels_each()).map(|i| {
                let panel = self.panel_of(slot.tiles(), i);
                let output = |i: usize| self.weights(panel, self.codes[i], of_output[i]);
                (self.tokens(panel, &of_token), [0, 1, 2, 3].map(output))
            });
            let taken: Vec<_> = taken.collect();
            slot.release();
            let number = first + round * warps.panels();
            (0..).zip(taken).fold(sums, |sums, (i, (tokens, outputs))| {
                let pairs = |taken| self.pairs(taken, number + i);
                let tokens: Vec<_> = tokens.into_iter().flat_map(pairs).collect();
                let chunks = sums.chunks(tokens.len()).zip(outputs);
                let sums = chunks.map(|(sums, both)| multiply(sums, pairs(both), &tokens));
                sums.collect::<Vec<_>>().concat()
            })
        })
    }

    /// What lies as its `i`th panel of a slot does, where that is the slot's `i`th.
    fn panel_of(&self, (bytes, scales): Panel, i: u32) -> Panel {
        let rows = self.kernel.rows_of_panel();
        let first = i * BLOCKS * TILE_WORDS;
        (
            bytes.slice(i * rows..(i + 1) * rows, 0..PANEL),
            scales.slice(0..1, first..scales.cols()),
        )
    }

    /// Where the scales are in its first panel of a row of a tile, which starts
    /// with the other.
    #[track_caller]
    fn place(&self, row: Reg<u32>, first: Reg<u32>) -> Reg<u32> {
        let inside = self.kernel.context.place_of_scale(first + row, first);
        inside + (self.panel * BLOCKS + self.block) * TILE_WORDS
    }

    /// An output of both weights, as a panel has it.
    #[track_caller]
    fn weights(&self, panel: Panel, spot: Spot, place: Reg<u32>) -> Taken<T::Pair> {
        let n = self.kernel.tile_n();
        let of_both = [0, 1].map(|i| {
            let rows = panel.0.slice(i * n..(i + 1) * n, 0..PANEL);
            let four = scale(panel, i * self.kernel.slot_words(n), place);
            (rows.load_spot(spot), four)
        });
        Taken::Codes(of_both)
    }

    /// A token of every eight, as a panel has it.
    #[track_caller]
    fn tokens(&self, panel: Panel, places: &[Reg<u32>]) -> Vec<Taken<T::Pair>> {
        let (tile_m, tile_n) = (self.kernel.context.config.tile_m, self.kernel.tile_n());
        let rows = |i: u32| {
            let row = 2 * tile_n + 8 * i;
            panel.0.slice(row..row + 8, 0..PANEL)
        };
        let twos = (0..tile_m / 8).step_by(2).map(|i| [i, i + 1]);
        let taken = twos.map(|two| match self.tokens[..] {
            [spot] => Taken::Codes(two.map(|i| {
                let first = 2 * self.kernel.slot_words(tile_n);
                let four = scale(panel, first, places[i as usize]);
                (rows(i).load_spot(spot), four)
            })),
            _ => Taken::Numbers(two.map(|i| {
                let eights = self.tokens.iter().map(|&spot| rows(i).load_spot(spot));
                eights.collect()
            })),
        });
        taken.collect()
    }

    /// The numbers of what was taken of two rows of a panel, in the order in which
    /// they are decoded.
    #[track_caller]
    fn pairs(&self, taken: Taken<T::Pair>, number: Reg<u32>) -> [Pairs<T::Pair>; 2] {
        let halves: [Vec<[Reg<T::Pair>; 4]>; 2] = match taken {
            Taken::Codes(rows) => {
                let block = number * BLOCKS + self.block;
                let fours = rows.map(|(_, four)| self.kernel.context.inside(four, block));
                let scales = T::scales(fours, self.pick);
                [0, 1].map(|i| rows[i].0.map(|word| T::numbers(word, scales[i])).into())
            }
            Taken::Numbers(rows) => rows.map(|eights| eights.into_iter().map(in_order).collect()),
        };
        halves.map(|halves| std::array::from_fn(|i| halves[i / 4][i % 4]))
    }

    /// Leaves sums where the lanes of a warpgroup look for their part of 32 outputs.
    #[track_caller]
    fn hand(&self, sums: &Sums, to: TileRef<f32>) {
        let rows = self.kernel.context.config.tile_m / 8;
        let halves = self.kernel.warps.halves();
        for (i, sums) in ROWS.into_iter().zip(sums.chunks(rows as usize)) {
            let output = self.output + i;
            let half = self.part * halves + (output >> OUTPUTS.ilog2());
            // Each four lanes of a warpgroup have one of 32.
            let thread = (output & (OUTPUTS - 1)) * 4u32 + (lane_id() & 3u32);
            for (j, &four) in (0u32..).zip(sums) {
                to.store_vec(half * rows + j, thread * 4u32, four);
            }
        }
    }
}

/// 16 of K of each of two rows, as a slot has them.
enum Taken<T> {
    /// Codes, and four scales of which one is theirs.
    Codes([([Reg<u32>; 2], Reg<u32>); 2]),
    /// Eights of numbers.
    Numbers([Vec<[Reg<T>; 4]>; 2]),
}

/// The four scales at a place of those from a word on.
#[track_caller]
fn scale(panel: Panel, first: u32, place: Reg<u32>) -> Reg<u32> {
    let scales = panel.1.slice(0..1, first..panel.1.cols());
    let [four] = scales.load_as::<u32, 1>(0u32, place);
    four
}

/// Eight neighbours as codes are decoded: numbers i and i + 4 as pair i.
#[track_caller]
fn in_order<T: MatrixWord>(eight: [Reg<T>; 4]) -> [Reg<T>; 4] {
    let [a, b, c, d] = eight.map(|pair| pair.bitcast::<u32>());
    [
        (a, c, 0x5410u32),
        (a, c, 0x7632),
        (b, d, 0x5410),
        (b, d, 0x7632),
    ]
    .map(|(x, y, two)| prmt(x, y, two).bitcast())
}

/// Adds the products of an output with tokens.
#[track_caller]
fn multiply<T: Mixes<T>>(
    sums: &[[Reg<f32>; 4]],
    [gate, up]: [Pairs<T>; 2],
    tokens: &[Pairs<T>],
) -> Sums {
    let added = sums.iter().zip(tokens).map(|(&sums, x)| {
        (0..8).step_by(2).fold(sums, |sums, i| {
            let weights = [gate[i], up[i], gate[i + 1], up[i + 1]];
            mma_sync(sums, weights, [x[i], x[i + 1]])
        })
    });
    added.collect()
}
