//! How loads and stores use the caches. On the CPU there is none: hints change nothing.

use crate::machine::{Asm, Effects};
use crate::ops::policy::{CacheHint, hint_asm, hint_effects, hint_name};
use crate::value::At;

/// What the L1 does with the line of an access to global memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum L1 {
    /// As the hardware does by itself (`.ca`, `.wb`).
    #[default]
    Default,
    /// Left out: the L2 alone (`.cg`).
    Bypass,
    /// Used once: goes before others in the L2 too (`.cs`).
    Streaming,
    /// Read for the last time: its line need not be kept (loads, `.lu`).
    LastUse,
    /// Fetched again, whatever is cached (loads, `.cv`).
    Again,
    /// Written through to memory (stores, `.wt`).
    Through,
    /// Takes no line for it.
    NoAllocate,
    /// Goes before others.
    EvictFirst,
    /// Goes after others.
    EvictLast,
    /// As other lines, whatever it was.
    EvictNormal,
    /// Keeps the place it has.
    EvictUnchanged,
}

impl L1 {
    /// The cache operator, in front of `.nc`.
    fn operator(self) -> &'static str {
        match self {
            L1::Bypass => ".cg",
            L1::Streaming => ".cs",
            L1::LastUse => ".lu",
            L1::Again => ".cv",
            L1::Through => ".wt",
            _ => "",
        }
    }

    /// The eviction priority, behind it.
    fn priority(self) -> &'static str {
        match self {
            L1::NoAllocate => ".L1::no_allocate",
            L1::EvictFirst => ".L1::evict_first",
            L1::EvictLast => ".L1::evict_last",
            L1::EvictNormal => ".L1::evict_normal",
            L1::EvictUnchanged => ".L1::evict_unchanged",
            _ => "",
        }
    }
}

/// How much of its neighbourhood a load brings into the L2.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fetch {
    /// 64 bytes.
    B64,
    /// 128 bytes.
    B128,
    /// 256 bytes.
    B256,
}

impl Fetch {
    /// The suffix in PTX and in text; nothing where the hardware decides.
    pub(in crate::ops) fn suffix(fetch: Option<Self>) -> &'static str {
        match fetch {
            None => "",
            Some(Fetch::B64) => ".L2::64B",
            Some(Fetch::B128) => ".L2::128B",
            Some(Fetch::B256) => ".L2::256B",
        }
    }
}

/// The way a load takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum LoadPath {
    /// The usual one.
    #[default]
    Coherent,
    /// The read-only one: nobody writes these bytes during the launch (global memory).
    ReadOnly,
    /// Volatile: as often as written, and never from a register.
    Volatile,
}

/// How a load uses the caches.
///
/// ```
/// use warpline_ir::ops::memory::{Fetch, L1, LoadCache};
/// let once = LoadCache::READ_ONLY.l1(L1::NoAllocate).fetch(Fetch::B256);
/// # assert!(!once.is_volatile());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LoadCache {
    /// The way it takes.
    pub path: LoadPath,
    /// What the L1 does.
    pub l1: L1,
    /// What the L2 fetches on the way.
    pub fetch: Option<Fetch>,
    /// How long the L2 keeps it.
    pub hint: Option<CacheHint>,
}

impl LoadCache {
    /// As the hardware does by itself.
    pub const DEFAULT: Self = Self {
        path: LoadPath::Coherent,
        l1: L1::Default,
        fetch: None,
        hint: None,
    };
    /// Through the read-only path.
    pub const READ_ONLY: Self = Self {
        path: LoadPath::ReadOnly,
        ..Self::DEFAULT
    };
    /// Volatile.
    pub const VOLATILE: Self = Self {
        path: LoadPath::Volatile,
        ..Self::DEFAULT
    };

    /// The same with another use of the L1.
    pub const fn l1(self, l1: L1) -> Self {
        Self { l1, ..self }
    }

    /// The same with a fetch into the L2.
    pub const fn fetch(self, fetch: Fetch) -> Self {
        let fetch = Some(fetch);
        Self { fetch, ..self }
    }

