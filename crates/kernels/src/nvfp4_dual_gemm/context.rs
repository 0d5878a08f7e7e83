//! The context of one kernel: parameters, tensor maps, rings, tiles.
//!
//! Each consumer has 32 outputs (columns of C). The 64 rows of its accumulator are their gate and up
//! rows, in alternating blocks of eight, and its columns are tokens. So a consumer decodes a weight
//! once for up to 256 tokens, and one thread has gate and up of an output.

use super::config::Config;
use super::decode::{DECODE_SCALE, DecodeTarget};
use super::kernel_spec::{KernelSpec, Outputs};
use super::scales::MAX_GROUPS;
use super::schedule::Schedule;
use super::units::{K_BLOCK, OUTPUTS, PANEL_BYTES};
use crate::gemm::problem::MAX_EXTENT;
use crate::gemm::tile_scheduler::{TileCoord, TileScheduler};
use crate::roles::{self, CONSUMERS};
use warpline_ir::builder::*;
use warpline_ir::{DType, TensorMapDecl};

/// Parameter names of the codes and scales of gate, up and A.
pub(super) const CODED: [[&str; 2]; 3] = [
    ["gate", "gate_scales"],
    ["up", "up_scales"],
    ["a", "a_scales"],
];

/// Parameter names of the codes and scales of the weight of a linear layer.
pub(crate) const LINEAR_WEIGHT: [&str; 2] = ["weight", "weight_scales"];

/// The tiles of a slot: codes, all of the gate first, and their scales.
pub(super) type CodedTiles = (Tile<u8>, Tile<u32>);

/// The rings of A in 16 bits and of the weights.
pub(super) struct OperandRings<T: DecodeTarget> {
    pub(super) x: Ring<Tile<T>>,
    pub(super) weights: Ring<CodedTiles>,
}

/// The operand A of the kernel.
#[derive(Clone, Copy)]
pub(super) enum AOperand {
    /// A in 16 bits.
    Wide(TensorMap),
    /// Codes and scales.
    Coded([TensorMap; 2]),
}

/// Declares the tensor map of codes, with boxes of `rows` rows.
fn codes_map(rows: u32) -> TensorMapDecl {
    TensorMapDecl::tiled(DType::U8, [PANEL_BYTES, rows])
}

/// Declares the tensor map of A in 16 bits; the schedule `warps` loads it as bytes.
fn wide_a_map(dtype: DType, c: &Config) -> TensorMapDecl {
    match c.schedule {
        Schedule::Warps(_) => codes_map(c.tile_m),
        _ => TensorMapDecl::tiled(dtype, [K_BLOCK, c.tile_m]),
    }
}

/// Declares the tensor map of C.
fn out_map(dtype: DType, spec: &KernelSpec) -> TensorMapDecl {
    let columns = OUTPUTS * spec.outputs.per_pair();
    TensorMapDecl::tiled(dtype, [columns, spec.config.tokens_per_cta()])
}

/// The parameters and components of the kernel.
pub(super) struct Context<'a, T: DecodeTarget> {
    pub(super) spec: &'a KernelSpec,
    pub(super) config: &'a Config,
    /// Groups of 16 elements of K.
    groups: Reg<u32>,
    /// Mainloop rounds of each CTA.
    pub(super) rounds: Reg<u32>,
    /// Codes and scales of each weight.
    pub(super) weights: Vec<[TensorMap; 2]>,
    pub(super) a: AOperand,
    pub(super) out: TensorMap,
    tiles: TileScheduler,
    /// Tensor scales of gate, up and, if it is coded, A.
    tensor_scales: Vec<Global<f32>>,
    bias: Option<Bias<T>>,
    pub(super) rings: Vec<OperandRings<T>>,
}

