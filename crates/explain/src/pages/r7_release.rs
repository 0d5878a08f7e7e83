//! `wgmma` is asynchronous: the instruction returns at once, and the tensor cores read the operands
//! from shared memory later. Only `wgmma.wait_group` in the issuing warpgroup shows that the reads
//! are complete. If a consumer releases the slot before that, the producer overwrites operands that
//! are still read, and the accumulator is wrong in some runs. `release_after` releases a slot at
//! the wait of an accumulator, so that one group can stay in flight.

use half::bf16;
use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (k_tiles, x) = (k.param::<u32>("k_tiles"), k.pointer::<bf16>("x"));
    let ring = k.ring("ring", 2, |s| {
        (s.tile::<bf16>(64, 16), s.tile::<bf16>(8, 16))
    });
    k.role("multiply").warpgroups(1).body(|| {
        let acc = Acc::new(64, 8);
        steps(k_tiles).each(|_| {
            let slot = ring.wait();
            let (a, b) = slot.tiles();
            acc.mma(&a, &b);
            slot.release(); // the wgmma may still read the slot
        });
        acc.into_frag();
    });
    k.role("load").body(|| {
        elect(|| {
            steps(k_tiles).each(|i| {
                let slot = ring.acquire();
                let (a, b) = slot.tiles();
                slot.load_bytes(a, x.address(i * 1152), 2048);
                slot.load_bytes(b, x.address(i * 1152 + 1024), 256);
                slot.commit();
            });
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (k_tiles, x) = (k.param::<u32>("k_tiles"), k.pointer::<bf16>("x"));
    let ring = k.ring("ring", 2, |s| {
        (s.tile::<bf16>(64, 16), s.tile::<bf16>(8, 16))
    });
    k.role("multiply").warpgroups(1).body(|| {
        let acc = Acc::new(64, 8);
        steps(k_tiles).each(|_| {
            let slot = ring.wait();
            let (a, b) = slot.tiles();
            acc.mma(&a, &b);
            acc.wait();
            slot.release();
        });
        acc.into_frag();
    });
    k.role("load").body(|| {
        elect(|| {
            steps(k_tiles).each(|i| {
                let slot = ring.acquire();
                let (a, b) = slot.tiles();
                slot.load_bytes(a, x.address(i * 1152), 2048);
                slot.load_bytes(b, x.address(i * 1152 + 1024), 256);
                slot.commit();
            });
        });
    });
}
