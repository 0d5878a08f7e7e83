//! The proof covers synchronization and shared memory for all launches. The bytes of global memory
//! that a thread writes depend on the launch, so the proof assumes that threads write disjoint
//! bytes or order their accesses, and that buffers do not overlap. Every kernel that writes global
//! memory has this assumption. The checker proves both kernels below, but the first one breaks the
//! assumption; the CPU executor reports its race as R18.writer.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let y = k.pointer::<u32>("y");
    k.role("all").body(|| {
        y.store(lane_id(), cta_id()); // every CTA writes the same 32 words
    });
}

pub(super) fn repaired(k: Builder) {
    let y = k.pointer::<u32>("y");
    k.role("all").body(|| {
        y.store(cta_id() * 32 + lane_id(), cta_id());
    });
}
