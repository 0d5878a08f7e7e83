//! A shuffle, a vote or a `warp_sync` has a mask of lanes that take part, and all of them must
//! reach it. The builder names all 32 lanes. In a branch that only some lanes take, the other lanes
//! never reach the instruction: the result is undefined, and the warp may hang.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
    k.role("all").body(|| {
        let value = x.load(lane_id());
        if_(lane_id().lt(16u32), || {
            let other = shuffle_xor(value, 1u32); // lanes 16 to 31 do not take part
            y.store(cta_id() * 32 + lane_id(), value + other);
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
    k.role("all").body(|| {
        let value = x.load(lane_id());
        let other = shuffle_xor(value, 1u32); // all lanes take part
        if_(lane_id().lt(16u32), || {
            y.store(cta_id() * 32 + lane_id(), value + other)
        });
    });
}
