//! `cp.async`: per-lane copies of 4, 8 or 16 bytes from global to shared memory.
//!
//! Unlike bulk copies they use the generic proxy: loads and `ldmatrix` may read
//! the copied bytes directly, `wgmma` only after a proxy fence. A lane sees its
//! copies after it waits for them; other threads see them after a barrier that
//! follows the wait.

mod groups;
mod job;

pub use groups::{CopyArrive, CopyCommit, CopyWait};
pub use job::CopyJob;

use super::memory::L2Prefetch;
use super::policy::{CacheHint, hint_asm, hint_effects, hint_name};
use super::{Exactness, Instr, OpInfo};
use crate::job::Job;
use crate::lanes::lanes_of;
use crate::machine::{
    AccessKind, Asm, Completion, Effects, Exec, ExecStatus, Fault, FaultKind, Machine,
    MemoryAccess, MemoryRegion, Proxy,
};
use crate::target::Target;
use crate::types::Type;
use crate::value::{MemoryAddress, Operand, SharedAddress};

/// Copies 4, 8 or 16 bytes per lane from global to shared memory, asynchronously.
#[derive(Clone, PartialEq, Debug)]
pub struct CopyAsync {
    /// Destination, aligned to the size.
    pub dst: SharedAddress,
    /// Global address (`u64`), aligned to the size.
    pub src: Operand,
    /// Bytes that each lane writes (cp-size): 4, 8 or 16.
    pub bytes: u32,
    /// Bytes that each lane reads (src-size, `u32`); it writes zeros for the others. `None`: all bytes.
    pub src_size: Option<Operand>,
    /// Bypasses the L1 (`.cg`); only for 16 bytes.
    pub bypass_l1: bool,
    /// L2 prefetch size.
    pub l2_prefetch: Option<L2Prefetch>,
    /// L2 cache hint.
    pub hint: Option<CacheHint>,
}

impl CopyAsync {
    fn path(&self) -> &'static str {
        if self.bypass_l1 { "cg" } else { "ca" }
    }
}

impl Instr for CopyAsync {
    const INFO: OpInfo = OpInfo {
        name: "copy_async",
        ptx: "cp.async.{ca,cg}.shared.global{.L2::cache_hint}{.L2::64B,.L2::128B,.L2::256B}",
        doc: "asynchronously copies 4, 8 or 16 bytes per lane from global to shared memory, with zero fill; completes in the lane's cp.async group",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!(
            "copy_async.{}{}{}.{}",
            self.path(),
            L2Prefetch::suffix(self.l2_prefetch),
            hint_name(self.hint),
            self.bytes
        )
    }
    fn effects(&self, e: &mut dyn Effects) {
        let copy_access = |memory, access| MemoryAccess {
            memory,
            access,
            proxy: Proxy::Generic,
            completion: Completion::CopyGroup,
            multicast: None,
        };
        let read = self.src_size.unwrap_or(Operand::Imm(self.bytes.into()));
        let to = MemoryRegion::PerLane(MemoryAddress::Shared(self.dst), self.bytes);
        e.access(&copy_access(to, AccessKind::Write));
        e.access(&copy_access(
            MemoryRegion::Global(self.src, read),
            AccessKind::Read,
        ));
        hint_effects(e, self.hint);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let dst = a.address(&MemoryAddress::Shared(self.dst));
        let src = a.in_reg(self.src, Type::U64);
        let valid = self.src_size.map(|o| a.operand(o, Type::U32));
        let valid = valid.map_or(String::new(), |v| format!(", {v}"));
        let (hint, policy) = hint_asm(a, self.hint);
        let (path, prefetch) = (self.path(), L2Prefetch::suffix(self.l2_prefetch));
        a.emit(format!(
            "cp.async.{path}.shared.global{hint}{prefetch} [{dst}], [{src}], {}{valid}{policy}",
            self.bytes
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let from = m.get::<u64>(self.src);
        let valid = self.src_size.map(|o| m.get::<u32>(o));
        let mut job = CopyJob::new(self.bytes);
        for lane in lanes_of(m.active()) {
            let to = m.resolve(&self.dst, lane, self.bytes as usize)?;
            check_aligned("shared", to.byte.into(), self.bytes)?;
            check_aligned("global", from[lane], self.bytes)?;
            let read = valid.map_or(self.bytes, |v| v[lane]);
            if read > self.bytes {
                return Err(Fault::new(
                    FaultKind::Operand,
                    format!(
                        "reads {read} bytes but writes only {}; src-size must be at most cp-size",
                        self.bytes
                    ),
                ));
            }
            job.add(lane, to, from[lane], read);
        }
        m.submit(job.lanes(), Job::Copy(job))?;
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        if ![4, 8, 16].contains(&self.bytes) {
            return Err(format!(
                "copy_async of {} bytes per lane; the size must be 4, 8 or 16",
                self.bytes
            ));
        }
        if self.bypass_l1 && self.bytes != 16 {
            return Err(format!(
                "copy_async of {} bytes cannot bypass the L1; the size must be 16",
                self.bytes
            ));
        }
        if self.dst.peer.is_some() {
            return Err(
                "copy_async to a tile of a peer; the destination must be in the same CTA".into(),
            );
        }
        match self.src_size {
            Some(Operand::Imm(n)) if n > self.bytes.into() => Err(format!(
                "copy_async reads {n} bytes but writes only {}; src-size must be at most cp-size",
                self.bytes
            )),
            _ => Ok(()),
        }
    }
}

/// Checks the alignment of the source or destination.
fn check_aligned(space: &str, at: u64, bytes: u32) -> Result<(), Fault> {
    if at.is_multiple_of(bytes.into()) {
        return Ok(());
    }
    Err(Fault::new(
        FaultKind::Misaligned,
        format!("has {space} address {at:#x}; it must be a multiple of {bytes}"),
    ))
}

#[cfg(test)]
mod tests;
