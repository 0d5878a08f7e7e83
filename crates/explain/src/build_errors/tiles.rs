//! Errors in tiles of shared memory and in views of them.

pub(super) mod tile_shape {
    //! A tile has at least one row and one column, and its rows fit the swizzle.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.tile::<f32>("t", 0, 32).declare();
        k.role("work").body(|| {});
    }

    pub(crate) fn repaired(k: Builder) {
        k.tile::<f32>("t", 8, 32).declare();
        k.role("work").body(|| {});
    }
}

pub(super) mod tile_alias {
    //! An alias uses the bytes of another tile and cannot be larger than it.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let sums = k.tile::<f32>("sums", 8, 32).declare();
        k.tile::<f32>("out", 16, 32).alias(sums).declare();
        k.role("work").body(|| {});
    }

    pub(crate) fn repaired(k: Builder) {
        let sums = k.tile::<f32>("sums", 16, 32).declare();
        k.tile::<f32>("out", 16, 32).alias(sums).declare();
        k.role("work").body(|| {});
    }
}

pub(super) mod view_bounds {
    //! A view is a part of its tile.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let t = k.tile::<f32>("t", 16, 32).declare();
        k.role("work").body(|| {
            let _view = t.whole().slice(8..24, 0..32);
        });
    }

    pub(crate) fn repaired(k: Builder) {
        let t = k.tile::<f32>("t", 16, 32).declare();
        k.role("work").body(|| {
            let _view = t.whole().slice(8..16, 0..32);
        });
    }
}

pub(super) mod view_atoms {
    //! A swizzle permutes 16-byte chunks inside atoms of 8 rows. TMA and wgmma address whole
    //! atoms, so a view starts and ends at them.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let t = k.tile::<f32>("t", 16, 32).declare();
        k.role("work").body(|| {
            let _view = t.whole().slice(4..8, 0..32);
        });
    }

    pub(crate) fn repaired(k: Builder) {
        let t = k.tile::<f32>("t", 16, 32).declare();
        k.role("work").body(|| {
            let _view = t.whole().slice(8..16, 0..32);
        });
    }
}

pub(super) mod swizzled_offset {
    //! A `SwizzledOffset` is computed once for one swizzle and is then reused in every panel. A
    //! panel is as wide as the swizzle span.

    use warpline_ir::Swizzle;
    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.role("work").body(|| {
            let _offset = SwizzledOffset::new(Swizzle::None, lane_id(), 0u32);
        });
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("work").body(|| {
            let _offset = SwizzledOffset::new(Swizzle::B128, lane_id(), 0u32);
        });
    }
}

pub(super) mod byte_offset {
    //! A swizzle permutes the bytes of a row, so an element of a swizzled tile has no constant byte
    //! offset.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let t = k.tile::<f32>("t", 32, 32).declare();
        k.role("work").body(|| {
            let [_x] = t.whole().load_at_byte::<f32, 1>(lane_id() * 4);
        });
    }

    pub(crate) fn repaired(k: Builder) {
        let t = k.tile::<f32>("t", 32, 32).unswizzled().declare();
        k.role("work").body(|| {
            t.whole().store(0u32, lane_id(), 1.0);
            let [_x] = t.whole().load_at_byte::<f32, 1>(lane_id() * 4);
        });
    }
}
