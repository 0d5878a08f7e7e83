//! The CTA as a whole: barriers of threads, registers, and the emergency exit.

use super::compare::predicate;
use super::{Exactness, Info, Instr, Uniform};
use crate::lanes::lanes_of;
use crate::machine::{Asm, Effects, Exec, Fault, FaultKind, Lane, Machine, Mask, Step};
use crate::sync::{Sync, Tally};
use crate::target::Target;
use crate::value::{NamedId, Operand, RegId};

/// Refuses an `.aligned` op that part of a warp has reached.
pub(super) fn whole_warp<M: Machine>(m: &M, name: &str) -> Result<(), Fault> {
    match m.active() {
        Mask::MAX => Ok(()),
        some => Err(Fault::new(
            FaultKind::Convergence,
            format!("{name} is reached by all lanes of a warp at once, not by lanes {some:#010x}"),
        )),
    }
}

/// An operand that must be the same in every active lane.
pub(super) fn uniform<T: Lane + PartialEq + std::fmt::Debug, M: Machine>(
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
                "{what} is the same in every lane, not {first:?} in one and {other:?} in another"
            ),
        )),
    }
}

/// Writes `effects` and `exec` of an op that is one act of synchronisation, given by its `act`.
macro_rules! acts {
    () => {
        fn effects(&self, e: &mut dyn $crate::machine::Effects) {
            e.sync(&self.act());
        }
        fn exec<M: $crate::machine::Machine>(&self, m: &mut M) -> $crate::machine::Exec {
            m.sync(&self.act())
        }
    };
    ($whole:ident) => {
        fn effects(&self, e: &mut dyn $crate::machine::Effects) {
            e.$whole();
            e.sync(&self.act());
        }
        fn exec<M: $crate::machine::Machine>(&self, m: &mut M) -> $crate::machine::Exec {
            $crate::ops::control::whole_warp(m, Self::INFO.name)?;
            m.sync(&self.act())
        }
    };
}
pub(super) use acts;

/// All threads of the CTA meet and see each other's memory.
#[derive(Clone, PartialEq, Debug)]
pub struct CtaSync;

impl CtaSync {
    fn act(&self) -> Sync {
        Sync::Cta
    }
}

impl Instr for CtaSync {
    const INFO: Info = Info {
        name: "cta_sync",
        ptx: "barrier.cta.sync.aligned",
        doc: "all threads of the CTA meet and see each other's memory",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "cta_sync".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("barrier.cta.sync.aligned 0".into());
    }
    acts!(whole_warp);
}

/// Refuses a number of threads that no named barrier can have.
fn legal_threads(threads: u32, target: &Target) -> Result<(), String> {
    if threads > 0 && threads.is_multiple_of(32) && threads <= target.threads {
        return Ok(());
    }
    Err(format!(
        "a named barrier counts whole warps, up to the {} threads of a CTA, not {threads}",
        target.threads
    ))
}

/// Some warps of the CTA meet and see each other's memory.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedSync {
    /// The barrier.
    pub bar: NamedId,
    /// Threads that take part, those that only arrive counted in.
    pub threads: u32,
}

impl NamedSync {
    fn act(&self) -> Sync {
        Sync::NamedSync {
            bar: self.bar,
            threads: self.threads,
        }
    }
}

impl Instr for NamedSync {
    const INFO: Info = Info {
        name: "named_sync",
        ptx: "barrier.cta.sync.aligned",
        doc: "arrives at a named barrier, waits for the rest and sees their memory",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "named_sync".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        let bar = a.named(self.bar);
        a.emit(format!("barrier.cta.sync.aligned {bar}, {}", self.threads));
    }
    acts!(whole_warp);
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_threads(self.threads, target)
    }
}

/// Arrives at a named barrier and goes on.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedArrive {
    /// The barrier.
    pub bar: NamedId,
    /// Threads that take part, those that wait counted in.
    pub threads: u32,
}

impl NamedArrive {
    fn act(&self) -> Sync {
        Sync::NamedArrive {
            bar: self.bar,
            threads: self.threads,
        }
    }
}

impl Instr for NamedArrive {
    const INFO: Info = Info {
        name: "named_arrive",
        ptx: "barrier.cta.arrive.aligned",
        doc: "arrives at a named barrier and goes on",
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
    acts!(whole_warp);
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_threads(self.threads, target)
    }
}

