//! Matrix instructions: `mma` of a warp and `wgmma` of a warpgroup.
//!
//! There are two data sets. Small integers with an infinity and a NaN have exact sums. Random numbers
//! have sums with an error, because the hardware truncates terms below the largest one.

use super::DataSize;
use crate::tolerance::Tolerance;
use crate::trial::OpTrial;
use half::{bf16, f16};
use warpline_ir::builder::*;
use warpline_ir::ops::mma::MmaType;
use warpline_ir::{
    Bf16x2, Block, DType, E4m3, E4m3x4, E5m2, E5m2x4, F16x2, Kernel, Op, StmtKind, TensorMapDecl,
    Tf32, Type,
};
use warpline_kernels::numbers::Random;
use warpline_kernels::{HostTensor, TensorSpec};

/// Returns the trials. The `wgmma` trials are large, so only their integer data is recorded.
pub(crate) fn trials(data_size: DataSize) -> Vec<OpTrial> {
    let sets = match data_size {
        DataSize::Recorded => &DATA_SETS[..1],
        DataSize::Full => &DATA_SETS[..],
    };
    vec![
        warp_mma::<Bf16x2, Bf16x2>(),
        warp_mma::<F16x2, F16x2>(),
        warp_mma::<Tf32, Tf32>(),
        warp_mma::<E4m3x4, E4m3x4>(),
        warp_mma::<E4m3x4, E5m2x4>(),
        warp_mma::<E5m2x4, E4m3x4>(),
        warp_mma::<E5m2x4, E5m2x4>(),
        warpgroup_mma::<bf16>(Operands::Shared, 48, sets),
        warpgroup_mma::<bf16>(Operands::Transposed, 64, sets),
        warpgroup_mma::<bf16>(Operands::Registers, 24, sets),
        warpgroup_mma::<bf16>(Operands::Negated, 8, sets),
        warpgroup_mma::<f16>(Operands::Shared, 32, sets),
        warpgroup_mma::<f16>(Operands::Registers, 16, sets),
        warpgroup_mma::<Tf32>(Operands::Shared, 24, sets),
        warpgroup_mma::<Tf32>(Operands::Registers, 16, sets),
        warpgroup_mma::<E4m3>(Operands::Shared, 40, sets),
        warpgroup_mma::<E4m3>(Operands::Registers, 8, sets),
        warpgroup_mma::<E5m2>(Operands::Shared, 128, sets),
        warpgroup_mma::<E5m2>(Operands::Negated, 16, sets),
    ]
}

/// A data set.
#[derive(Clone, Copy, PartialEq)]
enum DataSet {
    Integer,
    Random,
}

const DATA_SETS: [DataSet; 2] = [DataSet::Integer, DataSet::Random];

/// Draws numbers of a type. 8-bit types get no infinity: it would become the largest number, and the
/// hardware would truncate the small terms beside it.
fn draw(dtype: DType, n: usize, data_set: DataSet, seed: u64) -> HostTensor {
    let mut random = Random::new(seed);
    let numbers: Vec<f64> = (0..n)
        .map(|i| match data_set {
            DataSet::Random => random.normal(),
            DataSet::Integer if i == n / 3 && dtype.bytes() > 1 => f64::INFINITY,
            DataSet::Integer if i == n / 2 => f64::NAN,
            DataSet::Integer => (random.bits() % 9) as f64 - 4.0,
        })
        .collect();
    let spec = TensorSpec {
        name: "operand",
        dtype,
        shape: vec![n],
    };
    let mut tensor = HostTensor::round(spec, numbers);
    if dtype == DType::Tf32 {
        // A tf32 register has only the bits of a tf32.
        for word in tensor.data.chunks_exact_mut(4) {
            word[0] = 0;
            word[1] &= 0xe0;
        }
    }
    tensor
}

/// Returns the largest absolute value of a tensor.
fn max_abs(tensor: &HostTensor) -> f64 {
    let finite = tensor.values().filter(|x| x.is_finite());
    finite.fold(0.0, |max: f64, x| max.max(x.abs()))
}

/// Returns the error bound of a sum; `magnitude` is the sum of the absolute terms. For each k-step the
/// hardware truncates terms at a fixed distance below the largest one: 23 bits for 16-bit types, 13 bits for
/// 8-bit types. Integer data is exact, and NaN stays NaN.
fn bound(ty: MmaType, data_set: DataSet, magnitude: f64) -> f64 {
    match (data_set, ty) {
        (DataSet::Integer, _) => 0.0,
        (_, MmaType::E4m3 | MmaType::E5m2) => magnitude * 2f64.powi(-11),
        _ => magnitude * 2f64.powi(-20),
    }
}

