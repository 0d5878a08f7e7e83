//! Mbarriers: barriers in shared memory that count arrivals and transaction bytes.
//!
//! A phase completes when the pending arrival count and the tx-count are zero.
//! A wait names the parity of the phase. Only `arrive` and `expect_tx` may name
//! an mbarrier of a peer; the printer computes its address from the rank
//! (`mapa`). The ops discard the state token of `arrive`, because waits by
//! parity do not need it.

use super::control::{sync_instr, uniform_value};
use super::{Exactness, Instr, OpInfo, Uniform};
use crate::machine::{Asm, Effects, Exec, ExecStatus, Machine, Mask};
use crate::sync::{Scope, SyncOp};
use crate::target::Target;
use crate::types::Type;
use crate::value::{BarRef, Operand, RegId};

/// Maximum arrival count of a phase.
const MAX_ARRIVALS: u32 = (1 << 20) - 1;

/// Returns the PTX state space of a barrier's address.
fn space(bar: &BarRef) -> &'static str {
    match bar.peer {
        None => "shared::cta",
        Some(_) => "shared::cluster",
    }
}

/// Returns the suffix of an order at cluster scope; CTA scope is the default of PTX.
fn cluster_suffix(order: &'static str, scope: Scope) -> &'static str {
    if scope == Scope::Cta { "" } else { order }
}

/// Rejects a scope wider than the cluster.
fn legal_scope(scope: Scope) -> Result<(), String> {
    match scope {
        Scope::Cta | Scope::Cluster => Ok(()),
        wider => Err(format!(
            "mbarrier operation at scope {}; the scope must be cta or cluster",
            wider.ptx()
        )),
    }
}

/// Rejects an mbarrier of a peer.
fn legal_local(name: &str, bar: &BarRef) -> Result<(), String> {
    match bar.peer {
        None => Ok(()),
        Some(_) => Err(format!(
            "{name} on an mbarrier of a peer; the barrier must be in the same CTA"
        )),
    }
}

/// Rejects an arrival count out of range.
fn legal_count(count: u32) -> Result<(), String> {
    if (1..=MAX_ARRIVALS).contains(&count) {
        return Ok(());
    }
    Err(format!(
        "arrival count {count} is out of range; it must be 1 to {MAX_ARRIVALS}"
    ))
}

/// Initializes an mbarrier.
#[derive(Clone, PartialEq, Debug)]
pub struct MbarrierInit {
    /// The barrier.
    pub bar: BarRef,
    /// The arrival count of each phase.
    pub count: u32,
}

impl MbarrierInit {
    fn sync_op(&self) -> SyncOp {
        SyncOp::Init {
            bar: self.bar,
            count: self.count,
        }
    }
}

impl Instr for MbarrierInit {
    const INFO: OpInfo = OpInfo {
        name: "mbarrier_init",
        ptx: "mbarrier.init.shared::cta.b64",
        doc: "initializes an mbarrier with an arrival count",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "mbarrier_init".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        let bar = a.barrier(&self.bar);
        a.emit(format!(
            "mbarrier.init.shared::cta.b64 [{bar}], {}",
            self.count
        ));
    }
    sync_instr!();
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_local("mbarrier_init", &self.bar)?;
        legal_count(self.count)
    }
}

/// Invalidates an mbarrier, so that its bytes may be reused.
#[derive(Clone, PartialEq, Debug)]
pub struct MbarrierInval {
    /// The barrier.
    pub bar: BarRef,
}

impl MbarrierInval {
    fn sync_op(&self) -> SyncOp {
        SyncOp::Inval { bar: self.bar }
    }
}

impl Instr for MbarrierInval {
    const INFO: OpInfo = OpInfo {
        name: "mbarrier_inval",
        ptx: "mbarrier.inval.shared::cta.b64",
        doc: "invalidates an mbarrier, so that its bytes may be reused",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "mbarrier_inval".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        let bar = a.barrier(&self.bar);
        a.emit(format!("mbarrier.inval.shared::cta.b64 [{bar}]"));
    }
    sync_instr!();
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_local("mbarrier_inval", &self.bar)
    }
}

