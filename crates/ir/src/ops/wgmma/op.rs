//! The product itself.

use super::job::{JobA, WgmmaJob};
use super::legal_wgmma;
use super::operand::Tile;
use crate::job::Job;
use crate::layout::{Descriptor, Major};
use crate::machine::{
    Access, Asm, Completion, Effects, Exec, Fault, FaultKind, Machine, Mask, Memory, Proxy,
    Special, Step, Touch,
};
use crate::ops::control::whole_warp;
use crate::ops::mma::product::{EXACTNESS, ROWS};
use crate::ops::mma::{MmaType, legal_types, pair};
use crate::ops::{Exactness, Info, Instr, Uniform};
use crate::target::Target;
use crate::types::Type;
use crate::value::{Operand, RegId, View};

/// Where A is.
#[derive(Clone, PartialEq, Debug)]
pub enum MatrixA {
    /// In shared memory: 64×k, or k×64 if M-major.
    Shared(View, Major),
    /// In registers: four per lane, as [`mma_a_at`](crate::mma_a_at) lays them out.
    Regs(Vec<RegId>),
}

/// D = ±A · B, or D += ±A · B, by a warpgroup: m64nNk8, k16 or k32 with f32 sums.
#[derive(Clone, PartialEq, Debug)]
pub struct Wgmma {
    /// Element type of A.
    pub a_ty: MmaType,
    /// Element type of B: that of A, or fp8 with fp8.
    pub b_ty: MmaType,
    /// Columns: a multiple of 8, up to 256.
    pub n: u32,
    /// Accumulators (`f32`, n/2 per lane), as [`accumulator_at`](crate::accumulator_at) lays them out.
    pub d: Vec<RegId>,
    /// A, 64×k.
    pub a: MatrixA,
    /// B in shared memory: n×k, or k×n if N-major.
    pub b: View,
    /// Which dimension of B is contiguous.
    pub b_major: Major,
    /// Takes −A for A.
    pub neg_a: bool,
    /// Takes −B for B.
    pub neg_b: bool,
    /// Whether D is added to (`pred`, the same in every lane); otherwise it is overwritten.
    pub scale_d: Operand,
}

impl Wgmma {
    fn touch(memory: Memory, access: Access) -> Touch {
        Touch {
            memory,
            access,
            proxy: Proxy::Wgmma,
            completion: Completion::WgmmaGroup,
            multicast: None,
        }
    }
}

