//! CTA and named barriers, register budgets, dependent launches, exit and trap.

use super::compare::predicate;
use super::{Exactness, Instr, OpInfo, Uniform};
use crate::lanes::lanes_of;
use crate::machine::{Asm, Effects, Exec, ExecStatus, Fault, FaultKind, Lane, Machine, Mask};
use crate::sync::{BarrierReduction, SyncOp};
use crate::target::Target;
use crate::value::{NamedId, Operand, RegId};

/// Rejects an `.aligned` op that only part of a warp executes.
pub(super) fn require_whole_warp<M: Machine>(m: &M) -> Result<(), Fault> {
    match m.active() {
        Mask::MAX => Ok(()),
        some => Err(Fault::new(
            FaultKind::Convergence,
            format!(
                "is executed by lanes {some:#010x} only; all lanes of the warp must execute it together"
            ),
        )),
    }
}

/// Returns an operand that must be the same in all active lanes.
pub(super) fn uniform_value<T: Lane + PartialEq + std::fmt::Debug, M: Machine>(
    m: &mut M,
    o: Operand,
    what: &str,
) -> Result<T, Fault> {
    let v = m.get::<T>(o);
    let mut active = lanes_of(m.active()).map(|lane| v[lane]);
    let first = active.next().unwrap_or_default();
    match active.find(|x| *x != first) {
        None => Ok(first),
        Some(other) => Err(Fault::new(
            FaultKind::Convergence,
            format!(
                "has a {what} that differs between lanes: {first:?} and {other:?}; it must be the same in all active lanes"
            ),
        )),
    }
}

/// Implements `effects` and `exec` of an op that is one synchronization operation, its `sync_op()`.
macro_rules! sync_instr {
    () => {
        fn effects(&self, e: &mut dyn $crate::machine::Effects) {
            e.sync(&self.sync_op());
        }
        fn exec<M: $crate::machine::Machine>(&self, m: &mut M) -> $crate::machine::Exec {
            m.sync(&self.sync_op())
        }
    };
    ($whole:ident) => {
        fn effects(&self, e: &mut dyn $crate::machine::Effects) {
            e.$whole();
            e.sync(&self.sync_op());
        }
        fn exec<M: $crate::machine::Machine>(&self, m: &mut M) -> $crate::machine::Exec {
            $crate::ops::control::require_whole_warp(m)?;
            m.sync(&self.sync_op())
        }
    };
}
pub(super) use sync_instr;

/// Synchronizes all threads of the CTA and orders their memory accesses.
#[derive(Clone, PartialEq, Debug)]
pub struct CtaSync;

impl CtaSync {
    fn sync_op(&self) -> SyncOp {
        SyncOp::Cta
    }
}

impl Instr for CtaSync {
    const INFO: OpInfo = OpInfo {
        name: "cta_sync",
        ptx: "barrier.cta.sync.aligned",
        doc: "CTA barrier: synchronizes all threads of the CTA and orders their memory accesses",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "cta_sync".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("barrier.cta.sync.aligned 0".into());
    }
    sync_instr!(whole_warp);
}

/// Rejects an unsupported number of threads of a named barrier.
fn legal_threads(threads: u32, target: &Target) -> Result<(), String> {
    if threads > 0 && threads.is_multiple_of(32) && threads <= target.threads {
        return Ok(());
    }
    Err(format!(
        "named barrier with {threads} threads; the number must be a positive multiple of 32, at most {}",
        target.threads
    ))
}

/// Synchronizes some warps of the CTA and orders their memory accesses.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedSync {
    /// The barrier.
    pub bar: NamedId,
    /// Number of participating threads, including those that only arrive.
    pub threads: u32,
}

impl NamedSync {
    fn sync_op(&self) -> SyncOp {
        SyncOp::NamedSync {
            bar: self.bar,
            threads: self.threads,
        }
    }
}

impl Instr for NamedSync {
    const INFO: OpInfo = OpInfo {
        name: "named_sync",
        ptx: "barrier.cta.sync.aligned",
        doc: "arrives at a named barrier, waits for the other participants and orders memory accesses",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "named_sync".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        let bar = a.named(self.bar);
        a.emit(format!("barrier.cta.sync.aligned {bar}, {}", self.threads));
    }
    sync_instr!(whole_warp);
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_threads(self.threads, target)
    }
}

/// Arrives at a named barrier without waiting.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedArrive {
    /// The barrier.
    pub bar: NamedId,
    /// Number of participating threads, including those that wait.
    pub threads: u32,
}

