//! For few tokens: warps that decode weights and multiply, each for itself.
//!
//! Where a tile has 16 tokens the tensor cores have little to do, and what binds
//! is decoding: many warps do it, and one role for all of them that of A, so that
//! no step comes before the line. A warp has 16 outputs, of both weights, and one
//! of the four blocks of 64 of K of a slot; a role behind adds up what the warps
//! of the same outputs have, and finishes the tile.

use super::decode::{Decoded, selector};
use super::end::{End, finish};
use super::line::{BLOCK, BLOCKS, Coded, Line, OUTPUTS, PANEL, Tokens, WIDTH, scale_words};
use super::scales::TILE_WORDS;
use crate::gemm::Config;
use crate::gemm::walk::Seat;
use warpline_ir::Swizzle;
use warpline_ir::build::*;

/// Outputs of a warp: two neighbours for each four lanes, so that the rows that
/// lanes read at a time lie in different banks.
pub(super) const EACH: u32 = 16;

/// Rows of 128 bytes that a panel has of A, for each token: of codes or of numbers.
fn rows_of_token(coded: bool) -> u32 {
    if coded { 1 } else { WIDTH * 2 / PANEL }
}

/// Sums of a warp: for each of a lane's two outputs and 8 tokens what `mma.sync`
/// leaves in a lane, of the gate above the other weight.
type Sums = Vec<[Reg<f32>; 4]>;

/// A lane's 16 of K of a row, in the order in which they are decoded: pairs, of
/// which `mma.sync` takes two at a time.
type Pairs<T> = [Reg<T>; 8];

/// Panels of a slot: what waiting for one costs is shared by all that it has.
pub(super) fn panels(c: &Config) -> u32 {
    c.tile_k / WIDTH
}

/// Warps of the same outputs and the same block of panels, which take panels of
/// a slot in turn.
fn turns(c: &Config) -> u32 {
    4 * c.consumers * EACH / (BLOCKS * c.tile_n)
}

/// Parts that sums are made of.
pub(super) fn parts(c: &Config) -> u32 {
    BLOCKS * turns(c)
}

/// Slots of A as pairs.
pub(super) const TOKEN_STAGES: u32 = 2;

/// Rows of bytes of a panel of a slot, and words of scales: of the gate, of the
/// other weight, and of A.
pub(super) fn panel_extents(c: &Config, coded: bool) -> [u32; 2] {
    let tokens = if coded { scale_words(c.tile_m) } else { 0 };
    let rows = 2 * c.tile_n + rows_of_token(coded) * c.tile_m;
    [rows, 2 * scale_words(c.tile_n) + tokens]
}

/// Rows of a slot of A as pairs, for each panel: for each block of K and eight
/// tokens what lanes take, eight numbers at a time.
fn rows_of_pairs(c: &Config) -> u32 {
    BLOCKS * c.tile_m / 4
}

/// A panel of a slot: bytes and scales.
type Panel = (TileRef<u8>, TileRef<u32>);

/// Declares the roles.
pub(super) fn roles<T: Decoded>(k: Builder, line: &Line<'_, T>) {
    let c = line.config;
    let slots = k.ring("slots", c.stages, |s| {
        let [rows, words] = panel_extents(c, line.course.coded);
        (s.tile(panels(c) * rows, PANEL), s.vector(panels(c) * words))
    });
    let slots = slots.shared();

    let x = k.ring("x", TOKEN_STAGES, |s| {
        s.plain::<T>(panels(c) * rows_of_pairs(c), 256)
    });
    let x = x.by_threads();
    // For each part of the sums and 32 outputs, as a warpgroup's tile lies in lanes.
    let (halves, rows) = (c.tile_n / OUTPUTS, c.tile_m / 8);
    let handed = k.ring("parts", 1, |s| {
        s.plain::<f32>(parts(c) * halves * rows, 512)
    });
    let handed = handed.by_threads();
    let multiply = k.role("multiply").warps(4 * c.consumers);
    multiply.body(|| {
        let warp = Warp::new(line);
        line.each(|seat| {
            let sums = warp.sums(slots, x, seat);
            let slot = handed.acquire();
            warp.hand(&sums, &slot.tiles());
            slot.commit();
        });
    });
    k.role("widen").warps(BLOCKS).body(|| {
        let widen = Widen::new(line);
        line.each(|seat| widen.tile(slots, x, seat));
    });
    let ends: Vec<_> = (0..halves).map(|i| End::declare(k, line, i)).collect();
    k.role("finish").warpgroups(1).body(|| {
        wait_prerequisites();
        line.each(|seat| {
            let slot = handed.wait();
            let zeros = Frag::zeros(2 * OUTPUTS, c.tile_m);
            let part = |i: u32, half: u32| {
                let first = (i * halves + half) * rows;
                zeros.load_lanes(&slot.slice(first..first + rows, 0..512))
            };
            let sums = (0..halves).map(|half| {
                let first = part(0, half);
                (1..parts(c)).fold(first, |sums, i| sums.zip(&part(i, half), |x, y| x + y))
            });
            let sums: Vec<_> = sums.collect();
            slot.release();
            finish(&ends, sums, seat);
        });
    });
    k.role("load").warps(1).body(|| {
        elect(|| {
            line.prefetch();
            wait_prerequisites();
            line.each(|seat| {
                let first = line.first();
                steps(line.rounds).each(|round| {
                    let slot = slots.acquire();
                    for panel in 0..panels(c) {
                        let number = first + round * panels(c) + panel;
                        fill(line, &slot, panel, seat, number);
                    }
                    slot.commit();
                });
            });
        });
    });
}

