//! The pass over statements: adds timeouts to waits.
//!
//! A converged warp exits at the wait that times out. Diverged lanes (in an `elect` or under a
//! divergent condition) cannot: they record the wait and skip the rest of the divergent statement,
//! and the warp exits after it.

use crate::emit::{ALL_LANES, Emitter};
use crate::exit::{PendingOps, poll_phase, single_barrier};
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
pub(crate) struct StmtContext {
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
        let ctx = StmtContext {
            role,
            reach: Uniform::Cta,
            exiting: None,
            pending,
        };
        let (rewritten, _) = self.stmts(&body.0, ctx);
        // The parities start at 0.
        let loc = body.0.first().map_or(Loc::default(), |s| s.loc);
        let mut e = Emitter::new(&mut self.regs, role, loc);
        for p in self.parities.iter().filter(|p| p.role == role) {
            e.mov(Type::U32, p.reg, Operand::Imm(0));
        }
        e.append(rewritten);
        Block(e.finish())
    }

    fn emit(&mut self, ctx: StmtContext, loc: Loc) -> Emitter<'_> {
        Emitter::new(&mut self.regs, ctx.role, loc)
    }

    fn stmts(&mut self, stmts: &[Stmt], ctx: StmtContext) -> Rewritten {
        let mut out = Vec::new();
        for (i, s) in stmts.iter().enumerate() {
            let (mut rewritten, may_exit) = self.stmt(s, ctx);
            out.append(&mut rewritten);
            if !may_exit {
                continue;
            }
            let rest = &stmts[i + 1..];
            if let (Some(exiting), false) = (ctx.exiting, rest.is_empty()) {
                let (rest, _) = self.stmts(rest, ctx);
                out.extend(self.skip_for_exiting(exiting, rest, ctx, s.loc));
            }
            return (out, true);
        }
        (out, false)
    }

    /// Guards statements: only lanes that do not exit run them.
    fn skip_for_exiting(
        &mut self,
        exiting: RegId,
        stmts: Vec<Stmt>,
        ctx: StmtContext,
        loc: Loc,
    ) -> Vec<Stmt> {
        let mut e = self.emit(ctx, loc);
        let continues = e.not(exiting);
        e.if_(continues, |e| e.append(stmts));
        e.finish()
    }

    fn stmt(&mut self, s: &Stmt, ctx: StmtContext) -> Rewritten {
        if let StmtKind::Op(op) = &s.kind {
            return self.op(op, s, ctx);
        }
        let reach = ctx.reach.min(self.uniformity.inside(s));
        if reach >= Uniform::Warp || ctx.exiting.is_some() {
            return self.control_flow(s, StmtContext { reach, ..ctx });
        }
        // Lanes diverge here and reconverge after the statement.
        let exiting = self.emit(ctx, s.loc).reg(Type::Pred);
        let divergent = StmtContext {
            reach,
            exiting: Some(exiting),
            ..ctx
        };
        let (rewritten, may_exit) = self.control_flow(s, divergent);
        if !may_exit {
            return (rewritten, false);
        }
        let watchdog = self.watchdog;
        let mut e = self.emit(ctx, s.loc);
        e.mov(Type::Pred, exiting, Operand::imm(false));
        e.append(rewritten);
        let exits = e.any_lane(exiting);
        e.if_(exits, |e| watchdog.exit_warp(e, ctx.pending));
        (e.finish(), false)
    }

    /// Rewrites a statement with blocks; `ctx` is the context inside it.
    fn control_flow(&mut self, s: &Stmt, ctx: StmtContext) -> Rewritten {
        let (kind, may_exit) = match &s.kind {
            StmtKind::Op(op) => return self.op(op, s, ctx),
            StmtKind::If { cond, then, other } => {
                let (then, a) = self.stmts(&then.0, ctx);
                let (other, b) = self.stmts(&other.0, ctx);
                let kind = StmtKind::If {
                    cond: *cond,
                    then: Block(then),
                    other: Block(other),
                };
                (kind, a | b)
            }
            StmtKind::Elect { body } => {
                let (body, may_exit) = self.stmts(&body.0, ctx);
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
                let (body, may_exit) = self.stmts(&body.0, ctx);
                // The remaining iterations are empty for exiting lanes.
                let body = match ctx.exiting {
                    Some(exiting) if may_exit => self.skip_for_exiting(exiting, body, ctx, s.loc),
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
                true => return self.spin(s, head, *cond, body, ctx),
                false => return self.while_loop(s, head, *cond, body, ctx),
            },
        };
        (vec![Stmt { kind, loc: s.loc }], may_exit)
    }

    fn while_loop(
        &mut self,
        s: &Stmt,
        head: &Block,
        cond: RegId,
        body: &Block,
        ctx: StmtContext,
    ) -> Rewritten {
        let (head, a) = self.stmts(&head.0, ctx);
        let (body, b) = self.stmts(&body.0, ctx);
        let exiting = ctx.exiting.filter(|_| a | b);
        let mut e = self.emit(ctx, s.loc);
        let Some(exiting) = exiting else {
            let (head, body) = (Block(head), Block(body));
            e.push(StmtKind::While { head, cond, body });
            return (e.finish(), a | b);
        };
        // Exiting lanes run neither head nor body again.
        let is_running = e.false_pred();
        let mut keep_running = is_running;
        let head = e.block(|e| {
            let continues = e.not(exiting);
            e.if_(continues, |e| {
                e.append(head);
                e.mov(Type::Pred, is_running, cond);
            });
            let continues = e.not(exiting);
            keep_running = e.and(is_running, continues);
        });
        let body = Block(body);
        e.push(StmtKind::While {
            head,
            cond: keep_running,
            body,
        });
        (e.finish(), true)
    }

    fn op(&mut self, op: &Op, s: &Stmt, ctx: StmtContext) -> Rewritten {
        match op {
            Op::MbarrierWait(wait) => {
                let site = self.site(op, s.loc, WaitKind::Mbarrier(wait.bar.bar));
                return self.timed_wait(wait, site, s.loc, ctx);
            }
            Op::NamedSync(o) => {
                if let Some(replaced) = self.replaced(o.bar) {
                    let site = self.site(op, s.loc, WaitKind::Named(o.bar));
                    return self.mbarrier_sync(replaced, Some(site), s.loc, ctx);
                }
            }
            Op::NamedArrive(o) => {
                if let Some(replaced) = self.replaced(o.bar) {
                    return self.mbarrier_sync(replaced, None, s.loc, ctx);
                }
            }
            Op::Exit(_) => {
                let watchdog = self.watchdog;
                let mut e = self.emit(ctx, s.loc);
                watchdog.finish_warp(&mut e);
                e.append([s.clone()]);
                return (e.finish(), false);
            }
            _ => {}
        }
        let kind = Facts::of(op).syncs.iter().find_map(WaitKind::of_sync);
        match kind {
            Some(kind) => (self.recorded_wait(op, s, kind, ctx), false),
            None => (vec![s.clone()], false),
        }
    }

    fn site(&mut self, op: &Op, loc: Loc, kind: WaitKind) -> u16 {
        self.sites.push(WaitSite::new(op, loc, kind));
        (self.sites.len() - 1) as u16
    }

    fn replaced(&self, named: NamedId) -> Option<ReplacedBarrier> {
        self.replaced.iter().find(|t| t.named == named).copied()
    }

    /// Rewrites a wait without a timeout: the warp records it first. A barrier may complete
    /// because the missing warps exited; then this warp exits too.
    fn recorded_wait(&mut self, op: &Op, s: &Stmt, kind: WaitKind, ctx: StmtContext) -> Vec<Stmt> {
        let site = self.site(op, s.loc, kind);
        let watchdog = self.watchdog;
        let mut e = self.emit(ctx, s.loc);
        let none = Operand::Imm(0);
        watchdog
            .status
            .write(&mut e, State::Waiting, site, none, none);
        e.append([s.clone()]);
        if kind.is_barrier() {
            let aborted = watchdog.is_aborted(&mut e);
            let aborted = warp_any(&mut e, aborted, ctx);
            e.if_(aborted, |e| {
                watchdog.status.write(e, State::TimedOut, site, none, none);
                abandon(e, watchdog, ctx);
            });
        }
        watchdog.status.write_state(&mut e, State::Running);
        e.finish()
    }

    /// Rewrites an mbarrier wait: polls until the phase completes or the limit expires.
    fn timed_wait(
        &mut self,
        wait: &MbarrierWait,
        site: u16,
        loc: Loc,
        ctx: StmtContext,
    ) -> Rewritten {
        let watchdog = self.watchdog;
        let mut e = self.emit(ctx, loc);
        let done = e.false_pred();
        poll_phase(&mut e, done, wait.bar, wait.parity, wait.scope);
        let pending = e.not(done);
        let must_wait = warp_any(&mut e, pending, ctx);
        e.if_(must_wait, |e| {
            let start = e.special(Special::GlobalTimer);
            e.while_(|e| {
                poll_phase(e, done, wait.bar, wait.parity, wait.scope);
                let abandoned = watchdog.must_abandon(e, start);
                let is_over = e.or(done, abandoned);
                let keep_polling = e.not(is_over);
                warp_any(e, keep_polling, ctx)
            });
            let timed_out = e.not(done);
            let timed_out = warp_any(e, timed_out, ctx);
            let (index, parity) = (wait.bar.index, wait.parity);
            e.if_(timed_out, |e| {
                watchdog
                    .status
                    .write(e, State::TimedOut, site, index, parity);
                abandon(e, watchdog, ctx);
            });
        });
        (e.finish(), ctx.exiting.is_some())
    }

    /// Rewrites a spin loop: polls until the limit expires.
    fn spin(
        &mut self,
        s: &Stmt,
        head: &Block,
        cond: RegId,
        body: &Block,
        ctx: StmtContext,
    ) -> Rewritten {
        let Some((poll, loc)) = first_op(head) else {
            return self.while_loop(s, head, cond, body, ctx);
        };
        let site = self.site(poll, loc, WaitKind::Poll);
        let watchdog = self.watchdog;
        let mut e = self.emit(ctx, s.loc);
        let timed_out = e.false_pred();
        let start = e.special(Special::GlobalTimer);
        let mut keep_polling = cond;
        let head = e.block(|e| {
            e.append(head.0.iter().cloned());
            let continues = e.not(timed_out);
            keep_polling = e.and(cond, continues);
        });
        let body = e.block(|e| {
            e.append(body.0.iter().cloned());
            let abandoned = watchdog.must_abandon(e, start);
            let abandoned = warp_any(e, abandoned, ctx);
            e.mov(Type::Pred, timed_out, abandoned);
        });
        e.push(StmtKind::While {
            head,
            cond: keep_polling,
            body,
        });
        e.if_(timed_out, |e| {
            let none = Operand::Imm(0);
            watchdog.status.write(e, State::TimedOut, site, none, none);
            abandon(e, watchdog, ctx);
        });
        (e.finish(), ctx.exiting.is_some())
    }

    /// Rewrites a replaced named barrier: the warp arrives, and waits if there is a site.
    fn mbarrier_sync(
        &mut self,
        replaced: ReplacedBarrier,
        site: Option<u16>,
        loc: Loc,
        ctx: StmtContext,
    ) -> Rewritten {
        let parity = self.parity(replaced.named, ctx, loc);
        let bar = single_barrier(replaced.bar);
        let mut e = self.emit(ctx, loc);
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
            out.append(&mut self.timed_wait(&wait, site, loc, ctx).0);
        }
        let mut e = self.emit(ctx, loc);
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
    fn parity(&mut self, named: NamedId, ctx: StmtContext, loc: Loc) -> RegId {
        let is_same = |p: &&Parity| p.named == named && p.role == ctx.role;
        if let Some(p) = self.parities.iter().find(is_same) {
            return p.reg;
        }
        let reg = self.emit(ctx, loc).reg(Type::U32);
        let role = ctx.role;
        self.parities.push(Parity { role, named, reg });
        reg
    }
}