impl<'a, T: DecodeTarget> Context<'a, T> {
    /// Declares parameters and rings.
    pub(super) fn declare(k: Builder, spec: &'a KernelSpec) -> Self {
        let c = &spec.config;
        if c.split_k > 1 {
            k.cluster(c.split_k, 1, 1);
        }
        let groups = k.param::<u32>("groups").at_least(1).at_most(MAX_GROUPS);
        let rounds = k
            .param::<u32>("rounds")
            .at_least(c.weight_lead(spec.outputs));
        rounds.at_most(c.rounds(MAX_EXTENT, spec.outputs));
        let coded = |names: [&str; 2], rows| {
            let scales = spec.scale_boxes.map(rows, c.schedule.panels());
            let decls = [codes_map(rows), scales];
            [0, 1].map(|i| match k.tensor_map(names[i], decls[i].clone()) {
                map if spec.weights_are_pdl_safe => map.pdl_safe(),
                map => map,
            })
        };
        let [gate, up, a_names] = CODED;
        let names: &[_] = match spec.outputs {
            Outputs::Gated(_) => &[gate, up],
            Outputs::Linear { .. } => &[LINEAR_WEIGHT],
        };
        let weights = names.iter().map(|&names| coded(names, spec.weight_rows()));
        let weights = weights.collect();
        let a_is_pdl_safe = spec.is_single_launch();
        let a = match spec.a_is_coded {
            true => AOperand::Coded(coded(a_names, c.tile_m)),
            false => AOperand::Wide(match k.tensor_map("x", wide_a_map(T::DTYPE, c)) {
                map if a_is_pdl_safe => map.pdl_safe(),
                map => map,
            }),
        };
        let rings = operand_rings(k, spec);
        Self {
            spec,
            config: c,
            groups,
            rounds,
            weights,
            a,
            out: k.tensor_map("c", out_map(T::DTYPE, spec)),
            tiles: TileScheduler::declare(k, c.tile_schedule(spec.outputs)),
            tensor_scales: (spec.tensor_scales.iter())
                .map(|name| k.pointer(name))
                .collect(),
            bias: (spec.outputs == Outputs::Linear { bias: true }).then(|| Bias::declare(k)),
            rings,
        }
    }

    /// Declares the role of a consumer.
    #[track_caller]
    pub(super) fn consumer(&self, k: Builder, i: u32) -> RoleDecl {
        roles::consumer(k, i, self.config.schedule.registers())
    }

    /// Runs `body` for each tile.
    #[track_caller]
    pub(super) fn each_tile(&self, body: impl FnOnce(TileCoord)) {
        match self.config.split_k {
            1 => self.tiles.each(body),
            _ => self.tiles.each_of_cluster(body),
        }
    }

    /// Returns the index along K of this CTA's first panel of codes.
    #[track_caller]
    pub(super) fn first_panel(&self) -> Reg<u32> {
        match self.config.split_k {
            1 => 0u32.reg(),
            _ => cluster_rank() * self.rounds * self.config.schedule.panels_per_round(),
        }
    }

    /// Returns the rings of a consumer.
    pub(super) fn consumer_rings(&self, consumer: u32) -> &OperandRings<T> {
        &self.rings[self.config.schedule.ring_index(consumer) as usize]
    }

    /// Returns a consumer's first output of a tile: a column of C, and a row of the weights.
    #[track_caller]
    pub(super) fn output(&self, consumer: u32, tile: TileCoord) -> Reg<u32> {
        tile.n * self.spec.weight_rows() + self.spec.first_row(consumer)
    }

    /// Returns the bias of the upper and the lower outputs of this thread; zeros without a bias.
    #[track_caller]
    pub(super) fn bias(&self, first_output: Reg<u32>) -> Option<[Reg<f32>; 2]> {
        self.bias.as_ref().map(|bias| bias.load(first_output))
    }

    /// Returns the word offset in a slot of the scales of `row` for the first 64 elements of K; `first_row`
    /// is the slot's first row.
    #[track_caller]
    pub(super) fn scale_offset(&self, row: Reg<u32>, first_row: Reg<u32>) -> Reg<u32> {
        let panels = self.config.schedule.panels();
        self.spec.scale_boxes.offset(row, first_row, panels)
    }

