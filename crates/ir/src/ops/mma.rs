//! `mma.sync`: warp-level MMA on register fragments, D (16×8) = A (16×k) · B (k×8) + C.
//!
//! The full shape covers 32 bytes of K (8 tf32, 16 16-bit or 32 fp8 elements)
//! with A in four registers and B in two; the half shape has half of each.
//! [`mma_a_at`], [`mma_b_at`] and [`accumulator_at`](crate::accumulator_at)
//! define the fragment layouts. [`wgmma`](super::wgmma) shares the 16×8 blocks.

pub(crate) mod block;
mod ty;

pub use ty::MmaType;
pub(super) use ty::{legal_types, type_names};

use super::control::require_whole_warp;
use super::{Exactness, Instr, OpInfo, Uniform};
use crate::layout::{mma_a_at, mma_b_at};
use crate::machine::{Asm, Effects, Exec, ExecStatus, Machine, PerLane};
use crate::target::Target;
use crate::types::Type;
use crate::value::{Operand, RegId};
use block::{COLS, EXACTNESS, ROWS, WORDS, gather, multiply, scatter};

/// D = A · B + C by one warp, with f32 accumulators.
#[derive(Clone, PartialEq, Debug)]
pub struct Mma {
    /// Element type of A.
    pub a_ty: MmaType,
    /// Element type of B: equal to A's, or both are fp8 types.
    pub b_ty: MmaType,
    /// Result (`f32`).
    pub d: [RegId; 4],
    /// A: four registers of [`MmaType::reg`], or two for the half shape.
    pub a: Vec<Operand>,
    /// B: half as many registers as A.
    pub b: Vec<Operand>,
    /// Accumulator input (`f32`).
    pub c: [Operand; 4],
}

impl Mma {
    /// Returns the number of elements along K.
    fn k(&self) -> u32 {
        self.b.len() as u32 * 4 * self.a_ty.per_reg()
    }

    /// Computes D; `K` is the number of elements along K of the full shape.
    fn multiply_add<const K: usize, M: Machine>(&self, m: &mut M) -> [PerLane<u32>; 4] {
        // The missing half of K of the half shape stays zero.
        let (mut a, mut b) = ([0u32; ROWS * WORDS], [0u32; COLS * WORDS]);
        for (i, &o) in self.a.iter().enumerate() {
            for (lane, word) in m.get::<u32>(o).into_iter().enumerate() {
                let (row, word_k) = mma_a_at(MmaType::Tf32, lane as u32, i as u32);
                a[row as usize * WORDS + word_k as usize] = word;
            }
        }
        for (i, &o) in self.b.iter().enumerate() {
            for (lane, word) in m.get::<u32>(o).into_iter().enumerate() {
                let (word_k, col) = mma_b_at(MmaType::Tf32, lane as u32, i as u32);
                b[col as usize * WORDS + word_k as usize] = word;
            }
        }
        let (mut rows, mut columns) = ([[0f32; K]; ROWS], [[0f32; K]; COLS]);
        self.a_ty.widen(&a, rows.as_flattened_mut());
        self.b_ty.widen(&b, columns.as_flattened_mut());
        let by_k = std::array::from_fn(|k| std::array::from_fn(|c| columns[c][k]));
        let mut d = gather(self.c.map(|o| m.get::<u32>(o)));
        multiply::<K>(rows.as_flattened(), &by_k, &mut d);
        scatter(&d)
    }
}

impl Instr for Mma {
    const INFO: OpInfo = OpInfo {
        name: "mma",
        ptx: "mma.sync.aligned.m16n8k{4,8,16,32}.row.col.f32.{bf16.bf16,f16.f16,tf32.tf32,{e4m3,e5m2}.{e4m3,e5m2}}.f32",
        doc: "warp-level MMA: multiplies 16×k by k×8 register fragments and accumulates in f32",
        exactness: Exactness::Within(EXACTNESS),
    };
    fn name(&self) -> String {
        format!(
            "mma.m16n8k{}.{}",
            self.k(),
            type_names(self.a_ty, self.b_ty)
        )
    }
    fn effects(&self, e: &mut dyn Effects) {
        e.whole_warp();
        self.d.iter().for_each(|&r| e.def(r));
        self.a.iter().for_each(|&o| e.arg(o, self.a_ty.reg()));
        self.b.iter().for_each(|&o| e.arg(o, self.b_ty.reg()));
        self.c.iter().for_each(|&o| e.arg(o, Type::F32));
    }
    fn uniform(&self, _: Uniform) -> Uniform {
        Uniform::Lane
    }
    fn asm(&self, asm: &mut dyn Asm) {
        let d = self.d.map(|r| asm.reg(r)).join(", ");
        let mut list = |operands: &[Operand], ty| {
            let registers: Vec<_> = operands.iter().map(|&o| asm.in_reg(o, ty)).collect();
            registers.join(", ")
        };
        let a = list(&self.a, self.a_ty.reg());
        let b = list(&self.b, self.b_ty.reg());
        let c = list(&self.c, Type::F32);
        asm.emit(format!(
            "mma.sync.aligned.m16n8k{}.row.col.f32.{}.{}.f32 {{{d}}}, {{{a}}}, {{{b}}}, {{{c}}}",
            self.k(),
            self.a_ty.name(),
            self.b_ty.name(),
        ));
    }
    fn exec<M: Machine>(&self, m: &mut M) -> Exec {
        require_whole_warp(m)?;
        let d = match self.a_ty.bytes() {
            1 => self.multiply_add::<32, M>(m),
            2 => self.multiply_add::<16, M>(m),
            _ => self.multiply_add::<8, M>(m),
        };
        for (&r, v) in self.d.iter().zip(&d) {
            m.set(r, v);
        }
        Ok(ExecStatus::Completed)
    }
    fn legal(&self, _: &Target) -> Result<(), String> {
        legal_types(Self::INFO.name, self.a_ty, self.b_ty)?;
        match (self.a.len(), self.b.len()) {
            (4, 2) | (2, 1) => Ok(()),
            (a, b) => Err(format!(
                "mma has {a} registers for A and {b} for B; it needs 4 and 2, or 2 and 1"
            )),
        }
    }
    fn ptx_version(&self) -> (u32, u32) {
        match (self.a_ty.bytes(), self.a.len()) {
            (1, 4) => (8, 4),
            (1, _) => (8, 7),
            _ => (8, 0),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