/// Fills a panel of a slot with its place along K of weights and A.
#[track_caller]
fn fill<T: Decoded>(
    line: &Line<'_, T>,
    slot: &Slot<Coded, Filling>,
    panel: u32,
    seat: Seat,
    number: Reg<u32>,
) {
    let c = line.config;
    let [row, word] = panel_extents(c, line.course.coded).map(|each| panel * each);
    line.fill_weights(slot, [row, word], seat, number);
    let token = seat.m * c.tile_m;
    let row = row + 2 * c.tile_n;
    match line.tokens {
        Tokens::Coded(maps) => {
            let to = [row, word + 2 * scale_words(c.tile_n)];
            line.fill(slot, to, maps, c.tile_m, [token, number], None);
        }
        Tokens::Numbers(bytes) => {
            let panels = rows_of_token(false);
            for i in 0..panels {
                let row = row + i * c.tile_m;
                let to = slot.0.slice(row..row + c.tile_m, 0..PANEL);
                slot.load(bytes, to, [(number * panels + i) * PANEL, token]);
            }
        }
    }
}

/// What is a warp's own of every slot.
struct Warp<'a, T: Decoded> {
    line: &'a Line<'a, T>,
    /// The first of the tile's outputs that are its lane's.
    output: Reg<u32>,
    /// Which part of the sums is its own.
    part: Reg<u32>,
    /// Where the codes of its two outputs are, of the gate.
    codes: [Spot; 2],
    decoder: Decoder<'a, T>,
}

impl<'a, T: Decoded> Warp<'a, T> {
    #[track_caller]
    fn new(line: &'a Line<'a, T>) -> Self {
        let (c, warp) = (line.config, warp_in_role());
        let turn = (warp >> BLOCKS.ilog2()) & (turns(c) - 1);
        let decoder = Decoder::new(line, warp & (BLOCKS - 1), turn, panels(c) / turns(c));
        let output = (warp >> parts(c).ilog2()) * EACH + (lane_id() >> 2u32) * 2u32;
        Self {
            line,
            output,
            part: warp & (parts(c) - 1),
            codes: [0, 1].map(|i| decoder.codes(output + i)),
            decoder,
        }
    }

    /// The sums of a tile.
    #[track_caller]
    fn sums(&self, slots: Ring<Coded>, x: Ring<Tile<T>>, seat: Seat) -> Sums {
        let (c, decoder) = (self.line.config, &self.decoder);
        let places = [0, 1].map(|i| decoder.scales(self.output + i, seat.n * c.tile_n));
        let first = self.line.first();
        let zeros = vec![[0.0f32.reg(); 4]; 2 * (c.tile_m / 8) as usize];
        steps(self.line.rounds).fold(zeros, |round, sums| {
            let slot = slots.wait();
            let taken = (0..decoder.panels).map(|i| {
                let panel = decoder.panel(slot.tiles(), i);
                [0, 1].map(|i| self.weights(panel, self.codes[i], places[i]))
            });
            let taken: Vec<_> = taken.collect();
            slot.release();
            let slot = x.wait();
            let number = decoder.number(first, round);
            let sums = (0..).zip(taken).fold(sums, |sums, (i, [first, second])| {
                let number = number + i;
                let first = first.map(|x| decoder.pairs(x, number));
                // Tokens come while the second output is decoded.
                let tokens = decoder.handed(slot.tiles(), i);
                let second = second.map(|x| decoder.pairs(x, number));
                multiply(sums, &[first, second], &tokens)
            });
            slot.release();
            sums
        })
    }

