//! The schedule `warps`, for few tokens: every warp decodes A and weights, and multiplies with `mma.sync`.
//!
//! With few tokens per tile the tensor cores are mostly idle, and A is small enough for every warp to decode
//! the part of A that it multiplies. So no earlier launch widens A, and one ring holds weights and A. Each
//! warp computes 32 outputs (gate and up rows); warps with the same outputs divide the blocks of K. The
//! role `epilogue` adds their partial accumulators and stores the tile.

use super::context::{AOperand, CodedTiles, Context};
use super::decode::{DecodeTarget, two_byte_selector};
use super::epilogue::{Epilogue, run_epilogues};
use super::kernel_spec::Outputs;
use super::schedule::WarpTile;
use super::units::{BLOCKS_PER_PANEL, K_BLOCK, MMA_WARPS, OUTPUTS, PANEL_BYTES, PANEL_K};
use crate::gemm::tile_scheduler::TileCoord;
use warpline_ir::Swizzle;
use warpline_ir::builder::*;

/// The four accumulator pairs of a lane, relative to `2 * (lane / 4)`. With this assignment the rows that the lanes
/// load at the same time are in different banks.
const LANE_PAIRS: [u32; 4] = [0, 1, 16, 17];

/// The kernel context with the tile shape of the schedule `warps`.
struct WarpsContext<'a, T: DecodeTarget> {
    context: &'a Context<'a, T>,
    tile_shape: WarpTile,
}

impl<T: DecodeTarget> WarpsContext<'_, T> {
    /// Returns the 128-byte rows of one panel in a slot: upper and lower rows, rows of A.
    fn panel_rows(&self) -> u32 {
        let a_rows = rows_per_token(self.context.spec.a_is_coded) * self.context.config.tile_m;
        2 * self.tile_n() + a_rows
    }

    /// Returns the words of scales in a slot: weights, and A if it is coded.
    fn slot_scale_words(&self) -> u32 {
        let a_words = match self.context.spec.a_is_coded {
            true => self.scale_words(self.context.config.tile_m),
            false => 0,
        };
        self.weight_scale_words() + a_words
    }

    /// Returns the words of weight scales in a slot.
    fn weight_scale_words(&self) -> u32 {
        self.context.spec.weight_scale_words()
    }

    /// Returns the words of scales in a slot for `rows` rows.
    fn scale_words(&self, rows: u32) -> u32 {
        self.context.spec.scale_words(rows)
    }

    /// Returns the accumulator pairs of a token in a tile.
    fn tile_n(&self) -> u32 {
        self.context.config.schedule.tile_n()
    }
}

/// Returns the 128-byte rows that one token of A takes in a panel, in codes or in 16 bits.
fn rows_per_token(a_is_coded: bool) -> u32 {
    if a_is_coded {
        1
    } else {
        PANEL_K * 2 / PANEL_BYTES
    }
}

/// A panel of a slot: codes (or 16-bit elements of A) and scales.
type Panel = (TileRef<u8>, TileRef<u32>);

/// A lane's 16 elements of K of one row as pairs in decode order. Each `mma.sync` takes two pairs.
type RowPairs<T> = [Reg<T>; 8];

/// A lane's accumulators: one `mma.sync` fragment for each of its pairs and each 8 tokens. Rows 0 to 7 of
/// the fragment are upper weight rows, rows 8 to 15 lower ones.
type WarpAccumulators = Vec<[Reg<f32>; 4]>;

