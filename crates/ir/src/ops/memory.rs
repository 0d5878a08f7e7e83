//! Generic loads and stores of up to 16 bytes per lane, and fences.

use super::{Exactness, Info, Instr};
use crate::machine::{
    Access, Asm, Completion, Effects, Exec, Lane, LaneBytes, Lanes, Machine, Memory, Proxy, Step,
    Touch, WARP,
};
use crate::sync::{Scope, Sync};
use crate::target::Target;
use crate::types::Type;
use crate::value::{At, Operand, RegId};

/// The state space of a generic access.
pub(super) fn space(at: &At) -> &'static str {
    match at {
        At::Global { .. } => "global",
        At::Shared(place) if place.peer.is_some() => "shared::cluster",
        At::Shared(_) => "shared",
    }
}

/// One register per lane from bytes `from..` of each lane.
fn unpack<T: Lane>(data: &LaneBytes, from: usize) -> Lanes<T> {
    let size = size_of::<T>();
    std::array::from_fn(|lane| bytemuck::pod_read_unaligned(&data[lane][from..from + size]))
}

/// Bytes `from..` of each lane from one register per lane.
fn pack<T: Lane>(data: &mut LaneBytes, from: usize, v: &Lanes<T>) {
    for lane in 0..WARP {
        data[lane][from..from + size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&v[lane]));
    }
}

/// `{a, b}` for several, `a` for one.
fn vector(names: &[String]) -> String {
    match names {
        [one] => one.clone(),
        many => format!("{{{}}}", many.join(", ")),
    }
}

/// `.v2`, `.v4` or nothing.
fn width(n: usize) -> String {
    if n == 1 { String::new() } else { format!(".v{n}") }
}

/// Refuses a vector that no generic access moves.
fn legal_vector(ty: Type, n: usize) -> Result<(), String> {
    if ty == Type::Pred {
        return Err("a predicate has no place in memory".into());
    }
    if ![1, 2, 4].contains(&n) || ty.bytes() * n > 16 {
        return Err(format!(
            "an access moves 1, 2 or 4 registers of up to 16 bytes together, not {n} of {ty}"
        ));
    }
    Ok(())
}

/// How a load uses the caches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum LoadCache {
    /// As the hardware does by itself.
    #[default]
    Default,
    /// Through the read-only path: nobody writes these bytes during the launch (global).
    NonCoherent,
    /// Read once: evict first (global).
    Streaming,
    /// Never from a register or a stale cache line.
    Volatile,
}

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

impl Instr for Load {
    const INFO: Info = Info {
        name: "load",
        ptx: "ld{.volatile}.{global{.nc,.cs},shared,shared::cluster}{.v2,.v4}.{b8,b16,b32,b64}",
        doc: "loads up to 16 bytes per lane into one, two or four registers",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        let cache = match self.cache {
            LoadCache::Default => "",
            LoadCache::NonCoherent => ".nc",
            LoadCache::Streaming => ".cs",
            LoadCache::Volatile => ".volatile",
        };
        format!("load{cache}{}.{}", width(self.dst.len()), self.ty)
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
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (volatile, cache) = match self.cache {
            LoadCache::Default => ("", ""),
            LoadCache::NonCoherent => ("", ".nc"),
            LoadCache::Streaming => ("", ".cs"),
            LoadCache::Volatile => (".volatile", ""),
        };
        let dst: Vec<_> = self.dst.iter().map(|&r| a.reg(r)).collect();
        let at = a.address(&self.at);
        a.emit(format!(
            "ld{volatile}.{}{cache}{}.{} {}, [{at}]",
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
        match (self.cache, &self.at) {
            (LoadCache::NonCoherent | LoadCache::Streaming, At::Shared(_)) => {
                Err(format!("{} is a load of global memory, not of a tile", self.name()))
            }
            _ => Ok(()),
        }
    }
}

/// How a store uses the caches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum StoreCache {
    /// As the hardware does by itself.
    #[default]
    Default,
    /// Not read again soon: evict first (global).
    Streaming,
}

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

    fn suffix(&self) -> &'static str {
        match self.cache {
            StoreCache::Default => "",
            StoreCache::Streaming => ".cs",
        }
    }
}

impl Instr for Store {
    const INFO: Info = Info {
        name: "store",
        ptx: "st.{global{.cs},shared,shared::cluster}{.v2,.v4}.{b8,b16,b32,b64}",
        doc: "stores up to 16 bytes per lane from one, two or four registers",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("store{}{}.{}", self.suffix(), width(self.src.len()), self.ty)
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
    }
    fn asm(&self, a: &mut dyn Asm) {
        let at = a.address(&self.at);
        let src: Vec<_> = self.src.iter().map(|&o| a.in_reg(o, self.ty)).collect();
        a.emit(format!(
            "st.{}{}{}.{} [{at}], {}",
            space(&self.at),
            self.suffix(),
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
        match (self.cache, &self.at) {
            (StoreCache::Streaming, At::Shared(_)) => {
                Err(format!("{} is a store to global memory, not to a tile", self.name()))
            }
            _ => Ok(()),
        }
    }
}

/// Orders this thread's memory accesses.
#[derive(Clone, PartialEq, Debug)]
pub struct Fence {
    /// Which accesses, and for whom.
    pub fence: crate::sync::Fence,
}

impl Fence {
    fn act(&self) -> Sync {
        Sync::Fence(self.fence)
    }

    fn suffix(&self) -> &'static str {
        use crate::sync::Fence as Kind;
        match self.fence {
            Kind::ProxyAsyncShared => "proxy.async.shared::cta",
            Kind::ProxyAsyncGlobal => "proxy.async.global",
            Kind::MbarrierInit => "mbarrier_init.release.cluster",
            Kind::AcqRel(Scope::Cta) => "acq_rel.cta",
            Kind::AcqRel(Scope::Cluster) => "acq_rel.cluster",
            Kind::AcqRel(Scope::Gpu) => "acq_rel.gpu",
        }
    }
}

impl Instr for Fence {
    const INFO: Info = Info {
        name: "fence",
        ptx: "fence.{proxy.async.{shared::cta,global},mbarrier_init.release.cluster,acq_rel.{cta,cluster,gpu}}",
        doc: "orders this thread's memory accesses",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("fence.{}", self.suffix())
    }
    fn asm(&self, a: &mut dyn Asm) {
        a.emit(format!("fence.{}", self.suffix()));
    }
    super::control::acts!();
}
