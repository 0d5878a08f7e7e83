//! Atomics, and loads and stores that order what is around them.
//!
//! On the CPU an acquire is the access and then a fence, a release is a fence
//! and then the access.

use super::memory::space;
use super::{Exactness, Info, Instr, Uniform};
use crate::machine::{
    Access, Asm, Completion, Effects, Exec, Lanes, Machine, Memory, Proxy, Step, Touch,
};
use crate::sync::{Fence, Scope, Sync};
use crate::target::Target;
use crate::types::Type;
use crate::value::{At, Operand, RegId};

/// What an atomic does to the word in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AtomicOp {
    /// Sum; integers wrap. An `f32` in global memory is flushed to zero where subnormal.
    Add,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// Bits of both.
    And,
    /// Bits of either.
    Or,
    /// The new word.
    Exch,
    /// The new word, if the old one is the one to compare with.
    Cas,
}

impl AtomicOp {
    /// The name in PTX and in text.
    pub const fn name(self) -> &'static str {
        match self {
            AtomicOp::Add => "add",
            AtomicOp::Min => "min",
            AtomicOp::Max => "max",
            AtomicOp::And => "and",
            AtomicOp::Or => "or",
            AtomicOp::Exch => "exch",
            AtomicOp::Cas => "cas",
        }
    }

    /// The type suffix: of the number where it matters, else of the width.
    fn suffix(self, ty: Type) -> &'static str {
        match self {
            // There is no signed 64-bit sum: it is the unsigned one.
            AtomicOp::Add if ty == Type::I64 => "u64",
            AtomicOp::Add | AtomicOp::Min | AtomicOp::Max => ty.ptx(),
            _ => ty.bits(),
        }
    }

    fn legal(self, ty: Type) -> Result<(), String> {
        use Type::*;
        let types: &[Type] = match self {
            AtomicOp::Add => &[U32, I32, U64, I64, F32],
            AtomicOp::Min | AtomicOp::Max | AtomicOp::And | AtomicOp::Or => &[U32, I32, U64, I64],
            AtomicOp::Exch | AtomicOp::Cas => &[U32, I32, U64, I64, F32, F16x2, Bf16x2],
        };
        super::only(&format!("atomic {}", self.name()), ty, types)
    }

    /// The word after; `global` flushes subnormal floats as the L2 does.
    fn apply(self, ty: Type, old: u64, new: u64, global: bool) -> u64 {
        let flush = |x: f32| {
            if global && x.is_subnormal() {
                0f32.copysign(x)
            } else {
                x
            }
        };
        let float = |bits: u64| flush(f32::from_bits(bits as u32));
        let pick = |first: bool| if first { old } else { new };
        let less = match ty {
            Type::I32 => (old as i32) < new as i32,
            Type::I64 => (old as i64) < new as i64,
            _ => old < new,
        };
        match self {
            AtomicOp::Add => match ty {
                Type::F32 => u64::from(flush(float(old) + float(new)).to_bits()),
                Type::U32 | Type::I32 => u64::from((old as u32).wrapping_add(new as u32)),
                _ => old.wrapping_add(new),
            },
            AtomicOp::Min => pick(less),
            AtomicOp::Max => pick(!less),
            AtomicOp::And => old & new,
            AtomicOp::Or => old | new,
            AtomicOp::Exch | AtomicOp::Cas => new,
        }
    }
}

/// A word in every lane, zero-extended.
fn words<M: Machine>(m: &mut M, o: Operand, ty: Type) -> Lanes<u64> {
    match ty.bytes() {
        8 => m.get::<u64>(o),
        _ => m.get::<u32>(o).map(u64::from),
    }
}

/// Writes a word to the active lanes of a register.
fn set_words<M: Machine>(m: &mut M, r: RegId, ty: Type, v: &Lanes<u64>) {
    match ty.bytes() {
        8 => m.set(r, v),
        _ => m.set(r, &v.map(|x| x as u32)),
    }
}

/// One strong access of a word: strong accesses do not race with each other.
fn strong(at: At, ty: Type) -> Touch {
    Touch {
        memory: Memory::At(at, ty.bytes() as u32),
        access: Access::Atomic,
        proxy: Proxy::Generic,
        completion: Completion::Now,
        multicast: None,
    }
}