/// Declares the roles `load`, `multiply` and `epilogue`, and their rings.
pub(super) fn roles<T: DecodeTarget>(k: Builder, context: &Context<'_, T>, tile_shape: WarpTile) {
    let kernel = &WarpsContext {
        context,
        tile_shape,
    };
    let c = context.config;
    let operands = k.ring("operands", c.stages, |s| {
        let rows = tile_shape.panels() * kernel.panel_rows();
        (
            s.tile(rows, PANEL_BYTES),
            s.vector(kernel.slot_scale_words()),
        )
    });
    // One slot holds the partial accumulators of each K slice and each set of 32 outputs, in the register
    // layout of the epilogue's warpgroup: one row for each 8 tokens.
    let (output_sets, rows_per_set) = (tile_shape.output_sets(), c.tile_m / 8);
    let partial_accs = k.ring("partial_accs", 1, |s| {
        s.unswizzled::<f32>(tile_shape.k_slices() * output_sets * rows_per_set, 512)
    });
    let partial_accs = partial_accs.generic_proxy_only();
    // PDL-safe inputs need no wait: no earlier launch writes them.
    let wait_unless_pdl_safe = || {
        if !context.spec.weights_are_pdl_safe {
            wait_prerequisites();
        }
    };
    // All other roles wait for the loads, so their role comes first in the instruction stream.
    k.role("load").warpgroups(1).body(|| {
        elect(|| {
            wait_unless_pdl_safe();
            context.each_tile(|tile| {
                let first_panel = context.first_panel();
                steps(context.rounds).each(|round| {
                    let slot = operands.acquire();
                    load_slot(
                        kernel,
                        &slot,
                        tile,
                        first_panel + round * tile_shape.panels(),
                    );
                    slot.commit();
                });
            });
        });
    });
    k.role("multiply").warps(MMA_WARPS).body(|| {
        let lane = LaneOffsets::new(kernel);
        context.each_tile(|tile| {
            let accs = lane.mainloop(operands, tile);
            let slot = partial_accs.acquire();
            lane.store_accumulators(&accs, slot.tiles());
            slot.commit();
        });
    });
    let epilogues: Vec<_> = (0..output_sets)
        .map(|i| Epilogue::declare(k, context, i))
        .collect();
    k.role("epilogue").warpgroups(1).body(|| {
        elect(|| context.out.prefetch());
        wait_unless_pdl_safe();
        context.each_tile(|tile| {
            let slot = partial_accs.wait();
            let zeros = Frag::zeros(2 * OUTPUTS, c.tile_m);
            let load_partial = |k_slice: u32, output_set: u32| {
                let first = (k_slice * output_sets + output_set) * rows_per_set;
                zeros.load_thread_major(&slot.slice(first..first + rows_per_set, 0..512))
            };
            let accs = (0..output_sets).map(|output_set| {
                let acc = load_partial(0, output_set);
                (1..tile_shape.k_slices()).fold(acc, |acc, k_slice| {
                    acc.zip(&load_partial(k_slice, output_set), |x, y| x + y)
                })
            });
            let accs: Vec<_> = accs.collect();
            slot.release();
            run_epilogues(&epilogues, accs, tile);
        });
    });
}

/// Issues the loads of a slot: weights and A, starting with panel `panel_index` of K.
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
    let load_a = |map, row: u32, column_panel: Reg<u32>| {
        let to = slot.0.slice(row..row + tile_m, 0..PANEL_BYTES);
        slot.load(map, to, [column_panel * PANEL_BYTES, token]);
    };
    if let AOperand::Coded([_, scales]) = context.a {
        let first = kernel.weight_scale_words();
        let to = slot
            .1
            .slice(0..1, first..first + kernel.scale_words(tile_m));
        let boxes = context.spec.scale_boxes;
        boxes.load(slot, scales, to, [panel_index, token], None);
    }
    for panel in 0..kernel.tile_shape.panels() {
        let (row, panel_index) = (panel * kernel.panel_rows(), panel_index + panel);
        context.load_codes(slot, row, tile, panel_index);
        let row = row + 2 * tile_n;
        match context.a {
            AOperand::Coded([codes, _]) => load_a(codes, row, panel_index),
            AOperand::Wide(bytes) => {
                let rows_per_token = rows_per_token(false);
                for i in 0..rows_per_token {
                    load_a(bytes, row + i * tile_m, panel_index * rows_per_token + i);
                }
            }
        }
    }
}

