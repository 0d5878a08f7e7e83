//! Global memory: pointers, flags between CTAs, and queues of work.

use super::flow::while_;
use super::raw::nanosleep;
use super::reg::{Reg, Value};
use super::state::{Width, emit, here, with};
use super::warp::warp_sync;
use crate::ops::atomic::AtomicOp;
use crate::ops::memory::{
    ApplyPriority, Discard, Load, LoadCache, Prefetch, PrefetchTo, Store, StoreCache,
};
use crate::ops::policy::{CacheHint, CreatePolicy, CreateRangePolicy, Evict};
use crate::sync::{MemoryOrder, Scope};
use crate::types::{Element, Scalar};
use crate::value::At;
use std::marker::PhantomData;

/// Elements in global memory.
#[derive(Debug)]
pub struct Global<T> {
    addr: Reg<u64>,
    ty: PhantomData<fn() -> T>,
}

impl<T> Clone for Global<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Global<T> {}

/// An index of elements: `u32` or `u64`.
pub trait Index: Copy {
    /// The address `self · size + base`.
    fn address(self, size: u32, base: Reg<u64>) -> Reg<u64>;
}
impl Index for Reg<u32> {
    #[track_caller]
    fn address(self, size: u32, base: Reg<u64>) -> Reg<u64> {
        self.mad_wide(size, base)
    }
}
impl Index for Reg<u64> {
    #[track_caller]
    fn address(self, size: u32, base: Reg<u64>) -> Reg<u64> {
        self.mad(u64::from(size), base)
    }
}
impl Index for u32 {
    #[track_caller]
    fn address(self, size: u32, base: Reg<u64>) -> Reg<u64> {
        match self {
            0 => base,
            i => base + u64::from(i) * u64::from(size),
        }
    }
}

impl<T: Element> Global<T> {
    pub(crate) fn at(addr: Reg<u64>) -> Self {
        Self {
            addr,
            ty: PhantomData,
        }
    }

    /// The address of an element.
    #[track_caller]
    pub fn address(self, i: impl Index) -> Reg<u64> {
        i.address(T::DTYPE.bytes() as u32, self.addr)
    }

    /// The elements from `i` on.
    #[track_caller]
    pub fn offset(self, i: impl Index) -> Self {
        Self::at(self.address(i))
    }

    /// The elements from so many bytes on.
    #[track_caller]
    pub fn byte_offset(self, bytes: Reg<u32>) -> Self {
        Self::at(self.addr + bytes.cast::<u64>())
    }

    /// Reads one element.
    #[track_caller]
    pub fn load(self, i: impl Index) -> Reg<T::Reg> {
        let [x] = self.load_vec(i);
        x
    }

    /// Reads `N` elements, at most 16 bytes, aligned to their size.
    #[track_caller]
    pub fn load_vec<const N: usize>(self, i: impl Index) -> [Reg<T::Reg>; N] {
        self.load_as(i)
    }

    /// Reads `N` registers of any type from element `i` on.
    #[track_caller]
    pub fn load_as<U: Scalar, const N: usize>(self, i: impl Index) -> [Reg<U>; N] {
        self.load_cached(i, LoadCache::DEFAULT)
    }

    /// As [`load_as`](Self::load_as), with a use of the caches.
    #[track_caller]
    pub fn load_cached<U: Scalar, const N: usize>(
        self,
        i: impl Index,
        cache: LoadCache,
    ) -> [Reg<U>; N] {
        let addr = self.address(i).operand();
        let dst: [Reg<U>; N] = std::array::from_fn(|_| Reg::fresh());
        emit(Load {
            ty: U::TYPE,
            dst: dst.iter().map(|r| r.id()).collect(),
            at: At::Global { addr, offset: 0 },
            cache,
        });
        dst
    }

    /// Writes one element.
    #[track_caller]
    pub fn store(self, i: impl Index, value: impl Value<T::Reg>) {
        self.store_vec(i, [value]);
    }

    /// Writes `N` elements, at most 16 bytes, aligned to their size.
    #[track_caller]
    pub fn store_vec<const N: usize>(self, i: impl Index, values: [impl Value<T::Reg>; N]) {
        self.store_as(i, values);
    }

    /// Writes `N` registers of any type from element `i` on.
    #[track_caller]
    pub fn store_as<U: Scalar, const N: usize>(self, i: impl Index, values: [impl Value<U>; N]) {
        self.store_cached(i, values, StoreCache::DEFAULT);
    }