    /// The same with a hint for the L2.
    pub const fn hint(self, hint: CacheHint) -> Self {
        let hint = Some(hint);
        Self { hint, ..self }
    }

    /// Is it volatile?
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
            Fetch::suffix(self.fetch),
            hint_name(self.hint)
        )
    }

    pub(super) fn effects(&self, e: &mut dyn Effects) {
        hint_effects(e, self.hint);
    }

    /// What stands before the state space, what behind it, and the operand at the end.
    pub(super) fn asm(&self, a: &mut dyn Asm) -> (&'static str, String, String) {
        let (before, path) = match self.path {
            LoadPath::Coherent => ("", ""),
            LoadPath::ReadOnly => ("", ".nc"),
            LoadPath::Volatile => (".volatile", ""),
        };
        let (hint, policy) = hint_asm(a, self.hint);
        let (operator, priority) = (self.l1.operator(), self.l1.priority());
        let fetch = Fetch::suffix(self.fetch);
        (
            before,
            format!("{operator}{path}{priority}{hint}{fetch}"),
            policy,
        )
    }

    pub(super) fn legal(&self, at: &At) -> Result<(), String> {
        let plain = Self {
            path: match self.path {
                LoadPath::ReadOnly => LoadPath::ReadOnly,
                _ => LoadPath::Coherent,
            },
            ..*self
        };
        if matches!(at, At::Shared(_)) && plain != Self::DEFAULT {
            return Err(format!(
                "load{} is a load of global memory, not of a tile",
                self.name()
            ));
        }
        if self.is_volatile() && (self.l1 != L1::Default || self.hint.is_some()) {
            return Err(format!(
                "a volatile load takes no cache operator, priority or hint, as load{} has",
                self.name()
            ));
        }
        let read_only = self.path == LoadPath::ReadOnly;
        if self.l1 == L1::Through || read_only && matches!(self.l1, L1::LastUse | L1::Again) {
            return Err(format!(
                "{} is for {}, not for load{}",
                self.l1.operator(),
                if read_only && self.l1 != L1::Through {
                    "coherent loads"
                } else {
                    "stores"
                },
                self.name()
            ));
        }
        Ok(())
    }
}

/// How a store uses the caches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StoreCache {
    /// Volatile: as often as written, and in order.
    pub volatile: bool,
    /// What the L1 does.
    pub l1: L1,
    /// How long the L2 keeps it.
    pub hint: Option<CacheHint>,
}

impl StoreCache {
    /// As the hardware does by itself.
    pub const DEFAULT: Self = Self {
        volatile: false,
        l1: L1::Default,
        hint: None,
    };
    /// Volatile.
    pub const VOLATILE: Self = Self {
        volatile: true,
        ..Self::DEFAULT
    };

    /// The same with another use of the L1.
    pub const fn l1(self, l1: L1) -> Self {
        Self { l1, ..self }
    }

    /// The same with a hint for the L2.
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

    /// What stands before the state space, what behind it, and the operand at the end.
    pub(super) fn asm(&self, a: &mut dyn Asm) -> (&'static str, String, String) {
        let (hint, policy) = hint_asm(a, self.hint);
        let (operator, priority) = (self.l1.operator(), self.l1.priority());
        (
            self.volatile(),
            format!("{operator}{priority}{hint}"),
            policy,
        )
    }

    pub(super) fn legal(&self, at: &At) -> Result<(), String> {
        let hints = self.l1 != L1::Default || self.hint.is_some();
        if matches!(at, At::Shared(_)) && hints {
            return Err(format!(
                "store{} is a store to global memory, not to a tile",
                self.name()
            ));
        }
        if self.volatile && hints {
            return Err(format!(
                "a volatile store takes no cache operator, priority or hint, as store{} has",
                self.name()
            ));
        }
        if matches!(self.l1, L1::LastUse | L1::Again) {
            return Err(format!(
                "{} is for loads, not for store{}",
                self.l1.operator(),
                self.name()
            ));
        }
        Ok(())
    }
}
