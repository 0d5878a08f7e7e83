//! The schedule `warps`, for few tokens: every warp decodes A and weights, and multiplies with `mma.sync`.
//!
//! With 16 tokens per tile the tensor cores are mostly idle, and A is so small that every warp can decode
//! its part again. No earlier launch is needed, and one slot holds everything that a warp needs. Each
//! warp has 32 outputs of both weights; warps with the same outputs divide the blocks of K. The role
//! `epilogue` adds their partial sums and finishes the tile.

use super::context::{AOperand, CodedTiles, Context};
use super::decode::{DecodeTarget, two_byte_selector};
use super::epilogue::{Epilogue, run_epilogues};
use super::scales::TILE_WORDS;
use super::schedule::WarpTile;
use super::units::{BLOCKS_PER_PANEL, K_BLOCK, MMA_WARPS, OUTPUTS, PANEL_BYTES, PANEL_K};
use crate::gemm::tile_scheduler::TileCoord;
use warpline_ir::Swizzle;
use warpline_ir::builder::*;

/// A lane's rows of a warp's 32 outputs, relative to twice its row group (lane / 4): rows that lanes read
/// at the same time are then in different banks.
const LANE_ROWS: [u32; 4] = [0, 1, 16, 17];

/// The kernel context with the tile shape of the warps.
struct WarpsContext<'a, T: DecodeTarget> {
    context: &'a Context<'a, T>,
    warps: WarpTile,
}

impl<T: DecodeTarget> WarpsContext<'_, T> {
    /// Returns the 128-byte rows of a panel in a slot: gate, up and A.
    fn panel_rows(&self) -> u32 {
        let tokens = token_rows(self.context.spec.a_is_coded) * self.context.config.tile_m;
        2 * self.tile_n() + tokens
    }

    /// Returns the words of scales in a slot, in the same order.
    fn slot_scale_words(&self) -> u32 {
        let tokens = match self.context.spec.a_is_coded {
            true => self.scale_words(self.context.config.tile_m),
            false => 0,
        };
        2 * self.scale_words(self.tile_n()) + tokens
    }

    /// Returns the words of scales in a slot for `rows` rows.
    fn scale_words(&self, rows: u32) -> u32 {
        self.context.config.schedule.scale_words(rows)
    }

    /// Returns the columns of C in a tile.
    fn tile_n(&self) -> u32 {
        self.context.config.schedule.tile_n()
    }
}

/// Returns the 128-byte rows of a panel per token of A, in codes or in 16 bits.
fn token_rows(coded: bool) -> u32 {
    if coded { 1 } else { PANEL_K * 2 / PANEL_BYTES }
}

/// A panel of a slot: bytes and scales.
type Panel = (TileRef<u8>, TileRef<u32>);

/// A lane's 16 elements of K of a row, in decode order: pairs, of which one `mma.sync` takes two.
type Pairs<T> = [Reg<T>; 8];

/// Accumulators of a warp: the `mma.sync` results of a lane for each of its outputs and 8 tokens, gate
/// above up.
type WarpSums = Vec<[Reg<f32>; 4]>;

/// Declares the roles.
pub(super) fn roles<T: DecodeTarget>(k: Builder, context: &Context<'_, T>, warps: WarpTile) {
    let kernel = &WarpsContext { context, warps };
    let c = context.config;
    let slots = k.ring("slots", c.stages, |s| {
        let rows = warps.panels() * kernel.panel_rows();
        (
            s.tile(rows, PANEL_BYTES),
            s.vector(kernel.slot_scale_words()),
        )
    });
    // Partial sums for each part of K and each set of 32 outputs, in the register layout of a
    // warpgroup.
    let (halves, rows) = (warps.output_sets(), c.tile_m / 8);
    let partial_sums = k.ring("parts", 1, |s| {
        s.unswizzled::<f32>(warps.k_parts() * halves * rows, 512)
    });
    let partial_sums = partial_sums.generic_proxy_only();
    // Without an earlier launch there is no dependency to wait for.
    let wait = || {
        if !context.spec.weights_are_pdl_safe {
            wait_prerequisites();
        }
    };
    // Declared first, so that its instructions are fetched first: everything waits for its loads.
    k.role("load").warpgroups(1).body(|| {
        elect(|| {
            wait();
            context.each(|tile| {
                let first = context.first_panel();
                steps(context.rounds).each(|round| {
                    let slot = slots.acquire();
                    load_slot(kernel, &slot, tile, first + round * warps.panels());
                    slot.commit();
                });
            });
        });
    });
    k.role("multiply").warps(MMA_WARPS).body(|| {
        let warp = Warp::new(kernel);
        context.each(|tile| {
            let sums = warp.partial_sums(slots, tile);
            let slot = partial_sums.acquire();
            warp.store_sums(&sums, slot.tiles());
            slot.commit();
        });
    });
    let epilogues: Vec<_> = (0..halves)
        .map(|i| Epilogue::declare(k, context, i))
        .collect();
    k.role("epilogue").warpgroups(1).body(|| {
        elect(|| context.out.prefetch());
        wait();
        context.each(|tile| {
            let slot = partial_sums.wait();
            let zeros = Frag::zeros(2 * OUTPUTS, c.tile_m);
            let part = |i: u32, half: u32| {
                let first = (i * halves + half) * rows;
                zeros.load_thread_major(&slot.slice(first..first + rows, 0..512))
            };
            let sums = (0..halves).map(|half| {
                let first = part(0, half);
                (1..warps.k_parts()).fold(first, |sums, i| sums.zip(&part(i, half), |x, y| x + y))
            });
            let sums: Vec<_> = sums.collect();
            slot.release();
            run_epilogues(&epilogues, sums, tile);
        });
    });
}

