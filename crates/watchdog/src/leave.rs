//! Leaving: how a warp ends that has given a wait up.
//!
//! It tells the others, waits for the copies it has issued itself, says that
//! it leaves, and stays until the rest of its CTA does: then nobody issues
//! anything any more, and after a while no copy is in flight. If the rest does
//! not come, some warp is in a wait that cannot be given up; only a trap ends
//! that.

use crate::emit::{ALL_LANES, Emit};
use crate::gear::Gear;
use crate::note::State;
use warpline_ir::ops::bulk::BulkWait;
use warpline_ir::ops::control::{Exit, Nanosleep, Trap};
use warpline_ir::ops::copy::CopyWait;
use warpline_ir::ops::mbarrier::{MbarrierArrive, MbarrierTest};
use warpline_ir::ops::warp::WarpSync;
use warpline_ir::ops::wgmma::WgmmaWait;
use warpline_ir::{BarId, BarRef, Block, Op, Operand, RegId, Scope, Special, StmtKind, Type};

/// The work in flight that warps of a role wait for themselves.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Drains {
    bulk: bool,
    copies: bool,
    products: bool,
}

impl Drains {
    /// Those of a body.
    pub(crate) fn of(body: &Block) -> Self {
        let mut drains = Self::default();
        body.each(&mut |s| match &s.kind {
            StmtKind::Op(Op::BulkCommit(_)) => drains.bulk = true,
            StmtKind::Op(Op::CopyAsync(_)) => drains.copies = true,
            StmtKind::Op(Op::WgmmaCommit(_)) => drains.products = true,
            _ => {}
        });
        drains
    }
}

impl Gear {
    /// The whole warp leaves; its note is written.
    pub(crate) fn leave(&self, e: &mut Emit<'_>, drains: Drains) {
        self.abort(e);
        if drains.bulk {
            let (pending, read) = (0, false);
            e.op(BulkWait { pending, read });
        }
        if drains.copies {
            e.op(CopyWait { pending: None });
        }
        if drains.products {
            // Without it, ptxas waits for products on the way that stays (C7517).
            e.op(WgmmaWait { pending: 0 });
        }
        if let Some(left) = self.left {
            self.arrive(e);
            self.rendezvous(e, left);
        }
        let start = e.special(Special::GlobalTimer);
        e.while_(|e| {
            e.op(Nanosleep { ns: 1000 });
            let past = e.past(start, self.limits.linger);
            let stay = e.not(past);
            e.any(stay)
        });
        e.op(Exit);
    }

    /// The warp ends by itself.
    pub(crate) fn done(&self, e: &mut Emit<'_>) {
        self.arrive(e);
        self.notes.state(e, State::Done);
    }

    /// The warp will issue nothing more.
    fn arrive(&self, e: &mut Emit<'_>) {
        let Some(left) = self.left else { return };
        e.op(WarpSync { mask: ALL_LANES });
        e.elect(|e| {
            e.op(MbarrierArrive {
                bar: only(left),
                count: Operand::imm(1u32),
                tx: None,
                scope: Scope::Cta,
                leave: false,
            });
        });
    }

    /// Waits for the rest of the CTA, or traps.
    fn rendezvous(&self, e: &mut Emit<'_>, left: BarId) {
        let start = e.special(Special::GlobalTimer);
        let all = e.no();
        e.while_(|e| {
            ask(e, all, only(left), Operand::Imm(0), Scope::Cta);
            let late = e.past(start, self.limits.leave);
            let over = e.or(all, late);
            let stay = e.not(over);
            e.any(stay)
        });
        let missing = e.not(all);
        let missing = e.any(missing);
        e.if_(missing, |e| e.op(Trap));
    }
}

/// The barrier of an array of one.
pub(crate) fn only(bar: BarId) -> BarRef {
    let (index, peer) = (Operand::Imm(0), None);
    BarRef { bar, index, peer }
}

/// Asks once more whether a phase is complete; what was answered yes stays yes.
pub(crate) fn ask(e: &mut Emit<'_>, known: RegId, bar: BarRef, parity: Operand, scope: Scope) {
    let dst = e.reg(Type::Pred);
    e.op(MbarrierTest {
        dst,
        bar,
        parity,
        scope,
        sleep: true,
    });
    let either = e.or(known, dst);
    e.mov(Type::Pred, known, either);
}
