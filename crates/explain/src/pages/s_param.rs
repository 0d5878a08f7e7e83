//! A launch passes each parameter as the kind that the kernel declares: a number, a pointer or a
//! tensor map. The kernel must read it as that kind, because a tensor map is 128 bytes and a
//! pointer is 8. A handle of the builder has the right kind, unless it belongs to another kernel.

use warpline_ir::builder::*;
use warpline_ir::{DType, Kernel, TensorMapDecl};

pub(super) fn broken(k: Builder) {
    k.pointer::<f32>("x");
    let mut map = None;
    let other = Kernel::build("other", &k.target(), |other| {
        let decl = TensorMapDecl::tiled(DType::F32, [16, 8]);
        map = Some(other.tensor_map("x", decl));
        other.role("all").body(|| {});
    });
    let (Ok(_), Some(map)) = (other, map) else {
        return;
    };
    k.role("all").body(|| {
        elect(|| map.prefetch()); // parameter 0 of this kernel is a pointer
    });
}

pub(super) fn repaired(k: Builder) {
    let map = k.tensor_map("x", TensorMapDecl::tiled(DType::F32, [16, 8]));
    k.role("all").body(|| {
        elect(|| map.prefetch());
    });
}
