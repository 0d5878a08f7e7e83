//! Stores.

use super::{StoreCache, legal_vector, space, vector, width};
use crate::machine::{
    Access, Asm, Completion, Effects, Exec, Lane, LaneBytes, Lanes, Machine, Memory, Proxy, Step,
    Touch, WARP,
};
use crate::ops::{Exactness, Info, Instr};
use crate::target::Target;
use crate::types::Type;
use crate::value::{At, Operand};

/// Stores one, two or four registers per lane.
#[derive(Clone, PartialEq, Debug)]
pub struct Store {
    /// Type of each register.
    pub ty: Type,
    /// Values, to ascending addresses.
    pub src: Vec<Operand>,
    /// Where to; a multiple of the bytes moved.
    pub at: At,
    /// Use of the caches.
    pub cache: StoreCache,
}

impl Store {
    fn bytes(&self) -> usize {
        self.ty.bytes() * self.src.len()
    }
}

/// Bytes `from..` of each lane from one register per lane.
fn pack<T: Lane>(data: &mut LaneBytes, from: usize, v: &Lanes<T>) {
    for lane in 0..WARP {
        data[lane][from..from + size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&v[lane]));
    }
}

impl Instr for Store {
    const INFO: Info = Info {
        name: "store",
        ptx: "st{.volatile}.{global{.cg,.cs,.wt}{.L1::…}{.L2::cache_hint},shared,shared::cluster}{.v2,.v4}.{b8,b16,b32,b64}",
        doc: "stores up to 16 bytes per lane from one, two or four registers",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!(
            "store{}{}.{}",
            self.cache.name(),
            width(self.src.len()),
            self.ty
        )
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.touch(&Touch {
            memory: Memory::At(self.at, self.bytes() as u32),
            access: Access::Write,
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
            width(src.len()),
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
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_vector(self.ty, self.src.len())?;
        self.cache.legal(&self.at)
    }
}
