//! A CTA has 16 hardware barriers, numbered 0 to 15. Number 0 is the CTA barrier of `bar.sync 0`,
//! which `cta_sync()` uses. A named barrier with that number would mix its arrivals with those of
//! the CTA barrier, and larger numbers do not exist. The builder numbers named barriers from 1 and
//! rejects a sixteenth, so only a kernel that is edited after the build has a wrong number.

use warpline_ir::Kernel;
use warpline_ir::builder::*;

pub(super) fn broken(kernel: &mut Kernel) {
    kernel.named[0].id = 0; // the number of the CTA barrier
}

pub(super) fn repaired(k: Builder) {
    let pair = k.named_barrier("pair");
    k.role("a").body(|| pair.arrive(64));
    k.role("b").body(|| pair.sync(64));
}
