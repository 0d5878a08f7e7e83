//! Every element type and operand source of the matrix instructions, on one tile. The probe reveals errors in
//! descriptors and fragment layouts.

use crate::probe::{Probe, box_map, dot, tensor};
use half::{bf16, f16};
use serde_json::{Value as Json, json};
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, DType, E4m3, E5m2, Kernel, Target, Tf32};
use warpline_kernels::{Buffer, LaunchStep, TensorArg, TensorSpec};

/// Where the operands of an instruction are.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Operands {
    /// wgmma, A and B in shared memory, K-major.
    Shared,
    /// wgmma, A and B in shared memory, M- and N-major.
    Transposed,
    /// wgmma, A in registers.
    Registers,
    /// mma.sync on four warps.
    Warps,
}

const M: u32 = 64;
const N: u32 = 64;

/// Returns the number of elements in 128 bytes of K.
const fn k_elements(dtype: DType) -> u32 {
    128 / dtype.bytes() as u32
}

/// Returns the box of a whole operand: K-major, or (16-bit types) transposed.
fn operand_box(dtype: DType, operands: Operands) -> [u32; 2] {
    match operands {
        Operands::Transposed => [M, k_elements(dtype)],
        _ => [k_elements(dtype), M],
    }
}

fn one_tile<T>(operands: Operands, target: &Target) -> Result<Kernel, BuildErrors>
where
    T: MmaElement<Word: MmaWith<T::Word>>,
{
    let [cols, rows] = operand_box(T::DTYPE, operands);
    Kernel::build("one_tile", target, |k| {
        let [a, b] = ["a", "b"].map(|name| k.tensor_map(name, box_map(T::DTYPE, cols, rows)));
        let c = k.pointer::<f32>("c");
        let ab = k.ring("ab", 1, |s| {
            (s.tile::<T>(rows, cols), s.tile::<T>(rows, cols))
        });
        k.role("compute").warpgroups(1).body(|| {
            let slot = ab.wait();
            let (a, b) = *slot;
            let store = |first: Reg<u32>, acc: Frag| {
                acc.each_pair(|coord, pair| c.store_vec((first + coord.row) * N + coord.col, pair));
            };
            let acc = || Acc::new(M, N);
            match operands {
                Operands::Shared => {
                    let acc = acc();
                    acc.mma(&a, &b);
                    store(0u32.reg(), acc.into_frag());
                }
                Operands::Transposed => {
                    let acc = acc();
                    acc.mma(&a.t(), &b.t());
                    store(0u32.reg(), acc.into_frag());
                }
                Operands::Registers => {
                    let acc = acc();
                    acc.mma(&RegOperand::load(&a), &b);
                    store(0u32.reg(), acc.into_frag());
                }
                Operands::Warps => {
                    let row = warp_in_role() * 16;
                    let acc = Frag::warp_zeros(16, N).mma_sync(&a, row, &b, 0u32);
                    store(row, acc);
                }
            }
            slot.release();
        });
        k.role("load").warps(1).body(|| {
            elect(|| {
                let slot = ab.acquire();
                slot.load(a, slot.0, [0, 0]);
                slot.load(b, slot.1, [0, 0]);
                slot.commit();
            });
        });
    })
}

pub(crate) struct OneTile {
    dtype: DType,
    operands: Operands,
}

impl Probe for OneTile {
    const NAME: &'static str = "one-tile";
    fn extents(&self) -> Json {
        json!({ "dtype": self.dtype.name(), "operands": format!("{:?}", self.operands) })
    }
    fn step(&self, target: &Target) -> Result<LaunchStep, BuildErrors> {
        let kernel = match self.dtype {
            DType::Bf16 => one_tile::<bf16>(self.operands, target)?,
            DType::F16 => one_tile::<f16>(self.operands, target)?,
            DType::Tf32 => one_tile::<Tf32>(self.operands, target)?,
            DType::E4m3 => one_tile::<E4m3>(self.operands, target)?,
            _ => one_tile::<E5m2>(self.operands, target)?,
        };
        let extents = operand_box(self.dtype, self.operands);
        let step = LaunchStep::new(kernel, [1, 1, 1])
            .tensor("a", TensorArg::dense(Buffer::Input(0), &extents))
            .tensor("b", TensorArg::dense(Buffer::Input(1), &extents))
            .pointer("c", Buffer::Output(0));
        Ok(step)
    }
    fn inputs(&self) -> Vec<TensorSpec> {
        let [cols, rows] = operand_box(self.dtype, self.operands);
        ["a", "b"]
            .map(|name| tensor(name, self.dtype, &[rows, cols]))
            .into()
    }
    fn outputs(&self) -> Vec<TensorSpec> {
        vec![tensor("c", DType::F32, &[M, N])]
    }
    fn reference(&self, inputs: &[Vec<f64>]) -> Vec<(f64, f64)> {
        let k = k_elements(self.dtype) as usize;
        let row = |x: &[f64], i: usize| -> Vec<f64> {
            let element = |j: usize| match self.operands {
                Operands::Transposed => x[j * M as usize + i],
                _ => x[i * k + j],
            };
            // tf32 has 13 mantissa bits less than f32; the copy rounds to nearest even.
            let round = |x: f64| match self.dtype {
                DType::Tf32 => {
                    let bits = (x as f32).to_bits();
                    f64::from(f32::from_bits((bits + 0xfff + (bits >> 13 & 1)) & !0x1fff))
                }
                _ => x,
            };
            (0..k).map(element).map(round).collect()
        };
        let is_8_bit = [DType::E4m3, DType::E5m2].contains(&self.dtype);
        let mut out = Vec::new();
        for i in 0..(M * N) as usize {
            let (a, b) = (
                row(&inputs[0], i / N as usize),
                row(&inputs[1], i % N as usize),
            );
            let (sum, bound) = dot(&a, &b, DType::F32);
            // Sums of 8-bit products keep 13 bits below the largest term.
            let magnitude: f64 = a.iter().zip(&b).map(|(x, y)| (x * y).abs()).sum();
            out.push((
                sum,
                if is_8_bit {
                    bound + magnitude * 2f64.powi(-11)
                } else {
                    bound
                },
            ));
        }
        out
    }
    fn flops(&self) -> f64 {
        f64::from(2 * M * N * k_elements(self.dtype))
    }
}

pub(crate) fn cases() -> Vec<OneTile> {
    let mut cases = Vec::new();
    for dtype in [
        DType::Bf16,
        DType::F16,
        DType::Tf32,
        DType::E4m3,
        DType::E5m2,
    ] {
        for operands in [
            Operands::Shared,
            Operands::Transposed,
            Operands::Registers,
            Operands::Warps,
        ] {
            if operands != Operands::Transposed || dtype.bytes() == 2 {
                cases.push(OneTile { dtype, operands });
            }
        }
    }
    cases
}
