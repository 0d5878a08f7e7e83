//! A program names its registers, tiles, barriers, parameters and roles by number. The builder
//! hands out these numbers, and its handles are valid only in the kernel that declared them. A
//! handle of another kernel names a declaration that does not exist here, or another one with the
//! same number.

use warpline_ir::Kernel;
use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let y = k.pointer::<f32>("y");
    let mut tile = None;
    let other = Kernel::build("other", &k.target(), |other| {
        tile = Some(other.tile::<f32>("tile", 1, 32).unswizzled().declare());
        other.role("all").body(|| {});
    });
    let (Ok(_), Some(tile)) = (other, tile) else {
        return;
    };
    k.role("all").body(|| {
        tile.whole().store(0u32, lane_id(), 1.0); // a tile of the kernel `other`
        let i = cta_id() * 32 + lane_id();
        y.store(i, tile.whole().load(0u32, lane_id()));
    });
}

pub(super) fn repaired(k: Builder) {
    let y = k.pointer::<f32>("y");
    let tile = k.tile::<f32>("tile", 1, 32).unswizzled().declare();
    k.role("all").body(|| {
        tile.whole().store(0u32, lane_id(), 1.0);
        let i = cta_id() * 32 + lane_id();
        y.store(i, tile.whole().load(0u32, lane_id()));
    });
}
