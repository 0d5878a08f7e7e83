//! The op: from a call to a problem.

use super::config::Choice;
use super::problem::Problem;
use crate::gemm;
use crate::gemm::call::{INVARIANT, TYPE, activation, plain, rows, side};
use crate::gemm::{Activation, Factor};
use crate::nvfp4::{BLOCK, ScaleLayout};
use crate::weights::Weights;
use warpline_family::Op;
use warpline_family::error::FamilyError;
use warpline_family::family::Family;
use warpline_family::field::FieldValue;
use warpline_family::float::Float;
use warpline_family::op::{Call, Output, Param, Side, Signature, TensorView, Value};
use warpline_ir::DType;

/// The parameters that are tensors, and the inputs of a plan that they are.
const TENSORS: [(&str, &str); 9] = [
    ("x", "a"),
    ("w_gate", "gate"),
    ("gate_scales", "gate_scales"),
    ("w_up", "up"),
    ("up_scales", "up_scales"),
    ("x_scales", "a_scales"),
    ("scale_x", "scale_a"),
    ("scale_gate", "scale_gate"),
    ("scale_up", "scale_up"),
];

/// `nvfp4_dual_gemm(x, w_gate, gate_scales, w_up, up_scales, x_scales)`.
pub(super) fn op<F: Family<Problem = Problem, Choice = Choice>>() -> Op<F> {
    let params = vec![
        Param::tensor(
            "x",
            "[…, K/2] in u8, two codes of e2m1 in each byte, the first in the low half; or […, K] in f16 or bf16.",
        ),
        Param::tensor(
            "w_gate",
            "[N, K/2], codes. Both weights, [2N, K/2], the gate's rows first, where w_up is not given.",
        ),
        Param::tensor(
            "gate_scales",
            "e4m3, one for every 16 along K: [N, K/16], or in blocks as scale_layout says.",
        ),
        Param::optional("w_up", "[N, K/2], codes."),
        Param::optional("up_scales", "As gate_scales, for w_up."),
        Param::optional("x_scales", "The same for x, where x is codes."),
        Param::optional("scale_x", "A number in memory, f32, that multiplies x."),
        Param::optional("scale_gate", "The same for the weight of the gate."),
        Param::optional("scale_up", "The same for the other weight."),
        Param::text(
            "gate",
            "silu",
            "none, relu, gelu-erf, gelu-tanh, silu or sigmoid.",
        ),
        Param::text(
            "scale_layout",
            "plain",
            "How scales lie: plain, [rows, K/16], or block, tiles of 128 rows by 4 as cuBLAS takes them.",
        ),
        TYPE,
        INVARIANT,
    ];
    Op {
        signature: Signature {
            name: "nvfp4_dual_gemm",
            about: "y = gate(x · w_gateᵀ) ∘ (x · w_upᵀ) with weights in NVFP4, and x as well or in 16 bits",
            params,
            outputs: vec![Output {
                name: "y",
                sides: &[Side::Leading("x"), Side::Shared("w_gate", 0, "w_up")],
                dtype_of: "x",
                dtype_by: Some("out_dtype"),
            }],
            example: EXAMPLE,
        },
        problem: |call| {
            let choice = Choice {
                split_k: call.flag("batch_invariant").then_some(1),
                ..Choice::default()
            };
            Ok((asked(call)?, choice))
        },
        args: |p| {
            let given = p.specs();
            let tensor = |(_, input): (&str, &str)| {
                let spec = given.iter().find(|spec| spec.name == input);
                spec.map_or(Value::None, |spec| {
                    let shape: Vec<u64> = spec.shape.iter().map(|&n| n as u64).collect();
                    TensorView::dense(spec.dtype, &shape, 0).into()
                })
            };
            let mut all: Vec<Value> = TENSORS.into_iter().map(tensor).collect();
            all.extend([
                p.gate.word().into(),
                p.scale_layout.word().into(),
                Value::None,
                Value::Flag(false),
            ]);
            all
        },
    }
}

/// The problem that a call asks.
fn asked(call: &Call<'_>) -> Result<Problem, FamilyError> {
    let (x, w) = (call.tensor("x")?, call.tensor("w_gate")?);
    let word = call.text("scale_layout")?;
    let Ok(scale_layout) = ScaleLayout::read(word) else {
        return call.refuse(format!("scale_layout is plain or block, not {word:?}"));
    };
    let [all, half] = w.shape[..] else {
        return call.refuse(format!(
            "w_gate has 2 dimensions, [N, K/2], not {}",
            w.shape.len()
        ));
    };
    let (weights, n) = match call.optional("w_up") {
        Some(up) if (up.dtype, &up.shape) != (w.dtype, &w.shape) => {
            return call.refuse(format!("w_up is as w_gate, {w}, not {up}"));
        }
        Some(_) => (Weights::Apart, all),
        None if all % 2 == 0 => (Weights::Concatenated, all / 2),
        None => {
            return call.refuse(format!(
                "one tensor of weights has as many rows for the gate as for the other, not {all} in all"
            ));
        }
    };
    let (n, k) = (side(call, "N", n)?, side(call, "K", 2 * half)?);
    let activations = match x.dtype {
        DType::U8 => None,
        DType::F16 | DType::Bf16 => Float::of(x.dtype),
        other => return call.refuse(format!("x is u8 (codes), f16 or bf16, not {other}")),
    };
    let last = if activations.is_some() {
        2 * half
    } else {
        half
    };
    if x.shape.last() != Some(&last) {
        return call.refuse(format!(
            "beside w_gate of {half} bytes a row, the last dimension of x in {} is {last}, not {:?}",
            x.dtype,
            x.shape.last()
        ));
    }
    let p = Problem {
        scale_layout,
        activations,
        gate: activation(call, "gate")?,
        weights,
        scales: TENSORS[6..]
            .iter()
            .any(|(name, _)| call.optional(name).is_some()),
        ..Problem::new(0, n, k)
    };
    let p = placed(call, x, p)?;
    together(call, &p)?;
    Ok(p)
}