    /// An output of both weights, as a panel has it.
    #[track_caller]
    fn weights(&self, panel: Panel, spot: Spot, place: Reg<u32>) -> [Taken<T::Pair>; 2] {
        let n = self.line.config.tile_n;
        [0, 1].map(|i| {
            let rows = panel.0.slice(i * n..(i + 1) * n, 0..PANEL);
            Taken::Codes(
                rows.load_spot(spot),
                scale(panel, i * scale_words(n), place),
            )
        })
    }

    /// Leaves sums where the lanes of a warpgroup look for their part of 32 outputs.
    #[track_caller]
    fn hand(&self, sums: &Sums, to: &TileRef<f32>) {
        let c = self.line.config;
        let (halves, rows) = (c.tile_n / OUTPUTS, c.tile_m / 8);
        for (i, sums) in (0u32..).zip(sums.chunks(rows as usize)) {
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

/// What is a warp's own of A.
struct Widen<'a, T: Decoded> {
    line: &'a Line<'a, T>,
    /// Where its tokens are, of those that a slot has: codes of 16 of K, or the
    /// first and the last eight numbers.
    tokens: Vec<Spot>,
    decoder: Decoder<'a, T>,
}

impl<'a, T: Decoded> Widen<'a, T> {
    #[track_caller]
    fn new(line: &'a Line<'a, T>) -> Self {
        let all = panels(line.config);
        let decoder = Decoder::new(line, warp_in_role(), 0u32.reg(), all);
        let row = lane_id() >> 2u32;
        let tokens = match line.tokens {
            Tokens::Coded(_) => vec![decoder.codes(row)],
            Tokens::Numbers(_) => {
                let panel = decoder.block * (line.config.tile_m * PANEL);
                let byte = (lane_id() & 3u32) * 32u32;
                let half = |i: u32| Spot::new(Swizzle::B128, row, byte + 16 * i).plus(panel);
                vec![half(0), half(1)]
            }
        };
        Self {
            line,
            tokens,
            decoder,
        }
    }

    /// Makes pairs of A for a tile.
    #[track_caller]
    fn tile(&self, slots: Ring<Coded>, x: Ring<Tile<T>>, seat: Seat) {
        let (c, decoder) = (self.line.config, &self.decoder);
        let row = lane_id() >> 2u32;
        let place = |i| decoder.scales(row + 8 * i, seat.m * c.tile_m);
        let places: Vec<_> = (0..c.tile_m / 8).map(place).collect();
        let first = self.line.first();
        steps(self.line.rounds).each(|round| {
            let slot = slots.wait();
            let taken = (0..decoder.panels).map(|i| {
                let panel = decoder.panel(slot.tiles(), i);
                let tokens = (0..).zip(&places);
                tokens
                    .map(|(i, &place)| self.token(panel, i, place))
                    .collect()
            });
            let taken: Vec<Vec<_>> = taken.collect();
            slot.release();
            let slot = x.acquire();
            let number = decoder.number(first, round);
            for (i, tokens) in (0..).zip(taken) {
                let tokens = tokens.into_iter().map(|x| decoder.pairs(x, number + i));
                decoder.hand(tokens, slot.tiles(), i);
            }
            slot.commit();
        });
    }

    /// A token of the `i`th eight, as a panel has it.
    #[track_caller]
    fn token(&self, panel: Panel, i: u32, place: Reg<u32>) -> Taken<T::Pair> {
        let c = self.line.config;
        let row = 2 * c.tile_n + 8 * i;
        let rows = panel.0.slice(row..row + 8, 0..PANEL);
        match self.tokens[..] {
            [spot] => {
                let first = 2 * scale_words(c.tile_n);
                Taken::Codes(rows.load_spot(spot), scale(panel, first, place))
            }
            _ => {
                let eights = self.tokens.iter().map(|&spot| rows.load_spot(spot));
                Taken::Numbers(eights.collect())
            }
        }
    }
}

/// Where a warp's blocks of 64 of K are, and what becomes of them.
struct Decoder<'a, T: Decoded> {
    line: &'a Line<'a, T>,
    /// Its block of a panel.
    block: Reg<u32>,
    /// Its first panel of a slot, and how many it has.
    first: Reg<u32>,
    panels: u32,
    /// Picks the scale of the lane's group of 16 of four.
    pick: Reg<u32>,
    /// Where a slot of A has its pairs of the first eight tokens of its first panel.
    place: [Reg<u32>; 2],
}

impl<'a, T: Decoded> Decoder<'a, T> {
    #[track_caller]
    fn new(line: &'a Line<'a, T>, block: Reg<u32>, turn: Reg<u32>, panels: u32) -> Self {
        let c = line.config;
        let first = turn * panels;
        let row = first * rows_of_pairs(c) + block * (c.tile_m / 4);
        Self {
            line,
            block,
            first,
            panels,
            pick: selector(lane_id() & 3u32),
            place: [row, lane_id() * 8u32],
        }
    }

