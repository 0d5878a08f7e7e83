//! Matrix products: a loader, a ring and a warpgroup, against float64.

use crate::harness::{Input, run, seeds, timings};
use half::{bf16, f16};
use warpline_ir::build::*;
use warpline_ir::{Element, Kernel, MapMode, Swizzle, TensorMapDecl};

fn map<T: Element>(cols: u32, rows: u32, swizzle: Swizzle) -> TensorMapDecl {
    TensorMapDecl {
        dtype: T::DTYPE,
        tile: vec![cols, rows],
        swizzle,
        mode: MapMode::Tiled,
    }
}

/// `C[M, N] = A[M, K] · B[N, K]ᵀ` with tiles of 64 × n × 64.
fn gemm<T: Element>(bn: u32, stages: u32) -> Kernel {
    Kernel::build("gemm", |k| {
        let (m, n, kk) = (
            k.param::<u32>("m"),
            k.param::<u32>("n"),
            k.param::<u32>("k"),
        );
        let a = k.tensor_map("a", map::<T>(64, 64, Swizzle::B128));
        let b = k.tensor_map("b", map::<T>(64, bn, Swizzle::B128));
        let c = k.pointer::<f32>("c");
        let ab = k.ring("ab", stages, |s| (s.tile::<T>(64, 64), s.tile::<T>(bn, 64)));
        let tiles = Order::Grouped(4).tiles(m.div_ceil(64), n.div_ceil(bn));

        k.role("math").warpgroups(1).body(|| {
            tiles.each(|tile| {
                let acc = Acc::new(64, bn);
                steps(kk.div_ceil(64)).each(|_| {
                    let slot = ab.wait();
                    acc.mma(&slot.0, &slot.1);
                    slot.release_after(&acc);
                });
                acc.finish().each_pair(|at, [x, y]| {
                    let (row, col) = (tile.m * 64 + at.row, tile.n * bn + at.col);
                    if_(row.lt(m) & col.lt(n), || c.store(row * n + col, x));
                    if_(row.lt(m) & (col + 1).lt(n), || {
                        c.store(row * n + col + 1, y)
                    });
                });
            });
        });
        k.role("load").warps(4).body(|| {
            elect(|| {
                tiles.each(|tile| {
                    steps(kk.div_ceil(64)).each(|ks| {
                        let slot = ab.acquire();
                        slot.load(a, slot.0, [ks * 64, tile.m * 64]);
                        slot.load(b, slot.1, [ks * 64, tile.n * bn]);
                        slot.commit();
                    });
                });
            });
        });
    })
    .expect("a fine kernel")
}

