//! Flags that a thread reads once, without a loop: a branch on the value leads to data that another
//! thread wrote.
//!
//! A flag may be looked at once: whoever finds it raised goes on to the data,
//! whoever does not goes on without. The look acquires as a wait does, or
//! the data may still be the old ones.

use super::claims::{Places, Touched, touched};
use super::code::Guard;
use super::follows::Follows;
use super::pointers::{Pointers, Spot};
use super::poll::{Poll, read};
use super::{Case, OpSite};
use warpline_ir::{MemoryOrder, Op, Operand, RegId, RoleId, Scope, Special, Sync};

/// Such a load.
pub(super) struct Look {
    /// Its number among the ops.
    pub(super) op: usize,
    /// Its order; `None`: it is not strong.
    pub(super) order: Option<MemoryOrder>,
    pub(super) word: Spot,
    /// The write that raises the flag.
    pub(super) raise: usize,
    /// The access before it that passes to whoever looks.
    pub(super) before: usize,
    /// The accesses of whoever looks.
    pub(super) after: Vec<usize>,
}

impl Look {
    /// All looks of a kernel that do not acquire by themselves.
    pub(super) fn all(case: &Case, pointers: &Pointers, polls: &[Poll]) -> Vec<Self> {
        let loads: Vec<_> = (case.ops.iter())
            .filter(|op| !polls.iter().any(|p| p.op == op.id))
            .filter_map(|op| load(op, pointers))
            .collect();
        let raises: Vec<_> = (case.ops.iter())
            .filter_map(|op| raised(op, pointers))
            .collect();
        let is_raised = |l: &Load| raises.iter().any(|r| r.1.may_be(l.word));
        let loads: Vec<_> = loads.into_iter().filter(is_raised).collect();
        let decides = |follows: &Follows| {
            let guarded = Places::of(case, follows).guarded;
            guarded.contains(&true)
        };
        let from_any = Follows::of(case, |op| loads.iter().any(|l| l.op == op.id));
        if loads.is_empty() || !decides(&from_any) {
            return Vec::new();
        }
        let touched = touched(case, pointers);
        let looks = Looks {
            case,
            raises: &raises,
            touched: &touched,
            by_cta: Follows::of(case, names_cta),
        };
        loads.into_iter().filter_map(|l| looks.look(l)).collect()
    }
}

/// A load that acquires nothing by itself.
struct Load {
    op: usize,
    order: Option<MemoryOrder>,
    word: Spot,
}

fn load(op: &OpSite, pointers: &Pointers) -> Option<Load> {
    let (addr, offset, order, is_atomic) = read(op)?;
    let acquires = order.is_some_and(|o| o.sem.acquires() && o.scope >= Scope::Gpu);
    let word = pointers.at(addr, offset)?;
    let op = op.id;
    (!is_atomic && !acquires).then_some(Load { op, order, word })
}

/// A strong write, or a plain one of a value that is not zero.
fn raised(op: &OpSite, pointers: &Pointers) -> Option<(usize, Spot)> {
    let at = match op.op {
        Op::StrongStore(o) => o.at,
        Op::Reduce(o) => o.at,
        Op::Atomic(o) => o.at,
        Op::Store(o) if o.src.iter().any(|x| *x != Operand::Imm(0)) => o.at,
        _ => return None,
    };
    match at {
        warpline_ir::At::Global { addr, offset } => Some((op.id, pointers.at(addr, offset)?)),
        warpline_ir::At::Shared(_) => None,
    }
}

/// Does an op give the place of a CTA in the grid?
fn names_cta(op: &OpSite) -> bool {
    use Special::{ClusterCtaId, ClusterId, ClusterRank, CtaId};
    let named = |s| matches!(s, CtaId(_) | ClusterId(_) | ClusterRank | ClusterCtaId(_));
    matches!(op.op, Op::ReadSpecial(o) if named(o.which))
}

struct Looks<'a, 'k> {
    case: &'a Case<'k>,
    raises: &'a [(usize, Spot)],
    touched: &'a [Touched],
    /// What differs from CTA to CTA.
    by_cta: Follows,
}

impl Looks<'_, '_> {
    fn look(&self, load: Load) -> Option<Look> {
        let follows = Follows::of(self.case, |o| o.id == load.op);
        let places = Places::of(self.case, &follows);
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
                return Some(Look {
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
        self.case.ops[op].site.role
    }

    /// May an access come before a raise of the same thread?
    fn comes_before(&self, op: usize, raise: usize, places: &Places) -> bool {
        let own = self.role(op) == self.role(raise) || self.role(op).is_none();
        own && op != raise && (op < raise || places.share_loop(op, raise))
    }

    /// Is it the same address, which no other CTA has, in the same role: a thread's own data?
    fn is_own(&self, w: &Touched, y: &Touched) -> bool {
        w.addr == y.addr && self.by_cta.operand(w.addr) && self.role(w.op) == self.role(y.op)
    }

    /// Does a barrier of the CTA stand between a raise and a look?
    fn is_ordered(&self, raise: usize, look: usize) -> bool {
        let guards = |op: usize| -> Vec<Guard> { self.case.code.guards(op).collect() };
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
        let barriers = self.case.ops.iter().filter(|op| {
            let near = op.site.role == self.role(look) || op.site.role.is_none();
            near && op.id < look && after_raise(op) && op.facts.syncs.iter().any(|s| meets(s, own))
        });
        let mut barriers = barriers.map(|op| guards(op.id));
        // On every way to the look.
        barriers.any(|b| b.iter().all(|g| to_look.iter().any(|l| cond(l) == cond(g))))
    }
}

/// Do threads learn by it what others of the CTA have done?
fn meets(sync: &Sync, own_role: bool) -> bool {
    match sync {
        Sync::Warp { .. } => own_role,
        Sync::Wait { .. }
        | Sync::Test { .. }
        | Sync::NamedSync { .. }
        | Sync::NamedTally { .. }
        | Sync::Cta
        | Sync::ClusterWait => true,
        _ => false,
    }
}
