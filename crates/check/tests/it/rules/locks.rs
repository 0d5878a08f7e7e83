//! Spin locks in global memory.

use crate::rules::kernel;
use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{MemoryOrder, Scope, Target};
use warpline_testkit::verdict::{NONE, codes, violations};

const ACQUIRE: MemoryOrder = MemoryOrder::acquire(Scope::Gpu);
const RELEASE: MemoryOrder = MemoryOrder::release(Scope::Gpu);

/// Takes a lock, at the line that calls it.
macro_rules! take {
    ($lock:expr, $i:expr) => {{
        let word = $lock.atomic_ref($i);
        while_(
            || word.compare_swap(0u32, 1u32, ACQUIRE).ne(0u32),
            || nanosleep(20),
        );
    }};
}

/// Takes a lock with an exchange and a variable.
fn take_by_exchange(lock: Global<u32>, i: u32) {
    let got = Var::new(false);
    while_(
        || !got.get(),
        || {
            let old = lock.atomic_ref(i).atomic(AtomicOp::Exch, 1u32, ACQUIRE);
            got.set(old.eq(0u32));
        },
    );
}

fn free(lock: Global<u32>, i: u32) {
    lock.atomic_ref(i).store(0u32, RELEASE);
}

#[test]
fn two_roles_that_take_two_locks_in_opposite_orders_are_refuted() {
    let mut lines = [0; 2];
    let mut locks = |opposite: bool| {
        let k = kernel(|k| {
            let (a, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
            let out = k.pointer::<u32>("out");
            let work = || out.store(0u32, out.load(0u32) + 1);
            k.role("first").body(|| {
                elect_lane(|| {
                    take!(a, 0u32);
                    lines[0] = line!() + 1;
                    take!(b, 0u32);
                    work();
                    free(b, 0);
                    free(a, 0);
                });
            });
            k.role("second").body(|| {
                elect_lane(|| {
                    let (x, y) = if opposite { (b, a) } else { (a, b) };
                    take!(x, 0u32);
                    lines[1] = line!() + 1;
                    take!(y, 0u32);
                    work();
                    free(x, 0);
                    free(y, 0);
                });
            });
        });
        violations(&k)
    };
    assert_eq!(locks(false), []);
    let found = locks(true);
    assert_eq!(found, [("R18.locks", lines[0], Some(lines[1]))]);
}

#[test]
fn two_branches_that_take_two_locks_in_opposite_orders_are_refuted() {
    let k = |held: bool, opposite: bool| {
        kernel(|k| {
            let lock = k.pointer::<u32>("lock");
            k.role("all").body(|| {
                elect_lane(|| {
                    if_else(
                        cta_id().eq(0u32),
                        || {
                            take_by_exchange(lock, 0);
                            take_by_exchange(lock, 1);
                            free(lock, 1);
                            free(lock, 0);
                        },
                        || {
                            let (x, y) = if opposite { (1, 0) } else { (0, 1) };
                            take_by_exchange(lock, x);
                            if !held {
                                free(lock, x);
                            }
                            take_by_exchange(lock, y);
                            free(lock, y);
                            if held {
                                free(lock, x);
                            }
                        },
                    );
                });
            });
        })
    };
    assert_eq!(codes(&k(true, true)), ["R18.locks"]);
    assert_eq!(codes(&k(true, false)), NONE);
    // The first lock is freed before the second is taken.
    assert_eq!(codes(&k(false, true)), NONE);
}

#[test]
fn a_cycle_of_three_locks_is_refuted_unless_one_lock_guards_all() {
    let k = |around: bool, cyclic: bool| {
        kernel(|k| {
            let (all, lock) = (k.pointer::<u32>("all"), k.pointer::<u32>("lock"));
            for (name, x, y) in [("a", 0, 1), ("b", 1, 2), ("c", 2, 0)] {
                k.role(name).body(|| {
                    elect_lane(|| {
                        if around {
                            take!(all, 0u32);
                        }
                        let (x, y) = if cyclic { (x, y) } else { (x.min(y), x.max(y)) };
                        take!(lock, x);
                        take!(lock, y);
                        free(lock, y);
                        free(lock, x);
                        if around {
                            free(all, 0);
                        }
                    });
                });
            }
        })
    };
    assert_eq!(codes(&k(false, true)), ["R18.locks"]);
    let report = warpline_check::examine(&k(false, true), &Target::SM_90A);
    let text = &report.diagnostics[0].text;
    assert!(text.contains("3 threads each hold one lock"), "{text}");
    assert_eq!(codes(&k(true, true)), NONE);
    assert_eq!(codes(&k(false, false)), NONE);
}

#[test]
fn a_lock_taken_twice_is_refuted() {
    let (mut first, mut again) = (0, 0);
    let mut k = |gives: bool| {
        let k = kernel(|k| {
            let lock = k.pointer::<u32>("lock");
            k.role("all").body(|| {
                elect_lane(|| {
                    first = line!() + 1;
                    take!(lock, 0u32);
                    if gives {
                        free(lock, 0);
                    }
                    again = line!() + 1;
                    take!(lock, 0u32);
                    free(lock, 0);
                });
            });
        });
        violations(&k)
    };
    assert_eq!(k(true), []);
    let found = k(false);
    assert_eq!(found, [("R18.locks", again, Some(first))]);
}