/// The rows, blocks and offsets of one lane in a slot.
struct LaneOffsets<'a, T: DecodeTarget> {
    kernel: &'a WarpsContext<'a, T>,
    /// The lane's first accumulator pair of the tile, counted over the sets of 32.
    first_pair: Reg<u32>,
    /// The upper weight row of that pair in the tile.
    first_row: Reg<u32>,
    /// Index of the warp among the warps with the same outputs, which divide K.
    k_slice: Reg<u32>,
    /// The warp's 64-element block of a panel.
    block: Reg<u32>,
    /// The warp's first panel of a slot.
    first_panel: Reg<u32>,
    /// Offsets of the upper codes of the lane's pairs in the first panel.
    upper_codes: [SwizzledOffset; 4],
    /// Offsets of the lane's first token in the first panel: one offset of 16 codes, or two offsets of
    /// eight 16-bit elements each.
    token: Vec<SwizzledOffset>,
    /// Selector of the scale of the lane's group of 16.
    scale_selector: Reg<u32>,
}

impl<'a, T: DecodeTarget> LaneOffsets<'a, T> {
    #[track_caller]
    fn new(kernel: &'a WarpsContext<'a, T>) -> Self {
        let (context, tile_shape, warp) = (kernel.context, kernel.tile_shape, warp_in_role());
        let k_slice = warp & (tile_shape.k_slices() - 1);
        let (block, panel_group) = (
            k_slice & (BLOCKS_PER_PANEL - 1),
            k_slice >> BLOCKS_PER_PANEL.ilog2(),
        );
        let first_panel = panel_group * tile_shape.panels_per_warp();
        let (row, group) = (lane_id() >> 2u32, lane_id() & 3u32);
        let output_set = warp >> tile_shape.k_slices().ilog2();
        let first_pair = output_set * OUTPUTS + row * 2u32;
        let first_row = match context.spec.outputs {
            Outputs::Gated(_) => first_pair,
            Outputs::Linear { .. } => output_set * (2 * OUTPUTS) + row * 2u32,
        };
        let panel_bytes = first_panel * (kernel.panel_rows() * PANEL_BYTES);
        let offset =
            |row, byte| SwizzledOffset::new(Swizzle::B128, row, byte).plus_bytes(panel_bytes);
        let byte = block * (K_BLOCK / 2) + group * 8u32;
        let token = match context.a {
            AOperand::Coded(_) => vec![offset(row, byte)],
            AOperand::Wide(_) => {
                let block_bytes = block * (context.config.tile_m * PANEL_BYTES);
                let eight_elements =
                    |i: u32| offset(row, group * 32u32 + 16 * i).plus_bytes(block_bytes);
                vec![eight_elements(0), eight_elements(1)]
            }
        };
        Self {
            kernel,
            first_pair,
            first_row,
            k_slice,
            block,
            first_panel,
            upper_codes: LANE_PAIRS.map(|i| offset(first_row + i, byte)),
            token,
            scale_selector: two_byte_selector(group),
        }
    }

    /// Runs the mainloop of a tile over the warp's K slice and returns the partial accumulators.
    #[track_caller]
    fn mainloop(&self, operands: Ring<CodedTiles>, tile: TileCoord) -> WarpAccumulators {
        let (context, tile_shape) = (self.kernel.context, self.kernel.tile_shape);
        let tile_m = context.config.tile_m;
        let output_scales = LANE_PAIRS
            .map(|i| self.scale_offset(self.first_row + i, tile.n * context.spec.weight_rows()));
        let row = lane_id() >> 2u32;
        let token_scale = |i| self.scale_offset(row + 8 * i, tile.m * tile_m);
        let token_scales: Vec<_> = (0..tile_m / 8).map(token_scale).collect();
        let first_panel = context.first_panel() + self.first_panel;
        let zeros = vec![[0.0f32.reg(); 4]; LANE_PAIRS.len() * (tile_m / 8) as usize];
        steps(context.rounds).fold(zeros, |round, accs| {
            let slot = operands.wait();
            let panels = (0..tile_shape.panels_per_warp()).map(|i| {
                let panel = self.nth_panel(slot.tiles(), i);
                let weights =
                    |i: usize| self.load_weights(panel, self.upper_codes[i], output_scales[i]);
                let tokens = self.load_tokens(panel, &token_scales);
                (tokens, [0, 1, 2, 3].map(weights))
            });
            let panels: Vec<_> = panels.collect();
            slot.release();
            let panel_index = first_panel + round * tile_shape.panels();
            (0..)
                .zip(panels)
                .fold(accs, |accs, (i, (tokens, weights))| {
                    let decode = |rows| self.decode_rows(rows, panel_index + i);
                    let tokens: Vec<_> = tokens.into_iter().flat_map(decode).collect();
                    let outputs = accs.chunks(tokens.len()).zip(weights);
                    let accs =
                        outputs.map(|(accs, weights)| multiply(accs, decode(weights), &tokens));
                    accs.collect::<Vec<_>>().concat()
                })
        })
    }

