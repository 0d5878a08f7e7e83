//! A ring has a fixed number of slots: its producer waits for a free slot, its consumer for a full
//! one. Two rings can deadlock although each of them is used correctly: the producer waits for a
//! slot of ring `a`, while the consumer waits for data in ring `b`, which the producer fills later.
//! A run with few tiles passes, because then all of them fit into the slots.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
    let [a, b] = ["a", "b"].map(|name| k.ring(name, 2, |s| s.vector::<f32>(32)));
    k.role("load").body(|| {
        elect(|| {
            for ring in [a, b] {
                steps(n).each(|i| {
                    let slot = ring.acquire();
                    slot.load_bytes(slot.tiles(), x.address(i * 32), 128);
                    slot.commit();
                });
            }
        });
    });
    k.role("math").body(|| {
        steps(n).each(|_| b.wait().release()); // `load` fills `a` first, and `a` has two slots
        steps(n).each(|_| a.wait().release());
    });
}

pub(super) fn repaired(k: Builder) {
    let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
    let [a, b] = ["a", "b"].map(|name| k.ring(name, 2, |s| s.vector::<f32>(32)));
    k.role("load").body(|| {
        elect(|| {
            for ring in [a, b] {
                steps(n).each(|i| {
                    let slot = ring.acquire();
                    slot.load_bytes(slot.tiles(), x.address(i * 32), 128);
                    slot.commit();
                });
            }
        });
    });
    k.role("math").body(|| {
        steps(n).each(|_| a.wait().release()); // the order in which `load` fills the rings
        steps(n).each(|_| b.wait().release());
    });
}
