//! The registers, memory and synchronization of one op, collected from its effects.

use warpline_ir::{
    AccessKind, BarRef, Completion, Effects, MemoryAccess, MemoryAddress, MemoryRegion, Op,
    Operand, RegId, Scope, SharedAddress, SyncOp, Type, View,
};

/// The threads that must reach an op together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, PartialOrd, Ord)]
pub enum Convergence {
    /// Any lanes.
    #[default]
    None,
    /// All lanes of the warp.
    Warp,
    /// All warps of the warpgroup.
    Warpgroup,
}

/// The registers, memory and synchronization of one op.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Registers that the op writes.
    pub defs: Vec<RegId>,
    /// Operands that the op reads, each once: those it names and those inside its
    /// addresses, views and barriers.
    pub reads: Vec<(Operand, Type)>,
    /// Memory accesses.
    pub touches: Vec<MemoryAccess>,
    /// Synchronization operations.
    pub syncs: Vec<SyncOp>,
    /// The threads that must reach the op together.
    pub convergence: Convergence,
}

impl Facts {
    /// Collects the facts of an op.
    pub fn of(op: &Op) -> Self {
        let mut facts = Self::default();
        op.effects(&mut facts);
        facts
    }

    /// Returns the registers that the op always reads, itself or through an asynchronous engine.
    pub fn uses(&self) -> impl Iterator<Item = RegId> {
        self.named_reads().chain(self.engine_reads())
    }

    /// Returns the registers that the op itself reads.
    pub fn named_reads(&self) -> impl Iterator<Item = RegId> {
        self.reads.iter().filter_map(|(o, _)| o.as_reg())
    }

    /// Returns the registers that an asynchronous engine always reads for the op. A wgmma whose
    /// scale predicate is a register may overwrite its accumulators; these are not included.
    pub fn engine_reads(&self) -> impl Iterator<Item = RegId> {
        let choice = |(o, ty): &(Operand, Type)| *ty == Type::Pred && o.as_reg().is_some();
        let may_overwrite = self.reads.iter().any(choice);
        self.touches
            .iter()
            .filter_map(move |t| match (t.memory, t.access) {
                (MemoryRegion::Register(r), AccessKind::Read) => Some(r),
                (MemoryRegion::Register(r), AccessKind::Atomic) if !may_overwrite => Some(r),
                _ => None,
            })
    }

    /// Returns the views that the op names.
    pub fn views(&self) -> impl Iterator<Item = &View> {
        self.touches.iter().filter_map(|t| match &t.memory {
            MemoryRegion::View(v) => Some(v),
            _ => None,
        })
    }

    /// Returns the shared-memory addresses that the op names, each with the least number of bytes
    /// accessed there.
    pub fn places(&self) -> impl Iterator<Item = (&SharedAddress, u64)> {
        self.touches.iter().filter_map(|t| match &t.memory {
            MemoryRegion::PerLane(MemoryAddress::Shared(p), bytes) => Some((p, (*bytes).into())),
            MemoryRegion::Shared(p, bytes) => Some((p, bytes.as_imm().unwrap_or(0))),
            MemoryRegion::MatrixRows(p, _) => Some((p, 16)),
            _ => None,
        })
    }

    /// Returns the mbarriers that the op names, each once.
    pub fn barriers(&self) -> Vec<BarRef> {
        let done = self.touches.iter().filter_map(|t| match t.completion {
            Completion::Bytes(bar) => Some(bar),
            _ => None,
        });
        let mut all: Vec<BarRef> = Vec::new();
        for bar in self.syncs.iter().filter_map(barrier).chain(done) {
            if !all.contains(&bar) {
                all.push(bar);
            }
        }
        all
    }

    fn read(&mut self, o: Operand, ty: Type) {
        if !self.reads.contains(&(o, ty)) {
            self.reads.push((o, ty));
        }
    }
}

impl Effects for Facts {
    fn def(&mut self, r: RegId) {
        self.defs.push(r);
    }

    fn arg(&mut self, o: Operand, ty: Type) {
        self.read(o, ty);
    }

    fn access(&mut self, t: &MemoryAccess) {
        let address = match t.memory {
            MemoryRegion::PerLane(MemoryAddress::Global { addr, .. }, _)
            | MemoryRegion::Global(addr, _) => Some(addr),
            _ => None,
        };
        // Register operands of an engine keep their type; all other operands count or index.
        if !matches!(t.memory, MemoryRegion::Register(_)) {
            t.operands(&mut |o| {
                let ty = if Some(o) == address {
                    Type::U64
                } else {
                    Type::U32
                };
                self.read(o, ty);
            });
        }
        self.touches.push(*t);
    }

    fn sync(&mut self, s: &SyncOp) {
        s.operands(&mut |o, ty| self.read(o, ty));
        self.syncs.push(*s);
    }

    fn whole_warp(&mut self) {
        self.convergence = self.convergence.max(Convergence::Warp);
    }

    fn whole_warpgroup(&mut self) {
        self.convergence = Convergence::Warpgroup;
    }

    fn orders(&mut self, _scope: Scope) {}
}

/// Returns the mbarrier of a synchronization operation.
fn barrier(s: &SyncOp) -> Option<BarRef> {
    match s {
        SyncOp::Init { bar, .. }
        | SyncOp::Inval { bar }
        | SyncOp::Arrive { bar, .. }
        | SyncOp::ExpectTx { bar, .. }
        | SyncOp::CopyArrive { bar, .. }
        | SyncOp::Wait { bar, .. }
        | SyncOp::Test { bar, .. } => Some(*bar),
        _ => None,
    }
}
