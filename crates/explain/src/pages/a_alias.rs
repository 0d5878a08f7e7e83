//! Several roles read a trip count in global memory. They agree only if no write of the kernel
//! changes it between the reads. The kernel does not write this parameter, but a launch could pass
//! overlapping buffers, so the proof assumes that the buffers do not overlap. A count that is a
//! launch parameter needs no assumption.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (counts, x) = (k.pointer::<u32>("counts"), k.pointer::<f32>("x"));
    let y = k.pointer::<f32>("y");
    let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
    k.role("load").body(|| {
        elect(|| {
            steps(counts.load(cta_id())).each(|i| {
                let slot = ring.acquire();
                slot.load_bytes(slot.tiles(), x.address(i * 32), 128);
                slot.commit();
            });
        });
    });
    k.role("math").body(|| {
        steps(counts.load(cta_id())).each(|_| {
            // `y` must not overlap `counts`
            let slot = ring.wait();
            elect(|| y.store(cta_id(), slot.load(0u32, 0u32)));
            slot.release();
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (count, x) = (k.param::<u32>("count"), k.pointer::<f32>("x"));
    let y = k.pointer::<f32>("y");
    let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
    k.role("load").body(|| {
        elect(|| {
            steps(count).each(|i| {
                let slot = ring.acquire();
                slot.load_bytes(slot.tiles(), x.address(i * 32), 128);
                slot.commit();
            });
        });
    });
    k.role("math").body(|| {
        steps(count).each(|_| {
            let slot = ring.wait();
            elect(|| y.store(cta_id(), slot.load(0u32, 0u32)));
            slot.release();
        });
    });
}
