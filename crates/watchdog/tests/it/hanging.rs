//! A watched kernel that hangs ends with the executor's deadlock report.

use crate::harness::{SHORT, launch, timings, watched};
use warpline_cpu::{GlobalMemory, run};
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel, Launch};
use warpline_watchdog::hangs;

fn build(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("hang", body)
}

fn launch_without_args(grid: [u32; 3]) -> Launch {
    Launch {
        grid,
        args: Vec::new(),
    }
}

/// Returns the watchdog's report of a kernel without arguments. Every line must be a prefix of the
/// executor's line for the original kernel.
#[track_caller]
fn report(kernel: &Kernel, grid: [u32; 3], exits_cleanly: bool) -> Vec<String> {
    let watched = watched(kernel, &SHORT);
    let mut reports = timings().map(|options| {
        let plain = run(
            kernel,
            &launch_without_args(grid),
            &GlobalMemory::new(),
            &options,
        )
        .unwrap_err();
        assert_eq!(plain.kind, FaultKind::Deadlock);
        let ended = launch(
            &watched,
            launch_without_args(grid),
            &mut GlobalMemory::new(),
            &options,
        );
        match ended.result {
            Ok(()) => assert!(exits_cleanly, "{options:?}: the launch must trap"),
            Err(e) => assert!(
                !exits_cleanly && e.kind == FaultKind::Trap,
                "{options:?}: {e}"
            ),
        }
        assert!(ended.has_timed_out);
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
    for (executor, watchdog) in plain.iter().zip(&first) {
        assert!(executor.starts_with(watchdog), "{executor}\n{watchdog}");
    }
    first
}

#[test]
fn every_kind_of_hang_has_the_executor_report() {
    for hanging in hangs::all().expect("kernels that build") {
        if hanging.name == "mbarrier" || hanging.name == "setmaxnreg" {
            // The executor reports only the first of several CTAs, and the timing determines
            // which warps get the registers.
            continue;
        }
        let lines = report(&hanging.kernel, hanging.grid, hanging.exits_cleanly).join("\n");
        for part in &hanging.report {
            assert!(lines.contains(part), "{part}\n{lines}");
        }
    }
}

#[test]
fn every_report_contains_the_expected_texts() {
    for hanging in hangs::all().expect("kernels that build") {
        let watched = watched(&hanging.kernel, &SHORT);
        for options in timings() {
            let ended = launch(
                &watched,
                launch_without_args(hanging.grid),
                &mut GlobalMemory::new(),
                &options,
            );
            assert_eq!(
                ended.result.is_ok(),
                hanging.exits_cleanly,
                "{}",
                hanging.name
            );
            let text = ended.hang.to_string();
            for part in &hanging.report {
                assert!(text.contains(part), "{}: {part}\n{text}", hanging.name);
            }
        }
    }
}

#[test]
fn a_timeout_in_one_lane_exits_the_warp() {
    let k = build(|k| {
        let (full, done) = (
            k.barrier("full", 2).arrivals(1),
            k.barrier("done", 1).arrivals(1),
        );
        k.role("load").warps(1).body(|| {
            elect(|| {
                range(0u32, 4u32).each(|i| {
                    full.at(i & 1).wait(0u32);
                    full.at(i & 1).arrive();
                });
            });
            // Not reached: the warp exits after the elect.
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
fn a_poll_of_a_flag_that_is_never_set_times_out() {
    let k = build(|k| {
        let tile = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        let never = k.barrier("never", 1).arrivals(1);
        k.role("all").warps(1).body(|| {
            tile.whole().store(0u32, lane_id(), 0u32);
            while_(|| !never.at(0u32).test(0u32), || nanosleep(20));
        });
    });
    let lines = report(&k, [1, 1, 1], true);
    assert!(
        lines[1].ends_with("polls a value that does not change"),
        "{lines:#?}"
    );
}

#[test]
fn copies_in_flight_complete_before_the_cta_exits() {
    let k = build(|k| {
        let x = k.pointer::<u32>("x");
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        let full = k.barrier("full", 1).arrivals(2);
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
        let mut memory = GlobalMemory::new();
        let x = memory.alloc_from(&[1; 128], "x");
        let mut with_x = launch_without_args([1, 1, 1]);
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
