//! Errors in parameters, clusters, loops and tensor maps.

pub(super) mod cluster_size {
    //! A cluster is a box of CTAs. A box with 0 CTAs along one axis launches no CTA.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.cluster(2, 0, 1);
        k.role("work").body(|| {});
    }

    pub(crate) fn repaired(k: Builder) {
        k.cluster(2, 1, 1);
        k.role("work").body(|| {});
    }
}

pub(super) mod parameter_name {
    //! The name of a parameter becomes the name of a PTX parameter, and `bind` finds it by name.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.param::<u32>("n");
        k.param::<u32>("n");
        k.role("work").body(|| {});
    }

    pub(crate) fn repaired(k: Builder) {
        k.param::<u32>("n");
        k.param::<u32>("m");
        k.role("work").body(|| {});
    }
}

pub(super) mod parameter_type {
    //! A predicate lives in a predicate register. PTX has no parameter of that type.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.param::<bool>("enabled");
        k.role("work").body(|| {});
    }

    pub(crate) fn repaired(k: Builder) {
        let enabled = k.param::<u32>("enabled");
        k.role("work").body(|| {
            let _enabled = enabled.ne(0);
        });
    }
}

pub(super) mod tensor_map {
    //! The driver encodes a tensor map only if its box follows the rules of TMA.

    use warpline_ir::builder::*;
    use warpline_ir::{DType, Swizzle, TensorMapDecl, TensorMapMode};

    pub(crate) fn broken(k: Builder) {
        k.tensor_map(
            "x",
            TensorMapDecl {
                dtype: DType::F32,
                tile: vec![64, 8], // 256 bytes: wider than the swizzle span
                swizzle: Swizzle::B128,
                mode: TensorMapMode::Tiled,
            },
        );
        k.role("work").body(|| {});
    }

    pub(crate) fn repaired(k: Builder) {
        k.tensor_map(
            "x",
            TensorMapDecl {
                dtype: DType::F32,
                tile: vec![32, 8],
                swizzle: Swizzle::B128,
                mode: TensorMapMode::Tiled,
            },
        );
        k.role("work").body(|| {});
    }
}

pub(super) mod not_a_parameter {
    //! Bounds are promises about a launch, and the runtime checks them when it binds arguments.
    //! The checker derives the bounds of computed values itself.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let n = k.param::<u32>("n");
        let _tiles = (n / 128).at_most(1024);
        k.role("work").body(|| {});
    }

    pub(crate) fn repaired(k: Builder) {
        let n = k.param::<u32>("n").at_most(1024 * 128);
        let _tiles = n / 128;
        k.role("work").body(|| {});
    }
}

pub(super) mod parameter_bounds {
    //! If no value meets all bounds of a parameter, no launch is legal.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.param::<u32>("n").at_least(1).at_most(7).multiple_of(8);
        k.role("work").body(|| {});
    }

    pub(crate) fn repaired(k: Builder) {
        k.param::<u32>("n").at_least(1).at_most(8).multiple_of(8);
        k.role("work").body(|| {});
    }
}

pub(super) mod pdl_safe {
    //! `pdl_safe()` promises that no earlier kernel in the stream writes a tensor. The promise
    //! belongs to a launch parameter.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let weights = k.pointer::<f32>("weights");
        let _bias = weights.offset(1024).pdl_safe();
        k.role("work").body(|| {});
    }

    pub(crate) fn repaired(k: Builder) {
        let weights = k.pointer::<f32>("weights").pdl_safe();
        let _bias = weights.offset(1024);
        k.role("work").body(|| {});
    }
}

pub(super) mod named_barriers {
    //! A CTA has 16 named barriers. The builder keeps number 0 for `__syncthreads`.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        for i in 0..16 {
            k.named_barrier(&format!("pair{i}"));
        }
        k.role("work").body(|| {});
    }

    pub(crate) fn repaired(k: Builder) {
        for i in 0..15 {
            k.named_barrier(&format!("pair{i}"));
        }
        k.role("work").body(|| {});
    }
}

pub(super) mod raster_group {
    //! Grouped rasterization walks the columns of `n` rows of output tiles before the next rows,
    //! like Triton's `GROUP_SIZE_M`.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let (m_tiles, n_tiles) = (k.param::<u32>("m_tiles"), k.param::<u32>("n_tiles"));
        k.role("work").body(|| {
            let _tiles = Rasterization::Grouped(0).tiles(m_tiles, n_tiles);
        });
    }

    pub(crate) fn repaired(k: Builder) {
        let (m_tiles, n_tiles) = (k.param::<u32>("m_tiles"), k.param::<u32>("n_tiles"));
        k.role("work").body(|| {
            let _tiles = Rasterization::Grouped(8).tiles(m_tiles, n_tiles);
        });
    }
}

pub(super) mod loop_step {
    //! A loop with step 0 never ends.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let n = k.param::<u32>("n");
        k.role("work")
            .body(|| range(0u32, n).step_by(0u32).each(|_| {}));
    }

    pub(crate) fn repaired(k: Builder) {
        let n = k.param::<u32>("n").at_most(1 << 20);
        k.role("work")
            .body(|| range(0u32, n).step_by(2u32).each(|_| {}));
    }
}

pub(super) mod loop_type {
    //! Loop counters use 32-bit registers. A 64-bit counter costs two registers and slower
    //! compares.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.role("work").body(|| range(0u64, 16u64).each(|_| {}));
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("work").body(|| range(0u32, 16u32).each(|_| {}));
    }
}