impl NamedArrive {
    fn sync_op(&self) -> SyncOp {
        SyncOp::NamedArrive {
            bar: self.bar,
            threads: self.threads,
        }
    }
}

impl Instr for NamedArrive {
    const INFO: OpInfo = OpInfo {
        name: "named_arrive",
        ptx: "barrier.cta.arrive.aligned",
        doc: "arrives at a named barrier without waiting",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "named_arrive".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        let bar = a.named(self.bar);
        a.emit(format!(
            "barrier.cta.arrive.aligned {bar}, {}",
            self.threads
        ));
    }
    sync_instr!(whole_warp);
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_threads(self.threads, target)
    }
}

/// Synchronizes some warps of the CTA and reduces a predicate across them (`barrier.red`).
#[derive(Clone, PartialEq, Debug)]
pub struct NamedReduce {
    /// The barrier. All participants of a phase must execute this op.
    pub bar: NamedId,
    /// Number of participating threads.
    pub threads: u32,
    /// The reduction.
    pub reduction: BarrierReduction,
    /// The predicate of each thread.
    pub pred: Operand,
    /// The result, the same in all threads: a count (`u32`) or a predicate.
    pub dst: RegId,
}

impl NamedReduce {
    fn sync_op(&self) -> SyncOp {
        SyncOp::NamedReduce {
            bar: self.bar,
            threads: self.threads,
            reduction: self.reduction,
            pred: self.pred,
            dst: self.dst,
        }
    }
}

impl Instr for NamedReduce {
    const INFO: OpInfo = OpInfo {
        name: "named_tally",
        ptx: "barrier.cta.red.{popc.aligned.u32,and.aligned.pred,or.aligned.pred}",
        doc: "named_sync with a reduction: counts the threads with a true predicate, or tests all or any",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("named_tally.{}", self.reduction.name())
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.whole_warp();
        e.sync(&self.sync_op());
    }
    fn uniform(&self, _: Uniform) -> Uniform {
        // Other warps may execute the same statement in another phase of the barrier.
        Uniform::Warp
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (dst, pred) = (a.reg(self.dst), predicate(a, self.pred));
        let bar = a.named(self.bar);
        let (op, ty) = self.reduction.ptx();
        a.emit(format!(
            "barrier.cta.red.{op}.aligned.{ty} {dst}, {bar}, {}, {pred}",
            self.threads
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        require_whole_warp(m)?;
        m.sync(&self.sync_op())
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_threads(self.threads, target)
    }
}

/// Changes the register budget of the warpgroup (`setmaxnreg`).
#[derive(Clone, PartialEq, Debug)]
pub struct SetMaxRegs {
    /// Registers per thread: a multiple of 8 from 24 to 256.
    pub count: u32,
    /// Increases the budget, and waits for free registers of the CTA's pool; otherwise decreases it.
    pub grow: bool,
}

impl SetMaxRegs {
    fn sync_op(&self) -> SyncOp {
        SyncOp::SetMaxRegs {
            count: self.count,
            grow: self.grow,
        }
    }
}

impl Instr for SetMaxRegs {
    const INFO: OpInfo = OpInfo {
        name: "set_max_regs",
        ptx: "setmaxnreg.{inc,dec}.sync.aligned.u32",
        doc: "changes the registers per thread of a warpgroup; inc waits until the CTA's pool has enough",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("set_max_regs.{}", if self.grow { "inc" } else { "dec" })
    }
    fn asm(&self, a: &mut dyn Asm) {
        let direction = if self.grow { "inc" } else { "dec" };
        a.emit(format!(
            "setmaxnreg.{direction}.sync.aligned.u32 {}",
            self.count
        ));
    }
    sync_instr!(whole_warpgroup);
    fn legal(&self, target: &Target) -> Result<(), String> {
        if !target.features.setmaxnreg {
            return Err(format!("{} does not support setmaxnreg", target.name));
        }
        if !self.count.is_multiple_of(8) || !(24..=256).contains(&self.count) {
            return Err(format!(
                "setmaxnreg to {} registers; the number must be a multiple of 8 from 24 to 256",
                self.count
            ));
        }
        Ok(())
    }
}

/// Lets dependent grids start when every CTA has executed it or exited.
///
/// It does not order memory: dependent grids use [`WaitPrerequisites`] for
/// that. It does nothing in the CPU executor, which runs launches sequentially.
#[derive(Clone, PartialEq, Debug)]
pub struct LaunchDependents;

impl Instr for LaunchDependents {
    const INFO: OpInfo = OpInfo {
        name: "launch_dependents",
        ptx: "griddepcontrol.launch_dependents",
        doc: "PDL: lets dependent grids start; does nothing on the CPU executor, which runs launches one after the other",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "launch_dependents".into()
    }
    fn effects(&self, _: &mut dyn Effects) {}
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("griddepcontrol.launch_dependents".into());
    }
    fn exec<M: Machine>(&self, _: &mut M) -> Exec {
        Ok(ExecStatus::Completed)
    }
}

/// Waits until the prerequisite grids complete and their writes are visible.
///
/// It never blocks in the CPU executor, which runs launches sequentially. On a
/// GPU, it blocks only in a dependent launch.
#[derive(Clone, PartialEq, Debug)]
pub struct WaitPrerequisites;

impl Instr for WaitPrerequisites {
    const INFO: OpInfo = OpInfo {
        name: "wait_prerequisites",
        ptx: "griddepcontrol.wait",
        doc: "PDL: waits until the prerequisite grids complete; never waits on the CPU executor",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "wait_prerequisites".into()
    }
    fn effects(&self, _: &mut dyn Effects) {}
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("griddepcontrol.wait".into());
    }
    fn exec<M: Machine>(&self, _: &mut M) -> Exec {
        Ok(ExecStatus::Completed)
    }
}