/// Issues the loads of a slot: weights and A from panel `panel_index` on.
#[track_caller]
fn load_slot<T: DecodeTarget>(
    kernel: &WarpsContext<'_, T>,
    slot: &Slot<CodedTiles, Producing>,
    tile: TileCoord,
    panel_index: Reg<u32>,
) {
    let (context, tile_n, tile_m) = (
        kernel.context,
        kernel.tile_n(),
        kernel.context.config.tile_m,
    );
    let token = tile.m * tile_m;
    context.load_scales(slot, tile, panel_index);
    let load = |map, row: u32, at: Reg<u32>| {
        let to = slot.0.slice(row..row + tile_m, 0..PANEL_BYTES);
        slot.load(map, to, [at * PANEL_BYTES, token]);
    };
    if let AOperand::Coded([_, scales]) = context.tokens {
        let first = 2 * kernel.scale_words(tile_n);
        let to = slot
            .1
            .slice(0..1, first..first + kernel.scale_words(tile_m));
        slot.load(
            scales,
            to,
            [0u32.reg(), panel_index * BLOCKS_PER_PANEL, token >> 7u32],
        );
    }
    for panel in 0..kernel.warps.panels() {
        let (row, panel_index) = (panel * kernel.panel_rows(), panel_index + panel);
        context.load_codes(slot, row, tile, panel_index);
        let row = row + 2 * tile_n;
        match context.tokens {
            AOperand::Coded([codes, _]) => load(codes, row, panel_index),
            AOperand::Wide(bytes) => {
                let each = token_rows(false);
                for i in 0..each {
                    load(bytes, row + i * tile_m, panel_index * each + i);
                }
            }
        }
    }
}

/// A warp's positions in a slot.
struct Warp<'a, T: DecodeTarget> {
    kernel: &'a WarpsContext<'a, T>,
    /// The lane's first output of the tile.
    output: Reg<u32>,
    /// The warp's part of K.
    part: Reg<u32>,
    /// The warp's block of a panel.
    block: Reg<u32>,
    /// The warp's first panel of a slot.
    panel: Reg<u32>,
    /// Offsets of the gate codes of the lane's outputs in the first panel.
    codes: [SwizzledOffset; 4],
    /// Offsets of the lane's tokens in the first panel: 16 codes of K, or the first and last eight
    /// numbers.
    tokens: Vec<SwizzledOffset>,
    /// Selector of the scale of the lane's group of 16.
    scale_selector: Reg<u32>,
}