    /// Returns the slot shifted by `i` panels: the lane's offsets then address the warp's panel `i`.
    fn nth_panel(&self, (bytes, scales): Panel, i: u32) -> Panel {
        let rows = self.kernel.panel_rows();
        let first = i * BLOCKS_PER_PANEL * self.block_words();
        (
            bytes.slice(i * rows..(i + 1) * rows, 0..PANEL_BYTES),
            scales.slice(0..1, first..scales.cols()),
        )
    }

    /// Returns the distance in words of the scales of the next 64 elements of K.
    fn block_words(&self) -> u32 {
        self.kernel.context.spec.scale_boxes.block_words()
    }

    /// Returns the word offset of the scales of `row` in the warp's first panel. `row` counts from
    /// `tile_row`, the first row of the tile.
    #[track_caller]
    fn scale_offset(&self, row: Reg<u32>, tile_row: Reg<u32>) -> Reg<u32> {
        let offset = self.kernel.context.scale_offset(tile_row + row, tile_row);
        offset + (self.first_panel * BLOCKS_PER_PANEL + self.block) * self.block_words()
    }

    /// Loads the codes and scales of an accumulator pair: its upper and its lower row.
    #[track_caller]
    fn load_weights(
        &self,
        panel: Panel,
        codes: SwizzledOffset,
        scale_offset: Reg<u32>,
    ) -> LoadedRows<T::Pair> {
        let spec = self.kernel.context.spec;
        let lower_words = spec.lower_scale_words();
        let upper_and_lower = [0, 1].map(|i| {
            let first = i * spec.lower_rows();
            let end = match spec.outputs {
                Outputs::Gated(_) => first + self.kernel.tile_n(),
                Outputs::Linear { .. } => 2 * self.kernel.tile_n(),
            };
            let rows = panel.0.slice(first..end, 0..PANEL_BYTES);
            let scales = load_scale_word(panel, i * lower_words, scale_offset);
            (rows.load_swizzled(codes), scales)
        });
        LoadedRows::Codes(upper_and_lower)
    }

    /// Loads one token of each 8 tokens, two tokens at a time.
    #[track_caller]
    fn load_tokens(&self, panel: Panel, scale_offsets: &[Reg<u32>]) -> Vec<LoadedRows<T::Pair>> {
        let (tile_m, tile_n) = (self.kernel.context.config.tile_m, self.kernel.tile_n());
        let rows = |i: u32| {
            let row = 2 * tile_n + 8 * i;
            panel.0.slice(row..row + 8, 0..PANEL_BYTES)
        };
        let token_pairs = (0..tile_m / 8).step_by(2).map(|i| [i, i + 1]);
        let loaded = token_pairs.map(|token_pair| match self.token[..] {
            [codes] => LoadedRows::Codes(token_pair.map(|i| {
                let first = self.kernel.weight_scale_words();
                let scales = load_scale_word(panel, first, scale_offsets[i as usize]);
                (rows(i).load_swizzled(codes), scales)
            })),
            _ => LoadedRows::Elements(token_pair.map(|i| {
                let elements = self
                    .token
                    .iter()
                    .map(|&offset| rows(i).load_swizzled(offset));
                elements.collect()
            })),
        });
        loaded.collect()
    }

