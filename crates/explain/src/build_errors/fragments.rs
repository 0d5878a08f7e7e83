//! Errors in accumulators, fragments, operands and their stores.

use half::bf16;
use warpline_ir::builder::*;

/// Stores zeros to 64 × 64 tiles and makes them visible to wgmma.
fn store_zeros(tiles: &[TileRef<bf16>]) {
    for tile in tiles {
        Frag::zeros(64, 64).store_matrix(tile);
    }
    fence_async();
    cta_sync();
}

pub(super) mod accumulator_shape {
    //! wgmma has 64 rows per instruction and up to 256 columns in steps of 8.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.role("math").warpgroups(1).body(|| {
            Acc::new(64, 12).into_frag();
        });
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("math").warpgroups(1).body(|| {
            Acc::new(64, 16).into_frag();
        });
    }
}

pub(super) mod accumulator_role {
    //! The four warps of a warpgroup issue a wgmma together, and each thread holds a part of the
    //! accumulator.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.role("math").warps(2).body(|| {
            Acc::new(64, 8).into_frag();
        });
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("math").warpgroups(1).body(|| {
            Acc::new(64, 8).into_frag();
        });
    }
}

pub(super) mod mma_type {
    //! wgmma multiplies bf16, f16, tf32 and fp8 operands.

    use super::store_zeros;
    use half::bf16;
    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let a = k.tile::<u16>("a", 64, 64).declare();
        let b = k.tile::<u16>("b", 64, 64).declare();
        k.role("math").warpgroups(1).body(|| {
            Acc::new(64, 64).mma(&a.whole(), &b.whole());
        });
    }

    pub(crate) fn repaired(k: Builder) {
        let a = k.tile::<bf16>("a", 64, 64).declare();
        let b = k.tile::<bf16>("b", 64, 64).declare();
        k.role("math").warpgroups(1).body(|| {
            let acc = Acc::new(64, 64);
            store_zeros(&[a.whole(), b.whole()]); // stores, proxy fence, CTA barrier
            acc.mma(&a.whole(), &b.whole());
            acc.into_frag();
        });
    }
}

pub(super) mod mma_shape {
    //! An accumulator of m × n takes operands of m × k and n × k.

    use super::store_zeros;
    use half::bf16;
    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let a = k.tile::<bf16>("a", 64, 64).declare();
        let b = k.tile::<bf16>("b", 32, 64).declare();
        k.role("math").warpgroups(1).body(|| {
            Acc::new(64, 64).mma(&a.whole(), &b.whole());
        });
    }

    pub(crate) fn repaired(k: Builder) {
        let a = k.tile::<bf16>("a", 64, 64).declare();
        let b = k.tile::<bf16>("b", 64, 64).declare();
        k.role("math").warpgroups(1).body(|| {
            let acc = Acc::new(64, 64);
            store_zeros(&[a.whole(), b.whole()]); // stores, proxy fence, CTA barrier
            acc.mma(&a.whole(), &b.whole());
            acc.into_frag();
        });
    }
}

pub(super) mod operand_shape {
    //! A register operand of wgmma has a multiple of 64 rows and a multiple of the instruction's K.

    use warpline_ir::E4m3;
    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.role("math").warpgroups(1).body(|| {
            let _a = Frag::zeros(64, 16).operand::<E4m3>();
        });
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("math").warpgroups(1).body(|| {
            let _a = Frag::zeros(64, 32).operand::<E4m3>();
        });
    }
}

pub(super) mod operand_bytes {
    //! `RegBytes` holds operands that a role decodes from bytes, such as NVFP4 or fp8.

    use half::f16;
    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let t = k.tile::<f16>("t", 64, 64).declare();
        k.role("math").warpgroups(1).body(|| {
            let _a = RegBytes::load(&t.whole());
        });
    }

    pub(crate) fn repaired(k: Builder) {
        let t = k.tile::<u8>("t", 64, 128).declare();
        k.role("math").warpgroups(1).body(|| {
            for row in 0..64u32 {
                t.whole().store(row, thread_in_role(), 0u8);
            }
            cta_sync();
            let _a = RegBytes::load(&t.whole());
        });
    }
}

pub(super) mod fragment_shape {
    //! A warpgroup fragment has the register layout of a wgmma accumulator.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.role("math").warpgroups(1).body(|| {
            let _x = Frag::zeros(64, 3);
        });
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("math").warpgroups(1).body(|| {
            let _x = Frag::zeros(64, 8);
        });
    }
}

pub(super) mod fragment_slice {
    //! A thread holds two neighboring columns of every eight, so a slice cuts at a multiple of 8.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.role("math").warpgroups(1).body(|| {
            let _left = Frag::zeros(64, 32).slice(0..12);
        });
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("math").warpgroups(1).body(|| {
            let _left = Frag::zeros(64, 32).slice(0..16);
        });
    }
}

pub(super) mod fragment_columns {
    //! A thread holds one pair of columns for every eight columns of the fragment.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.role("math").warpgroups(1).body(|| {
            let bias = map_col_pairs(16, |_| [0.0f32.reg(); 2]);
            let _x = Frag::zeros(64, 32).zip_col_pairs(&bias, |x, b| x + b);
        });
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("math").warpgroups(1).body(|| {
            let bias = map_col_pairs(32, |_| [0.0f32.reg(); 2]);
            let _x = Frag::zeros(64, 32).zip_col_pairs(&bias, |x, b| x + b);
        });
    }
}

