//! GEMMs: a producer, a ring and a warpgroup, compared with float64.

use crate::pipelines::harness::{Input, noise, round, run, seeds, timings};
use half::{bf16, f16};
use warpline_ir::builder::*;
use warpline_ir::{
    DType, E4m3, E5m2, Element, Kernel, Swizzle, Target, TensorMapDecl, TensorMapMode, Tf32,
};

fn map<T: Element>(cols: u32, rows: u32, swizzle: Swizzle) -> TensorMapDecl {
    TensorMapDecl {
        dtype: T::DTYPE,
        tile: vec![cols, rows],
        swizzle,
        mode: TensorMapMode::Tiled,
    }
}

/// Returns the K of a k-tile: the elements in 128 bytes.
fn bk<T: Element>() -> u32 {
    128 / T::DTYPE.bytes() as u32
}

/// `C[M, N] = A[M, K] · B[N, K]ᵀ` with tiles of 64 × n × 128 bytes of K.
fn gemm<T: Element>(bn: u32, stages: u32) -> Kernel {
    let bk = bk::<T>();
    Kernel::build("gemm", &Target::SM_90A, |k| {
        let (m, n, kk) = (
            k.param::<u32>("m"),
            k.param::<u32>("n"),
            k.param::<u32>("k"),
        );
        let a = k.tensor_map("a", map::<T>(bk, 64, Swizzle::B128));
        let b = k.tensor_map("b", map::<T>(bk, bn, Swizzle::B128));
        let c = k.pointer::<f32>("c");
        let ab = k.ring("ab", stages, |s| (s.tile::<T>(64, bk), s.tile::<T>(bn, bk)));
        let tiles = Rasterization::Grouped(4).tiles(m.div_ceil(64), n.div_ceil(bn));

        k.role("math").warpgroups(1).body(|| {
            tiles.each(|tile| {
                let acc = Acc::new(64, bn);
                steps(kk.div_ceil(bk)).each(|_| {
                    let slot = ab.wait();
                    acc.mma(&slot.0, &slot.1);
                    slot.release_after(&acc);
                });
                acc.into_frag().each_pair(|at, [x, y]| {
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
                    steps(kk.div_ceil(bk)).each(|ks| {
                        let slot = ab.acquire();
                        slot.load(a, slot.0, [ks * bk, tile.m * 64]);
                        slot.load(b, slot.1, [ks * bk, tile.n * bn]);
                        slot.commit();
                    });
                });
            });
        });
    })
    .expect("a valid kernel")
}

/// Returns the bytes in global memory, and the values after the load: tf32 loads round to nearest
/// even.
fn loaded<T: Element>(x: &[f32]) -> (Vec<u8>, Vec<f64>) {
    let (bytes, values) = round::<T>(x);
    let nearest = |x: &f32| {
        let (bits, odd) = (x.to_bits(), x.to_bits() >> 13 & 1);
        f64::from(f32::from_bits((bits + 0xfff + odd) & !Tf32::UNUSED))
    };
    match T::DTYPE {
        DType::Tf32 => (bytes, x.iter().map(nearest).collect()),
        _ => (bytes, values),
    }
}

fn check<T: Element>(bn: u32, stages: u32, shape: [usize; 3], grid: u32, few: u64) {
    let [m, n, k] = shape;
    let kernel = gemm::<T>(bn, stages);
    let (a_bytes, a) = loaded::<T>(&noise(m * k, 1));
    let (b_bytes, b) = loaded::<T>(&noise(n * k, 2));
    let inputs = [
        Input::U32(m as u32),
        Input::U32(n as u32),
        Input::U32(k as u32),
        Input::Map(
            map::<T>(bk::<T>(), 64, Swizzle::B128),
            a_bytes,
            vec![k as u64, m as u64],
        ),
        Input::Map(
            map::<T>(bk::<T>(), bn, Swizzle::B128),
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
fn a_gemm_is_correct_at_every_trip_count() {
    // 1, S − 1, S, S + 1 and 2S + 1 k-tiles, and a ring of one stage.
    for k in [64, 128, 192, 256, 448] {
        check::<bf16>(64, 3, [64, 64, k], 1, seeds(3));
    }
    check::<bf16>(64, 1, [64, 64, 192], 1, seeds(3));
}

#[test]
fn a_gemm_with_partial_tiles_is_correct() {
    check::<bf16>(64, 2, [72, 88, 104], 2, seeds(2));
    check::<f16>(176, 2, [130, 180, 72], 3, seeds(2));
    check::<f16>(8, 4, [64, 8, 64], 1, seeds(2));
}

#[test]
fn a_gemm_with_the_widest_tile_is_correct() {
    check::<bf16>(256, 2, [64, 256, 128], 1, seeds(1));
}

#[test]
fn a_gemm_of_every_operand_type_is_correct() {
    check::<Tf32>(64, 2, [64, 64, 96], 1, seeds(2));
    check::<Tf32>(200, 2, [70, 204, 52], 2, seeds(1));
    check::<E4m3>(64, 2, [64, 64, 384], 1, seeds(2));
    check::<E4m3>(8, 3, [66, 12, 272], 2, seeds(1));
    check::<E5m2>(24, 2, [64, 24, 256], 1, seeds(2));
}

/// The epilogue through shared memory: stmatrix, proxy fence, TMA store.
#[test]
fn an_epilogue_through_shared_memory_is_correct() {
    let kernel = Kernel::build("epilogue", &Target::SM_90A, |k| {
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
            let y = acc.into_frag().map(|x| x * 0.5);
            slot.release();
            y.store_matrix(&out.whole());
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
    .expect("a valid kernel");
    let (bytes, a) = round::<bf16>(&noise(64 * 64, 5));
    let decl = map::<bf16>(64, 64, Swizzle::B128);
    for options in timings(seeds(5)) {
        let mut memory = warpline_cpu::GlobalMemory::new();
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