impl<'a, T: DecodeTarget> Warp<'a, T> {
    #[track_caller]
    fn new(kernel: &'a WarpsContext<'a, T>) -> Self {
        let (context, warps, warp) = (kernel.context, kernel.warps, warp_in_role());
        let part = warp & (warps.k_parts() - 1);
        let (block, turn) = (
            part & (BLOCKS_PER_PANEL - 1),
            part >> BLOCKS_PER_PANEL.ilog2(),
        );
        let panel = turn * warps.panels_per_warp();
        let (row, group) = (lane_id() >> 2u32, lane_id() & 3u32);
        let output = (warp >> warps.k_parts().ilog2()) * OUTPUTS + row * 2u32;
        let panel_bytes = panel * (kernel.panel_rows() * PANEL_BYTES);
        let offset =
            |row, byte| SwizzledOffset::new(Swizzle::B128, row, byte).plus_bytes(panel_bytes);
        let byte = block * (K_BLOCK / 2) + group * 8u32;
        let tokens = match context.tokens {
            AOperand::Coded(_) => vec![offset(row, byte)],
            AOperand::Wide(_) => {
                let inside = block * (context.config.tile_m * PANEL_BYTES);
                let half = |i: u32| offset(row, group * 32u32 + 16 * i).plus_bytes(inside);
                vec![half(0), half(1)]
            }
        };
        Self {
            kernel,
            output,
            part,
            block,
            panel,
            codes: LANE_ROWS.map(|i| offset(output + i, byte)),
            tokens,
            scale_selector: two_byte_selector(group),
        }
    }

    /// Computes the partial sums of a tile.
    #[track_caller]
    fn partial_sums(&self, slots: Ring<CodedTiles>, tile: TileCoord) -> WarpSums {
        let (context, warps) = (self.kernel.context, self.kernel.warps);
        let tile_m = context.config.tile_m;
        let of_output =
            LANE_ROWS.map(|i| self.scale_offset(self.output + i, tile.n * self.kernel.tile_n()));
        let row = lane_id() >> 2u32;
        let of_token = |i| self.scale_offset(row + 8 * i, tile.m * tile_m);
        let of_token: Vec<_> = (0..tile_m / 8).map(of_token).collect();
        let first = context.first_panel() + self.panel;
        let zeros = vec![[0.0f32.reg(); 4]; LANE_ROWS.len() * (tile_m / 8) as usize];
        steps(context.rounds).fold(zeros, |round, sums| {
            let slot = slots.wait();
            let loaded = (0..warps.panels_per_warp()).map(|i| {
                let panel = self.panel_of(slot.tiles(), i);
                let output = |i: usize| self.weights(panel, self.codes[i], of_output[i]);
                (self.tokens(panel, &of_token), [0, 1, 2, 3].map(output))
            });
            let loaded: Vec<_> = loaded.collect();
            slot.release();
            let panel_index = first + round * warps.panels();
            (0..)
                .zip(loaded)
                .fold(sums, |sums, (i, (tokens, outputs))| {
                    let pairs = |loaded| self.pairs(loaded, panel_index + i);
                    let tokens: Vec<_> = tokens.into_iter().flat_map(pairs).collect();
                    let chunks = sums.chunks(tokens.len()).zip(outputs);
                    let sums = chunks.map(|(sums, both)| multiply(sums, pairs(both), &tokens));
                    sums.collect::<Vec<_>>().concat()
                })
        })
    }

    /// Returns the slot shifted by `i` panels: the warp's offsets then address its panel `i`.
    fn panel_of(&self, (bytes, scales): Panel, i: u32) -> Panel {
        let rows = self.kernel.panel_rows();
        let first = i * BLOCKS_PER_PANEL * TILE_WORDS;
        (
            bytes.slice(i * rows..(i + 1) * rows, 0..PANEL_BYTES),
            scales.slice(0..1, first..scales.cols()),
        )
    }

    /// Returns the word offset of a row's scales in the warp's first panel; the tile starts at row `first`.
    #[track_caller]
    fn scale_offset(&self, row: Reg<u32>, first: Reg<u32>) -> Reg<u32> {
        let inside = self.kernel.context.scale_offset(first + row, first);
        inside + (self.panel * BLOCKS_PER_PANEL + self.block) * TILE_WORDS
    }

    /// Loads the codes and scales of an output in both weights.
    #[track_caller]
    fn weights(&self, panel: Panel, offset: SwizzledOffset, place: Reg<u32>) -> LaneRows<T::Pair> {
        let n = self.kernel.tile_n();
        let of_both = [0, 1].map(|i| {
            let rows = panel.0.slice(i * n..(i + 1) * n, 0..PANEL_BYTES);
            let four = scale(panel, i * self.kernel.scale_words(n), place);
            (rows.load_swizzled(offset), four)
        });
        LaneRows::Codes(of_both)
    }

