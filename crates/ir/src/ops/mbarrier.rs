//! Mbarriers: arrivals and bytes that complete phases.
//!
//! A phase completes when all arrivals are in and as many bytes have come as
//! were expected; its number's parity is what waiters name. Only arrivals and
//! expected bytes may go to a peer's barrier, whose address the printer forms
//! from the rank (`mapa`). The state tokens that `arrive` can give are not
//! used: waits by parity need none.

use super::control::{acts, uniform};
use super::{Exactness, Info, Instr, Uniform};
use crate::machine::{Asm, Effects, Exec, Machine, Mask, Step};
use crate::sync::{Scope, Sync};
use crate::target::Target;
use crate::types::Type;
use crate::value::{BarRef, Operand, RegId};

/// The most arrivals a phase can count.
const MOST_ARRIVALS: u32 = (1 << 20) - 1;

/// The state space of a barrier's address.
fn space(bar: &BarRef) -> &'static str {
    match bar.peer {
        None => "shared::cta",
        Some(_) => "shared::cluster",
    }
}

/// The suffix of an order at the cluster's scope; the CTA's is what PTX takes by itself.
fn at_cluster(order: &'static str, scope: Scope) -> &'static str {
    if scope == Scope::Cta { "" } else { order }
}

/// Refuses a scope wider than an mbarrier reaches.
fn legal_scope(scope: Scope) -> Result<(), String> {
    match scope {
        Scope::Cta | Scope::Cluster => Ok(()),
        wider => Err(format!(
            "an mbarrier orders memory in its CTA or cluster, not at scope {}",
            wider.ptx()
        )),
    }
}

/// Refuses a peer's barrier.
fn legal_local(name: &str, bar: &BarRef) -> Result<(), String> {
    match bar.peer {
        None => Ok(()),
        Some(_) => Err(format!(
            "{name} takes a barrier of the CTA itself, not of a peer"
        )),
    }
}

/// Refuses a count of arrivals that a phase cannot have.
fn legal_count(count: u32) -> Result<(), String> {
    if (1..=MOST_ARRIVALS).contains(&count) {
        return Ok(());
    }
    Err(format!(
        "an mbarrier counts 1 to {MOST_ARRIVALS} arrivals, not {count}"
    ))
}

/// Brings an mbarrier to life.
#[derive(Clone, PartialEq, Debug)]
pub struct MbarrierInit {
    /// The barrier.
    pub bar: BarRef,
    /// Arrivals that complete a phase.
    pub count: u32,
}

impl MbarrierInit {
    fn act(&self) -> Sync {
        Sync::Init {
            bar: self.bar,
            count: self.count,
        }
    }
}

impl Instr for MbarrierInit {
    const INFO: Info = Info {
        name: "mbarrier_init",
        ptx: "mbarrier.init.shared::cta.b64",
        doc: "brings an mbarrier to life, expecting some arrivals per phase",
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
    acts!();
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_local("mbarrier_init", &self.bar)?;
        legal_count(self.count)
    }
}

/// Ends an mbarrier, so that its bytes may serve something else.
#[derive(Clone, PartialEq, Debug)]
pub struct MbarrierInval {
    /// The barrier.
    pub bar: BarRef,
}

impl MbarrierInval {
    fn act(&self) -> Sync {
        Sync::Inval { bar: self.bar }
    }
}

impl Instr for MbarrierInval {
    const INFO: Info = Info {
        name: "mbarrier_inval",
        ptx: "mbarrier.inval.shared::cta.b64",
        doc: "ends an mbarrier",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "mbarrier_inval".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        let bar = a.barrier(&self.bar);
        a.emit(format!("mbarrier.inval.shared::cta.b64 [{bar}]"));
    }
    acts!();
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_local("mbarrier_inval", &self.bar)
    }
}

/// Arrives, perhaps after announcing bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct MbarrierArrive {
    /// The barrier, here or in a peer.
    pub bar: BarRef,
    /// How many arrivals (`u32`).
    pub count: Operand,
    /// Bytes to expect on top (`u32`).
    pub tx: Option<Operand>,
    /// Who sees this thread's writes.
    pub scope: Scope,
    /// Does the thread leave the barrier, which expects as many arrivals fewer from the next phase on?
    pub leave: bool,
}

impl MbarrierArrive {
    fn act(&self) -> Sync {
        Sync::Arrive {
            bar: self.bar,
            count: self.count,
            tx: self.tx,
            scope: self.scope,
            leave: self.leave,
        }
    }
}

