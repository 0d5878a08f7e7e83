//! (c) 8-bit weights, 16-bit products: a role that dequantizes through a second ring, and consumers that
//! dequantize into the register operand.

use crate::probe::{Probe, box_map, extent_param, gemm_reference, tensor};
use half::f16;
use serde_json::{Value as Json, json};
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, DType, E4m3, E4m3x4, F16x2, Kernel, Target};
use warpline_kernels::{Buffer, LaunchStep, TensorArg, TensorSpec};

/// Tokens of a tile.
const TILE_TOKENS: u32 = 64;
/// Outputs of a tile: rows of the weights.
const TILE_OUTPUTS: u32 = 64;

/// Decodes four codes to two pairs; exact.
fn decode_e4m3(codes: Reg<u32>) -> [Reg<F16x2>; 2] {
    codes.bitcast::<E4m3x4>().widen_f16()
}

/// The inputs of both kernels: X and the codes of W, each in a ring.
#[derive(Clone, Copy)]
struct DequantInputs {
    tokens: Reg<u32>,
    outputs: Reg<u32>,
    /// The number of k-tiles.
    k_tiles: Reg<u32>,
    maps: [TensorMap; 2],
    out: TensorMap,
    x_ring: Ring<Tile<f16>>,
    code_ring: Ring<Tile<E4m3>>,
}

impl DequantInputs {
    fn new(k: Builder, stages: u32) -> Self {
        let [tokens, outputs] = ["tokens", "outputs"].map(|name| extent_param(k, name));
        let k_tiles = extent_param(k, "k").at_least(1);
        let x = k.tensor_map("x", box_map(DType::F16, 64, TILE_TOKENS));
        let w = k.tensor_map("w", box_map(DType::E4m3, 64, TILE_OUTPUTS));
        Self {
            tokens,
            outputs,
            k_tiles: k_tiles.div_ceil(64),
            maps: [x, w],
            out: k.tensor_map("y", box_map(DType::F16, 64, TILE_TOKENS)),
            x_ring: k.ring("x", stages, |s| s.tile::<f16>(TILE_TOKENS, 64)),
            code_ring: k.ring("codes", stages, |s| s.tile::<E4m3>(TILE_OUTPUTS, 64)),
        }
    }

    /// Declares the load role; `rows` returns the first token and the first output of a tile.
    fn load(self, k: Builder, tiles: TileGrid, rows: impl FnOnce(TileIndex) -> [Reg<u32>; 2]) {
        k.role("load").warps(4).body(|| {
            elect(|| {
                tiles.each(|tile| {
                    let [token, output] = rows(tile);
                    steps(self.k_tiles).each(|i| {
                        let slot = self.x_ring.acquire();
                        slot.load(self.maps[0], slot.tiles(), [i * 64, token]);
                        slot.commit();
                        let slot = self.code_ring.acquire();
                        slot.load(self.maps[1], slot.tiles(), [i * 64, output]);
                        slot.commit();
                    });
                });
            });
        });
    }
}

/// `Y[tokens, outputs] = X · Wᵀ` through a second ring: load → dequant → compute.
fn via_second_ring(stages: u32, target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("dequantize_ring", target, |k| {
        let inputs = DequantInputs::new(k, stages);
        let weights = k.ring("weights", 2, |s| s.tile::<f16>(TILE_OUTPUTS, 64));
        let outbox = k.outbox::<f16>("out", 1, TILE_TOKENS, TILE_OUTPUTS);
        let (rows, cols) = (
            inputs.tokens.div_ceil(TILE_TOKENS),
            inputs.outputs.div_ceil(TILE_OUTPUTS),
        );
        let tiles = Rasterization::Grouped(4).tiles(rows, cols);
        inputs.load(k, tiles, |tile| {
            [tile.m * TILE_TOKENS, tile.n * TILE_OUTPUTS]
        });

        k.role("dequant").warpgroups(1).body(|| {
            tiles.each(|_| {
                steps(inputs.k_tiles).each(|_| {
                    let (from, to) = (inputs.code_ring.wait(), weights.acquire());
                    // Sixteen codes per thread at a time.
                    for i in (0..TILE_OUTPUTS * 64 / 16).step_by(role_threads() as usize) {
                        let chunk = thread_in_role() + i;
                        let (row, col) = (chunk / 4, chunk % 4 * 16);
                        let [a, b, c, d] = from.load_as(row, col).map(decode_e4m3);
                        to.store_as(row, col, [a[0], a[1], b[0], b[1]]);
                        to.store_as(row, col + 8, [c[0], c[1], d[0], d[1]]);
                    }
                    from.release();
                    to.commit();
                });
            });
        });

        k.role("compute").warpgroups(1).body(|| {
            tiles.each(|tile| {
                let acc = Acc::new(TILE_TOKENS, TILE_OUTPUTS);
                steps(inputs.k_tiles).each(|_| {
                    let (x, w) = (inputs.x_ring.wait(), weights.wait());
                    acc.mma(&x, &w);
                    x.release_after(&acc);
                    w.release_after(&acc);
                });
                let offset = [tile.n * TILE_OUTPUTS, tile.m * TILE_TOKENS];
                outbox.store(&acc.into_frag(), inputs.out, offset);
            });
        });
    })
}

