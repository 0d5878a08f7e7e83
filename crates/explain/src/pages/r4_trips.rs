//! The producer and the consumer of a ring run separate loops, and each wait of one needs an
//! arrival of the other. If their trip counts differ, the role with more iterations waits for a
//! slot that no role fills or releases. The kernel hangs only for the problem sizes at which the
//! counts differ, for example if K is not a multiple of the k-tile.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (columns, x, y) = (
        k.param::<u32>("columns"),
        k.pointer::<f32>("x"),
        k.pointer::<f32>("y"),
    );
    let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
    k.role("load").body(|| {
        let k_tiles = columns / 32; // rounds down, and the consumer rounds up
        elect(|| {
            steps(k_tiles).each(|i| {
                let slot = ring.acquire();
                slot.load_bytes(slot.tiles(), x.address(i * 32), 128);
                slot.commit();
            });
        });
    });
    k.role("store").body(|| {
        steps(columns.div_ceil(32)).each(|i| {
            let slot = ring.wait();
            y.store(i * 32 + lane_id(), slot.load(0u32, lane_id()));
            slot.release();
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (columns, x, y) = (
        k.param::<u32>("columns"),
        k.pointer::<f32>("x"),
        k.pointer::<f32>("y"),
    );
    let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
    k.role("load").body(|| {
        let k_tiles = columns.div_ceil(32);
        elect(|| {
            steps(k_tiles).each(|i| {
                let slot = ring.acquire();
                slot.load_bytes(slot.tiles(), x.address(i * 32), 128);
                slot.commit();
            });
        });
    });
    k.role("store").body(|| {
        steps(columns.div_ceil(32)).each(|i| {
            let slot = ring.wait();
            y.store(i * 32 + lane_id(), slot.load(0u32, lane_id()));
            slot.release();
        });
    });
}
