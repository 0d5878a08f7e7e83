//! Lifetimes: exits of CTAs that others access, `mbarrier.inval`, endless loops.

use crate::executor::harness::{expect_fault, expect_pass, line, other_line, strict, timings};
use warpline_cpu::{Options, Timing};
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel};
use warpline_testkit::launch::Setup;

fn build(body: impl FnOnce(Builder)) -> Kernel {
    warpline_testkit::kernel::build("endings", body)
}

#[test]
fn a_cta_exit_must_be_ordered_after_the_accesses_of_every_lane() {
    // All lanes of rank 1 store to rank 0, which exits after the arrival of one of them.
    let mut at = 0;
    let mut kernel = |sync: bool| {
        let mut k = build(|k| {
            k.cluster(2, 1, 1);
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
            let done = k.barrier("done", 1).arrivals(1);
            k.role("all").body(|| {
                let first = cluster_rank().eq(0u32);
                if_else(
                    first,
                    || done.at(0).wait_cluster(0),
                    || {
                        at = line!() + 1;
                        t.whole().peer(0u32).store(0u32, lane_id(), 7u32);
                        if sync {
                            warp_sync();
                        }
                        elect(|| done.at(0).peer(0u32).arrive_cluster());
                    },
                );
            });
        });
        k.epilogue.0.clear();
        k
    };
    let (right, wrong) = (kernel(true), kernel(false));
    for options in timings() {
        expect_pass(&right, &options);
    }
    for options in strict() {
        let e = expect_fault(&wrong, &options, FaultKind::PeerExited);
        assert_eq!(line(&e), at, "{e}");
    }
}

#[test]
fn a_remote_arrival_that_the_peer_does_not_wait_for_is_a_fault() {
    let kernel = |waits: bool| {
        let mut k = build(|k| {
            k.cluster(2, 1, 1);
            let bar = k.barrier("bar", 1).arrivals(1);
            k.role("all").body(|| {
                elect(|| bar.at(0).peer(cluster_rank() ^ 1u32).arrive_cluster());
                if waits {
                    bar.at(0).wait_cluster(0);
                }
            });
        });
        k.epilogue.0.clear();
        k
    };
    for options in timings() {
        expect_pass(&kernel(true), &options);
    }
    for options in strict() {
        expect_fault(&kernel(false), &options, FaultKind::PeerExited);
    }
}

/// How the invalidating thread synchronizes with the other users of a barrier.
#[derive(Clone, Copy, PartialEq, Debug)]
enum InvalSync {
    /// The thread waits for the phase, and synchronizes with the other waiter.
    Complete,
    /// The thread does not synchronize with the other waiter.
    SkipsOtherWaiter,
    /// The thread does not wait for the phase.
    SkipsPhaseWait,
}

#[test]
fn inval_must_be_ordered_after_all_uses() {
    let mut at = 0;
    let mut kernel = |sync: InvalSync| {
        build(|k| {
            let bar = k.barrier("bar", 1).arrivals(1);
            let met = k.barrier("met", 1).arrivals(1);
            k.role("arrives").body(|| elect(|| bar.at(0).arrive()));
            k.role("waits").body(|| {
                elect(|| {
                    bar.at(0).wait(0);
                    met.at(0).arrive();
                });
            });
            k.role("ends").body(|| {
                elect(|| {
                    if sync != InvalSync::SkipsOtherWaiter {
                        met.at(0).wait(0);
                    }
                    if sync != InvalSync::SkipsPhaseWait {
                        bar.at(0).wait(0);
                    }
                    at = line!() + 1;
                    bar.at(0).inval();
                });
            });
        })
    };
    let right = kernel(InvalSync::Complete);
    for options in timings() {
        expect_pass(&right, &options);
    }
    // Synchronizing with the waiter also orders the phase that it waited for.
    let transitive = kernel(InvalSync::SkipsPhaseWait);
    for options in strict() {
        expect_pass(&transitive, &options);
    }
    let wrong = kernel(InvalSync::SkipsOtherWaiter);
    let mut races = 0;
    for options in strict() {
        let e = Setup::new().run(&wrong, 1, &options).unwrap_err();
        // In some schedules the other thread uses the barrier after its invalidation.
        if e.kind == FaultKind::Race {
            assert_eq!(line(&e), at, "{e}");
            races += 1;
        } else {
            assert_eq!(e.kind, FaultKind::Barrier, "{e}");
        }
    }
    assert!(races > 3);
}

