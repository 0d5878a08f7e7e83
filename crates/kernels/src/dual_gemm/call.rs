//! The ops: from call arguments to a problem.

use super::problem::Problem;
use crate::batch_invariant::BATCH_INVARIANT;
use crate::gemm;
use crate::gemm::call::{
    OUT_DTYPE, activation, canonical, choice, extent_u32, layer_problem, operand_type, out_type,
    with_scales,
};
use crate::gemm::operand_view::{MatrixView, VectorAs};
use crate::gemm::{ALayout, Activation, Choice, OperandLayout};
use crate::weights::{BLOCK_ROWS, WeightLayout};
use warpline_family::Op;
use warpline_family::error::FamilyError;
use warpline_family::family::Family;
use warpline_family::field::FieldValue;
use warpline_family::op::{ArgValue, OpArgs, OpOutput, OpParam, OutputDim, Signature, TensorView};
use warpline_ir::DType;

const X: OpParam = OpParam::tensor(
    "x",
    "[…, K] in bf16, f16, e4m3, e5m2, or f32 (multiplied as tf32).",
);
const SCALES: [OpParam; 3] = [
    OpParam::optional("scale_x", "Scale of x: one f32 element."),
    OpParam::optional("scale_gate", "Scale of the gate weight: one f32 element."),
    OpParam::optional("scale_up", "Scale of the up weight: one f32 element."),
];

fn output(dims: &'static [OutputDim]) -> Vec<OpOutput> {
    vec![OpOutput {
        name: "y",
        dims,
        dtype_of: "x",
        dtype_override: Some("out_dtype"),
        fixed_dtype: None,
    }]
}

/// `swiglu(x, w_gate, w_up)`.
pub(super) fn swiglu<F: Family<Problem = Problem, Choice = Choice>>() -> Op<F> {
    let weights = [
        OpParam::tensor("w_gate", "[N, K], same type as x; e4m3 if x is e5m2."),
        OpParam::tensor("w_up", "[N, K], same type as w_gate."),
    ];
    Op {
        signature: Signature {
            name: "swiglu",
            about: "y = silu(x · w_gateᵀ) ∘ (x · w_upᵀ), accumulated in f32 and rounded once",
            params: [X]
                .into_iter()
                .chain(weights)
                .chain(SCALES)
                .chain([OUT_DTYPE, BATCH_INVARIANT])
                .collect(),
            outputs: output(&[OutputDim::Leading("x"), OutputDim::Index("w_gate", 0)]),
            optional_output: None,
            example: SWIGLU_EXAMPLE,
        },
        problem: |call| {
            let problem = problem_of_call(call, Activation::Silu, WeightLayout::Separate)?;
            Ok((problem, choice(call)))
        },
        args: |p| {
            let weight = TensorView::dense(p.dtype.b_dtype(), &[p.n.into(), p.k.into()], 0);
            let mut all = vec![x_arg(p), weight.clone().into(), weight.into()];
            all.extend(trailing_args(p));
            all
        },
    }
}

/// `dual_gemm(x, w_gate, w_up, gate, weights)`.
pub(super) fn dual_gemm<F: Family<Problem = Problem, Choice = Choice>>() -> Op<F> {
    let weights = [
        OpParam::tensor(
            "w_gate",
            "[N, K], same type as x; e4m3 if x is e5m2. Without w_up: both weights, [2N, K].",
        ),
        OpParam::optional("w_up", "[N, K], same type as w_gate."),
        OpParam::text(
            "gate",
            "silu",
            "none, relu, gelu-erf, gelu-tanh, silu or sigmoid.",
        ),
        OpParam::text(
            "weights",
            "concatenated",
            "Layout of both weights in one tensor: concatenated, the gate rows first, or interleaved, alternating blocks of 8 rows.",
        ),
    ];
    Op {
        signature: Signature {
            name: "dual_gemm",
            about: "y = gate(x · w_gateᵀ) ∘ (x · w_upᵀ), accumulated in f32 and rounded once",
            params: [X]
                .into_iter()
                .chain(weights)
                .chain(SCALES)
                .chain([OUT_DTYPE, BATCH_INVARIANT])
                .collect(),
            outputs: output(&[
                OutputDim::Leading("x"),
                OutputDim::HalfUnless("w_gate", 0, "w_up"),
            ]),
            optional_output: None,
            example: DUAL_GEMM_EXAMPLE,
        },
        problem: |call| {
            let keyword = call.text("weights")?;
            let weights = match (call.optional("w_up"), WeightLayout::read(keyword)) {
                (Some(_), Ok(_)) => WeightLayout::Separate,
                (None, Ok(packed @ (WeightLayout::Concatenated | WeightLayout::Interleaved))) => {
                    packed
                }
                _ => {
                    return call.reject(format!(
                        "weights is {keyword:?}; without w_up it must be concatenated or interleaved"
                    ));
                }
            };
            let problem = problem_of_call(call, activation(call, "gate")?, weights)?;
            Ok((problem, choice(call)))
        },
        args: |p| {
            let (n, k) = (u64::from(p.n), u64::from(p.k));
            let dense = |rows: u64| TensorView::dense(p.dtype.b_dtype(), &[rows, k], 0);
            let [gate, up, weights] = match p.weights {
                WeightLayout::Separate => [
                    dense(n).into(),
                    dense(n).into(),
                    WeightLayout::Concatenated.keyword().into(),
                ],
                packed => [dense(2 * n).into(), ArgValue::None, packed.keyword().into()],
            };
            let mut all = vec![x_arg(p), gate, up, p.gate.keyword().into(), weights];
            all.extend(trailing_args(p));
            all
        },
    }
}

