//! `wgmma.mma_async`.

use super::job::{JobOperandA, WgmmaJob};
use super::legal_wgmma;
use super::operand::SharedOperand;
use crate::job::Job;
use crate::layout::{Major, WgmmaDescriptor};
use crate::machine::{
    AccessKind, Asm, Completion, Effects, Exec, ExecStatus, Fault, FaultKind, Machine, Mask,
    MemoryAccess, MemoryRegion, Proxy, Special,
};
use crate::ops::control::require_whole_warp;
use crate::ops::mma::block::{EXACTNESS, ROWS};
use crate::ops::mma::{MmaType, legal_types, type_names};
use crate::ops::{Exactness, Instr, OpInfo, Uniform};
use crate::target::Target;
use crate::types::Type;
use crate::value::{Operand, RegId, View};

/// The A operand.
#[derive(Clone, PartialEq, Debug)]
pub enum MatrixA {
    /// In shared memory: 64×k if K-major, k×64 if MN-major.
    Shared(View, Major),
    /// In registers: four per lane, in the layout of [`mma_a_at`](crate::mma_a_at).
    Regs(Vec<RegId>),
}

/// D = ±A · B or D += ±A · B by a warpgroup: m64nNk8, k16 or k32 with f32 accumulators.
#[derive(Clone, PartialEq, Debug)]
pub struct Wgmma {
    /// Element type of A.
    pub a_ty: MmaType,
    /// Element type of B: equal to A's, or both are fp8 types.
    pub b_ty: MmaType,
    /// Number of columns: a multiple of 8, at most 256.
    pub n: u32,
    /// Accumulators (`f32`, n/2 per lane), in the layout of [`accumulator_at`](crate::accumulator_at).
    pub d: Vec<RegId>,
    /// A, 64×k.
    pub a: MatrixA,
    /// B in shared memory: n×k if K-major, k×n if MN-major.
    pub b: View,
    /// The contiguous dimension of B.
    pub b_major: Major,
    /// Negates A.
    pub neg_a: bool,
    /// Negates B.
    pub neg_b: bool,
    /// Accumulates into D (`pred`, uniform); otherwise D is overwritten.
    pub scale_d: Operand,
}

impl Wgmma {
    fn async_access(memory: MemoryRegion, access: AccessKind) -> MemoryAccess {
        MemoryAccess {
            memory,
            access,
            proxy: Proxy::Wgmma,
            completion: Completion::WgmmaGroup,
            multicast: None,
        }
    }
}

