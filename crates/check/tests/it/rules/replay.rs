//! Refutations carry a launch in which the CPU executor fails.

use crate::rules::kernel;
use warpline_check::{Diagnostic, Verdict, examine};
use warpline_ir::builder::*;
use warpline_ir::{Kernel, Target};
use warpline_testkit::verdict::proved;

/// A ring of one slot; each role runs as many iterations as it computes from `n` and `m`.
fn ring(
    give: impl Fn(Reg<u32>, Reg<u32>) -> Reg<u32>,
    take: impl Fn(Reg<u32>, Reg<u32>) -> Reg<u32>,
) -> Kernel {
    kernel(|k| {
        let [n, m] = ["n", "m"].map(|name| k.param::<u32>(name));
        let [full, empty] = ["full", "empty"].map(|b| k.barrier(b, 1).arrivals(1));
        k.role("give").warps(1).body(|| {
            elect(|| {
                let parity = Var::new(1u32);
                steps(give(n, m)).each(|_| {
                    empty.at(0u32).wait(parity.get());
                    full.at(0u32).arrive();
                    parity.set(parity.get() ^ 1u32);
                });
            });
        });
        k.role("take").warps(1).body(|| {
            elect(|| {
                let parity = Var::new(0u32);
                steps(take(n, m)).each(|_| {
                    full.at(0u32).wait(parity.get());
                    empty.at(0u32).arrive();
                    parity.set(parity.get() ^ 1u32);
                });
            });
        });
    })
}

/// Returns the refutation of a kernel after a replay of its counterexample.
#[track_caller]
fn refuted(kernel: &Kernel) -> Diagnostic {
    let report = examine(kernel, &Target::SM_90A);
    assert_eq!(report.verdict(), Verdict::Refuted, "{}", report.text());
    let diagnostic = report.diagnostics[0].clone();
    let counterexample = diagnostic
        .counterexample
        .as_deref()
        .expect("a counterexample");
    let error = counterexample.replay(kernel).expect_err("the replay fails");
    assert_eq!(error.to_string(), counterexample.fault);
    diagnostic
}

#[test]
fn a_refutation_has_a_counterexample() {
    let diagnostic = refuted(&ring(|n, _| n, |n, _| n + 1u32));
    assert_eq!(diagnostic.code(), "R4.trips");
    let counterexample = diagnostic.counterexample.expect("a counterexample");
    assert!(!counterexample.synchronization_only);
    let text = examine(&ring(|n, _| n, |n, _| n + 1u32), &Target::SM_90A).text();
    assert!(
        text.contains(&format!("= counterexample: {counterexample}\n")),
        "{text}"
    );
    assert!(text.contains("the CPU executor stops with: "), "{text}");
}

#[test]
fn the_counterexample_satisfies_the_decisions() {
    // Only launches with n > 5 and m < 3 fail.
    let take = |n: Reg<u32>, m: Reg<u32>| select(n.gt(5u32) & m.lt(3u32), n + 1u32, n);
    let diagnostic = refuted(&ring(|n, _| n, take));
    let values = &diagnostic.counterexample.expect("a counterexample").values;
    assert!(values.scalars[0] > Some(5), "{values:?}");
    assert!(values.scalars[1] < Some(3), "{values:?}");
}

#[test]
fn many_iterations_are_replayed_on_the_skeleton() {
    let take = |n: Reg<u32>, _| select(n.gt(30_000u32), n + 1u32, n);
    let diagnostic = refuted(&ring(|n, _| n, take));
    let counterexample = diagnostic.counterexample.expect("a counterexample");
    assert!(counterexample.synchronization_only, "{counterexample}");
    assert!(
        counterexample.values.scalars[0] > Some(30_000),
        "{counterexample}"
    );
}

#[test]
fn a_counterexample_contains_words_of_memory() {
    let pages = |below: i32| {
        kernel(|k| {
            let n = k.param::<u32>("n");
            let pages = k.pointer::<i32>("pages");
            let [full, empty] = ["full", "empty"].map(|b| k.barrier(b, 1).arrivals(1));
            for (name, first, least) in [("give", 1, 0), ("take", 0, below)] {
                k.role(name).warps(1).body(|| {
                    elect(|| {
                        let parity = Var::new(first);
                        steps(n).each(|i| {
                            if_(pages.load(i).ge(least), || {
                                let [waits, arrives] = match first {
                                    1 => [&empty, &full],
                                    _ => [&full, &empty],
                                };
                                waits.at(0u32).wait(parity.get());
                                arrives.at(0u32).arrive();
                                parity.set(parity.get() ^ 1u32);
                            });
                        });
                    });
                });
            }
        })
    };
    proved(&pages(0));
    let counterexample = refuted(&pages(-1))
        .counterexample
        .expect("a counterexample");
    let minus_one = counterexample.values.words.iter().any(|w| w.value == -1);
    assert!(minus_one, "{counterexample}");
}

#[test]
fn a_refutation_that_no_run_confirms_is_undecided() {
    // Both roles count to n, but the checker does not see through the two exclusive ors.
    let report = examine(&ring(|n, _| n, |n, m| (n ^ m) ^ m), &Target::SM_90A);
    assert_eq!(report.verdict(), Verdict::Undecided, "{}", report.text());
    let diagnostic = &report.diagnostics[0];
    assert!(diagnostic.text.starts_with("possible deadlock: "));
    let cause = diagnostic.cause.as_deref().unwrap();
    assert!(cause.contains("no run on the CPU executor"), "{cause}");
    assert!(diagnostic.help.is_some() && diagnostic.counterexample.is_none());
}
