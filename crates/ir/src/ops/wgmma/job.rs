//! One warp's part of a `wgmma` in flight.

use super::operand::SharedOperand;
use crate::job::{Engine, Span};
use crate::layout::{Major, mma_a_at};
use crate::machine::Fault;
use crate::ops::mma::MmaType;
use crate::ops::mma::block::{COLS, ROWS, WORDS, gather, multiply, scatter};
use crate::value::RegId;

/// The A operand of a job.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum JobOperandA {
    Shared(SharedOperand),
    Regs(MmaType, Vec<RegId>),
}

/// One warp's 16 rows of a `wgmma`.
#[derive(Clone, PartialEq, Debug)]
pub struct WgmmaJob {
    pub(super) n: usize,
    pub(super) d: Vec<RegId>,
    pub(super) a: JobOperandA,
    pub(super) b: SharedOperand,
    /// Negates A · B.
    pub(super) negative: bool,
    /// Accumulates into D; otherwise D is overwritten.
    pub(super) accumulate: bool,
    /// First row of the warp.
    pub(super) row: usize,
}

impl WgmmaJob {
    /// Calls `each` with the shared bytes that the job will read.
    pub fn reads(&self, each: &mut dyn FnMut(Span)) {
        if let JobOperandA::Shared(a) = &self.a {
            a.reads(self.row, ROWS, each);
        }
        self.b.reads(0, self.n, each);
    }

    /// Calls `each` with the registers that the job uses: accumulators, then A.
    pub fn registers(&self, each: &mut dyn FnMut(RegId)) {
        self.d.iter().for_each(|&r| each(r));
        if let JobOperandA::Regs(_, a) = &self.a {
            a.iter().for_each(|&r| each(r));
        }
    }

    /// Returns the floating-point operations of the warp's part.
    pub fn flops(&self) -> u64 {
        2 * (ROWS * self.n) as u64 * u64::from(self.b.ty.k())
    }

    /// Computes the rows and writes the accumulators.
    pub fn complete(&self, e: &mut impl Engine) -> Result<(), Fault> {
        match self.b.ty.bytes() {
            1 => self.accumulate_rows::<32>(e),
            2 => self.accumulate_rows::<16>(e),
            _ => self.accumulate_rows::<8>(e),
        }
    }

    fn accumulate_rows<const K: usize>(&self, e: &mut impl Engine) -> Result<(), Fault> {
        let a = self.a_rows::<K>(e)?;
        let b = self.b.read(0, self.n, e)?;
        for (j, regs) in self.d.as_chunks::<4>().0.iter().enumerate() {
            let mut d = match self.accumulate {
                true => gather(regs.map(|r| e.register(r))),
                false => Default::default(),
            };
            multiply::<K>(&a, &self.b_columns(&b, j), &mut d);
            for (&r, v) in regs.iter().zip(&scatter(&d)) {
                e.set_register(r, v);
            }
        }
        Ok(())
    }

    /// Returns the 16 rows of A in row-major order.
    fn a_rows<const K: usize>(&self, e: &mut impl Engine) -> Result<Vec<f32>, Fault> {
        let mut a = match &self.a {
            JobOperandA::Shared(a) => {
                let numbers = a.read(self.row, ROWS, e)?;
                match a.major {
                    Major::K => numbers,
                    Major::Mn => transpose(&numbers, ROWS),
                }
            }
            JobOperandA::Regs(ty, regs) => {
                let mut words = [0; ROWS * WORDS];
                for (i, &r) in regs.iter().enumerate() {
                    for (lane, word) in e.register(r).into_iter().enumerate() {
                        let (row, word_k) = mma_a_at(MmaType::Tf32, lane as u32, i as u32);
                        words[row as usize * WORDS + word_k as usize] = word;
                    }
                }
                let mut numbers = vec![0f32; ROWS * K];
                ty.widen(&words, &mut numbers);
                numbers
            }
        };
        if self.negative {
            a.iter_mut().for_each(|x| *x = -*x);
        }
        Ok(a)
    }

    /// Returns columns `8j..8j + 8` of B, indexed by k.
    #[inline]
    fn b_columns<const K: usize>(&self, b: &[f32], j: usize) -> [[f32; COLS]; K] {
        match self.b.major {
            Major::K => {
                let columns = &b[j * COLS * K..][..COLS * K];
                std::array::from_fn(|k| std::array::from_fn(|c| columns[c * K + k]))
            }
            Major::Mn => std::array::from_fn(|k| {
                let row = &b[k * self.n + j * COLS..][..COLS];
                std::array::from_fn(|c| row[c])
            }),
        }
    }
}

/// Transposes a row-major matrix with `cols` columns.
fn transpose(m: &[f32], cols: usize) -> Vec<f32> {
    (0..cols)
        .flat_map(|c| m[c..].iter().step_by(cols).copied())
        .collect()
}
