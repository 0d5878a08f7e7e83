//! A counting loop owns its counter and reads its bounds once. The checker derives the number of
//! iterations from them, and ptxas unrolls the loop. A body that writes the counter or a bound
//! makes the number unknown. The builder copies the values of variables, so the checker finds this
//! only in a kernel that is edited after the build.

use warpline_ir::builder::*;
use warpline_ir::ops::arith::Mov;
use warpline_ir::{Kernel, Operand, Stmt, StmtKind, Type};

pub(super) fn broken(kernel: &mut Kernel) {
    for stmt in &mut kernel.roles[0].body.0 {
        let (ty, src, loc) = (Type::U32, Operand::Imm(9), stmt.loc);
        if let StmtKind::For { var, body, .. } = &mut stmt.kind {
            let skip = Mov { ty, dst: *var, src }; // the body sets the counter to 9
            let kind = StmtKind::Op(skip.into());
            body.0.push(Stmt { kind, loc });
        }
    }
}

pub(super) fn repaired(k: Builder) {
    let y = k.pointer::<u32>("y");
    k.role("all").body(|| {
        steps(10u32).each(|i| y.store((cta_id() * 10 + i) * 32 + lane_id(), i));
    });
}