    /// Loads the lane's token of every eight.
    #[track_caller]
    fn tokens(&self, panel: Panel, places: &[Reg<u32>]) -> Vec<LaneRows<T::Pair>> {
        let (tile_m, tile_n) = (self.kernel.context.config.tile_m, self.kernel.tile_n());
        let rows = |i: u32| {
            let row = 2 * tile_n + 8 * i;
            panel.0.slice(row..row + 8, 0..PANEL_BYTES)
        };
        let twos = (0..tile_m / 8).step_by(2).map(|i| [i, i + 1]);
        let loaded = twos.map(|two| match self.tokens[..] {
            [offset] => LaneRows::Codes(two.map(|i| {
                let first = 2 * self.kernel.scale_words(tile_n);
                let four = scale(panel, first, places[i as usize]);
                (rows(i).load_swizzled(offset), four)
            })),
            _ => LaneRows::Numbers(two.map(|i| {
                let eights = self
                    .tokens
                    .iter()
                    .map(|&offset| rows(i).load_swizzled(offset));
                eights.collect()
            })),
        });
        loaded.collect()
    }

    /// Returns the numbers of two loaded rows in decode order.
    #[track_caller]
    fn pairs(&self, loaded: LaneRows<T::Pair>, panel_index: Reg<u32>) -> [Pairs<T::Pair>; 2] {
        let halves: [Vec<[Reg<T::Pair>; 4]>; 2] = match loaded {
            LaneRows::Codes(rows) => {
                let block = panel_index * BLOCKS_PER_PANEL + self.block;
                let fours =
                    rows.map(|(_, four)| self.kernel.context.zero_scales_past_k(four, block));
                let scales = T::decode_scales(fours, self.scale_selector);
                [0, 1].map(|i| rows[i].0.map(|word| T::decode8(word, scales[i])).into())
            }
            LaneRows::Numbers(rows) => {
                rows.map(|eights| eights.into_iter().map(deinterleave).collect())
            }
        };
        halves.map(|halves| std::array::from_fn(|i| halves[i / 4][i % 4]))
    }

    /// Stores partial sums in the register layout of the epilogue's warpgroup.
    #[track_caller]
    fn store_sums(&self, sums: &WarpSums, to: TileRef<f32>) {
        let rows = self.kernel.context.config.tile_m / 8;
        let halves = self.kernel.warps.output_sets();
        for (i, sums) in LANE_ROWS.into_iter().zip(sums.chunks(rows as usize)) {
            let output = self.output + i;
            let half = self.part * halves + (output >> OUTPUTS.ilog2());
            // Four lanes of the warpgroup hold one of 32 outputs.
            let thread = (output & (OUTPUTS - 1)) * 4u32 + (lane_id() & 3u32);
            for (j, &four) in (0u32..).zip(sums) {
                to.store_vec(half * rows + j, thread * 4u32, four);
            }
        }
    }
}

/// 16 elements of K of each of two rows, as loaded from a slot.
enum LaneRows<T> {
    /// Codes, and a word of four scales that contains theirs.
    Codes([([Reg<u32>; 2], Reg<u32>); 2]),
    /// 16-bit numbers, eight at a time.
    Numbers([Vec<[Reg<T>; 4]>; 2]),
}

/// Loads a word of four scales, `place` words after word `first`.
#[track_caller]
fn scale(panel: Panel, first: u32, place: Reg<u32>) -> Reg<u32> {
    let scales = panel.1.slice(0..1, first..panel.1.cols());
    let [four] = scales.load_as::<u32, 1>(0u32, place);
    four
}

/// Permutes eight consecutive numbers to decode order: pair i holds numbers i and i + 4.
#[track_caller]
fn deinterleave<T: MatrixWord>(eight: [Reg<T>; 4]) -> [Reg<T>; 4] {
    let [a, b, c, d] = eight.map(|pair| pair.bitcast::<u32>());
    [
        (a, c, 0x5410u32),
        (a, c, 0x7632),
        (b, d, 0x5410),
        (b, d, 0x7632),
    ]
    .map(|(x, y, two)| prmt(x, y, two).bitcast())
}

/// Multiplies an output with all tokens and adds to the accumulators.
#[track_caller]
fn multiply<T: MmaWith<T>>(
    sums: &[[Reg<f32>; 4]],
    [gate, up]: [Pairs<T>; 2],
    tokens: &[Pairs<T>],
) -> WarpSums {
    let added = sums.iter().zip(tokens).map(|(&sums, x)| {
        (0..8).step_by(2).fold(sums, |sums, i| {
            let weights = [gate[i], up[i], gate[i + 1], up[i + 1]];
            mma_sync(sums, weights, [x[i], x[i + 1]])
        })
    });
    added.collect()
}
