//! A wgmma reads operands in shared memory through a matrix descriptor, which names a swizzle and
//! strides between swizzle atoms of 8 rows. A tile without a swizzle is not laid out in such atoms,
//! and a view that starts inside an atom has no descriptor. The hardware does not check the layout:
//! it multiplies other elements, and the result is wrong in every run.

use half::bf16;
use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let a = k.tile::<bf16>("a", 64, 16).unswizzled(); // wgmma cannot read this layout
    let a = a.declare().whole();
    let b = k.tile::<bf16>("b", 8, 16).declare().whole();
    // The role that fills `a` and `b` is left out.
    k.role("math").warpgroups(1).body(|| {
        let acc = Acc::new(64, 8);
        acc.mma(&a, &b);
        acc.into_frag();
    });
}

pub(super) fn repaired(k: Builder) {
    let a = k.tile::<bf16>("a", 64, 16).declare().whole(); // swizzled
    let b = k.tile::<bf16>("b", 8, 16).declare().whole();
    // The role that fills `a` and `b` is left out.
    k.role("math").warpgroups(1).body(|| {
        let acc = Acc::new(64, 8);
        acc.mma(&a, &b);
        acc.into_frag();
    });
}
