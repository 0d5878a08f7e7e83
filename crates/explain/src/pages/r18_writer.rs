//! If two threads write the same bytes, or one reads bytes that another one writes, and no barrier
//! or flag orders the two accesses, the result depends on timing. The bytes that a CTA accesses
//! depend on the launch, so the checker assumes that the accesses are disjoint (A.writer), and the
//! CPU executor reports the race when it runs a launch. A typical case is an index without the CTA
//! ID.

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
