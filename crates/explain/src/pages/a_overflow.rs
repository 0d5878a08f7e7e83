//! Integer arithmetic of the GPU wraps around. The checker computes trip counts and positions as
//! mathematical integers. If a sum or product of launch parameters may exceed its type, the proof
//! assumes that it does not. A declared bound on the parameters removes the assumption, and the
//! runtime rejects launches outside of the bound.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (m, n) = (k.param::<u32>("m"), k.param::<u32>("n"));
    let x = k.pointer::<f32>("x");
    let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
    k.role("load").body(|| {
        elect(|| {
            steps(m + n).each(|i| {
                // may wrap around
                let slot = ring.acquire();
                slot.load_bytes(slot.tiles(), x.address(i * 32), 128);
                slot.commit();
            });
        });
    });
    k.role("math").body(|| {
        steps(m + n).each(|_| ring.wait().release());
    });
}

pub(super) fn repaired(k: Builder) {
    let [m, n] = ["m", "n"].map(|name| k.param::<u32>(name).at_most(1 << 20));
    let x = k.pointer::<f32>("x");
    let ring = k.ring("ring", 2, |s| s.vector::<f32>(32));
    k.role("load").body(|| {
        elect(|| {
            steps(m + n).each(|i| {
                let slot = ring.acquire();
                slot.load_bytes(slot.tiles(), x.address(i * 32), 128);
                slot.commit();
            });
        });
    });
    k.role("math").body(|| {
        steps(m + n).each(|_| ring.wait().release());
    });
}
