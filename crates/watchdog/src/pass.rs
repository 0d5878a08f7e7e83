//! The pass: every wait of a kernel, and what it becomes.
//!
//! A whole warp that gives a wait up leaves on the spot. Lanes that run apart
//! (in an `elect`, or behind a condition of their own) cannot: they note what
//! they waited for, skip what is left of the statement that parted them from
//! the warp, and the warp leaves behind it.

use crate::emit::{ALL_LANES, Emit};
use crate::gear::Gear;
use crate::leave::{Drains, ask, only};
use crate::named::Turned;
use crate::note::State;
use crate::site::{WaitSite, What};
use warpline_check::{Facts, Uniformity};
use warpline_ir::ops::bits::Xor;
use warpline_ir::ops::mbarrier::{MbarrierArrive, MbarrierWait};
use warpline_ir::ops::warp::WarpSync;
use warpline_ir::{
    Access, Block, Loc, NamedId, Op, Operand, RegId, RegInfo, RoleId, Scope, Special, Stmt,
    StmtKind, Sync, Type, Uniform,
};

/// What surrounds a statement.
#[derive(Clone, Copy)]
pub(crate) struct Context {
    pub(crate) role: Option<RoleId>,
    /// The threads that reach it together.
    pub(crate) reach: Uniform,
    /// Set in lanes that will leave, where lanes run apart.
    pub(crate) leaving: Option<RegId>,
    pub(crate) drains: Drains,
}

/// Statements, and whether a lane may want to leave after them.
type Watched = (Vec<Stmt>, bool);

/// A parity that the warps of a role count for a barrier.
struct Parity {
    role: Option<RoleId>,
    named: NamedId,
    reg: RegId,
}

pub(crate) struct Pass<'k> {
    pub(crate) gear: Gear,
    pub(crate) uniformity: &'k Uniformity,
    pub(crate) regs: Vec<RegInfo>,
    pub(crate) sites: Vec<WaitSite>,
    pub(crate) turned: Vec<Turned>,
    parities: Vec<Parity>,
}

impl<'k> Pass<'k> {
    pub(crate) fn new(
        gear: Gear,
        uniformity: &'k Uniformity,
        regs: Vec<RegInfo>,
        turned: Vec<Turned>,
    ) -> Self {
        Self {
            gear,
            uniformity,
            regs,
            sites: Vec::new(),
            turned,
            parities: Vec::new(),
        }
    }

    /// The body of a role, or what all roles share.
    pub(crate) fn body(&mut self, body: &Block, role: Option<RoleId>, drains: Drains) -> Block {
        let at = Context {
            role,
            reach: Uniform::Cta,
            leaving: None,
            drains,
        };
        let (watched, _) = self.stmts(&body.0, at);
        // Phases are counted from the start of the role.
        let loc = body.0.first().map_or(Loc::default(), |s| s.loc);
        let mut e = Emit::new(&mut self.regs, role, loc);
        for p in self.parities.iter().filter(|p| p.role == role) {
            e.mov(Type::U32, p.reg, Operand::Imm(0));
        }
        e.append(watched);
        Block(e.finish())
    }