fn x_arg(p: &Problem) -> ArgValue {
    TensorView::dense(p.dtype.a_dtype(), &[p.m.into(), p.k.into()], 0).into()
}

/// Returns the trailing arguments: scales, `out_dtype` and `batch_invariant`.
fn trailing_args(p: &Problem) -> Vec<ArgValue> {
    let scale = || match p.scales {
        true => TensorView::dense(DType::F32, &[1], 0).into(),
        false => ArgValue::None,
    };
    vec![
        scale(),
        scale(),
        scale(),
        ArgValue::None,
        ArgValue::Flag(false),
    ]
}

/// Returns the problem of a call.
fn problem_of_call(
    call: &OpArgs<'_>,
    gate: Activation,
    weights: WeightLayout,
) -> Result<Problem, FamilyError> {
    let (x, w) = (call.tensor("x")?, call.tensor("w_gate")?);
    let dtype = operand_type(call, ["x", "w_gate"], x, w)?;
    let [weight_rows, _] = w.shape[..] else {
        return call.reject(format!(
            "w_gate has {} dimensions; 2 are needed, [N, K]",
            w.shape.len()
        ));
    };
    let up = call.optional("w_up").unwrap_or(w);
    if (up.dtype, &up.shape) != (w.dtype, &w.shape) {
        return call.reject(format!("w_up is {up}; it must match w_gate, {w}"));
    }
    let n = match weights {
        WeightLayout::Separate => weight_rows,
        _ if weight_rows % 2 == 0 => weight_rows / 2,
        _ => {
            return call.reject(format!(
                "the packed weights have {weight_rows} rows; gate and up need an even number"
            ));
        }
    };
    if weights == WeightLayout::Interleaved && !n.is_multiple_of(BLOCK_ROWS as u64) {
        return call.reject(format!(
            "N is {n}; interleaved weights need a multiple of {BLOCK_ROWS} (blocks of {BLOCK_ROWS} rows)"
        ));
    }
    let weights_view = |name: &str, w: &TensorView| {
        let w = MatrixView::new(call, name, w, VectorAs::Row)?;
        match w.has_dense_rows() {
            true => w.operand(call, name),
            false => call.unsupported_layout(format!(
                "the last dimension of {name} has stride {}; it must be contiguous\nhelp: make it contiguous",
                w.inner_stride()
            )),
        }
    };
    let (gate_view, up_view) = (weights_view("w_gate", w)?, weights_view("w_up", up)?);
    let p = gemm::Problem {
        out: Some(out_type(call)?),
        activation: gate,
        up: Some(weights),
        ..gemm::Problem::new(0, 0, 0, dtype)
    };
    let p = layer_problem(call, ["x", "w_gate"], [x, w], p)?;
    if p.a_layout != ALayout::Mk || p.a_inner_stride.is_some_and(|s| s != 1) || p.batch.is_some() {
        return call.unsupported_layout(format!(
            "x has strides {:?} over shape {:?}; its last dimension must be contiguous, and its rows must have \
             one common stride\nhelp: make it contiguous",
            x.strides, x.shape
        ));
    }
    let p = gemm::Problem {
        n: extent_u32(call, "N", n)?,
        // A weight that is not dense was rejected.
        layout: OperandLayout::Nk,
        b_stride: Some(gate_view.stride),
        up_stride: Some(up_view.stride),
        b_align: Some(gate_view.align.min(up_view.align)),
        ..p
    };
    let p = with_scales(call, &["scale_x", "scale_gate", "scale_up"], p)?;
    let p = canonical(p);
    Ok(Problem {
        m: p.m,
        n: p.n,
        k: p.k,
        dtype,
        out: p.out,
        gate,
        weights,
        scales: p.scales,
        a_stride: p.a_stride,
        weight_stride: p.b_stride,
        up_stride: p.up_stride,
        c_stride: p.c_stride,
        a_align: p.a_align,
        weight_align: p.b_align,
        c_align: p.c_align,
    })
}

const SWIGLU_EXAMPLE: &str = "\
>>> x, w = np.ones((1, 8), np.float16), np.eye(8, dtype=np.float16)
>>> warpline.swiglu(x, 20 * w, np.arange(8, dtype=np.float16)[:, None] * w)
array([[  0.,  20.,  40.,  60.,  80., 100., 120., 140.]], dtype=float16)";

const DUAL_GEMM_EXAMPLE: &str = "\
>>> x, w = np.ones((1, 8), np.float16), np.eye(8, dtype=np.float16)
>>> warpline.dual_gemm(x, np.concatenate([w, 3 * w]), gate=\"relu\")
array([[3., 3., 3., 3., 3., 3., 3., 3.]], dtype=float16)";
