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
    if n == 1 {
        String::new()
    } else {
        format!(".v{n}")
    }
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
            (LoadCache::NonCoherent | LoadCache::Streaming, At::Shared(_)) => Err(format!(
                "{} is a load of global memory, not of a tile",
                self.name()
            )),
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
        format!(
            "store{}{}.{}",
            self.suffix(),
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
            (StoreCache::Streaming, At::Shared(_)) => Err(format!(
                "{} is a store to global memory, not to a tile",
                self.name()
            )),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fake::{Cta, GLOBAL, Rng, place};
    use crate::lanes::fake::{arg, ptx, reg};
    use crate::layout::{Swizzle, TileLayout};
    use crate::value::Place;

    const TILE: TileLayout = TileLayout {
        element: 4,
        rows: 32,
        cols: 8,
        swizzle: Swizzle::None,
    };

    /// Lane `i` at `32 i` bytes of global memory (register 1), and of the tile (register 2).
    fn cta() -> Cta {
        let mut cta = Cta::new(2, 1024).tile(256, TILE);
        cta.global = Rng(1).bytes(1024);
        let far: Lanes<u64> = std::array::from_fn(|i| GLOBAL + 32 * i as u64);
        let near: Lanes<u32> = std::array::from_fn(|i| 32 * i as u32);
        cta.warp = cta.warp.clone().with(1, &far).with(2, &near);
        cta
    }

    const FAR: At = At::Global {
        addr: Operand::Reg(RegId(1)),
        offset: 16,
    };

    fn near(peer: Option<u64>) -> At {
        At::Shared(Place {
            offset: 16,
            peer: peer.map(Operand::Imm),
            ..place(0, arg(2))
        })
    }

    fn load(ty: Type, n: u32, at: At) -> Load {
        Load {
            ty,
            dst: (0..n).map(|i| reg(10 + i)).collect(),
            at,
            cache: LoadCache::Default,
        }
    }

    fn store(ty: Type, n: u32, at: At) -> Store {
        Store {
            ty,
            src: (0..n).map(|i| arg(10 + i)).collect(),
            at,
            cache: StoreCache::Default,
        }
    }

    #[test]
    fn what_is_loaded_and_stored_again_is_the_same_in_the_active_lanes_alone() {
        for (ty, n) in [
            (Type::U8, 1),
            (Type::U8, 4),
            (Type::Bf16, 1),
            (Type::F16, 2),
            (Type::F32, 1),
            (Type::U32, 4),
            (Type::F16x2, 2),
            (Type::U64, 1),
            (Type::I64, 2),
        ] {
            let bytes = ty.bytes() * n as usize;
            let mut cta = cta();
            let (before, odd) = (cta.shared.clone(), 0xaaaa_aaaa);
            cta.run(&load(ty, n, FAR));
            cta.warp.active = odd;
            cta.run(&store(ty, n, near(Some(1))));
            for lane in 0..WARP {
                let (from, to) = (32 * lane + 16, 256 + 32 * lane + 16);
                let got = &cta.shared[1][to..to + 16];
                let moved = if odd >> lane & 1 == 1 { bytes } else { 0 };
                assert_eq!(got[..moved], cta.global[from..from + moved], "{ty} {n}");
                assert_eq!(got[moved..], before[1][to + moved..to + 16], "{ty} {n}");
            }
            assert_eq!(cta.shared[0], before[0]);
        }
    }

    #[test]
    fn registers_take_ascending_addresses() {
        let mut cta = cta();
        cta.global[16..32].copy_from_slice(bytemuck::cast_slice(&[1.5f32, -2.0, 3.0, 4.0]));
        cta.run(&load(Type::F32, 4, FAR));
        let lane0: Vec<f32> = (0..4).map(|i| cta.warp.read::<f32>(10 + i)[0]).collect();
        assert_eq!(lane0, [1.5, -2.0, 3.0, 4.0]);
    }

    #[test]
    fn a_fence_is_its_act() {
        let mut cta = cta();
        for fence in [
            crate::sync::Fence::ProxyAsyncShared,
            crate::sync::Fence::AcqRel(Scope::Gpu),
        ] {
            cta.run(&Fence { fence });
            assert_eq!(cta.warp.syncs.pop(), Some(Sync::Fence(fence)));
        }
    }

    #[test]
    fn ptx_of_accesses() {
        let cached = |cache| Load {
            cache,
            ..load(Type::U32, 4, FAR)
        };
        let v4 = "{%10, %11, %12, %13}, [address]";
        assert_eq!(
            ptx(&cached(LoadCache::Default)),
            [format!("ld.global.v4.b32 {v4}")]
        );
        assert_eq!(
            ptx(&cached(LoadCache::NonCoherent)),
            [format!("ld.global.nc.v4.b32 {v4}")]
        );
        assert_eq!(
            ptx(&cached(LoadCache::Streaming)),
            [format!("ld.global.cs.v4.b32 {v4}")]
        );
        assert_eq!(
            ptx(&cached(LoadCache::Volatile)),
            [format!("ld.volatile.global.v4.b32 {v4}")]
        );
        assert_eq!(
            ptx(&load(Type::U8, 1, near(None))),
            ["ld.shared.b8 %10, [address]"]
        );
        assert_eq!(
            ptx(&load(Type::Bf16, 2, near(Some(1)))),
            ["ld.shared::cluster.v2.b16 {%10, %11}, [address]"]
        );
        assert_eq!(
            ptx(&store(Type::U64, 1, near(None))),
            ["st.shared.b64 [address], %10"]
        );
        let constant = Store {
            src: vec![Operand::Imm(7), arg(1)],
            cache: StoreCache::Streaming,
            ..store(Type::I32, 2, FAR)
        };
        assert_eq!(
            ptx(&constant),
            [
                "mov.b32 %t0, 0x7",
                "st.global.cs.v2.b32 [address], {%t0, %1}"
            ]
        );
        let fence = |fence| ptx(&Fence { fence });
        use crate::sync::Fence::*;
        assert_eq!(fence(ProxyAsyncShared), ["fence.proxy.async.shared::cta"]);
        assert_eq!(fence(ProxyAsyncGlobal), ["fence.proxy.async.global"]);
        assert_eq!(fence(MbarrierInit), ["fence.mbarrier_init.release.cluster"]);
        assert_eq!(fence(AcqRel(Scope::Cluster)), ["fence.acq_rel.cluster"]);
    }

    #[test]
    fn legality() {
        let t = Target::SM_90A;
        let says = |r: Result<(), String>, text: &str| {
            let why = r.unwrap_err();
            assert!(why.contains(text), "{why}");
        };
        assert_eq!(load(Type::U64, 2, FAR).legal(&t), Ok(()));
        says(load(Type::U64, 4, FAR).legal(&t), "not 4 of u64");
        says(load(Type::U8, 3, FAR).legal(&t), "not 3 of u8");
        says(load(Type::U32, 0, FAR).legal(&t), "not 0 of u32");
        says(store(Type::Pred, 1, FAR).legal(&t), "a predicate");
        let shared = Load {
            cache: LoadCache::NonCoherent,
            ..load(Type::U32, 1, near(None))
        };
        says(shared.legal(&t), "load.nc.u32 is a load of global memory");
        let shared = Store {
            cache: StoreCache::Streaming,
            ..store(Type::U32, 1, near(None))
        };
        says(shared.legal(&t), "store.cs.u32 is a store to global memory");
    }
}
