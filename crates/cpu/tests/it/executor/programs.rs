//! Whole programs: control flow, rings, GEMMs; the same result in every timing.

use crate::executor::harness::timings;
use half::bf16;
use warpline_cpu::{Options, Timing};
use warpline_ir::builder::*;
use warpline_ir::{Arg, DType, Kernel, Swizzle, TensorMapDecl, TensorMapMode, TensorMapValue};
use warpline_testkit::kernel::build;
use warpline_testkit::launch::Setup;

fn numbers(n: usize, k: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7 + k * 13) % 101) as f32).collect()
}

fn grid_stride_add() -> Kernel {
    build("add", |k| {
        let n = k.param::<u32>("n");
        let (a, b, c) = (
            k.pointer::<f32>("a"),
            k.pointer::<f32>("b"),
            k.pointer::<f32>("c"),
        );
        k.role("all").warps(4).body(|| {
            let first = cta_id() * 128 + thread_id();
            range(first, n).step_by(grid_ctas() * 128).each(|i| {
                c.store(i, a.load(i) + b.load(i));
            });
        });
    })
}

pub(crate) fn add_setup(n: usize) -> Setup {
    Setup::new()
        .scalar(n as u32)
        .input("a", &numbers(n, 1))
        .input("b", &numbers(n, 2))
        .output("c", 4 * n)
}

pub(crate) fn sums(n: usize) -> Vec<f32> {
    let (a, b) = (numbers(n, 1), numbers(n, 2));
    a.iter().zip(&b).map(|(a, b)| a + b).collect()
}

#[test]
fn a_grid_stride_loop_adds_every_element_once() {
    let kernel = grid_stride_add();
    for n in [1, 31, 32, 1000, 4099] {
        for options in timings() {
            let setup = add_setup(n);
            let stats = setup.run(&kernel, 3, &options).unwrap();
            assert_eq!(setup.values::<f32>(2), sums(n));
            assert_eq!(stats.bytes.global_load, 8 * n as u64);
            assert_eq!(stats.bytes.global_store, 4 * n as u64);
            assert_eq!(stats.ctas, 3);
        }
    }
}

/// Adds two vectors with the roles `load` → `compute` → `store` and two rings.
pub(crate) fn specialized_add(stages: u32, tile: u32) -> Kernel {
    build("add", |k| {
        let n = k.param::<u32>("n");
        let (a, b, c) = (
            k.pointer::<f32>("a"),
            k.pointer::<f32>("b"),
            k.pointer::<f32>("c"),
        );
        let ring = k.ring("in", stages, |s| {
            (s.vector::<f32>(tile), s.vector::<f32>(tile))
        });
        let out = k.ring("out", stages, |s| s.vector::<f32>(tile));
        let tiles = || range(cta_id(), n / tile).step_by(grid_ctas());
        k.role("load").warps(1).body(|| {
            elect(|| {
                tiles().each(|t| {
                    let slot = ring.acquire();
                    slot.load_bytes(slot.0, a.address(t * tile), 4 * tile);
                    slot.load_bytes(slot.1, b.address(t * tile), 4 * tile);
                    slot.commit();
                });
            });
        });
        k.role("compute").warps(2).body(|| {
            tiles().each(|_| {
                let (x, y) = (ring.wait(), out.acquire());
                range(thread_in_role(), tile).step_by(64u32).each(|i| {
                    y.store(0u32, i, x.0.load(0u32, i) + x.1.load(0u32, i));
                });
                x.release();
                y.commit();
            });
        });
        k.role("store").warps(1).body(|| {
            elect(|| {
                tiles().each(|t| {
                    let slot = out.wait();
                    bulk_store(slot.tiles(), c.address(t * tile), 4 * tile);
                    bulk_commit();
                    bulk_wait_read(0);
                    slot.release();
                });
                bulk_wait(0);
            });
        });
    })
}

#[test]
fn three_roles_and_two_rings_add_at_every_trip_count() {
    for stages in [1, 2, 3] {
        let kernel = specialized_add(stages, 128);
        for tiles in [0, 1, stages - 1, stages, stages + 1, 2 * stages + 1] {
            let n = 128 * tiles as usize;
            for options in timings() {
                let mut setup = add_setup(n.max(4));
                setup.args[0] = Arg::scalar(n as u32);
                let stats = setup
                    .run(&kernel, 1, &options)
                    .unwrap_or_else(|e| panic!("{stages} stages, {tiles} tiles, {options:?}: {e}"));
                if n > 0 {
                    assert_eq!(setup.values::<f32>(2), sums(n));
                }
                assert_eq!(stats.bytes.bulk_load, 8 * n as u64);
                assert_eq!(stats.bytes.bulk_store, 4 * n as u64);
            }
        }
    }
}

