//! A phase of an mbarrier completes when all arrivals are counted and its transaction count is
//! zero: `arrive_expect` adds bytes to the count, and each TMA copy subtracts the bytes that it
//! delivers. If the two differ, the count never returns to zero and the consumer hangs. Typical
//! causes are a border tile whose count leaves out the zero-filled part of the box, a second
//! operand that was forgotten, and a multicast copy whose bytes arrive in every CTA.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    let [a, b] = ["a", "b"].map(|name| k.tile::<f32>(name, 1, 32).unswizzled().declare().whole());
    let full = k.barrier("full", 1).arrivals(1).at(0u32);
    k.role("load").body(|| {
        elect(|| {
            full.arrive_expect(512u32); // the copies deliver 256 bytes
            bulk_load(a, x.address(0u32), 128u32, full);
            bulk_load(b, x.address(32u32), 128u32, full);
        });
    });
    k.role("add").body(|| {
        full.wait(0u32);
        y.store(lane_id(), a.load(0u32, lane_id()) + b.load(0u32, lane_id()));
    });
}

pub(super) fn repaired(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    let [a, b] = ["a", "b"].map(|name| k.tile::<f32>(name, 1, 32).unswizzled().declare().whole());
    let full = k.barrier("full", 1).arrivals(1).at(0u32);
    k.role("load").body(|| {
        elect(|| {
            full.arrive_expect(256u32);
            bulk_load(a, x.address(0u32), 128u32, full);
            bulk_load(b, x.address(32u32), 128u32, full);
        });
    });
    k.role("add").body(|| {
        full.wait(0u32);
        y.store(lane_id(), a.load(0u32, lane_id()) + b.load(0u32, lane_id()));
    });
}
