//! The float64 reference, and random inputs.

use super::epilogue::{bias, gate, reduce, residual, scale};
use super::problem::{ALayout, Matrix, OperandLayout, Problem};
use crate::weights::WeightLayout;
use std::borrow::Cow;
use warpline_family::numbers::{Random, dot, half_ulp};
use warpline_family::tensor::{HostTensor, TensorSpec, UNTOUCHED};
use warpline_ir::DType;

/// Returns the error bound relative to the sum of magnitudes. The tensor cores align the products of
/// a k-step to the largest and truncate the bits below. The bound is 8 units of 2⁻²³ for 16-bit
/// operands, and 4 units of 2⁻¹³ for fp8. The largest error seen on an H200 is 1.2 units, at
/// 4096 x 4096 x 4096.
fn relative_bound(p: &Problem) -> f64 {
    match p.dtype.is_fp8() {
        false => 2f64.powi(-20),
        true => 2f64.powi(-11),
    }
}

/// The maximum of random numbers per tensor; a larger tensor repeats them at other positions of its
/// rows.
const MAX_DRAWN: usize = 1 << 24;

/// Returns random inputs.
pub(super) fn inputs(p: &Problem, seed: u64) -> Vec<HostTensor> {
    let mut random = Random::new(seed);
    let draw = |spec: TensorSpec| {
        let len = match spec.elements() {
            // An odd period: rows of a tensor start at different numbers.
            len if len > MAX_DRAWN => MAX_DRAWN - 3,
            len => len,
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

/// Returns each value of every output and its tolerance.
///
/// A large GEMM is computed only at every n-th row, and the other rows have infinite tolerance. The
/// distance is odd, so that the computed rows reach every row of a tile.
pub(super) fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
    let read = |name: &str| {
        p.input(name)
            .map(|i| inputs[i].values().collect::<Vec<f64>>())
    };
    let (a, b) = (
        read("a").unwrap_or_default(),
        read(p.b().name).unwrap_or_default(),
    );
    let (bias_values, residual_values) = (read("bias"), read("residual"));
    let names = p.scale_names();
    let scale = |i: usize| read(names[i]).map_or(1.0, |x| x[0]);
    let up_operand = p.up.map(|_| (read("up"), scale(0) * scale(2)));
    let scale = f64::from(p.scale.unwrap_or(1.0)) * scale(0) * scale(1);
    let [m, n, k] = [p.m, p.n, p.k].map(|x| x as usize);
    let [ldc, ldr] = [p.c(), p.residual()].map(|x| x.stride as usize);
    let [c_batch_stride, r_batch_stride] = [p.c(), p.residual()].map(|x| x.batch_stride as usize);
    let out = p.c().dtype;
    let batches = p.batches() as usize;
    let row_step = (batches * m * n * k) >> 30 | 1;
    let mut c_values = Vec::with_capacity(batches * c_batch_stride);
    let reductions = p.class().epilogue.reductions();
    // The values of C before rounding.
    let mut exact = Vec::new();
    for z in 0..batches {
        // Both operands with K innermost.
        let a = k_innermost(&a, p.a(), z, p.a_layout == ALayout::Mk);
        let b = k_innermost(&b, p.b(), z, p.layout == OperandLayout::Nk);
        let up_rows = match (&up_operand, p.up()) {
            (Some((Some(up), _)), Some(matrix)) => Some(k_innermost(up, matrix, z, true)),
            _ => None,
        };
        for i in 0..m {
            let row = z * m + i;
            if row % row_step != 0 {
                let unchecked = || (0..n).map(|_| (0.0, f64::INFINITY));
                c_values.extend(unchecked());
                exact.extend(unchecked());
                c_values.extend((n..ldc).map(|_| UNTOUCHED));
                continue;
            }
            let x = &a[i * k..][..k];
            for j in 0..n {
                let (gate_row, up_row) = gated_rows(p, j);
                let sum = dot(x, &b[gate_row * k..][..k]);
                let add = bias_values.as_ref().map_or(0.0, |values| values[j]);
                let y = bias::reference(scale::reference(sum, scale, relative_bound(p)), add);
                let mut y = p.activation.reference(y);
                if let Some((_, scale)) = &up_operand {
                    let up = up_rows.as_ref().unwrap_or(&b);
                    let sum = dot(x, &up[up_row * k..][..k]);
                    y = gate::reference(y, scale::reference(sum, *scale, relative_bound(p)));
                }
                let add = residual_values.as_ref();
                let add = add.map_or(0.0, |r| r[z * r_batch_stride + i * ldr + j]);
                let (value, error) = residual::reference(y, add);
                c_values.push(bounded(out, value, error));
                exact.push((value, error));
            }
            c_values.extend((n..ldc).map(|_| UNTOUCHED));
        }
        c_values.resize((z + 1) * c_batch_stride, UNTOUCHED);
    }
    let reduced = reductions
        .into_iter()
        .map(|r| reduce::reference(r, p, &exact));
    [c_values].into_iter().chain(reduced).collect()
}

/// Returns matrix `z` of an operand, dense with K innermost, as the tensor cores read it.
fn k_innermost(values: &[f64], m: Matrix, z: usize, is_k_innermost: bool) -> Cow<'_, [f64]> {
    let [rows, cols, stride, inner, batch_stride] =
        [m.rows, m.cols, m.stride, m.inner_stride, m.batch_stride].map(|n| n as usize);
    let first = z * batch_stride;
    if is_k_innermost && inner == 1 && stride == cols && m.dtype != DType::F32 {
        return values[first..first + rows * cols].into();
    }
    let read = |i: usize, j: usize| {
        let x = values[first + i * stride + j * inner];
        match m.dtype {
            DType::F32 => round_to_tf32(x),
            _ => x,
        }
    };
    let [outer, k] = if is_k_innermost {
        [rows, cols]
    } else {
        [cols, rows]
    };
    let element = |at: usize| match is_k_innermost {
        true => read(at / k, at % k),
        false => read(at % k, at / k),
    };
    (0..outer * k).map(element).collect()
}

/// Returns an f32 as the kernel multiplies it: rounded to the 10 bits of a tf32 mantissa, to nearest
/// even.
fn round_to_tf32(x: f64) -> f64 {
    let bits = (x as f32).to_bits();
    match x.is_finite() {
        true => f32::from_bits((bits + 0xfff + (bits >> 13 & 1)) & !0x1fff).into(),
        false => x,
    }
}

/// Returns the row of the gate that column `j` of C uses, and the row of up in its tensor.
fn gated_rows(p: &Problem, j: usize) -> (usize, usize) {
    match p.up {
        None | Some(WeightLayout::Separate) => (j, j),
        Some(WeightLayout::Concatenated) => (j, p.n as usize + j),
        Some(WeightLayout::Interleaved) => {
            let row = j / 8 * 16 + j % 8;
            (row, row + 8)
        }
    }
}

/// Returns a value and its tolerance: the error bound and half an ulp of the output type.
pub(crate) fn bounded(out: DType, value: f64, error: f64) -> (f64, f64) {
    match value.is_finite() {
        true => (value, half_ulp(out, value) * 1.01 + error),
        false => (value, 0.0),
    }
}
