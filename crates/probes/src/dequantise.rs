//! (c) Weights in 8 bits, products in 16: a role that widens them through a
//! second ring, and consumers that widen them into the register operand.

use crate::probe::{Probe, boxes, product, side, tensor};
use half::f16;
use serde_json::{Value as Json, json};
use warpline_ir::build::*;
use warpline_ir::{BuildErrors, DType, E4m3, E4m3x4, F16x2, Kernel, Target};
use warpline_kernels::{Buffer, Step, TensorArg, TensorSpec};

/// Tokens of a tile.
const TOKENS: u32 = 64;
/// Outputs of a tile: rows of the weights.
const OUTPUTS: u32 = 64;

/// Four codes as two pairs; exact.
fn widen(codes: Reg<u32>) -> [Reg<F16x2>; 2] {
    codes.bitcast::<E4m3x4>().widen_f16()
}

/// What both forms begin with: X and the codes of W, each in a ring.
#[derive(Clone, Copy)]
struct Line {
    tokens: Reg<u32>,
    outputs: Reg<u32>,
    /// Steps of K.
    depth: Reg<u32>,
    maps: [Map; 2],
    out: Map,
    xs: Ring<Tile<f16>>,
    codes: Ring<Tile<E4m3>>,
}

impl Line {
    fn new(k: Builder, stages: u32) -> Self {
        let [tokens, outputs] = ["tokens", "outputs"].map(|name| side(k, name));
        let depth = side(k, "k").at_least(1);
        let x = k.tensor_map("x", boxes(DType::F16, 64, TOKENS));
        let w = k.tensor_map("w", boxes(DType::E4m3, 64, OUTPUTS));
        Self {
            tokens,
            outputs,
            depth: depth.div_ceil(64),
            maps: [x, w],
            out: k.tensor_map("y", boxes(DType::F16, 64, TOKENS)),
            xs: k.ring("x", stages, |s| s.tile::<f16>(TOKENS, 64)),
            codes: k.ring("codes", stages, |s| s.tile::<E4m3>(OUTPUTS, 64)),
        }
    }

    /// The loader; `rows` are the first token and the first output of a tile.
    fn load(self, k: Builder, tiles: Tiles, rows: impl FnOnce(TileAt) -> [Reg<u32>; 2]) {
        k.role("load").warps(4).body(|| {
            elect(|| {
                tiles.each(|tile| {
                    let [token, output] = rows(tile);
                    steps(self.depth).each(|i| {
                        let slot = self.xs.acquire();
                        slot.load(self.maps[0], slot.tiles(), [i * 64, token]);
                        slot.commit();
                        let slot = self.codes.acquire();
                        slot.load(self.maps[1], slot.tiles(), [i * 64, output]);
                        slot.commit();
                    });
                });
            });
        });
    }
}

/// `Y[tokens, outputs] = X · Wᵀ` through a second ring: loader → widener → products.
fn through_a_ring(stages: u32, target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("dequantise_ring", target, |k| {
        let line = Line::new(k, stages);
        let weights = k.ring("weights", 2, |s| s.tile::<f16>(OUTPUTS, 64));
        let outbox = k.outbox::<f16>("out", 1, TOKENS, OUTPUTS);
        let (rows, cols) = (line.tokens.div_ceil(TOKENS), line.outputs.div_ceil(OUTPUTS));
        let tiles = Order::Grouped(4).tiles(rows, cols);
        line.load(k, tiles, |tile| [tile.m * TOKENS, tile.n * OUTPUTS]);

        k.role("widen").warpgroups(1).body(|| {
            tiles.each(|_| {
                steps(line.depth).each(|_| {
                    let (from, to) = (line.codes.wait(), weights.acquire());
                    // Sixteen codes for each thread at a time.
                    for i in (0..OUTPUTS * 64 / 16).step_by(role_threads() as usize) {
                        let chunk = thread_in_role() + i;
                        let (row, col) = (chunk / 4, chunk % 4 * 16);
                        let [a, b, c, d] = from.load_as(row, col).map(widen);
                        to.store_as(row, col, [a[0], a[1], b[0], b[1]]);
                        to.store_as(row, col + 8, [c[0], c[1], d[0], d[1]]);
                    }
                    from.release();
                    to.commit();
                });
            });
        });

        k.role("math").warpgroups(1).body(|| {
            tiles.each(|tile| {
                let acc = Acc::new(TOKENS, OUTPUTS);
                steps(line.depth).each(|_| {
                    let (x, w) = (line.xs.wait(), weights.wait());
                    acc.mma(&x, &w);
                    x.release_after(&acc);
                    w.release_after(&acc);
                });
                let at = [tile.n * OUTPUTS, tile.m * TOKENS];
                outbox.send(&acc.finish(), line.out, at);
            });
        });
    })
}

