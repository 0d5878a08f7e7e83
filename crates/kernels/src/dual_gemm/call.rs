//! The ops: from a call to a problem.

use super::problem::Problem;
use crate::gemm;
use crate::gemm::call::{
    INVARIANT, TYPE, activation, choice, extents, factor, lies, plain, rows, scaled,
};
use crate::gemm::{Activation, Choice, Layout};
use crate::weights::Weights;
use warpline_family::Op;
use warpline_family::error::FamilyError;
use warpline_family::family::Family;
use warpline_family::field::FieldValue;
use warpline_family::op::{Call, Output, Param, Side, Signature, TensorView, Value};
use warpline_ir::DType;

const X: Param = Param::tensor(
    "x",
    "[…, K] in bf16, f16, e4m3 or e5m2; K is dense in memory.",
);
const SCALES: [Param; 3] = [
    Param::optional("scale_x", "A number in memory, f32, that multiplies x."),
    Param::optional("scale_gate", "The same for the weight of the gate."),
    Param::optional("scale_up", "The same for the other weight."),
];

fn output(sides: &'static [Side]) -> Vec<Output> {
    vec![Output {
        name: "y",
        sides,
        dtype_of: "x",
        dtype_by: Some("out_dtype"),
    }]
}

/// `swiglu(x, w_gate, w_up)`.
pub(super) fn swiglu<F: Family<Problem = Problem, Choice = Choice>>() -> Op<F> {
    let weights = [
        Param::tensor("w_gate", "[N, K], of the type of x; e4m3 beside e5m2."),
        Param::tensor("w_up", "[N, K], of the same type."),
    ];
    Op {
        signature: Signature {
            name: "swiglu",
            about: "y = silu(x · w_gateᵀ) ∘ (x · w_upᵀ), summed in f32 and rounded once",
            params: [X]
                .into_iter()
                .chain(weights)
                .chain(SCALES)
                .chain([TYPE, INVARIANT])
                .collect(),
            outputs: output(&[Side::Leading("x"), Side::At("w_gate", 0)]),
            example: SWIGLU,
        },
        problem: |call| {
            let problem = asked(call, Activation::Silu, Weights::Apart)?;
            Ok((problem, choice(call)))
        },
        args: |p| {
            let weight = TensorView::dense(p.dtype.other(), &[p.n.into(), p.k.into()], 0);
            let mut all = vec![x(p), weight.clone().into(), weight.into()];
            all.extend(ends(p));
            all
        },
    }
}

/// `dual_gemm(x, w_gate, w_up, gate, weights)`.
pub(super) fn dual_gemm<F: Family<Problem = Problem, Choice = Choice>>() -> Op<F> {
    let weights = [
        Param::tensor(
            "w_gate",
            "[N, K], of the type of x; e4m3 beside e5m2. Both weights, [2N, K], where w_up is not given.",
        ),
        Param::optional("w_up", "[N, K], of the same type."),
        Param::text(
            "gate",
            "silu",
            "none, relu, gelu-erf, gelu-tanh, silu or sigmoid.",
        ),
        Param::text(
            "weights",
            "concatenated",
            "How both weights lie in one tensor: concatenated, the gate's rows first, or interleaved, 8 rows of each in turn.",
        ),
    ];
    Op {
        signature: Signature {
            name: "dual_gemm",
            about: "y = gate(x · w_gateᵀ) ∘ (x · w_upᵀ), summed in f32 and rounded once",
            params: [X]
                .into_iter()
                .chain(weights)
                .chain(SCALES)
                .chain([TYPE, INVARIANT])
                .collect(),
            outputs: output(&[Side::Leading("x"), Side::Shared("w_gate", 0, "w_up")]),
            example: DUAL,
        },
        problem: |call| {
            let word = call.text("weights")?;
            let weights = match (call.optional("w_up"), Weights::read(word)) {
                (Some(_), Ok(_)) => Weights::Apart,
                (None, Ok(one @ (Weights::Concatenated | Weights::Interleaved))) => one,
                _ => {
                    return call.refuse(format!(
                        "weights is concatenated or interleaved, of one tensor, not {word:?}"
                    ));
                }
            };
            let problem = asked(call, activation(call, "gate")?, weights)?;
            Ok((problem, choice(call)))
        },
        args: |p| {
            let (n, k) = (u64::from(p.n), u64::from(p.k));
            let dense = |rows: u64| TensorView::dense(p.dtype.other(), &[rows, k], 0);
            let [gate, up, weights] = match p.weights {
                Weights::Apart => [
                    dense(n).into(),
                    dense(n).into(),
                    Weights::Concatenated.word().into(),
                ],
                one => [dense(2 * n).into(), Value::None, one.word().into()],
            };
            let mut all = vec![x(p), gate, up, p.gate.word().into(), weights];
            all.extend(ends(p));
            all
        },
    }
}

