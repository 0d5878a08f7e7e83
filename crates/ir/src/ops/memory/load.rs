//! Weak and volatile loads.

use super::{LoadCache, legal_vector, space, vector, vector_suffix};
use crate::machine::{
    AccessKind, Asm, Completion, Effects, Exec, ExecStatus, Lane, LaneBytes, Machine, MemoryAccess,
    MemoryRegion, PerLane, Proxy,
};
use crate::ops::{Exactness, Instr, OpInfo, Uniform};
use crate::target::Target;
use crate::types::Type;
use crate::value::{MemoryAddress, RegId};

/// Loads one, two or four registers per lane.
#[derive(Clone, PartialEq, Debug)]
pub struct Load {
    /// Type of each register.
    pub ty: Type,
    /// Results, in ascending address order.
    pub dst: Vec<RegId>,
    /// Source address, aligned to the size of the access.
    pub at: MemoryAddress,
    /// Cache behavior.
    pub cache: LoadCache,
}

impl Load {
    fn bytes(&self) -> usize {
        self.ty.bytes() * self.dst.len()
    }
}

/// Returns the register that starts at byte `from` of each lane.
fn unpack<T: Lane>(data: &LaneBytes, from: usize) -> PerLane<T> {
    let size = size_of::<T>();
    std::array::from_fn(|lane| bytemuck::pod_read_unaligned(&data[lane][from..from + size]))
}

impl Instr for Load {
    const INFO: OpInfo = OpInfo {
        name: "load",
        ptx: "ld{.volatile}.{global{.cg,.cs,.lu,.cv}{.nc}{.L1::…}{.L2::cache_hint}{.L2::64B,.L2::128B,.L2::256B},shared,shared::cluster}{.v2,.v4}.{b8,b16,b32,b64}",
        doc: "loads up to 16 bytes per lane into one, two or four registers",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!(
            "load{}{}.{}",
            self.cache.name(),
            vector_suffix(self.dst.len()),
            self.ty
        )
    }
    fn effects(&self, e: &mut dyn Effects) {
        self.dst.iter().for_each(|&r| e.def(r));
        e.access(&MemoryAccess {
            memory: MemoryRegion::PerLane(self.at, self.bytes() as u32),
            access: AccessKind::Read,
            proxy: Proxy::Generic,
            completion: Completion::Now,
            multicast: None,
        });
        self.cache.effects(e);
    }
    fn uniform(&self, operands: Uniform) -> Uniform {
        // The value may change between the loads of two warps.
        match self.cache.is_volatile() {
            true => Uniform::Lane,
            false => operands,
        }
    }
    fn asm(&self, a: &mut dyn Asm) {
        let dst: Vec<_> = self.dst.iter().map(|&r| a.reg(r)).collect();
        let at = a.address(&self.at);
        let (before, cache, policy) = self.cache.asm(a);
        a.emit(format!(
            "ld{before}.{}{cache}{}.{} {}, [{at}]{policy}",
            space(&self.at),
            vector_suffix(dst.len()),
            self.ty.bits(),
            vector(&dst)
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let data = m.load(m.active(), &self.at, self.bytes())?;
        let size = self.ty.bytes();
        for (i, &r) in self.dst.iter().enumerate() {
            match size {
                1 => m.set(r, &unpack::<u8>(&data, i)),
                2 => m.set(r, &unpack::<u16>(&data, i * 2)),
                4 => m.set(r, &unpack::<u32>(&data, i * 4)),
                _ => m.set(r, &unpack::<u64>(&data, i * 8)),
            }
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_vector(self.ty, self.dst.len())?;
        self.cache.legal(&self.at)
    }
}