/// How many rows of x there are, and how they lie.
fn placed(call: &Call<'_>, x: &TensorView, p: Problem) -> Result<Problem, FamilyError> {
    if x.elements() > 0 && x.strides.last() != Some(&1) && x.shape.last() != Some(&1) {
        return call.refuse(format!(
            "the last dimension of x is dense, and its stride here is {:?}: make it contiguous",
            x.strides.last()
        ));
    }
    let product = gemm::Problem {
        out: Float::of(call.outs[0].dtype),
        activation: Activation::None,
        ..gemm::Problem::new(0, p.n, p.k, factor(&p))
    };
    let product = rows(call, "x", x, product)?;
    // Of codes, two of K are a byte.
    let a_stride = match p.activations {
        Some(_) => product.a_stride,
        None => product.a_stride.map(|bytes| 2 * bytes),
    };
    let product = plain(gemm::Problem {
        a_stride,
        ..product
    });
    Ok(Problem {
        m: product.m,
        out: product.out,
        a_stride: product.a_stride,
        c_stride: product.c_stride,
        ..p
    })
}

/// What the sums of a product with such operands round to unless a call says otherwise.
fn factor(p: &Problem) -> Factor {
    match p.activations {
        Some(Float::Bf16) => Factor::Bf16,
        _ => Factor::F16,
    }
}

/// Refuses tensors that the problem does not have, or has otherwise.
fn together(call: &Call<'_>, p: &Problem) -> Result<(), FamilyError> {
    if p.k == 0 || !(p.k as usize).is_multiple_of(BLOCK) {
        // The problem's own sentence.
        return Ok(());
    }
    let wanted = p.specs();
    for (name, input) in TENSORS {
        let spec = wanted.iter().find(|spec| spec.name == input);
        let (spec, view) = match (spec, call.optional(name)) {
            (None, None) => continue,
            (Some(spec), Some(view)) => (spec, view),
            (Some(_), None) => {
                let why = match p.tensor_scales().contains(&input) {
                    true => "scales of whole tensors are given together or not at all",
                    false => "it is needed here",
                };
                return call.refuse(format!("{name} was not given, and {why}"));
            }
            (None, Some(_)) => {
                return call.refuse(format!(
                    "{name} goes with {}, and was given without",
                    match name {
                        "up_scales" => "w_up",
                        _ => "an x of codes",
                    }
                ));
            }
        };
        if name == "x" {
            continue;
        }
        let shape: Vec<u64> = spec.shape.iter().map(|&n| n as u64).collect();
        let dense = TensorView::dense(view.dtype, &view.shape, 0);
        // Blocks of scales are counted: people have them in several shapes.
        let free = p.scale_layout == ScaleLayout::Block && spec.dtype == DType::E4m3
            || spec.dtype == DType::F32;
        let same = match free {
            true => view.elements() == dense_elements(&shape),
            false => view.shape == shape,
        };
        if view.dtype != spec.dtype || !same {
            return call.refuse(format!(
                "{name} is {} {shape:?} here (scale_layout {}), not {view}",
                spec.dtype,
                match p.scale_layout {
                    ScaleLayout::Plain => "plain",
                    ScaleLayout::Block => "block",
                }
            ));
        }
        let gaps = |i: usize| view.shape[i] > 1 && view.strides[i] != dense.strides[i];
        if (0..view.shape.len()).any(gaps) {
            return call.refuse(format!(
                "{name} lies without gaps, and its strides are {:?}: make it contiguous",
                view.strides
            ));
        }
    }
    Ok(())
}

fn dense_elements(shape: &[u64]) -> u64 {
    shape.iter().product()
}

const EXAMPLE: &str = "\
>>> w = warpline.nvfp4_quantize(np.full((8, 16), 0.75, np.float32))
>>> x = np.ones((1, 16), np.float16)
>>> warpline.nvfp4_dual_gemm(x, w.codes, w.scales, w.codes, w.scales, gate=\"relu\")
array([[144., 144., 144., 144., 144., 144., 144., 144.]], dtype=float16)";