#[test]
fn lanes_may_leave_a_loop_at_different_iterations() {
    // Collatz steps: the trip counts of the lanes differ, and the inner `if` diverges.
    let kernel = build("collatz", |k| {
        let out = k.pointer::<u32>("out");
        k.role("all").warps(2).body(|| {
            let x = Var::new(thread_id() + 1);
            let count = Var::new(0u32);
            while_(
                || x.get().gt(1u32),
                || {
                    let v = x.get();
                    if_else((v & 1).eq(0u32), || x.set(v >> 1), || x.set(v * 3 + 1));
                    count.set(count.get() + 1);
                },
            );
            out.store(thread_id(), count.get());
        });
    });
    let collatz = |n: u32| {
        let (mut x, mut count) = (n, 0);
        while x > 1 {
            x = if x % 2 == 0 { x / 2 } else { 3 * x + 1 };
            count += 1;
        }
        count
    };
    for options in timings() {
        let setup = Setup::new().output("out", 4 * 64);
        setup.run(&kernel, 1, &options).unwrap();
        let want: Vec<u32> = (1..=64).map(collatz).collect();
        assert_eq!(setup.values::<u32>(0), want);
    }
}

#[test]
fn one_lane_of_each_warp_is_elected() {
    let kernel = build("elect", |k| {
        let out = k.pointer::<u32>("out");
        k.role("all").warps(3).body(|| {
            let (warp, lane) = (warp_id(), lane_id());
            if_(lane.ge(5u32), || {
                elect_lane(|| out.store(warp, lane));
            });
        });
    });
    let setup = Setup::new().output("out", 12);
    setup.run(&kernel, 1, &Options::default()).unwrap();
    assert_eq!(setup.values::<u32>(0), [5, 5, 5]);
}

#[test]
fn named_barriers_synchronize_roles() {
    // `first` writes and arrives without a wait; `second` waits and reads.
    let kernel = build("hand-over", |k| {
        let out = k.pointer::<u32>("out");
        let tile = k.tile::<u32>("t", 1, 32).declare();
        let (full, empty) = (k.named_barrier("full"), k.named_barrier("empty"));
        k.role("first").warps(1).body(|| {
            steps(5u32).each(|i| {
                empty.sync(64);
                tile.whole().store(0u32, lane_id(), lane_id() * 10 + i);
                full.arrive(64);
            });
        });
        k.role("second").warps(1).body(|| {
            steps(5u32).each(|i| {
                empty.arrive(64);
                full.sync(64);
                out.store(i * 32 + lane_id(), tile.whole().load(0u32, lane_id()));
            });
        });
    });
    for options in timings() {
        let setup = Setup::new().output("out", 4 * 5 * 32);
        setup
            .run(&kernel, 1, &options)
            .unwrap_or_else(|e| panic!("{e}"));
        let want: Vec<u32> = (0..5 * 32).map(|i| (i % 32) * 10 + i / 32).collect();
        assert_eq!(setup.values::<u32>(0), want);
    }
}

fn bf16_map(rows: u32) -> TensorMapDecl {
    TensorMapDecl {
        dtype: DType::Bf16,
        tile: vec![64, rows],
        swizzle: Swizzle::B128,
        mode: TensorMapMode::Tiled,
    }
}

/// C[m, n] = A[m, k] · B[n, k]ᵀ, one tile of 64 × n per CTA.
fn gemm(n: u32, stages: u32) -> Kernel {
    build("gemm", |k| {
        let kk = k.param::<u32>("k");
        let (a, b) = (
            k.tensor_map("a", bf16_map(64)),
            k.tensor_map("b", bf16_map(n)),
        );
        let c = k.pointer::<f32>("c");
        let ring = k.ring("ab", stages, |s| {
            (s.tile::<bf16>(64, 64), s.tile::<bf16>(n, 64))
        });
        k.role("compute").warpgroups(1).body(|| {
            let acc = Acc::new(64, n);
            steps(kk / 64).each(|_| {
                let slot = ring.wait();
                acc.mma(&slot.0, &slot.1);
                slot.release_after(&acc);
            });
            let row0 = cta_id() * 64;
            acc.into_frag().map_with_coord(|x, at| {
                c.store((row0 + at.row) * n + at.col, x);
                x
            });
        });
        k.role("load").warps(1).body(|| {
            elect(|| {
                steps(kk / 64).each(|s| {
                    let slot = ring.acquire();
                    slot.load(a, slot.0, [s * 64, cta_id() * 64]);
                    slot.load(b, slot.1, [s * 64, 0u32.reg()]);
                    slot.commit();
                });
            });
        });
    })
}