impl Instr for MbarrierArrive {
    const INFO: Info = Info {
        name: "mbarrier_arrive",
        ptx: "mbarrier.{arrive,arrive_drop}{.expect_tx}{.release.cluster}.{shared::cta,shared::cluster}.b64",
        doc: "arrives at an mbarrier, after announcing bytes if any, and leaves it for good if asked to",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let leave = if self.leave { ".drop" } else { "" };
        format!("mbarrier_arrive{leave}.{}", self.scope.ptx())
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (space, release) = (space(&self.bar), at_cluster(".release.cluster", self.scope));
        let bar = a.barrier(&self.bar);
        let tx = self.tx.map(|tx| a.operand(tx, Type::U32));
        let verb = if self.leave { "arrive_drop" } else { "arrive" };
        match (tx, self.count) {
            (Some(tx), Operand::Imm(1)) => a.emit(format!(
                "mbarrier.{verb}.expect_tx{release}.{space}.b64 _, [{bar}], {tx}"
            )),
            (tx, count) => {
                // `expect_tx` arrives once; more arrivals announce apart.
                if let Some(tx) = tx {
                    a.emit(format!("mbarrier.expect_tx.{space}.b64 [{bar}], {tx}"));
                }
                let many = match count {
                    Operand::Imm(1) => String::new(),
                    count => format!(", {}", a.operand(count, Type::U32)),
                };
                a.emit(format!(
                    "mbarrier.{verb}{release}.{space}.b64 _, [{bar}]{many}"
                ));
            }
        }
    }
    acts!();
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_scope(self.scope)?;
        match self.count {
            Operand::Imm(n) => legal_count(u32::try_from(n).unwrap_or(u32::MAX)),
            Operand::Reg(_) => Ok(()),
        }
    }
}

/// Announces bytes to the current phase without arriving.
#[derive(Clone, PartialEq, Debug)]
pub struct MbarrierExpectTx {
    /// The barrier, here or in a peer.
    pub bar: BarRef,
    /// Bytes to expect on top (`u32`).
    pub tx: Operand,
}

impl MbarrierExpectTx {
    fn act(&self) -> Sync {
        Sync::ExpectTx {
            bar: self.bar,
            tx: self.tx,
        }
    }
}

impl Instr for MbarrierExpectTx {
    const INFO: Info = Info {
        name: "mbarrier_expect_tx",
        ptx: "mbarrier.expect_tx.{shared::cta,shared::cluster}.b64",
        doc: "announces bytes to the current phase of an mbarrier",
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
    acts!();
}

/// Waits until the phase of a parity is complete.
#[derive(Clone, PartialEq, Debug)]
pub struct MbarrierWait {
    /// The barrier.
    pub bar: BarRef,
    /// The parity of the phase (`u32`, 0 or 1).
    pub parity: Operand,
    /// Whose writes are seen after.
    pub scope: Scope,
}

impl MbarrierWait {
    fn act(&self) -> Sync {
        Sync::Wait {
            bar: self.bar,
            parity: self.parity,
            scope: self.scope,
        }
    }
}

impl Instr for MbarrierWait {
    const INFO: Info = Info {
        name: "mbarrier_wait",
        ptx: "mbarrier.try_wait.parity{.acquire.cluster}.shared::cta.b64, in a loop",
        doc: "waits until the phase of a parity is complete",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("mbarrier_wait.{}", self.scope.ptx())
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (bar, parity) = (a.barrier(&self.bar), a.operand(self.parity, Type::U32));
        let acquire = at_cluster(".acquire.cluster", self.scope);
        let (done, again) = (a.temp(Type::Pred), a.label());
        a.emit(format!(
            "{again}: mbarrier.try_wait.parity{acquire}.shared::cta.b64 {done}, [{bar}], {parity}"
        ));
        a.emit(format!("@!{done} bra {again}"));
    }
    acts!();
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_local("mbarrier_wait", &self.bar)?;
        legal_scope(self.scope)
    }
}

/// Asks whether the phase of a parity is complete.
#[derive(Clone, PartialEq, Debug)]
pub struct MbarrierTest {
    /// Set where it is (`pred`).
    pub dst: RegId,
    /// The barrier, the same in every active lane.
    pub bar: BarRef,
    /// The parity of the phase (`u32`, 0 or 1).
    pub parity: Operand,
    /// Whose writes are seen after a yes.
    pub scope: Scope,
    /// May the thread be put to sleep for a while before a no (`try_wait`)?
    pub sleep: bool,
}

impl MbarrierTest {
    fn act(&self) -> Sync {
        Sync::Test {
            bar: self.bar,
            parity: self.parity,
            scope: self.scope,
        }
    }
}

impl Instr for MbarrierTest {
    const INFO: Info = Info {
        name: "mbarrier_test",
        ptx: "mbarrier.{test_wait,try_wait}.parity{.acquire.cluster}.shared::cta.b64",
        doc: "asks whether the phase of a parity is complete; `try_wait` may sleep for a while before it says no",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let sleep = if self.sleep { ".sleep" } else { "" };
        format!("mbarrier_test{sleep}.{}", self.scope.ptx())
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.sync(&self.act());
    }
    fn uniform(&self, _: Uniform) -> Uniform {
        Uniform::Lane
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (dst, bar) = (a.reg(self.dst), a.barrier(&self.bar));
        let parity = a.operand(self.parity, Type::U32);
        let acquire = at_cluster(".acquire.cluster", self.scope);
        let verb = if self.sleep { "try_wait" } else { "test_wait" };
        a.emit(format!(
            "mbarrier.{verb}.parity{acquire}.shared::cta.b64 {dst}, [{bar}], {parity}"
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        uniform::<u32, M>(m, self.bar.index, "the barrier of mbarrier_test")?;
        uniform::<u32, M>(m, self.parity, "the parity of mbarrier_test")?;
        let yes = match m.sync(&self.act())? {
            Step::Next => Mask::MAX,
            Step::Blocked => 0,
        };
        m.set_pred(self.dst, yes);
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_local("mbarrier_test", &self.bar)?;
        legal_scope(self.scope)
    }
}

#[cfg(test)]
mod tests;
