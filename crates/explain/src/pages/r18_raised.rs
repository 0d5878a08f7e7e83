//! A CTA that waits for a flag in global memory waits forever if no thread sets the flag to the
//! expected value. Flags are zero at launch. Typical cases are a wait for the wrong word or for a
//! value that is too large, and a signal that was removed together with the code around it.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (flags, y) = (k.flags("flags"), k.pointer::<u32>("y"));
    k.role("all").body(|| {
        flags.wait(0u32, 1u32); // no statement sets a flag
        y.store(cta_id() * 32 + lane_id(), 1u32);
    });
}

pub(super) fn repaired(k: Builder) {
    let (flags, y) = (k.flags("flags"), k.pointer::<u32>("y"));
    k.role("all").body(|| {
        if_(cta_id().eq(0u32), || flags.signal(0u32));
        flags.wait(0u32, 1u32);
        y.store(cta_id() * 32 + lane_id(), 1u32);
    });
}
