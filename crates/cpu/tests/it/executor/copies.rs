//! `cp.async`: data, completion and visibility.

use crate::executor::harness::{line, other_line, strict, timings};
use half::bf16;
use warpline_cpu::{Options, Timing};
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel};
use warpline_testkit::launch::Setup;

fn build(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("copies", body)
}

/// Each lane copies `words` words with `n` words from the source and zeros after them, and reads
/// them back.
fn round_trip(words: u32) -> Kernel {
    build(|k| {
        let (n, x, out) = (
            k.param::<u32>("n"),
            k.pointer::<u32>("x"),
            k.pointer::<u32>("out"),
        );
        let t = k.tile::<u32>("t", 32, 4).unswizzled().declare();
        k.role("all").body(|| {
            let at = x.address(lane_id() * words);
            t.whole()
                .copy_zfill_from(lane_id(), 0u32, at, 4 * words, n * 4);
            copy_commit();
            copy_wait(0);
            warp_sync();
            // Reads the words of a neighbor, so the warp sync is necessary.
            let row = (lane_id() + 1) & 31;
            for i in 0..words {
                out.store(row * words + i, t.whole().load(row, i));
            }
        });
    })
}

#[test]
fn bytes_beyond_the_source_size_are_zero() {
    for words in [1, 2, 4] {
        let k = round_trip(words);
        for n in 0..=words {
            for options in timings() {
                let x: Vec<u32> = (0..32 * words).map(|i| i * 7 + 1).collect();
                let bytes = 4 * x.len();
                let s = Setup::new().scalar(n).input("x", &x).output("out", bytes);
                let stats = s.run(&k, 1, &options).unwrap_or_else(|e| panic!("{e}"));
                let want = |i: usize| if i as u32 % words < n { x[i] } else { 0 };
                let got = s.values::<u32>(1);
                assert!((0..x.len()).all(|i| got[i] == want(i)), "{words} {n}");
                assert_eq!(stats.bytes.lane_copy, bytes as u64);
            }
        }
    }
}

/// One warp sums `n` rows through a `cp.async` pipeline of `stages` stages.
fn pipeline(stages: u32) -> Kernel {
    build(|k| {
        let (n, x, out) = (
            k.param::<u32>("n"),
            k.pointer::<u32>("x"),
            k.pointer::<u32>("out"),
        );
        let t = k
            .tile::<u32>("t", 1, 32)
            .unswizzled()
            .stages(stages)
            .declare();
        k.role("all").body(|| {
            let issue_load = |i: Reg<u32>| {
                // An iteration past the end commits an empty group.
                if_(i.lt(n), || {
                    let to = t.stage(i % stages);
                    to.copy_from(0u32, lane_id(), x.address(i * 32 + lane_id()), 4);
                });
                copy_commit();
            };
            for i in 0..stages - 1 {
                issue_load(i.reg());
            }
            let sum = steps(n).fold(0u32.reg(), |i, sum| {
                copy_wait(stages - 2);
                warp_sync();
                let row = t.stage(i % stages);
                let sum = sum + row.load(0u32, lane_id() ^ 1) * (i + 1);
                warp_sync();
                issue_load(i + (stages - 1));
                sum
            });
            out.store(lane_id() ^ 1, sum);
        });
    })
}

