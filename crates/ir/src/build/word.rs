//! Words of memory that threads share: atomics, reductions, strong loads and stores.
//!
//! ```
//! use warpline_ir::{Kernel, MemoryOrder, Scope, Target, build::*, ops::atomic::AtomicOp};
//! # Kernel::build("k", &Target::SM_90A, |k| {
//! let (bins, done) = (k.pointer::<u32>("bins"), k.pointer::<u32>("done"));
//! k.role("all").body(|| {
//!     bins.word(lane_id()).reduce(AtomicOp::Add, 1, MemoryOrder::relaxed(Scope::Gpu));
//!     warp_sync();
//!     elect(|| done.word(0u32).reduce(AtomicOp::Add, 1, MemoryOrder::release(Scope::Gpu)));
//! });
//! # }).unwrap();
//! ```

use super::global::{Global, Index};
use super::korder::KOrder;
use super::reg::{Coord, Reg, Value};
use super::ring::generic_use;
use super::state::{emit, here};
use super::tile::TileRef;
use crate::ops::atomic::{Atomic, AtomicOp, Reduce, StrongLoad, StrongStore};
use crate::sync::MemoryOrder;
use crate::types::{Element, Scalar};
use crate::value::{At, Operand};
use std::marker::PhantomData;

/// A word of global or shared memory, lane by lane; of the elements from there on, the first.
#[derive(Debug)]
pub struct Word<T> {
    at: At,
    ty: PhantomData<fn() -> T>,
}

impl<T> Clone for Word<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Word<T> {}

impl<T: Element> Global<T> {
    /// The word at an element.
    #[track_caller]
    pub fn word(self, i: impl Index) -> Word<T::Reg> {
        let addr = self.address(i).operand();
        Word::new(At::Global { addr, offset: 0 })
    }
}

impl<T: Element, K: KOrder> TileRef<T, K> {
    /// The word at an element.
    #[track_caller]
    pub fn word(self, row: impl Coord, col: impl Coord) -> Word<T::Reg> {
        Word::new(At::Shared(self.place(row, col)))
    }
}

impl<T: Scalar> Word<T> {
    fn new(at: At) -> Self {
        let ty = PhantomData;
        Self { at, ty }
    }

    /// The same place as a word of another type: `f16x2` over two `f16`.
    pub fn of<U: Scalar>(self) -> Word<U> {
        Word::new(self.at)
    }

    fn touched(self) {
        if let At::Shared(place) = self.at {
            generic_use(place.tile);
        }
    }

    /// Reads it: relaxed, or acquire.
    #[track_caller]
    pub fn load(self, order: MemoryOrder) -> Reg<T> {
        let dst = Reg::fresh();
        emit(StrongLoad {
            ty: T::TYPE,
            dst: dst.id(),
            at: self.at,
            order,
        });
        self.touched();
        dst
    }

    /// Writes it: relaxed, or release.
    #[track_caller]
    pub fn store(self, value: impl Value<T>, order: MemoryOrder) {
        emit(StrongStore {
            ty: T::TYPE,
            src: value.operand(),
            at: self.at,
            order,
        });
        self.touched();
    }

    /// Changes it in one step; gives what it was.
    #[track_caller]
    pub fn atomic(self, op: AtomicOp, value: impl Value<T>, order: MemoryOrder) -> Reg<T> {
        let [old] = self.atomic_vec(op, [value], order);
        old
    }

    /// Changes it and those after it, each in one step: 2, 4 or 8 floats, of up
    /// to 16 bytes, are added to in global memory. Gives what they were.
    #[track_caller]
    pub fn atomic_vec<const N: usize>(
        self,
        op: AtomicOp,
        values: [impl Value<T>; N],
        order: MemoryOrder,
    ) -> [Reg<T>; N] {
        self.change(op, values.map(|v| v.operand()), None, order)
    }

    /// Writes it if it is `expected`; gives what it was.
    #[track_caller]
    pub fn compare_swap(
        self,
        expected: impl Value<T>,
        value: impl Value<T>,
        order: MemoryOrder,
    ) -> Reg<T> {
        let _at = here();
        let expected = Some(expected.operand());
        let [old] = self.change(AtomicOp::Cas, [value.operand()], expected, order);
        old
    }

    #[track_caller]
    fn change<const N: usize>(
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
        self.touched();
        dst
    }

    /// Changes it in one step: relaxed, or release.
    #[track_caller]
    pub fn reduce(self, op: AtomicOp, value: impl Value<T>, order: MemoryOrder) {
        self.reduce_vec(op, [value], order);
    }

    /// Changes it and those after it, each in one step: 2, 4 or 8 floats,
    /// of up to 16 bytes, are added to in global memory.
    #[track_caller]
    pub fn reduce_vec<const N: usize>(
        self,
        op: AtomicOp,
        values: [impl Value<T>; N],
        order: MemoryOrder,
    ) {
        emit(Reduce {
            op,
            ty: T::TYPE,
            at: self.at,
            values: values.iter().map(|v| v.operand()).collect(),
            order,
        });
        self.touched();
    }
}