/// Refuses a word that has no ordered load or store.
fn legal_word(name: &str, ty: Type) -> Result<(), String> {
    use Type::*;
    super::only(name, ty, &[U32, I32, U64, I64, F32, F16x2, Bf16x2])
}

/// The fence that an acquire or release at a scope is on the CPU.
fn fence(scope: Scope) -> Sync {
    Sync::Fence(Fence::AcqRel(scope))
}

/// Changes a word in memory in one step and gives the old one.
#[derive(Clone, PartialEq, Debug)]
pub struct Atomic {
    /// What it does.
    pub op: AtomicOp,
    /// Type of the word.
    pub ty: Type,
    /// The old word.
    pub dst: RegId,
    /// Where.
    pub at: At,
    /// The operand.
    pub value: Operand,
    /// What the old word must be ([`AtomicOp::Cas`] alone).
    pub compare: Option<Operand>,
    /// Among which threads it is one step.
    pub scope: Scope,
}

impl Instr for Atomic {
    const INFO: Info = Info {
        name: "atomic",
        ptx: "atom.relaxed.{cta,cluster,gpu}.{global,shared,shared::cluster}.{add,min,max,and,or,exch,cas}",
        doc: "changes a word in memory in one step and gives the old one; orders nothing else; lanes follow one another",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("atomic.{}.{}.{}", self.op.name(), self.scope.ptx(), self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.touch(&strong(self.at, self.ty));
        self.compare.iter().for_each(|&o| e.arg(o, self.ty));
        e.arg(self.value, self.ty);
    }
    fn uniform(&self, _: Uniform) -> Uniform {
        Uniform::Lane
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (dst, at) = (a.reg(self.dst), a.address(&self.at));
        let compare = self.compare.map(|o| a.in_reg(o, self.ty));
        let value = a.in_reg(self.value, self.ty);
        let compare = compare.map_or(String::new(), |c| format!("{c}, "));
        a.emit(format!(
            "atom.relaxed.{}.{}.{}.{} {dst}, [{at}], {compare}{value}",
            self.scope.ptx(),
            space(&self.at),
            self.op.name(),
            self.op.suffix(self.ty)
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let value = words(m, self.value, self.ty);
        let compare = self.compare.map(|o| words(m, o, self.ty));
        let global = matches!(self.at, At::Global { .. });
        let old = m.atomic(&self.at, self.ty.bytes(), &mut |lane, old| match compare {
            Some(c) if c[lane] != old => old,
            _ => self.op.apply(self.ty, old, value[lane], global),
        })?;
        set_words(m, self.dst, self.ty, &old);
        Ok(Step::Next)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        self.op.legal(self.ty)?;
        if self.compare.is_some() == (self.op == AtomicOp::Cas) {
            return Ok(());
        }
        Err(format!(
            "atomic cas, and no other, compares; this is atomic {}",
            self.op.name()
        ))
    }
}

/// Loads a word; what its writer released before is seen after.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadAcquire {
    /// Type of the word.
    pub ty: Type,
    /// Result.
    pub dst: RegId,
    /// Where from.
    pub at: At,
    /// From which threads.
    pub scope: Scope,
}

impl Instr for LoadAcquire {
    const INFO: Info = Info {
        name: "load_acquire",
        ptx: "ld.acquire.{cta,cluster,gpu}.{global,shared,shared::cluster}.{b32,b64}",
        doc: "loads a word; what its writer released before is seen after",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("load_acquire.{}.{}", self.scope.ptx(), self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.def(self.dst);
        e.touch(&strong(self.at, self.ty));
        e.orders(self.scope);
    }
    fn uniform(&self, _: Uniform) -> Uniform {
        Uniform::Lane
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (dst, at) = (a.reg(self.dst), a.address(&self.at));
        a.emit(format!(
            "ld.acquire.{}.{}.{} {dst}, [{at}]",
            self.scope.ptx(),
            space(&self.at),
            self.ty.bits()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        let old = m.atomic(&self.at, self.ty.bytes(), &mut |_, old| old)?;
        set_words(m, self.dst, self.ty, &old);
        m.sync(&fence(self.scope))
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_word("load_acquire", self.ty)
    }
}

/// Stores a word; who acquires it sees what was written before.
#[derive(Clone, PartialEq, Debug)]
pub struct StoreRelease {
    /// Type of the word.
    pub ty: Type,
    /// The word.
    pub src: Operand,
    /// Where to.
    pub at: At,
    /// To which threads.
    pub scope: Scope,
}

impl Instr for StoreRelease {
    const INFO: Info = Info {
        name: "store_release",
        ptx: "st.release.{cta,cluster,gpu}.{global,shared,shared::cluster}.{b32,b64}",
        doc: "stores a word; who acquires it sees what was written before",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!("store_release.{}.{}", self.scope.ptx(), self.ty)
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.orders(self.scope);
        e.touch(&strong(self.at, self.ty));
        e.arg(self.src, self.ty);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (at, src) = (a.address(&self.at), a.in_reg(self.src, self.ty));
        a.emit(format!(
            "st.release.{}.{}.{} [{at}], {src}",
            self.scope.ptx(),
            space(&self.at),
            self.ty.bits()
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        release(m, self.scope, &self.at, self.ty, self.src, AtomicOp::Exch)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_word("store_release", self.ty)
    }
}

/// Changes a word in memory in one step; who acquires it sees what was written before.
#[derive(Clone, PartialEq, Debug)]
pub struct RedRelease {
    /// What it does.
    pub op: AtomicOp,
    /// Type of the word.
    pub ty: Type,
    /// Where.
    pub at: At,
    /// The operand.
    pub value: Operand,
    /// To which threads.
    pub scope: Scope,
}

impl Instr for RedRelease {
    const INFO: Info = Info {
        name: "red_release",
        ptx: "red.release.{cta,cluster,gpu}.{global,shared,shared::cluster}.{add,min,max,and,or}",
        doc: "changes a word in memory in one step; who acquires it sees what was written before",
        exactness: Exactness::Exact,
    };
    fn name(&self) -> String {
        format!(
            "red_release.{}.{}.{}",
            self.op.name(),
            self.scope.ptx(),
            self.ty
        )
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.orders(self.scope);
        e.touch(&strong(self.at, self.ty));
        e.arg(self.value, self.ty);
    }
    fn asm(&self, a: &mut dyn Asm) {
        let (at, value) = (a.address(&self.at), a.in_reg(self.value, self.ty));
        a.emit(format!(
            "red.release.{}.{}.{}.{} [{at}], {value}",
            self.scope.ptx(),
            space(&self.at),
            self.op.name(),
            self.op.suffix(self.ty)
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        release(m, self.scope, &self.at, self.ty, self.value, self.op)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        match self.op {
            AtomicOp::Exch | AtomicOp::Cas => Err(format!(
                "a reduction adds, takes the smaller or larger, or joins bits; {} needs atomic",
                self.op.name()
            )),
            op => op.legal(self.ty),
        }
    }
}

/// A fence, then a change of a word whose old value nobody wants.
fn release<M: Machine>(
    m: &mut M,
    scope: Scope,
    at: &At,
    ty: Type,
    value: Operand,
    op: AtomicOp,
) -> Exec {
    if m.sync(&fence(scope))? == Step::Blocked {
        return Ok(Step::Blocked);
    }
    let value = words(m, value, ty);
    let global = matches!(at, At::Global { .. });
    m.atomic(at, ty.bytes(), &mut |lane, old| {
        op.apply(ty, old, value[lane], global)
    })?;
    Ok(Step::Next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fake::{Cta, GLOBAL, place};
    use crate::lanes::fake::{arg, ptx, reg};
    use crate::layout::{Swizzle, TileLayout};

    const FAR: At = At::Global {
        addr: Operand::Imm(GLOBAL),
        offset: 0,
    };

    fn near() -> At {
        At::Shared(place(0, Operand::Imm(0)))
    }

    /// A word in global and shared memory, and operands in register 1.
    fn cta(ty: Type, word: u64, operands: &[u64]) -> Cta {
        let mut cta = Cta::new(1, 16).tile(
            0,
            TileLayout {
                element: 8,
                rows: 1,
                cols: 2,
                swizzle: Swizzle::None,
            },
        );
        let n = ty.bytes();
        cta.global[..n].copy_from_slice(&word.to_le_bytes()[..n]);
        cta.shared[0][..n].copy_from_slice(&word.to_le_bytes()[..n]);
        cta.warp = cta
            .warp
            .clone()
            .with(1, operands)
            .with_active((1 << operands.len()) - 1);
        cta
    }

    fn op(op: AtomicOp, ty: Type, at: At) -> Atomic {
        Atomic {
            op,
            ty,
            dst: reg(0),
            at,
            value: arg(1),
            compare: None,
            scope: Scope::Gpu,
        }
    }

    fn word(bytes: &[u8], ty: Type) -> u64 {
        let mut all = [0; 8];
        all[..ty.bytes()].copy_from_slice(&bytes[..ty.bytes()]);
        u64::from_le_bytes(all)
    }

    /// The word and the old words after the lanes have acted one after the other.
    fn run(o: AtomicOp, ty: Type, start: u64, operands: &[u64]) -> (u64, Vec<u64>) {
        let mut cta = cta(ty, start, operands);
        cta.run(&op(o, ty, FAR));
        let old = match ty.bytes() {
            8 => cta.warp.read::<u64>(0).to_vec(),
            _ => cta.warp.read::<u32>(0).map(u64::from).to_vec(),
        };
        (word(&cta.global, ty), old[..operands.len()].to_vec())
    }

    #[test]
    fn lanes_follow_one_another_and_see_the_word_before_them() {
        let minus = |x: i32| u64::from(-x as u32);
        assert_eq!(
            run(AtomicOp::Add, Type::U32, 5, &[1, 2, 3]),
            (11, vec![5, 6, 8])
        );
        assert_eq!(
            run(AtomicOp::Add, Type::U32, 0xffff_ffff, &[1]),
            (0, vec![0xffff_ffff])
        );
        assert_eq!(
            run(AtomicOp::Add, Type::I32, 1, &[minus(3)]),
            (minus(2), vec![1])
        );
        assert_eq!(
            run(AtomicOp::Add, Type::U64, u64::MAX, &[2]),
            (1, vec![u64::MAX])
        );
        assert_eq!(
            run(AtomicOp::Min, Type::I32, 1, &[minus(1), 7]),
            (minus(1), vec![1, minus(1)])
        );
        assert_eq!(run(AtomicOp::Min, Type::U32, 1, &[minus(1)]), (1, vec![1]));
        assert_eq!(run(AtomicOp::Max, Type::U64, 1, &[9, 4]), (9, vec![1, 9]));
        assert_eq!(
            run(AtomicOp::Max, Type::I64, u64::MAX, &[0]),
            (0, vec![u64::MAX])
        );
        assert_eq!(
            run(AtomicOp::And, Type::U32, 0b1110, &[0b0111]),
            (0b0110, vec![0b1110])
        );
        assert_eq!(
            run(AtomicOp::Or, Type::U64, 1 << 40, &[1]),
            (1 << 40 | 1, vec![1 << 40])
        );
        assert_eq!(run(AtomicOp::Exch, Type::U32, 1, &[2, 3]), (3, vec![1, 2]));
    }

    #[test]
    fn float_sums_flush_subnormals_in_global_memory_only() {
        let (tiny, one) = (1u64, u64::from(1f32.to_bits()));
        assert_eq!(
            run(AtomicOp::Add, Type::F32, one, &[one, one]).0,
            u64::from(3f32.to_bits())
        );
        assert_eq!(run(AtomicOp::Add, Type::F32, tiny, &[tiny]).0, 0);
        let mut cta = cta(Type::F32, tiny, &[tiny]);
        cta.run(&op(AtomicOp::Add, Type::F32, near()));
        assert_eq!(word(&cta.shared[0], Type::F32), 2);
    }

    #[test]
    fn cas_writes_where_the_old_word_is_the_one_named() {
        let mut cta = cta(Type::U32, 5, &[7, 8, 9]);
        cta.warp = cta.warp.clone().with(2, &[5u32, 5, 7]);
        cta.run(&Atomic {
            compare: Some(arg(2)),
            ..op(AtomicOp::Cas, Type::U32, near())
        });
        assert_eq!(word(&cta.shared[0], Type::U32), 9);
        assert_eq!(cta.warp.read::<u32>(0)[..3], [5, 7, 7]);
    }

    #[test]
    fn acquire_is_the_access_then_a_fence_and_release_the_reverse() {
        let mut cta = cta(Type::U64, 40, &[2]);
        cta.run(&LoadAcquire {
            ty: Type::U64,
            dst: reg(0),
            at: FAR,
            scope: Scope::Gpu,
        });
        assert_eq!(cta.warp.read::<u64>(0)[0], 40);
        cta.run(&RedRelease {
            op: AtomicOp::Add,
            ty: Type::U64,
            at: FAR,
            value: arg(1),
            scope: Scope::Cluster,
        });
        assert_eq!(word(&cta.global, Type::U64), 42);
        cta.run(&StoreRelease {
            ty: Type::U64,
            src: Operand::Imm(9),
            at: FAR,
            scope: Scope::Cta,
        });
        assert_eq!(word(&cta.global, Type::U64), 9);
        assert_eq!(
            cta.warp.syncs,
            [Scope::Gpu, Scope::Cluster, Scope::Cta].map(fence)
        );
    }

    #[test]
    fn ptx_of_atomics() {
        let text = |o, ty, at| ptx(&op(o, ty, at)).remove(0);
        assert_eq!(
            text(AtomicOp::Add, Type::F32, FAR),
            "atom.relaxed.gpu.global.add.f32 %0, [address], %1"
        );
        assert_eq!(
            text(AtomicOp::Add, Type::I64, FAR),
            "atom.relaxed.gpu.global.add.u64 %0, [address], %1"
        );
        assert_eq!(
            text(AtomicOp::Min, Type::I32, near()),
            "atom.relaxed.gpu.shared.min.s32 %0, [address], %1"
        );
        assert_eq!(
            text(AtomicOp::Or, Type::I32, near()),
            "atom.relaxed.gpu.shared.or.b32 %0, [address], %1"
        );
        let cas = Atomic {
            compare: Some(arg(2)),
            ..op(AtomicOp::Cas, Type::U64, FAR)
        };
        assert_eq!(
            ptx(&cas),
            ["atom.relaxed.gpu.global.cas.b64 %0, [address], %2, %1"]
        );
        let load = LoadAcquire {
            ty: Type::F32,
            dst: reg(0),
            at: FAR,
            scope: Scope::Gpu,
        };
        assert_eq!(ptx(&load), ["ld.acquire.gpu.global.b32 %0, [address]"]);
        let store = StoreRelease {
            ty: Type::U32,
            src: arg(1),
            at: near(),
            scope: Scope::Cluster,
        };
        assert_eq!(ptx(&store), ["st.release.cluster.shared.b32 [address], %1"]);
        let red = RedRelease {
            op: AtomicOp::Max,
            ty: Type::U32,
            at: FAR,
            value: arg(1),
            scope: Scope::Gpu,
        };
        assert_eq!(ptx(&red), ["red.release.gpu.global.max.u32 [address], %1"]);
    }

    #[test]
    fn legality() {
        let t = Target::SM_90A;
        let says = |r: Result<(), String>, text: &str| {
            let why = r.unwrap_err();
            assert!(why.contains(text), "{why}");
        };
        assert_eq!(op(AtomicOp::Add, Type::F32, FAR).legal(&t), Ok(()));
        says(
            op(AtomicOp::Min, Type::F32, FAR).legal(&t),
            "atomic min takes",
        );
        says(op(AtomicOp::Add, Type::U16, FAR).legal(&t), "not u16");
        says(
            op(AtomicOp::Cas, Type::U32, FAR).legal(&t),
            "this is atomic cas",
        );
        let red = RedRelease {
            op: AtomicOp::Exch,
            ty: Type::U32,
            at: FAR,
            value: arg(1),
            scope: Scope::Gpu,
        };
        says(red.legal(&t), "exch needs atomic");
    }
}