/// Votes over the warp where it is converged; returns the lane's own predicate in divergent code.
fn warp_any(e: &mut Emitter<'_>, p: RegId, ctx: StmtContext) -> RegId {
    match ctx.exiting {
        Some(_) => p,
        None => e.any_lane(p),
    }
}

/// Exits the warp where it is converged; marks the lanes as exiting in divergent code.
fn abandon(e: &mut Emitter<'_>, watchdog: Watchdog, ctx: StmtContext) {
    match ctx.exiting {
        Some(exiting) => e.mov(Type::Pred, exiting, Operand::imm(true)),
        None => watchdog.exit_warp(e, ctx.pending),
    }
}

fn first_op(block: &Block) -> Option<(&Op, Loc)> {
    block.0.iter().find_map(|s| match &s.kind {
        StmtKind::Op(op) => Some((op, s.loc)),
        _ => None,
    })
}

/// Returns whether a loop only waits: it polls memory or a barrier, and otherwise sleeps.
fn is_spin(head: &Block, body: &Block) -> bool {
    let sleeps = |s: &Stmt| matches!(&s.kind, StmtKind::Op(Op::Nanosleep(_)));
    let mut polls = false;
    let mut has_no_wait = true;
    for s in &head.0 {
        let StmtKind::Op(op) = &s.kind else {
            return false;
        };
        let facts = Facts::of(op);
        let reads = |a: AccessKind| a != AccessKind::Write;
        polls |= facts.touches.iter().any(|t| reads(t.access));
        polls |= facts.syncs.iter().any(|s| matches!(s, SyncOp::Test { .. }));
        has_no_wait &= !facts.syncs.iter().any(|s| WaitKind::of_sync(s).is_some());
    }
    polls && has_no_wait && body.0.iter().all(sleeps)
}