    /// Zeroes the scales past K in the four scales of a block of 64. TMA zeroes the codes there, but the
    /// scales there can have any value, even NaN.
    #[track_caller]
    pub(super) fn zero_scales_past_k(&self, word: Reg<u32>, block: Reg<u32>) -> Reg<u32> {
        if self.spec.has_whole_blocks {
            return word;
        }
        // Blocks before the last have at least four groups left.
        let remaining = self.groups - (block * 4u32).min(self.groups);
        let mask = select(
            remaining.lt(4u32),
            (1u32.reg() << (remaining * 8u32)) - 1u32,
            u32::MAX,
        );
        word & mask
    }

    /// Returns the scale of the gate accumulators and of the up accumulators.
    #[track_caller]
    pub(super) fn output_scales(&self) -> [Reg<f32>; 2] {
        let correction = match self.a {
            AOperand::Wide(_) => DECODE_SCALE,
            AOperand::Coded(_) => DECODE_SCALE * DECODE_SCALE,
        };
        let (gate, up, a_scale) = match &self.tensor_scales[..] {
            [weight] => {
                let scale = correction.reg() * weight.load(0u32);
                return [scale; 2];
            }
            [gate, up, a_scale @ ..] => (gate, up, a_scale),
            [] => return [correction.reg(); 2],
        };
        let a = a_scale
            .iter()
            .fold(correction.reg(), |x, a| x * a.load(0u32));
        [gate, up].map(|weight| a * weight.load(0u32))
    }
}

/// The bias of a linear layer, one value for each output.
struct Bias<T: DecodeTarget> {
    values: Global<T>,
    /// Number of outputs.
    outputs: Reg<u32>,
}

impl<T: DecodeTarget> Bias<T> {
    fn declare(k: Builder) -> Self {
        let outputs = k.param::<u32>("n").at_least(1).at_most(MAX_EXTENT);
        let values = k.pointer("bias").elements(outputs);
        Self { values, outputs }
    }

    /// Loads the bias of this thread's two rows of 64, of which `first_output` is the first. Outputs past
    /// the last are not stored, so a clamped index is enough.
    #[track_caller]
    fn load(&self, first_output: Reg<u32>) -> [Reg<f32>; 2] {
        let row = (warp_in_role() & 3u32) * 8u32 + (lane_id() >> 2u32);
        let output = first_output + row;
        let last = self.outputs - 1;
        [0, OUTPUTS].map(|lower| T::widen(self.values.load((output + lower).min(last))))
    }
}

/// Declares the operand rings: one pair that all consumers share, or one pair per consumer in
/// [`Schedule::InTurn`]. The schedule `warps` declares its own ring.
fn operand_rings<T: DecodeTarget>(k: Builder, spec: &KernelSpec) -> Vec<OperandRings<T>> {
    let c = &spec.config;
    let schedule = c.schedule;
    let declare = |x: &str, weights: &str| {
        let x = k.ring(x, c.a_stages(), |s| s.tile(c.tile_m, schedule.k_per_step()));
        let weights = k.ring(weights, c.weight_stages(), |s| {
            let scales = s.vector(spec.weight_scale_words());
            (s.tile(2 * schedule.tile_n(), PANEL_BYTES), scales)
        });
        (x, weights)
    };
    match schedule {
        Schedule::Warps(_) => Vec::new(),
        Schedule::InTurn { consumers } => {
            let rings = |i: u32| {
                let name = CONSUMERS[i as usize];
                let (x, weights) = declare(&format!("x_{name}"), &format!("weights_{name}"));
                OperandRings { x, weights }
            };
            (0..consumers).map(rings).collect()
        }
        Schedule::Dequantizer(_) => {
            let (x, weights) = declare("x", "weights");
            let x = x.broadcast();
            vec![OperandRings { x, weights }]
        }
        Schedule::OwnOutputs { .. } => {
            let (x, weights) = declare("x", "weights");
            let (x, weights) = (x.broadcast(), weights.broadcast());
            vec![OperandRings { x, weights }]
        }
    }
}
