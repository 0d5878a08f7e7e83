//! `cp.async.bulk` from shared to global memory only starts when a thread issues it. The copy
//! engine reads shared memory later, and `bulk_wait_read` waits for these reads. If the storing
//! role releases the slot before that, the producer may overwrite bytes that still have to be
//! stored, and the output is wrong in some runs.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (tiles, out) = (k.param::<u32>("tiles"), k.pointer::<f32>("out"));
    let ring = k.ring("ring", 2, |s| s.vector::<f32>(256));
    k.role("compute").warps(1).body(|| {
        steps(tiles).each(|_| {
            let slot = ring.acquire();
            slot.store_vec(0u32, thread_in_role() * 4, [1.0f32, 2.0, 3.0, 4.0]);
            slot.commit();
        });
    });
    k.role("store").body(|| {
        elect(|| {
            steps(tiles).each(|tile| {
                let slot = ring.wait();
                bulk_store(slot.tiles(), out.address(tile * 256), 1024);
                bulk_commit();
                slot.release(); // the copy engine may still read the slot
            });
            bulk_wait(0);
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (tiles, out) = (k.param::<u32>("tiles"), k.pointer::<f32>("out"));
    let ring = k.ring("ring", 2, |s| s.vector::<f32>(256));
    k.role("compute").warps(1).body(|| {
        steps(tiles).each(|_| {
            let slot = ring.acquire();
            slot.store_vec(0u32, thread_in_role() * 4, [1.0f32, 2.0, 3.0, 4.0]);
            slot.commit();
        });
    });
    k.role("store").body(|| {
        elect(|| {
            steps(tiles).each(|tile| {
                let slot = ring.wait();
                bulk_store(slot.tiles(), out.address(tile * 256), 1024);
                bulk_commit();
                bulk_wait_read(0); // the copy engine has read the slot
                slot.release();
            });
            bulk_wait(0);
        });
    });
}
