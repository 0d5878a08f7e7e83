//! The accumulators of a wgmma are registers: M × N / 128 in each thread of a warpgroup. While the
//! wgmma runs, ptxas cannot spill them. A thread has at most 255 registers and needs some of them
//! for addresses, so a larger accumulator makes ptxas serialize the wgmmas or fail.

use half::bf16;
use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let a = k.tile::<bf16>("a", 128, 16).declare().whole();
    let b = k.tile::<bf16>("b", 256, 16).declare().whole();
    // The role that fills `a` and `b` is left out.
    k.role("math").warpgroups(1).body(|| {
        let acc = Acc::new(128, 256); // 256 registers in each thread
        acc.mma(&a, &b);
        acc.into_frag();
    });
}

pub(super) fn repaired(k: Builder) {
    let a = k.tile::<bf16>("a", 64, 16).declare().whole();
    let b = k.tile::<bf16>("b", 256, 16).declare().whole();
    // The role that fills `a` and `b` is left out.
    k.role("math").warpgroups(1).body(|| {
        let acc = Acc::new(64, 256); // 128 registers in each thread
        acc.mma(&a, &b);
        acc.into_frag();
    });
}
