//! Global memory: pointers, L2 cache policies, and flags between CTAs.

use super::flow::while_;
use super::raw::nanosleep;
use super::reg::{Reg, Value};
use super::state::{ActiveThreads, caller_scope, emit, with};
use super::warp::warp_sync;
use crate::ops::atomic::AtomicOp;
use crate::ops::memory::{
    ApplyPriority, Discard, Load, LoadCache, Prefetch, PrefetchLevel, Store, StoreCache,
};
use crate::ops::policy::{CacheHint, CreatePolicy, CreateRangePolicy, EvictionPriority};
use crate::sync::{MemoryOrder, Scope};
use crate::types::{Element, Scalar};
use crate::value::MemoryAddress;
use std::marker::PhantomData;

/// A pointer to elements in global memory.
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

/// An element index: a `u32` or `u64` register, or a constant.
pub trait ElementIndex: Copy {
    /// Computes the address `self · size + base`.
    fn address(self, size: u32, base: Reg<u64>) -> Reg<u64>;
}
impl ElementIndex for Reg<u32> {
    #[track_caller]
    fn address(self, size: u32, base: Reg<u64>) -> Reg<u64> {
        self.mad_wide(size, base)
    }
}
impl ElementIndex for Reg<u64> {
    #[track_caller]
    fn address(self, size: u32, base: Reg<u64>) -> Reg<u64> {
        self.mad(u64::from(size), base)
    }
}
impl ElementIndex for u32 {
    #[track_caller]
    fn address(self, size: u32, base: Reg<u64>) -> Reg<u64> {
        match self {
            0 => base,
            i => base + u64::from(i) * u64::from(size),
        }
    }
}

impl<T: Element> Global<T> {
    pub(crate) fn from_address(addr: Reg<u64>) -> Self {
        Self {
            addr,
            ty: PhantomData,
        }
    }

    /// Returns the address of element `i`.
    #[track_caller]
    pub fn address(self, i: impl ElementIndex) -> Reg<u64> {
        i.address(T::DTYPE.bytes() as u32, self.addr)
    }

    /// Returns a pointer to element `i`.
    #[track_caller]
    pub fn offset(self, i: impl ElementIndex) -> Self {
        Self::from_address(self.address(i))
    }

    /// Returns a pointer advanced by `bytes`.
    #[track_caller]
    pub fn byte_offset(self, bytes: Reg<u32>) -> Self {
        Self::from_address(self.addr + bytes.cast::<u64>())
    }

    /// Loads element `i`.
    #[track_caller]
    pub fn load(self, i: impl ElementIndex) -> Reg<T::Reg> {
        let [x] = self.load_vec(i);
        x
    }

    /// Loads `N` consecutive elements: at most 16 bytes, aligned to their size.
    #[track_caller]
    pub fn load_vec<const N: usize>(self, i: impl ElementIndex) -> [Reg<T::Reg>; N] {
        self.load_as(i)
    }

    /// Loads `N` registers of type `U` from the address of element `i`.
    #[track_caller]
    pub fn load_as<U: Scalar, const N: usize>(self, i: impl ElementIndex) -> [Reg<U>; N] {
        self.load_cached(i, LoadCache::DEFAULT)
    }

    /// Like [`load_as`](Self::load_as), with cache operators.
    #[track_caller]
    pub fn load_cached<U: Scalar, const N: usize>(
        self,
        i: impl ElementIndex,
        cache: LoadCache,
    ) -> [Reg<U>; N] {
        let addr = self.address(i).operand();
        let dst: [Reg<U>; N] = std::array::from_fn(|_| Reg::fresh());
        emit(Load {
            ty: U::TYPE,
            dst: dst.iter().map(|r| r.id()).collect(),
            at: MemoryAddress::Global { addr, offset: 0 },
            cache,
        });
        dst
    }

    /// Stores element `i`.
    #[track_caller]
    pub fn store(self, i: impl ElementIndex, value: impl Value<T::Reg>) {
        self.store_vec(i, [value]);
    }

    /// Stores `N` consecutive elements: at most 16 bytes, aligned to their size.
    #[track_caller]
    pub fn store_vec<const N: usize>(self, i: impl ElementIndex, values: [impl Value<T::Reg>; N]) {
        self.store_as(i, values);
    }

    /// Stores `N` registers of type `U` to the address of element `i`.
    #[track_caller]
    pub fn store_as<U: Scalar, const N: usize>(
        self,
        i: impl ElementIndex,
        values: [impl Value<U>; N],
    ) {
        self.store_cached(i, values, StoreCache::DEFAULT);
    }

