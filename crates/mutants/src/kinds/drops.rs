//! Dropped ops.

use crate::edit::Edit;
use crate::sites::KernelSites;
use warpline_ir::{FenceKind, Op};

/// Defines one function for each set of ops to drop.
macro_rules! drops {
    ($($name:ident: $op:pat $(if $cond:expr)?,)*) => {$(
        pub(super) fn $name(sites: &KernelSites<'_>) -> Vec<Edit> {
            sites.drop_ops(|op| matches!(op, $op $(if $cond)?))
        }
    )*};
}

drops! {
    init_fence: Op::Fence(f) if f.kind == FenceKind::MbarrierInit,
    wgmma_fence: Op::WgmmaFence(_),
    wait: Op::MbarrierWait(_),
    thread_barrier: Op::CtaSync(_) | Op::NamedSync(_) | Op::NamedReduce(_),
    warp_sync: Op::WarpSync(_),
    group_wait: Op::BulkWait(_) | Op::CopyWait(_),
    wgmma_wait: Op::WgmmaWait(_),
    commit: Op::BulkCommit(_) | Op::CopyCommit(_) | Op::WgmmaCommit(_),
    arrive: Op::MbarrierArrive(_) | Op::CopyArrive(_) | Op::NamedArrive(_),
}
