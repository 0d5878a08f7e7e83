//! The context of one kernel: parameters, maps, feeds, tiles.
//!
//! Each consumer has 32 outputs: the 64 rows of its accumulator are those of the gate and of the
//! other weight, eight of each in turn, and its columns are tokens. So weights that are decoded
//! once are multiplied with up to 256 tokens, and both sums of an output are in one thread.

use super::config::Config;
use super::decode::{Decoded, SMALLER};
use super::kernel_spec::KernelSpec;
use super::scales::{MOST_GROUPS, TILE_WORDS};
use super::schedule::{Schedule, bands};
use super::units::{BLOCK, BLOCKS, OUTPUTS, PANEL};
use crate::gemm::Activation;
use crate::gemm::problem::MOST;
use crate::gemm::tile_scheduler::{TileCoord, TileScheduler};
use crate::roles::{self, CONSUMERS};
use warpline_ir::build::*;
use warpline_ir::{DType, TensorMapDecl};

/// The parameters of codes and scales: of the gate, of the other weight, and of A.
pub(super) const CODED: [[&str; 2]; 3] = [
    ["gate", "gate_scales"],
    ["up", "up_scales"],
    ["a", "a_scales"],
];

/// Codes, of weights all of the gate first, and their scales.
pub(super) type Coded = (Tile<u8>, Tile<u32>);

/// The rings of a consumer: A in 16 bits, and weights.
pub(super) struct Feed<T: Decoded> {
    pub(super) x: Ring<Tile<T>>,
    pub(super) weights: Ring<Coded>,
}

/// A, as the kernel is given it.
#[derive(Clone, Copy)]
pub(super) enum Tokens {
    /// In 16 bits.
    Numbers(Map),
    /// Codes and scales.
    Coded([Map; 2]),
}

/// The map of codes, `rows` rows at a time.
fn map_of_codes(rows: u32) -> TensorMapDecl {
    TensorMapDecl::tiled(DType::U8, [PANEL, rows])
}

/// The map of the scales of `rows` rows in blocks.
fn map_of_scales(c: &Config, rows: u32) -> TensorMapDecl {
    let blocks = c.schedule.panels() * BLOCKS;
    TensorMapDecl::tiled(DType::U32, [TILE_WORDS, blocks, bands(rows)])
}

/// The map of A in 16 bits, or of its bytes.
fn map_of_tokens(dtype: DType, c: &Config) -> TensorMapDecl {
    match c.schedule {
        Schedule::Warps(_) => map_of_codes(c.tile_m),
        _ => TensorMapDecl::tiled(dtype, [BLOCK, c.tile_m]),
    }
}

/// The map of C.
fn map_of_out(dtype: DType, c: &Config) -> TensorMapDecl {
    TensorMapDecl::tiled(dtype, [OUTPUTS, c.finished()])
}

/// The parameters of the kernel, and how it is solved.
pub(super) struct Context<'a, T: Decoded> {
    pub(super) spec: &'a KernelSpec,
    pub(super) config: &'a Config,
    /// Groups of 16 of K.
    groups: Reg<u32>,
    /// Rounds of one of the CTAs that split K.
    pub(super) rounds: Reg<u32>,
    /// Codes and scales of the gate, and of the other weight.
    pub(super) weights: [[Map; 2]; 2],
    pub(super) tokens: Tokens,
    pub(super) out: Map,
    tiles: TileScheduler,
    /// The scales of the gate, the other weight and perhaps A.
    tensor_scales: Vec<Global<f32>>,
    pub(super) feeds: Vec<Feed<T>>,
}

