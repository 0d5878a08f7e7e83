//! Every kind of fault, its location and its message.

use crate::executor::harness::{
    edit, expect_fault, expect_pass, line, other_line, strict, timings,
};
use half::bf16;
use warpline_cpu::{Options, Timing};
use warpline_ir::builder::*;
use warpline_ir::ops::control::SetMaxRegs;
use warpline_ir::ops::mbarrier::MbarrierArrive;
use warpline_ir::{Arg, FaultKind, Kernel, Op, Operand};
use warpline_testkit::launch::Setup;

fn build(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("faulty", body)
}

// ---- bounds, alignment, uninitialized bytes

#[test]
fn a_stage_beyond_the_tile_is_out_of_bounds() {
    let mut at = 0;
    let k = build(|k| {
        let t = k.tile::<u32>("t", 1, 32).unswizzled().stages(2).declare();
        k.role("all").body(|| {
            at = line!() + 1;
            t.stage(lane_id() / 8).store(0u32, lane_id(), 1u32);
        });
    });
    for options in timings() {
        let e = expect_fault(&k, &options, FaultKind::OutOfBounds);
        assert_eq!((line(&e), e.lane), (at, Some(16)), "{e}");
        assert!(
            e.text.contains("stage 2 of tile t, which has 2 stages"),
            "{e}"
        );
    }
}

#[test]
fn bytes_past_a_tile_are_out_of_bounds_inside_shared_memory() {
    let k = build(|k| {
        let t = k.tile::<u32>("t", 1, 24).unswizzled().declare();
        k.tile::<u32>("next", 1, 32).unswizzled().declare();
        k.role("all")
            .body(|| t.whole().store(0u32, lane_id(), 1u32));
    });
    let e = expect_fault(&k, &Options::default(), FaultKind::OutOfBounds);
    assert_eq!(e.lane, Some(24));
    assert!(
        e.text.contains("byte 96 of tile t, which has 96 bytes"),
        "{e}"
    );
}

#[test]
fn uninitialized_shared_bytes_are_named_by_tile_and_stage() {
    let k = build(|k| {
        let t = k.tile::<u32>("t", 1, 32).unswizzled().stages(3).declare();
        k.role("all").body(|| {
            if_(lane_id().lt(20u32), || {
                t.stage(1).store(0u32, lane_id(), 1u32)
            });
            warp_sync();
            let x = t.stage(1).load(0u32, lane_id());
            t.stage(2).store(0u32, lane_id(), x);
        });
    });
    for options in timings() {
        let e = expect_fault(&k, &options, FaultKind::NeverWritten);
        assert_eq!(e.lane, Some(20));
        assert!(e.text.contains("byte 80 of tile t, stage 1"), "{e}");
    }
}

#[test]
fn an_uninitialized_copy_source_names_the_copy() {
    let mut at = 0;
    let k = build(|k| {
        let (x, t) = (
            k.pointer::<u32>("x"),
            k.tile::<u32>("t", 1, 32).unswizzled().declare(),
        );
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").body(|| {
            elect(|| {
                full.at(0).arrive_expect(128);
                at = line!() + 1;
                bulk_load(t.whole(), x.address(0), 128, full.at(0));
            });
            full.at(0).wait(0);
        });
    });
    for options in timings() {
        let setup = Setup::new().output("x", 128);
        let e = setup.run(&k, 1, &options).unwrap_err();
        assert_eq!((e.kind, line(&e)), (FaultKind::NeverWritten, at), "{e}");
        assert!(e.text.contains("buffer x"), "{e}");
    }
}

// ---- races

#[test]
fn a_generic_access_to_bytes_in_flight_is_a_race_with_both_lines() {
    let (mut copy, mut read) = (0, 0);
    let k = build(|k| {
        let (x, t) = (
            k.pointer::<u32>("x"),
            k.tile::<u32>("t", 1, 32).unswizzled().declare(),
        );
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").body(|| {
            t.whole().store(0u32, lane_id(), 0u32);
            fence_async();
            warp_sync();
            elect(|| {
                full.at(0).arrive_expect(128);
                copy = line!() + 1;
                bulk_load(t.whole(), x.address(0), 128, full.at(0));
            });
            read = line!() + 1;
            let y = t.whole().load(0u32, lane_id());
            full.at(0).wait(0);
            t.whole().store(0u32, lane_id(), y);
        });
    });
    let setup = || Setup::new().input("x", &[1u32; 32]);
    for options in strict() {
        let e = setup().run(&k, 1, &options).unwrap_err();
        assert_eq!(e.kind, FaultKind::Race, "{e}");
        assert_eq!((line(&e), other_line(&e)), (read, copy), "{e}");
    }
    // Eager timing does not check races.
    setup().run(&k, 1, &Options::default()).unwrap();
}

