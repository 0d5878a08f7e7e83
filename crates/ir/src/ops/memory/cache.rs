//! Cache operators, eviction priorities and L2 cache hints of loads and stores. The CPU executor ignores them.

use crate::machine::{Asm, Effects};
use crate::ops::policy::{CacheHint, hint_asm, hint_effects, hint_name};
use crate::value::MemoryAddress;

/// The cache operator or L1 eviction priority of a global access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum L1Policy {
    /// The default: cache at all levels (`.ca`), write back (`.wb`).
    #[default]
    Default,
    /// Cache in the L2 only (`.cg`).
    Bypass,
    /// Streaming: accessed once, evict first in L1 and L2 (`.cs`).
    Streaming,
    /// Last use of the line (loads, `.lu`).
    LastUse,
    /// Do not use cached lines; fetch again (loads, `.cv`).
    Refetch,
    /// Write through to system memory (stores, `.wt`).
    WriteThrough,
    /// `.L1::no_allocate`.
    NoAllocate,
    /// `.L1::evict_first`.
    EvictFirst,
    /// `.L1::evict_last`.
    EvictLast,
    /// `.L1::evict_normal`.
    EvictNormal,
    /// `.L1::evict_unchanged`.
    EvictUnchanged,
}

impl L1Policy {
    /// Returns the cache operator, which precedes `.nc`.
    fn operator(self) -> &'static str {
        match self {
            L1Policy::Bypass => ".cg",
            L1Policy::Streaming => ".cs",
            L1Policy::LastUse => ".lu",
            L1Policy::Refetch => ".cv",
            L1Policy::WriteThrough => ".wt",
            _ => "",
        }
    }

    /// Returns the L1 eviction priority, which follows `.nc`.
    fn priority(self) -> &'static str {
        match self {
            L1Policy::NoAllocate => ".L1::no_allocate",
            L1Policy::EvictFirst => ".L1::evict_first",
            L1Policy::EvictLast => ".L1::evict_last",
            L1Policy::EvictNormal => ".L1::evict_normal",
            L1Policy::EvictUnchanged => ".L1::evict_unchanged",
            _ => "",
        }
    }
}

/// The L2 prefetch size of a load (`.level::prefetch_size`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum L2Prefetch {
    /// 64 bytes.
    B64,
    /// 128 bytes.
    B128,
    /// 256 bytes.
    B256,
}

impl L2Prefetch {
    /// Returns the suffix in PTX and in the text form; empty by default.
    pub(in crate::ops) fn suffix(prefetch: Option<Self>) -> &'static str {
        match prefetch {
            None => "",
            Some(L2Prefetch::B64) => ".L2::64B",
            Some(L2Prefetch::B128) => ".L2::128B",
            Some(L2Prefetch::B256) => ".L2::256B",
        }
    }
}

/// The coherence of a load.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum LoadPath {
    /// A weak, coherent load.
    #[default]
    Coherent,
    /// A non-coherent load (`.nc`, global memory): no thread may write these bytes during the launch.
    ReadOnly,
    /// A volatile load, which is never cached in registers or merged.
    Volatile,
}

/// The cache behavior of a load.
///
/// ```
/// use warpline_ir::ops::memory::{L2Prefetch, L1Policy, LoadCache};
/// let once = LoadCache::READ_ONLY.l1(L1Policy::NoAllocate).l2_prefetch(L2Prefetch::B256);
/// # assert!(!once.is_volatile());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LoadCache {
    /// Coherence.
    pub path: LoadPath,
    /// Cache operator or L1 eviction priority.
    pub l1: L1Policy,
    /// L2 prefetch size.
    pub l2_prefetch: Option<L2Prefetch>,
    /// L2 cache hint.
    pub hint: Option<CacheHint>,
}

impl LoadCache {
    /// The hardware default.
    pub const DEFAULT: Self = Self {
        path: LoadPath::Coherent,
        l1: L1Policy::Default,
        l2_prefetch: None,
        hint: None,
    };
    /// Non-coherent (`.nc`).
    pub const READ_ONLY: Self = Self {
        path: LoadPath::ReadOnly,
        ..Self::DEFAULT
    };
    /// Volatile.
    pub const VOLATILE: Self = Self {
        path: LoadPath::Volatile,
        ..Self::DEFAULT
    };

    /// Sets the cache operator or L1 eviction priority.
    pub const fn l1(self, l1: L1Policy) -> Self {
        Self { l1, ..self }
    }

    /// Sets the L2 prefetch size.
    pub const fn l2_prefetch(self, size: L2Prefetch) -> Self {
        let l2_prefetch = Some(size);
        Self {
            l2_prefetch,
            ..self
        }
    }

    /// Sets the L2 cache hint.
    pub const fn hint(self, hint: CacheHint) -> Self {
        let hint = Some(hint);
        Self { hint, ..self }
    }

    /// Returns whether the load is volatile.
    pub fn is_volatile(&self) -> bool {
        self.path == LoadPath::Volatile
    }

