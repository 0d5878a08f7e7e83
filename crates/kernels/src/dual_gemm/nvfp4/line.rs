//! The line: weights are decoded by the warpgroups that multiply them, or by one before.
//!
//! Each consumer has 32 outputs: the 64 rows of its accumulator are those of
//! the gate and of the other weight, eight of each in turn, and its columns
//! are tokens. So what is decoded once is multiplied with up to 256 tokens,
//! and both sums of an output are in one thread.
//!
//! Consumers have outputs of their own and see every slot, or have the same
//! outputs and take slots in turn, each from rings of its own. In the form with
//! dequantisers they find weights decoded in a second ring.

use super::decode::{Decoded, SMALLER};
use super::end::End;
use super::multiply::consumer;
use super::scales::{MOST_GROUPS, TILE_WORDS};
use super::{bring, dequantise, warps};
use crate::gemm::problem::{Class, MOST};
use crate::gemm::tile_scheduler::{TileCoord, TileScheduler};
use crate::gemm::{Config, Form};
use crate::roles::{self, CONSUMERS};
use warpline_ir::build::*;
use warpline_ir::{BuildErrors, DType, Kernel, Target, TensorMapDecl};

/// The parameters of codes and scales: of the gate, of the other weight, and of A.
pub(super) const CODED: [[&str; 2]; 3] = [
    ["gate", "gate_scales"],
    ["up", "up_scales"],
    ["a", "a_scales"],
];

/// Elements of K of a block of scales, and the fewest that a consumer decodes
/// and multiplies at a time.
pub(super) const BLOCK: u32 = 64;

/// Elements of K of a slot of codes: a panel, since what a copy of a box costs
/// is counted in rows.
pub(super) const WIDTH: u32 = 256;

/// Blocks of a slot of codes.
pub(super) const BLOCKS: u32 = WIDTH / BLOCK;

/// Bytes of a row of a slot of codes.
pub(super) const PANEL: u32 = WIDTH / 2;

/// Outputs of a consumer.
pub(super) const OUTPUTS: u32 = 32;

/// Do consumers take slots in turn, and have the same outputs?
pub(super) fn takes_turns(c: &Config) -> bool {
    c.form == Form::Cooperative && c.tile_k == WIDTH
}

/// Elements of K that a consumer decodes and multiplies at a time.
pub(super) fn depth(c: &Config) -> u32 {
    if takes_turns(c) { BLOCK } else { c.tile_k }
}

/// Slots of a ring of A.
pub(super) fn token_stages(c: &Config) -> u32 {
    match takes_turns(c) {
        true => c.stages.saturating_mul(BLOCKS),
        false => c.stages,
    }
}

/// Panels of codes of a round: one for each feed.
pub(super) fn feeds(c: &Config) -> u32 {
    match c.form {
        Form::Warps => warps::panels(c),
        _ if takes_turns(c) => c.consumers,
        _ => 1,
    }
}

/// Slots of a ring of weights: as many as that of A is for, and one more where all consumers share it.
pub(super) fn weight_stages(c: &Config) -> u32 {
    match takes_turns(c) {
        true => c.stages,
        false => (c.stages.saturating_mul(c.tile_k)).div_ceil(WIDTH) + 1,
    }
}

/// What a line is given, and how it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Course {
    /// Does it get A in codes?
    pub(super) coded: bool,
    /// Rounds whose weights are loaded before A.
    pub(super) lead: u32,
    /// Do the steps before leave weights and their scales alone?
    pub(super) settled: bool,
    /// Is K a multiple of 64, so that no scale lies behind it?
    pub(super) whole: bool,
}

impl Course {
    /// Of a line over `k` of K.
    pub(super) fn new(k: u32, c: &Config, coded: bool, settled: bool) -> Self {
        Self {
            coded,
            lead: lead(c),
            settled,
            whole: k.is_multiple_of(BLOCK),
        }
    }
}

