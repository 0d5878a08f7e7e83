//! Copies of 4, 8 or 16 bytes from global to shared memory by single lanes: `cp.async`.
//!
//! Unlike bulk copies they go through the generic proxy: what they bring may
//! be read by `ldmatrix` or a load as it is, and by wgmma after a proxy fence.
//! A lane sees its copies after it has waited for them, other threads after a
//! barrier behind that wait.

mod groups;
mod job;

pub use groups::{CopyArrive, CopyCommit, CopyWait};
pub use job::CopyJob;

use super::memory::Fetch;
use super::policy::{CacheHint, hint_asm, hint_effects, hint_name};
use super::{Exactness, Info, Instr};
use crate::job::Job;
use crate::lanes::lanes_of;
use crate::machine::{
    Access, Asm, Completion, Effects, Exec, Fault, FaultKind, Machine, Memory, Proxy, Step, Touch,
};
use crate::target::Target;
use crate::types::Type;
use crate::value::{At, Operand, Place};

/// Copies some bytes per lane from global to shared memory, some time after.
#[derive(Clone, PartialEq, Debug)]
pub struct CopyAsync {
    /// Where to; a multiple of the bytes.
    pub dst: Place,
    /// The global address (`u64`); a multiple of the bytes.
    pub src: Operand,
    /// How many bytes each lane writes: 4, 8 or 16.
    pub bytes: u32,
    /// How many of them it reads (`u32`), the first ones; the rest is zero. `None`: all.
    pub valid: Option<Operand>,
    /// Does it leave out the L1 (16 bytes alone)?
    pub bypass: bool,
    /// What the L2 fetches on the way.
    pub fetch: Option<Fetch>,
    /// How long the L2 keeps it.
    pub hint: Option<CacheHint>,
}

impl CopyAsync {
    fn path(&self) -> &'static str {
        if self.bypass { "cg" } else { "ca" }
    }
}

impl Instr for CopyAsync {
    const INFO: Info = Info {
        name: "copy_async",
        ptx: "cp.async.{ca,cg}.shared.global{.L2::cache_hint}{.L2::64B,.L2::128B,.L2::256B}",
        doc: "copies 4, 8 or 16 bytes per lane from global to shared memory, filled up with zeros, in the lane's copy group",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!(
            "copy_async.{}{}{}.{}",
            self.path(),
            Fetch::suffix(self.fetch),
            hint_name(self.hint),
            self.bytes
        )
    }
    fn effects(&self, e: &mut dyn Effects) {
        let touch = |memory, access| Touch {
            memory,
            access,
            proxy: Proxy::Generic,
            completion: Completion::CopyGroup,
            multicast: None,
        };
        let read = self.valid.unwrap_or(Operand::Imm(self.bytes.into()));
        let to = Memory::At(At::Shared(self.dst), self.bytes);
        e.touch(&touch(to, Access::Write));
        e.touch(&touch(Memory::Global(self.src, read), Access::Read));
        hint_effects(e, self.hint);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let dst = a.address(&At::Shared(self.dst));
        let src = a.in_reg(self.src, Type::U64);
        let valid = self.valid.map(|o| a.operand(o, Type::U32));
        let valid = valid.map_or(String::new(), |v| format!(", {v}"));
        let (hint, policy) = hint_asm(a, self.hint);
        let (path, fetch) = (self.path(), Fetch::suffix(self.fetch));
        a.emit(format!(
            "cp.async.{path}.shared.global{hint}{fetch} [{dst}], [{src}], {}{valid}{policy}",
            self.bytes
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let from = m.get::<u64>(self.src);
        let valid = self.valid.map(|o| m.get::<u32>(o));
        let mut job = CopyJob::new(self.bytes);
        for lane in lanes_of(m.active()) {
            let to = m.resolve(&self.dst, lane, self.bytes as usize)?;
            aligned("shared", to.byte.into(), self.bytes)?;
            aligned("global", from[lane], self.bytes)?;
            let read = valid.map_or(self.bytes, |v| v[lane]);
            if read > self.bytes {
                return Err(Fault::new(
                    FaultKind::Operand,
                    format!(
                        "a copy of {} bytes reads at most those, not {read}",
                        self.bytes
                    ),
                ));
            }
            job.add(lane, to, from[lane], read);
        }
        m.submit(job.lanes(), Job::Copy(job))?;
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        if ![4, 8, 16].contains(&self.bytes) {
            return Err(format!(
                "copy_async copies 4, 8 or 16 bytes per lane, not {}",
                self.bytes
            ));
        }
        if self.bypass && self.bytes != 16 {
            return Err(format!(
                "copy_async leaves out the L1 for 16 bytes per lane, not for {}",
                self.bytes
            ));
        }
        if self.dst.peer.is_some() {
            return Err("copy_async goes to a tile of the CTA itself, not of a peer".into());
        }
        match self.valid {
            Some(Operand::Imm(n)) if n > self.bytes.into() => Err(format!(
                "a copy of {} bytes reads at most those, not {n}",
                self.bytes
            )),
            _ => Ok(()),
        }
    }
}

/// The alignment rule of both sides.
fn aligned(side: &str, at: u64, bytes: u32) -> Result<(), Fault> {
    if at.is_multiple_of(bytes.into()) {
        return Ok(());
    }
    Err(Fault::new(
        FaultKind::Misaligned,
        format!("the {side} address of a copy is a multiple of its {bytes} bytes, not {at:#x}"),
    ))
}

#[cfg(test)]
mod tests;
