//! Bulk copies of runs of bytes, and stores that arrive at a peer on their own.

use super::barrier::BarHandle;
use crate::build::reg::{Coord, Reg, Value};
use crate::build::state::{emit, here, with};
use crate::build::tile::TileRef;
use crate::ops::bulk::{
    BulkCommit, BulkLoad, BulkPrefetch, BulkSend, BulkStore, BulkWait, CacheHint, Reduce, Reduction,
};
use crate::ops::remote::{ReduceAsync, StoreAsync};
use crate::types::{Element, Scalar};
use crate::value::Operand;

/// Copies `bytes` from global memory into the start of a view; they complete on `bar`.
#[track_caller]
pub fn bulk_load<T: Element>(
    to: TileRef<T>,
    from: Reg<u64>,
    bytes: impl Value<u32>,
    bar: BarHandle,
) {
    bulk_load_with(to, from, bytes, bar, None, None);
}

/// As [`bulk_load`], to every CTA of the cluster in `mask`, with a cache hint.
#[track_caller]
pub fn bulk_load_with<T: Element>(
    to: TileRef<T>,
    from: Reg<u64>,
    bytes: impl Value<u32>,
    bar: BarHandle,
    mask: Option<Operand>,
    hint: Option<CacheHint>,
) {
    let _at = here();
    if mask.is_some() {
        with(|s| s.remote = true);
    }
    let dst = to.place(0u32, 0u32);
    emit(BulkLoad {
        dst,
        src: from.operand(),
        bytes: bytes.operand(),
        bar: bar.0,
        multicast: mask,
        hint,
    });
}

/// Copies `bytes` from the start of a view to global memory, as part of the thread's bulk group.
#[track_caller]
pub fn bulk_store<T: Element>(from: TileRef<T>, to: Reg<u64>, bytes: impl Value<u32>) {
    bulk_store_with(from, to, bytes, None);
}

/// As [`bulk_store`], with a cache hint.
#[track_caller]
pub fn bulk_store_with<T: Element>(
    from: TileRef<T>,
    to: Reg<u64>,
    bytes: impl Value<u32>,
    hint: Option<CacheHint>,
) {
    store(from, to, bytes.operand(), None, hint);
}

/// Combines the elements in `bytes` from the start of a view with those in
/// global memory, each in one step, as part of the thread's bulk group.
#[track_caller]
pub fn bulk_reduce<T: Element>(
    how: Reduction,
    from: TileRef<T>,
    to: Reg<u64>,
    bytes: impl Value<u32>,
) {
    store(from, to, bytes.operand(), Some(reduce::<T>(how)), None);
}

#[track_caller]
fn store<T: Element>(
    from: TileRef<T>,
    to: Reg<u64>,
    bytes: Operand,
    reduce: Option<Reduce>,
    hint: Option<CacheHint>,
) {
    let _at = here();
    let src = from.place(0u32, 0u32);
    emit(BulkStore {
        src,
        dst: to.operand(),
        bytes,
        reduce,
        hint,
    });
}

/// A reduction of a tile's elements.
fn reduce<T: Element>(op: Reduction) -> Reduce {
    Reduce {
        op,
        dtype: T::DTYPE,
    }
}

/// Copies `bytes` from the start of a view to the start of another CTA's
/// ([`TileRef::peer`]); they complete on `bar`, of the same CTA.
#[track_caller]
pub fn bulk_send<T: Element>(
    from: TileRef<T>,
    to: TileRef<T>,
    bytes: impl Value<u32>,
    bar: BarHandle,
) {
    send(from, to, bytes.operand(), bar, None);
}

/// As [`bulk_send`], but the elements are combined with those of the other CTA, each in one step.
#[track_caller]
pub fn bulk_send_reduce<T: Element>(
    how: Reduction,
    from: TileRef<T>,
    to: TileRef<T>,
    bytes: impl Value<u32>,
    bar: BarHandle,
) {
    send(from, to, bytes.operand(), bar, Some(reduce::<T>(how)));
}

#[track_caller]
fn send<T: Element>(
    from: TileRef<T>,
    to: TileRef<T>,
    bytes: Operand,
    bar: BarHandle,
    reduce: Option<Reduce>,
) {
    let _at = here();
    let (src, dst) = (from.place(0u32, 0u32), to.place(0u32, 0u32));
    emit(BulkSend {
        src,
        dst,
        bytes,
        bar: bar.0,
        reduce,
    });
}

/// Brings `bytes` of global memory to the L2.
#[track_caller]
pub fn bulk_prefetch(from: Reg<u64>, bytes: impl Value<u32>, hint: Option<CacheHint>) {
    emit(BulkPrefetch {
        src: from.operand(),
        bytes: bytes.operand(),
        hint,
    });
}

/// Stores registers of 4 or 8 bytes from an element of another CTA's view on
/// ([`TileRef::peer`]), 16 bytes at most; they complete on `bar`, of the same CTA.
#[track_caller]
pub fn store_async<T: Element, U: Scalar, const N: usize>(
    to: TileRef<T>,
    row: impl Coord,
    col: impl Coord,
    values: [impl Value<U>; N],
    bar: BarHandle,
) {
    let _at = here();
    let dst = to.place(row, col);
    emit(StoreAsync {
        ty: U::TYPE,
        src: values.iter().map(|v| v.operand()).collect(),
        dst,
        bar: bar.0,
    });
}

/// Combines an integer with an element of another CTA's view ([`TileRef::peer`]),
/// in one step; its bytes complete on `bar`, of the same CTA.
#[track_caller]
pub fn reduce_async<T: Element>(
    how: Reduction,
    to: TileRef<T>,
    row: impl Coord,
    col: impl Coord,
    value: impl Value<T::Reg>,
    bar: BarHandle,
) {
    let _at = here();
    let dst = to.place(row, col);
    emit(ReduceAsync {
        op: how,
        ty: T::Reg::TYPE,
        src: value.operand(),
        dst,
        bar: bar.0,
    });
}

/// Closes this thread's bulk stores into one group.
#[track_caller]
pub fn bulk_commit() {
    emit(BulkCommit);
}

/// Waits until at most `pending` of this thread's bulk groups still read their source.
#[track_caller]
pub fn bulk_wait_read(pending: u32) {
    emit(BulkWait {
        pending,
        read: true,
    });
}

/// Waits until at most `pending` of this thread's bulk groups are not done.
#[track_caller]
pub fn bulk_wait(pending: u32) {
    emit(BulkWait {
        pending,
        read: false,
    });
}
