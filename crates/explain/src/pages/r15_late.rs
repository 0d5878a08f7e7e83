//! Each lane of a warp polls an mbarrier by itself. An mbarrier shows only the parity of its phase,
//! so a wait for phase k passes only until phase k + 1 completes. If one lane passes the wait and
//! arrives for the warp while another lane has not polled yet, phase k + 1 can complete too. The
//! late lane then waits for a parity that has passed, and the kernel hangs in rare runs.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
    let tile = k.tile::<f32>("tile", 1, 32).unswizzled();
    let tile = tile.declare().whole();
    let [full, empty] = ["full", "empty"].map(|name| k.barrier(name, 1).arrivals(1).at(0u32));
    k.role("load").body(|| {
        let parity = Var::new(1u32);
        steps(n).each(|i| {
            empty.wait(parity.get()); // every lane waits, but not for the other lanes
            elect(|| {
                full.arrive_expect(128u32);
                bulk_load(tile, x.address(i * 32), 128u32, full);
            });
            parity.set(parity.get() ^ 1);
        });
    });
    k.role("math").body(|| {
        let parity = Var::new(0u32);
        steps(n).each(|_| {
            full.wait(parity.get());
            tile.load(0u32, lane_id());
            fence_async();
            warp_sync();
            elect(|| empty.arrive());
            parity.set(parity.get() ^ 1);
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
    let tile = k.tile::<f32>("tile", 1, 32).unswizzled();
    let tile = tile.declare().whole();
    let [full, empty] = ["full", "empty"].map(|name| k.barrier(name, 1).arrivals(1).at(0u32));
    k.role("load").body(|| {
        let parity = Var::new(1u32);
        steps(n).each(|i| {
            empty.wait(parity.get());
            warp_sync(); // all lanes have passed the wait
            elect(|| {
                full.arrive_expect(128u32);
                bulk_load(tile, x.address(i * 32), 128u32, full);
            });
            parity.set(parity.get() ^ 1);
        });
    });
    k.role("math").body(|| {
        let parity = Var::new(0u32);
        steps(n).each(|_| {
            full.wait(parity.get());
            tile.load(0u32, lane_id());
            fence_async();
            warp_sync();
            elect(|| empty.arrive());
            parity.set(parity.get() ^ 1);
        });
    });
}
