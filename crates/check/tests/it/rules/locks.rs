//! Locks that threads make of words.

use crate::rules::kernel;
use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{MemoryOrder, Scope};
use warpline_testkit::verdict::{NONE, breaches, codes};

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

/// By an exchange, and a variable.
fn exchange(lock: Global<u32>, i: u32) {
    let got = Var::new(false);
    while_(
        || !got.get(),
        || {
            let old = lock.atomic_ref(i).atomic(AtomicOp::Exch, 1u32, ACQUIRE);
            got.set(old.eq(0u32));
        },
    );
}

fn give(lock: Global<u32>, i: u32) {
    lock.atomic_ref(i).store(0u32, RELEASE);
}

#[test]
fn two_roles_take_two_locks_in_one_order() {
    let mut lines = [0; 2];
    let mut locks = |turned: bool| {
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
                    give(b, 0);
                    give(a, 0);
                });
            });
            k.role("second").body(|| {
                elect_lane(|| {
                    let (x, y) = if turned { (b, a) } else { (a, b) };
                    take!(x, 0u32);
                    lines[1] = line!() + 1;
                    take!(y, 0u32);
                    work();
                    give(x, 0);
                    give(y, 0);
                });
            });
        });
        breaches(&k)
    };
    assert_eq!(locks(false), []);
    let found = locks(true);
    assert_eq!(found, [("R18.locks", lines[0], Some(lines[1]))]);
}

#[test]
fn two_branches_of_one_role_take_two_words_in_one_order() {
    let k = |held: bool, turned: bool| {
        kernel(|k| {
            let lock = k.pointer::<u32>("lock");
            k.role("all").body(|| {
                elect_lane(|| {
                    if_else(
                        cta_id().eq(0u32),
                        || {
                            exchange(lock, 0);
                            exchange(lock, 1);
                            give(lock, 1);
                            give(lock, 0);
                        },
                        || {
                            let (x, y) = if turned { (1, 0) } else { (0, 1) };
                            exchange(lock, x);
                            if !held {
                                give(lock, x);
                            }
                            exchange(lock, y);
                            give(lock, y);
                            if held {
                                give(lock, x);
                            }
                        },
                    );
                });
            });
        })
    };
    assert_eq!(codes(&k(true, true)), ["R18.locks"]);
    assert_eq!(codes(&k(true, false)), NONE);
    // Given back before the next is taken.
    assert_eq!(codes(&k(false, true)), NONE);
}

#[test]
fn three_locks_in_a_circle_and_a_lock_around_all() {
    let k = |around: bool, circle: bool| {
        kernel(|k| {
            let (all, lock) = (k.pointer::<u32>("all"), k.pointer::<u32>("lock"));
            for (name, x, y) in [("a", 0, 1), ("b", 1, 2), ("c", 2, 0)] {
                k.role(name).body(|| {
                    elect_lane(|| {
                        if around {
                            take!(all, 0u32);
                        }
                        let (x, y) = if circle { (x, y) } else { (x.min(y), x.max(y)) };
                        take!(lock, x);
                        take!(lock, y);
                        give(lock, y);
                        give(lock, x);
                        if around {
                            give(all, 0);
                        }
                    });
                });
            }
        })
    };
    assert_eq!(codes(&k(false, true)), ["R18.locks"]);
    assert_eq!(codes(&k(true, true)), NONE);
    assert_eq!(codes(&k(false, false)), NONE);
}

#[test]
fn a_thread_that_takes_its_lock_again_waits_for_itself() {
    let (mut first, mut again) = (0, 0);
    let mut k = |gives: bool| {
        let k = kernel(|k| {
            let lock = k.pointer::<u32>("lock");
            k.role("all").body(|| {
                elect_lane(|| {
                    first = line!() + 1;
                    take!(lock, 0u32);
                    if gives {
                        give(lock, 0);
                    }
                    again = line!() + 1;
                    take!(lock, 0u32);
                    give(lock, 0);
                });
            });
        });
        breaches(&k)
    };
    assert_eq!(k(true), []);
    let found = k(false);
    assert_eq!(found, [("R18.locks", again, Some(first))]);
}
