//! The float64 reference, and the tensors that it is given.

use super::epilogue::{bias, gate, reduce, residual, scale};
use super::problem::{Layout, Problem};
use crate::weights::Weights;
use warpline_family::numbers::{Random, half_ulp};
use warpline_family::tensor::{HostTensor, TensorSpec, UNTOUCHED};
use warpline_ir::DType;

/// What an error may be, as a part of the sum of magnitudes: the tensor cores
/// align the products of a step to the greatest and cut off what is below.
/// 8 units of f32 for 16-bit factors, and 4 of the 13 bits that fp8 keeps: the
/// worst that an H200 was seen to err is 1.2 of these, at 4096 x 4096 x 4096.
fn unit(p: &Problem) -> f64 {
    match p.dtype.is_fp8() {
        false => 2f64.powi(-20),
        true => 2f64.powi(-11),
    }
}

/// The most numbers that are drawn for a tensor: of a larger one they come
/// again, in other places of its rows.
const DRAWN: usize = 1 << 24;

/// Tensors drawn from a seed.
pub(super) fn inputs(p: &Problem, seed: u64) -> Vec<HostTensor> {
    let mut random = Random::new(seed);
    let draw = |spec: TensorSpec| {
        let len = match spec.elements() {
            // Odd, so that no two rows of a tensor start alike.
            all if all > DRAWN => DRAWN - 3,
            all => all,
        };
        let scale = spec.name.starts_with("scale");
        let mut next = || match scale {
            true => 0.5 + random.uniform(),
            false => random.normal(),
        };
        HostTensor::round(spec, (0..len).map(|_| next())).cycled()
    };
    p.inputs().into_iter().map(draw).collect()
}

/// A · Bᵀ and what becomes of it: for every output each value and its bound.
///
/// Of a large product every so many rows are computed and the others may hold
/// any number; how many is odd, so that all rows of a tile have their turn.
pub(super) fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
    let read = |name: &str| {
        p.input(name)
            .map(|i| inputs[i].values().collect::<Vec<f64>>())
    };
    let (a, b) = (
        read("a").unwrap_or_default(),
        read(p.b().name).unwrap_or_default(),
    );
    let (added, more) = (read("bias"), read("residual"));
    let names = p.scale_names();
    let scale = |i: usize| read(names[i]).map_or(1.0, |x| x[0]);
    let other = p.up.map(|_| (read("up"), scale(0) * scale(2)));
    let scale = f64::from(p.scale.unwrap_or(1.0)) * scale(0) * scale(1);
    let [m, n, k] = [p.m, p.n, p.k].map(|x| x as usize);
    let [lda, ldb, ldc, ldr] = [p.a(), p.b(), p.c(), p.residual()].map(|x| x.stride as usize);
    let [a_step, b_step, c_step, r_step] =
        [p.a(), p.b(), p.c(), p.residual()].map(|x| x.step as usize);
    let out = p.c().dtype;
    let batches = p.batches() as usize;
    let every = (batches * m * n * k) >> 30 | 1;
    let mut all = Vec::with_capacity(batches * c_step);
    let reductions = p.class().epilogue.reductions();
    // The values of C before they are rounded.
    let mut exact = Vec::new();
    for z in 0..batches {
        let b = &b[z * b_step..];
        // B with the elements of a sum side by side.
        let turned: Vec<f64>;
        let (b, ldb) = match p.layout {
            Layout::Nk => (b, ldb),
            Layout::Kn => {
                turned = (0..n)
                    .flat_map(|j| (0..k).map(move |i| b[i * ldb + j]))
                    .collect();
                (&turned[..], k)
            }
        };
        for i in 0..m {
            let row = z * m + i;
            if row % every != 0 {
                let unknown = || (0..n).map(|_| (0.0, f64::INFINITY));
                all.extend(unknown());
                exact.extend(unknown());
                all.extend((n..ldc).map(|_| UNTOUCHED));
                continue;
            }
            let x = &a[z * a_step + i * lda..][..k];
            for j in 0..n {
                let (gate_row, up_row) = gated_rows(p, j);
                let sum = dot(x, &b[gate_row * ldb..][..k]);
                let add = added.as_ref().map_or(0.0, |bias| bias[j]);
                let y = bias::reference(scale::reference(sum, scale, unit(p)), add);
                let mut y = p.activation.reference(y);
                if let Some((up, scale)) = &other {
                    let (up, ld) = match (up, p.up()) {
                        (Some(up), Some(m)) => (&up[..], m.stride as usize),
                        _ => (b, ldb),
                    };
                    let sum = dot(x, &up[up_row * ld..][..k]);
                    y = gate::reference(y, scale::reference(sum, *scale, unit(p)));
                }
                let add = more.as_ref();
                let add = add.map_or(0.0, |r| r[z * r_step + i * ldr + j]);
                let (value, error) = residual::reference(y, add);
                all.push(bounded(out, value, error));
                exact.push((value, error));
            }
            all.extend((n..ldc).map(|_| UNTOUCHED));
        }
        all.resize((z + 1) * c_step, UNTOUCHED);
    }
    let reduced = reductions
        .into_iter()
        .map(|r| reduce::reference(r, p, &exact));
    [all].into_iter().chain(reduced).collect()
}

/// The row of B that a column of C is made with, and that of the second factor
/// in the tensor that holds it.
fn gated_rows(p: &Problem, j: usize) -> (usize, usize) {
    match p.up {
        None | Some(Weights::Apart) => (j, j),
        Some(Weights::Concatenated) => (j, p.n as usize + j),
        Some(Weights::Interleaved) => {
            let row = j / 8 * 16 + j % 8;
            (row, row + 8)
        }
    }
}

/// A value with the bound of its rounding.
pub(crate) fn bounded(out: DType, value: f64, error: f64) -> (f64, f64) {
    match value.is_finite() {
        true => (value, half_ulp(out, value) * 1.01 + error),
        false => (value, 0.0),
    }
}

/// The sum of products, and of their magnitudes, over eight lanes at a time.
pub(crate) fn dot(x: &[f64], y: &[f64]) -> (f64, f64) {
    const LANES: usize = 8;
    let (mut sums, mut sizes) = ([0.0; LANES], [0.0; LANES]);
    let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let rest = xs.remainder().iter().zip(ys.remainder());
    let rest: Vec<f64> = rest.map(|(x, y)| x * y).collect();
    for (x, y) in xs.zip(ys) {
        for i in 0..LANES {
            let product = x[i] * y[i];
            sums[i] += product;
            sizes[i] += product.abs();
        }
    }
    let sum = sums.iter().chain(&rest).sum();
    let size = sizes.iter().copied().chain(rest.iter().map(|x| x.abs()));
    (sum, size.sum())
}
