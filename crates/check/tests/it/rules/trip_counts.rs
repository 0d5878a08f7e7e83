//! Trip counts that two roles write in different ways. Equal counts are proved; similar counts that
//! differ are refuted.

use crate::rules::kernel;
use warpline_ir::Kernel;
use warpline_ir::builder::*;
use warpline_testkit::verdict::{codes, proved, violations};

const STAGES: u32 = 3;

/// The position of a role in a ring.
#[derive(Clone, Copy)]
struct Cursor {
    stage: Var<u32>,
    parity: Var<u32>,
}

impl Cursor {
    fn new(parity: u32) -> Self {
        Self {
            stage: Var::new(0u32),
            parity: Var::new(parity),
        }
    }

    fn next(self) {
        let next = self.stage.get() + 1u32;
        let wrap = next.eq(STAGES);
        self.stage.set(select(wrap, 0u32, next));
        self.parity
            .set(select(wrap, self.parity.get() ^ 1u32, self.parity.get()));
    }
}

/// One step of a role with a ring.
type Step<'a> = dyn Fn() + 'a;
/// A role, which runs a step as often as it computes from a parameter.
type Role = dyn for<'a> Fn(Reg<u32>, &Step<'a>);

/// One role fills the slots of a ring and another releases them, each as often as it computes from
/// `n`.
fn ring(give: &Role, take: &Role) -> Kernel {
    kernel(|k| {
        let n = k.param::<u32>("n");
        let [full, empty] = ["full", "empty"].map(|b| k.barrier(b, STAGES).arrivals(1));
        k.role("give").warps(1).body(|| {
            elect(|| {
                let at = Cursor::new(1);
                give(n, &|| {
                    empty.at(at.stage.get()).wait(at.parity.get());
                    full.at(at.stage.get()).arrive();
                    at.next();
                });
            });
        });
        k.role("take").warps(1).body(|| {
            elect(|| {
                let at = Cursor::new(0);
                take(n, &|| {
                    full.at(at.stage.get()).wait(at.parity.get());
                    empty.at(at.stage.get()).arrive();
                    at.next();
                });
            });
        });
    })
}

#[track_caller]
fn assert_equal_counts(give: &Role, take: &Role) {
    proved(&ring(give, take));
}

#[track_caller]
fn assert_different_counts(give: &Role, take: &Role) {
    assert!(!violations(&ring(give, take)).is_empty());
}

fn each(count: Reg<u32>, step: &Step<'_>) {
    steps(count).each(|_| step());
}

#[test]
fn div_ceil_equals_its_other_spellings() {
    assert_equal_counts(&|n, s| each(n.div_ceil(64), s), &|n, s| {
        each((n + 63u32) / 64u32, s)
    });
    assert_equal_counts(&|n, s| each(n.div_ceil(64), s), &|n, s| {
        each((n + 63u32) >> 6u32, s)
    });
    assert_equal_counts(&|n, s| each(n.div_ceil(48), s), &|n, s| {
        each((n + 47u32) / 48u32, s)
    });
    assert_different_counts(&|n, s| each(n.div_ceil(64), s), &|n, s| {
        each((n + 64u32) / 64u32, s)
    });
}

#[test]
fn shifts_equal_products_and_quotients() {
    assert_equal_counts(&|n, s| each(n * 2u32, s), &|n, s| each(n + n, s));
    assert_equal_counts(&|n, s| each(n / 64u32, s), &|n, s| each(n >> 6u32, s));
    assert_equal_counts(&|n, s| each(n * 4u32, s), &|n, s| each(n << 2u32, s));
    assert_equal_counts(&|n, s| each(n & !63u32, s), &|n, s| {
        each(n / 64u32 * 64u32, s)
    });
    assert_equal_counts(&|n, s| each(n % 64u32, s), &|n, s| {
        each(n - n / 64u32 * 64u32, s)
    });
    assert_different_counts(&|n, s| each(n * 4u32, s), &|n, s| each(n << 3u32, s));
    assert_different_counts(&|n, s| each(n / 64u32, s), &|n, s| each(n >> 5u32, s));
}