const M: usize = 128;
const N: usize = 64;
const K: usize = 192;

/// Returns a GEMM of 128 × 64 × 192, its buffers and the expected result.
pub(crate) fn gemm_case() -> (Kernel, impl Fn() -> Setup, Vec<f32>) {
    let spread = |i: usize, m: usize| bf16::from_f32((i % m) as f32 - (m / 2) as f32);
    let a: Vec<bf16> = (0..M * K).map(|i| spread(i * 5, 17)).collect();
    let b: Vec<bf16> = (0..N * K).map(|i| spread(i * 3, 13)).collect();
    let dot = |i: usize| {
        let (a, b) = (&a[i / N * K..][..K], &b[i % N * K..][..K]);
        a.iter().zip(b).map(|(a, b)| a.to_f32() * b.to_f32()).sum()
    };
    let want = (0..M * N).map(dot).collect();
    let setup = move || {
        let mut setup = Setup::new().scalar(K as u32);
        for (name, x, rows, side) in [("a", &a, M, 64), ("b", &b, N, N)] {
            let at = setup.memory.alloc_from(bytemuck::cast_slice(x), name);
            let map = bf16_map(side as u32);
            let map = TensorMapValue::dense(map, at, &[K as u64, rows as u64]);
            setup.args.push(Arg::TensorMap(map));
        }
        setup.output("c", 4 * M * N)
    };
    (gemm(N as u32, 2), setup, want)
}

#[test]
fn a_gemm_through_a_ring_is_correct_in_every_timing() {
    let (kernel, setup, want) = gemm_case();
    for options in timings() {
        let setup = setup();
        let stats = setup
            .run(&kernel, 2, &options)
            .unwrap_or_else(|e| panic!("{options:?}: {e}"));
        assert_eq!(setup.values::<f32>(0), want, "{options:?}");
        assert_eq!(stats.wgmma_flops, 2 * (M * N * K) as u64);
    }
}

#[test]
fn a_run_does_not_depend_on_the_number_of_host_threads() {
    let kernel = specialized_add(2, 128);
    let n = 128 * 40;
    for timing in Timing::ALL {
        let run = |threads| {
            let setup = add_setup(n);
            let options = Options {
                threads,
                seed: 5,
                ..Options::with_timing(timing)
            };
            let stats = setup.run(&kernel, 7, &options).unwrap();
            (setup.values::<f32>(2), stats)
        };
        assert_eq!(run(1), run(2));
    }
}

#[test]
fn counters_show_bank_conflicts_and_wasted_sectors() {
    let kernel = build("counters", |k| {
        let out = k.pointer::<u32>("out");
        let t = k.tile::<u32>("t", 32, 32).unswizzled().declare();
        k.role("all").warps(1).body(|| {
            steps(32u32).each(|i| t.whole().store(i, lane_id(), i * 32 + lane_id()));
            warp_sync();
            let column = t.whole().load(lane_id(), 0u32);
            out.store(lane_id() * 8, column);
        });
    });
    let setup = Setup::new().output("out", 32 * 32);
    let stats = setup.run(&kernel, 1, &Options::default()).unwrap();
    let site = |op: &str| stats.sites.iter().find(|s| s.op.starts_with(op)).unwrap();
    assert_eq!(site("store").traffic.bank_conflicts, 0);
    assert_eq!(site("store").traffic.shared_accesses, 32);
    assert_eq!(site("load").traffic.bank_conflicts, 31);
    let global = stats.sites.last().unwrap();
    assert_eq!(
        (
            global.traffic.global_requests,
            global.traffic.global_sectors
        ),
        (1, 32)
    );
    assert_eq!(global.role, "all");
    assert!(global.frame.unwrap().file.ends_with("programs.rs"));
}
