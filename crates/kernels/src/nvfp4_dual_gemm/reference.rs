//! The float64 reference, and random inputs.

use super::problem::Problem;
use crate::gemm::epilogue::gate;
use crate::gemm::reference::bounded;
use crate::nvfp4::{BLOCK, Quantized};
use crate::weights::WeightLayout;
use warpline_family::numbers::{Random, dot};
use warpline_family::tensor::{HostTensor, TensorSpec, UNTOUCHED};
use warpline_ir::DType;

/// Returns random inputs: codes of magnitude up to 1.5, and scales from 0 to 1, so that sums over
/// thousands of elements stay in the range of f16.
pub(super) fn inputs(p: &Problem, seed: u64) -> Vec<HostTensor> {
    draw_inputs(p.specs(), seed)
}

/// Returns random inputs of the tensors of an NVFP4 problem.
pub(crate) fn draw_inputs(specs: Vec<TensorSpec>, seed: u64) -> Vec<HostTensor> {
    let mut random = Random::new(seed);
    let draw = |spec: TensorSpec| match spec.dtype {
        DType::U8 => {
            let data = (0..spec.elements()).map(|_| random.bits() as u8 & 0xbb);
            let data = data.collect();
            HostTensor { spec, data }
        }
        DType::E4m3 => {
            let len = spec.elements();
            HostTensor::round(spec, (0..len).map(|_| random.uniform()))
        }
        DType::F32 => HostTensor::round(spec, [0.5 + random.uniform()]),
        _ => {
            let len = spec.elements();
            HostTensor::round(spec, (0..len).map(|_| 2.0 * random.uniform() - 1.0))
        }
    };
    specs.into_iter().map(draw).collect()
}

/// Returns the values of a tensor, row by row.
fn values(p: &Problem, inputs: &[HostTensor], name: &str) -> Vec<f64> {
    let tensor = |name: &str| {
        p.specs()
            .iter()
            .position(|spec| spec.name == name)
            .map(|i| &inputs[i])
    };
    let (Some(codes), k) = (tensor(name), p.k as usize) else {
        return Vec::new();
    };
    let Some(scales) = tensor(&format!("{name}_scales")) else {
        let (all, stride): (Vec<_>, _) = (codes.values().collect(), codes.spec.shape[1]);
        return all
            .chunks(stride)
            .flat_map(|row| row[..k].to_vec())
            .collect();
    };
    let rows = codes.spec.shape[0];
    let plain = p.scale_layout.to_plain(&scales.data, rows, k);
    let tensor = Quantized {
        rows,
        k,
        codes: codes.data.clone(),
        scales: plain.unwrap_or_default(),
        tensor_scale: 1.0,
    };
    tensor.dequantize().unwrap_or_default()
}

/// Returns each value of C and its tolerance.
///
/// Of a large GEMM only every n-th row is computed; the other rows have infinite tolerance. n is odd, so
/// that the computed rows reach every row of a tile.
pub(super) fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
    let scale = |name| {
        let number = p
            .specs()
            .iter()
            .position(|spec| spec.name == name)
            .and_then(|i| inputs[i].values().next());
        number.unwrap_or(1.0)
    };
    let [a, mut gate, mut up] = ["a", "gate", "up"].map(|name| values(p, inputs, name));
    if p.weights == WeightLayout::Concatenated {
        up = gate.split_off(gate.len() / 2);
    }
    let scales = ["scale_gate", "scale_up"].map(|name| scale("scale_a") * scale(name));
    let [m, n, k] = [p.m, p.n, p.k].map(|x| x as usize);
    let row_step = (2 * m * n * k) >> 30 | 1;
    let stride = p.c_stride.unwrap_or(p.n.into()) as usize;
    let mut values = Vec::with_capacity(m * stride);
    // The relative truncation error of the tensor cores, as for f16.
    let truncation = 2f64.powi(-20);
    for i in 0..m {
        if i % row_step != 0 {
            values.extend((0..n).map(|_| (0.0, f64::INFINITY)));
        } else {
            let x = &a[i * k..][..k];
            for j in 0..n {
                let dots = [&gate, &up].map(|w| dot(x, &w[j * k..][..k]));
                let [(y, error), up] = [0, 1].map(|i| {
                    let (sum, magnitude) = dots[i];
                    (
                        scales[i] * sum,
                        truncation * scales[i].abs() * magnitude
                            + 2f64.powi(-22) * (scales[i] * sum).abs(),
                    )
                });
                let (value, error) = gate::reference((p.gate.value(y), p.gate.error(y, error)), up);
                values.push(bounded(
                    p.decoded_type().dtype(),
                    value,
                    error + 2f64.powi(-23) * value.abs(),
                ));
            }
        }
        values.extend((n..stride).map(|_| UNTOUCHED));
    }
    debug_assert!(k.is_multiple_of(BLOCK));
    vec![values]
}