    pub(super) fn name(&self) -> String {
        let path = match self.path {
            LoadPath::Coherent => "",
            LoadPath::ReadOnly => ".nc",
            LoadPath::Volatile => ".volatile",
        };
        format!(
            "{path}{}{}{}{}",
            self.l1.operator(),
            self.l1.priority(),
            L2Prefetch::suffix(self.l2_prefetch),
            hint_name(self.hint)
        )
    }

    pub(super) fn effects(&self, e: &mut dyn Effects) {
        hint_effects(e, self.hint);
    }

    /// Returns the suffixes before and after the state space, and the cache-policy operand.
    pub(super) fn asm(&self, a: &mut dyn Asm) -> (&'static str, String, String) {
        let (before, path) = match self.path {
            LoadPath::Coherent => ("", ""),
            LoadPath::ReadOnly => ("", ".nc"),
            LoadPath::Volatile => (".volatile", ""),
        };
        let (hint, policy) = hint_asm(a, self.hint);
        let (operator, priority) = (self.l1.operator(), self.l1.priority());
        let prefetch = L2Prefetch::suffix(self.l2_prefetch);
        (
            before,
            format!("{operator}{path}{priority}{hint}{prefetch}"),
            policy,
        )
    }

    pub(super) fn legal(&self, at: &MemoryAddress) -> Result<(), String> {
        let non_volatile = Self {
            path: match self.path {
                LoadPath::ReadOnly => LoadPath::ReadOnly,
                _ => LoadPath::Coherent,
            },
            ..*self
        };
        if matches!(at, MemoryAddress::Shared(_)) && non_volatile != Self::DEFAULT {
            return Err(format!(
                "load{} on a shared-memory tile: cache modifiers require a global address",
                self.name()
            ));
        }
        if self.is_volatile() && (self.l1 != L1Policy::Default || self.hint.is_some()) {
            return Err(format!(
                "load{}: a volatile load has no cache operator, eviction priority or cache hint",
                self.name()
            ));
        }
        let read_only = self.path == LoadPath::ReadOnly;
        if self.l1 == L1Policy::WriteThrough
            || read_only && matches!(self.l1, L1Policy::LastUse | L1Policy::Refetch)
        {
            return Err(format!(
                "load{}: the cache operator {} applies to {} only",
                self.name(),
                self.l1.operator(),
                if read_only && self.l1 != L1Policy::WriteThrough {
                    "coherent loads"
                } else {
                    "stores"
                }
            ));
        }
        Ok(())
    }
}

/// The cache behavior of a store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StoreCache {
    /// A volatile store, which is never merged or reordered with other volatile accesses.
    pub volatile: bool,
    /// Cache operator or L1 eviction priority.
    pub l1: L1Policy,
    /// L2 cache hint.
    pub hint: Option<CacheHint>,
}

impl StoreCache {
    /// The hardware default.
    pub const DEFAULT: Self = Self {
        volatile: false,
        l1: L1Policy::Default,
        hint: None,
    };
    /// Volatile.
    pub const VOLATILE: Self = Self {
        volatile: true,
        ..Self::DEFAULT
    };

    /// Sets the cache operator or L1 eviction priority.
    pub const fn l1(self, l1: L1Policy) -> Self {
        Self { l1, ..self }
    }

    /// Sets the L2 cache hint.
    pub const fn hint(self, hint: CacheHint) -> Self {
        let hint = Some(hint);
        Self { hint, ..self }
    }

    fn volatile(&self) -> &'static str {
        if self.volatile { ".volatile" } else { "" }
    }

    pub(super) fn name(&self) -> String {
        format!(
            "{}{}{}{}",
            self.volatile(),
            self.l1.operator(),
            self.l1.priority(),
            hint_name(self.hint)
        )
    }

    pub(super) fn effects(&self, e: &mut dyn Effects) {
        hint_effects(e, self.hint);
    }

    /// Returns the suffixes before and after the state space, and the cache-policy operand.
    pub(super) fn asm(&self, a: &mut dyn Asm) -> (&'static str, String, String) {
        let (hint, policy) = hint_asm(a, self.hint);
        let (operator, priority) = (self.l1.operator(), self.l1.priority());
        (
            self.volatile(),
            format!("{operator}{priority}{hint}"),
            policy,
        )
    }

    pub(super) fn legal(&self, at: &MemoryAddress) -> Result<(), String> {
        let has_modifiers = self.l1 != L1Policy::Default || self.hint.is_some();
        if matches!(at, MemoryAddress::Shared(_)) && has_modifiers {
            return Err(format!(
                "store{} on a shared-memory tile: cache modifiers require a global address",
                self.name()
            ));
        }
        if self.volatile && has_modifiers {
            return Err(format!(
                "store{}: a volatile store has no cache operator, eviction priority or cache hint",
                self.name()
            ));
        }
        if matches!(self.l1, L1Policy::LastUse | L1Policy::Refetch) {
            return Err(format!(
                "store{}: the cache operator {} applies to loads only",
                self.name(),
                self.l1.operator()
            ));
        }
        Ok(())
    }
}
