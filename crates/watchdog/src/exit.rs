//! The exit of a warp after a timeout.
//!
//! The warp sets the abort word, waits for its own copies, arrives at the exit barrier, and waits
//! for the other warps of its CTA. After that no warp issues copies, and after a delay none is in
//! flight. If the other warps do not arrive, one of them is in a wait without a timeout; only a
//! trap ends such a launch.

use crate::emit::{ALL_LANES, Emitter};
use crate::status::State;
use crate::watchdog::Watchdog;
use warpline_ir::ops::bulk::BulkWait;
use warpline_ir::ops::control::{Exit, Nanosleep, Trap};
use warpline_ir::ops::copy::CopyWait;
use warpline_ir::ops::mbarrier::{MbarrierArrive, MbarrierTest};
use warpline_ir::ops::warp::WarpSync;
use warpline_ir::ops::wgmma::WgmmaWait;
use warpline_ir::{BarId, BarRef, Block, Op, Operand, RegId, Scope, Special, StmtKind, Type};

/// The asynchronous operations that a role issues and that its warps must drain before they exit.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct PendingOps {
    bulk: bool,
    copies: bool,
    wgmmas: bool,
}

impl PendingOps {
    /// Collects the operations of a role's body.
    pub(crate) fn in_body(body: &Block) -> Self {
        let mut pending = Self::default();
        body.each(&mut |s| match &s.kind {
            StmtKind::Op(Op::BulkCommit(_)) => pending.bulk = true,
            StmtKind::Op(Op::CopyAsync(_)) => pending.copies = true,
            StmtKind::Op(Op::WgmmaCommit(_)) => pending.wgmmas = true,
            _ => {}
        });
        pending
    }
}

impl Watchdog {
    /// Emits the exit of the whole warp; its status is already written.
    pub(crate) fn exit_warp(&self, e: &mut Emitter<'_>, pending: PendingOps) {
        self.set_abort(e);
        if pending.bulk {
            let (pending, read) = (0, false);
            e.op(BulkWait { pending, read });
        }
        if pending.copies {
            e.op(CopyWait { pending: None });
        }
        if pending.wgmmas {
            // Without this wait, ptxas inserts a wgmma wait on the path that does not exit (C7517).
            e.op(WgmmaWait { pending: 0 });
        }
        if let Some(bar) = self.exit_barrier {
            self.arrive_exit(e);
            self.wait_for_cta(e, bar);
        }
        let start = e.special(Special::GlobalTimer);
        e.while_(|e| {
            e.op(Nanosleep { ns: 1000 });
            let is_drained = e.elapsed(start, self.limits.drain_ns);
            let keep_waiting = e.not(is_drained);
            e.any_lane(keep_waiting)
        });
        e.op(Exit);
    }

    /// Emits the normal end of a warp.
    pub(crate) fn finish_warp(&self, e: &mut Emitter<'_>) {
        self.arrive_exit(e);
        self.status.write_state(e, State::Done);
    }

    /// Emits the warp's arrival at the exit barrier. The warp issues no asynchronous operations
    /// after it.
    fn arrive_exit(&self, e: &mut Emitter<'_>) {
        let Some(bar) = self.exit_barrier else { return };
        e.op(WarpSync { mask: ALL_LANES });
        e.elect(|e| {
            e.op(MbarrierArrive {
                bar: single_barrier(bar),
                count: Operand::imm(1u32),
                tx: None,
                scope: Scope::Cta,
                drop: false,
            });
        });
    }

    /// Emits a wait for the other warps of the CTA, and a trap after the limit.
    fn wait_for_cta(&self, e: &mut Emitter<'_>, bar: BarId) {
        let start = e.special(Special::GlobalTimer);
        let all_arrived = e.false_pred();
        e.while_(|e| {
            poll_phase(
                e,
                all_arrived,
                single_barrier(bar),
                Operand::Imm(0),
                Scope::Cta,
            );
            let timed_out = e.elapsed(start, self.limits.exit_ns);
            let is_over = e.or(all_arrived, timed_out);
            let keep_waiting = e.not(is_over);
            e.any_lane(keep_waiting)
        });
        let missing = e.not(all_arrived);
        let missing = e.any_lane(missing);
        e.if_(missing, |e| e.op(Trap));
    }
}

/// References the barrier of an array of length 1.
pub(crate) fn single_barrier(bar: BarId) -> BarRef {
    let (index, peer) = (Operand::Imm(0), None);
    BarRef { bar, index, peer }
}

/// Emits one poll of a phase, and ORs the result into `completed`.
pub(crate) fn poll_phase(
    e: &mut Emitter<'_>,
    completed: RegId,
    bar: BarRef,
    parity: Operand,
    scope: Scope,
) {
    let dst = e.reg(Type::Pred);
    e.op(MbarrierTest {
        dst,
        bar,
        parity,
        scope,
        may_suspend: true,
    });
    let either = e.or(completed, dst);
    e.mov(Type::Pred, completed, either);
}