#[test]
fn a_prefix_and_the_rest_equal_the_whole_count() {
    assert_equal_counts(
        &|n, s| {
            let first = n.min(STAGES);
            each(first, s);
            each(n - first, s);
        },
        &|n, s| each(n, s),
    );
    assert_equal_counts(
        &|n, s| {
            each(n.min(STAGES), s);
            range(n.min(STAGES), n).each(|_| s());
        },
        &|n, s| each(n, s),
    );
    assert_different_counts(
        &|n, s| {
            each(n.min(STAGES), s);
            range(STAGES + 1, n).each(|_| s());
        },
        &|n, s| each(n, s),
    );
}

#[test]
fn two_halves_equal_the_whole_count() {
    let halves: &Role = &|n, s| {
        each(n / 2u32, s);
        each(n - n / 2u32, s);
    };
    assert_equal_counts(halves, &|n, s| each(n, s));
    assert_different_counts(
        &|n, s| {
            each(n / 2u32, s);
            each(n / 2u32, s);
        },
        &|n, s| each(n, s),
    );
}

#[test]
fn the_last_iteration_is_known_from_the_count() {
    let kernel = |at: u32| {
        kernel(|k| {
            let n = k.param::<u32>("n");
            let last = k.barrier("last", 1).arrivals(1);
            let [full, empty] = ["full", "empty"].map(|b| k.barrier(b, STAGES).arrivals(1));
            k.role("give").warps(1).body(|| {
                elect(|| {
                    let cursor = Cursor::new(1);
                    steps(n).each(|i| {
                        empty.at(cursor.stage.get()).wait(cursor.parity.get());
                        full.at(cursor.stage.get()).arrive();
                        cursor.next();
                        if_((i + 1u32).eq(n), || last.at(0u32).arrive());
                    });
                });
            });
            k.role("take").warps(1).body(|| {
                elect(|| {
                    let cursor = Cursor::new(0);
                    steps(n).each(|i| {
                        full.at(cursor.stage.get()).wait(cursor.parity.get());
                        empty.at(cursor.stage.get()).arrive();
                        cursor.next();
                        if_((i + at).eq(n), || last.at(0u32).wait(0u32));
                    });
                });
            });
        })
    };
    proved(&kernel(1));
    assert!(!violations(&kernel(5)).is_empty());
}

#[test]
fn a_loop_that_counts_down_has_the_same_count() {
    let down: &Role = &|n, s| {
        let left = Var::new(n);
        while_(
            || left.get().gt(0u32),
            || {
                s();
                left.set(left.get() - 1u32);
            },
        );
    };
    assert_equal_counts(down, &|n, s| each(n, s));
    assert_equal_counts(down, down);
    assert_different_counts(down, &|n, s| each(n + 1u32, s));
}

#[test]
fn a_role_may_run_only_the_second_of_two_loops() {
    let kernel = |second: &dyn Fn(Reg<u32>) -> Reg<u32>| {
        kernel(|k| {
            let n = k.param::<u32>("n");
            let ring = |name: &str| {
                [format!("{name}.full"), format!("{name}.empty")]
                    .map(|b| k.barrier(&b, STAGES).arrivals(1))
            };
            let (one, two) = (ring("one"), ring("two"));
            let give = |[full, empty]: [MbarrierArray; 2], n: Reg<u32>| {
                let at = Cursor::new(1);
                steps(n).each(|_| {
                    empty.at(at.stage.get()).wait(at.parity.get());
                    full.at(at.stage.get()).arrive();
                    at.next();
                });
            };
            let take = |[full, empty]: [MbarrierArray; 2], n: Reg<u32>| {
                let at = Cursor::new(0);
                steps(n).each(|_| {
                    full.at(at.stage.get()).wait(at.parity.get());
                    empty.at(at.stage.get()).arrive();
                    at.next();
                });
            };
            k.role("give").warps(1).body(|| {
                elect(|| {
                    give(one, n);
                    give(two, n);
                });
            });
            k.role("first").warps(1).body(|| elect(|| take(one, n)));
            k.role("second")
                .warps(1)
                .body(|| elect(|| take(two, second(n))));
        })
    };
    proved(&kernel(&|n| n));
    assert!(!violations(&kernel(&|n| n + 1u32)).is_empty());
}