/// Rounds whose weights are loaded before A, where a step before makes it.
fn lead(c: &Config) -> u32 {
    match c.form {
        Form::Warps => 1,
        _ => weight_stages(c),
    }
}

/// Rounds of one CTA of as many as split K: at least those that it begins with,
/// of which some are zeros where K is short, so that one kernel serves every K.
pub(super) fn rounds(k: u32, c: &Config) -> u32 {
    k.div_ceil(WIDTH * feeds(c) * c.split_k).max(lead(c))
}

/// Blocks of 128 rows of scales that so many rows may lie in, which start at a
/// multiple of that many.
pub(super) fn bands(rows: u32) -> u32 {
    let step = 1 << rows.trailing_zeros().min(7);
    (128 - step + rows).div_ceil(128)
}

/// Panels of codes of a slot.
fn panels(c: &Config) -> u32 {
    match c.form {
        Form::Warps => warps::panels(c),
        _ => 1,
    }
}

/// Words of a slot of scales for so many rows.
pub(super) fn slot_words(c: &Config, rows: u32) -> u32 {
    bands(rows) * panels(c) * BLOCKS * TILE_WORDS
}

/// Tokens that each of the CTAs that split a tile's sums finishes.
pub(super) fn finished(c: &Config) -> u32 {
    c.tile_m / c.split_k
}

/// Codes, of weights all of the gate first, and their scales.
pub(super) type Coded = (Tile<u8>, Tile<u32>);

/// What a consumer multiplies: numbers of A, and weights.
pub(super) struct Feed<T: Decoded> {
    pub(super) x: Ring<Tile<T>>,
    pub(super) weights: Ring<Coded>,
}

/// A, as a line is given it.
#[derive(Clone, Copy)]
pub(super) enum Tokens {
    /// In 16 bits.
    Numbers(Map),
    /// Codes and scales.
    Coded([Map; 2]),
}

/// The map of codes, so many rows at a time.
pub(super) fn map_of_codes(rows: u32) -> TensorMapDecl {
    TensorMapDecl::tiled(DType::U8, [PANEL, rows])
}

/// The map of the scales of so many rows in blocks.
pub(super) fn map_of_scales(c: &Config, rows: u32) -> TensorMapDecl {
    let blocks = panels(c) * BLOCKS;
    TensorMapDecl::tiled(DType::U32, [TILE_WORDS, blocks, bands(rows)])
}

/// The map of A as numbers, or of the bytes of these.
pub(super) fn map_of_tokens(dtype: DType, c: &Config) -> TensorMapDecl {
    match c.form {
        Form::Warps => map_of_codes(c.tile_m),
        _ => TensorMapDecl::tiled(dtype, [BLOCK, c.tile_m]),
    }
}

/// The map of C.
pub(super) fn map_of_out(dtype: DType, c: &Config) -> TensorMapDecl {
    TensorMapDecl::tiled(dtype, [OUTPUTS, finished(c)])
}

