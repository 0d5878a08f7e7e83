//! The CTA as a whole: barriers of threads, registers, and the emergency exit.

use super::{Exactness, Info, Instr};
use crate::lanes::lanes_of;
use crate::machine::{Asm, Effects, Exec, Fault, FaultKind, Lane, Machine, Mask, Step};
use crate::sync::Sync;
use crate::target::Target;
use crate::value::{NamedId, Operand};

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
            format!("{what} is the same in every lane, not {first:?} in one and {other:?} in another"),
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
        a.emit(format!("barrier.cta.arrive.aligned {bar}, {}", self.threads));
    }
    acts!(whole_warp);
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
            return Err(format!("{} cannot move registers between warpgroups", target.name));
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
