//! Speed of the CPU executor: a vector add of 10⁷ elements, and a 256³ GEMM.

use criterion::{Criterion, criterion_group, criterion_main};
use half::bf16;
use std::hint::black_box;
use warpline_cpu::{GlobalMemory, Options, Timing, run};
use warpline_ir::builder::*;
use warpline_ir::{
    Arg, DType, Kernel, Launch, Swizzle, Target, TensorMapDecl, TensorMapMode, TensorMapValue,
};

/// A grid-stride vector add: four elements per thread and iteration.
fn grid_stride_add() -> Kernel {
    Kernel::build("add", &Target::SM_90A, |k| {
        let n = k.param::<u32>("n");
        let (a, b, c) = (
            k.pointer::<f32>("a"),
            k.pointer::<f32>("b"),
            k.pointer::<f32>("c"),
        );
        k.role("all").warps(8).body(|| {
            let first = cta_id() * 256 + thread_id();
            range(first, n / 4).step_by(grid_ctas() * 256).each(|i| {
                let (x, y) = (a.load_vec::<4>(i * 4), b.load_vec::<4>(i * 4));
                let sum: [_; 4] = std::array::from_fn(|j| x[j] + y[j]);
                c.store_vec(i * 4, sum);
            });
        });
    })
    .expect("the kernel builds")
}

/// A warp-specialized vector add: load, compute and store roles with two rings of 4 KiB tiles.
fn specialized_add() -> Kernel {
    const TILE: u32 = 1024;
    Kernel::build("add", &Target::SM_90A, |k| {
        let n = k.param::<u32>("n");
        let (a, b, c) = (
            k.pointer::<f32>("a"),
            k.pointer::<f32>("b"),
            k.pointer::<f32>("c"),
        );
        let ring = k.ring("in", 4, |s| (s.vector::<f32>(TILE), s.vector::<f32>(TILE)));
        let out = k.ring("out", 2, |s| s.vector::<f32>(TILE));
        let tiles = || range(cta_id(), n / TILE).step_by(grid_ctas());
        k.role("load").warps(1).body(|| {
            elect(|| {
                tiles().each(|t| {
                    let slot = ring.acquire();
                    slot.load_bytes(slot.0, a.address(t * TILE), 4 * TILE);
                    slot.load_bytes(slot.1, b.address(t * TILE), 4 * TILE);
                    slot.commit();
                });
            });
        });
        k.role("compute").warps(4).body(|| {
            tiles().each(|_| {
                let (x, y) = (ring.wait(), out.acquire());
                range(thread_in_role() * 4, TILE).step_by(512u32).each(|i| {
                    let (p, q) = (x.0.load_vec::<4>(0u32, i), x.1.load_vec::<4>(0u32, i));
                    let sum: [_; 4] = std::array::from_fn(|j| p[j] + q[j]);
                    y.store_vec(0u32, i, sum);
                });
                x.release();
                y.commit();
            });
        });
        k.role("store").warps(1).body(|| {
            elect(|| {
                tiles().each(|t| {
                    let slot = out.wait();
                    bulk_store(slot.tiles(), c.address(t * TILE), 4 * TILE);
                    bulk_commit();
                    bulk_wait_read(0);
                    slot.release();
                });
                bulk_wait(0);
            });
        });
    })
    .expect("the kernel builds")
}

fn map(rows: u32) -> TensorMapDecl {
    TensorMapDecl {
        dtype: DType::Bf16,
        tile: vec![64, rows],
        swizzle: Swizzle::B128,
        mode: TensorMapMode::Tiled,
    }
}

/// A GEMM with one 64 × 256 tile of C per CTA.
fn gemm() -> Kernel {
    Kernel::build("gemm", &Target::SM_90A, |k| {
        let k_extent = k.param::<u32>("k");
        let (a, b) = (k.tensor_map("a", map(64)), k.tensor_map("b", map(256)));
        let c = k.pointer::<f32>("c");
        let ring = k.ring("ab", 4, |s| {
            (s.tile::<bf16>(64, 64), s.tile::<bf16>(256, 64))
        });
        k.role("compute").warpgroups(1).body(|| {
            let acc = Acc::new(64, 256);
            steps(k_extent / 64).each(|_| {
                let slot = ring.wait();
                acc.mma(&slot.0, &slot.1);
                slot.release_after(&acc);
            });
            let first_row = cta_id() * 64;
            acc.into_frag().map_with_coord(|x, at| {
                c.store((first_row + at.row) * 256 + at.col, x);
                x
            });
        });
        k.role("load").warps(1).body(|| {
            elect(|| {
                steps(k_extent / 64).each(|s| {
                    let slot = ring.acquire();
                    slot.load(a, slot.0, [s * 64, cta_id() * 64]);
                    slot.load(b, slot.1, [s * 64, 0u32.reg()]);
                    slot.commit();
                });
            });
        });
    })
    .expect("the kernel builds")
}

fn launch_kernel(kernel: &Kernel, memory: &GlobalMemory, args: &[Arg], ctas: u32, timing: Timing) {
    let launch = Launch {
        grid: [ctas, 1, 1],
        args: args.to_vec(),
    };
    let stats = run(kernel, &launch, memory, &Options::with_timing(timing));
    black_box(stats.unwrap_or_else(|e| panic!("{e}")));
}

fn bench_vector_add(c: &mut Criterion) {
    let n = 10_000_000 / 1024 * 1024;
    let mut memory = GlobalMemory::new();
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let (a, b) = (
        memory.alloc_from(bytemuck::cast_slice(&x), "a"),
        memory.alloc_from(bytemuck::cast_slice(&x), "b"),
    );
    let out = memory.alloc(4 * n, "c");
    let args = [
        Arg::scalar(n as u32),
        Arg::Pointer(a),
        Arg::Pointer(b),
        Arg::Pointer(out),
    ];
    let mut group = c.benchmark_group("vector add, 10^7 elements");
    group.sample_size(10);
    for (schedule, kernel) in [
        ("grid-stride", grid_stride_add()),
        ("specialized", specialized_add()),
    ] {
        for timing in Timing::ALL {
            group.bench_function(format!("{schedule}, {timing}"), |b| {
                b.iter(|| launch_kernel(&kernel, &memory, &args, 132, timing));
            });
        }
    }
}

fn bench_gemm(c: &mut Criterion) {
    let mut memory = GlobalMemory::new();
    let x: Vec<bf16> = (0..256 * 256)
        .map(|i| bf16::from_f32((i % 13) as f32))
        .collect();
    let tensor = |memory: &mut GlobalMemory, name, rows| {
        let address = memory.alloc_from(bytemuck::cast_slice(&x), name);
        Arg::TensorMap(TensorMapValue::dense(map(rows), address, &[256, 256]))
    };
    let (a, b) = (tensor(&mut memory, "a", 64), tensor(&mut memory, "b", 256));
    let out = memory.alloc(4 * 256 * 256, "c");
    let args = [Arg::scalar(256u32), a, b, Arg::Pointer(out)];
    let kernel = gemm();
    let mut group = c.benchmark_group("GEMM, 256^3 bf16");
    group.sample_size(10);
    for timing in Timing::ALL {
        group.bench_function(timing.name(), |b| {
            b.iter(|| launch_kernel(&kernel, &memory, &args, 4, timing));
        });
    }
}

criterion_group!(benches, bench_vector_add, bench_gemm);
criterion_main!(benches);