    fn emit(&mut self, at: Context, loc: Loc) -> Emit<'_> {
        Emit::new(&mut self.regs, at.role, loc)
    }

    fn stmts(&mut self, stmts: &[Stmt], at: Context) -> Watched {
        let mut out = Vec::new();
        for (i, s) in stmts.iter().enumerate() {
            let (mut watched, leaves) = self.stmt(s, at);
            out.append(&mut watched);
            if !leaves {
                continue;
            }
            let rest = &stmts[i + 1..];
            if let (Some(leaving), false) = (at.leaving, rest.is_empty()) {
                let (rest, _) = self.stmts(rest, at);
                out.extend(self.unless(leaving, rest, at, s.loc));
            }
            return (out, true);
        }
        (out, false)
    }

    /// Statements for the lanes that stay.
    fn unless(&mut self, leaving: RegId, stmts: Vec<Stmt>, at: Context, loc: Loc) -> Vec<Stmt> {
        let mut e = self.emit(at, loc);
        let stay = e.not(leaving);
        e.if_(stay, |e| e.append(stmts));
        e.finish()
    }

    fn stmt(&mut self, s: &Stmt, at: Context) -> Watched {
        if let StmtKind::Op(op) = &s.kind {
            return self.op(op, s, at);
        }
        let reach = at.reach.min(self.uniformity.inside(s));
        if reach >= Uniform::Warp || at.leaving.is_some() {
            return self.flow(s, Context { reach, ..at });
        }
        // Lanes part here, and meet again behind the statement.
        let leaving = self.emit(at, s.loc).reg(Type::Pred);
        let apart = Context {
            reach,
            leaving: Some(leaving),
            ..at
        };
        let (watched, leaves) = self.flow(s, apart);
        if !leaves {
            return (watched, false);
        }
        let gear = self.gear;
        let mut e = self.emit(at, s.loc);
        e.mov(Type::Pred, leaving, Operand::imm(false));
        e.append(watched);
        let leave = e.any(leaving);
        e.if_(leave, |e| gear.leave(e, at.drains));
        (e.finish(), false)
    }

    /// A statement with blocks, whose lanes are those of `at`.
    fn flow(&mut self, s: &Stmt, at: Context) -> Watched {
        let (kind, leaves) = match &s.kind {
            StmtKind::Op(op) => return self.op(op, s, at),
            StmtKind::If { cond, then, other } => {
                let (then, a) = self.stmts(&then.0, at);
                let (other, b) = self.stmts(&other.0, at);
                let kind = StmtKind::If {
                    cond: *cond,
                    then: Block(then),
                    other: Block(other),
                };
                (kind, a | b)
            }
            StmtKind::Elect { body } => {
                let (body, leaves) = self.stmts(&body.0, at);
                let body = Block(body);
                (StmtKind::Elect { body }, leaves)
            }
            StmtKind::For {
                var,
                from,
                to,
                step,
                body,
                unroll,
            } => {
                let (body, leaves) = self.stmts(&body.0, at);
                // The rounds that are left do nothing.
                let body = match at.leaving {
                    Some(leaving) if leaves => self.unless(leaving, body, at, s.loc),
                    _ => body,
                };
                let kind = StmtKind::For {
                    var: *var,
                    from: *from,
                    to: *to,
                    step: *step,
                    body: Block(body),
                    unroll: *unroll,
                };
                (kind, leaves)
            }
            StmtKind::While { head, cond, body } => match is_spin(head, body) {
                true => return self.spin(s, head, *cond, body, at),
                false => return self.repeat(s, head, *cond, body, at),
            },
        };
        (vec![Stmt { kind, loc: s.loc }], leaves)
    }

    fn repeat(
        &mut self,
        s: &Stmt,
        head: &Block,
        cond: RegId,
        body: &Block,
        at: Context,
    ) -> Watched {
        let (head, a) = self.stmts(&head.0, at);
        let (body, b) = self.stmts(&body.0, at);
        let leaving = at.leaving.filter(|_| a | b);
        let mut e = self.emit(at, s.loc);
        let Some(leaving) = leaving else {
            let (head, body) = (Block(head), Block(body));
            e.push(StmtKind::While { head, cond, body });
            return (e.finish(), a | b);
        };
        // Lanes that leave run neither part again.
        let on = e.no();
        let mut go = on;
        let head = e.block(|e| {
            let stay = e.not(leaving);
            e.if_(stay, |e| {
                e.append(head);
                e.mov(Type::Pred, on, cond);
            });
            let stay = e.not(leaving);
            go = e.and(on, stay);
        });
        let body = Block(body);
        e.push(StmtKind::While {
            head,
            cond: go,
            body,
        });
        (e.finish(), true)
    }

    fn op(&mut self, op: &Op, s: &Stmt, at: Context) -> Watched {
        match op {
            Op::MbarrierWait(wait) => {
                let site = self.site(op, s.loc, What::Mbarrier(wait.bar.bar));
                return self.bounded(wait, site, s.loc, at);
            }
            Op::NamedSync(o) => {
                if let Some(turned) = self.turned(o.bar) {
                    let site = self.site(op, s.loc, What::Named(o.bar));
                    return self.meet(turned, Some(site), s.loc, at);
                }
            }
            Op::NamedArrive(o) => {
                if let Some(turned) = self.turned(o.bar) {
                    return self.meet(turned, None, s.loc, at);
                }
            }
            Op::Exit(_) => {
                let gear = self.gear;
                let mut e = self.emit(at, s.loc);
                gear.done(&mut e);
                e.append([s.clone()]);
                return (e.finish(), false);
            }
            _ => {}
        }
        let what = Facts::of(op).syncs.iter().find_map(What::of);
        match what {
            Some(what) => (self.noted(op, s, what, at), false),
            None => (vec![s.clone()], false),
        }
    }

    fn site(&mut self, op: &Op, loc: Loc, what: What) -> u16 {
        self.sites.push(WaitSite::new(op, loc, what));
        (self.sites.len() - 1) as u16
    }

    fn turned(&self, named: NamedId) -> Option<Turned> {
        self.turned.iter().find(|t| t.named == named).copied()
    }

    /// A wait that cannot be given up: the warp notes that it is in it. A
    /// meeting may be over because those who were missing have left: then the
    /// warp leaves as well.
    fn noted(&mut self, op: &Op, s: &Stmt, what: What, at: Context) -> Vec<Stmt> {
        let site = self.site(op, s.loc, what);
        let gear = self.gear;
        let mut e = self.emit(at, s.loc);
        let none = Operand::Imm(0);
        gear.notes.write(&mut e, State::Waiting, site, none, none);
        e.append([s.clone()]);
        if what.is_meeting() {
            let told = gear.told(&mut e);
            let told = agreed(&mut e, told, at);
            e.if_(told, |e| {
                gear.notes.write(e, State::Left, site, none, none);
                give_up(e, gear, at);
            });
        }
        gear.notes.state(&mut e, State::Running);
        e.finish()
    }

    /// A wait for an mbarrier: asks until the phase is complete or time is up.
    fn bounded(&mut self, wait: &MbarrierWait, site: u16, loc: Loc, at: Context) -> Watched {
        let gear = self.gear;
        let mut e = self.emit(at, loc);
        let done = e.no();
        ask(&mut e, done, wait.bar, wait.parity, wait.scope);
        let not = e.not(done);
        let stuck = agreed(&mut e, not, at);
        e.if_(stuck, |e| {
            let start = e.special(Special::GlobalTimer);
            e.while_(|e| {
                ask(e, done, wait.bar, wait.parity, wait.scope);
                let over = gear.over(e, start);
                let over = e.or(done, over);
                let go = e.not(over);
                agreed(e, go, at)
            });
            let lost = e.not(done);
            let lost = agreed(e, lost, at);
            let (index, parity) = (wait.bar.index, wait.parity);
            e.if_(lost, |e| {
                gear.notes.write(e, State::Left, site, index, parity);
                give_up(e, gear, at);
            });
        });
        (e.finish(), at.leaving.is_some())
    }

    /// A loop that asks memory again and again: asks until time is up.
    fn spin(&mut self, s: &Stmt, head: &Block, cond: RegId, body: &Block, at: Context) -> Watched {
        let Some((asks, loc)) = first_op(head) else {
            return self.repeat(s, head, cond, body, at);
        };
        let site = self.site(asks, loc, What::Poll);
        let gear = self.gear;
        let mut e = self.emit(at, s.loc);
        let over = e.no();
        let start = e.special(Special::GlobalTimer);
        let mut go = cond;
        let head = e.block(|e| {
            e.append(head.0.iter().cloned());
            let stay = e.not(over);
            go = e.and(cond, stay);
        });
        let body = e.block(|e| {
            e.append(body.0.iter().cloned());
            let now = gear.over(e, start);
            let now = agreed(e, now, at);
            e.mov(Type::Pred, over, now);
        });
        e.push(StmtKind::While {
            head,
            cond: go,
            body,
        });
        e.if_(over, |e| {
            let none = Operand::Imm(0);
            gear.notes.write(e, State::Left, site, none, none);
            give_up(e, gear, at);
        });
        (e.finish(), at.leaving.is_some())
    }

    /// A named barrier that is an mbarrier: the warp arrives, and waits where there is a site.
    fn meet(&mut self, turned: Turned, site: Option<u16>, loc: Loc, at: Context) -> Watched {
        let parity = self.parity(turned.named, at, loc);
        let bar = only(turned.bar);
        let mut e = self.emit(at, loc);
        e.op(WarpSync { mask: ALL_LANES });
        e.elect(|e| {
            e.op(MbarrierArrive {
                bar,
                count: Operand::imm(1u32),
                tx: None,
                scope: Scope::Cta,
                leave: false,
            });
        });
        let mut out = e.finish();
        if let Some(site) = site {
            let wait = MbarrierWait {
                bar,
                parity: parity.into(),
                scope: Scope::Cta,
            };
            out.append(&mut self.bounded(&wait, site, loc, at).0);
        }
        let mut e = self.emit(at, loc);
        e.op(Xor {
            ty: Type::U32,
            dst: parity,
            a: parity.into(),
            b: Operand::imm(1u32),
        });
        out.extend(e.finish());
        (out, false)
    }

    /// The parity that a role counts for a barrier.
    fn parity(&mut self, named: NamedId, at: Context, loc: Loc) -> RegId {
        let mine = |p: &&Parity| p.named == named && p.role == at.role;
        if let Some(p) = self.parities.iter().find(mine) {
            return p.reg;
        }
        let reg = self.emit(at, loc).reg(Type::U32);
        let role = at.role;
        self.parities.push(Parity { role, named, reg });
        reg
    }
}

