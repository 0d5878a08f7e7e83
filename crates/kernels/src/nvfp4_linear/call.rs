//! The op: from call arguments to a problem.

use super::problem::Problem;
use crate::batch_invariant::BATCH_INVARIANT;
use crate::gemm::call::extent_u32;
use crate::nvfp4_dual_gemm::Choice;
use crate::nvfp4_dual_gemm::call::{
    SCALE_LAYOUT, TensorRules, check_aligned, check_k, row_strides, scale_layout,
};
use warpline_family::Op;
use warpline_family::error::FamilyError;
use warpline_family::family::Family;
use warpline_family::float::FloatType;
use warpline_family::op::{ArgValue, OpArgs, OpOutput, OpParam, OutputDim, Signature, TensorView};
use warpline_ir::DType;

/// The tensor parameters of the op, and the plan inputs that they bind.
const TENSORS: [(&str, &str); 5] = [
    ("x", "a"),
    ("weight", "weight"),
    ("weight_scales", "weight_scales"),
    ("scale_weight", "scale_weight"),
    ("bias", "bias"),
];

/// `nvfp4_linear(x, weight, weight_scales, scale_weight, bias)`.
pub(super) fn op<F: Family<Problem = Problem, Choice = Choice>>() -> Op<F> {
    let params = vec![
        OpParam::tensor("x", "[…, K] in bf16 or f16."),
        OpParam::tensor(
            "weight",
            "[N, K/2] in u8, two e2m1 codes per byte, the first in the low half.",
        ),
        OpParam::tensor(
            "weight_scales",
            "One e4m3 scale per 16 elements of K: in blocks, as nvfp4_quantize returns them, or [N, K/16].",
        ),
        OpParam::optional(
            "scale_weight",
            "Tensor scale of the weight: one f32 element.",
        ),
        OpParam::optional("bias", "[N], same type as x."),
        SCALE_LAYOUT,
        BATCH_INVARIANT,
    ];
    Op {
        signature: Signature {
            name: "nvfp4_linear",
            about: "y = x · weightᵀ + bias with a weight in NVFP4 and x in bf16 or f16",
            params,
            outputs: vec![OpOutput {
                name: "y",
                dims: &[OutputDim::Leading("x"), OutputDim::Index("weight", 0)],
                dtype_of: "x",
                dtype_override: None,
                fixed_dtype: None,
            }],
            optional_output: None,
            example: EXAMPLE,
        },
        problem: |call| {
            let choice = Choice {
                batch_invariant: call.flag("batch_invariant").then_some(true),
                ..Choice::default()
            };
            Ok((problem_of_call(call)?, choice))
        },
        args: |p| {
            let specs = p.specs();
            let tensor = |(_, input): (&str, &str)| {
                let spec = specs.iter().find(|spec| spec.name == input);
                spec.map_or(ArgValue::None, |spec| {
                    let shape: Vec<u64> = spec.shape.iter().map(|&n| n as u64).collect();
                    TensorView::dense(spec.dtype, &shape, 0).into()
                })
            };
            let mut all: Vec<ArgValue> = TENSORS.into_iter().map(tensor).collect();
            all.extend([p.scale_layout.keyword().into(), ArgValue::Flag(false)]);
            all
        },
    }
}

/// Returns the problem of a call.
fn problem_of_call(call: &OpArgs<'_>) -> Result<Problem, FamilyError> {
    let (x, weight) = (call.tensor("x")?, call.tensor("weight")?);
    let [rows, bytes_per_row] = weight.shape[..] else {
        return call.reject(format!(
            "weight has {} dimensions; 2 are needed, [N, K/2]",
            weight.shape.len()
        ));
    };
    let (n, k) = (
        extent_u32(call, "N", rows)?,
        extent_u32(call, "K", 2 * bytes_per_row)?,
    );
    let dtype = match x.dtype {
        DType::F16 => FloatType::F16,
        DType::Bf16 => FloatType::Bf16,
        other => {
            let text = format!("x is {other}; it must be bf16 or f16");
            return match other {
                DType::F32 => call.unsupported(text),
                _ => call.reject(text),
            };
        }
    };
    if x.shape.last() != Some(&u64::from(k)) {
        return call.reject(format!(
            "the last dimension of x is {:?}; with weight rows of {bytes_per_row} bytes it must be {k}",
            x.shape.last()
        ));
    }
    check_k(call, k)?;
    let p = Problem {
        dtype,
        scale_layout: scale_layout(call, "weight_scales", rows, k)?,
        scale: call.optional("scale_weight").is_some(),
        bias: call.optional("bias").is_some(),
        ..Problem::new(0, n, k)
    };
    let rows = row_strides(call, x, p.gemm())?;
    let p = Problem {
        m: rows.m,
        a_stride: rows.a_stride,
        c_stride: rows.c_stride,
        ..p
    };
    check_aligned(call)?;
    let rules = TensorRules {
        specs: &p.specs(),
        tensor_scales: p.tensor_scales(),
        scale_layout: p.scale_layout,
    };
    rules.check(call, &TENSORS)?;
    Ok(p)
}

const EXAMPLE: &str = "\
>>> w = warpline.nvfp4_quantize(np.full((8, 16), 0.75, np.float32))
>>> x = np.ones((1, 16), np.float16)
>>> warpline.nvfp4_linear(x, *w, bias=np.ones(8, np.float16))
array([[13., 13., 13., 13., 13., 13., 13., 13.]], dtype=float16)";
