//! The checker recognizes a spin lock by its loop around a compare-and-swap. The proof assumes that
//! the lock is free at launch, that every thread that takes it frees it, and that the guarded data
//! is accessed only under the lock. A lock word that is not zero at launch hangs the kernel. A
//! single atomic needs no lock and no assumption.

use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{MemoryOrder, Scope};

pub(super) fn broken(k: Builder) {
    let (lock, sum) = (k.pointer::<u32>("lock"), k.pointer::<u32>("sum"));
    k.role("all").body(|| {
        elect(|| {
            let (word, order) = (lock.atomic_ref(0u32), MemoryOrder::acquire(Scope::Gpu));
            while_(
                || word.compare_swap(0u32, 1u32, order).ne(0u32), // free at launch?
                || nanosleep(100),
            );
            sum.store(0u32, sum.load(0u32) + 1);
            word.store(0u32, MemoryOrder::release(Scope::Gpu));
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let sum = k.pointer::<u32>("sum");
    k.role("all").body(|| {
        elect(|| {
            let order = MemoryOrder::relaxed(Scope::Gpu);
            sum.atomic_ref(0u32).reduce(AtomicOp::Add, 1u32, order);
        });
    });
}