#[test]
fn overwriting_the_source_of_a_bulk_store_is_a_race_before_the_read_wait() {
    let kernel = |wait: bool| {
        build(|k| {
            let (x, t) = (
                k.pointer::<u32>("x"),
                k.tile::<u32>("t", 1, 32).unswizzled().declare(),
            );
            k.role("all").body(|| {
                steps(3u32).each(|i| {
                    t.whole().store(0u32, lane_id(), lane_id() + i);
                    fence_async();
                    warp_sync();
                    elect(|| {
                        bulk_store(t.whole(), x.address(i * 32), 128);
                        bulk_commit();
                        if wait {
                            bulk_wait_read(0);
                        }
                    });
                    warp_sync();
                });
                elect(|| bulk_wait(0));
            });
        })
    };
    for options in strict() {
        let setup = Setup::new().output("x", 384);
        setup.run(&kernel(true), 1, &options).unwrap();
        let want: Vec<u32> = (0..96).map(|i| i % 32 + i / 32).collect();
        assert_eq!(setup.values::<u32>(0), want);
        let setup = Setup::new().output("x", 384);
        let e = setup.run(&kernel(false), 1, &options).unwrap_err();
        assert_eq!(e.kind, FaultKind::Race, "{e}");
    }
}

#[test]
fn an_elected_arrival_does_not_order_other_lanes() {
    // Lane 0 of the reader frees the slot; lane 1 may still be reading.
    let kernel = |sync: bool| {
        build(|k| {
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
            let (full, empty) = (
                k.barrier("full", 1).arrivals(1),
                k.barrier("empty", 1).arrivals(1),
            );
            k.role("write").body(|| {
                steps(3u32).each(|i| {
                    empty.at(0).wait((i & 1) ^ 1);
                    t.whole().store(0u32, lane_id(), i);
                    warp_sync();
                    elect(|| full.at(0).arrive());
                });
            });
            k.role("read").body(|| {
                let sum = Var::new(0u32);
                steps(3u32).each(|i| {
                    full.at(0).wait(i & 1);
                    sum.set(sum.get() + t.whole().load(0u32, lane_id()));
                    if sync {
                        warp_sync();
                    }
                    elect(|| empty.at(0).arrive());
                });
            });
        })
    };
    for options in timings() {
        expect_pass(&kernel(true), &options);
    }
    for options in strict() {
        let e = expect_fault(&kernel(false), &options, FaultKind::Race);
        assert!(
            e.text.contains("of tile t, which another thread read"),
            "{e}"
        );
        if options.timing == Timing::Late {
            // The lowest lane that is not elected.
            assert!(e.text.starts_with("writes byte 4 "), "{e}");
        }
        assert_eq!(e.other.as_ref().unwrap().role, "read");
    }
}

#[test]
fn happens_before_is_transitive() {
    // a → b → c by two barriers: c is ordered after a's write.
    let kernel = |through: bool| {
        build(|k| {
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
            let (ab, bc) = (
                k.barrier("ab", 1).arrivals(32),
                k.barrier("bc", 1).arrivals(32),
            );
            k.role("a").body(|| {
                t.whole().store(0u32, lane_id(), 7u32);
                ab.at(0).arrive();
            });
            k.role("b").body(|| {
                if through {
                    ab.at(0).wait(0);
                }
                bc.at(0).arrive();
            });
            k.role("c").body(|| {
                bc.at(0).wait(0);
                t.whole().store(0u32, lane_id(), 8u32);
            });
        })
    };
    for options in strict() {
        expect_pass(&kernel(true), &options);
        expect_fault(&kernel(false), &options, FaultKind::Race);
    }
}

#[test]
fn a_fence_after_the_issue_of_the_copy_is_too_late() {
    let mut store = 0;
    let k = build(|k| {
        let (x, t) = (
            k.pointer::<u32>("x"),
            k.tile::<u32>("t", 1, 32).unswizzled().declare(),
        );
        k.role("all").body(|| {
            store = line!() + 1;
            t.whole().store(0u32, lane_id(), 1u32);
            warp_sync();
            elect(|| {
                bulk_store(t.whole(), x.address(0), 128);
                bulk_commit();
            });
            fence_async();
            elect(|| bulk_wait(0));
        });
    });
    for options in strict() {
        let setup = Setup::new().output("x", 128);
        let e = setup.run(&k, 1, &options).unwrap_err();
        assert_eq!(e.kind, FaultKind::MissingProxyFence, "{e}");
        assert_eq!(other_line(&e), store, "{e}");
    }
}