/// Arrives on an mbarrier, optionally after `expect_tx`.
#[derive(Clone, PartialEq, Debug)]
pub struct MbarrierArrive {
    /// The barrier, in this CTA or in a peer.
    pub bar: BarRef,
    /// Number of arrivals (`u32`).
    pub count: Operand,
    /// Transaction bytes to expect (`u32`).
    pub tx: Option<Operand>,
    /// Scope of the release.
    pub scope: Scope,
    /// `arrive_drop`: the arrival count of later phases decreases by `count`.
    pub drop: bool,
}

impl MbarrierArrive {
    fn sync_op(&self) -> SyncOp {
        SyncOp::Arrive {
            bar: self.bar,
            count: self.count,
            tx: self.tx,
            scope: self.scope,
            drop: self.drop,
        }
    }
}

impl Instr for MbarrierArrive {
    const INFO: OpInfo = OpInfo {
        name: "mbarrier_arrive",
        ptx: "mbarrier.{arrive,arrive_drop}{.expect_tx}{.release.cluster}.{shared::cta,shared::cluster}.b64",
        doc: "arrives on an mbarrier; optionally expects transaction bytes first, and drops out of later phases",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let drop = if self.drop { ".drop" } else { "" };
        format!("mbarrier_arrive{drop}.{}", self.scope.ptx())
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (space, release) = (
            space(&self.bar),
            cluster_suffix(".release.cluster", self.scope),
        );
        let bar = a.barrier(&self.bar);
        let tx = self.tx.map(|tx| a.operand(tx, Type::U32));
        let verb = if self.drop { "arrive_drop" } else { "arrive" };
        match (tx, self.count) {
            (Some(tx), Operand::Imm(1)) => a.emit(format!(
                "mbarrier.{verb}.expect_tx{release}.{space}.b64 _, [{bar}], {tx}"
            )),
            (tx, count) => {
                // `arrive.expect_tx` arrives once; several arrivals need a separate `expect_tx`.
                if let Some(tx) = tx {
                    a.emit(format!("mbarrier.expect_tx.{space}.b64 [{bar}], {tx}"));
                }
                let count = match count {
                    Operand::Imm(1) => String::new(),
                    count => format!(", {}", a.operand(count, Type::U32)),
                };
                a.emit(format!(
                    "mbarrier.{verb}{release}.{space}.b64 _, [{bar}]{count}"
                ));
            }
        }
    }
    sync_instr!();
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_scope(self.scope)?;
        match self.count {
            Operand::Imm(n) => legal_count(u32::try_from(n).unwrap_or(u32::MAX)),
            Operand::Reg(_) => Ok(()),
        }
    }
}

/// Increases the expected transaction bytes of the current phase without arriving.
#[derive(Clone, PartialEq, Debug)]
pub struct MbarrierExpectTx {
    /// The barrier, in this CTA or in a peer.
    pub bar: BarRef,
    /// Transaction bytes to expect (`u32`).
    pub tx: Operand,
}

impl MbarrierExpectTx {
    fn sync_op(&self) -> SyncOp {
        SyncOp::ExpectTx {
            bar: self.bar,
            tx: self.tx,
        }
    }
}

impl Instr for MbarrierExpectTx {
    const INFO: OpInfo = OpInfo {
        name: "mbarrier_expect_tx",
        ptx: "mbarrier.expect_tx.{shared::cta,shared::cluster}.b64",
        doc: "increases the expected transaction bytes of the current phase of an mbarrier",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "mbarrier_expect_tx".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (bar, tx) = (a.barrier(&self.bar), a.operand(self.tx, Type::U32));
        a.emit(format!(
            "mbarrier.expect_tx.{}.b64 [{bar}], {tx}",
            space(&self.bar)
        ));
    }
    sync_instr!();
}

