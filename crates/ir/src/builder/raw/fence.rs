//! Fences.

use crate::builder::reg::Value;
use crate::builder::state::emit;
use crate::ops::memory::Fence;
use crate::sync::{FenceKind, Scope};

#[track_caller]
fn emit_fence(fence: FenceKind) {
    emit(Fence { kind: fence });
}

/// Orders this thread's generic accesses to the CTA's shared memory before later
/// async-proxy accesses (`fence.proxy.async.shared::cta`).
#[track_caller]
pub fn fence_async() {
    emit_fence(FenceKind::ProxyAsyncShared);
}

/// Like [`fence_async`], for the shared memory of the cluster.
#[track_caller]
pub fn fence_async_cluster() {
    emit_fence(FenceKind::ProxyAsyncCluster);
}

/// Like [`fence_async`], for global memory.
#[track_caller]
pub fn fence_async_global() {
    emit_fence(FenceKind::ProxyAsyncGlobal);
}

/// Like [`fence_async`], for all memory.
#[track_caller]
pub fn fence_async_all() {
    emit_fence(FenceKind::ProxyAsync);
}

/// The release half of a proxy fence: orders this thread's generic accesses to the CTA's
/// shared memory before async accesses of threads that synchronize with it and then call
/// [`fence_async_acquire`].
#[track_caller]
pub fn fence_async_release() {
    emit_fence(FenceKind::ProxyAsyncRelease);
}

/// The acquire half of a proxy fence: orders this thread's later async accesses to the
/// cluster's shared memory after accesses that [`fence_async_release`] released.
#[track_caller]
pub fn fence_async_acquire() {
    emit_fence(FenceKind::ProxyAsyncAcquire);
}

/// Releases tensor maps that this thread wrote to global memory
/// (`fence.proxy.tensormap::generic.release`).
#[track_caller]
pub fn fence_tensor_map_release(scope: Scope) {
    emit_fence(FenceKind::TensorMapRelease(scope));
}

/// Acquires a tensor map in global memory that [`fence_tensor_map_release`] released. A
/// tensor-map parameter needs no fence.
#[track_caller]
pub fn fence_tensor_map_acquire(scope: Scope, map: impl Value<u64>) {
    emit_fence(FenceKind::TensorMapAcquire(scope, map.operand()));
}

/// Orders accesses to the same memory through different virtual addresses
/// (`fence.proxy.alias`).
#[track_caller]
pub fn fence_alias() {
    emit_fence(FenceKind::ProxyAlias);
}

/// Makes this thread's mbarrier inits visible to the cluster (`fence.mbarrier_init`).
#[track_caller]
pub fn fence_mbarrier_init() {
    emit_fence(FenceKind::MbarrierInit);
}

/// Orders this thread's memory accesses at a scope (`fence.acq_rel`).
#[track_caller]
pub fn fence(scope: Scope) {
    emit_fence(FenceKind::AcqRel(scope));
}

/// The acquire half of [`fence`]: orders earlier relaxed loads before later accesses.
#[track_caller]
pub fn fence_acquire(scope: Scope) {
    emit_fence(FenceKind::Acquire(scope));
}

/// The release half of [`fence`]: later relaxed stores publish earlier accesses.
#[track_caller]
pub fn fence_release(scope: Scope) {
    emit_fence(FenceKind::Release(scope));
}

/// Like [`fence_acquire`] at cluster scope, for shared memory only.
#[track_caller]
pub fn fence_acquire_shared() {
    emit_fence(FenceKind::AcquireShared);
}

/// Like [`fence_release`] at cluster scope, for the CTA's shared memory only.
#[track_caller]
pub fn fence_release_shared() {
    emit_fence(FenceKind::ReleaseShared);
}

/// Like [`fence`], sequentially consistent (`fence.sc`).
#[track_caller]
pub fn fence_sc(scope: Scope) {
    emit_fence(FenceKind::Sc(scope));
}