// ---- barriers

/// Builds a kernel in which each CTA of a cluster initializes a barrier and arrives at its peer's
/// barrier after a relaxed cluster barrier.
fn init_for_a_peer(fence: bool) -> Kernel {
    build(|k| {
        k.cluster(2, 1, 1);
        let bar = k.barrier("bar", 1);
        k.role("all").body(|| {
            elect(|| {
                bar.at(0).init(32);
                if fence {
                    fence_mbarrier_init();
                }
            });
            cluster_arrive_relaxed();
            cluster_wait();
            bar.at(0).peer(cluster_rank() ^ 1u32).arrive_cluster();
            bar.at(0).wait_cluster(0);
            cluster_sync();
        });
    })
}

#[test]
fn a_relaxed_cluster_barrier_publishes_a_fenced_init() {
    for options in strict() {
        let setup = Setup::new();
        let run = |fence| setup.run(&init_for_a_peer(fence), 4, &options);
        run(true).unwrap_or_else(|e| panic!("{e}"));
        let e = run(false).unwrap_err();
        assert!(e.text.contains("did not run `fence.mbarrier_init`"), "{e}");
    }
}

/// Builds a kernel in which one lane initializes a barrier and all lanes use it.
fn manual_init(fence: bool, sync: bool) -> Kernel {
    build(|k| {
        let bar = k.barrier("bar", 1);
        k.role("all").warps(2).body(|| {
            elect(|| {
                bar.at(0).init(64);
                if fence {
                    fence_mbarrier_init();
                }
            });
            if sync {
                cta_sync();
            }
            bar.at(0).arrive();
            bar.at(0).wait(0);
        });
    })
}

#[test]
fn an_init_needs_a_fence_and_a_barrier_before_its_use() {
    for options in strict() {
        expect_pass(&manual_init(true, true), &options);
        let e = expect_fault(&manual_init(false, true), &options, FaultKind::Barrier);
        assert!(e.text.contains("did not run `fence.mbarrier_init`"), "{e}");
        assert!(e.text.contains("bar[0]"), "{e}");
        expect_fault(&manual_init(true, false), &options, FaultKind::Barrier);
    }
    expect_pass(&manual_init(false, true), &Options::default());
}

#[test]
fn mbarrier_misuse_is_a_fault() {
    type Misuse = fn(MbarrierArray);
    let cases: [(&str, Misuse); 5] = [
        ("before its init", |b| b.at(0).arrive()),
        ("a second time", |b| {
            b.at(0).init(1);
            b.at(0).init(1);
        }),
        ("after `mbarrier.inval`", |b| {
            b.at(0).init(1);
            b.at(0).inval();
            b.at(0).arrive();
        }),
        ("exceed the limit of 1048575", |b| {
            b.at(0).init(1);
            b.at(0).expect(1 << 20);
        }),
        ("names parity 2; a parity is 0 or 1", |b| {
            b.at(0).init(1);
            b.at(0).wait(2);
        }),
    ];
    for (text, misuse) in cases {
        let k = build(|k| {
            let bar = k.barrier("bar", 1);
            k.role("all").body(|| elect(|| misuse(bar)));
        });
        for options in timings() {
            let e = expect_fault(&k, &options, FaultKind::Barrier);
            assert!(e.text.contains(text), "{e}");
            assert!(e.text.contains("bar[0]") || text.contains("parity"), "{e}");
        }
    }
}

#[test]
fn different_thread_counts_at_a_named_barrier_are_a_fault() {
    let k = build(|k| {
        let b = k.named_barrier("pair");
        k.role("one").body(|| b.sync(64));
        k.role("two").body(|| b.sync(96));
        k.role("three").body(|| {});
    });
    for options in timings() {
        let e = expect_fault(&k, &options, FaultKind::Barrier);
        assert!(e.text.contains("(pair)"), "{e}");
    }
}

// ---- convergence, traps, registers

#[test]
fn a_whole_warp_op_in_a_partial_warp_is_a_fault() {
    let mut at = 0;
    let k = build(|k| {
        k.role("all").body(|| {
            if_(lane_id().lt(7u32), || {
                at = line!() + 1;
                cta_sync();
            });
        });
    });
    for options in timings() {
        let e = expect_fault(&k, &options, FaultKind::Convergence);
        assert_eq!(line(&e), at);
        assert!(e.text.contains("0x0000007f"), "{e}");
    }
}

