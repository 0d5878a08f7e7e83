//! What one op does, collected from its effects.

use warpline_ir::{
    Access, At, BarRef, Completion, Effects, Memory, Op, Operand, Place, RegId, Scope, Sync, Touch,
    Type, View,
};

/// How much of the CTA must reach an op together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, PartialOrd, Ord)]
pub enum Whole {
    /// Any lanes.
    #[default]
    No,
    /// All lanes of the warp.
    Warp,
    /// All warps of the warpgroup.
    Warpgroup,
}

/// Registers, memory and synchronisation of one op.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Registers it writes.
    pub defs: Vec<RegId>,
    /// Operands it reads, each once: those it names and those inside its
    /// places, views and barriers.
    pub reads: Vec<(Operand, Type)>,
    /// Memory it touches.
    pub touches: Vec<Touch>,
    /// Acts of synchronisation.
    pub syncs: Vec<Sync>,
    /// Who must reach it together.
    pub whole: Whole,
}

impl Facts {
    /// The facts of an op.
    pub fn of(op: &Op) -> Self {
        let mut facts = Self::default();
        op.effects(&mut facts);
        facts
    }

    /// Registers it reads in any case, itself or through an engine.
    pub fn uses(&self) -> impl Iterator<Item = RegId> {
        self.named_reads().chain(self.engine_reads())
    }

    /// Registers it reads itself.
    pub fn named_reads(&self) -> impl Iterator<Item = RegId> {
        self.reads.iter().filter_map(|(o, _)| o.as_reg())
    }

    /// Registers that an engine reads for it in any case. A product whose
    /// predicate is a register may overwrite its accumulators: they are not
    /// among them.
    pub fn engine_reads(&self) -> impl Iterator<Item = RegId> {
        let choice = |(o, ty): &(Operand, Type)| *ty == Type::Pred && o.as_reg().is_some();
        let may_overwrite = self.reads.iter().any(choice);
        self.touches
            .iter()
            .filter_map(move |t| match (t.memory, t.access) {
                (Memory::Register(r), Access::Read) => Some(r),
                (Memory::Register(r), Access::Atomic) if !may_overwrite => Some(r),
                _ => None,
            })
    }

    /// Rectangles of tiles it names.
    pub fn views(&self) -> impl Iterator<Item = &View> {
        self.touches.iter().filter_map(|t| match &t.memory {
            Memory::View(v) => Some(v),
            _ => None,
        })
    }

    /// Bytes of tiles it names, and how many from there at least.
    pub fn places(&self) -> impl Iterator<Item = (&Place, u64)> {
        self.touches.iter().filter_map(|t| match &t.memory {
            Memory::At(At::Shared(p), bytes) => Some((p, (*bytes).into())),
            Memory::Run(p, bytes) => Some((p, bytes.as_imm().unwrap_or(0))),
            Memory::Rows(p, _) => Some((p, 16)),
            _ => None,
        })
    }

    /// The mbarriers it names, each once.
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

    fn touch(&mut self, t: &Touch) {
        let address = match t.memory {
            Memory::At(At::Global { addr, .. }, _) | Memory::Global(addr, _) => Some(addr),
            _ => None,
        };
        // Registers of an engine have the type they have; all else counts or indexes.
        if !matches!(t.memory, Memory::Register(_)) {
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

    fn sync(&mut self, s: &Sync) {
        s.operands(&mut |o, ty| self.read(o, ty));
        self.syncs.push(*s);
    }

    fn whole_warp(&mut self) {
        self.whole = self.whole.max(Whole::Warp);
    }

    fn whole_warpgroup(&mut self) {
        self.whole = Whole::Warpgroup;
    }

    fn orders(&mut self, _scope: Scope) {}
}

/// The mbarrier an act of synchronisation is on.
fn barrier(s: &Sync) -> Option<BarRef> {
    match s {
        Sync::Init { bar, .. }
        | Sync::Inval { bar }
        | Sync::Arrive { bar, .. }
        | Sync::ExpectTx { bar, .. }
        | Sync::CopyArrive { bar, .. }
        | Sync::Wait { bar, .. }
        | Sync::Test { bar, .. } => Some(*bar),
        _ => None,
    }
}