pub(super) mod fragment_rows {
    //! A row vector holds one value for each row of a fragment, in the threads that hold the row.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.role("math").warpgroups(1).body(|| {
            let scale = RowVector::splat(128, 1.0);
            let _x = Frag::zeros(64, 16).rescale(&scale);
        });
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("math").warpgroups(1).body(|| {
            let scale = RowVector::splat(64, 1.0);
            let _x = Frag::zeros(64, 16).rescale(&scale);
        });
    }
}

pub(super) mod fragment_store {
    //! A store writes all values of a fragment, so the view has the shape of the fragment.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let t = k.tile::<f32>("t", 64, 32).declare();
        k.role("math").warpgroups(1).body(|| {
            Frag::zeros(64, 16).store(&t.whole());
        });
    }

    pub(crate) fn repaired(k: Builder) {
        let t = k.tile::<f32>("t", 64, 32).declare();
        k.role("math").warpgroups(1).body(|| {
            Frag::zeros(64, 32).store(&t.whole());
        });
    }
}

pub(super) mod warp_tile_shape {
    //! A warp fragment consists of accumulators of `mma.sync.m16n8k16`, two side by side: 16 × 16.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.role("math").body(|| {
            let _x = Frag::warp_zeros(16, 24);
        });
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("math").body(|| {
            let _x = Frag::warp_zeros(16, 32);
        });
    }
}

pub(super) mod warp_mma_shape {
    //! `mma_sync` multiplies in one warp. A warpgroup fragment has another register layout.

    use half::bf16;
    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let t = k.tile::<bf16>("t", 64, 64).declare();
        k.role("math").warpgroups(1).body(|| {
            let _x = Frag::zeros(64, 16).mma_sync(&t.whole(), 0u32, &t.whole(), 0u32);
        });
    }

    pub(crate) fn repaired(k: Builder) {
        let t = k.tile::<bf16>("t", 64, 64).declare();
        k.role("math").warpgroups(1).body(|| {
            Frag::zeros(64, 64).store_matrix(&t.whole());
            cta_sync();
            let _x = Frag::warp_zeros(16, 16).mma_sync(&t.whole(), 0u32, &t.whole(), 0u32);
        });
    }
}

pub(super) mod outbox_shape {
    //! An outbox stages the output tile of one role. The boxes of the tensor map divide it.

    use warpline_ir::builder::*;
    use warpline_ir::{DType, Swizzle, TensorMapDecl, TensorMapMode};

    pub(crate) fn broken(k: Builder) {
        let out = k.tensor_map("out", output_box());
        let outbox = k.outbox::<f32>("out", 1, 64, 32);
        k.role("math").warpgroups(1).body(|| {
            outbox.store(&Frag::zeros(64, 40), out, [0, 0]);
        });
    }

    pub(crate) fn repaired(k: Builder) {
        let out = k.tensor_map("out", output_box());
        let outbox = k.outbox::<f32>("out", 1, 64, 32);
        k.role("math").warpgroups(1).body(|| {
            outbox.store(&Frag::zeros(64, 32), out, [0, 0]);
        });
    }

    fn output_box() -> TensorMapDecl {
        TensorMapDecl {
            dtype: DType::F32,
            tile: vec![32, 64],
            swizzle: Swizzle::B128,
            mode: TensorMapMode::Tiled,
        }
    }
}

pub(super) mod outbox_role {
    //! One role owns an outbox: it writes the tile, issues the bulk store and waits for it.

    use warpline_ir::builder::*;
    use warpline_ir::{DType, Swizzle, TensorMapDecl, TensorMapMode};

    pub(crate) fn broken(k: Builder) {
        let out = k.tensor_map("out", output_box());
        let outbox = k.outbox::<f32>("out", 1, 64, 32);
        for (i, role) in ["consumer0", "consumer1"].into_iter().enumerate() {
            k.role(role).warpgroups(1).body(|| {
                outbox.store(&Frag::zeros(64, 32), out, [0, 64 * i as u32]);
            });
        }
    }

    pub(crate) fn repaired(k: Builder) {
        let out = k.tensor_map("out", output_box());
        for (i, role) in ["consumer0", "consumer1"].into_iter().enumerate() {
            let outbox = k.outbox::<f32>(role, 1, 64, 32);
            k.role(role).warpgroups(1).body(|| {
                outbox.store(&Frag::zeros(64, 32), out, [0, 64 * i as u32]);
            });
        }
    }

    fn output_box() -> TensorMapDecl {
        TensorMapDecl {
            dtype: DType::F32,
            tile: vec![32, 64],
            swizzle: Swizzle::B128,
            mode: TensorMapMode::Tiled,
        }
    }
}

pub(super) mod partial_shape {
    //! `partial_tiles` reserves workspace for partial sums of one tile shape (split-K, stream-K).

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let partials = k.partial_tiles("partials", 64, 16);
        k.role("math").warpgroups(1).body(|| {
            partials.store(cta_id(), &Frag::zeros(64, 8));
        });
    }

    pub(crate) fn repaired(k: Builder) {
        let partials = k.partial_tiles("partials", 64, 16);
        k.role("math").warpgroups(1).body(|| {
            partials.store(cta_id(), &Frag::zeros(64, 16));
        });
    }
}
