//! Static properties of ops, derived from their effects.

use std::collections::HashSet;
use warpline_ir::ops::memory::LoadPath;
use warpline_ir::{
    AccessKind, BarRef, Completion, Effects, Kernel, MemoryAccess, MemoryAddress, MemoryRegion, Op,
    Operand, Proxy, RegId, Scope, SyncOp, TileId, Type,
};

/// The properties of an op that the executor uses at run time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    /// Whether another warp can observe the op.
    pub(crate) visible: bool,
    /// Whether it writes memory without reading it.
    pub(crate) only_writes: bool,
    /// Whether it is a strong read without a write.
    pub(crate) only_reads: bool,
    /// Whether it is a read-only load (`ld.global.nc`).
    pub(crate) read_only: bool,
    /// Whether it is a volatile access: strong, but not an atomic.
    pub(crate) strong: bool,
    /// Whether it is used to poll.
    pub(crate) polls: bool,
    /// Whether it accesses another CTA of the cluster.
    pub(crate) remote: bool,
    /// Whether it ends the warp.
    pub(crate) exits: bool,
    /// The tile that it writes, directly or through an engine.
    pub(crate) writes: Option<TileId>,
}

/// Collects the effects of an op.
pub(crate) struct EffectsCollector<'k> {
    kernel: &'k Kernel,
    /// The registers that it uses.
    pub(crate) regs: HashSet<RegId>,
    /// The properties for run time.
    pub(crate) facts: Facts,
    /// Whether it is a wgmma.
    pub(crate) wgmma: bool,
    /// Whether it is `setmaxnreg`.
    pub(crate) moves_registers: bool,
    /// Whether it is `cp.async` or `cp.async.mbarrier.arrive`.
    pub(crate) copies: bool,
    /// Whether it belongs to a bulk group.
    pub(crate) bulks: bool,
    /// Whether it is `mbarrier.inval`.
    pub(crate) ends_bars: bool,
    /// Whether it is a fence that turns relaxed accesses into releases or acquires.
    pub(crate) fences: bool,
    /// Whether it communicates with other CTAs through global memory.
    pub(crate) communicates: bool,
    /// An undeclared object that it uses.
    pub(crate) undeclared: Option<String>,
}

impl<'k> EffectsCollector<'k> {
    /// Collects the effects of an op.
    pub(crate) fn of(kernel: &'k Kernel, op: &Op) -> Self {
        let mut seen = Self {
            kernel,
            regs: HashSet::new(),
            facts: Facts::default(),
            wgmma: false,
            moves_registers: false,
            copies: false,
            bulks: false,
            ends_bars: false,
            fences: false,
            communicates: false,
            undeclared: None,
        };
        op.effects(&mut seen);
        let facts = &mut seen.facts;
        match op {
            Op::Nanosleep(_) => facts.polls = true,
            Op::Load(load) => {
                facts.read_only = load.cache.path == LoadPath::ReadOnly;
                facts.strong = load.cache.is_volatile();
                facts.polls = facts.strong;
                facts.only_reads = facts.strong;
            }
            Op::Store(store) => facts.strong = store.cache.volatile,
            Op::StrongLoad(_) => facts.only_reads = true,
            Op::StrongStore(_) => facts.only_writes = true,
            _ => {}
        }
        seen
    }

    fn declared(&mut self, what: impl std::fmt::Display, index: usize, of: usize) {
        if index >= of {
            self.undeclared = Some(what.to_string());
        }
    }

    fn tile(&mut self, t: TileId, access: AccessKind) {
        self.declared(t, t.index(), self.kernel.tiles.len());
        if access != AccessKind::Read {
            self.facts.writes = Some(t);
        }
    }

    fn bar(&mut self, b: &BarRef) {
        self.declared(b.bar, b.bar.index(), self.kernel.barriers.len());
    }

    /// Records the tile, barrier or parameter of an access; returns whether it is in another CTA.
    fn place(&mut self, t: &MemoryAccess) -> bool {
        if let Completion::Bytes(bar) = &t.completion {
            self.bar(bar);
        }
        match &t.memory {
            MemoryRegion::PerLane(MemoryAddress::Shared(p), _)
            | MemoryRegion::Shared(p, _)
            | MemoryRegion::MatrixRows(p, _) => {
                self.tile(p.tile, t.access);
                p.peer.is_some()
            }
            MemoryRegion::View(v) => {
                self.tile(v.tile, t.access);
                v.peer.is_some()
            }
            MemoryRegion::Tensor(p) => {
                self.declared(p, p.index(), self.kernel.params.len());
                false
            }
            _ => false,
        }
    }
}

impl Effects for EffectsCollector<'_> {
    fn def(&mut self, r: RegId) {
        self.regs.insert(r);
    }

    fn arg(&mut self, o: Operand, _: Type) {
        self.regs.extend(o.as_reg());
    }

    fn access(&mut self, t: &MemoryAccess) {
        t.operands(&mut |o| self.regs.extend(o.as_reg()));
        self.facts.visible = true;
        self.facts.only_writes |= t.proxy == Proxy::Generic && t.access == AccessKind::Write;
        self.wgmma |= t.proxy == Proxy::Wgmma;
        self.copies |= t.completion == Completion::CopyGroup;
        self.bulks |= t.completion == Completion::BulkGroup;
        self.facts.remote |= self.place(t) || t.multicast.is_some();
        let global = matches!(
            t.memory,
            MemoryRegion::PerLane(MemoryAddress::Global { .. }, _)
                | MemoryRegion::Global(..)
                | MemoryRegion::Tensor(_)
        );
        self.communicates |= global && t.access == AccessKind::Atomic;
        if let MemoryRegion::Register(r) = t.memory {
            self.regs.insert(r);
        }
    }

    fn sync(&mut self, s: &SyncOp) {
        s.operands(&mut |o, _| self.regs.extend(o.as_reg()));
        self.facts.visible = true;
        match s {
            SyncOp::Arrive { bar, .. } | SyncOp::ExpectTx { bar, .. } => {
                self.bar(bar);
                self.facts.remote |= bar.peer.is_some();
            }
            SyncOp::Init { bar, .. }
            | SyncOp::Inval { bar }
            | SyncOp::CopyArrive { bar, .. }
            | SyncOp::Wait { bar, .. }
            | SyncOp::Test { bar, .. } => self.bar(bar),
            SyncOp::NamedSync { bar, .. }
            | SyncOp::NamedArrive { bar, .. }
            | SyncOp::NamedReduce { bar, .. } => {
                self.declared(bar, bar.index(), self.kernel.named.len());
            }
            _ => {}
        }
        self.copies |= matches!(s, SyncOp::CopyArrive { .. });
        self.ends_bars |= matches!(s, SyncOp::Inval { .. });
        self.facts.exits |= matches!(s, SyncOp::Exit);
        self.fences |= matches!(s, SyncOp::Fence(f) if f.order().is_some());
        self.moves_registers |= matches!(s, SyncOp::SetMaxRegs { .. });
    }

    fn whole_warp(&mut self) {}

    fn orders(&mut self, scope: Scope) {
        self.facts.visible = true;
        self.communicates |= scope >= Scope::Gpu;
    }
}