/// One role brings codes and scales of the weights, and A, which the step before
/// makes; consumers decode weights and multiply. Where CTAs of a cluster split
/// the sums of a tile, each finishes a part of the tokens.
pub(super) fn build<T: Decoded>(
    class: &Class,
    c: &Config,
    course: Course,
    numbers: &[&str],
    target: &Target,
) -> Result<Kernel, BuildErrors> {
    Kernel::build("nvfp4_dual_gemm", target, |k| {
        let line = &Line::<T>::declare(k, class, c, course, numbers);
        if c.form == Form::Warps {
            return warps::roles(k, line);
        }
        let compute = || match (c.form, takes_turns(c)) {
            (Form::Dequantiser, _) => {
                let decoded = dequantise::role(k, line);
                for i in 0..c.consumers {
                    let end = End::declare(k, line, i);
                    let finish = |sums, tile| end.finish(sums, tile);
                    dequantise::consumer(k, line, decoded, i, finish);
                }
            }
            (_, false) => {
                for i in 0..c.consumers {
                    let end = End::declare(k, line, i);
                    consumer(k, line, i, |sums, tile| end.finish(sums, tile));
                }
            }
            (_, true) => {
                let end = End::declare(k, line, 0);
                let parts: Vec<_> = (1..c.consumers)
                    .map(|i| {
                        let name = format!("part_{}", CONSUMERS[i as usize]);
                        k.ring(&name, 1, |s| s.plain::<f32>(c.tile_m / 8, 512))
                    })
                    .collect();
                consumer(k, line, 0, |sums, tile| {
                    let sums = parts.iter().fold(sums, |sums, ring| {
                        let slot = ring.wait();
                        let part = sums.load_lanes(&slot.tiles());
                        slot.release();
                        sums.zip(&part, |x, y| x + y)
                    });
                    end.finish(sums, tile);
                });
                for (i, ring) in (1..).zip(&parts) {
                    consumer(k, line, i, |sums, _| {
                        let slot = ring.acquire();
                        sums.store_lanes(&slot.tiles());
                        slot.commit();
                    });
                }
            }
        };
        roles::in_order(c.registers, || bring::role(k, line), compute);
    })
}

/// The parameters of the line, and how it is solved.
pub(super) struct Line<'a, T: Decoded> {
    pub(super) class: &'a Class,
    pub(super) config: &'a Config,
    pub(super) course: Course,
    /// Groups of 16 of K.
    groups: Reg<u32>,
    /// Rounds of one CTA of as many as split K.
    pub(super) rounds: Reg<u32>,
    /// Codes and scales of the gate, and of the other weight.
    pub(super) weights: [[Map; 2]; 2],
    pub(super) tokens: Tokens,
    pub(super) out: Map,
    tiles: TileScheduler,
    /// What multiplies the gate, the other weight and perhaps A.
    numbers: Vec<Global<f32>>,
    pub(super) feeds: Vec<Feed<T>>,
}

impl<'a, T: Decoded> Line<'a, T> {
    /// Declares the parameters, in the order in which a launch gives them.
    fn declare(
        k: Builder,
        class: &'a Class,
        c: &'a Config,
        course: Course,
        numbers: &[&str],
    ) -> Self {
        if c.split_k > 1 {
            k.cluster(c.split_k, 1, 1);
        }
        let groups = k.param::<u32>("groups").at_least(1).at_most(MOST_GROUPS);
        let rounds = k.param::<u32>("rounds").at_least(course.lead);
        rounds.at_most(self::rounds(MOST, c));
        let coded = |names: [&str; 2], rows| {
            let decls = [map_of_codes(rows), map_of_scales(c, rows)];
            [0, 1].map(|i| match k.tensor_map(names[i], decls[i].clone()) {
                map if course.settled => map.settled(),
                map => map,
            })
        };
        let [gate, up, a] = CODED;
        let weights = [gate, up].map(|names| coded(names, c.tile_n));
        let tokens = match course.coded {
            true => Tokens::Coded(coded(a, c.tile_m)),
            false => Tokens::Numbers(match k.tensor_map("x", map_of_tokens(T::DTYPE, c)) {
                map if course.settled && c.form == Form::Warps => map.settled(),
                map => map,
            }),
        };
        let count = if c.form == Form::Warps { 0 } else { feeds(c) };
        let feeds = (0..count).map(|i| {
            let name = |of: &str| match takes_turns(c) {
                true => format!("{of}_{}", CONSUMERS[i as usize]),
                false => of.into(),
            };
            let x = k.ring(&name("x"), token_stages(c), |s| s.tile(c.tile_m, depth(c)));
            let weights = k.ring(&name("weights"), weight_stages(c), |s| {
                let scales = s.vector(2 * slot_words(c, c.tile_n));
                (s.tile(2 * c.tile_n, PANEL), scales)
            });
            match takes_turns(c) {
                true => Feed { x, weights },
                false if c.form == Form::Dequantiser => Feed {
                    x: x.shared(),
                    weights,
                },
                false => Feed {
                    x: x.shared(),
                    weights: weights.shared(),
                },
            }
        });
        let feeds = feeds.collect();
        Self {
            class,
            config: c,
            course,
            groups,
            rounds,
            weights,
            tokens,
            out: k.tensor_map("c", map_of_out(T::DTYPE, c)),
            tiles: TileScheduler::declare(k, c.tile_schedule(false)),
            numbers: numbers.iter().map(|name| k.pointer(name)).collect(),
            feeds,
        }
    }