    /// The number along K of its first panel of a round.
    #[track_caller]
    fn number(&self, first: Reg<u32>, round: Reg<u32>) -> Reg<u32> {
        first + round * panels(self.line.config) + self.first
    }

    /// What its first panel of a slot lies behind the slot's first: bytes, and words of scales.
    #[track_caller]
    fn behind(&self) -> [Reg<u32>; 2] {
        let [rows, words] = panel_extents(self.line.config, self.line.course.coded);
        [self.first * (rows * PANEL), self.first * words]
    }

    /// Where the lane's codes of a row are.
    #[track_caller]
    fn codes(&self, row: Reg<u32>) -> Spot {
        let byte = self.block * (BLOCK / 2) + (lane_id() & 3u32) * 8u32;
        Spot::new(Swizzle::B128, row, byte).plus(self.behind()[0])
    }

    /// Where the scales are of a row of a tile, which starts with the other.
    #[track_caller]
    fn scales(&self, row: Reg<u32>, first: Reg<u32>) -> Reg<u32> {
        let inside = self.line.place_of_scale(first + row, first);
        inside + self.block * TILE_WORDS + self.behind()[1]
    }

    /// The numbers of what was taken of a row of a slot, in the order in which
    /// they are decoded.
    #[track_caller]
    fn pairs(&self, taken: Taken<T::Pair>, number: Reg<u32>) -> Pairs<T::Pair> {
        let halves: Vec<[Reg<T::Pair>; 4]> = match taken {
            Taken::Codes(words, four) => {
                let four = self.line.inside(four, number * BLOCKS + self.block);
                let scale = T::scale(four, self.pick);
                words.map(|word| T::numbers(word, scale)).into()
            }
            Taken::Numbers(eights) => eights.into_iter().map(in_order).collect(),
        };
        std::array::from_fn(|i| halves[i / 4][i % 4])
    }

    /// What lies as its `i`th panel of a slot does, where that is the slot's `i`th.
    fn panel(&self, (bytes, scales): Panel, i: u32) -> Panel {
        let [rows, words] = panel_extents(self.line.config, self.line.course.coded);
        (
            bytes.slice(i * rows..(i + 1) * rows, 0..PANEL),
            scales.slice(0..1, i * words..(i + 1) * words),
        )
    }

    /// Leaves the pairs of a panel's tokens for the warps that multiply.
    #[track_caller]
    fn hand(&self, tokens: impl Iterator<Item = Pairs<T::Pair>>, to: TileRef<T>, panel: u32) {
        let [row, col] = self.place;
        let first = panel * rows_of_pairs(self.line.config);
        let halves = tokens.flat_map(|[a, b, c, d, e, f, g, h]| [[a, b, c, d], [e, f, g, h]]);
        for (i, half) in (first..).zip(halves) {
            to.store_as(row + i, col, half);
        }
    }

    /// What was left of a panel's tokens.
    #[track_caller]
    fn handed(&self, from: TileRef<T>, panel: u32) -> Vec<Pairs<T::Pair>> {
        let [row, col] = self.place;
        let m = self.line.config.tile_m;
        let first = panel * rows_of_pairs(self.line.config);
        let tokens = (0..m / 8).map(|i| {
            let half = |half: u32| from.load_as::<T::Pair, 4>(row + (first + 2 * i + half), col);
            let [[a, b, c, d], [e, f, g, h]] = [half(0), half(1)];
            [a, b, c, d, e, f, g, h]
        });
        tokens.collect()
    }
}

/// 16 of K of a row, as a slot has them.
enum Taken<T> {
    /// Codes, and four scales of which one is theirs.
    Codes([Reg<u32>; 2], Reg<u32>),
    /// Eights of numbers.
    Numbers(Vec<[Reg<T>; 4]>),
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

/// Adds the products of a lane's outputs with its tokens.
#[track_caller]
fn multiply<T: Mixes<T>>(
    mut sums: Sums,
    outputs: &[[Pairs<T>; 2]; 2],
    tokens: &[Pairs<T>],
) -> Sums {
    for i in (0..8).step_by(2) {
        for (output, [gate, up]) in outputs.iter().enumerate() {
            let weights = [gate[i], up[i], gate[i + 1], up[i + 1]];
            for (j, token) in tokens.iter().enumerate() {
                let at = output * tokens.len() + j;
                sums[at] = mma_sync(sums[at], weights, [token[i], token[i + 1]]);
            }
        }
    }
    sums
}
