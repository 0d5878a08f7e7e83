//! Loads.

use super::{LoadCache, legal_vector, space, vector, width};
use crate::machine::{
    Access, Asm, Completion, Effects, Exec, Lane, LaneBytes, Lanes, Machine, Memory, Proxy, Step,
    Touch,
};
use crate::ops::{Exactness, Info, Instr, Uniform};
use crate::target::Target;
use crate::types::Type;
use crate::value::{At, RegId};

/// Loads one, two or four registers per lane.
#[derive(Clone, PartialEq, Debug)]
pub struct Load {
    /// Type of each register.
    pub ty: Type,
    /// Results, from ascending addresses.
    pub dst: Vec<RegId>,
    /// Where from; a multiple of the bytes moved.
    pub at: At,
    /// Use of the caches.
    pub cache: LoadCache,
}

impl Load {
    fn bytes(&self) -> usize {
        self.ty.bytes() * self.dst.len()
    }
}

/// One register per lane from bytes `from..` of each lane.
fn unpack<T: Lane>(data: &LaneBytes, from: usize) -> Lanes<T> {
    let size = size_of::<T>();
    std::array::from_fn(|lane| bytemuck::pod_read_unaligned(&data[lane][from..from + size]))
}

impl Instr for Load {
    const INFO: Info = Info {
        name: "load",
        ptx: "ld{.volatile}.{global{.cg,.cs,.lu,.cv}{.nc}{.L1::…}{.L2::cache_hint}{.L2::64B,.L2::128B,.L2::256B},shared,shared::cluster}{.v2,.v4}.{b8,b16,b32,b64}",
        doc: "loads up to 16 bytes per lane into one, two or four registers",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!(
            "load{}{}.{}",
            self.cache.name(),
            width(self.dst.len()),
            self.ty
        )
    }
    fn effects(&self, e: &mut dyn Effects) {
        self.dst.iter().for_each(|&r| e.def(r));
        e.touch(&Touch {
            memory: Memory::At(self.at, self.bytes() as u32),
            access: Access::Read,
            proxy: Proxy::Generic,
            completion: Completion::Now,
            multicast: None,
        });
        self.cache.effects(e);
    }
    fn uniform(&self, operands: Uniform) -> Uniform {
        // What is there may change between the loads of two warps.
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
            width(dst.len()),
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
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_vector(self.ty, self.dst.len())?;
        self.cache.legal(&self.at)
    }
}
