//! `wgmma.mma_async` exists for M = 64, N a multiple of 8 up to 256, and one K for each element
//! type: 16 for bf16 and f16, 8 for tf32, 32 for fp8. Its accumulator has N / 2 registers in each
//! thread. ptxas rejects any other shape. The builder rejects accumulators of other shapes, so the
//! checker finds this only in a kernel that is edited after the build.

use half::bf16;
use warpline_ir::builder::*;
use warpline_ir::{Kernel, Op, StmtKind};

pub(super) fn broken(kernel: &mut Kernel) {
    for stmt in &mut kernel.roles[0].body.0 {
        if let StmtKind::Op(Op::Wgmma(wgmma)) = &mut stmt.kind {
            wgmma.n = 12; // not a multiple of 8
        }
    }
}

pub(super) fn repaired(k: Builder) {
    let a = k.tile::<bf16>("a", 64, 16).declare().whole();
    let b = k.tile::<bf16>("b", 8, 16).declare().whole();
    // The role that fills `a` and `b` is left out.
    k.role("math").warpgroups(1).body(|| {
        let acc = Acc::new(64, 8);
        acc.mma(&a, &b);
        acc.into_frag();
    });
}