/// Suspends the thread for about `ns` nanoseconds, at most twice as long.
#[derive(Clone, PartialEq, Debug)]
pub struct Nanosleep {
    /// Nanoseconds, at most 1 000 000.
    pub ns: u32,
}

impl Instr for Nanosleep {
    const INFO: OpInfo = OpInfo {
        name: "nanosleep",
        ptx: "nanosleep.u32",
        doc: "suspends the thread for about the given time; takes no time on the CPU executor",
        exactness: Exactness::Machine,
    };
    fn name(&self) -> String {
        format!("nanosleep.{}", self.ns)
    }
    fn effects(&self, _: &mut dyn Effects) {}
    fn asm(&self, a: &mut dyn Asm) {
        a.emit(format!("nanosleep.u32 {}", self.ns));
    }
    fn exec<M: Machine>(&self, _: &mut M) -> Exec {
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        if self.ns > 1_000_000 {
            return Err(format!(
                "nanosleep of {} ns is too long; the maximum is 1000000 ns",
                self.ns
            ));
        }
        Ok(())
    }
}

/// Exits the threads of a warp before the end of their role.
///
/// CTA and cluster barriers do not count exited threads; the end of a role has the same effect.
#[derive(Clone, PartialEq, Debug)]
pub struct Exit;

impl Exit {
    fn sync_op(&self) -> SyncOp {
        SyncOp::Exit
    }
}

impl Instr for Exit {
    const INFO: OpInfo = OpInfo {
        name: "exit",
        ptx: "exit",
        doc: "exits the threads of the warp before the end of their role",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "exit".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("exit".into());
    }
    sync_instr!(whole_warp);
}

/// Aborts the launch with an error.
#[derive(Clone, PartialEq, Debug)]
pub struct Trap;

