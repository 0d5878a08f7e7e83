//! Flags that a thread reads once, without a loop: a branch on the value leads to data that another
//! thread wrote.
//!
//! A thread that reads the flag as set accesses the data. As in a polling loop, the read must
//! acquire, or the thread may read old data.

use super::claims::{GlobalAccess, OpPositions, global_accesses};
use super::control_flow::Guard;
use super::dependents::Dependents;
use super::global_words::{GlobalWord, Pointers};
use super::poll::{Poll, global_read};
use super::{OpSite, RuleContext};
use warpline_ir::{MemoryOrder, Op, Operand, RegId, RoleId, Scope, Special, SyncOp};

/// A load of a flag that leads to data of another thread.
pub(super) struct FlagRead {
    /// The index of the op.
    pub(super) op: usize,
    /// The memory order; `None` for a weak load.
    pub(super) order: Option<MemoryOrder>,
    pub(super) word: GlobalWord,
    /// The write that sets the flag.
    pub(super) flag_write: usize,
    /// The access before that write, to the data that the reader accesses.
    pub(super) before: usize,
    /// The accesses of the reader.
    pub(super) after: Vec<usize>,
}

impl FlagRead {
    /// Returns all flag reads of a kernel that do not acquire by themselves.
    pub(super) fn all(cx: &RuleContext, pointers: &Pointers, polls: &[Poll]) -> Vec<Self> {
        let loads: Vec<_> = (cx.ops.iter())
            .filter(|op| !polls.iter().any(|p| p.op == op.id))
            .filter_map(|op| load(op, pointers))
            .collect();
        let flag_writes: Vec<_> = (cx.ops.iter())
            .filter_map(|op| flag_write_of(op, pointers))
            .collect();
        let is_set = |l: &Load| flag_writes.iter().any(|r| r.1.may_equal(l.word));
        let loads: Vec<_> = loads.into_iter().filter(is_set).collect();
        let decides = |dependents: &Dependents| {
            let guarded = OpPositions::of(cx, dependents).guarded;
            guarded.contains(&true)
        };
        let from_any = Dependents::of(cx, |op| loads.iter().any(|l| l.op == op.id));
        if loads.is_empty() || !decides(&from_any) {
            return Vec::new();
        }
        let global_accesses = global_accesses(cx, pointers);
        let search = FlagReadSearch {
            cx,
            flag_writes: &flag_writes,
            global_accesses: &global_accesses,
            by_cta: Dependents::of(cx, names_cta),
        };
        loads.into_iter().filter_map(|l| search.find(l)).collect()
    }
}

/// A load that acquires nothing by itself.
struct Load {
    op: usize,
    order: Option<MemoryOrder>,
    word: GlobalWord,
}

fn load(op: &OpSite, pointers: &Pointers) -> Option<Load> {
    let (addr, offset, order, is_atomic) = global_read(op)?;
    let acquires = order.is_some_and(|o| o.sem.acquires() && o.scope >= Scope::Gpu);
    let word = pointers.word(addr, offset)?;
    let op = op.id;
    (!is_atomic && !acquires).then_some(Load { op, order, word })
}

/// Returns the word that an op sets: with a strong write, or with a weak write of a value other
/// than zero.
fn flag_write_of(op: &OpSite, pointers: &Pointers) -> Option<(usize, GlobalWord)> {
    let at = match op.op {
        Op::StrongStore(o) => o.at,
        Op::AtomicReduce(o) => o.at,
        Op::Atomic(o) => o.at,
        Op::Store(o) if o.src.iter().any(|x| *x != Operand::Imm(0)) => o.at,
        _ => return None,
    };
    match at {
        warpline_ir::MemoryAddress::Global { addr, offset } => {
            Some((op.id, pointers.word(addr, offset)?))
        }
        warpline_ir::MemoryAddress::Shared(_) => None,
    }
}

/// Does an op read the position of its CTA in the grid?
fn names_cta(op: &OpSite) -> bool {
    use Special::{ClusterCtaId, ClusterId, ClusterRank, CtaId};
    let named = |s| matches!(s, CtaId(_) | ClusterId(_) | ClusterRank | ClusterCtaId(_));
    matches!(op.op, Op::ReadSpecial(o) if named(o.which))
}