    /// Returns the elements of two loaded rows in decode order.
    #[track_caller]
    fn decode_rows(
        &self,
        loaded: LoadedRows<T::Pair>,
        panel_index: Reg<u32>,
    ) -> [RowPairs<T::Pair>; 2] {
        let rows: [Vec<[Reg<T::Pair>; 4]>; 2] = match loaded {
            LoadedRows::Codes(rows) => {
                let block = panel_index * BLOCKS_PER_PANEL + self.block;
                let scale_words =
                    rows.map(|(_, word)| self.kernel.context.zero_scales_past_k(word, block));
                let scales = T::decode_scales(scale_words, self.scale_selector);
                [0, 1].map(|i| {
                    rows[i]
                        .0
                        .map(|codes| T::decode8(codes, [scales[i]; 2]))
                        .into()
                })
            }
            LoadedRows::Elements(rows) => {
                rows.map(|row| row.into_iter().map(to_decode_order).collect())
            }
        };
        rows.map(|row| std::array::from_fn(|i| row[i / 4][i % 4]))
    }

    /// Stores the partial accumulators in the register layout of the epilogue's warpgroup.
    #[track_caller]
    fn store_accumulators(&self, accs: &WarpAccumulators, to: TileRef<f32>) {
        let rows_per_set = self.kernel.context.config.tile_m / 8;
        let output_sets = self.kernel.tile_shape.output_sets();
        for (i, accs) in LANE_PAIRS
            .into_iter()
            .zip(accs.chunks(rows_per_set as usize))
        {
            let pair = self.first_pair + i;
            let output_set = self.k_slice * output_sets + (pair >> OUTPUTS.ilog2());
            // Four threads of the warpgroup hold the accumulators of one of 32 pairs.
            let thread = (pair & (OUTPUTS - 1)) * 4u32 + (lane_id() & 3u32);
            for (j, &acc) in (0u32..).zip(accs) {
                to.store_vec(output_set * rows_per_set + j, thread * 4u32, acc);
            }
        }
    }
}

/// 16 elements of K of each of two rows, as loaded from a slot.
enum LoadedRows<T> {
    /// For each row two words of codes, and the word of four scales that contains their scale.
    Codes([([Reg<u32>; 2], Reg<u32>); 2]),
    /// For each row 16-bit elements, eight per array.
    Elements([Vec<[Reg<T>; 4]>; 2]),
}

/// Loads the word of four scales that is `offset` words after word `first`.
#[track_caller]
fn load_scale_word(panel: Panel, first: u32, offset: Reg<u32>) -> Reg<u32> {
    let scales = panel.1.slice(0..1, first..panel.1.cols());
    let [word] = scales.load_as::<u32, 1>(0u32, offset);
    word
}

/// Permutes eight consecutive elements to decode order: pair i holds elements i and i + 4.
#[track_caller]
fn to_decode_order<T: MatrixWord>(elements: [Reg<T>; 4]) -> [Reg<T>; 4] {
    let [a, b, c, d] = elements.map(|pair| pair.bitcast::<u32>());
    [
        (a, c, 0x5410u32),
        (a, c, 0x7632),
        (b, d, 0x5410),
        (b, d, 0x7632),
    ]
    .map(|(x, y, selector)| prmt(x, y, selector).bitcast())
}

/// Multiplies an upper and a lower row with all tokens, and adds to the accumulators.
#[track_caller]
fn multiply<T: MmaWith<T>>(
    accs: &[[Reg<f32>; 4]],
    [upper, lower]: [RowPairs<T>; 2],
    tokens: &[RowPairs<T>],
) -> WarpAccumulators {
    let updated = accs.iter().zip(tokens).map(|(&acc, x)| {
        (0..8).step_by(2).fold(acc, |acc, i| {
            let weights = [upper[i], lower[i], upper[i + 1], lower[i + 1]];
            mma_sync(acc, weights, [x[i], x[i + 1]])
        })
    });
    updated.collect()
}