#[test]
fn inval_during_a_copy_is_a_fault() {
    let kernel = |waits: bool| {
        build(|k| {
            let x = k.pointer::<u32>("x");
            let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
            let bar = k.barrier("bar", 1).arrivals(1);
            k.role("all").body(|| {
                elect(|| {
                    bar.at(0).arrive_expect(128);
                    bulk_load(t.whole(), x.address(0), 128, bar.at(0));
                    if waits {
                        bar.at(0).wait(0);
                    }
                    bar.at(0).inval();
                });
            });
        })
    };
    for options in strict() {
        let run = |waits| {
            let s = Setup::new().input("x", &[1u32; 32]);
            s.run(&kernel(waits), 1, &options)
        };
        run(true).unwrap_or_else(|e| panic!("{options:?}: {e}"));
        assert_eq!(run(false).unwrap_err().kind, FaultKind::Race);
    }
}

#[test]
fn a_second_init_must_be_ordered_after_inval() {
    let mut at = [0; 2];
    let mut kernel = |ordered: bool| {
        build(|k| {
            let bar = k.barrier("bar", 1).arrivals(1);
            let ended = k.barrier("ended", 1).arrivals(1);
            k.role("ends").body(|| {
                elect(|| {
                    at[0] = line!() + 1;
                    bar.at(0).inval();
                    ended.at(0).arrive();
                });
            });
            k.role("makes").body(|| {
                elect(|| {
                    match ordered {
                        true => ended.at(0).wait(0),
                        false => while_(|| !ended.at(0).test(1), || nanosleep(1)),
                    }
                    at[1] = line!() + 1;
                    bar.at(0).init(2);
                });
            });
        })
    };
    let (right, wrong) = (kernel(true), kernel(false));
    let mut races = 0;
    for options in strict() {
        expect_pass(&right, &options);
        let e = Setup::new().run(&wrong, 1, &options).unwrap_err();
        if e.kind == FaultKind::Race {
            let lines = [other_line(&e), line(&e)];
            assert!(lines == at || lines == [lines[0], at[0]], "{e}");
            races += 1;
        }
    }
    assert!(races > 3);
}

fn endless(body: impl Fn(Global<u32>)) -> Kernel {
    build(|k| {
        let x = k.pointer::<u32>("x");
        k.role("all").body(|| body(x));
    })
}

#[test]
fn an_endless_loop_is_reported() {
    let kernels = [
        endless(|_| while_(|| lane_id().lt(32u32), || {})),
        endless(|x| {
            let n = Var::new(0u32);
            while_(|| x.load(0u32).eq(0u32), || n.set(n.get() ^ 1u32));
        }),
        // Only lane 0 stays in the loop.
        endless(|x| while_(|| x.load(lane_id()).eq(0u32), || {})),
    ];
    let ended = endless(|x| while_(|| x.load(lane_id()).eq(5u32), || {}));
    let mut words = [1u32; 32];
    words[0] = 0;
    for options in [Timing::Eager, Timing::Late, Timing::Random].map(Options::with_timing) {
        for k in &kernels {
            let e = Setup::new().input("x", &words).run(k, 1, &options);
            let e = e.unwrap_err();
            assert_eq!(e.kind, FaultKind::Deadlock);
            assert!(e.text.contains("endless loop"), "{e}");
        }
        let ran = Setup::new().input("x", &words).run(&ended, 1, &options);
        ran.unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn a_loop_with_step_0_is_reported_at_its_line() {
    let mut at = 0;
    let mut kernel = || {
        build(|k| {
            let (x, by) = (k.pointer::<u32>("x"), k.param::<u32>("by"));
            k.role("all").body(|| {
                let rounds = range(0u32, 4u32).step_by(by);
                at = line!() + 1;
                rounds.each(|i| x.store(i * 32 + lane_id(), i));
            });
        })
    };
    let k = kernel();
    for options in timings() {
        let run = |by| {
            let s = Setup::new().output("x", 512).scalar(by);
            s.run(&k, 1, &options)
        };
        run(1).unwrap_or_else(|e| panic!("{e}"));
        let e = run(0).unwrap_err();
        assert_eq!((e.kind, line(&e)), (FaultKind::Deadlock, at), "{e}");
    }
}

#[test]
fn a_run_stops_at_the_step_limit() {
    let k = endless(|x| while_(|| lane_id().lt(32u32), || x.store(lane_id(), lane_id())));
    for timing in Timing::ALL {
        let options = Options {
            max_steps: Some(1 << 20),
            ..Options::with_timing(timing)
        };
        let e = Setup::new().output("x", 128).run(&k, 1, &options);
        let e = e.unwrap_err();
        assert_eq!(e.kind, FaultKind::Limit);
        assert!(e.text.contains("exceeds 1048576 steps"), "{e}");
    }
}
