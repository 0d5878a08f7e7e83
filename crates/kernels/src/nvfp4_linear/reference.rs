//! The float64 reference, and random inputs.

use super::problem::Problem;
use crate::gemm::reference::bounded;
use crate::nvfp4::Quantized;
use crate::nvfp4_dual_gemm::reference::draw_inputs;
use warpline_family::numbers::dot;
use warpline_family::tensor::{HostTensor, UNTOUCHED};

/// Returns random inputs: codes of magnitude up to 1.5, and scales from 0 to 1, so that sums over
/// thousands of elements stay in the range of f16.
pub(super) fn inputs(p: &Problem, seed: u64) -> Vec<HostTensor> {
    draw_inputs(p.specs(), seed)
}

/// Returns each value of C and its tolerance.
///
/// Of a large problem only every n-th row is computed; the other rows have infinite tolerance. n is odd,
/// so that the computed rows reach every row of a tile.
pub(super) fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
    let specs = p.specs();
    let tensor = |name: &str| {
        let index = specs.iter().position(|spec| spec.name == name);
        index.and_then(|i| inputs.get(i))
    };
    let all = |name: &str| -> Vec<f64> {
        tensor(name).map_or_else(Vec::new, |tensor| tensor.values().collect())
    };
    let [m, n, k] = [p.m, p.n, p.k].map(|x| x as usize);
    let weight = Quantized {
        rows: n,
        k,
        codes: tensor("weight").map_or_else(Vec::new, |codes| codes.data.clone()),
        scales: tensor("weight_scales")
            .and_then(|scales| p.scale_layout.to_plain(&scales.data, n, k).ok())
            .unwrap_or_default(),
        tensor_scale: 1.0,
    };
    let weight = weight.dequantize().unwrap_or_default();
    let (a, bias) = (all("a"), all("bias"));
    let scale = all("scale_weight").first().copied().unwrap_or(1.0);
    let a_stride = p.a_stride.map_or(k, |stride| stride as usize);
    let c_stride = p.c_stride.map_or(n, |stride| stride as usize);
    let row_step = (m * n * k) >> 30 | 1;
    // The relative truncation error of the tensor cores, as for f16.
    let truncation = 2f64.powi(-20);
    let mut values = Vec::with_capacity(m * c_stride);
    for i in 0..m {
        if i % row_step != 0 {
            values.extend((0..n).map(|_| (0.0, f64::INFINITY)));
        } else {
            let x = &a[i * a_stride..][..k];
            for j in 0..n {
                let (sum, magnitude) = dot(x, &weight[j * k..][..k]);
                let scaled = scale * sum;
                let bias = bias.get(j).copied().unwrap_or(0.0);
                let value = scaled + bias;
                let error = truncation * scale.abs() * magnitude
                    + 2f64.powi(-22) * (scaled.abs() + value.abs() + bias.abs());
                values.push(bounded(p.dtype.dtype(), value, error));
            }
        }
        values.extend((n..c_stride).map(|_| UNTOUCHED));
    }
    vec![values]
}
