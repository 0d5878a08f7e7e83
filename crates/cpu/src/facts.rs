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
    /// Whether the op writes memory without reading it.
    pub(crate) only_writes: bool,
    /// Whether the op is a strong read without a write.
    pub(crate) only_reads: bool,
    /// Whether the op is a read-only load (`ld.global.nc`).
    pub(crate) read_only: bool,
    /// Whether the op is a volatile access, which is strong without being an atomic.
    pub(crate) is_volatile: bool,
    /// Whether the op polls, so that the warp yields after it.
    pub(crate) polls: bool,
    /// Whether the op accesses another CTA of the cluster.
    pub(crate) remote: bool,
    /// Whether the op ends the warp.
    pub(crate) exits: bool,
    /// The tile that it writes, directly or through an engine.
    pub(crate) written_tile: Option<TileId>,
}

/// The effects of an op.
pub(crate) struct EffectsCollector<'k> {
    kernel: &'k Kernel,
    /// The registers that it uses.
    pub(crate) regs: HashSet<RegId>,
    /// The properties for run time.
    pub(crate) facts: Facts,
    /// Whether the op is a wgmma.
    pub(crate) uses_wgmma: bool,
    /// Whether the op is `setmaxnreg`.
    pub(crate) runs_setmaxnreg: bool,
    /// Whether the op is `cp.async` or `cp.async.mbarrier.arrive`.
    pub(crate) uses_cp_async: bool,
    /// Whether the op belongs to a bulk group.
    pub(crate) uses_bulk_groups: bool,
    /// Whether the op is `mbarrier.inval`.
    pub(crate) invalidates_mbarriers: bool,
    /// Whether the op is a fence that turns relaxed accesses into releases or acquires.
    pub(crate) has_order_fences: bool,
    /// Whether the op communicates with other CTAs through global memory.
    pub(crate) communicates: bool,
    /// An undeclared object that it uses.
    pub(crate) undeclared: Option<String>,
}

impl<'k> EffectsCollector<'k> {
    /// Collects the effects of an op.
    pub(crate) fn of(kernel: &'k Kernel, op: &Op) -> Self {
        let mut collector = Self {
            kernel,
            regs: HashSet::new(),
            facts: Facts::default(),
            uses_wgmma: false,
            runs_setmaxnreg: false,
            uses_cp_async: false,
            uses_bulk_groups: false,
            invalidates_mbarriers: false,
            has_order_fences: false,
            communicates: false,
            undeclared: None,
        };
        op.effects(&mut collector);
        let facts = &mut collector.facts;
        match op {
            Op::Nanosleep(_) => facts.polls = true,
            Op::Load(load) => {
                facts.read_only = load.cache.path == LoadPath::ReadOnly;
                facts.is_volatile = load.cache.is_volatile();
                facts.polls = facts.is_volatile;
                facts.only_reads = facts.is_volatile;
            }
            Op::Store(store) => facts.is_volatile = store.cache.volatile,
            Op::StrongLoad(_) => facts.only_reads = true,
            Op::StrongStore(_) => facts.only_writes = true,
            _ => {}
        }
        collector
    }

    fn check_declared(&mut self, object: impl std::fmt::Display, index: usize, count: usize) {
        if index >= count {
            self.undeclared = Some(object.to_string());
        }
    }

    fn record_tile(&mut self, t: TileId, access: AccessKind) {
        self.check_declared(t, t.index(), self.kernel.tiles.len());
        if access != AccessKind::Read {
            self.facts.written_tile = Some(t);
        }
    }

    fn check_barrier(&mut self, b: &BarRef) {
        self.check_declared(b.bar, b.bar.index(), self.kernel.barriers.len());
    }

    /// Records the tile, barrier or parameter of an access; returns whether the access may reach
    /// another CTA.
    fn record_region(&mut self, t: &MemoryAccess) -> bool {
        if let Completion::Bytes(bar) = &t.completion {
            self.check_barrier(bar);
        }
        match &t.memory {
            MemoryRegion::PerLane(MemoryAddress::Shared(p), _)
            | MemoryRegion::Shared(p, _)
            | MemoryRegion::MatrixRows(p, _) => {
                self.record_tile(p.tile, t.access);
                p.peer.is_some()
            }
            MemoryRegion::View(v) => {
                self.record_tile(v.tile, t.access);
                v.peer.is_some()
            }
            MemoryRegion::Tensor(p) => {
                self.check_declared(p, p.index(), self.kernel.params.len());
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
        self.uses_wgmma |= t.proxy == Proxy::Wgmma;
        self.uses_cp_async |= t.completion == Completion::CopyGroup;
        self.uses_bulk_groups |= t.completion == Completion::BulkGroup;
        self.facts.remote |= self.record_region(t) || t.multicast.is_some();
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
                self.check_barrier(bar);
                self.facts.remote |= bar.peer.is_some();
            }
            SyncOp::Init { bar, .. }
            | SyncOp::Inval { bar }
            | SyncOp::CopyArrive { bar, .. }
            | SyncOp::Wait { bar, .. }
            | SyncOp::Test { bar, .. } => self.check_barrier(bar),
            SyncOp::NamedSync { bar, .. }
            | SyncOp::NamedArrive { bar, .. }
            | SyncOp::NamedReduce { bar, .. } => {
                self.check_declared(bar, bar.index(), self.kernel.named.len());
            }
            _ => {}
        }
        self.uses_cp_async |= matches!(s, SyncOp::CopyArrive { .. });
        self.invalidates_mbarriers |= matches!(s, SyncOp::Inval { .. });
        self.facts.exits |= matches!(s, SyncOp::Exit);
        self.has_order_fences |= matches!(s, SyncOp::Fence(f) if f.order().is_some());
        self.runs_setmaxnreg |= matches!(s, SyncOp::SetMaxRegs { .. });
    }

    fn whole_warp(&mut self) {}

    fn orders(&mut self, scope: Scope) {
        self.facts.visible = true;
        self.communicates |= scope >= Scope::Gpu;
    }
}