/// Waits until the phase of a parity completes.
#[derive(Clone, PartialEq, Debug)]
pub struct MbarrierWait {
    /// The barrier.
    pub bar: BarRef,
    /// The parity of the phase (`u32`, 0 or 1).
    pub parity: Operand,
    /// Scope of the acquire.
    pub scope: Scope,
}

impl MbarrierWait {
    fn sync_op(&self) -> SyncOp {
        SyncOp::Wait {
            bar: self.bar,
            parity: self.parity,
            scope: self.scope,
        }
    }
}

impl Instr for MbarrierWait {
    const INFO: OpInfo = OpInfo {
        name: "mbarrier_wait",
        ptx: "mbarrier.try_wait.parity{.acquire.cluster}.shared::cta.b64, in a loop",
        doc: "waits until the phase of a parity completes",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("mbarrier_wait.{}", self.scope.ptx())
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (bar, parity) = (a.barrier(&self.bar), a.operand(self.parity, Type::U32));
        let acquire = cluster_suffix(".acquire.cluster", self.scope);
        let (done, again) = (a.temp(Type::Pred), a.label());
        a.emit(format!(
            "{again}: mbarrier.try_wait.parity{acquire}.shared::cta.b64 {done}, [{bar}], {parity}"
        ));
        a.emit(format!("@!{done} bra {again}"));
    }
    sync_instr!();
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_local("mbarrier_wait", &self.bar)?;
        legal_scope(self.scope)
    }
}

/// Tests whether the phase of a parity is complete.
#[derive(Clone, PartialEq, Debug)]
pub struct MbarrierTest {
    /// Whether the phase is complete (`pred`).
    pub dst: RegId,
    /// The barrier, the same in every active lane.
    pub bar: BarRef,
    /// The parity of the phase (`u32`, 0 or 1).
    pub parity: Operand,
    /// Scope of the acquire, if the phase is complete.
    pub scope: Scope,
    /// The thread may be suspended for a limited time (`try_wait`); otherwise `test_wait`.
    pub may_suspend: bool,
}

impl MbarrierTest {
    fn sync_op(&self) -> SyncOp {
        SyncOp::Test {
            bar: self.bar,
            parity: self.parity,
            scope: self.scope,
        }
    }
}

impl Instr for MbarrierTest {
    const INFO: OpInfo = OpInfo {
        name: "mbarrier_test",
        ptx: "mbarrier.{test_wait,try_wait}.parity{.acquire.cluster}.shared::cta.b64",
        doc: "tests whether the phase of a parity is complete; `try_wait` may suspend the thread for a limited time",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let sleep = if self.may_suspend { ".sleep" } else { "" };
        format!("mbarrier_test{sleep}.{}", self.scope.ptx())
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.sync(&self.sync_op());
    }
    fn uniform(&self, _: Uniform) -> Uniform {
        Uniform::Lane
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (dst, bar) = (a.reg(self.dst), a.barrier(&self.bar));
        let parity = a.operand(self.parity, Type::U32);
        let acquire = cluster_suffix(".acquire.cluster", self.scope);
        let verb = if self.may_suspend {
            "try_wait"
        } else {
            "test_wait"
        };
        a.emit(format!(
            "mbarrier.{verb}.parity{acquire}.shared::cta.b64 {dst}, [{bar}], {parity}"
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        uniform_value::<u32, M>(m, self.bar.index, "barrier index")?;
        uniform_value::<u32, M>(m, self.parity, "parity")?;
        let complete = match m.sync(&self.sync_op())? {
            ExecStatus::Completed => Mask::MAX,
            ExecStatus::Blocked => 0,
        };
        m.set_pred(self.dst, complete);
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_local("mbarrier_test", &self.bar)?;
        legal_scope(self.scope)
    }
}

#[cfg(test)]
mod tests;