/// The same with the weights on the left, widened by the warpgroup that
/// multiplies them: lanes take four neighbours at a time, so the operand has
/// K in the order [`Quads`], and X must come in that order.
fn in_registers(stages: u32, target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("dequantise_registers", target, |k| {
        let line = Line::new(k, stages);
        let outbox = k.outbox::<f16>("out", 1, TOKENS, OUTPUTS);
        let (rows, cols) = (line.outputs.div_ceil(OUTPUTS), line.tokens.div_ceil(TOKENS));
        let tiles = Order::Grouped(4).tiles(rows, cols);
        line.load(k, tiles, |tile| [tile.n * TOKENS, tile.m * OUTPUTS]);

        k.role("math").warpgroups(1).body(|| {
            let codes = || {
                let slot = line.codes.wait();
                let bytes = RegBytes::load(&slot.tiles());
                slot.release();
                bytes
            };
            tiles.each(|tile| {
                let acc = Acc::new(OUTPUTS, TOKENS);
                let last = steps(line.depth - 1).fold(codes(), |_, bytes| {
                    let (weights, x) = (bytes.decode::<f16>(widen), line.xs.wait());
                    acc.mma(&weights, &x.in_order::<Quads>()); // the products of this step,
                    let next = codes(); // and beside them the codes of the next
                    acc.wait();
                    x.release();
                    next
                });
                let (weights, x) = (last.decode::<f16>(widen), line.xs.wait());
                acc.mma(&weights, &x.in_order::<Quads>());
                let sums = acc.finish();
                x.release();
                let at = [tile.m * OUTPUTS, tile.n * TOKENS];
                outbox.send_transposed(&sums, line.out, at);
            });
        });
    })
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Form {
    Ring,
    Registers,
}

pub(crate) struct Dequantise {
    form: Form,
    /// Tokens, outputs, K.
    shape: [u32; 3],
    stages: u32,
    ctas: u32,
}

impl Probe for Dequantise {
    const NAME: &'static str = "dequantise";
    fn extents(&self) -> Json {
        json!({ "form": format!("{:?}", self.form), "tokens,outputs,k": self.shape, "ctas": self.ctas })
    }
    fn step(&self, target: &Target) -> Result<Step, BuildErrors> {
        let [tokens, outputs, k] = self.shape;
        let kernel = match self.form {
            Form::Ring => through_a_ring(self.stages, target)?,
            Form::Registers => in_registers(self.stages, target)?,
        };
        let step = Step::new(kernel, [self.ctas, 1, 1])
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
        // In registers, X is stored with K in the order of the operand.
        let natural = |row: &[f64]| -> Vec<f64> {
            let mut x = vec![0.0; k];
            for (p, &value) in row.iter().enumerate() {
                let order = match self.form {
                    Form::Ring => Natural::K,
                    Form::Registers => Quads::K,
                };
                x[p / 16 * 16 + usize::from(order[p % 16])] = value;
            }
            x
        };
        let x: Vec<f64> = inputs[0].chunks(k).flat_map(natural).collect();
        product(&x, &inputs[1], self.shape[2], DType::F16)
    }
    fn flops(&self) -> f64 {
        2.0 * self.shape.map(f64::from).iter().product::<f64>()
    }
}

/// K of 1, S−1, S, S+1 and 2S+1 steps, ragged edges, several tiles per CTA.
pub(crate) fn cases(form: Form) -> Vec<Dequantise> {
    let case = |shape, ctas| Dequantise {
        form,
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

/// What a GPU is given besides.
pub(crate) fn gpu_cases(form: Form) -> Vec<Dequantise> {
    vec![Dequantise {
        form,
        shape: [1024, 4096, 4096],
        stages: 6,
        ctas: 132,
    }]
}
