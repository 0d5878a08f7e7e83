//! A named barrier has no phases and no parity. `bar.arrive` does not wait, so a warp that only
//! arrives can reach the next use of the barrier while the previous use is still open. Its second
//! arrival then counts in the previous use, which completes without the other warps. A warp may use
//! the barrier again only after it has observed the end of the previous use, for example through a
//! second barrier in the opposite direction.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let n = k.param::<u32>("n");
    let full = k.named_barrier("full");
    k.role("produce").body(|| {
        steps(n).each(|_| {
            full.arrive(64); // may arrive twice before the consumer
        });
    });
    k.role("consume").body(|| {
        steps(n).each(|_| {
            full.sync(64);
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let n = k.param::<u32>("n");
    let full = k.named_barrier("full");
    let empty = k.named_barrier("empty");
    k.role("produce").body(|| {
        steps(n).each(|_| {
            full.arrive(64);
            empty.sync(64);
        });
    });
    k.role("consume").body(|| {
        steps(n).each(|_| {
            full.sync(64);
            empty.arrive(64);
        });
    });
}
