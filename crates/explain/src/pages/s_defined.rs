//! A register has no value before it is written. If a value is computed only in a branch, in a loop
//! that may run no iteration, or in the elected lane, then the other threads read an undefined
//! value. The result differs from run to run and from compiler to compiler. The builder rejects a
//! register outside of its block, and a `Var` starts with a value, so the checker finds this only
//! in a kernel that is edited after the build.

use warpline_ir::Kernel;
use warpline_ir::builder::*;

pub(super) fn broken(kernel: &mut Kernel) {
    kernel.roles[0].body.0.remove(0); // removes the first value of `scale`
}

pub(super) fn repaired(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    k.role("all").body(|| {
        let scale = Var::new(1.0f32);
        if_(lane_id().lt(16u32), || scale.set(2.0));
        let i = cta_id() * 32 + lane_id();
        y.store(i, x.load(i) * scale.get());
    });
}
