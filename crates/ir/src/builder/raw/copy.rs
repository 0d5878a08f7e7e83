//! Bulk copies of consecutive bytes (`cp.async.bulk`), and asynchronous stores to a peer CTA.

use super::barrier::MbarrierHandle;
use crate::builder::reg::{Coord, Reg, Value};
use crate::builder::state::{caller_scope, emit, with};
use crate::builder::tile::TileRef;
use crate::ops::bulk::{
    BulkCommit, BulkLoad, BulkPrefetch, BulkReduce, BulkSend, BulkStore, BulkWait, CacheHint,
    Reduction,
};
use crate::ops::remote::{ReduceAsync, StoreAsync};
use crate::types::{Element, Scalar};
use crate::value::Operand;

/// Copies `bytes` from global memory to the start of a view; the bytes complete on `bar`.
#[track_caller]
pub fn bulk_load<T: Element>(
    to: TileRef<T>,
    from: Reg<u64>,
    bytes: impl Value<u32>,
    bar: MbarrierHandle,
) {
    bulk_load_with(to, from, bytes, bar, None, None);
}

/// Like [`bulk_load`], with a multicast CTA mask and an L2 cache hint.
#[track_caller]
pub fn bulk_load_with<T: Element>(
    to: TileRef<T>,
    from: Reg<u64>,
    bytes: impl Value<u32>,
    bar: MbarrierHandle,
    mask: Option<Operand>,
    hint: Option<CacheHint>,
) {
    let _caller = caller_scope();
    if mask.is_some() {
        with(|s| s.accesses_peers = true);
    }
    let dst = to.address(0u32, 0u32);
    emit(BulkLoad {
        dst,
        src: from.operand(),
        bytes: bytes.operand(),
        bar: bar.0,
        multicast: mask,
        hint,
    });
}

/// Copies `bytes` from the start of a view to global memory, in the thread's bulk group.
#[track_caller]
pub fn bulk_store<T: Element>(from: TileRef<T>, to: Reg<u64>, bytes: impl Value<u32>) {
    bulk_store_with(from, to, bytes, None);
}

/// Like [`bulk_store`], with an L2 cache hint.
#[track_caller]
pub fn bulk_store_with<T: Element>(
    from: TileRef<T>,
    to: Reg<u64>,
    bytes: impl Value<u32>,
    hint: Option<CacheHint>,
) {
    emit_bulk_store(from, to, bytes.operand(), None, hint);
}

/// Reduces `bytes` from the start of a view into global memory, each element atomically, in
/// the thread's bulk group (`cp.reduce.async.bulk`).
#[track_caller]
pub fn bulk_reduce<T: Element>(
    op: Reduction,
    from: TileRef<T>,
    to: Reg<u64>,
    bytes: impl Value<u32>,
) {
    emit_bulk_store(
        from,
        to,
        bytes.operand(),
        Some(element_reduction::<T>(op)),
        None,
    );
}

#[track_caller]
fn emit_bulk_store<T: Element>(
    from: TileRef<T>,
    to: Reg<u64>,
    bytes: Operand,
    reduce: Option<BulkReduce>,
    hint: Option<CacheHint>,
) {
    let _caller = caller_scope();
    let src = from.address(0u32, 0u32);
    emit(BulkStore {
        src,
        dst: to.operand(),
        bytes,
        reduce,
        hint,
    });
}

/// Returns the reduction of elements of type `T`.
fn element_reduction<T: Element>(op: Reduction) -> BulkReduce {
    BulkReduce {
        op,
        dtype: T::DTYPE,
    }
}

/// Copies `bytes` from the start of a view to the start of a view in a peer CTA
/// ([`TileRef::peer`]); the bytes complete on `bar` of that CTA.
#[track_caller]
pub fn bulk_copy_to_peer<T: Element>(
    from: TileRef<T>,
    to: TileRef<T>,
    bytes: impl Value<u32>,
    bar: MbarrierHandle,
) {
    emit_copy_to_peer(from, to, bytes.operand(), bar, None);
}

/// Like [`bulk_copy_to_peer`], but reduces the elements into those of the peer, each
/// atomically.
#[track_caller]
pub fn bulk_reduce_to_peer<T: Element>(
    op: Reduction,
    from: TileRef<T>,
    to: TileRef<T>,
    bytes: impl Value<u32>,
    bar: MbarrierHandle,
) {
    emit_copy_to_peer(
        from,
        to,
        bytes.operand(),
        bar,
        Some(element_reduction::<T>(op)),
    );
}

#[track_caller]
fn emit_copy_to_peer<T: Element>(
    from: TileRef<T>,
    to: TileRef<T>,
    bytes: Operand,
    bar: MbarrierHandle,
    reduce: Option<BulkReduce>,
) {
    let _caller = caller_scope();
    let (src, dst) = (from.address(0u32, 0u32), to.address(0u32, 0u32));
    emit(BulkSend {
        src,
        dst,
        bytes,
        bar: bar.0,
        reduce,
    });
}

/// Prefetches `bytes` of global memory into L2 (`cp.async.bulk.prefetch.L2`).
#[track_caller]
pub fn bulk_prefetch(from: Reg<u64>, bytes: impl Value<u32>, hint: Option<CacheHint>) {
    emit(BulkPrefetch {
        src: from.operand(),
        bytes: bytes.operand(),
        hint,
    });
}

/// Stores registers of 4 or 8 bytes, at most 16 bytes, to a view in a peer CTA
/// ([`TileRef::peer`]); the bytes complete on `bar` of that CTA (`st.async`).
#[track_caller]
pub fn store_async<T: Element, U: Scalar, const N: usize>(
    to: TileRef<T>,
    row: impl Coord,
    col: impl Coord,
    values: [impl Value<U>; N],
    bar: MbarrierHandle,
) {
    let _caller = caller_scope();
    let dst = to.address(row, col);
    emit(StoreAsync {
        ty: U::TYPE,
        src: values.iter().map(|v| v.operand()).collect(),
        dst,
        bar: bar.0,
    });
}

/// Reduces an integer into an element of a view in a peer CTA ([`TileRef::peer`])
/// atomically; the bytes complete on `bar` of that CTA (`red.async`).
#[track_caller]
pub fn reduce_async<T: Element>(
    op: Reduction,
    to: TileRef<T>,
    row: impl Coord,
    col: impl Coord,
    value: impl Value<T::Reg>,
    bar: MbarrierHandle,
) {
    let _caller = caller_scope();
    let dst = to.address(row, col);
    emit(ReduceAsync {
        op,
        ty: T::Reg::TYPE,
        src: value.operand(),
        dst,
        bar: bar.0,
    });
}

/// Commits this thread's bulk stores to a group (`cp.async.bulk.commit_group`).
#[track_caller]
pub fn bulk_commit() {
    emit(BulkCommit);
}

/// Waits until at most `pending` of this thread's bulk groups still read shared memory
/// (`cp.async.bulk.wait_group.read`).
#[track_caller]
pub fn bulk_wait_read(pending: u32) {
    emit(BulkWait {
        pending,
        read: true,
    });
}

/// Waits until at most `pending` of this thread's bulk groups are in flight
/// (`cp.async.bulk.wait_group`).
#[track_caller]
pub fn bulk_wait(pending: u32) {
    emit(BulkWait {
        pending,
        read: false,
    });
}