#[test]
fn stage_and_parity_may_come_from_a_running_counter() {
    let kernel = |by: u32| {
        kernel(|k| {
            let [tiles, depth] = ["tiles", "depth"].map(|p| k.param::<u32>(p));
            let [full, empty] = ["full", "empty"].map(|b| k.barrier(b, STAGES).arrivals(1));
            let at = |tile: Reg<u32>, i: Reg<u32>| {
                let it = tile * depth + i;
                (it % STAGES, (it / STAGES) & 1u32)
            };
            k.role("give").warps(1).body(|| {
                elect(|| {
                    steps(tiles).each(|tile| {
                        steps(depth).each(|i| {
                            let (stage, parity) = at(tile, i);
                            empty.at(stage).wait(parity ^ 1u32);
                            full.at(stage).arrive();
                        });
                    });
                });
            });
            k.role("take").warps(1).body(|| {
                elect(|| {
                    steps(tiles).each(|tile| {
                        steps(depth).each(|i| {
                            let (stage, parity) = at(tile, i * by);
                            full.at(stage).wait(parity);
                            empty.at(stage).arrive();
                        });
                    });
                });
            });
        })
    };
    proved(&kernel(1));
    assert!(!violations(&kernel(2)).is_empty());
}

#[test]
fn a_persistent_tile_loop_matches_across_roles_with_different_barriers() {
    proved(&kernel(|k| {
        let [tiles, depth] = ["tiles", "depth"].map(|p| k.param::<u32>(p));
        let [full, empty] = ["full", "empty"].map(|b| k.barrier(b, STAGES).arrivals(1));
        let done = k.barrier("done", 1).arrivals(1);
        k.role("give").warps(1).body(|| {
            elect(|| {
                let at = Cursor::new(1);
                range(cta_id(), tiles).step_by(grid_ctas()).each(|_| {
                    steps(depth).each(|_| {
                        empty.at(at.stage.get()).wait(at.parity.get());
                        full.at(at.stage.get()).arrive();
                        at.next();
                    });
                });
            });
        });
        k.role("take").warps(1).body(|| {
            elect(|| {
                let at = Cursor::new(0);
                range(cta_id(), tiles).step_by(grid_ctas()).each(|_| {
                    steps(depth).each(|_| {
                        full.at(at.stage.get()).wait(at.parity.get());
                        empty.at(at.stage.get()).arrive();
                        at.next();
                    });
                    done.at(0u32).arrive();
                });
            });
        });
    }));
}

#[test]
fn a_count_from_read_only_memory_is_equal_in_all_roles() {
    let kernel = |offset: u32| {
        kernel(|k| {
            let tiles = k.param::<u32>("tiles");
            let counts = k.pointer::<u32>("counts");
            let [full, empty] = ["full", "empty"].map(|b| k.barrier(b, STAGES).arrivals(1));
            k.role("give").warps(1).body(|| {
                elect(|| {
                    let at = Cursor::new(1);
                    steps(tiles).each(|t| {
                        steps(counts.load(t)).each(|_| {
                            empty.at(at.stage.get()).wait(at.parity.get());
                            full.at(at.stage.get()).arrive();
                            at.next();
                        });
                    });
                });
            });
            k.role("take").warps(1).body(|| {
                elect(|| {
                    let at = Cursor::new(0);
                    steps(tiles).each(|t| {
                        steps(counts.load(t + offset)).each(|_| {
                            full.at(at.stage.get()).wait(at.parity.get());
                            empty.at(at.stage.get()).arrive();
                            at.next();
                        });
                    });
                });
            });
        })
    };
    proved(&kernel(0));
    assert!(!violations(&kernel(1)).is_empty());
}