    /// Like [`store_as`](Self::store_as), with cache operators.
    #[track_caller]
    pub fn store_cached<U: Scalar, const N: usize>(
        self,
        i: impl ElementIndex,
        values: [impl Value<U>; N],
        cache: StoreCache,
    ) {
        let addr = self.address(i).operand();
        emit(Store {
            ty: U::TYPE,
            src: values.iter().map(|v| v.operand()).collect(),
            at: MemoryAddress::Global { addr, offset: 0 },
            cache,
        });
    }

    /// Prefetches the cache line of element `i`; no instruction waits for it (`prefetch`).
    #[track_caller]
    pub fn prefetch(self, i: impl ElementIndex, to: PrefetchLevel) {
        let addr = self.address(i).operand();
        emit(Prefetch { addr, to });
    }

    /// Resets the L2 eviction priority of the 128-byte line at element `i` to normal
    /// (`applypriority.L2::evict_normal`).
    #[track_caller]
    pub fn evict_normal(self, i: impl ElementIndex) {
        let addr = self.address(i).operand();
        emit(ApplyPriority { addr });
    }

    /// Discards the 128-byte line at element `i` without a write-back (`discard.L2`). Its
    /// contents are undefined until the next write.
    #[track_caller]
    pub fn discard(self, i: impl ElementIndex) {
        let addr = self.address(i).operand();
        emit(Discard { addr });
    }
}

/// Creates an L2 cache hint that applies `evict` to a fraction (above 0, up to 1) of the
/// accessed lines (`createpolicy.fractional`).
#[track_caller]
pub fn cache_policy(evict: EvictionPriority, fraction: impl Value<f32>) -> CacheHint {
    let dst = Reg::<u64>::fresh();
    emit(CreatePolicy {
        dst: dst.id(),
        primary: evict,
        secondary: EvictionPriority::Unchanged,
        fraction: fraction.operand(),
    });
    CacheHint::Policy(dst.operand())
}

/// Creates an L2 cache hint for accesses inside of `total` bytes: it applies `evict` to the
/// first `bytes` from an address (`createpolicy.range`).
#[track_caller]
pub fn range_policy(
    evict: EvictionPriority,
    from: impl Value<u64>,
    bytes: impl Value<u32>,
    total: impl Value<u32>,
) -> CacheHint {
    let dst = Reg::<u64>::fresh();
    emit(CreateRangePolicy {
        dst: dst.id(),
        primary: evict,
        secondary: EvictionPriority::Unchanged,
        addr: from.operand(),
        bytes: bytes.operand(),
        total: total.operand(),
    });
    CacheHint::Policy(dst.operand())
}

impl Global<u32> {
    /// Adds to element `i` atomically and returns the old value (relaxed, GPU scope).
    #[track_caller]
    pub fn fetch_add(self, i: impl ElementIndex, value: impl Value<u32>) -> Reg<u32> {
        let order = MemoryOrder::relaxed(Scope::Gpu);
        self.atomic_ref(i).atomic(AtomicOp::Add, value, order)
    }
}

/// Flags in global memory: counters that CTAs increment and wait for.
///
/// They are zero at launch. A kernel that waits on flags needs a co-resident grid.
#[derive(Clone, Copy, Debug)]
pub struct Flags {
    words: Global<u32>,
}

impl Flags {
    pub(crate) fn new(words: Global<u32>) -> Self {
        Self { words }
    }

    /// Increments flag `i`, once per warp of the role or once in an elected lane. The release
    /// order publishes the earlier writes of the calling threads.
    #[track_caller]
    pub fn signal(self, i: impl ElementIndex) {
        let _caller = caller_scope();
        with(|s| s.co_resident = true);
        let word = self.words.atomic_ref(i);
        let increment = || word.reduce(AtomicOp::Add, 1u32, MemoryOrder::release(Scope::Gpu));
        match with(|s| Some(s.active)) {
            Some(ActiveThreads::Role) => {
                warp_sync();
                super::flow::elect_lane(increment);
            }
            _ => increment(),
        }
    }

    /// Resets flag `i` to zero for the next launch.
    #[track_caller]
    pub fn reset(self, i: impl ElementIndex) {
        let _caller = caller_scope();
        self.words.store(i, 0u32);
    }

    /// Waits until flag `i` is at least `value`, and acquires the writes of the signaling
    /// threads.
    #[track_caller]
    pub fn wait(self, i: impl ElementIndex, value: impl Value<u32>) {
        let _caller = caller_scope();
        with(|s| s.co_resident = true);
        let (word, value) = (self.words.atomic_ref(i), value.reg());
        while_(
            || word.load(MemoryOrder::acquire(Scope::Gpu)).lt(value),
            || nanosleep(20),
        );
    }
}