#[test]
fn a_group_pipeline_is_correct_at_every_trip_count() {
    for stages in [2, 3, 4] {
        let k = pipeline(stages);
        for n in [0, 1, stages - 1, stages, stages + 1, 3 * stages + 1] {
            let x: Vec<u32> = (0..32 * n.max(1)).collect();
            for options in timings() {
                let s = Setup::new().scalar(n).input("x", &x).output("out", 128);
                s.run(&k, 1, &options)
                    .unwrap_or_else(|e| panic!("{stages} stages, {n} rounds: {e}"));
                let want = |c: u32| (0..n).map(|i| (32 * i + c) * (i + 1)).sum::<u32>();
                assert_eq!(s.values::<u32>(1), (0..32).map(want).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn adjacent_words_may_come_from_different_copies() {
    // Four copies of 4 bytes fill each 16-byte chunk, column by column.
    let k = build(|k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 32, 4).unswizzled().declare();
        k.role("all").body(|| {
            for col in 0..4 {
                let at = x.address(lane_id() + 32 * col);
                t.whole().copy_from(lane_id(), col, at, 4);
            }
            copy_wait_all();
            for col in 0..4 {
                out.store(lane_id() + 32 * col, t.whole().load(lane_id(), col));
            }
        });
    });
    let x: Vec<u32> = (100..228).collect();
    for options in timings() {
        let s = Setup::new().input("x", &x).output("out", 512);
        s.run(&k, 1, &options).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(s.values::<u32>(1), x);
    }
}

/// Copies into a written tile, with optional commit, wait and sync, and reads the tile.
fn copy_and_read(commit: bool, wait: Option<u32>, sync: bool, lines: &mut (u32, u32)) -> Kernel {
    build(|k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        k.role("all").body(|| {
            let t = t.whole();
            t.store(0u32, lane_id(), 0u32);
            lines.0 = line!() + 1;
            t.copy_from(0u32, lane_id(), x.address(lane_id()), 4);
            if commit {
                copy_commit();
            }
            if let Some(pending) = wait {
                copy_wait(pending);
            }
            if sync {
                warp_sync();
            }
            lines.1 = line!() + 1;
            let y = t.load(0u32, (lane_id() + 1) & 31);
            out.store(lane_id(), y);
        });
    })
}

#[test]
fn a_read_before_the_wait_or_the_warp_sync_is_a_race_with_both_lines() {
    let x: Vec<u32> = (0..32).collect();
    let run = |k: &Kernel, options: &Options| {
        let s = Setup::new().input("x", &x).output("out", 128);
        s.run(k, 1, options)
    };
    let wrong = [
        (true, None, true),
        (true, Some(1), true),
        (false, Some(0), true),
        (true, Some(0), false),
    ];
    for (commit, wait, sync) in wrong {
        let mut lines = (0, 0);
        let k = copy_and_read(commit, wait, sync, &mut lines);
        for options in strict() {
            let e = run(&k, &options).unwrap_err();
            assert_eq!(e.kind, FaultKind::Race, "{options:?}: {e}");
            assert_eq!((other_line(&e), line(&e)), lines, "{e}");
        }
    }
    let right = copy_and_read(true, Some(0), true, &mut (0, 0));
    for options in timings() {
        run(&right, &options).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn a_lane_sees_its_own_copy_after_its_wait() {
    let k = build(|k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        k.role("all").body(|| {
            t.whole()
                .copy_from(0u32, lane_id(), x.address(lane_id()), 4);
            copy_wait_all();
            out.store(lane_id(), t.whole().load(0u32, lane_id()));
        });
    });
    let x: Vec<u32> = (0..32).collect();
    for options in timings() {
        let s = Setup::new().input("x", &x).output("out", 128);
        s.run(&k, 1, &options).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(s.values::<u32>(1), x);
    }
}

#[test]
fn a_copy_must_be_ordered_after_reads_of_its_destination() {
    let kernel = |sync: bool, at: &mut u32| {
        build(|k| {
            let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
            k.role("all").warps(2).body(|| {
                if_(warp_id().eq(0u32), || {
                    t.whole().store(0u32, lane_id(), lane_id());
                });
                cta_sync();
                if_(warp_id().eq(1u32), || {
                    out.store(lane_id(), t.whole().load(0u32, lane_id()));
                });
                if sync {
                    cta_sync();
                }
                if_(warp_id().eq(0u32), || {
                    *at = line!() + 1;
                    t.whole()
                        .copy_from(0u32, lane_id(), x.address(lane_id()), 4);
                    copy_wait_all();
                });
            });
        })
    };
    let mut at = 0;
    let (wrong, right) = (kernel(false, &mut 0), kernel(true, &mut at));
    let mut found = 0;
    for options in timings() {
        let s = || Setup::new().input("x", &[1u32; 32]).output("out", 128);
        s().run(&right, 1, &options)
            .unwrap_or_else(|e| panic!("{e}"));
        if let Err(e) = s().run(&wrong, 1, &options) {
            assert_eq!(e.kind, FaultKind::Race, "{e}");
            found += 1;
        }
    }
    assert!(found > 3, "found {found} times");
}

#[test]
fn two_copies_in_flight_to_one_address_are_a_race() {
    let mut second = 0;
    let k = build(|k| {
        let x = k.pointer::<u32>("x");
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        k.role("all").body(|| {
            let at = x.address(lane_id());
            t.whole().copy_from(0u32, lane_id(), at, 4);
            second = line!() + 1;
            t.whole().copy_from(0u32, lane_id(), at, 4);
            copy_wait_all();
        });
    });
    let s = Setup::new().input("x", &[1u32; 32]);
    let e = s
        .run(&k, 1, &Options::with_timing(Timing::Late))
        .unwrap_err();
    assert_eq!((e.kind, line(&e)), (FaultKind::Race, second), "{e}");
}

// ---- arrivals after copies

/// A producer whose threads arrive after their copies, and a consumer that waits for `full`.
fn copy_arrivals(add_arrival: bool) -> Kernel {
    build(|k| {
        let (n, x, out) = (
            k.param::<u32>("n"),
            k.pointer::<u32>("x"),
            k.pointer::<u32>("out"),
        );
        let t = k.tile::<u32>("t", 1, 128).unswizzled().stages(2).declare();
        let count = if add_arrival { 1 } else { 32 };
        let (full, empty) = (
            k.barrier("full", 2).arrivals(count),
            k.barrier("empty", 2).arrivals(32),
        );
        k.role("load").body(|| {
            steps(n).each(|i| {
                let (s, parity) = (i & 1, (i >> 1) & 1);
                empty.at(s).wait(parity ^ 1);
                let at = x.address(i * 128 + lane_id() * 4);
                t.stage(s).copy_from(0u32, lane_id() * 4, at, 16);
                if add_arrival {
                    full.at(s).add_arrival_after_copies();
                    warp_sync();
                    elect(|| full.at(s).arrive());
                } else {
                    full.at(s).arrive_after_copies();
                }
            });
        });
        k.role("read").body(|| {
            steps(n).each(|i| {
                let (s, parity) = (i & 1, (i >> 1) & 1);
                full.at(s).wait(parity);
                for j in 0..4 {
                    let c = lane_id() + 32 * j;
                    out.store(i * 128 + c, t.stage(s).load(0u32, c));
                }
                empty.at(s).arrive();
            });
        });
    })
}

#[test]
fn each_lane_arrives_after_its_copies() {
    for add_arrival in [false, true] {
        let k = copy_arrivals(add_arrival);
        for n in [0, 1, 2, 3, 7] {
            let x: Vec<u32> = (0..128 * n.max(1)).map(|i| i ^ 0x55).collect();
            for options in timings() {
                let s = Setup::new().scalar(n).input("x", &x);
                let s = s.output("out", 512 * n.max(1) as usize);
                s.run(&k, 1, &options).unwrap_or_else(|e| {
                    panic!("add_arrival {add_arrival}, {n} rounds, {options:?}: {e}")
                });
                if n > 0 {
                    assert_eq!(s.values::<u32>(1), x);
                }
            }
        }
    }
}

#[test]
fn an_arrival_after_copies_publishes_no_store() {
    let (mut store, mut load) = (0, 0);
    let k = build(|k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let (t, u) = (
            k.tile::<u32>("t", 1, 32).unswizzled().declare(),
            k.tile::<u32>("u", 1, 32).unswizzled().declare(),
        );
        let full = k.barrier("full", 1).arrivals(32);
        k.role("load").body(|| {
            store = line!() + 1;
            u.whole().store(0u32, lane_id(), 1u32);
            t.whole()
                .copy_from(0u32, lane_id(), x.address(lane_id()), 4);
            full.at(0).arrive_after_copies();
        });
        k.role("read").body(|| {
            full.at(0).wait(0);
            out.store(lane_id(), t.whole().load(0u32, lane_id()));
            load = line!() + 1;
            out.store(lane_id(), u.whole().load(0u32, lane_id()));
        });
    });
    for options in strict() {
        let s = Setup::new().input("x", &[1u32; 32]).output("out", 128);
        let e = s.run(&k, 1, &options).unwrap_err();
        assert_eq!(e.kind, FaultKind::Race, "{e}");
        assert_eq!((other_line(&e), line(&e)), (store, load), "{e}");
    }
}

#[test]
fn too_few_arrivals_are_a_deadlock_that_names_the_barrier() {
    let k = build(|k| {
        let x = k.pointer::<u32>("x");
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(33);
        k.role("load").body(|| {
            t.whole()
                .copy_from(0u32, lane_id(), x.address(lane_id()), 4);
            full.at(0).arrive_after_copies();
        });
        k.role("read").body(|| full.at(0).wait(0));
    });
    for options in timings() {
        let s = Setup::new().input("x", &[1u32; 32]);
        let e = s.run(&k, 1, &options).unwrap_err();
        assert_eq!(e.kind, FaultKind::Deadlock, "{e}");
        assert!(e.to_string().contains("1 arrival is missing"), "{e}");
    }
}

// ---- the async proxy

/// A wgmma whose operands come from `cp.async`, with or without a proxy fence.
fn wgmma_of_copies(fence: bool, at: &mut u32) -> Kernel {
    build(|k| {
        let (x, out) = (k.pointer::<bf16>("x"), k.pointer::<f32>("out"));
        let (a, b) = (
            k.tile::<bf16>("a", 64, 16).declare(),
            k.tile::<bf16>("b", 8, 16).declare(),
        );
        k.role("math").warps(4).body(|| {
            let (row, col) = (thread_id() / 2, thread_id() % 2 * 8);
            let from = x.address(row * 16 + col);
            a.whole().copy_from(row, col, from, 16);
            if_(row.lt(8u32), || b.whole().copy_from(row, col, from, 16));
            copy_wait_all();
            if fence {
                fence_async();
            }
            cta_sync();
            let acc = Acc::new(64, 8);
            *at = line!() + 1;
            acc.mma(&a.whole(), &b.whole());
            acc.into_frag().map_with_coord(|v, at| {
                out.store(at.row * 8 + at.col, v);
                v
            });
        });
    })
}

#[test]
fn a_wgmma_of_copies_needs_a_proxy_fence() {
    let x: Vec<bf16> = (0..64 * 16)
        .map(|i| bf16::from_f32((i % 7) as f32 - 3.0))
        .collect();
    let setup = || Setup::new().input("x", &x).output("out", 4 * 64 * 8);
    let mut at = 0;
    let (wrong, right) = (
        wgmma_of_copies(false, &mut at),
        wgmma_of_copies(true, &mut 0),
    );
    for options in timings() {
        let s = setup();
        s.run(&right, 1, &options)
            .unwrap_or_else(|e| panic!("{options:?}: {e}"));
        let got = s.values::<f32>(1);
        for (i, &v) in got.iter().enumerate() {
            let (r, c) = (i / 8, i % 8);
            let term = |k: usize| x[r * 16 + k].to_f32() * x[c * 16 + k].to_f32();
            assert_eq!(v, (0..16).map(term).sum::<f32>());
        }
    }
    for options in strict() {
        let e = setup().run(&wrong, 1, &options).unwrap_err();
        assert_eq!(e.kind, FaultKind::MissingProxyFence, "{e}");
        assert_eq!(line(&e), at, "{e}");
        assert!(
            e.text
                .contains("after the wait for the `cp.async` that wrote it"),
            "{e}"
        );
    }
}