impl Instr for Trap {
    const INFO: OpInfo = OpInfo {
        name: "trap",
        ptx: "trap",
        doc: "aborts the launch with an error",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "trap".into()
    }
    fn effects(&self, _: &mut dyn Effects) {}
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("trap".into());
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        Err(Fault::new(
            FaultKind::Trap,
            format!("is executed by lanes {:#010x}", m.active()),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::{Warp, arg, ptx, reg};

    const NAMED: NamedId = NamedId(3);

    fn sync(threads: u32) -> NamedSync {
        NamedSync {
            bar: NAMED,
            threads,
        }
    }

    #[test]
    fn each_op_is_one_sync_op_of_a_whole_warp() {
        let arrive = NamedArrive {
            bar: NAMED,
            threads: 64,
        };
        let grow = SetMaxRegs {
            count: 232,
            grow: true,
        };
        let warp = Warp::new()
            .run(&CtaSync)
            .run(&sync(256))
            .run(&arrive)
            .run(&grow)
            .run(&Exit);
        assert_eq!(
            warp.syncs,
            [
                SyncOp::Cta,
                SyncOp::NamedSync {
                    bar: NAMED,
                    threads: 256
                },
                SyncOp::NamedArrive {
                    bar: NAMED,
                    threads: 64
                },
                SyncOp::SetMaxRegs {
                    count: 232,
                    grow: true
                },
                SyncOp::Exit,
            ]
        );
        let partial_warp = || Warp::new().with_active(0xffff);
        for f in [
            partial_warp().fault(&CtaSync),
            partial_warp().fault(&sync(64)),
            partial_warp().fault(&grow),
            partial_warp().fault(&Exit),
        ] {
            assert_eq!(f.kind, FaultKind::Convergence);
            assert!(
                f.text.contains("executed by lanes 0x0000ffff only"),
                "{}",
                f.text
            );
        }
    }

    #[test]
    fn named_reduce_is_one_sync_op() {
        let reduce = |reduction, threads| NamedReduce {
            bar: NAMED,
            threads,
            reduction,
            pred: arg(1),
            dst: reg(0),
        };
        for (reduction, text) in [
            (BarrierReduction::Count, "popc.aligned.u32"),
            (BarrierReduction::All, "and.aligned.pred"),
            (BarrierReduction::Any, "or.aligned.pred"),
        ] {
            let want = format!("barrier.cta.red.{text} %0, 3, 64, %1");
            assert_eq!(ptx(&reduce(reduction, 64)), [want]);
        }
        let warp = Warp::new().run(&reduce(BarrierReduction::Any, 96));
        assert!(matches!(
            warp.syncs[..],
            [SyncOp::NamedReduce {
                bar: NAMED,
                threads: 96,
                reduction: BarrierReduction::Any,
                ..
            }]
        ));
        let partial_warp = Warp::new()
            .with_active(1)
            .fault(&reduce(BarrierReduction::All, 64));
        assert_eq!(partial_warp.kind, FaultKind::Convergence);
        let why = reduce(BarrierReduction::Count, 48)
            .legal(&Target::SM_90A)
            .unwrap_err();
        assert!(why.contains("with 48 threads"), "{why}");
    }

    #[test]
    fn trap_faults_and_nanosleep_and_pdl_ops_do_nothing() {
        let f = Warp::new().with_active(2).fault(&Trap);
        assert_eq!(f.kind, FaultKind::Trap);
        assert!(f.text.contains("0x00000002"), "{}", f.text);
        assert!(Warp::new().run(&Nanosleep { ns: 40 }).syncs.is_empty());
        let launched = Warp::new().run(&LaunchDependents).run(&WaitPrerequisites);
        assert!(launched.syncs.is_empty());
    }

    #[test]
    fn control_ops_print_their_operands() {
        assert_eq!(ptx(&CtaSync), ["barrier.cta.sync.aligned 0"]);
        assert_eq!(ptx(&sync(128)), ["barrier.cta.sync.aligned 3, 128"]);
        let arrive = NamedArrive {
            bar: NAMED,
            threads: 64,
        };
        assert_eq!(ptx(&arrive), ["barrier.cta.arrive.aligned 3, 64"]);
        let regs = |count, grow| ptx(&SetMaxRegs { count, grow });
        assert_eq!(regs(24, false), ["setmaxnreg.dec.sync.aligned.u32 24"]);
        assert_eq!(regs(240, true), ["setmaxnreg.inc.sync.aligned.u32 240"]);
        assert_eq!(ptx(&Nanosleep { ns: 64 }), ["nanosleep.u32 64"]);
        assert_eq!(ptx(&LaunchDependents), ["griddepcontrol.launch_dependents"]);
        assert_eq!(ptx(&WaitPrerequisites), ["griddepcontrol.wait"]);
        assert_eq!(ptx(&Exit), ["exit"]);
        assert_eq!(ptx(&Trap), ["trap"]);
    }

    #[test]
    fn illegal_thread_and_register_counts_are_rejected() {
        let t = Target::SM_90A;
        assert_eq!(sync(1024).legal(&t), Ok(()));
        for threads in [0, 33, 1056] {
            let why = sync(threads).legal(&t).unwrap_err();
            assert!(why.contains(&format!("with {threads} threads")), "{why}");
        }
        for count in [16, 25, 264] {
            let why = SetMaxRegs { count, grow: true }.legal(&t).unwrap_err();
            assert!(why.contains(&format!("to {count} registers")), "{why}");
        }
        assert!(Nanosleep { ns: 1_000_001 }.legal(&t).is_err());
    }
}
