//! Atomic references: atomics, reductions, and strong loads and stores of one element.
//!
//! ```
//! use warpline_ir::{Kernel, MemoryOrder, Scope, Target, builder::*, ops::atomic::AtomicOp};
//! # Kernel::build("k", &Target::SM_90A, |k| {
//! let (bins, done) = (k.pointer::<u32>("bins"), k.pointer::<u32>("done"));
//! k.role("all").body(|| {
//!     bins.atomic_ref(lane_id()).reduce(AtomicOp::Add, 1, MemoryOrder::relaxed(Scope::Gpu));
//!     warp_sync();
//!     elect(|| done.atomic_ref(0u32).reduce(AtomicOp::Add, 1, MemoryOrder::release(Scope::Gpu)));
//! });
//! # }).unwrap();
//! ```

use super::global::{ElementIndex, Global};
use super::k_order::KOrder;
use super::reg::{Coord, Reg, Value};
use super::ring::record_generic_access;
use super::state::{caller_scope, emit};
use super::tile::TileRef;
use crate::ops::atomic::{Atomic, AtomicOp, AtomicReduce, StrongLoad, StrongStore};
use crate::sync::MemoryOrder;
use crate::types::{Element, Scalar};
use crate::value::{MemoryAddress, Operand};
use std::marker::PhantomData;

/// A reference to an element of global or shared memory, one for each lane, for atomic and
/// strong accesses (as `cuda::atomic_ref`).
#[derive(Debug)]
pub struct AtomicRef<T> {
    at: MemoryAddress,
    ty: PhantomData<fn() -> T>,
}

impl<T> Clone for AtomicRef<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for AtomicRef<T> {}

impl<T: Element> Global<T> {
    /// Returns an atomic reference to an element.
    #[track_caller]
    pub fn atomic_ref(self, i: impl ElementIndex) -> AtomicRef<T::Reg> {
        let addr = self.address(i).operand();
        AtomicRef::new(MemoryAddress::Global { addr, offset: 0 })
    }
}

impl<T: Element, K: KOrder> TileRef<T, K> {
    /// Returns an atomic reference to an element.
    #[track_caller]
    pub fn atomic_ref(self, row: impl Coord, col: impl Coord) -> AtomicRef<T::Reg> {
        AtomicRef::new(MemoryAddress::Shared(self.address(row, col)))
    }
}

impl<T: Scalar> AtomicRef<T> {
    fn new(at: MemoryAddress) -> Self {
        let ty = PhantomData;
        Self { at, ty }
    }

    /// Returns a reference to the same address with another type: `f16x2` over two `f16`.
    pub fn cast<U: Scalar>(self) -> AtomicRef<U> {
        AtomicRef::new(self.at)
    }

    fn record_access(self) {
        if let MemoryAddress::Shared(address) = self.at {
            record_generic_access(address.tile);
        }
    }

    /// Loads the element with relaxed or acquire order (`ld.relaxed`, `ld.acquire`).
    #[track_caller]
    pub fn load(self, order: MemoryOrder) -> Reg<T> {
        let dst = Reg::fresh();
        emit(StrongLoad {
            ty: T::TYPE,
            dst: dst.id(),
            at: self.at,
            order,
        });
        self.record_access();
        dst
    }

    /// Stores the element with relaxed or release order (`st.relaxed`, `st.release`).
    #[track_caller]
    pub fn store(self, value: impl Value<T>, order: MemoryOrder) {
        emit(StrongStore {
            ty: T::TYPE,
            src: value.operand(),
            at: self.at,
            order,
        });
        self.record_access();
    }

    /// Updates the element atomically and returns its old value (`atom`).
    #[track_caller]
    pub fn atomic(self, op: AtomicOp, value: impl Value<T>, order: MemoryOrder) -> Reg<T> {
        let [old] = self.atomic_vec(op, [value], order);
        old
    }

    /// Updates `N` consecutive elements, each atomically, and returns their old values
    /// (`atom.v2`, `.v4`, `.v8`). `N` above 1 is legal only for [`AtomicOp::Add`] of 2, 4 or 8 float
    /// elements in global memory, at most 16 bytes together.
    #[track_caller]
    pub fn atomic_vec<const N: usize>(
        self,
        op: AtomicOp,
        values: [impl Value<T>; N],
        order: MemoryOrder,
    ) -> [Reg<T>; N] {
        self.update(op, values.map(|v| v.operand()), None, order)
    }

    /// Stores `value` if the element equals `expected`; returns the old value (`atom.cas`).
    #[track_caller]
    pub fn compare_swap(
        self,
        expected: impl Value<T>,
        value: impl Value<T>,
        order: MemoryOrder,
    ) -> Reg<T> {
        let _caller = caller_scope();
        let expected = Some(expected.operand());
        let [old] = self.update(AtomicOp::Cas, [value.operand()], expected, order);
        old
    }

    #[track_caller]
    fn update<const N: usize>(
        self,
        op: AtomicOp,
        values: [Operand; N],
        compare: Option<Operand>,
        order: MemoryOrder,
    ) -> [Reg<T>; N] {
        let dst: [Reg<T>; N] = std::array::from_fn(|_| Reg::fresh());
        emit(Atomic {
            op,
            ty: T::TYPE,
            dst: dst.iter().map(|r| r.id()).collect(),
            at: self.at,
            values: values.to_vec(),
            compare,
            order,
        });
        self.record_access();
        dst
    }

    /// Updates the element atomically with relaxed or release order (`red`).
    #[track_caller]
    pub fn reduce(self, op: AtomicOp, value: impl Value<T>, order: MemoryOrder) {
        self.reduce_vec(op, [value], order);
    }

    /// Updates `N` consecutive elements, each atomically (`red.v2`, `.v4`, `.v8`). `N` above 1 is
    /// legal only for [`AtomicOp::Add`] of 2, 4 or 8 float elements in global memory, at most 16 bytes
    /// together.
    #[track_caller]
    pub fn reduce_vec<const N: usize>(
        self,
        op: AtomicOp,
        values: [impl Value<T>; N],
        order: MemoryOrder,
    ) {
        emit(AtomicReduce {
            op,
            ty: T::TYPE,
            at: self.at,
            values: values.iter().map(|v| v.operand()).collect(),
            order,
        });
        self.record_access();
    }
}
