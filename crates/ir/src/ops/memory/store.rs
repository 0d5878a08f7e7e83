//! Weak and volatile stores.

use super::{StoreCache, legal_vector, space, vector, vector_suffix};
use crate::machine::{
    AccessKind, Asm, Completion, Effects, Exec, ExecStatus, Lane, LaneBytes, Machine, MemoryAccess,
    MemoryRegion, PerLane, Proxy, WARP,
};
use crate::ops::{Exactness, Instr, OpInfo};
use crate::target::Target;
use crate::types::Type;
use crate::value::{MemoryAddress, Operand};

/// Stores one, two or four registers per lane.
#[derive(Clone, PartialEq, Debug)]
pub struct Store {
    /// Type of each register.
    pub ty: Type,
    /// Values, in ascending address order.
    pub src: Vec<Operand>,
    /// Destination address, aligned to the size of the access.
    pub at: MemoryAddress,
    /// Cache behavior.
    pub cache: StoreCache,
}

impl Store {
    fn bytes(&self) -> usize {
        self.ty.bytes() * self.src.len()
    }
}

/// Writes a register to the bytes that start at `from` of each lane.
fn pack<T: Lane>(data: &mut LaneBytes, from: usize, v: &PerLane<T>) {
    for lane in 0..WARP {
        data[lane][from..from + size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&v[lane]));
    }
}

impl Instr for Store {
    const INFO: OpInfo = OpInfo {
        name: "store",
        ptx: "st{.volatile}.{global{.cg,.cs,.wt}{.L1::…}{.L2::cache_hint},shared,shared::cluster}{.v2,.v4}.{b8,b16,b32,b64}",
        doc: "stores up to 16 bytes per lane from one, two or four registers",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!(
            "store{}{}.{}",
            self.cache.name(),
            vector_suffix(self.src.len()),
            self.ty
        )
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.access(&MemoryAccess {
            memory: MemoryRegion::PerLane(self.at, self.bytes() as u32),
            access: AccessKind::Write,
            proxy: Proxy::Generic,
            completion: Completion::Now,
            multicast: None,
        });
        self.src.iter().for_each(|&o| e.arg(o, self.ty));
        self.cache.effects(e);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let at = a.address(&self.at);
        let src: Vec<_> = self.src.iter().map(|&o| a.in_reg(o, self.ty)).collect();
        let (before, cache, policy) = self.cache.asm(a);
        a.emit(format!(
            "st{before}.{}{cache}{}.{} [{at}], {}{policy}",
            space(&self.at),
            vector_suffix(src.len()),
            self.ty.bits(),
            vector(&src)
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let mut data: LaneBytes = [[0; 16]; WARP];
        let size = self.ty.bytes();
        for (i, &o) in self.src.iter().enumerate() {
            match size {
                1 => pack(&mut data, i, &m.get::<u8>(o)),
                2 => pack(&mut data, i * 2, &m.get::<u16>(o)),
                4 => pack(&mut data, i * 4, &m.get::<u32>(o)),
                _ => pack(&mut data, i * 8, &m.get::<u64>(o)),
            }
        }
        m.store(m.active(), &self.at, self.bytes(), &data)?;
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_vector(self.ty, self.src.len())?;
        self.cache.legal(&self.at)
    }
}
