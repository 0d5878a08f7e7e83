//! A wgmma is an instruction of a warpgroup: four consecutive warps that start at a warp ID
//! divisible by 4. All four warps must issue it together. If the warps of a role belong to two
//! warpgroups of the hardware, or some warps skip the instruction, the result is undefined, and the
//! kernel often hangs.

use half::bf16;
use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let a = k.tile::<bf16>("a", 64, 16).declare().whole();
    let b = k.tile::<bf16>("b", 8, 16).declare().whole();
    // The role that fills `a` and `b` is left out.
    k.role("idle").warps(1).body(|| {});
    k.role("math").warpgroups(1).body(|| {
        let acc = Acc::new(64, 8); // warps 1 to 4 are in two warpgroups
        acc.mma(&a, &b);
        acc.into_frag();
    });
}

pub(super) fn repaired(k: Builder) {
    let a = k.tile::<bf16>("a", 64, 16).declare().whole();
    let b = k.tile::<bf16>("b", 8, 16).declare().whole();
    // The role that fills `a` and `b` is left out.
    k.role("math").warpgroups(1).body(|| {
        let acc = Acc::new(64, 8); // warps 0 to 3 are one warpgroup
        acc.mma(&a, &b);
        acc.into_frag();
    });
    k.role("idle").warps(1).body(|| {});
}
