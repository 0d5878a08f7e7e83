//! A spin lock is a word that a thread changes from 0 to 1 with an acquire and back with a release.
//! Two threads that take two locks in opposite orders deadlock when each holds one of them. The
//! same happens to a thread that takes a lock twice. Most runs pass, because both threads must be
//! between their two locks at the same time.

use warpline_ir::builder::*;
use warpline_ir::{MemoryOrder, Scope};

pub(super) fn broken(k: Builder) {
    let (a, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
    for (name, first, second) in [("left", a, b), ("right", b, a)] {
        k.role(name).body(|| {
            elect(|| {
                lock(first);
                lock(second); // each role may hold the lock that the other one needs
                unlock(second);
                unlock(first);
            });
        });
    }
}

pub(super) fn repaired(k: Builder) {
    let (a, b) = (k.pointer::<u32>("a"), k.pointer::<u32>("b"));
    for name in ["left", "right"] {
        k.role(name).body(|| {
            elect(|| {
                lock(a);
                lock(b); // both roles take `a` first
                unlock(b);
                unlock(a);
            });
        });
    }
}

fn lock(word: Global<u32>) {
    let (word, order) = (word.atomic_ref(0u32), MemoryOrder::acquire(Scope::Gpu));
    while_(
        || word.compare_swap(0u32, 1u32, order).ne(0u32),
        || nanosleep(100),
    );
}

fn unlock(word: Global<u32>) {
    let order = MemoryOrder::release(Scope::Gpu);
    word.atomic_ref(0u32).store(0u32, order);
}
