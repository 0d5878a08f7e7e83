//! A launch binds arguments by the names of parameters, and reports name them. Two parameters with
//! one name cannot be told apart. The builder rejects the second one, so the checker finds this
//! only in a kernel that is edited after the build.

use warpline_ir::Kernel;
use warpline_ir::builder::*;

pub(super) fn broken(kernel: &mut Kernel) {
    kernel.params[1].name = "x".to_owned(); // parameter 0 is `x` as well
}

pub(super) fn repaired(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    k.role("all").body(|| {
        let i = cta_id() * 32 + lane_id();
        y.store(i, x.load(i) * 2.0);
    });
}
