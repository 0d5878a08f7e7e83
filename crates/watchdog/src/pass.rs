//! The pass over statements: adds timeouts to waits.
//!
//! A converged warp exits at the wait that times out. Diverged lanes (in an `elect` or under a
//! divergent condition) cannot: they record the wait and skip the rest of the divergent statement,
//! and the warp exits after it.

use crate::emit::{ALL_LANES, Emit};
use crate::exit::{PendingOps, poll_phase, single};
use crate::named::ReplacedBarrier;
use crate::site::{WaitKind, WaitSite};
use crate::status::State;
use crate::watchdog::Watchdog;
use warpline_check::{Facts, Uniformity};
use warpline_ir::ops::bits::Xor;
use warpline_ir::ops::mbarrier::{MbarrierArrive, MbarrierWait};
use warpline_ir::ops::warp::WarpSync;
use warpline_ir::{
    AccessKind, Block, Loc, NamedId, Op, Operand, RegId, RegInfo, RoleId, Scope, Special, Stmt,
    StmtKind, SyncOp, Type, Uniform,
};

/// The context of a statement.
#[derive(Clone, Copy)]
pub(crate) struct Context {
    pub(crate) role: Option<RoleId>,
    /// The threads that reach the statement together.
    pub(crate) reach: Uniform,
    /// Predicate of the lanes that will exit, in divergent code.
    pub(crate) exiting: Option<RegId>,
    pub(crate) pending: PendingOps,
}

/// Statements, and whether a lane may have to exit after them.
type Rewritten = (Vec<Stmt>, bool);

/// The parity register of a role for a replaced barrier.
struct Parity {
    role: Option<RoleId>,
    named: NamedId,
    reg: RegId,
}

pub(crate) struct Pass<'k> {
    pub(crate) watchdog: Watchdog,
    pub(crate) uniformity: &'k Uniformity,
    pub(crate) regs: Vec<RegInfo>,
    pub(crate) sites: Vec<WaitSite>,
    pub(crate) replaced: Vec<ReplacedBarrier>,
    parities: Vec<Parity>,
}

impl<'k> Pass<'k> {
    pub(crate) fn new(
        watchdog: Watchdog,
        uniformity: &'k Uniformity,
        regs: Vec<RegInfo>,
        replaced: Vec<ReplacedBarrier>,
    ) -> Self {
        Self {
            watchdog,
            uniformity,
            regs,
            sites: Vec::new(),
            replaced,
            parities: Vec::new(),
        }
    }

    /// Rewrites the body of a role, or the code that all roles share.
    pub(crate) fn body(
        &mut self,
        body: &Block,
        role: Option<RoleId>,
        pending: PendingOps,
    ) -> Block {
        let at = Context {
            role,
            reach: Uniform::Cta,
            exiting: None,
            pending,
        };
        let (rewritten, _) = self.stmts(&body.0, at);
        // The parities start at 0.
        let loc = body.0.first().map_or(Loc::default(), |s| s.loc);
        let mut e = Emit::new(&mut self.regs, role, loc);
        for p in self.parities.iter().filter(|p| p.role == role) {
            e.mov(Type::U32, p.reg, Operand::Imm(0));
        }
        e.append(rewritten);
        Block(e.finish())
    }

