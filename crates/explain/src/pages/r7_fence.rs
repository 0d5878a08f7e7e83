//! `wgmma` accesses registers asynchronously, so the program order of a warp does not order it
//! after earlier instructions that wrote the same registers. `wgmma.fence` does. It must precede
//! the first wgmma of a warpgroup, and it must follow each other access to the accumulator or to a
//! register operand. Without it, wgmma may read old register values, and the result is wrong.
//! `Acc::mma` emits the fence; only a kernel that is edited after the build lacks it.

use half::bf16;
use warpline_ir::builder::*;
use warpline_ir::{Kernel, Op, StmtKind};

pub(super) fn broken(kernel: &mut Kernel) {
    let body = &mut kernel.roles[0].body.0;
    // Removes the fence before the wgmma.
    body.retain(|stmt| !matches!(stmt.kind, StmtKind::Op(Op::WgmmaFence(_))));
}

pub(super) fn repaired(k: Builder) {
    let (x, y) = (k.pointer::<bf16>("x"), k.pointer::<f32>("y"));
    let a = k.tile::<bf16>("a", 64, 16).declare().whole();
    let b = k.tile::<bf16>("b", 8, 16).declare().whole();
    let full = k.barrier("full", 1).arrivals(1).at(0u32);
    k.role("multiply").warpgroups(1).body(|| {
        elect(|| {
            full.arrive_expect(2304u32);
            bulk_load(a, x.address(0u32), 2048u32, full);
            bulk_load(b, x.address(1024u32), 256u32, full);
        });
        full.wait(0u32);
        let acc = Acc::new(64, 8);
        acc.mma(&a, &b);
        acc.into_frag()
            .each_pair(|at, pair| y.store_vec(at.row * 8 + at.col, pair));
    });
}
