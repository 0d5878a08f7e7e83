//! Loads of a GPU thread are not ordered unless an acquire orders them. A relaxed load may see that
//! the flag is set, and the following load of the data may still return an old value, for example
//! from L1. The result is wrong in rare runs.

use warpline_ir::builder::*;
use warpline_ir::{MemoryOrder, Scope};

pub(super) fn broken(k: Builder) {
    let (flag, data) = (k.pointer::<u32>("flag"), k.pointer::<u32>("data"));
    let y = k.pointer::<u32>("y");
    k.role("all").body(|| {
        elect(|| {
            let word = flag.atomic_ref(0u32);
            if_(cta_id().eq(0u32), || {
                data.store(0u32, 7u32);
                word.store(1u32, MemoryOrder::release(Scope::Gpu));
            });
            let is_set = word.load(MemoryOrder::relaxed(Scope::Gpu)).eq(1u32); // no acquire
            if_(is_set, || y.store(cta_id(), data.load(0u32)));
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (flag, data) = (k.pointer::<u32>("flag"), k.pointer::<u32>("data"));
    let y = k.pointer::<u32>("y");
    k.role("all").body(|| {
        elect(|| {
            let word = flag.atomic_ref(0u32);
            if_(cta_id().eq(0u32), || {
                data.store(0u32, 7u32);
                word.store(1u32, MemoryOrder::release(Scope::Gpu));
            });
            let is_set = word.load(MemoryOrder::acquire(Scope::Gpu)).eq(1u32);
            if_(is_set, || y.store(cta_id(), data.load(0u32)));
        });
    });
}
