//! How fast the CPU executor is: a vector add of 10⁷ elements and a 256³ bf16
//! product, eager timing, all cores. Figures in `docs/perf/cpu.md`.

use criterion::{Criterion, criterion_group, criterion_main};
use half::bf16;
use std::hint::black_box;
use warpline_cpu::{Memory, Options};
use warpline_ir::build::*;
use warpline_ir::{
    Arg, DType, Kernel, Launch, MapMode, Swizzle, Target, TensorMapDecl, TensorMapValue,
};
use warpline_kernels::vector_add::{Choice, Float, Form, Problem, VectorAdd};
use warpline_kernels::{AnyWork, Bound, Work};

fn vector_add(c: &mut Criterion) {
    let mut group = c.benchmark_group("vector-add 10^7 f32");
    group.sample_size(10);
    for form in [Form::GridStride, Form::DoubleBuffer, Form::Specialized] {
        let problem = Problem {
            n: 10_000_000,
            dtype: Float::F32,
        };
        let choice = Choice {
            form: Some(form),
            ..Choice::default()
        };
        let work = Work::<VectorAdd>::new(problem, &choice, &Target::SM_90A).expect("legal");
        let step = work.plan(&Target::SM_90A).expect("legal").steps.remove(0);
        let bytes = vec![0u8; 40_000_000];
        let mut memory = Memory::new();
        let inputs = ["a", "b"]
            .map(|name| memory.alloc_from(&bytes, name))
            .into();
        let outputs = vec![memory.alloc(bytes.len(), "c")];
        let launch = step.launch(&Bound {
            inputs,
            outputs,
            workspace: 0,
        });
        group.bench_function(format!("{form:?}"), |b| {
            b.iter(|| {
                black_box(
                    warpline_cpu::run(&step.kernel, &launch, &memory, &Options::default())
                        .expect("runs"),
                )
            });
        });
    }
}

fn map(rows: u32) -> TensorMapDecl {
    TensorMapDecl {
        dtype: DType::Bf16,
        tile: vec![64, rows],
        swizzle: Swizzle::B128,
        mode: MapMode::Tiled,
    }
}

fn product(c: &mut Criterion) {
    let kernel = Kernel::build("product", |k| {
        let (a, b) = (k.tensor_map("a", map(64)), k.tensor_map("b", map(128)));
        let out = k.pointer::<f32>("c");
        let ab = k.ring("ab", 2, |s| {
            (s.tile::<bf16>(64, 64), s.tile::<bf16>(128, 64))
        });
        k.role("math").warpgroups(1).body(|| {
            let acc = Acc::new(64, 128);
            steps(4).each(|_| {
                let slot = ab.wait();
                acc.mma(&slot.0, &slot.1);
                slot.release_after(&acc);
            });
            let (row, col) = ((cta_id() >> 1) * 64, (cta_id() & 1) * 128);
            acc.finish().each_pair(|at, pair| {
                out.store_vec((row + at.row) * 256 + col + at.col, pair);
            });
        });
        k.role("load").body(|| {
            elect(|| {
                steps(4).each(|ks| {
                    let slot = ab.acquire();
                    slot.load(a, slot.0, [ks * 64, (cta_id() >> 1) * 64]);
                    slot.load(b, slot.1, [ks * 64, (cta_id() & 1) * 128]);
                    slot.commit();
                });
            });
        });
    })
    .expect("a fine kernel");
    let mut memory = Memory::new();
    let ones: Vec<u8> = (0..256 * 256)
        .flat_map(|_| bf16::ONE.to_le_bytes())
        .collect();
    let mut tensor = |rows, name: &str| {
        let at = memory.alloc_from(&ones, name);
        Arg::TensorMap(TensorMapValue::dense(map(rows), at, &[256, 256]))
    };
    let (a, b) = (tensor(64, "a"), tensor(128, "b"));
    let out = memory.alloc(256 * 256 * 4, "c");
    let launch = Launch {
        grid: [8, 1, 1],
        args: vec![a, b, Arg::Pointer(out)],
    };
    c.bench_function("256^3 bf16 product", |bench| {
        bench.iter(|| {
            black_box(
                warpline_cpu::run(&kernel, &launch, &memory, &Options::default()).expect("runs"),
            )
        });
    });
}

criterion_group!(benches, vector_add, product);
criterion_main!(benches);
