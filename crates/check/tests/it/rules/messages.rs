//! Reports that point at the cause of a bug.

use crate::rules::kernel;
use warpline_check::{Diagnostic, examine};
use warpline_ir::builder::*;
use warpline_ir::{Kernel, Target};
use warpline_testkit::verdict::proved;

/// Returns the only diagnostic of a kernel.
#[track_caller]
fn diagnostic(kernel: &Kernel) -> Diagnostic {
    let report = examine(kernel, &Target::SM_90A);
    assert_eq!(report.diagnostics.len(), 1, "{}", report.text());
    let diagnostic = report.diagnostics[0].clone();
    assert!(!diagnostic.undecided && diagnostic.counterexample.is_some());
    diagnostic
}

fn line(diagnostic: &Diagnostic) -> u32 {
    diagnostic.at.map_or(0, |at| at.line)
}

/// Two roles use a named barrier; a third role does not.
fn named(threads: u32, arriving: u32, waiting: u32) -> Kernel {
    kernel(|k| {
        let bar = k.named_barrier("pair");
        k.role("first").warps(arriving).body(|| bar.arrive(threads));
        k.role("second").warps(waiting).body(|| bar.sync(threads));
        k.role("third").warps(1).body(|| ());
    })
}

#[test]
fn a_named_barrier_report_states_the_thread_counts() {
    proved(&named(128, 2, 2));
    let few = diagnostic(&named(128, 2, 1));
    assert_eq!(few.code(), "R10.count");
    let text = "thread count mismatch: role `second` waits forever at named barrier `pair`";
    assert_eq!(few.text, text);
    let cause = "only 96 of 128 threads arrive";
    assert_eq!(few.cause.as_deref(), Some(cause));
    let many = diagnostic(&named(96, 2, 2));
    assert_eq!(many.code(), "R10.count");
    let text = "thread count mismatch: role `second` arrives at named barrier `pair`, which 96 other \
                threads have already completed";
    assert_eq!(many.text, text);
    assert!(many.help.is_some());
}

/// One role fills two rings one after the other; another role reads them in the same or the
/// opposite order.
fn two_rings(opposite: bool) -> (Kernel, [u32; 2]) {
    let mut lines = [0; 2];
    let kernel = kernel(|k| {
        let n = k.param::<u32>("n");
        let x = k.pointer::<f32>("x");
        let [a, b] = ["a", "b"].map(|name| k.ring(name, 2, |s| s.vector::<f32>(32)));
        k.role("load").body(|| {
            elect(|| {
                for ring in [&a, &b] {
                    steps(n).each(|i| {
                        lines[0] = line!() + 1;
                        let slot = ring.acquire();
                        slot.load_bytes(slot.tiles(), x.address(i * 32), 128);
                        slot.commit();
                    });
                }
            });
        });
        k.role("math").body(|| {
            for ring in if opposite { [&b, &a] } else { [&a, &b] } {
                lines[1] = line!() + 1;
                steps(n).each(|_| ring.wait().release());
            }
        });
    });
    (kernel, lines)
}

#[test]
fn rings_in_opposite_order_are_reported_as_a_cycle_with_both_lines() {
    proved(&two_rings(false).0);
    let (kernel, lines) = two_rings(true);
    let found = diagnostic(&kernel);
    assert_eq!((found.code(), line(&found)), ("R17.cycle", lines[0]));
    let other = found.labels.iter().filter_map(|side| side.at);
    assert!({ other }.any(|at| at.line == lines[1]), "{found:?}");
}

/// A ring of two slots, in which `math` releases each slot `times` times.
fn slots(times: u32) -> (Kernel, u32) {
    let mut last = 0;
    let kernel = kernel(|k| {
        let n = k.param::<u32>("n");
        let x = k.pointer::<f32>("x");
        let tile = k
            .tile::<f32>("tile", 1, 32)
            .unswizzled()
            .stages(2)
            .declare();
        let [full, empty] = ["full", "empty"].map(|b| k.barrier(b, 2).arrivals(1));
        k.role("load").body(|| {
            elect(|| {
                steps(n).each(|i| {
                    let (s, lap) = (i % 2u32, (i / 2u32) % 2u32);
                    empty.at(s).wait(lap ^ 1u32);
                    full.at(s).arrive_expect(128u32);
                    bulk_load(tile.stage(s), x.address(i * 32), 128u32, full.at(s));
                });
            });
        });
        k.role("math").body(|| {
            elect(|| {
                steps(n).each(|i| {
                    let (s, lap) = (i % 2u32, (i / 2u32) % 2u32);
                    full.at(s).wait(lap);
                    empty.at(s).arrive();
                    if times > 1 {
                        last = line!() + 1;
                        empty.at(s).arrive();
                    }
                });
            });
        });
    });
    (kernel, last)
}

#[test]
fn a_double_release_is_reported_at_the_second_release() {
    proved(&slots(1).0);
    let (kernel, last) = slots(2);
    let found = diagnostic(&kernel);
    assert_eq!((found.code(), line(&found)), ("R3.parity", last));
    assert!(found.help.is_some());
}

/// Two roles release a slot; the first one releases it `times` times.
fn two_readers(times: u32) -> (Kernel, u32) {
    let mut last = 0;
    let kernel = kernel(|k| {
        let n = k.param::<u32>("n");
        let full = k.barrier("full", 1).arrivals(1);
        let empty = k.barrier("empty", 1).arrivals(2);
        k.role("load").body(|| {
            elect(|| {
                let parity = Var::new(1u32);
                steps(n).each(|_| {
                    empty.at(0u32).wait(parity.get());
                    full.at(0u32).arrive();
                    parity.set(parity.get() ^ 1u32);
                });
            });
        });
        for (name, times) in [("one", times), ("two", 1)] {
            k.role(name).body(|| {
                elect(|| {
                    let parity = Var::new(0u32);
                    steps(n).each(|_| {
                        full.at(0u32).wait(parity.get());
                        empty.at(0u32).arrive();
                        if times > 1 {
                            last = line!() + 1;
                            empty.at(0u32).arrive();
                        }
                        parity.set(parity.get() ^ 1u32);
                    });
                });
            });
        }
    });
    (kernel, last)
}

#[test]
fn a_double_release_with_two_readers_is_reported_at_the_second_release() {
    proved(&two_readers(1).0);
    let (kernel, last) = two_readers(2);
    let found = diagnostic(&kernel);
    assert_eq!((found.code(), line(&found)), ("R1.arrivals", last));
}

/// A ring of two slots that one role fills and another reads, each a constant number of times.
fn constant_trips(loads: u32, reads: u32) -> Kernel {
    kernel(|k| {
        let x = k.pointer::<f32>("x");
        let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
        k.role("load").body(|| {
            elect(|| {
                range(0u32, loads).each(|i| {
                    let slot = ring.acquire();
                    slot.load_bytes(slot.tiles(), x.address(i * 32), 128);
                    slot.commit();
                });
            });
        });
        k.role("math")
            .body(|| range(0u32, reads).each(|_| ring.wait().release()));
    })
}

#[test]
fn constant_trip_counts_that_differ_are_reported_as_trip_counts() {
    proved(&constant_trips(5, 5));
    for (loads, reads) in [(4, 5), (5, 6), (1, 9)] {
        let report = diagnostic(&constant_trips(loads, reads));
        assert_eq!(
            report.code(),
            "R4.trips",
            "{loads} {reads}: {}",
            report.text
        );
        let left = "role `load` (warp 0) does not reach this statement again";
        assert!(report.labels.iter().any(|label| label.text == left));
    }
}