/// Full and half-K `mma` of one warp.
fn warp_mma<A: MmaWith<B>, B: MmaWord>() -> OpTrial {
    let name = format!("{}_{}", A::MMA.name(), B::MMA.name());
    let kernel = super::kernel(&format!("mma_{name}"), |k| {
        let [a, b] = ["a", "b"].map(|name| k.pointer::<u32>(name));
        let (c, d) = (k.pointer::<f32>("c"), k.pointer::<f32>("d"));
        k.role("all").warps(1).body(|| {
            let thread = cta_id() * 32 + lane_id();
            let (a, b) = (a.load_as::<A, 4>(thread * 4), b.load_as::<B, 2>(thread * 2));
            let c = c.load_vec::<4>(thread * 4);
            d.store_vec(thread * 8, mma_sync(c, a, b));
            let [a0, a1, ..] = a;
            d.store_vec(thread * 8 + 4, mma_sync_half(c, [a0, a1], [b[0]]));
        });
    });
    let k = 32 / A::MMA.dtype().bytes();
    let (mut a, mut b, mut c, mut bounds) = (vec![], vec![], vec![], vec![]);
    for data_set in DATA_SETS {
        let [x, y, z] = [
            draw(A::MMA.dtype(), 16 * k, data_set, 90),
            draw(B::MMA.dtype(), 8 * k, data_set, 91),
            draw(DType::F32, 128, data_set, 92),
        ];
        let magnitude = k as f64 * max_abs(&x) * max_abs(&y) + max_abs(&z);
        bounds.extend([bound(A::MMA, data_set, magnitude); 256]);
        a.extend(x.data);
        b.extend(y.data);
        c.extend(z.data);
    }
    OpTrial::new(format!("mma, {name}"), &["mma"], kernel)
        .ctas(DATA_SETS.len() as u32)
        .input(&a)
        .input(&b)
        .input(&c)
        .output("sums", Type::F32, bounds.len())
        .tolerance(Tolerance::PerValue(bounds))
}

/// The location and layout of the `wgmma` operands.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Operands {
    /// Both in shared memory, K-major.
    Shared,
    /// Both in shared memory, MN-major.
    Transposed,
    /// A in registers.
    Registers,
    /// As `Shared`, with A and B negated, or only A in every second instruction.
    Negated,
}