/// A predicate that a whole warp agrees on, if any of its lanes says so; lanes
/// that run apart speak for themselves.
fn agreed(e: &mut Emit<'_>, p: RegId, at: Context) -> RegId {
    match at.leaving {
        Some(_) => p,
        None => e.any(p),
    }
}

/// A whole warp leaves; lanes that run apart remember that they will.
fn give_up(e: &mut Emit<'_>, gear: Gear, at: Context) {
    match at.leaving {
        Some(leaving) => e.mov(Type::Pred, leaving, Operand::imm(true)),
        None => gear.leave(e, at.drains),
    }
}

fn first_op(block: &Block) -> Option<(&Op, Loc)> {
    block.0.iter().find_map(|s| match &s.kind {
        StmtKind::Op(op) => Some((op, s.loc)),
        _ => None,
    })
}

/// Is a loop there only to wait: does it ask memory, and otherwise sleep?
fn is_spin(head: &Block, body: &Block) -> bool {
    let sleeps = |s: &Stmt| matches!(&s.kind, StmtKind::Op(Op::Nanosleep(_)));
    let mut asks = false;
    let mut plain = true;
    for s in &head.0 {
        let StmtKind::Op(op) = &s.kind else {
            return false;
        };
        let facts = Facts::of(op);
        let reads = |a: Access| a != Access::Write;
        asks |= facts.touches.iter().any(|t| reads(t.access));
        asks |= facts.syncs.iter().any(|s| matches!(s, Sync::Test { .. }));
        plain &= !facts.syncs.iter().any(|s| What::of(s).is_some());
    }
    asks && plain && body.0.iter().all(sleeps)
}