/// A few thousand numbers in −1…1 that every run draws alike.
fn noise(len: usize, seed: u32) -> Vec<f32> {
    let mut x = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    (0..len)
        .map(|_| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

/// Rounds to a 16-bit type: its bytes and its values.
fn round<T: Element>(x: &[f32]) -> (Vec<u8>, Vec<f64>) {
    let one = |&x: &f32| match T::DTYPE {
        warpline_ir::DType::F16 => {
            let h = f16::from_f32(x);
            (h.to_bits(), h.to_f64())
        }
        _ => {
            let h = bf16::from_f32(x);
            (h.to_bits(), h.to_f64())
        }
    };
    let all: Vec<(u16, f64)> = x.iter().map(one).collect();
    (
        all.iter().flat_map(|x| x.0.to_le_bytes()).collect(),
        all.iter().map(|x| x.1).collect(),
    )
}

fn check<T: Element>(bn: u32, stages: u32, shape: [usize; 3], grid: u32, few: u64) {
    let [m, n, k] = shape;
    let kernel = gemm::<T>(bn, stages);
    let (a_bytes, a) = round::<T>(&noise(m * k, 1));
    let (b_bytes, b) = round::<T>(&noise(n * k, 2));
    let inputs = [
        Input::U32(m as u32),
        Input::U32(n as u32),
        Input::U32(k as u32),
        Input::Map(
            map::<T>(64, 64, Swizzle::B128),
            a_bytes,
            vec![k as u64, m as u64],
        ),
        Input::Map(
            map::<T>(64, bn, Swizzle::B128),
            b_bytes,
            vec![k as u64, n as u64],
        ),
        Input::Output(m * n * 4),
    ];
    for options in timings(few) {
        let at = format!(
            "{} n{bn} {shape:?} under {}, seed {}",
            T::DTYPE,
            options.timing,
            options.seed
        );
        let out = run(&kernel, grid, &inputs, &options).unwrap_or_else(|e| panic!("{at}: {e}"));
        for (i, x) in out[0].chunks_exact(4).enumerate() {
            let got = f64::from(f32::from_le_bytes([x[0], x[1], x[2], x[3]]));
            let (row, col) = (i / n, i % n);
            let pairs = || (0..k).map(|j| a[row * k + j] * b[col * k + j]);
            let (want, size) = (pairs().sum::<f64>(), pairs().map(f64::abs).sum::<f64>());
            let bound = size * 2f64.powi(-23) * (k as f64).sqrt().max(1.0);
            let err = (got - want).abs();
            assert!(
                err <= bound,
                "{at}: C[{row},{col}] is {got}, not {want} ± {bound}"
            );
        }
    }
}

#[test]
fn every_trip_count() {
    // K of 0, 1, S-1, S, S+1, 2S+1 tiles; ragged edges clipped by the copies.
    for k in [64, 128, 192, 256, 448] {
        check::<bf16>(64, 3, [64, 64, k], 1, seeds(3));
    }
}

#[test]
fn ragged_edges() {
    check::<bf16>(64, 2, [72, 88, 104], 2, seeds(2));
    check::<f16>(176, 2, [130, 180, 72], 3, seeds(2));
    check::<f16>(8, 4, [64, 8, 64], 1, seeds(2));
}

#[test]
fn the_widest_tile() {
    check::<bf16>(256, 2, [64, 256, 128], 1, seeds(1));
}

/// The epilogue through shared memory: stmatrix, proxy fence, TMA store.
#[test]
fn an_epilogue_through_shared_memory() {
    let kernel = Kernel::build("epilogue", |k| {
        let (a, c) = (
            k.tensor_map("a", map::<bf16>(64, 64, Swizzle::B128)),
            k.tensor_map("c", map::<bf16>(64, 64, Swizzle::B128)),
        );
        let unused = k.pointer::<u32>("unused");
        let ring = k.ring("a", 1, |s| s.tile::<bf16>(64, 64));
        let out = k.tile::<bf16>("c", 64, 64).declare();
        let done = k.named_barrier("done");
        k.role("math").warpgroups(1).body(|| {
            let slot = ring.wait();
            let acc = Acc::new(64, 64);
            acc.mma(&slot.tiles(), &slot.tiles());
            let y = acc.finish().map(|x| x * 0.5);
            slot.release();
            y.store_matrix::<bf16, warpline_ir::Bf16x2>(&out.whole());
            fence_async();
            done.sync(128);
            elect(|| {
                c.store(out.whole(), [0, 0]);
                bulk_commit();
                bulk_wait(0);
                unused.store(0u32, 1u32);
            });
        });
        k.role("load").warps(4).body(|| {
            elect(|| {
                let slot = ring.acquire();
                slot.load(a, slot.tiles(), [0, 0]);
                slot.commit();
            });
        });
    })
    .expect("a fine kernel");
    let (bytes, a) = round::<bf16>(&noise(64 * 64, 5));
    let decl = map::<bf16>(64, 64, Swizzle::B128);
    for options in timings(seeds(5)) {
        let mut memory = warpline_cpu::Memory::new();
        let (pa, pc) = (
            memory.alloc_from(&bytes, "a"),
            memory.alloc(64 * 64 * 2, "c"),
        );
        let pu = memory.alloc(4, "unused");
        let tensor = |at| {
            let map = warpline_ir::TensorMapValue::dense(decl.clone(), at, &[64, 64]);
            warpline_ir::Arg::TensorMap(map)
        };
        let launch = warpline_ir::Launch {
            grid: [1, 1, 1],
            args: vec![tensor(pa), tensor(pc), warpline_ir::Arg::Pointer(pu)],
        };
        warpline_cpu::run(&kernel, &launch, &memory, &options).unwrap_or_else(|e| panic!("{e}"));
        let out = memory.read(pc, 64 * 64 * 2).expect("every byte is written");
        for (i, b) in out.chunks_exact(2).enumerate() {
            let got = bf16::from_le_bytes([b[0], b[1]]).to_f64();
            let want = 0.5
                * (0..64)
                    .map(|j| a[i / 64 * 64 + j] * a[i % 64 * 64 + j])
                    .sum::<f64>();
            assert!(
                (got - want).abs() <= want.abs() * 2f64.powi(-8) + 1e-5,
                "{i}: {got} is not {want}"
            );
        }
    }
}