impl<'a, T: Decoded> Context<'a, T> {
    /// Declares parameters and rings.
    pub(super) fn declare(k: Builder, spec: &'a KernelSpec) -> Self {
        let c = &spec.config;
        if c.split_k > 1 {
            k.cluster(c.split_k, 1, 1);
        }
        let groups = k.param::<u32>("groups").at_least(1).at_most(MOST_GROUPS);
        let rounds = k.param::<u32>("rounds").at_least(c.lead());
        rounds.at_most(c.rounds(MOST));
        let coded = |names: [&str; 2], rows| {
            let decls = [map_of_codes(rows), map_of_scales(c, rows)];
            [0, 1].map(|i| match k.tensor_map(names[i], decls[i].clone()) {
                map if spec.is_settled => map.settled(),
                map => map,
            })
        };
        let [gate, up, a] = CODED;
        let weights = [gate, up].map(|names| coded(names, c.schedule.tile_n()));
        let is_input = spec.is_settled && matches!(c.schedule, Schedule::Warps(_));
        let tokens = match spec.a_is_coded {
            true => Tokens::Coded(coded(a, c.tile_m)),
            false => Tokens::Numbers(match k.tensor_map("x", map_of_tokens(T::DTYPE, c)) {
                map if is_input => map.settled(),
                map => map,
            }),
        };
        let feeds = feeds(k, c);
        Self {
            spec,
            config: c,
            groups,
            rounds,
            weights,
            tokens,
            out: k.tensor_map("c", map_of_out(T::DTYPE, c)),
            tiles: TileScheduler::declare(k, c.tile_schedule()),
            tensor_scales: (spec.tensor_scales.iter())
                .map(|name| k.pointer(name))
                .collect(),
            feeds,
        }
    }

    /// The function of the gate.
    pub(super) fn gate(&self) -> Activation {
        self.spec.gate
    }

    /// Declares the role of a consumer.
    #[track_caller]
    pub(super) fn consumer(&self, k: Builder, i: u32) -> RoleDecl {
        roles::consumer(k, i, self.config.schedule.registers())
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
            _ => cluster_rank() * self.rounds * self.config.schedule.feeds(),
        }
    }

    /// The feed of a consumer.
    pub(super) fn feed(&self, consumer: u32) -> &Feed<T> {
        &self.feeds[self.config.schedule.turn_of(consumer) as usize]
    }

    /// The first of a consumer's outputs of a tile.
    #[track_caller]
    pub(super) fn output(&self, consumer: u32, tile: TileCoord) -> Reg<u32> {
        let schedule = self.config.schedule;
        tile.n * schedule.tile_n() + schedule.row_of(consumer)
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
        if self.spec.is_whole {
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

    /// The number that multiplies the sums of each weight.
    #[track_caller]
    pub(super) fn factors(&self) -> [Reg<f32>; 2] {
        let smaller = match self.tokens {
            Tokens::Numbers(_) => SMALLER,
            Tokens::Coded(_) => SMALLER * SMALLER,
        };
        let [gate, up, of_a @ ..] = &self.tensor_scales[..] else {
            return [smaller.reg(); 2];
        };
        let a = of_a.iter().fold(smaller.reg(), |x, a| x * a.load(0u32));
        [gate, up].map(|weight| a * weight.load(0u32))
    }
}

/// Declares the rings of each feed: one that all consumers share, or one for each that takes slots
/// in turn. Warps that multiply each for itself have a ring of their own.
fn feeds<T: Decoded>(k: Builder, c: &Config) -> Vec<Feed<T>> {
    let schedule = c.schedule;
    let declare = |x: &str, weights: &str| {
        let x = k.ring(x, c.token_stages(), |s| s.tile(c.tile_m, schedule.depth()));
        let weights = k.ring(weights, c.weight_stages(), |s| {
            let rows = schedule.tile_n();
            let scales = s.vector(2 * schedule.slot_words(rows));
            (s.tile(2 * rows, PANEL), scales)
        });
        (x, weights)
    };
    match schedule {
        Schedule::Warps(_) => Vec::new(),
        Schedule::InTurn { consumers } => {
            let feed = |i: u32| {
                let name = CONSUMERS[i as usize];
                let (x, weights) = declare(&format!("x_{name}"), &format!("weights_{name}"));
                Feed { x, weights }
            };
            (0..consumers).map(feed).collect()
        }
        Schedule::Dequantizer(_) => {
            let (x, weights) = declare("x", "weights");
            let x = x.shared();
            vec![Feed { x, weights }]
        }
        Schedule::OwnOutputs { .. } => {
            let (x, weights) = declare("x", "weights");
            let (x, weights) = (x.shared(), weights.shared());
            vec![Feed { x, weights }]
        }
    }
}
