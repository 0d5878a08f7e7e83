//! A barrier or a `warp_sync` waits until all lanes that it names have reached it. R15.warp and
//! R15.mask find most mistakes in the program text, for operations of all 32 lanes. This code comes
//! from the search over runs, which tracks the lanes inside each branch and also checks masks that
//! name single lanes. If a named lane is somewhere else, the warp hangs, or the barrier counts a
//! warp whose lanes have not all arrived. The builder always names all lanes, so only a kernel that
//! is edited after the build reaches this code.

use warpline_ir::builder::*;
use warpline_ir::ops::warp::WarpSync;
use warpline_ir::{Kernel, Operand, Stmt, StmtKind};

pub(super) fn broken(kernel: &mut Kernel) {
    for stmt in &mut kernel.roles[0].body.0 {
        let loc = stmt.loc;
        if let StmtKind::If { then, .. } = &mut stmt.kind {
            let mask = Operand::Imm(0x0003_ffff); // lanes 16 and 17 are not in the branch
            let kind = StmtKind::Op(WarpSync { mask }.into());
            then.0.push(Stmt { kind, loc });
        }
    }
}

pub(super) fn repaired(k: Builder) {
    let y = k.pointer::<u32>("y");
    k.role("all").body(|| {
        if_(lane_id().lt(16u32), || {
            y.store(cta_id() * 32 + lane_id(), 1u32)
        });
        warp_sync(); // all lanes reach it
    });
}
