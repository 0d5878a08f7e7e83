//! The effects of ops on the registers of wgmmas.

use crate::bits::Bits;
use crate::rules::{OpSite, RuleContext};
use warpline_ir::ops::wgmma::{MatrixA, Wgmma};
use warpline_ir::{Loc, Op, RegId, RoleId, SyncOp};

/// The part of an op that concerns wgmmas.
pub(super) enum Act<'k> {
    Access(Access<'k>),
    /// Issues the wgmma of this index.
    Wgmma(usize),
    Fence,
    Commit,
    /// Waits until at most this many groups are in flight.
    Wait(usize),
}

/// An access of another op to registers that wgmmas use.
pub(super) struct Access<'k> {
    pub(super) at: Origin,
    pub(super) op: &'k Op,
    pub(super) regs: Vec<usize>,
}

/// One wgmma.
pub(super) struct IssuedWgmma {
    pub(super) at: Origin,
    /// The accumulators, in the order of the instruction.
    pub(super) ordered_accumulators: Vec<RegId>,
    /// The columns N and the depth K.
    pub(super) shape: (u32, u32),
    /// The accumulators as a set.
    pub(super) accumulators: Bits,
    /// The registers of its A operand.
    pub(super) a_registers: Bits,
    /// All its registers.
    pub(super) all: Bits,
}

/// The position of an op.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    pub(super) loc: Loc,
    /// The role; `None` for the prologue and the epilogue.
    pub(super) role: Option<RoleId>,
}

/// The wgmmas of a role and their registers.
pub(super) struct Acts {
    /// The registers that wgmmas use; all sets index these.
    pub(super) regs: Vec<RegId>,
    /// By register of the kernel: its index in `regs`.
    number: Vec<Option<usize>>,
    pub(super) wgmmas: Vec<IssuedWgmma>,
    /// The number of wgmmas.
    pub(super) issues: usize,
    /// The number of ages of committed groups that a wait distinguishes; the last one represents
    /// all older groups.
    pub(super) ages: usize,
}

/// A wait that leaves more groups in flight than this is assumed to cover none.
const MAX_PENDING: usize = 8;

impl Acts {
    /// Collects the wgmmas of a role; `None` if it has none.
    pub(super) fn of(cx: &RuleContext, role: RoleId) -> Option<Self> {
        let mut acts = Self {
            regs: Vec::new(),
            number: vec![None; cx.kernel.regs.len()],
            wgmmas: Vec::new(),
            issues: 0,
            ages: 1,
        };
        for op in cx.ops_of(role) {
            match op.op {
                Op::Wgmma(wgmma) => {
                    acts.issues += 1;
                    acts.add(&wgmma.d);
                    acts.add(a_registers(wgmma));
                }
                Op::WgmmaWait(wait) if wait.pending as usize <= MAX_PENDING => {
                    acts.ages = acts.ages.max(wait.pending as usize + 1);
                }
                _ => {}
            }
        }
        (acts.issues > 0).then_some(acts)
    }

    fn add(&mut self, regs: &[RegId]) {
        for &r in regs {
            let number = &mut self.number[r.index()];
            if number.is_none() {
                *number = Some(self.regs.len());
                self.regs.push(r);
            }
        }
    }

    /// Returns the effect of an op. Wgmmas are numbered in program order.
    pub(super) fn read<'k>(&mut self, op: &OpSite<'k>) -> Option<Act<'k>> {
        let at = Origin {
            loc: op.loc(),
            role: op.site.role,
        };
        if let Op::Wgmma(wgmma) = op.op {
            let wgmma = self.wgmma(wgmma, at);
            self.wgmmas.push(wgmma);
            return Some(Act::Wgmma(self.wgmmas.len() - 1));
        }
        let act = op.facts.syncs.iter().find_map(|s| match s {
            SyncOp::WgmmaFence => Some(Act::Fence),
            SyncOp::WgmmaCommit => Some(Act::Commit),
            SyncOp::WgmmaWait { pending } => Some(Act::Wait(*pending as usize)),
            _ => None,
        });
        act.or_else(|| {
            let regs = op.facts.uses().chain(op.facts.defs.iter().copied());
            let regs: Vec<_> = regs.filter_map(|r| self.number[r.index()]).collect();
            let op = op.op;
            (!regs.is_empty()).then_some(Act::Access(Access { at, op, regs }))
        })
    }

    fn wgmma(&self, wgmma: &Wgmma, at: Origin) -> IssuedWgmma {
        let set = |regs: &[RegId]| {
            let mut set = Bits::new(self.regs.len());
            let numbers = regs.iter().filter_map(|r| self.number[r.index()]);
            numbers.for_each(|r| set.insert(r));
            set
        };
        let (accumulators, a_registers) = (set(&wgmma.d), set(a_registers(wgmma)));
        let mut all = accumulators.clone();
        all.add(&a_registers);
        IssuedWgmma {
            at,
            ordered_accumulators: wgmma.d.clone(),
            shape: (wgmma.n, wgmma.a_ty.k()),
            accumulators,
            a_registers,
            all,
        }
    }
}

/// Returns the registers of the A operand of a wgmma.
fn a_registers(wgmma: &Wgmma) -> &[RegId] {
    match &wgmma.a {
        MatrixA::Regs(regs) => regs,
        MatrixA::Shared(..) => &[],
    }
}
