//! (b) The inner loop of attention: the scores of one block of keys are computed while the previous block is
//! multiplied by its values.

use crate::probe::{Probe, box_map, extent_param, sampled_rows, tensor};
use half::bf16;
use serde_json::{Value as Json, json};
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, DType, Kernel, Target, TensorMapDecl};
use warpline_kernels::numbers::half_ulp;
use warpline_kernels::{Buffer, LaunchStep, TensorArg, TensorSpec};

/// Queries of a CTA: 64 for each of two warpgroups.
const QUERIES: u32 = 128;
/// Keys of a block.
const KEYS: u32 = 128;

/// Declares a tensor map with boxes of `rows` rows of one head, 64 columns wide.
fn head_map(rows: u32) -> TensorMapDecl {
    let mut decl = box_map(DType::Bf16, 64, rows);
    decl.tile.push(1);
    decl
}

/// `softmax(Q · Kᵀ · scale) · V` for each head, causal: query i attends to keys 0 … i.
///
/// The parameter `scale` includes the factor log₂ e. There is at least one key.
// [excerpt: attention]
fn attention(d: u32, stages: u32, target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("attention", target, |k| {
        let (keys, scale) = (extent_param(k, "keys").at_least(1), k.param::<f32>("scale"));
        let q = k.tensor_map("q", head_map(QUERIES));
        let [kt, v] = ["k", "v"].map(|name| k.tensor_map(name, head_map(KEYS)));
        let out = k.tensor_map("o", head_map(64));
        let q_ring = k.ring("q", 1, |s| s.tile::<bf16>(QUERIES, d)).broadcast();
        let k_ring = k.ring("k", stages, |s| s.tile::<bf16>(KEYS, d)).broadcast();
        let v_ring = k.ring("v", stages, |s| s.tile::<bf16>(KEYS, d)).broadcast();
        let (first, head) = (cta_id() * QUERIES, cta_id_y());
        // Blocks are processed from the diagonal down, so only the first one is masked.
        let blocks = keys.min(first + QUERIES).div_ceil(KEYS);

        k.role("load").warpgroups(1).registers(24).body(|| {
            elect(|| {
                let fill = |slot: Slot<Tile<bf16>, Producing>, from: TensorMap, row: Reg<u32>| {
                    for col in (0..d).step_by(64) {
                        let panel = slot.slice(0..slot.rows(), col..col + 64);
                        slot.load(from, panel, (col, row, head));
                    }
                    slot.commit();
                };
                fill(q_ring.acquire(), q, first);
                steps(blocks).each(|i| {
                    let row = (blocks - 1 - i) * KEYS;
                    fill(k_ring.acquire(), kt, row);
                    fill(v_ring.acquire(), v, row);
                });
            });
        });

        for (part, consumer) in (0..).zip(["consumer0", "consumer1"]) {
            let outbox = k.outbox::<bf16>(consumer, 1, 64, d);
            k.role(consumer).warpgroups(1).registers(240).body(|| {
                let first = first + part * 64;
                let q_slot = q_ring.wait();
                let q = q_slot.slice(part * 64..part * 64 + 64, 0..d);
                let o = Acc::new(64, d);

                // On the diagonal: scores, row maxima and probabilities.
                let keys_slot = k_ring.wait();
                let s = Acc::new(64, KEYS);
                s.mma(&q, &keys_slot);
                let s = s.into_frag();
                keys_slot.release();
                let diagonal = (blocks - 1) * KEYS;
                let is_visible =
                    |at: FragCoord| (diagonal + at.col).lt(keys.min(first + at.row + 1));
                let s = s.mask(is_visible, f32::NEG_INFINITY);
                let max = s.row_max();
                let p = s.zip_rows(&max, |s, max| exp2((s - max) * scale));
                let sum = p.row_reduce_partial(|x, y| x + y);

                let start = (p.operand::<bf16>(), v_ring.wait(), max, sum);
                let rest = steps(blocks - 1);
                let (p, values, _, sum) = rest.fold(start, |_, (p, values, max, sum)| {
                    let keys_slot = k_ring.wait();
                    let s = Acc::new(64, KEYS);
                    s.mma(&q, &keys_slot); // this block's scores,
                    o.mma(&p, &values.t()); // overlapped with the last block's values
                    let s = s.into_frag();
                    keys_slot.release();
                    let new_max = max.zip(&s.row_max(), |x, y| x.max(y));
                    let correction = max.zip(&new_max, |old, new| exp2((old - new) * scale));
                    let p = s.zip_rows(&new_max, |s, max| exp2((s - max) * scale));
                    let sum = sum.zip(&correction, |sum, by| sum * by);
                    let sum = sum.zip(&p.row_reduce_partial(|x, y| x + y), |x, y| x + y);
                    o.wait();
                    values.release();
                    o.rescale(&correction);
                    (p.operand(), v_ring.wait(), new_max, sum)
                });
                o.mma(&p, &values.t());
                let o = o.into_frag();
                values.release();
                q_slot.release();
                let sum = sum.reduce_lanes(|x, y| x + y);
                outbox.store(&o.rescale(&sum.map(recip)), out, (0u32, first, head));
            });
        }
    })
}
// [end of excerpt]

