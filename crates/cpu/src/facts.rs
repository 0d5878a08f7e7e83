//! What the executor reads in an op's effects, before it runs.

use std::collections::HashSet;
use warpline_ir::ops::memory::LoadPath;
use warpline_ir::{
    Access, At, BarRef, Completion, Effects, Kernel, Memory, Op, Operand, Proxy, RegId, Scope,
    Sync, TileId, Touch, Type,
};

/// What the executor wants to know of an op beforehand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    /// Can another warp see that it ran?
    pub(crate) visible: bool,
    /// Does it write memory without reading it?
    pub(crate) only_writes: bool,
    /// Does it read memory in one step, and never write it?
    pub(crate) only_reads: bool,
    /// Does it read global memory that nobody may write during the launch?
    pub(crate) read_only: bool,
    /// Does it race with no other strong access, without being an atomic?
    pub(crate) strong: bool,
    /// Is it there to be run again until something changes?
    pub(crate) polls: bool,
    /// Does it reach into another CTA of the cluster?
    pub(crate) remote: bool,
    /// Does it end the warp?
    pub(crate) exits: bool,
    /// The tile that it writes, itself or through an engine.
    pub(crate) writes: Option<TileId>,
}

/// Reads an op's effects.
pub(crate) struct Seen<'k> {
    kernel: &'k Kernel,
    /// Registers it uses.
    pub(crate) regs: HashSet<RegId>,
    /// What the executor keeps.
    pub(crate) facts: Facts,
    /// Does it run wgmmas?
    pub(crate) wgmma: bool,
    /// Does it move registers?
    pub(crate) moves_registers: bool,
    /// Do its lanes copy by themselves, or arrive behind such copies?
    pub(crate) copies: bool,
    /// Does it give work to bulk groups?
    pub(crate) bulks: bool,
    /// Does it end an mbarrier?
    pub(crate) ends_bars: bool,
    /// Is it a fence that makes releases and acquires of relaxed accesses?
    pub(crate) fences: bool,
    /// Does it speak to other CTAs through global memory?
    pub(crate) communicates: bool,
    /// Something it uses that the kernel does not declare.
    pub(crate) undeclared: Option<String>,
}

impl<'k> Seen<'k> {
    /// What an op says of itself.
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

    fn tile(&mut self, t: TileId, access: Access) {
        self.declared(t, t.index(), self.kernel.tiles.len());
        if access != Access::Read {
            self.facts.writes = Some(t);
        }
    }

    fn bar(&mut self, b: &BarRef) {
        self.declared(b.bar, b.bar.index(), self.kernel.barriers.len());
    }

    /// Notes the tile, barrier or parameter behind an access; says whether it is in another CTA.
    fn place(&mut self, t: &Touch) -> bool {
        if let Completion::Bytes(bar) = &t.completion {
            self.bar(bar);
        }
        match &t.memory {
            Memory::At(At::Shared(p), _) | Memory::Run(p, _) | Memory::Rows(p, _) => {
                self.tile(p.tile, t.access);
                p.peer.is_some()
            }
            Memory::View(v) => {
                self.tile(v.tile, t.access);
                v.peer.is_some()
            }
            Memory::Tensor(p) => {
                self.declared(p, p.index(), self.kernel.params.len());
                false
            }
            _ => false,
        }
    }
}

impl Effects for Seen<'_> {
    fn def(&mut self, r: RegId) {
        self.regs.insert(r);
    }

    fn arg(&mut self, o: Operand, _: Type) {
        self.regs.extend(o.as_reg());
    }

    fn touch(&mut self, t: &Touch) {
        t.operands(&mut |o| self.regs.extend(o.as_reg()));
        self.facts.visible = true;
        self.facts.only_writes |= t.proxy == Proxy::Generic && t.access == Access::Write;
        self.wgmma |= t.proxy == Proxy::Wgmma;
        self.copies |= t.completion == Completion::CopyGroup;
        self.bulks |= t.completion == Completion::BulkGroup;
        self.facts.remote |= self.place(t) || t.multicast.is_some();
        let global = matches!(
            t.memory,
            Memory::At(At::Global { .. }, _) | Memory::Global(..) | Memory::Tensor(_)
        );
        self.communicates |= global && t.access == Access::Atomic;
        if let Memory::Register(r) = t.memory {
            self.regs.insert(r);
        }
    }

    fn sync(&mut self, s: &Sync) {
        s.operands(&mut |o, _| self.regs.extend(o.as_reg()));
        self.facts.visible = true;
        match s {
            Sync::Arrive { bar, .. } | Sync::ExpectTx { bar, .. } => {
                self.bar(bar);
                self.facts.remote |= bar.peer.is_some();
            }
            Sync::Init { bar, .. }
            | Sync::Inval { bar }
            | Sync::CopyArrive { bar, .. }
            | Sync::Wait { bar, .. }
            | Sync::Test { bar, .. } => self.bar(bar),
            Sync::NamedSync { bar, .. }
            | Sync::NamedArrive { bar, .. }
            | Sync::NamedTally { bar, .. } => {
                self.declared(bar, bar.index(), self.kernel.named.len());
            }
            _ => {}
        }
        self.copies |= matches!(s, Sync::CopyArrive { .. });
        self.ends_bars |= matches!(s, Sync::Inval { .. });
        self.facts.exits |= matches!(s, Sync::Exit);
        self.fences |= matches!(s, Sync::Fence(f) if f.order().is_some());
        self.moves_registers |= matches!(s, Sync::SetMaxRegs { .. });
    }

    fn whole_warp(&mut self) {}

    fn orders(&mut self, scope: Scope) {
        self.facts.visible = true;
        self.communicates |= scope >= Scope::Gpu;
    }
}
