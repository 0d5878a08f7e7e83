//! A kernel that hangs ends, and its report is that of the executor.

use crate::harness::{SHORT, launch, timings, watched};
use warpline_cpu::{Memory, run};
use warpline_ir::build::*;
use warpline_ir::{FaultKind, Kernel, Launch};
use warpline_watchdog::hangs;

fn build(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("hang", body)
}

fn alone(grid: [u32; 3]) -> Launch {
    Launch {
        grid,
        args: Vec::new(),
    }
}

/// The report of a kernel without arguments; every line is the start of the
/// executor's line for the kernel as it was written.
#[track_caller]
fn report(kernel: &Kernel, grid: [u32; 3], leaves: bool) -> Vec<String> {
    let watched = watched(kernel, &SHORT);
    let mut reports = timings().map(|options| {
        let plain = run(kernel, &alone(grid), &Memory::new(), &options).unwrap_err();
        assert_eq!(plain.kind, FaultKind::Deadlock);
        let ended = launch(&watched, alone(grid), &mut Memory::new(), &options);
        match ended.result {
            Ok(()) => assert!(leaves, "{options:?}: it should trap"),
            Err(e) => assert!(!leaves && e.kind == FaultKind::Trap, "{options:?}: {e}"),
        }
        assert!(ended.gave_up);
        let (plain, hang) = (plain.to_string(), ended.hang.to_string());
        (plain, hang)
    });
    let (plain, first) = reports.next().expect("a timing");
    for (_, other) in reports {
        assert_eq!(first, other);
    }
    let lines = |s: &str| s.lines().map(str::to_owned).collect::<Vec<_>>();
    let (plain, first) = (lines(&plain), lines(&first));
    assert_eq!(plain.len(), first.len(), "{plain:#?} {first:#?}");
    // Of loops that poll the executor says that nothing changes, not that nothing can go on.
    let polls = plain[0].starts_with("nothing changes any more");
    for (executor, watchdog) in plain.iter().zip(&first).skip(polls.into()) {
        assert!(executor.starts_with(watchdog), "{executor}\n{watchdog}");
    }
    first
}

#[test]
fn every_kind_is_reported_as_the_executor_does() {
    for wrong in hangs::all().expect("kernels that build") {
        if wrong.name == "mbarrier" || wrong.name == "setmaxnreg" {
            // The executor stops at the first of several CTAs; which warps
            // get the registers is a matter of timing.
            continue;
        }
        let lines = report(&wrong.kernel, wrong.grid, wrong.leaves).join("\n");
        for part in &wrong.report {
            assert!(lines.contains(part), "{part}\n{lines}");
        }
    }
}

#[test]
fn the_report_has_the_parts_that_are_promised() {
    for wrong in hangs::all().expect("kernels that build") {
        let watched = watched(&wrong.kernel, &SHORT);
        for options in timings() {
            let ended = launch(&watched, alone(wrong.grid), &mut Memory::new(), &options);
            assert_eq!(ended.result.is_ok(), wrong.leaves, "{}", wrong.name);
            let text = ended.hang.to_string();
            for part in &wrong.report {
                assert!(text.contains(part), "{}: {part}\n{text}", wrong.name);
            }
        }
    }
}

#[test]
fn one_lane_that_waits_takes_its_warp_along() {
    let k = build(|k| {
        let (full, done) = (k.barrier("full", 2).count(1), k.barrier("done", 1).count(1));
        k.role("load").warps(1).body(|| {
            elect(|| {
                range(0u32, 4u32).each(|i| {
                    full.at(i & 1).wait(0u32);
                    full.at(i & 1).arrive();
                });
            });
            // Not reached: the warp leaves behind the elect.
            elect(|| done.at(0u32).arrive());
        });
        k.role("use").warps(2).body(|| done.at(0u32).wait(0u32));
    });
    let lines = report(&k, [1, 1, 1], true);
    assert!(lines[1].starts_with("  load, warp 0"), "{lines:#?}");
    assert!(lines[1].ends_with("waits for full[0], parity 0"));
    assert!(lines[3].ends_with("waits for done[0], parity 0"));
}

#[test]
fn a_flag_that_nobody_raises_is_polled() {
    let k = build(|k| {
        let tile = k.tile::<u32>("t", 1, 32).plain().declare();
        let never = k.barrier("never", 1).count(1);
        k.role("all").warps(1).body(|| {
            tile.whole().store(0u32, lane_id(), 0u32);
            while_(|| !never.at(0u32).test(0u32), || nanosleep(20));
        });
    });
    let lines = report(&k, [1, 1, 1], true);
    assert!(
        lines[1].ends_with("polls, and nothing changes"),
        "{lines:#?}"
    );
}

#[test]
fn copies_in_flight_land_before_the_cta_leaves() {
    let k = build(|k| {
        let x = k.pointer::<u32>("x");
        let t = k.tile::<u32>("t", 1, 32).plain().declare();
        let full = k.barrier("full", 1).count(2);
        k.role("all").warps(1).body(|| {
            elect(|| {
                full.at(0u32).arrive_expect(128u32);
                bulk_load(t.whole(), x.address(0u32), 128u32, full.at(0u32));
            });
            full.at(0u32).wait(0u32);
        });
    });
    let watched = watched(&k, &SHORT);
    for options in timings() {
        let mut memory = Memory::new();
        let x = memory.alloc_from(&[1; 128], "x");
        let mut with_x = alone([1, 1, 1]);
        with_x.args.push(warpline_ir::Arg::Pointer(x));
        let ended = launch(&watched, with_x, &mut memory, &options);
        ended.result.unwrap_or_else(|e| panic!("{options:?}: {e}"));
        assert!(
            ended
                .hang
                .to_string()
                .contains("waits for full[0], parity 0")
        );
    }
}