pub(crate) struct Attention {
    heads: u32,
    queries: u32,
    keys: u32,
    d: u32,
    stages: u32,
}

impl Probe for Attention {
    const NAME: &'static str = "attention";
    fn extents(&self) -> Json {
        json!({ "heads": self.heads, "queries": self.queries, "keys": self.keys, "d": self.d })
    }
    fn step(&self, target: &Target) -> Result<LaunchStep, BuildErrors> {
        let scale = std::f32::consts::LOG2_E / (self.d as f32).sqrt();
        let heads = |buffer: Buffer, len| TensorArg::dense(buffer, &[self.d, len, self.heads]);
        let grid = [self.queries.div_ceil(QUERIES), self.heads, 1];
        let step = LaunchStep::new(attention(self.d, self.stages, target)?, grid)
            .scalar("keys", self.keys)
            .scalar("scale", scale)
            .tensor("q", heads(Buffer::Input(0), self.queries))
            .tensor("k", heads(Buffer::Input(1), self.keys))
            .tensor("v", heads(Buffer::Input(2), self.keys))
            .tensor("o", heads(Buffer::Output(0), self.queries));
        Ok(step)
    }
    fn inputs(&self) -> Vec<TensorSpec> {
        let spec = |name, len| tensor(name, DType::Bf16, &[self.heads, len, self.d]);
        vec![
            spec("q", self.queries),
            spec("k", self.keys),
            spec("v", self.keys),
        ]
    }
    fn outputs(&self) -> Vec<TensorSpec> {
        vec![tensor(
            "o",
            DType::Bf16,
            &[self.heads, self.queries, self.d],
        )]
    }
    fn reference(&self, inputs: &[Vec<f64>]) -> Vec<(f64, f64)> {
        let (d, queries, keys) = (self.d as usize, self.queries as usize, self.keys as usize);
        let scale = 1.0 / f64::from(self.d).sqrt();
        let rows = self.heads as usize * queries;
        sampled_rows(rows, d, 2 * rows * keys * d, |row| {
            let (head, i) = (row / queries, row % queries);
            let q = &inputs[0][row * d..][..d];
            let [k, v] = [1, 2].map(|x| inputs[x][head * keys * d..][..keys * d].chunks(d));
            let score = |k: &[f64]| k.iter().zip(q).map(|(x, y)| x * y).sum::<f64>() * scale;
            let scores: Vec<f64> = k.take(i + 1).map(score).collect();
            let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let p: Vec<f64> = scores.iter().map(|s| (s - max).exp()).collect();
            let sum: f64 = p.iter().sum();
            let mut out = vec![(0.0, 0.0); d];
            for (p, v) in p.iter().zip(v) {
                for ((y, magnitude), v) in out.iter_mut().zip(v) {
                    *y += p / sum * v;
                    *magnitude += p / sum * v.abs();
                }
            }
            // P is rounded to bf16 (half an ulp of its value), scores to f32.
            let bound = |y, magnitude| half_ulp(DType::Bf16, y) * 1.01 + magnitude * 2f64.powi(-8);
            out.into_iter()
                .map(|(y, magnitude)| (y, bound(y, magnitude)))
                .collect()
        })
    }
    fn flops(&self) -> f64 {
        let [h, q, k, d] = [self.heads, self.queries, self.keys, self.d].map(f64::from);
        4.0 * h * d * if q == k { q * k / 2.0 } else { q * k }
    }
}

/// Returns cases with 1, S, S+1 and 2S+1 blocks of keys; ragged queries and keys; more queries than keys.
pub(crate) fn cases() -> Vec<Attention> {
    let case = |heads, queries, keys, d| Attention {
        heads,
        queries,
        keys,
        d,
        stages: 2,
    };
    vec![
        case(1, 384, 384, 64),
        case(2, 100, 100, 64),
        case(1, 200, 136, 64),
        case(1, 1, 1, 64),
        case(1, 640, 640, 64),
        case(1, 256, 256, 128),
    ]
}

/// Returns additional cases for a GPU.
pub(crate) fn gpu_cases() -> Vec<Attention> {
    let case = |d| Attention {
        heads: 16,
        queries: 2048,
        keys: 2048,
        d,
        stages: 2,
    };
    vec![case(64), case(128)]
}
