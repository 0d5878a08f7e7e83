//! Faulty pipelines: each is detected and reported at the author's line.

use crate::pipelines::harness::{Input, run, timings, words};
use warpline_cpu::{Options, RunError, Timing};
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel};

fn build(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("wrong", body)
}

fn late() -> Options {
    timings(0).remove(1)
}

#[track_caller]
fn expect_fault(kernel: &Kernel, inputs: &[Input], options: &Options) -> Box<RunError> {
    match run(kernel, 1, inputs, options) {
        Ok(_) => panic!("no fault under {}", options.timing),
        Err(e) => e,
    }
}

/// Returns the source line of a fault.
#[track_caller]
fn line(e: &RunError) -> u32 {
    let frame =
        e.at.as_ref()
            .and_then(|s| s.frame)
            .unwrap_or_else(|| panic!("no line: {e}"));
    assert!(frame.file.ends_with("faulty.rs"), "{e}");
    frame.line
}

#[test]
fn a_slot_never_released_is_a_deadlock_that_names_the_wait() {
    let mut at = 0;
    let k = build(|k| {
        let (full, empty) = (
            k.barrier("full", 1).arrivals(1),
            k.barrier("empty", 1).arrivals(1),
        );
        k.role("produce").body(|| {
            elect(|| {
                steps(2).each(|t| {
                    at = line!() + 1;
                    empty.at(0).wait((t & 1) ^ 1);
                    full.at(0).arrive();
                });
            });
        });
        // The consumer waits, but does not arrive at `empty`.
        k.role("consume")
            .body(|| steps(2).each(|t| full.at(0).wait(t & 1)));
    });
    for options in timings(3) {
        let e = expect_fault(&k, &[], &options);
        assert_eq!(e.kind, FaultKind::Deadlock, "{e}");
        let text = e.to_string();
        assert!(text.contains("empty") && text.contains("produce"), "{text}");
        assert!(text.contains(&format!("faulty.rs:{at}")), "{text}");
    }
}

#[test]
fn a_wait_without_commit_is_a_deadlock() {
    let mut at = 0;
    let k = build(|k| {
        let full = k.barrier("full", 2).arrivals(1);
        k.role("consume").body(|| {
            at = line!() + 1;
            full.at(1).wait(0);
        });
    });
    for options in timings(2) {
        let e = expect_fault(&k, &[], &options);
        assert_eq!(e.kind, FaultKind::Deadlock);
        let text = e.to_string();
        assert!(
            text.contains("full[1]") && text.contains(&format!("faulty.rs:{at}")),
            "{text}"
        );
    }
}

/// The producer loads a tile in each round; the consumer reads it before its wait.
fn early_read(rounds: u32, at: &mut u32) -> Kernel {
    build(|k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let tile = k.tile::<u32>("tile", 1, 32).unswizzled().declare();
        let (full, empty) = (
            k.barrier("full", 1).arrivals(1),
            k.barrier("empty", 1).arrivals(1),
        );
        k.role("load").body(|| {
            elect(|| {
                steps(rounds).each(|t| {
                    empty.at(0).wait((t & 1) ^ 1);
                    full.at(0).arrive_expect(128);
                    bulk_load(tile.whole(), x.address(t * 32), 128, full.at(0));
                });
            });
        });
        k.role("read").body(|| {
            steps(rounds).each(|t| {
                *at = line!() + 1;
                let y = tile.whole().load(0u32, lane_id());
                full.at(0).wait(t & 1);
                out.store(t * 32 + lane_id(), y);
                fence_async();
                warp_sync();
                elect(|| empty.at(0).arrive());
            });
        });
    })
}

#[test]
fn a_read_before_the_wait_is_reported_at_its_line() {
    let mut at = 0;
    let k = early_read(2, &mut at);
    let e = expect_fault(&k, &[words(0..64), Input::Output(256)], &late());
    assert!(
        matches!(e.kind, FaultKind::NeverWritten | FaultKind::Race),
        "{e}"
    );
    assert_eq!(line(&e), at, "{e}");
}

#[test]
fn two_writers_of_one_tile_are_a_race_with_both_lines() {
    let (mut one, mut two) = (0, 0);
    let k = build(|k| {
        let tile = k.tile::<u32>("tile", 1, 32).unswizzled().declare();
        k.role("one").body(|| {
            one = line!() + 1;
            tile.whole().store(0u32, lane_id(), 1u32);
        });
        k.role("two").body(|| {
            two = line!() + 1;
            tile.whole().store(0u32, lane_id(), 2u32);
        });
    });
    let e = expect_fault(&k, &[], &late());
    assert_eq!(e.kind, FaultKind::Race, "{e}");
    let text = e.to_string();
    for l in [one, two] {
        assert!(
            text.contains(&format!("faulty.rs:{l}")),
            "names both lines: {text}"
        );
    }
}

#[test]
fn two_copies_into_one_slot_are_a_race() {
    let mut second = 0;
    let k = build(|k| {
        let x = k.pointer::<u32>("x");
        let tile = k.tile::<u32>("tile", 1, 32).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("load").body(|| {
            elect(|| {
                full.at(0).arrive_expect(256);
                bulk_load(tile.whole(), x.address(0), 128, full.at(0));
                second = line!() + 1;
                bulk_load(tile.whole(), x.address(32), 128, full.at(0));
            });
        });
        k.role("wait").body(|| full.at(0).wait(0));
    });
    let e = expect_fault(&k, &[words(0..64)], &late());
    assert_eq!((e.kind, line(&e)), (FaultKind::Race, second), "{e}");
}