impl Instr for Wgmma {
    const INFO: OpInfo = OpInfo {
        name: "wgmma",
        ptx: "wgmma.mma_async.sync.aligned.m64n{8..256}k{8,16,32}.f32.{bf16.bf16,f16.f16,tf32.tf32,{e4m3,e5m2}.{e4m3,e5m2}}",
        doc: "asynchronous warpgroup MMA: multiplies 64×k by k×n and accumulates in f32",
        exactness: Exactness::Within(EXACTNESS),
    };
    fn name(&self) -> String {
        let major_name = |major| if major == Major::K { "k" } else { "mn" };
        let a = match &self.a {
            MatrixA::Shared(_, major) => major_name(*major),
            MatrixA::Regs(_) => "regs",
        };
        let sign = if self.neg_a != self.neg_b { ".neg" } else { "" };
        format!(
            "wgmma.m64n{}k{}.{}.{a}.{}{sign}",
            self.n,
            self.a_ty.k(),
            type_names(self.a_ty, self.b_ty),
            major_name(self.b_major)
        )
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.whole_warpgroup();
        let access = match self.scale_d.as_imm() {
            Some(0) => AccessKind::Write,
            _ => AccessKind::Atomic,
        };
        for &r in &self.d {
            e.def(r);
            e.access(&Self::async_access(MemoryRegion::Register(r), access));
        }
        match &self.a {
            MatrixA::Shared(v, _) => e.access(&Self::async_access(
                MemoryRegion::View(*v),
                AccessKind::Read,
            )),
            MatrixA::Regs(regs) => {
                for &r in regs {
                    e.arg(r.into(), self.a_ty.reg());
                    e.access(&Self::async_access(
                        MemoryRegion::Register(r),
                        AccessKind::Read,
                    ));
                }
            }
        }
        e.access(&Self::async_access(
            MemoryRegion::View(self.b),
            AccessKind::Read,
        ));
        e.arg(self.scale_d, Type::Pred);
    }
    fn uniform(&self, _: Uniform) -> Uniform {
        Uniform::Lane
    }
    fn asm(&self, asm: &mut dyn Asm) {
        let d: Vec<_> = self.d.iter().map(|&r| asm.reg(r)).collect();
        let a = match &self.a {
            MatrixA::Shared(v, major) => asm.descriptor(v, WgmmaDescriptor { major: *major }),
            MatrixA::Regs(regs) => {
                let regs: Vec<_> = regs.iter().map(|&r| asm.reg(r)).collect();
                format!("{{{}}}", regs.join(", "))
            }
        };
        let major = self.b_major;
        let b = asm.descriptor(&self.b, WgmmaDescriptor { major });
        let scale_d = match self.scale_d {
            Operand::Reg(p) => asm.reg(p),
            Operand::Imm(x) => u32::from(x != 0).to_string(),
        };
        let sign = |neg| if neg { "-1" } else { "1" };
        // Only 16-bit operands in shared memory can be transposed.
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
        require_whole_warp(m)?;
        let accumulate = match m.pred(self.scale_d) {
            0 => false,
            Mask::MAX => true,
            lanes => {
                return Err(Fault::new(
                    FaultKind::Convergence,
                    format!(
                        "has scale_d set only in lanes {lanes:#010x}; it must be the same in all lanes"
                    ),
                ));
            }
        };
        let a = match &self.a {
            MatrixA::Shared(v, major) => {
                JobOperandA::Shared(SharedOperand::new(m, v, *major, self.a_ty)?)
            }
            MatrixA::Regs(regs) => JobOperandA::Regs(self.a_ty, regs.clone()),
        };
        let b = SharedOperand::new(m, &self.b, self.b_major, self.b_ty)?;
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
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, target: &Target) -> Result<(), String> {
        legal_wgmma(target)?;
        legal_types(Self::INFO.name, self.a_ty, self.b_ty)?;
        let n = self.n;
        if !n.is_multiple_of(8) || !(8..=256).contains(&n) {
            return Err(format!(
                "wgmma with n = {n}; n must be a multiple of 8 from 8 to 256"
            ));
        }
        if self.d.len() as u32 != n / 2 {
            return Err(format!(
                "wgmma with n = {n} has {} accumulator registers per lane; it needs {}",
                self.d.len(),
                n / 2
            ));
        }
        match &self.a {
            MatrixA::Shared(v, major) => legal_view("A", v, *major, self.a_ty, 64)?,
            MatrixA::Regs(regs) if regs.len() != 4 => {
                return Err(format!(
                    "A of a wgmma has {} registers per lane; it needs 4",
                    regs.len()
                ));
            }
            MatrixA::Regs(_) => {}
        }
        legal_view("B", &self.b, self.b_major, self.b_ty, n)
    }
}

/// Rejects a view that is not `mn` by k, has an unsupported major dimension, or is in a peer.
fn legal_view(which: &str, v: &View, major: Major, ty: MmaType, mn: u32) -> Result<(), String> {
    let (rows, cols) = match major {
        Major::K => (mn, ty.k()),
        Major::Mn => (ty.k(), mn),
    };
    if major == Major::Mn && ty.bytes() != 2 {
        return Err(format!(
            "{which} of a wgmma of {} is MN-major; only 16-bit types support MN-major",
            ty.name()
        ));
    }
    if (v.rows, v.cols) != (rows, cols) {
        return Err(format!(
            "{which} of a wgmma is a view of {}×{}; it must be {rows}×{cols}",
            v.rows, v.cols
        ));
    }
    match v.peer {
        None => Ok(()),
        Some(_) => Err(format!(
            "{which} of a wgmma is a tile of a peer; it must be in the same CTA"
        )),
    }
}