#[test]
fn a_trap_names_its_lanes() {
    let k = build(|k| k.role("all").body(|| if_(lane_id().eq(3u32), trap)));
    for options in timings() {
        let e = expect_fault(&k, &options, FaultKind::Trap);
        assert!(e.text.contains("0x00000008"), "{e}");
    }
}

#[test]
fn setmaxnreg_moves_registers_through_the_pool() {
    // 24/240/240 of a pool of 384 × 168.
    let k = build(|k| {
        k.role("one").warpgroups(1).registers(240).body(|| {});
        k.role("two").warpgroups(1).registers(240).body(|| {});
        k.role("load").warpgroups(1).registers(24).body(|| {});
    });
    for options in timings() {
        expect_pass(&k, &options);
    }
}

#[test]
fn a_register_count_must_be_a_multiple_of_eight() {
    let k = build(|k| k.role("one").warpgroups(1).registers(41).body(|| {}));
    let e = Setup::new().run(&k, 1, &Options::default()).unwrap_err();
    assert!(e.text.contains("41"), "{e}");
}

#[test]
fn a_wgmma_without_a_fence_is_a_fault() {
    let mut k = build(|k| {
        let (x, t) = (
            k.pointer::<u32>("x"),
            k.tile::<bf16>("t", 64, 64).stages(2).declare(),
        );
        let full = k.barrier("full", 1).arrivals(1);
        k.role("math").warpgroups(1).body(|| {
            elect(|| {
                full.at(0).arrive_expect(16384);
                bulk_load(t.stage(0), x.address(0), 8192, full.at(0));
                bulk_load(t.stage(1), x.address(0), 8192, full.at(0));
            });
            full.at(0).wait(0);
            let acc = Acc::new(64, 64);
            acc.mma(&t.stage(0), &t.stage(1));
            acc.into_frag();
        });
    });
    let setup = || Setup::new().input("x", &[0u32; 2048]);
    for options in timings() {
        let stats = setup()
            .run(&k, 1, &options)
            .unwrap_or_else(|e| panic!("{e}"));
        // Four k-steps of 16, of A and of B: 64 × 16 elements each.
        assert_eq!(stats.bytes.wgmma_read, 4 * 2 * 64 * 32);
    }
    edit(&mut k, 0, &|op| {
        (!matches!(op, Op::WgmmaFence(_))).then_some(op)
    });
    for options in timings() {
        let e = setup().run(&k, 1, &options).unwrap_err();
        assert_eq!(e.kind, FaultKind::RegisterInFlight, "{e}");
        assert!(e.text.contains("fence"), "{e}");
    }
}

#[test]
fn an_arrival_beyond_the_count_is_a_fault() {
    let mut k = build(|k| {
        let bar = k.barrier("bar", 1).arrivals(2);
        k.role("all").body(|| elect(|| bar.at(0).arrive()));
    });
    edit(&mut k, 0, &|op| match op {
        Op::MbarrierArrive(a) => Some(
            MbarrierArrive {
                count: Operand::Imm(3),
                ..a
            }
            .into(),
        ),
        op => Some(op),
    });
    for options in timings() {
        let e = expect_fault(&k, &options, FaultKind::Barrier);
        assert!(
            e.text
                .contains("arrives too often: 3 arrivals, but this phase expects 2 more of 2"),
            "{e}"
        );
    }
}

#[test]
fn setmaxnreg_in_the_wrong_direction_is_a_fault() {
    let mut k = build(|k| k.role("all").warpgroups(1).registers(40).body(|| {}));
    edit(&mut k, 0, &|op| match op {
        Op::SetMaxRegs(r) => Some(SetMaxRegs { grow: true, ..r }.into()),
        op => Some(op),
    });
    for options in timings() {
        let e = expect_fault(&k, &options, FaultKind::Registers);
        assert!(
            e.text
                .contains("requests an increase to 40 registers per thread, but the warp has"),
            "{e}"
        );
    }
}

// ---- launches

#[test]
fn a_launch_that_does_not_match_the_kernel_is_rejected() {
    let k = build(|k| {
        k.cluster(2, 1, 1);
        let n = k.param::<u32>("n");
        k.role("all").body(|| {
            let _ = n + 1;
        });
    });
    for (setup, ctas, text) in [
        (
            Setup::new(),
            2,
            "takes 1 arguments, but the launch passes 0",
        ),
        (Setup::new().scalar(1), 3, "multiple of the cluster"),
    ] {
        let e = setup.run(&k, ctas, &Options::default()).unwrap_err();
        assert_eq!(e.kind, FaultKind::Launch);
        assert!(e.text.contains(text), "{e}");
    }
    let setup = Setup {
        args: vec![Arg::scalar(1.0f32)],
        ..Setup::new()
    };
    let e = setup.run(&k, 2, &Options::default()).unwrap_err();
    assert_eq!(e.kind, FaultKind::Launch);
}

