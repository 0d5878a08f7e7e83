//! Loops that ask global memory for a word until another thread has changed it.

use super::{Case, OpSite};
use std::ops::Range;
use warpline_ir::ops::memory::LoadPath;
use warpline_ir::{At, Block, MemoryOrder, Op, Operand, RegId, Scope, StmtKind};

/// The load of such a loop.
#[derive(Clone, Copy)]
pub(super) struct Poll {
    /// Its number among the ops.
    pub(super) op: usize,
    pub(super) addr: Operand,
    pub(super) offset: i32,
    /// Its order; `None`: it is not strong.
    pub(super) order: Option<MemoryOrder>,
}

impl Poll {
    /// All polls of a kernel: loads of a fixed address by whose value a loop ends.
    pub(super) fn all(case: &Case) -> Vec<Self> {
        let loads = case.ops.iter().any(|op| load(op).is_some());
        if !loads {
            return Vec::new();
        }
        let mut loops = Vec::new();
        let mut next = 0;
        let kernel = case.kernel;
        let bodies = kernel.roles.iter().map(|r| &r.body);
        for block in std::iter::once(&kernel.prologue)
            .chain(bodies)
            .chain([&kernel.epilogue])
        {
            find_loops(block, &mut next, &mut loops);
        }
        let mut defs = vec![Vec::new(); kernel.regs.len()];
        for (i, op) in case.ops.iter().enumerate() {
            op.facts.defs.iter().for_each(|r| defs[r.index()].push(i));
        }
        let mut polls = Vec::new();
        for (cond, inside) in loops {
            let slice = Slice {
                case,
                defs: &defs,
                inside,
            };
            slice.loads(cond, &mut polls);
        }
        polls.sort_by_key(|p| p.op);
        polls.dedup_by_key(|p| p.op);
        polls
    }
}

/// A load of global memory: its address, and its order if it is strong.
fn load(op: &OpSite) -> Option<(Operand, i32, Option<MemoryOrder>)> {
    let (at, order) = match op.op {
        Op::StrongLoad(o) => (o.at, Some(o.order)),
        Op::Load(o) if o.cache.path == LoadPath::Volatile => {
            (o.at, Some(MemoryOrder::relaxed(Scope::Sys)))
        }
        Op::Load(o) => (o.at, None),
        _ => return None,
    };
    match at {
        At::Global { addr, offset } => Some((addr, offset, order)),
        At::Shared(_) => None,
    }
}

/// Collects every `while`: its predicate, and the numbers of the ops inside.
fn find_loops(block: &Block, next: &mut usize, found: &mut Vec<(RegId, Range<usize>)>) {
    for s in &block.0 {
        match &s.kind {
            StmtKind::Op(_) => *next += 1,
            StmtKind::If { then, other, .. } => {
                find_loops(then, next, found);
                find_loops(other, next, found);
            }
            StmtKind::For { body, .. } | StmtKind::Elect { body } => {
                find_loops(body, next, found);
            }
            StmtKind::While { head, cond, body } => {
                let first = *next;
                find_loops(head, next, found);
                find_loops(body, next, found);
                found.push((*cond, first..*next));
            }
        }
    }
}

/// What the values of a loop are made of, inside of it.
struct Slice<'a, 'k> {
    case: &'a Case<'k>,
    /// By register: the ops that write it.
    defs: &'a [Vec<usize>],
    inside: Range<usize>,
}

impl Slice<'_, '_> {
    /// The ops of the loop that write a register.
    fn made(&self, r: RegId) -> impl Iterator<Item = usize> {
        let ops = self.defs[r.index()].iter().copied();
        ops.filter(|i| self.inside.contains(i))
    }

    /// Adds the loads of fixed addresses that a register is computed from.
    fn loads(&self, from: RegId, polls: &mut Vec<Poll>) {
        let mut seen = vec![from];
        let mut at = 0;
        while let Some(&r) = seen.get(at) {
            at += 1;
            for i in self.made(r) {
                let op = &self.case.ops[i];
                if let Some((addr, offset, order)) = load(op) {
                    if self.is_fixed(addr, 0) {
                        polls.push(Poll {
                            op: i,
                            addr,
                            offset,
                            order,
                        });
                    }
                } else if op.facts.touches.is_empty() {
                    for r in op.facts.named_reads() {
                        if !seen.contains(&r) {
                            seen.push(r);
                        }
                    }
                }
            }
        }
    }

    /// Is a value the same in every round?
    fn is_fixed(&self, o: Operand, depth: u32) -> bool {
        /// Sums longer than this are taken to change.
        const MOST: u32 = 16;
        let Some(r) = o.as_reg() else { return true };
        depth < MOST
            && self.made(r).all(|i| {
                let facts = &self.case.ops[i].facts;
                let mut reads = facts.named_reads();
                facts.touches.is_empty() && reads.all(|r| self.is_fixed(r.into(), depth + 1))
            })
    }
}