struct FlagReadSearch<'a, 'k> {
    cx: &'a RuleContext<'k>,
    flag_writes: &'a [(usize, GlobalWord)],
    global_accesses: &'a [GlobalAccess],
    /// The values that differ between CTAs.
    by_cta: Dependents,
}

impl FlagReadSearch<'_, '_> {
    fn find(&self, load: Load) -> Option<FlagRead> {
        let dependents = Dependents::of(self.cx, |o| o.id == load.op);
        let positions = OpPositions::of(self.cx, &dependents);
        let guarded: Vec<_> = (self.global_accesses.iter())
            .filter(|y| positions.guarded[y.op] && !y.word.may_equal(load.word))
            .collect();
        for &(flag_write, _) in self.flag_writes.iter().filter(|r| r.1.may_equal(load.word)) {
            if guarded.is_empty() || self.is_ordered(flag_write, load.op) {
                continue;
            }
            let (mut before, mut after) = (None, Vec::new());
            for y in &guarded {
                let writes_before = |w: &&GlobalAccess| {
                    w.conflicts(y)
                        && self.comes_before(w.op, flag_write, &positions)
                        && !self.is_cta_private(w, y)
                };
                if let Some(w) = self.global_accesses.iter().find(writes_before) {
                    before.get_or_insert(w.op);
                    after.push(y.op);
                }
            }
            if let Some(before) = before {
                return Some(FlagRead {
                    op: load.op,
                    order: load.order,
                    word: load.word,
                    flag_write,
                    before,
                    after,
                });
            }
        }
        None
    }

    fn role(&self, op: usize) -> Option<RoleId> {
        self.cx.ops[op].site.role
    }

    /// May an access precede a flag write of the same thread?
    fn comes_before(&self, op: usize, flag_write: usize, positions: &OpPositions) -> bool {
        let same_role = self.role(op) == self.role(flag_write) || self.role(op).is_none();
        same_role && op != flag_write && (op < flag_write || positions.share_loop(op, flag_write))
    }

    /// Do two accesses of one role use the same address, which differs between CTAs?
    fn is_cta_private(&self, w: &GlobalAccess, y: &GlobalAccess) -> bool {
        w.addr == y.addr && self.by_cta.operand(w.addr) && self.role(w.op) == self.role(y.op)
    }

    /// Does a barrier of the CTA separate a flag write from a flag read?
    fn is_ordered(&self, flag_write: usize, flag_read: usize) -> bool {
        let guards = |op: usize| -> Vec<Guard> { self.cx.code.guards(op).collect() };
        let (write_guards, read_guards) = (guards(flag_write), guards(flag_read));
        let cond = |g: &Guard| -> (RegId, bool) { (g.cond, g.holds) };
        // A CTA barrier does not synchronize CTAs that took different branches.
        let is_split = write_guards.iter().any(|a| {
            let is_opposite = |b: &Guard| a.cond == b.cond && a.holds != b.holds;
            self.by_cta.reg(a.cond) && read_guards.iter().any(is_opposite)
        });
        if is_split {
            return false;
        }
        let same_role = self.role(flag_write) == self.role(flag_read);
        let is_after_write = |op: &OpSite| match (self.role(flag_write), same_role) {
            (None, _) | (_, true) => op.id > flag_write,
            _ => op.site.role.is_some(),
        };
        let barriers = self.cx.ops.iter().filter(|op| {
            let same_threads = op.site.role == self.role(flag_read) || op.site.role.is_none();
            same_threads
                && op.id < flag_read
                && is_after_write(op)
                && op.facts.syncs.iter().any(|s| acquires_in_cta(s, same_role))
        });
        let mut barriers = barriers.map(|op| guards(op.id));
        // The barrier runs on every path to the read: its guards are among those of the read.
        barriers.any(|b| {
            b.iter()
                .all(|g| read_guards.iter().any(|l| cond(l) == cond(g)))
        })
    }
}

/// Does the operation acquire accesses of other threads of the CTA?
fn acquires_in_cta(sync: &SyncOp, same_role: bool) -> bool {
    match sync {
        SyncOp::Warp { .. } => same_role,
        SyncOp::Wait { .. }
        | SyncOp::Test { .. }
        | SyncOp::NamedSync { .. }
        | SyncOp::NamedReduce { .. }
        | SyncOp::Cta
        | SyncOp::ClusterWait => true,
        _ => false,
    }
}
