//! Fences.

use crate::build::reg::Value;
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

/// The first half of a proxy fence: this thread's generic accesses to the
/// CTA's shared memory come before the async ones of whoever hears of it and
/// then runs [`fence_async_acquire`].
#[track_caller]
pub fn fence_async_release() {
    run(Fence::ProxyAsyncRelease);
}

/// The second half of a proxy fence: this thread's later async accesses to the
/// cluster's shared memory come after what [`fence_async_release`] released.
#[track_caller]
pub fn fence_async_acquire() {
    run(Fence::ProxyAsyncAcquire);
}

/// Releases tensor maps that this thread wrote in global memory.
#[track_caller]
pub fn fence_tensor_map_release(scope: Scope) {
    run(Fence::TensorMapRelease(scope));
}

/// Acquires the tensor map at an address of global memory, which
/// [`fence_tensor_map_release`] released. A map that is a parameter needs none.
#[track_caller]
pub fn fence_tensor_map_acquire(scope: Scope, map: impl Value<u64>) {
    run(Fence::TensorMapAcquire(scope, map.operand()));
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

/// The acquiring half of [`fence`]: what earlier relaxed reads found is seen after it.
#[track_caller]
pub fn fence_acquire(scope: Scope) {
    run(Fence::Acquire(scope));
}

/// The releasing half of [`fence`]: later relaxed writes hand on what came before it.
#[track_caller]
pub fn fence_release(scope: Scope) {
    run(Fence::Release(scope));
}

/// As [`fence_acquire`] of the cluster, for its shared memory alone.
#[track_caller]
pub fn fence_acquire_shared() {
    run(Fence::AcquireShared);
}

/// As [`fence_release`] to the cluster, for the CTA's shared memory alone.
#[track_caller]
pub fn fence_release_shared() {
    run(Fence::ReleaseShared);
}

/// As [`fence`], in one order that all threads of the scope agree on.
#[track_caller]
pub fn fence_sc(scope: Scope) {
    run(Fence::Sc(scope));
}
