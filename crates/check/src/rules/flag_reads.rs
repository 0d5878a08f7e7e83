//! Flags that a thread reads once, without a loop: a branch on the value leads to data that another
//! thread wrote.
//!
//! A thread that finds the flag set accesses the data, and other threads do not. The read acquires
//! like a wait does, or the thread may see old data.

use super::claims::{Places, Touched, touched};
use super::control_flow::Guard;
use super::dependents::Dependents;
use super::global_words::{GlobalWord, Pointers};
use super::poll::{Poll, read};
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
    pub(super) raise: usize,
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
        let raises: Vec<_> = (cx.ops.iter())
            .filter_map(|op| raised(op, pointers))
            .collect();
        let is_raised = |l: &Load| raises.iter().any(|r| r.1.may_be(l.word));
        let loads: Vec<_> = loads.into_iter().filter(is_raised).collect();
        let decides = |follows: &Dependents| {
            let guarded = Places::of(cx, follows).guarded;
            guarded.contains(&true)
        };
        let from_any = Dependents::of(cx, |op| loads.iter().any(|l| l.op == op.id));
        if loads.is_empty() || !decides(&from_any) {
            return Vec::new();
        }
        let touched = touched(cx, pointers);
        let looks = FlagReads {
            cx,
            raises: &raises,
            touched: &touched,
            by_cta: Dependents::of(cx, names_cta),
        };
        loads.into_iter().filter_map(|l| looks.look(l)).collect()
    }
}

/// A load that acquires nothing by itself.
struct Load {
    op: usize,
    order: Option<MemoryOrder>,
    word: GlobalWord,
}

fn load(op: &OpSite, pointers: &Pointers) -> Option<Load> {
    let (addr, offset, order, is_atomic) = read(op)?;
    let acquires = order.is_some_and(|o| o.sem.acquires() && o.scope >= Scope::Gpu);
    let word = pointers.at(addr, offset)?;
    let op = op.id;
    (!is_atomic && !acquires).then_some(Load { op, order, word })
}

/// A strong write, or a plain one of a value that is not zero.
fn raised(op: &OpSite, pointers: &Pointers) -> Option<(usize, GlobalWord)> {
    let at = match op.op {
        Op::StrongStore(o) => o.at,
        Op::AtomicReduce(o) => o.at,
        Op::Atomic(o) => o.at,
        Op::Store(o) if o.src.iter().any(|x| *x != Operand::Imm(0)) => o.at,
        _ => return None,
    };
    match at {
        warpline_ir::MemoryAddress::Global { addr, offset } => {
            Some((op.id, pointers.at(addr, offset)?))
        }
        warpline_ir::MemoryAddress::Shared(_) => None,
    }
}

/// Does an op return the position of a CTA in the grid?
fn names_cta(op: &OpSite) -> bool {
    use Special::{ClusterCtaId, ClusterId, ClusterRank, CtaId};
    let named = |s| matches!(s, CtaId(_) | ClusterId(_) | ClusterRank | ClusterCtaId(_));
    matches!(op.op, Op::ReadSpecial(o) if named(o.which))
}

struct FlagReads<'a, 'k> {
    cx: &'a RuleContext<'k>,
    raises: &'a [(usize, GlobalWord)],
    touched: &'a [Touched],
    /// The values that differ between CTAs.
    by_cta: Dependents,
}

impl FlagReads<'_, '_> {
    fn look(&self, load: Load) -> Option<FlagRead> {
        let follows = Dependents::of(self.cx, |o| o.id == load.op);
        let places = Places::of(self.cx, &follows);
        let guarded: Vec<_> = (self.touched.iter())
            .filter(|y| places.guarded[y.op] && !y.spot.may_be(load.word))
            .collect();
        for &(raise, _) in self.raises.iter().filter(|r| r.1.may_be(load.word)) {
            if guarded.is_empty() || self.is_ordered(raise, load.op) {
                continue;
            }
            let (mut before, mut after) = (None, Vec::new());
            for y in &guarded {
                let passes = |w: &&Touched| {
                    w.conflicts(y) && self.comes_before(w.op, raise, &places) && !self.is_own(w, y)
                };
                if let Some(w) = self.touched.iter().find(passes) {
                    before.get_or_insert(w.op);
                    after.push(y.op);
                }
            }
            if let Some(before) = before {
                return Some(FlagRead {
                    op: load.op,
                    order: load.order,
                    word: load.word,
                    raise,
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
    fn comes_before(&self, op: usize, raise: usize, places: &Places) -> bool {
        let own = self.role(op) == self.role(raise) || self.role(op).is_none();
        own && op != raise && (op < raise || places.share_loop(op, raise))
    }

    /// Do both accesses use one address that no other CTA has, in the same role?
    fn is_own(&self, w: &Touched, y: &Touched) -> bool {
        w.addr == y.addr && self.by_cta.operand(w.addr) && self.role(w.op) == self.role(y.op)
    }

    /// Does a barrier of the CTA separate a flag write from a flag read?
    fn is_ordered(&self, raise: usize, look: usize) -> bool {
        let guards = |op: usize| -> Vec<Guard> { self.cx.code.guards(op).collect() };
        let (to_raise, to_look) = (guards(raise), guards(look));
        let cond = |g: &Guard| -> (RegId, bool) { (g.cond, g.holds) };
        // A CTA barrier does not synchronize CTAs that took different branches.
        let parted = to_raise.iter().any(|a| {
            let against = |b: &Guard| a.cond == b.cond && a.holds != b.holds;
            self.by_cta.reg(a.cond) && to_look.iter().any(against)
        });
        if parted {
            return false;
        }
        let own = self.role(raise) == self.role(look);
        let after_raise = |op: &OpSite| match (self.role(raise), own) {
            (None, _) | (_, true) => op.id > raise,
            _ => op.site.role.is_some(),
        };
        let barriers = self.cx.ops.iter().filter(|op| {
            let near = op.site.role == self.role(look) || op.site.role.is_none();
            near && op.id < look && after_raise(op) && op.facts.syncs.iter().any(|s| meets(s, own))
        });
        let mut barriers = barriers.map(|op| guards(op.id));
        // On every path to the read.
        barriers.any(|b| b.iter().all(|g| to_look.iter().any(|l| cond(l) == cond(g))))
    }
}

/// Does the operation acquire accesses of other threads of the CTA?
fn meets(sync: &SyncOp, own_role: bool) -> bool {
    match sync {
        SyncOp::Warp { .. } => own_role,
        SyncOp::Wait { .. }
        | SyncOp::Test { .. }
        | SyncOp::NamedSync { .. }
        | SyncOp::NamedReduce { .. }
        | SyncOp::Cta
        | SyncOp::ClusterWait => true,
        _ => false,
    }
}