fn x(p: &Problem) -> Value {
    TensorView::dense(p.dtype.dtype(), &[p.m.into(), p.k.into()], 0).into()
}

/// The scales, the type of what comes out, and whether sums are never split.
fn ends(p: &Problem) -> Vec<Value> {
    let scale = || match p.scales {
        true => TensorView::dense(DType::F32, &[1], 0).into(),
        false => Value::None,
    };
    vec![scale(), scale(), scale(), Value::None, Value::Flag(false)]
}

/// The problem that a call asks.
fn asked(call: &Call<'_>, gate: Activation, weights: Weights) -> Result<Problem, FamilyError> {
    let (x, w) = (call.tensor("x")?, call.tensor("w_gate")?);
    let dtype = factor(call, ["x", "w_gate"], x, w)?;
    let [all, k] = w.shape[..] else {
        return call.refuse(format!(
            "w_gate has 2 dimensions, [N, K], not {}",
            w.shape.len()
        ));
    };
    let up = call.optional("w_up").unwrap_or(w);
    if (up.dtype, &up.shape) != (w.dtype, &w.shape) {
        return call.refuse(format!("w_up is as w_gate, {w}, not {up}"));
    }
    let n = match weights {
        Weights::Apart => all,
        _ if all % 2 == 0 => all / 2,
        _ => {
            return call.refuse(format!(
                "one tensor of weights has as many rows for the gate as for the other, not {all} in all"
            ));
        }
    };
    let strides = [("w_gate", w), ("w_up", up)].map(|(name, w)| {
        let mut turned = w.clone();
        turned.strides.reverse();
        match lies(call, name, &turned, k, all)? {
            (Layout::Nk, stride) => Ok(stride),
            (Layout::Kn, _) => call.refuse(format!(
                "the rows of {name} are dense, and its strides are {:?}: make it contiguous",
                w.strides
            )),
        }
    });
    let [b_stride, up_stride] = strides;
    let p = gemm::Problem {
        activation: gate,
        up: Some(weights),
        b_stride: Some(b_stride?),
        up_stride: Some(up_stride?),
        ..extents(call, ["x", "w_gate"], x, n, k, dtype)?
    };
    let p = scaled(call, &["scale_x", "scale_gate", "scale_up"], p)?;
    let p = plain(rows(call, "x", x, p)?);
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
    })
}

const SWIGLU: &str = "\
>>> x, w = np.ones((1, 8), np.float16), np.eye(8, dtype=np.float16)
>>> warpline.swiglu(x, 20 * w, np.arange(8, dtype=np.float16)[:, None] * w)
array([[  0.,  20.,  40.,  60.,  80., 100., 120., 140.]], dtype=float16)";

const DUAL: &str = "\
>>> x, w = np.ones((1, 8), np.float16), np.eye(8, dtype=np.float16)
>>> warpline.dual_gemm(x, np.concatenate([w, 3 * w]), gate=\"relu\")
array([[3., 3., 3., 3., 3., 3., 3., 3.]], dtype=float16)";