    /// As [`store_as`](Self::store_as), with a use of the caches.
    #[track_caller]
    pub fn store_cached<U: Scalar, const N: usize>(
        self,
        i: impl Index,
        values: [impl Value<U>; N],
        cache: StoreCache,
    ) {
        let addr = self.address(i).operand();
        emit(Store {
            ty: U::TYPE,
            src: values.iter().map(|v| v.operand()).collect(),
            at: At::Global { addr, offset: 0 },
            cache,
        });
    }

    /// Brings the line of an element close; nothing waits for it.
    #[track_caller]
    pub fn prefetch(self, i: impl Index, to: PrefetchTo) {
        let addr = self.address(i).operand();
        emit(Prefetch { addr, to });
    }

    /// Has the L2 keep the line of 128 bytes that starts at an element as other
    /// lines, after it was kept for longer.
    #[track_caller]
    pub fn demote(self, i: impl Index) {
        let addr = self.address(i).operand();
        emit(ApplyPriority { addr });
    }

    /// Drops the line of 128 bytes that starts at an element, without a write
    /// to memory: nobody may read it before it is written again.
    #[track_caller]
    pub fn discard(self, i: impl Index) {
        let addr = self.address(i).operand();
        emit(Discard { addr });
    }
}

/// Makes a hint: the L2 keeps a fraction (above 0, up to 1) of the lines of an
/// access as `evict` says, and the rest as it is.
#[track_caller]
pub fn cache_policy(evict: Evict, fraction: impl Value<f32>) -> CacheHint {
    let dst = Reg::<u64>::fresh();
    emit(CreatePolicy {
        dst: dst.id(),
        primary: evict,
        rest: Evict::Unchanged,
        fraction: fraction.operand(),
    });
    CacheHint::Policy(dst.operand())
}

/// Makes a hint for accesses inside of `total` bytes: the L2 keeps the first
/// `bytes` from an address on as `evict` says, and the rest as it is.
#[track_caller]
pub fn range_policy(
    evict: Evict,
    from: impl Value<u64>,
    bytes: impl Value<u32>,
    total: impl Value<u32>,
) -> CacheHint {
    let dst = Reg::<u64>::fresh();
    emit(CreateRangePolicy {
        dst: dst.id(),
        primary: evict,
        rest: Evict::Unchanged,
        addr: from.operand(),
        bytes: bytes.operand(),
        total: total.operand(),
    });
    CacheHint::Policy(dst.operand())
}

impl Global<u32> {
    /// Adds to a word of the device; gives what it was.
    #[track_caller]
    pub fn fetch_add(self, i: impl Index, value: impl Value<u32>) -> Reg<u32> {
        let order = MemoryOrder::relaxed(Scope::Gpu);
        self.word(i).atomic(AtomicOp::Add, value, order)
    }
}

/// Flags in global memory: counters that CTAs raise and wait for.
///
/// Zero at launch. A kernel that waits on flags needs its whole grid on the
/// machine at once.
#[derive(Clone, Copy, Debug)]
pub struct Flags {
    words: Global<u32>,
}

impl Flags {
    pub(crate) fn new(words: Global<u32>) -> Self {
        Self { words }
    }

    /// Raises flag `i` by one, releasing what the calling threads wrote: the
    /// whole role's writes, or the elected lane's own.
    #[track_caller]
    pub fn signal(self, i: impl Index) {
        let _at = here();
        with(|s| s.co_resident = true);
        let word = self.words.word(i);
        let raise = || word.reduce(AtomicOp::Add, 1u32, MemoryOrder::release(Scope::Gpu));
        match with(|s| Some(s.width)) {
            Some(Width::Role) => {
                warp_sync();
                super::flow::elect_lane(raise);
            }
            _ => raise(),
        }
    }

    /// Lowers flag `i` to zero again, for the next launch.
    #[track_caller]
    pub fn reset(self, i: impl Index) {
        let _at = here();
        self.words.store(i, 0u32);
    }

    /// Waits until flag `i` is at least `value`, acquiring what the signallers wrote.
    #[track_caller]
    pub fn wait(self, i: impl Index, value: impl Value<u32>) {
        let _at = here();
        with(|s| s.co_resident = true);
        let (word, value) = (self.words.word(i), value.reg());
        while_(
            || word.load(MemoryOrder::acquire(Scope::Gpu)).lt(value),
            || nanosleep(20),
        );
    }
}