/// `Yᵀ = W · Xᵀ` with the weights as register operand A; the warpgroup that multiplies also dequantizes.
///
/// Lanes take four consecutive codes at a time, so the operand has K in the order [`Quads`], and X must
/// have that order, too.
fn via_register_operand(stages: u32, target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("dequantize_registers", target, |k| {
        let inputs = DequantInputs::new(k, stages);
        let outbox = k.outbox::<f16>("out", 1, TILE_TOKENS, TILE_OUTPUTS);
        let (rows, cols) = (
            inputs.outputs.div_ceil(TILE_OUTPUTS),
            inputs.tokens.div_ceil(TILE_TOKENS),
        );
        let tiles = Rasterization::Grouped(4).tiles(rows, cols);
        inputs.load(k, tiles, |tile| {
            [tile.n * TILE_TOKENS, tile.m * TILE_OUTPUTS]
        });

        k.role("compute").warpgroups(1).body(|| {
            let load_codes = || {
                let slot = inputs.code_ring.wait();
                let bytes = RegBytes::load(&slot.tiles());
                slot.release();
                bytes
            };
            tiles.each(|tile| {
                let acc = Acc::new(TILE_OUTPUTS, TILE_TOKENS);
                let last = steps(inputs.k_tiles - 1).fold(load_codes(), |_, bytes| {
                    let (weights, x) = (bytes.decode::<f16>(decode_e4m3), inputs.x_ring.wait());
                    acc.mma(&weights, &x.with_k_order::<Quads>()); // the wgmmas of this k-tile
                    let next = load_codes(); // overlap the load of the next codes
                    acc.wait();
                    x.release();
                    next
                });
                let (weights, x) = (last.decode::<f16>(decode_e4m3), inputs.x_ring.wait());
                acc.mma(&weights, &x.with_k_order::<Quads>());
                let result = acc.into_frag();
                x.release();
                let offset = [tile.m * TILE_OUTPUTS, tile.n * TILE_TOKENS];
                outbox.store_transposed(&result, inputs.out, offset);
            });
        });
    })
}

/// How the weights reach the tensor cores.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum DequantPath {
    Ring,
    Registers,
}

pub(crate) struct Dequantize {
    path: DequantPath,
    /// Tokens, outputs, K.
    shape: [u32; 3],
    stages: u32,
    ctas: u32,
}

impl Probe for Dequantize {
    const NAME: &'static str = "dequantize";
    fn extents(&self) -> Json {
        json!({ "path": format!("{:?}", self.path), "tokens,outputs,k": self.shape, "ctas": self.ctas })
    }
    fn step(&self, target: &Target) -> Result<LaunchStep, BuildErrors> {
        let [tokens, outputs, k] = self.shape;
        let kernel = match self.path {
            DequantPath::Ring => via_second_ring(self.stages, target)?,
            DequantPath::Registers => via_register_operand(self.stages, target)?,
        };
        let step = LaunchStep::new(kernel, [self.ctas, 1, 1])
            .scalar("tokens", tokens)
            .scalar("outputs", outputs)
            .scalar("k", k)
            .tensor("x", TensorArg::dense(Buffer::Input(0), &[k, tokens]))
            .tensor("w", TensorArg::dense(Buffer::Input(1), &[k, outputs]))
            .tensor("y", TensorArg::dense(Buffer::Output(0), &[outputs, tokens]));
        Ok(step)
    }
    fn inputs(&self) -> Vec<TensorSpec> {
        let [tokens, outputs, k] = self.shape;
        vec![
            tensor("x", DType::F16, &[tokens, k]),
            tensor("w", DType::E4m3, &[outputs, k]),
        ]
    }
    fn outputs(&self) -> Vec<TensorSpec> {
        let [tokens, outputs, _] = self.shape;
        vec![tensor("y", DType::F16, &[tokens, outputs])]
    }
    fn reference(&self, inputs: &[Vec<f64>]) -> Vec<(f64, f64)> {
        let k = self.shape[2] as usize;
        // For the register operand, the rows of X have K in the order of the operand.
        let to_natural_order = |row: &[f64]| -> Vec<f64> {
            let mut x = vec![0.0; k];
            for (p, &value) in row.iter().enumerate() {
                let order = match self.path {
                    DequantPath::Ring => Natural::K,
                    DequantPath::Registers => Quads::K,
                };
                x[p / 16 * 16 + usize::from(order[p % 16])] = value;
            }
            x
        };
        let x: Vec<f64> = inputs[0].chunks(k).flat_map(to_natural_order).collect();
        gemm_reference(&x, &inputs[1], self.shape[2], DType::F16)
    }
    fn flops(&self) -> f64 {
        2.0 * self.shape.map(f64::from).iter().product::<f64>()
    }
}

/// Returns cases with K of 1, S−1, S, S+1 and 2S+1 k-tiles; ragged edges; several tiles per CTA.
pub(crate) fn cases(path: DequantPath) -> Vec<Dequantize> {
    let case = |shape, ctas| Dequantize {
        path,
        shape,
        stages: 3,
        ctas,
    };
    vec![
        case([72, 136, 272], 2),
        case([64, 64, 64], 1),
        case([8, 64, 128], 1),
        case([64, 72, 192], 1),
        case([130, 64, 448], 2),
    ]
}

/// Returns additional cases for a GPU.
pub(crate) fn gpu_cases(path: DequantPath) -> Vec<Dequantize> {
    vec![Dequantize {
        path,
        shape: [1024, 4096, 4096],
        stages: 6,
        ctas: 132,
    }]
}