#[test]
fn the_last_k_tiles_may_have_their_own_loop() {
    let report = |last: u32| {
        let kernel = kernel(|k| {
            let [tiles, depth] = ["tiles", "depth"].map(|p| k.param::<u32>(p));
            let [full, empty] = ["full", "empty"].map(|b| k.barrier(b, STAGES).arrivals(1));
            let early = 2u32;
            k.role("give").warps(1).body(|| {
                elect(|| {
                    let at = Cursor::new(1);
                    let step = || {
                        empty.at(at.stage.get()).wait(at.parity.get());
                        full.at(at.stage.get()).arrive();
                        at.next();
                    };
                    if_(cta_id().lt(tiles), || {
                        for i in 0..early {
                            if_(depth.gt(i), step);
                        }
                    });
                    let from = Var::new(early);
                    range(cta_id(), tiles).step_by(grid_ctas()).each(|_| {
                        range(from.get(), depth).each(|_| step());
                        from.set(0u32);
                    });
                });
            });
            k.role("take").warps(1).body(|| {
                elect(|| {
                    let at = Cursor::new(0);
                    let step = || {
                        full.at(at.stage.get()).wait(at.parity.get());
                        empty.at(at.stage.get()).arrive();
                        at.next();
                    };
                    range(cta_id(), tiles).step_by(grid_ctas()).each(|_| {
                        if_else(
                            depth.lt(3u32),
                            || steps(depth).each(|_| step()),
                            || {
                                steps(depth - last).each(|_| step());
                                steps(3u32).each(|_| step());
                            },
                        );
                    });
                });
            });
        });
        warpline_check::examine(&kernel, &warpline_ir::Target::SM_90A)
    };
    let right = report(3);
    assert!(right.diagnostics.is_empty(), "{:?}", right.diagnostics);
    assert!(right.states < 100, "{} states", right.states);
    assert!(!report(4).diagnostics.is_empty());
}

/// A role fetches items with two counts from a table in global memory; see [`queue_of`].
fn queue(count: impl Fn([Reg<u32>; 2]) -> Reg<u32>) -> Kernel {
    queue_of(|table, item| table.load_vec::<2>(item * 2), || count)
}

/// A role fetches items with two counts, and fills as many slots as the first count says; another role,
/// which receives both counts through the queue, takes as many as it computes from them.
fn queue_of<F: Fn([Reg<u32>; 2]) -> Reg<u32>>(
    counts: impl Fn(Global<u32>, Reg<u32>) -> [Reg<u32>; 2],
    taker: impl FnOnce() -> F,
) -> Kernel {
    kernel(|k| {
        let items = k.param::<u32>("items").at_least(1);
        let table = k.pointer::<u32>("table");
        let queue = k.work_queue_with_payload::<2>("queue", 2);
        let ring = k.ring("ring", STAGES, |s| s.vector::<u32>(4)).broadcast();
        k.role("give").warps(1).body(|| {
            elect(|| {
                let counts = |item| counts(table, item);
                queue.fetch_each_with_payload(items, counts, |item, [first, _]| {
                    steps(first).each(|_| {
                        let slot = ring.acquire();
                        slot.store(0u32, 0u32, item);
                        slot.commit();
                    });
                });
            });
        });
        k.role("take").warps(1).body(|| {
            let count = taker();
            queue.each_with_payload(items, |_, counts| {
                steps(count(counts)).each(|_| ring.wait().release());
            });
        });
    })
}

#[test]
fn all_roles_see_the_payload_of_an_item() {
    proved(&queue(|[first, _]| first));
    assert_eq!(codes(&queue(|[_, second]| second)), ["R4.trips"]);
}

/// Two counts that are opaque copies of one word.
fn opaque_counts(table: Global<u32>, item: Reg<u32>) -> [Reg<u32>; 2] {
    let word = table.load(item).min(9).max(item);
    [word.opaque(), word.opaque()]
}

#[test]
fn an_opaque_copy_is_one_value_for_all_roles() {
    proved(&queue_of(opaque_counts, || |[first, _]: [_; 2]| first));
}

#[test]
fn opaque_copies_are_unrelated() {
    let second = || |[_, second]: [_; 2]| second;
    assert_eq!(codes(&queue_of(opaque_counts, second)), ["R4.trips"]);
    let that_of_the_item_before = || {
        let last = Var::new(0u32);
        move |[first, _]: [Reg<u32>; 2]| {
            let count = last.get();
            last.set(first);
            count
        }
    };
    let kernel = queue_of(opaque_counts, that_of_the_item_before);
    assert!(!codes(&kernel).is_empty());
}
