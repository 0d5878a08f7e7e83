//! CTAs that pass results along a chain, as in a scan with look-back, wait for the flag of their
//! predecessor and then set their own. Some CTA must start the chain. If every CTA waits before it
//! sets its flag, all of them wait forever.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let flags = k.flags("flags");
    k.role("all").body(|| {
        let previous = (cta_id() + grid_ctas() - 1) % grid_ctas();
        flags.wait(previous, 1u32); // CTA 0 waits for the last CTA
        flags.signal(cta_id());
    });
}

pub(super) fn repaired(k: Builder) {
    let flags = k.flags("flags");
    k.role("all").body(|| {
        if_(cta_id().gt(0u32), || flags.wait(cta_id() - 1, 1u32));
        flags.signal(cta_id());
    });
}