impl Instr for Wgmma {
    const INFO: Info = Info {
        name: "wgmma",
        ptx: "wgmma.mma_async.sync.aligned.m64n{8..256}k{8,16,32}.f32.{bf16.bf16,f16.f16,tf32.tf32,{e4m3,e5m2}.{e4m3,e5m2}}",
        doc: "multiplies 64×k by k×n and adds to f32 accumulators, asynchronously",
        exactness: Exactness::Within(EXACTNESS),
    };
    fn name(&self) -> String {
        let letter = |major| if major == Major::K { "k" } else { "mn" };
        let a = match &self.a {
            MatrixA::Shared(_, major) => letter(*major),
            MatrixA::Regs(_) => "regs",
        };
        let sign = if self.neg_a != self.neg_b { ".neg" } else { "" };
        format!(
            "wgmma.m64n{}k{}.{}.{a}.{}{sign}",
            self.n,
            self.a_ty.k(),
            pair(self.a_ty, self.b_ty),
            letter(self.b_major)
        )
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.whole_warpgroup();
        let access = match self.scale_d.as_imm() {
            Some(0) => Access::Write,
            _ => Access::Atomic,
        };
        for &r in &self.d {
            e.def(r);
            e.touch(&Self::touch(Memory::Register(r), access));
        }
        match &self.a {
            MatrixA::Shared(v, _) => e.touch(&Self::touch(Memory::View(*v), Access::Read)),
            MatrixA::Regs(regs) => {
                for &r in regs {
                    e.arg(r.into(), self.a_ty.reg());
                    e.touch(&Self::touch(Memory::Register(r), Access::Read));
                }
            }
        }
        e.touch(&Self::touch(Memory::View(self.b), Access::Read));
        e.arg(self.scale_d, Type::Pred);
    }
    fn uniform(&self, _: Uniform) -> Uniform {
        Uniform::Lane
    }
    fn asm(&self, asm: &mut dyn Asm) {
        let d: Vec<_> = self.d.iter().map(|&r| asm.reg(r)).collect();
        let a = match &self.a {
            MatrixA::Shared(v, major) => asm.descriptor(v, Descriptor { major: *major }),
            MatrixA::Regs(regs) => {
                let regs: Vec<_> = regs.iter().map(|&r| asm.reg(r)).collect();
                format!("{{{}}}", regs.join(", "))
            }
        };
        let major = self.b_major;
        let b = asm.descriptor(&self.b, Descriptor { major });
        let scale_d = match self.scale_d {
            Operand::Reg(p) => asm.reg(p),
            Operand::Imm(x) => u32::from(x != 0).to_string(),
        };
        let sign = |neg| if neg { "-1" } else { "1" };
        // Only 16-bit types can be transposed, and only in shared memory.
        let transposed = |major| if major == Major::Mn { ", 1" } else { ", 0" };
        let (trans_a, trans_b) = match (&self.a, self.a_ty.bytes()) {
            (MatrixA::Shared(_, major), 2) => (transposed(*major), transposed(self.b_major)),
            (MatrixA::Regs(_), 2) => ("", transposed(self.b_major)),
            _ => ("", ""),
        };
        asm.emit(format!(
            "wgmma.mma_async.sync.aligned.m64n{}k{}.f32.{}.{} {{{}}}, {a}, {b}, {scale_d}, {}, {}{trans_a}{trans_b}",
            self.n,
            self.a_ty.k(),
            self.a_ty.name(),
            self.b_ty.name(),
            d.join(", "),
            sign(self.neg_a),
            sign(self.neg_b),
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        whole_warp(m, Self::INFO.name)?;
        let accumulate = match m.pred(self.scale_d) {
            0 => false,
            Mask::MAX => true,
            some => {
                return Err(Fault::new(
                    FaultKind::Convergence,
                    format!(
                        "scale_d of a wgmma is the same in every lane, not set in lanes {some:#010x} alone"
                    ),
                ));
            }
        };
        let a = match &self.a {
            MatrixA::Shared(v, major) => JobA::Shared(Tile::new(m, v, *major, self.a_ty)?),
            MatrixA::Regs(regs) => JobA::Regs(self.a_ty, regs.clone()),
        };
        let b = Tile::new(m, &self.b, self.b_major, self.b_ty)?;
        let warp = m.special(Special::WarpId)[0] as usize % 4;
        let job = WgmmaJob {
            n: self.n as usize,
            d: self.d.clone(),
            a,
            b,
            negative: self.neg_a != self.neg_b,
            accumulate,
            row: ROWS * warp,
        };
        m.submit(Mask::MAX, Job::Wgmma(job))?;
        Ok(Step::Next)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_wgmma(target)?;
        legal_types(Self::INFO.name, self.a_ty, self.b_ty)?;
        let n = self.n;
        if !n.is_multiple_of(8) || !(8..=256).contains(&n) {
            return Err(format!(
                "n of a wgmma is a multiple of 8 from 8 to 256, not {n}"
            ));
        }
        if self.d.len() as u32 != n / 2 {
            return Err(format!(
                "a wgmma of n = {n} has {} accumulators per lane, not {}",
                n / 2,
                self.d.len()
            ));
        }
        match &self.a {
            MatrixA::Shared(v, major) => legal_view("A", v, *major, self.a_ty, 64)?,
            MatrixA::Regs(regs) if regs.len() != 4 => {
                return Err(format!(
                    "A of a wgmma is 4 registers per lane, not {}",
                    regs.len()
                ));
            }
            MatrixA::Regs(_) => {}
        }
        legal_view("B", &self.b, self.b_major, self.b_ty, n)
    }
}

/// Refuses a view that is not `mn` by k, is transposed where it cannot be, or lies in a peer.
fn legal_view(which: &str, v: &View, major: Major, ty: MmaType, mn: u32) -> Result<(), String> {
    let (rows, cols) = match major {
        Major::K => (mn, ty.k()),
        Major::Mn => (ty.k(), mn),
    };
    if major == Major::Mn && ty.bytes() != 2 {
        return Err(format!(
            "{which} of a wgmma of {} is K-major; only 16-bit types can be MN-major",
            ty.name()
        ));
    }
    if (v.rows, v.cols) != (rows, cols) {
        return Err(format!(
            "{which} of this wgmma is a view of {rows}×{cols}, not {}×{}",
            v.rows, v.cols
        ));
    }
    match v.peer {
        None => Ok(()),
        Some(_) => Err(format!(
            "{which} of a wgmma is a tile of the CTA itself, not of a peer"
        )),
    }
}