    fn emit(&mut self, at: Context, loc: Loc) -> Emit<'_> {
        Emit::new(&mut self.regs, at.role, loc)
    }

    fn stmts(&mut self, stmts: &[Stmt], at: Context) -> Rewritten {
        let mut out = Vec::new();
        for (i, s) in stmts.iter().enumerate() {
            let (mut rewritten, may_exit) = self.stmt(s, at);
            out.append(&mut rewritten);
            if !may_exit {
                continue;
            }
            let rest = &stmts[i + 1..];
            if let (Some(exiting), false) = (at.exiting, rest.is_empty()) {
                let (rest, _) = self.stmts(rest, at);
                out.extend(self.unless(exiting, rest, at, s.loc));
            }
            return (out, true);
        }
        (out, false)
    }

    /// Guards statements: only lanes that do not exit run them.
    fn unless(&mut self, exiting: RegId, stmts: Vec<Stmt>, at: Context, loc: Loc) -> Vec<Stmt> {
        let mut e = self.emit(at, loc);
        let stay = e.not(exiting);
        e.if_(stay, |e| e.append(stmts));
        e.finish()
    }

    fn stmt(&mut self, s: &Stmt, at: Context) -> Rewritten {
        if let StmtKind::Op(op) = &s.kind {
            return self.op(op, s, at);
        }
        let reach = at.reach.min(self.uniformity.inside(s));
        if reach >= Uniform::Warp || at.exiting.is_some() {
            return self.flow(s, Context { reach, ..at });
        }
        // Lanes diverge here and reconverge after the statement.
        let exiting = self.emit(at, s.loc).reg(Type::Pred);
        let apart = Context {
            reach,
            exiting: Some(exiting),
            ..at
        };
        let (rewritten, may_exit) = self.flow(s, apart);
        if !may_exit {
            return (rewritten, false);
        }
        let watchdog = self.watchdog;
        let mut e = self.emit(at, s.loc);
        e.mov(Type::Pred, exiting, Operand::imm(false));
        e.append(rewritten);
        let exits = e.any(exiting);
        e.if_(exits, |e| watchdog.exit_warp(e, at.pending));
        (e.finish(), false)
    }

    /// Rewrites a statement with blocks; `at` describes its inside.
    fn flow(&mut self, s: &Stmt, at: Context) -> Rewritten {
        let (kind, may_exit) = match &s.kind {
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
                let (body, may_exit) = self.stmts(&body.0, at);
                let body = Block(body);
                (StmtKind::Elect { body }, may_exit)
            }
            StmtKind::For {
                var,
                from,
                to,
                step,
                body,
                unroll,
            } => {
                let (body, may_exit) = self.stmts(&body.0, at);
                // The remaining iterations are empty for exiting lanes.
                let body = match at.exiting {
                    Some(exiting) if may_exit => self.unless(exiting, body, at, s.loc),
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
                (kind, may_exit)
            }
            StmtKind::While { head, cond, body } => match is_spin(head, body) {
                true => return self.spin(s, head, *cond, body, at),
                false => return self.repeat(s, head, *cond, body, at),
            },
        };
        (vec![Stmt { kind, loc: s.loc }], may_exit)
    }

    fn repeat(
        &mut self,
        s: &Stmt,
        head: &Block,
        cond: RegId,
        body: &Block,
        at: Context,
    ) -> Rewritten {
        let (head, a) = self.stmts(&head.0, at);
        let (body, b) = self.stmts(&body.0, at);
        let exiting = at.exiting.filter(|_| a | b);
        let mut e = self.emit(at, s.loc);
        let Some(exiting) = exiting else {
            let (head, body) = (Block(head), Block(body));
            e.push(StmtKind::While { head, cond, body });
            return (e.finish(), a | b);
        };
        // Exiting lanes run neither head nor body again.
        let on = e.false_pred();
        let mut go = on;
        let head = e.block(|e| {
            let stay = e.not(exiting);
            e.if_(stay, |e| {
                e.append(head);
                e.mov(Type::Pred, on, cond);
            });
            let stay = e.not(exiting);
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

    fn op(&mut self, op: &Op, s: &Stmt, at: Context) -> Rewritten {
        match op {
            Op::MbarrierWait(wait) => {
                let site = self.site(op, s.loc, WaitKind::Mbarrier(wait.bar.bar));
                return self.timed_wait(wait, site, s.loc, at);
            }
            Op::NamedSync(o) => {
                if let Some(replaced) = self.replaced(o.bar) {
                    let site = self.site(op, s.loc, WaitKind::Named(o.bar));
                    return self.mbarrier_sync(replaced, Some(site), s.loc, at);
                }
            }
            Op::NamedArrive(o) => {
                if let Some(replaced) = self.replaced(o.bar) {
                    return self.mbarrier_sync(replaced, None, s.loc, at);
                }
            }
            Op::Exit(_) => {
                let watchdog = self.watchdog;
                let mut e = self.emit(at, s.loc);
                watchdog.finish_warp(&mut e);
                e.append([s.clone()]);
                return (e.finish(), false);
            }
            _ => {}
        }
        let what = Facts::of(op).syncs.iter().find_map(WaitKind::of);
        match what {
            Some(what) => (self.recorded_wait(op, s, what, at), false),
            None => (vec![s.clone()], false),
        }
    }

    fn site(&mut self, op: &Op, loc: Loc, what: WaitKind) -> u16 {
        self.sites.push(WaitSite::new(op, loc, what));
        (self.sites.len() - 1) as u16
    }

    fn replaced(&self, named: NamedId) -> Option<ReplacedBarrier> {
        self.replaced.iter().find(|t| t.named == named).copied()
    }

    /// Rewrites a wait without a timeout: the warp records it first. A barrier may complete
    /// because the missing warps exited; then this warp exits too.
    fn recorded_wait(&mut self, op: &Op, s: &Stmt, what: WaitKind, at: Context) -> Vec<Stmt> {
        let site = self.site(op, s.loc, what);
        let watchdog = self.watchdog;
        let mut e = self.emit(at, s.loc);
        let none = Operand::Imm(0);
        watchdog
            .status
            .write(&mut e, State::Waiting, site, none, none);
        e.append([s.clone()]);
        if what.is_barrier() {
            let aborted = watchdog.is_aborted(&mut e);
            let aborted = warp_any(&mut e, aborted, at);
            e.if_(aborted, |e| {
                watchdog.status.write(e, State::TimedOut, site, none, none);
                abandon(e, watchdog, at);
            });
        }
        watchdog.status.state(&mut e, State::Running);
        e.finish()
    }

    /// Rewrites an mbarrier wait: polls until the phase completes or the limit expires.
    fn timed_wait(&mut self, wait: &MbarrierWait, site: u16, loc: Loc, at: Context) -> Rewritten {
        let watchdog = self.watchdog;
        let mut e = self.emit(at, loc);
        let done = e.false_pred();
        poll_phase(&mut e, done, wait.bar, wait.parity, wait.scope);
        let not = e.not(done);
        let stuck = warp_any(&mut e, not, at);
        e.if_(stuck, |e| {
            let start = e.special(Special::GlobalTimer);
            e.while_(|e| {
                poll_phase(e, done, wait.bar, wait.parity, wait.scope);
                let over = watchdog.must_abandon(e, start);
                let over = e.or(done, over);
                let go = e.not(over);
                warp_any(e, go, at)
            });
            let lost = e.not(done);
            let lost = warp_any(e, lost, at);
            let (index, parity) = (wait.bar.index, wait.parity);
            e.if_(lost, |e| {
                watchdog
                    .status
                    .write(e, State::TimedOut, site, index, parity);
                abandon(e, watchdog, at);
            });
        });
        (e.finish(), at.exiting.is_some())
    }

    /// Rewrites a spin loop: polls until the limit expires.
    fn spin(
        &mut self,
        s: &Stmt,
        head: &Block,
        cond: RegId,
        body: &Block,
        at: Context,
    ) -> Rewritten {
        let Some((poll, loc)) = first_op(head) else {
            return self.repeat(s, head, cond, body, at);
        };
        let site = self.site(poll, loc, WaitKind::Poll);
        let watchdog = self.watchdog;
        let mut e = self.emit(at, s.loc);
        let over = e.false_pred();
        let start = e.special(Special::GlobalTimer);
        let mut go = cond;
        let head = e.block(|e| {
            e.append(head.0.iter().cloned());
            let stay = e.not(over);
            go = e.and(cond, stay);
        });
        let body = e.block(|e| {
            e.append(body.0.iter().cloned());
            let now = watchdog.must_abandon(e, start);
            let now = warp_any(e, now, at);
            e.mov(Type::Pred, over, now);
        });
        e.push(StmtKind::While {
            head,
            cond: go,
            body,
        });
        e.if_(over, |e| {
            let none = Operand::Imm(0);
            watchdog.status.write(e, State::TimedOut, site, none, none);
            abandon(e, watchdog, at);
        });
        (e.finish(), at.exiting.is_some())
    }

    /// Rewrites a replaced named barrier: the warp arrives, and waits if there is a site.
    fn mbarrier_sync(
        &mut self,
        replaced: ReplacedBarrier,
        site: Option<u16>,
        loc: Loc,
        at: Context,
    ) -> Rewritten {
        let parity = self.parity(replaced.named, at, loc);
        let bar = single(replaced.bar);
        let mut e = self.emit(at, loc);
        e.op(WarpSync { mask: ALL_LANES });
        e.elect(|e| {
            e.op(MbarrierArrive {
                bar,
                count: Operand::imm(1u32),
                tx: None,
                scope: Scope::Cta,
                drop: false,
            });
        });
        let mut out = e.finish();
        if let Some(site) = site {
            let wait = MbarrierWait {
                bar,
                parity: parity.into(),
                scope: Scope::Cta,
            };
            out.append(&mut self.timed_wait(&wait, site, loc, at).0);
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

    /// Returns the parity register of a role for a replaced barrier.
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

/// Votes over the warp where it is converged; returns the lane's own predicate in divergent code.
fn warp_any(e: &mut Emit<'_>, p: RegId, at: Context) -> RegId {
    match at.exiting {
        Some(_) => p,
        None => e.any(p),
    }
}

/// Exits the warp where it is converged; marks the lanes as exiting in divergent code.
fn abandon(e: &mut Emit<'_>, watchdog: Watchdog, at: Context) {
    match at.exiting {
        Some(exiting) => e.mov(Type::Pred, exiting, Operand::imm(true)),
        None => watchdog.exit_warp(e, at.pending),
    }
}

fn first_op(block: &Block) -> Option<(&Op, Loc)> {
    block.0.iter().find_map(|s| match &s.kind {
        StmtKind::Op(op) => Some((op, s.loc)),
        _ => None,
    })
}

/// Whether a loop only waits: it polls memory or a barrier, and otherwise sleeps.
fn is_spin(head: &Block, body: &Block) -> bool {
    let sleeps = |s: &Stmt| matches!(&s.kind, StmtKind::Op(Op::Nanosleep(_)));
    let mut polls = false;
    let mut plain = true;
    for s in &head.0 {
        let StmtKind::Op(op) = &s.kind else {
            return false;
        };
        let facts = Facts::of(op);
        let reads = |a: AccessKind| a != AccessKind::Write;
        polls |= facts.touches.iter().any(|t| reads(t.access));
        polls |= facts.syncs.iter().any(|s| matches!(s, SyncOp::Test { .. }));
        plain &= !facts.syncs.iter().any(|s| WaitKind::of(s).is_some());
    }
    polls && plain && body.0.iter().all(sleeps)
}