/// Some warps of the CTA meet, see each other's memory, and learn of each other's predicates.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedTally {
    /// The barrier: nobody syncs or arrives at the same meeting otherwise.
    pub bar: NamedId,
    /// Threads that take part.
    pub threads: u32,
    /// What is counted.
    pub tally: Tally,
    /// The predicate of each thread.
    pub pred: Operand,
    /// The answer, the same in all: a number (`u32`) or a predicate.
    pub dst: RegId,
}

impl NamedTally {
    fn act(&self) -> Sync {
        Sync::NamedTally {
            bar: self.bar,
            threads: self.threads,
            tally: self.tally,
            pred: self.pred,
            dst: self.dst,
        }
    }
}

impl Instr for NamedTally {
    const INFO: Info = Info {
        name: "named_tally",
        ptx: "barrier.cta.red.{popc.aligned.u32,and.aligned.pred,or.aligned.pred}",
        doc: "as named_sync, and tells in how many threads a predicate holds, whether in all, or in any",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("named_tally.{}", self.tally.name())
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.whole_warp();
        e.sync(&self.act());
    }
    fn uniform(&self, _: Uniform) -> Uniform {
        // Other warps may have met at the same statement another time.
        Uniform::Warp
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (dst, pred) = (a.reg(self.dst), predicate(a, self.pred));
        let bar = a.named(self.bar);
        let (op, ty) = self.tally.ptx();
        a.emit(format!(
            "barrier.cta.red.{op}.aligned.{ty} {dst}, {bar}, {}, {pred}",
            self.threads
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        whole_warp(m, Self::INFO.name)?;
        m.sync(&self.act())
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_threads(self.threads, target)
    }
}

/// Changes how many registers each thread of the warpgroup has.
#[derive(Clone, PartialEq, Debug)]
pub struct SetMaxRegs {
    /// The new number: a multiple of 8, 24 to 256.
    pub count: u32,
    /// Growing (waits until the CTA's pool can give them) or shrinking.
    pub grow: bool,
}

impl SetMaxRegs {
    fn act(&self) -> Sync {
        Sync::SetMaxRegs {
            count: self.count,
            grow: self.grow,
        }
    }
}

impl Instr for SetMaxRegs {
    const INFO: Info = Info {
        name: "set_max_regs",
        ptx: "setmaxnreg.{inc,dec}.sync.aligned.u32",
        doc: "takes registers from the CTA's pool, or gives some back",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("set_max_regs.{}", if self.grow { "inc" } else { "dec" })
    }
    fn asm(&self, a: &mut dyn Asm) {
        let way = if self.grow { "inc" } else { "dec" };
        a.emit(format!("setmaxnreg.{way}.sync.aligned.u32 {}", self.count));
    }
    acts!(whole_warpgroup);
    fn legal(&self, target: &Target) -> Result<(), String> {
        if !target.features.setmaxnreg {
            return Err(format!(
                "{} cannot move registers between warpgroups",
                target.name
            ));
        }
        if !self.count.is_multiple_of(8) || !(24..=256).contains(&self.count) {
            return Err(format!(
                "registers per thread are a multiple of 8 from 24 to 256, not {}",
                self.count
            ));
        }
        Ok(())
    }
}

/// Lets the grid that depends on this one start once every CTA has said so or left.
///
/// It promises nothing about memory: that is what the dependent grid's
/// [`WaitPrerequisites`] is for. The executor runs one launch after another,
/// so that there it does nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct LaunchDependents;

impl Instr for LaunchDependents {
    const INFO: Info = Info {
        name: "launch_dependents",
        ptx: "griddepcontrol.launch_dependents",
        doc: "lets the grid that depends on this one start; nothing on the CPU, which runs launches one after another",
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
        Ok(Step::Next)
    }
}

/// Waits until the grids this one depends on are complete, and sees their memory.
///
/// On the CPU they are: the executor runs one launch after another. Without a
/// dependent launch it passes at once on the GPU as well.
#[derive(Clone, PartialEq, Debug)]
pub struct WaitPrerequisites;

impl Instr for WaitPrerequisites {
    const INFO: Info = Info {
        name: "wait_prerequisites",
        ptx: "griddepcontrol.wait",
        doc: "waits until the grids this one depends on are complete; on the CPU they always are",
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
        Ok(Step::Next)
    }
}

/// Sleeps for about as long as asked, at most twice as long.
#[derive(Clone, PartialEq, Debug)]
pub struct Nanosleep {
    /// Nanoseconds, up to a million.
    pub ns: u32,
}

impl Instr for Nanosleep {
    const INFO: Info = Info {
        name: "nanosleep",
        ptx: "nanosleep.u32",
        doc: "sleeps for about as long as asked; takes no time on the CPU",
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
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        if self.ns > 1_000_000 {
            return Err(format!("a thread sleeps up to 1000000 ns, not {}", self.ns));
        }
        Ok(())
    }
}

/// Ends the threads of a warp before the end of their role.
///
/// Barriers of the whole CTA or cluster no longer count them, as at the end of
/// a role.
#[derive(Clone, PartialEq, Debug)]
pub struct Exit;

impl Exit {
    fn act(&self) -> Sync {
        Sync::Exit
    }
}

impl Instr for Exit {
    const INFO: Info = Info {
        name: "exit",
        ptx: "exit",
        doc: "ends the threads of the warp before the end of their role",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        "exit".into()
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit("exit".into());
    }
    acts!(whole_warp);
}

/// Ends the launch with an error.
#[derive(Clone, PartialEq, Debug)]
pub struct Trap;

impl Instr for Trap {
    const INFO: Info = Info {
        name: "trap",
        ptx: "trap",
        doc: "ends the launch with an error",
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
            format!("the program trapped in lanes {:#010x}", m.active()),
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
    fn each_op_is_one_act_of_a_whole_warp() {
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
                Sync::Cta,
                Sync::NamedSync {
                    bar: NAMED,
                    threads: 256
                },
                Sync::NamedArrive {
                    bar: NAMED,
                    threads: 64
                },
                Sync::SetMaxRegs {
                    count: 232,
                    grow: true
                },
                Sync::Exit,
            ]
        );
        let part = || Warp::new().with_active(0xffff);
        for f in [
            part().fault(&CtaSync),
            part().fault(&sync(64)),
            part().fault(&grow),
            part().fault(&Exit),
        ] {
            assert_eq!(f.kind, FaultKind::Convergence);
            assert!(f.text.contains("not by lanes 0x0000ffff"), "{}", f.text);
        }
    }

    #[test]
    fn a_tally_is_a_sync_with_a_question() {
        let tally = |tally, threads| NamedTally {
            bar: NAMED,
            threads,
            tally,
            pred: arg(1),
            dst: reg(0),
        };
        for (how, text) in [
            (Tally::Count, "popc.aligned.u32"),
            (Tally::All, "and.aligned.pred"),
            (Tally::Any, "or.aligned.pred"),
        ] {
            let want = format!("barrier.cta.red.{text} %0, 3, 64, %1");
            assert_eq!(ptx(&tally(how, 64)), [want]);
        }
        let warp = Warp::new().run(&tally(Tally::Any, 96));
        assert!(matches!(
            warp.syncs[..],
            [Sync::NamedTally {
                bar: NAMED,
                threads: 96,
                tally: Tally::Any,
                ..
            }]
        ));
        let part = Warp::new().with_active(1).fault(&tally(Tally::All, 64));
        assert_eq!(part.kind, FaultKind::Convergence);
        let why = tally(Tally::Count, 48).legal(&Target::SM_90A).unwrap_err();
        assert!(why.ends_with("not 48"), "{why}");
    }

    #[test]
    fn a_trap_is_a_fault_and_sleep_and_dependent_launches_are_nothing() {
        let f = Warp::new().with_active(2).fault(&Trap);
        assert_eq!(f.kind, FaultKind::Trap);
        assert!(f.text.contains("0x00000002"), "{}", f.text);
        assert!(Warp::new().run(&Nanosleep { ns: 40 }).syncs.is_empty());
        let launched = Warp::new().run(&LaunchDependents).run(&WaitPrerequisites);
        assert!(launched.syncs.is_empty());
    }

    #[test]
    fn ptx_of_control() {
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
    fn legality() {
        let t = Target::SM_90A;
        assert_eq!(sync(1024).legal(&t), Ok(()));
        for threads in [0, 33, 1056] {
            let why = sync(threads).legal(&t).unwrap_err();
            assert!(why.ends_with(&format!("not {threads}")), "{why}");
        }
        for count in [16, 25, 264] {
            let why = SetMaxRegs { count, grow: true }.legal(&t).unwrap_err();
            assert!(why.ends_with(&format!("not {count}")), "{why}");
        }
        assert!(Nanosleep { ns: 1_000_001 }.legal(&t).is_err());
    }
}
