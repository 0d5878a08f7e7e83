//! Fences.

use crate::build::state::emit;
use crate::ops::memory::Fence as FenceOp;
use crate::sync::{Fence, Scope};

#[track_caller]
fn run(fence: Fence) {
    emit(FenceOp { fence });
}

/// Orders this thread's generic accesses to shared memory before later async ones.
#[track_caller]
pub fn fence_async() {
    run(Fence::ProxyAsyncShared);
}

/// As [`fence_async`], for the shared memory of the whole cluster.
#[track_caller]
pub fn fence_async_cluster() {
    run(Fence::ProxyAsyncCluster);
}

/// As [`fence_async`], for global memory.
#[track_caller]
pub fn fence_async_global() {
    run(Fence::ProxyAsyncGlobal);
}

/// As [`fence_async`], for all memory.
#[track_caller]
pub fn fence_async_all() {
    run(Fence::ProxyAsync);
}

/// Orders accesses to one place of memory by different addresses.
#[track_caller]
pub fn fence_alias() {
    run(Fence::ProxyAlias);
}

/// Makes this thread's barrier inits visible to the cluster.
#[track_caller]
pub fn fence_mbarrier_init() {
    run(Fence::MbarrierInit);
}

/// Orders this thread's memory accesses for the threads of a scope.
#[track_caller]
pub fn fence(scope: Scope) {
    run(Fence::AcqRel(scope));
}

/// As [`fence`], in one order that all threads of the scope agree on.
#[track_caller]
pub fn fence_sc(scope: Scope) {
    run(Fence::Sc(scope));
}
