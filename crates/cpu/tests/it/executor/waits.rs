//! Waits: deadlock reports, polls, co-residency.

use crate::executor::harness::{expect_fault, expect_pass, timings};
use warpline_cpu::{BlockedOn, Options, Timing};
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel, Target};
use warpline_testkit::kernel::TARGET;
use warpline_testkit::launch::Setup;

fn build(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("waits", body)
}

#[test]
fn a_deadlock_report_lists_the_wait_of_each_warp() {
    let (mut wait, mut sync, mut cta) = (0, 0, 0);
    let k = build(|k| {
        let full = k.barrier("full", 3).arrivals(2);
        let named = k.named_barrier("pair");
        k.role("compute").warps(1).body(|| {
            elect(|| full.at(2).arrive_expect(96));
            wait = line!() + 1;
            full.at(2).wait(0);
        });
        k.role("store").warps(1).body(|| {
            sync = line!() + 1;
            named.sync(64);
        });
        k.role("idle").warps(1).body(|| {
            cta = line!() + 1;
            cta_sync();
        });
    });
    for options in timings() {
        let e = expect_fault(&k, &options, FaultKind::Deadlock);
        assert_eq!(
            e.to_string(),
            format!(
                "deadlock: 3 warps wait; no warp can make progress\n  \
                 compute, warp 0, CTA (0,0,0), waits.rs:{wait}: waits for full[2], parity 0: \
                 1 arrival and 96 bytes are missing\n  \
                 store, warp 1, CTA (0,0,0), waits.rs:{sync}: waits at barrier pair: \
                 32 of 64 threads have arrived\n  \
                 idle, warp 2, CTA (0,0,0), waits.rs:{cta}: waits at the CTA barrier: \
                 32 of 96 threads have arrived"
            )
        );
        assert!(matches!(
            e.waits[0].on,
            BlockedOn::Mbarrier { index: 2, .. }
        ));
    }
}

#[test]
fn the_cta_barrier_does_not_wait_for_exited_threads() {
    let k = build(|k| {
        k.role("gone").warps(1).body(|| {});
        k.role("here").warps(2).body(cta_sync);
    });
    for options in timings() {
        expect_pass(&k, &options);
    }
}

#[test]
fn a_warp_may_exit_early() {
    let k = build(|k| {
        k.role("gone").warps(1).body(|| {
            range(0u32, 4u32).each(|i| if_(i.eq(2u32), exit));
            trap();
        });
        k.role("here").warps(2).body(cta_sync);
    });
    for options in timings() {
        expect_pass(&k, &options);
    }
}

#[test]
fn a_partial_warp_exit_is_a_fault() {
    let k = build(|k| {
        k.role("all")
            .warps(1)
            .body(|| if_(lane_id().lt(3u32), exit));
    });
    for options in timings() {
        expect_fault(&k, &options, FaultKind::Convergence);
    }
}

#[test]
fn a_poll_for_a_copy_ends_in_every_timing() {
    // No warp blocks: `late` completes the copy because all warps only poll.
    let k = build(|k| {
        let (x, t) = (
            k.pointer::<u32>("x"),
            k.tile::<u32>("t", 1, 32).unswizzled().declare(),
        );
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").body(|| {
            elect(|| {
                full.at(0).arrive_expect(128);
                bulk_load(t.whole(), x.address(0), 128, full.at(0));
            });
            while_(|| !full.at(0).test(0), || nanosleep(20));
            let y = t.whole().load(0u32, lane_id());
            x.store(lane_id(), y + 1);
        });
    });
    for options in timings() {
        let setup = Setup::new().input("x", &[41u32; 32]);
        setup
            .run(&k, 1, &options)
            .unwrap_or_else(|e| panic!("{options:?}: {e}"));
        assert_eq!(setup.values::<u32>(0), [42; 32]);
    }
}

#[test]
fn a_poll_of_a_value_that_never_changes_is_a_deadlock() {
    let mut at = 0;
    let k = build(|k| {
        let flags = k.flags("flags");
        k.role("all").body(|| {
            at = line!() + 1;
            flags.wait(0u32, 1u32);
        });
    });
    for timing in Timing::ALL {
        let setup = Setup::new().input("flags", &[0u32]);
        let e = setup.run(&k, 2, &Options::with_timing(timing)).unwrap_err();
        assert_eq!(e.kind, FaultKind::Deadlock);
        assert_eq!(e.waits.len(), 2);
        assert!(
            e.to_string().contains(&format!("waits.rs:{at}: polls")),
            "{e}"
        );
    }
}

/// CTA i waits for flag i + 1, which CTA i + 1 signals; the last CTA does not wait.
fn chained_ctas() -> Kernel {
    build(|k| {
        let flags = k.flags("flags");
        k.role("all").body(|| {
            let (me, last) = (cta_id(), grid_ctas() - 1);
            if_(me.lt(last), || flags.wait(me + 1, 1u32));
            flags.signal(me);
        });
    })
}

#[test]
fn ctas_that_wait_for_each_other_must_be_resident_together() {
    let run = |sms, options: Options| {
        let setup = Setup::new().input("flags", &[0u32; 200]);
        let target = Target { sms, ..TARGET };
        setup.run(&chained_ctas(), 200, &Options { target, ..options })
    };
    for options in timings() {
        run(132, options.clone()).unwrap_or_else(|e| panic!("{options:?}: {e}"));
    }
    // 32 CTAs of one warp fit an SM, so 72 of the 200 CTAs never start.
    let e = run(4, Options::default()).unwrap_err();
    assert_eq!(e.kind, FaultKind::Deadlock);
    assert_eq!(e.waits.len(), 128);
}

#[test]
fn lanes_may_wait_for_different_barriers() {
    let k = build(|k| {
        let bars = k.barrier("bars", 32).arrivals(1);
        k.role("wait").body(|| bars.at(lane_id()).wait(0));
        k.role("arrive").body(|| {
            for i in (0..32u32).rev() {
                elect(|| bars.at(i).arrive());
            }
        });
    });
    for options in timings() {
        expect_pass(&k, &options);
    }
}

#[test]
fn the_step_limit_ends_an_endless_loop() {
    let k = build(|k| {
        k.role("all").body(|| {
            let on = Var::new(true);
            while_(|| on.get(), || on.set(true));
        });
    });
    let options = Options {
        max_steps: Some(10_000),
        ..Options::default()
    };
    let e = expect_fault(&k, &options, FaultKind::Limit);
    assert!(e.text.contains("exceeds 10000 steps"), "{e}");
}

#[test]
fn progress_is_reported_for_every_cta() {
    use std::sync::{Arc, Mutex};
    let k = build(|k| k.role("all").body(|| {}));
    let reports = Arc::new(Mutex::new(Vec::new()));
    let recorder = reports.clone();
    let options = Options {
        threads: 1,
        progress: Some(Arc::new(move |done, all| {
            recorder.lock().unwrap().push((done, all))
        })),
        ..Options::default()
    };
    Setup::new().run(&k, 3, &options).unwrap();
    assert_eq!(*reports.lock().unwrap(), [(1, 3), (2, 3), (3, 3)]);
}
