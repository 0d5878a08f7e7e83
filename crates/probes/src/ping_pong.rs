//! (a) A ping-pong GEMM: two warpgroups take turns at the tensor cores; one multiplies while the other
//! stores its tile.

use crate::probe::{GemmProbe, box_map, extent_param};
use half::bf16;
use serde_json::{Value as Json, json};
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, DType, Kernel, Target};
use warpline_kernels::{Buffer, LaunchStep, TensorArg};

/// Rows and columns of a tile, and stages of the ring.
#[derive(Clone, Copy)]
struct Config {
    bm: u32,
    bn: u32,
    stages: u32,
}

/// `C[M, N] = A[M, K] · B[N, K]ᵀ` in bf16, for any M, N, K at launch.
// [excerpt: ping-pong]
fn ping_pong(c: Config, target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("ping_pong", target, |k| {
        let [m, n, k_extent] = ["m", "n", "k"].map(|name| extent_param(k, name));
        let a = k.tensor_map("a", box_map(DType::Bf16, 64, c.bm));
        let b = k.tensor_map("b", box_map(DType::Bf16, 64, c.bn));
        let out = k.tensor_map("c", box_map(DType::Bf16, 64, c.bm));
        let ab = k
            .ring("ab", c.stages, |s| {
                (s.tile::<bf16>(c.bm, 64), s.tile::<bf16>(c.bn, 64))
            })
            .round_robin();
        let turn = k.turn("tensor cores", ["consumer0", "consumer1"]);
        let tiles = Rasterization::Grouped(8).tiles(m.div_ceil(c.bm), n.div_ceil(c.bn));
        let k_tiles = k_extent.div_ceil(64);

        k.role("load").warpgroups(1).registers(40).body(|| {
            elect(|| {
                tiles.each(|tile| {
                    steps(k_tiles).each(|i| {
                        let slot = ab.acquire();
                        slot.load(a, slot.0, [i * 64, tile.m * c.bm]);
                        slot.load(b, slot.1, [i * 64, tile.n * c.bn]);
                        slot.commit();
                    });
                });
            });
        });

        for (i, consumer) in (0..).zip(["consumer0", "consumer1"]) {
            let outbox = k.outbox::<bf16>(consumer, 2, c.bm, 64);
            k.role(consumer).warpgroups(1).registers(232).body(|| {
                tiles.round_robin(i, 2, |_| ab.skip(k_tiles)).each(|tile| {
                    let acc = Acc::new(c.bm, c.bn);
                    turn.hold(|| {
                        steps(k_tiles).each(|_| {
                            let slot = ab.wait();
                            acc.mma(&slot.0, &slot.1);
                            slot.release_after(&acc);
                        });
                    });
                    outbox.store(&acc.into_frag(), out, [tile.n * c.bn, tile.m * c.bm]);
                });
            });
        }
    })
}
// [end of excerpt]

pub(crate) struct PingPong {
    shape: [u32; 3],
    config: Config,
    ctas: u32,
}

impl GemmProbe for PingPong {
    const NAME: &'static str = "ping-pong";
    const OUT: DType = DType::Bf16;
    fn shape(&self) -> [u32; 3] {
        self.shape
    }
    fn config(&self) -> Json {
        let Config { bm, bn, stages } = self.config;
        json!({ "tile": [bm, bn], "stages": stages, "ctas": self.ctas })
    }
    fn step(&self, target: &Target) -> Result<LaunchStep, BuildErrors> {
        let [m, n, k] = self.shape;
        let step = LaunchStep::new(ping_pong(self.config, target)?, [self.ctas, 1, 1])
            .tensor("a", TensorArg::dense(Buffer::Input(0), &[k, m]))
            .tensor("b", TensorArg::dense(Buffer::Input(1), &[k, n]))
            .tensor("c", TensorArg::dense(Buffer::Output(0), &[n, m]));
        Ok(step)
    }
}

/// Returns cases with fewer and more tiles than consumers; K of 1, S−1, S, S+1 and 2S+1 k-tiles; ragged edges.
pub(crate) fn cases() -> Vec<PingPong> {
    let small = Config {
        bm: 64,
        bn: 64,
        stages: 3,
    };
    let case = |shape, ctas| PingPong {
        shape,
        config: small,
        ctas,
    };
    vec![
        case([192, 136, 200], 2),
        case([64, 64, 64], 1),
        case([64, 64, 448], 2),
        case([72, 200, 128], 1),
        case([128, 192, 256], 1),
        case([8, 8, 8], 1),
    ]
}

/// Returns a case with the tile size for full speed.
pub(crate) fn full_tile() -> Vec<PingPong> {
    vec![PingPong {
        shape: [200, 264, 136],
        config: Config {
            bm: 128,
            bn: 128,
            stages: 4,
        },
        ctas: 2,
    }]
}

/// Returns additional cases for a GPU.
pub(crate) fn gpu_cases() -> Vec<PingPong> {
    let case = |bm, bn, stages| PingPong {
        shape: [4096, 4096, 4096],
        config: Config { bm, bn, stages },
        ctas: 132,
    };
    vec![case(128, 128, 4), case(64, 256, 4), case(128, 128, 5)]
}