#[test]
fn a_launch_that_breaks_a_declared_bound_is_rejected() {
    let k = build(|k| {
        let rows = k.param::<u32>("rows").at_least(2).at_most(8);
        let cols = k.param::<u32>("cols").multiple_of(4);
        k.limit(extent(rows) * cols, 64);
        let x = k.pointer::<u32>("x").aligned_to(16);
        let x = x.elements(extent(rows) * cols);
        k.role("all").body(|| {
            if_(lane_id().eq(0u32), || {
                steps(rows * cols).each(|i| x.store(i, 1u32));
            });
        });
    });
    let run = |rows, cols, bytes: usize, offset: u64| {
        let mut setup = Setup::new().scalar(rows).scalar(cols).output("x", bytes);
        setup.args[2] = Arg::Pointer(setup.addresses[0] + offset);
        setup.run(&k, 1, &Options::default()).map(|_| ())
    };
    for (rows, cols, bytes, offset) in [(2, 4, 32, 0), (8, 8, 256, 0), (2, 4, 48, 16)] {
        run(rows, cols, bytes, offset).expect("every bound is kept");
    }
    for (rows, cols, bytes, offset, text) in [
        (1, 4, 256, 0, "parameter rows is 1, but"),
        (9, 4, 256, 0, "parameter rows is 9, but"),
        (2, 6, 256, 0, "parameter cols is 6, but"),
        (
            8,
            12,
            512,
            0,
            "rows*cols is 96, but the kernel takes at most 64",
        ),
        (2, 4, 256, 4, "at a multiple of 16 bytes"),
        (
            2,
            4,
            31,
            0,
            "points to 7 u32 elements, but the kernel takes at least rows*cols = 8",
        ),
        (2, 4, 32, 16, "points to 4 u32 elements"),
    ] {
        let e = run(rows, cols, bytes, offset).unwrap_err();
        assert_eq!(e.kind, FaultKind::Launch);
        assert!(e.text.contains(text) && e.text.contains("\nhelp: "), "{e}");
    }
}

#[test]
fn undeclared_references_are_rejected() {
    let valid = build(|k| {
        let bar = k.barrier("bar", 1).arrivals(32);
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        k.role("all").body(|| {
            t.whole().store(0u32, lane_id(), 1u32);
            bar.at(0).arrive();
        });
    });
    let mutations: [fn(&mut Kernel); 4] = [
        |k| k.regs.truncate(1),
        |k| k.tiles.clear(),
        |k| k.barriers.clear(),
        |k| k.roles[0].first_warp = 3,
    ];
    for mutate in mutations {
        let mut k = valid.clone();
        mutate(&mut k);
        let e = Setup::new().run(&k, 1, &Options::default()).unwrap_err();
        assert!(
            matches!(e.kind, FaultKind::Illegal | FaultKind::Launch),
            "{e}"
        );
    }
}

#[test]
fn the_lowest_faulting_cluster_is_reported_for_any_thread_count() {
    let k = build(|k| {
        let out = k.pointer::<u32>("out");
        k.role("all").body(|| {
            // CTAs with an index of 5 or more write out of bounds.
            out.store(cta_id() * 32 + lane_id(), 1u32);
        });
    });
    for timing in Timing::ALL {
        for threads in [1, 2] {
            let options = Options {
                threads,
                ..Options::with_timing(timing)
            };
            let setup = Setup::new().output("out", 5 * 128);
            let e = setup.run(&k, 64, &options).unwrap_err();
            assert_eq!(e.at.unwrap().cta, [5, 0, 0]);
        }
    }
}

#[test]
fn a_report_has_class_values_and_line() {
    let mut at = 0;
    let k = build(|k| {
        let out = k.pointer::<u32>("out");
        k.role("load").body(|| {});
        k.role("compute").warps(2).body(|| {
            at = line!() + 1;
            out.store(thread_id(), 1u32);
        });
    });
    let setup = Setup::new().output("out", 4 * 40);
    let e = setup.run(&k, 1, &Options::default()).unwrap_err();
    assert_eq!(
        e.to_string(),
        format!(
            "out-of-bounds access: store.u32 (lane 8) accesses 4 bytes at byte 160 of buffer out, \
             which has 160 bytes\n  at compute, warp 1, CTA (0,0,0), faults.rs:{at}"
        )
    );
}