/// Accumulates two k-tiles into one 64 × n accumulator, and the second k-tile into another.
fn warpgroup_mma<T>(operands: Operands, n: u32, sets: &[DataSet]) -> OpTrial
where
    T: MmaElement<Word: MmaWith<T::Word>>,
{
    let dtype = T::DTYPE;
    let k_elements = 128 / dtype.bytes() as u32;
    let shape = |mn: u32| match operands {
        Operands::Transposed => [k_elements, mn],
        _ => [mn, k_elements],
    };
    // One TMA box for each panel of 128 bytes, with at most 64 rows or columns.
    let decl = |mn: u32| match operands {
        Operands::Transposed => TensorMapDecl::tiled(dtype, [64, k_elements]),
        _ => TensorMapDecl::tiled(dtype, [k_elements, mn.min(64)]),
    };
    let name = format!("{dtype}_{operands:?}_{n}").to_lowercase();
    let mut kernel = super::kernel(&format!("wgmma_{name}"), |k| {
        let (a_map, b_map) = (k.tensor_map("a", decl(64)), k.tensor_map("b", decl(n)));
        let d = k.pointer::<f32>("d");
        let [[a_rows, a_cols], [b_rows, b_cols]] = [shape(64), shape(n)];
        let a = k.tile::<T>("a", a_rows, a_cols).stages(2).declare();
        let b = k.tile::<T>("b", b_rows, b_cols).stages(2).declare();
        let full = k.barrier("full", 1).arrivals(1);
        k.role("all").warpgroups(1).body(|| {
            elect(|| {
                let bytes = (64 + n) * 128 * 2;
                full.at(0).arrive_expect(bytes);
                for step in 0..2u32 {
                    let first = cta_id() * 2 + step;
                    for (map, tile, mn) in [(a_map, a, 64), (b_map, b, n)] {
                        for start in (0..mn).step_by(64) {
                            let end = (start + 64).min(mn);
                            match operands {
                                Operands::Transposed => {
                                    let panel = tile.stage(step).slice(0..k_elements, start..end);
                                    map.load(panel, (start, first * k_elements), full.at(0));
                                }
                                _ => {
                                    let panel = tile.stage(step).slice(start..end, 0..k_elements);
                                    map.load(panel, (0u32, first * mn + start), full.at(0));
                                }
                            }
                        }
                    }
                }
            });
            full.at(0).wait(0);
            let (both_k_tiles, second_k_tile) = (Acc::new(64, n), Acc::new(64, n));
            let multiply = |acc: &Acc, step: u32| match operands {
                Operands::Transposed => acc.mma(&a.stage(step).t(), &b.stage(step).t()),
                Operands::Registers => {
                    acc.mma(&RegOperand::load(&a.stage(step)), &b.stage(step));
                }
                _ => acc.mma(&a.stage(step), &b.stage(step)),
            };
            multiply(&both_k_tiles, 0);
            multiply(&both_k_tiles, 1);
            let store = |index: u32, acc: Frag| {
                let first = (cta_id() * 2 + index) * (64 * n);
                acc.each_pair(|coord, pair| {
                    d.store_vec(first + coord.row * n + coord.col, pair);
                });
            };
            if operands == Operands::Registers {
                // The threads load register operands after the previous wgmma completes.
                store(0, both_k_tiles.into_frag());
                multiply(&second_k_tile, 1);
            } else {
                multiply(&second_k_tile, 1);
                store(0, both_k_tiles.into_frag());
            }
            store(1, second_k_tile.into_frag());
        });
    });
    if operands == Operands::Negated {
        negate(&mut kernel);
    }
    let (mut a, mut b, mut bounds) = (vec![], vec![], vec![]);
    for &data_set in sets {
        let x = draw(dtype, 2 * (64 * k_elements) as usize, data_set, 93);
        let y = draw(dtype, 2 * (n * k_elements) as usize, data_set, 94);
        let magnitudes = magnitudes(&x, &y, n as usize, operands == Operands::Transposed);
        let ty = MmaType::from_dtype(dtype).unwrap_or(MmaType::Bf16);
        bounds.extend(
            magnitudes
                .into_iter()
                .map(|magnitude| bound(ty, data_set, magnitude)),
        );
        a.extend(x.data);
        b.extend(y.data);
    }
    let count = 2 * sets.len() as u64;
    let extents = |mn: u32| match operands {
        Operands::Transposed => [u64::from(mn), count * u64::from(k_elements)],
        _ => [u64::from(k_elements), count * u64::from(mn)],
    };
    OpTrial::new(
        format!("wgmma, {name}"),
        &["wgmma", "wgmma_fence", "wgmma_commit", "wgmma_wait"],
        kernel,
    )
    .ctas(sets.len() as u32)
    .input_map(&extents(64), &a)
    .input_map(&extents(n), &b)
    .output("sums", Type::F32, bounds.len())
    .tolerance(Tolerance::PerValue(bounds))
}

/// Returns the sum of the absolute terms of each result: over both k-tiles, and over the second alone.
fn magnitudes(a: &HostTensor, b: &HostTensor, n: usize, transposed: bool) -> Vec<f64> {
    let [a, b] = [a, b].map(|t| t.values().map(f64::abs).collect::<Vec<f64>>());
    let k_elements = a.len() / 128;
    let element = |x: &[f64], mn: usize, step: usize, i: usize, k: usize| {
        let first = step * mn * k_elements;
        x[if transposed {
            first + k * mn + i
        } else {
            first + i * k_elements + k
        }]
    };
    let term = |step: usize, i: usize| -> f64 {
        let k = 0..k_elements;
        k.map(|k| element(&a, 64, step, i / n, k) * element(&b, n, step, i % n, k))
            .sum()
    };
    let both_k_tiles = (0..64 * n).map(|i| term(0, i) + term(1, i));
    both_k_tiles
        .chain((0..64 * n).map(|i| term(1, i)))
        .collect()
}

/// Negates the operands of every `wgmma`: both, or only A.
fn negate(kernel: &mut Kernel) {
    fn block(b: &mut Block, count: &mut usize) {
        for stmt in &mut b.0 {
            match &mut stmt.kind {
                StmtKind::Op(Op::Wgmma(wgmma)) => {
                    wgmma.neg_a = true;
                    wgmma.neg_b = count.is_multiple_of(2);
                    *count += 1;
                }
                StmtKind::Op(_) => {}
                StmtKind::If { then, other, .. } => {
                    block(then, count);
                    block(other, count);
                }
                StmtKind::For { body, .. } | StmtKind::Elect { body } => block(body, count),
                StmtKind::While { head, body, .. } => {
                    block(head, count);
                    block(body, count);
                }
            }
        }
    }
    let mut count = 0;
    for role in &mut kernel.roles {
        block(&mut role.body, &mut count);
    }
}