#[test]
fn a_missing_proxy_fence_is_reported_with_both_lines() {
    let (mut write, mut store) = (0, 0);
    let k = build(|k| {
        let out = k.pointer::<u32>("out");
        let tile = k.tile::<u32>("tile", 1, 32).unswizzled().declare();
        k.role("all").body(|| {
            write = line!() + 1;
            tile.whole().store(0u32, lane_id(), lane_id());
            warp_sync(); // `fence_async()` is missing.
            elect(|| {
                store = line!() + 1;
                bulk_store(tile.whole(), out.address(0), 128);
                bulk_commit();
                bulk_wait(0);
            });
        });
    });
    for options in timings(3) {
        if options.timing == Timing::Eager {
            continue;
        }
        let e = expect_fault(&k, &[Input::Output(128)], &options);
        assert_eq!(e.kind, FaultKind::MissingProxyFence, "{e}");
        let text = e.to_string();
        for l in [write, store] {
            assert!(
                text.contains(&format!("faulty.rs:{l}")),
                "names both lines: {text}"
            );
        }
    }
}

#[test]
fn an_exchange_between_lanes_without_a_sync_is_a_race() {
    let mut read = 0;
    let k = build(|k| {
        let out = k.pointer::<u32>("out");
        let tile = k.tile::<u32>("tile", 1, 32).unswizzled().declare();
        k.role("all").body(|| {
            tile.whole().store(0u32, lane_id(), lane_id());
            read = line!() + 1;
            let x = tile.whole().load(0u32, lane_id() ^ 1);
            out.store(lane_id(), x);
        });
    });
    let e = expect_fault(&k, &[Input::Output(128)], &late());
    assert_eq!((e.kind, line(&e)), (FaultKind::Race, read), "{e}");
}

#[test]
fn an_accumulator_access_during_a_wgmma_is_a_fault() {
    let mut access_line = 0;
    let k = build(|k| {
        let out = k.pointer::<f32>("out");
        let x = k.pointer::<u32>("x");
        let tile = k.tile::<half::bf16>("t", 64, 64).declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("math").warpgroups(1).body(|| {
            full.at(0).wait(0);
            let acc = Acc::new(64, 64);
            acc.mma(&tile.whole(), &tile.whole());
            access_line = line!() + 1;
            acc.peek(|x| out.store(thread_id(), x));
            acc.into_frag();
        });
        k.role("load").warps(4).body(|| {
            elect(|| {
                full.at(0).arrive_expect(8192);
                bulk_load(tile.whole(), x.address(0), 8192, full.at(0));
            });
        });
    });
    for options in timings(2) {
        let e = expect_fault(&k, &[Input::Output(512), words([0; 2048])], &options);
        assert_eq!(
            (e.kind, line(&e)),
            (FaultKind::RegisterInFlight, access_line),
            "{e}"
        );
    }
}

#[test]
fn an_out_of_bounds_access_names_the_buffer() {
    let mut at = 0;
    let k = build(|k| {
        let x = k.pointer::<u32>("x");
        k.role("all").body(|| {
            at = line!() + 1;
            x.store(lane_id(), 1u32);
        });
    });
    let e = expect_fault(&k, &[Input::Output(124)], &late());
    assert_eq!((e.kind, line(&e)), (FaultKind::OutOfBounds, at), "{e}");
    assert!(e.to_string().contains("x"), "names the buffer: {e}");
}

#[test]
fn a_misaligned_access_is_a_fault() {
    let mut at = 0;
    let k = build(|k| {
        let x = k.pointer::<u32>("x");
        k.role("all").body(|| {
            at = line!() + 1;
            x.store_vec(1u32, [1u32, 2, 3, 4]);
        });
    });
    let e = expect_fault(&k, &[Input::Output(64)], &late());
    assert_eq!((e.kind, line(&e)), (FaultKind::Misaligned, at), "{e}");
}

#[test]
fn an_uninitialized_read_is_a_fault() {
    let mut at = 0;
    let k = build(|k| {
        let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
        k.role("all").body(|| {
            at = line!() + 1;
            let v = x.load(lane_id());
            y.store(lane_id(), v);
        });
    });
    let e = expect_fault(&k, &[Input::Output(128), Input::Output(128)], &late());
    assert_eq!((e.kind, line(&e)), (FaultKind::NeverWritten, at), "{e}");
}

#[test]
fn an_exhausted_register_pool_is_a_deadlock_with_a_report() {
    // 32/240/240: ptxas accepts these budgets, but the last increase never gets its registers.
    let k = build(|k| {
        k.role("load").warpgroups(1).registers(32).body(|| {});
        k.role("one").warpgroups(1).registers(240).body(|| {});
        k.role("two").warpgroups(1).registers(240).body(|| {});
    });
    for options in timings(2) {
        let e = expect_fault(&k, &[], &options);
        assert_eq!(e.kind, FaultKind::Deadlock, "{e}");
        assert!(e.to_string().contains("240"), "{e}");
    }
}