    /// Declares the role of a consumer.
    #[track_caller]
    pub(super) fn consumer(&self, k: Builder, i: u32) -> RoleDecl {
        roles::consumer(k, i, self.config.registers)
    }

    /// Runs `body` for each tile.
    #[track_caller]
    pub(super) fn each(&self, body: impl FnOnce(TileCoord)) {
        match self.config.split_k {
            1 => self.tiles.each(body),
            _ => self.tiles.each_of_cluster(body),
        }
    }

    /// The first of the slots of codes that are this CTA's.
    #[track_caller]
    pub(super) fn first(&self) -> Reg<u32> {
        match self.config.split_k {
            1 => 0u32.reg(),
            _ => cluster_rank() * self.rounds * feeds(self.config),
        }
    }

    /// The feed of a consumer.
    pub(super) fn feed(&self, consumer: u32) -> &Feed<T> {
        &self.feeds[self.turn_of(consumer) as usize]
    }

    /// Which slot of a round is the first of a consumer.
    pub(super) fn turn_of(&self, consumer: u32) -> u32 {
        if takes_turns(self.config) {
            consumer
        } else {
            0
        }
    }

    /// The first row of a consumer's outputs in a tile.
    pub(super) fn row_of(&self, consumer: u32) -> u32 {
        match takes_turns(self.config) {
            true => 0,
            false => consumer * OUTPUTS,
        }
    }

    /// The first of a consumer's outputs of a tile.
    #[track_caller]
    pub(super) fn output(&self, consumer: u32, tile: TileCoord) -> Reg<u32> {
        tile.n * self.config.tile_n + self.row_of(consumer)
    }

    /// Where a slot has the scales of a row of a tensor, and of the first 64 of
    /// K, where its first row is the other.
    #[track_caller]
    pub(super) fn place_of_scale(&self, row: Reg<u32>, first: Reg<u32>) -> Reg<u32> {
        let band = (row >> 7u32) - (first >> 7u32);
        let inside = ((row & 31u32) << 2u32) + ((row >> 5u32) & 3u32);
        band * (BLOCKS * TILE_WORDS) + inside
    }

    /// The four scales of a block of 64 of K, zero behind K: codes are zero
    /// there, and scales what they are, also NaN.
    #[track_caller]
    pub(super) fn inside(&self, four: Reg<u32>, block: Reg<u32>) -> Reg<u32> {
        if self.course.whole {
            return four;
        }
        // Blocks before the last have four of K's groups and more.
        let left = self.groups - (block * 4u32).min(self.groups);
        let mask = select(
            left.lt(4u32),
            (1u32.reg() << (left * 8u32)) - 1u32,
            u32::MAX,
        );
        four & mask
    }

    /// What multiplies the sums of each weight.
    #[track_caller]
    pub(super) fn factors(&self) -> [Reg<f32>; 2] {
        let smaller = match self.tokens {
            Tokens::Numbers(_) => SMALLER,
            Tokens::Coded(_) => SMALLER * SMALLER,
        };
        let [gate, up, of_a @ ..] = &self.numbers[..] else {
            return [smaller.reg(); 2];
        };
        let a = of_a.iter().fold(smaller.reg(), |x, a| x * a.load(0u32));
        [gate, up].map(|weight| a * weight.load(0u32))
    }
}
