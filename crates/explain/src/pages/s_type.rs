//! Every register and every instruction of a program has a type, as in PTX. ptxas rejects an
//! operand of another type. Integers of one width are interchangeable, for example `u32` and `i32`.
//! Rust checks the types of handles, so the checker finds this only in a kernel that is edited
//! after the build.

use warpline_ir::builder::*;
use warpline_ir::{Kernel, Type};

pub(super) fn broken(kernel: &mut Kernel) {
    for register in &mut kernel.regs {
        if register.ty == Type::U32 {
            register.ty = Type::F32; // the instructions still compute with `u32`
        }
    }
}

pub(super) fn repaired(k: Builder) {
    let y = k.pointer::<u32>("y");
    k.role("all").body(|| {
        let i = cta_id() * 32 + lane_id();
        y.store(i, i);
    });
}
