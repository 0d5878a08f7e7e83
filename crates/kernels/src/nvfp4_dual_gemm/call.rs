//! The op: from call arguments to a problem.

use super::config::Choice;
use super::problem::{Problem, scale_spec};
use crate::batch_invariant::BATCH_INVARIANT;
use crate::gemm;
use crate::gemm::call::{OUT_DTYPE, activation, canonical, extent_u32, with_rows};
use crate::gemm::{Activation, OperandType};
use crate::nvfp4::{BLOCK, ScaleLayout};
use crate::weights::WeightLayout;
use warpline_family::Op;
use warpline_family::error::FamilyError;
use warpline_family::family::Family;
use warpline_family::field::FieldValue;
use warpline_family::float::FloatType;
use warpline_family::op::{ArgValue, OpArgs, OpOutput, OpParam, OutputDim, Signature, TensorView};
use warpline_family::tensor::TensorSpec;
use warpline_ir::DType;

/// The tensor parameters of the op, and the plan inputs that they bind.
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

/// The layout of the scales.
pub(crate) const SCALE_LAYOUT: OpParam = OpParam::text(
    "scale_layout",
    "auto",
    "Layout of the scales: block, cuBLAS's tiles of 128 rows by 4 scales, the fastest; plain, [rows, K/16]; \
     or auto, by their shape.",
);

/// `nvfp4_dual_gemm(x, w_gate, gate_scales, w_up, up_scales, x_scales)`.
pub(super) fn op<F: Family<Problem = Problem, Choice = Choice>>() -> Op<F> {
    let params = vec![
        OpParam::tensor(
            "x",
            "[…, K/2] in u8, two e2m1 codes per byte, the first in the low half; or […, K] in f16 or bf16.",
        ),
        OpParam::tensor(
            "w_gate",
            "[N, K/2], codes. Without w_up: both weights, [2N, K/2], the gate rows first.",
        ),
        OpParam::tensor(
            "gate_scales",
            "[N, K/16] in e4m3, one scale per 16 elements of K; or in blocks (scale_layout).",
        ),
        OpParam::optional("w_up", "[N, K/2], codes."),
        OpParam::optional("up_scales", "Scales of w_up, as gate_scales."),
        OpParam::optional("x_scales", "Scales of x if x is codes, as gate_scales."),
        OpParam::optional("scale_x", "Tensor scale of x: one f32 element."),
        OpParam::optional(
            "scale_gate",
            "Tensor scale of the gate weight: one f32 element.",
        ),
        OpParam::optional(
            "scale_up",
            "Tensor scale of the up weight: one f32 element.",
        ),
        OpParam::text(
            "gate",
            "silu",
            "none, relu, gelu-erf, gelu-tanh, silu or sigmoid.",
        ),
        SCALE_LAYOUT,
        OUT_DTYPE,
        BATCH_INVARIANT,
    ];
    Op {
        signature: Signature {
            name: "nvfp4_dual_gemm",
            about: "y = gate(x · w_gateᵀ) ∘ (x · w_upᵀ) with weights in NVFP4 and x in NVFP4, f16 or bf16",
            params,
            outputs: vec![OpOutput {
                name: "y",
                dims: &[
                    OutputDim::Leading("x"),
                    OutputDim::HalfUnless("w_gate", 0, "w_up"),
                ],
                dtype_of: "x",
                dtype_override: Some("out_dtype"),
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
            all.extend([
                p.gate.keyword().into(),
                p.scale_layout.keyword().into(),
                ArgValue::None,
                ArgValue::Flag(false),
            ]);
            all
        },
    }
}

/// Returns the problem of a call.
fn problem_of_call(call: &OpArgs<'_>) -> Result<Problem, FamilyError> {
    let (x, w) = (call.tensor("x")?, call.tensor("w_gate")?);
    let [rows, bytes_per_row] = w.shape[..] else {
        return call.reject(format!(
            "w_gate has {} dimensions; 2 are needed, [N, K/2]",
            w.shape.len()
        ));
    };
    let (weights, n) = match call.optional("w_up") {
        Some(up) if (up.dtype, &up.shape) != (w.dtype, &w.shape) => {
            return call.reject(format!("w_up is {up}; it must match w_gate, {w}"));
        }
        Some(_) => (WeightLayout::Separate, rows),
        None if rows % 2 == 0 => (WeightLayout::Concatenated, rows / 2),
        None => {
            return call.reject(format!(
                "the packed weights have {rows} rows; gate and up need an even number"
            ));
        }
    };
    let (n, k) = (
        extent_u32(call, "N", n)?,
        extent_u32(call, "K", 2 * bytes_per_row)?,
    );
    let activations = match x.dtype {
        DType::U8 => None,
        DType::F16 | DType::Bf16 => FloatType::from_dtype(x.dtype),
        other => {
            let text = format!("x is {other}; it must be u8 (codes), f16 or bf16");
            return match other {
                DType::F32 => call.unsupported(text),
                _ => call.reject(text),
            };
        }
    };
    let row_len = if activations.is_some() {
        2 * bytes_per_row
    } else {
        bytes_per_row
    };
    if x.shape.last() != Some(&row_len) {
        return call.reject(format!(
            "the last dimension of x in {} is {:?}; with w_gate rows of {bytes_per_row} bytes it must be {row_len}",
            x.dtype,
            x.shape.last()
        ));
    }
    check_k(call, k)?;
    let p = Problem {
        scale_layout: scale_layout(call, "gate_scales", rows, k)?,
        activations,
        gate: activation(call, "gate")?,
        weights,
        scales: TENSORS[6..]
            .iter()
            .any(|(name, _)| call.optional(name).is_some()),
        ..Problem::new(0, n, k)
    };
    let p = with_x(call, x, p)?;
    check_tensors(call, &p)?;
    Ok(p)
}

/// Returns the layout of the scales of `rows` rows: the one of the call, or by their shape.
pub(crate) fn scale_layout(
    call: &OpArgs<'_>,
    name: &str,
    rows: u64,
    k: u32,
) -> Result<ScaleLayout, FamilyError> {
    let word = call.text("scale_layout")?;
    if word != "auto" {
        return match ScaleLayout::read(word) {
            Ok(layout) => Ok(layout),
            Err(_) => call.reject(format!(
                "scale_layout is {word:?}; it must be block, plain or auto"
            )),
        };
    }
    let (scales, rows) = (call.tensor(name)?, rows as usize);
    let shape_in = |layout| dims(&scale_spec("", layout, rows, k as usize));
    let layouts = [ScaleLayout::Block, ScaleLayout::Plain];
    match layouts
        .into_iter()
        .find(|&layout| scales.shape == shape_in(layout))
    {
        Some(layout) => Ok(layout),
        None => call.reject(format!(
            "{name} is {scales}; scales in blocks have the shape {:?}, plain scales {:?}\n\
             help: pass scale_layout=\"block\" if the scales are in blocks in another shape",
            shape_in(ScaleLayout::Block),
            shape_in(ScaleLayout::Plain)
        )),
    }
}

/// Rejects a K that is not a positive multiple of the block.
pub(crate) fn check_k(call: &OpArgs<'_>, k: u32) -> Result<(), FamilyError> {
    if k == 0 || !(k as usize).is_multiple_of(BLOCK) {
        return call.reject(format!(
            "K is {k}; nvfp4 needs a positive multiple of {BLOCK} (one scale per {BLOCK} elements)"
        ));
    }
    Ok(())
}

/// Adds the rows of x to the problem: M and the row strides.
fn with_x(call: &OpArgs<'_>, x: &TensorView, p: Problem) -> Result<Problem, FamilyError> {
    let gemm = gemm::Problem {
        out: FloatType::from_dtype(call.outs[0].dtype),
        activation: Activation::None,
        ..gemm::Problem::new(0, p.n, p.k, operand_type(&p))
    };
    let gemm = row_strides(call, x, gemm)?;
    Ok(Problem {
        m: gemm.m,
        out: gemm.out,
        a_stride: gemm.a_stride,
        c_stride: gemm.c_stride,
        ..p
    })
}

/// Adds M and the row strides of x and of the output to the GEMM of the decoded operands.
pub(crate) fn row_strides(
    call: &OpArgs<'_>,
    x: &TensorView,
    gemm: gemm::Problem,
) -> Result<gemm::Problem, FamilyError> {
    if x.elements() > 0 && x.strides.last() != Some(&1) && x.shape.last() != Some(&1) {
        return call.unsupported_layout(format!(
            "the last dimension of x has stride {:?}; it must be contiguous\nhelp: make it contiguous",
            x.strides.last()
        ));
    }
    let gemm = with_rows(call, "x", x, gemm)?;
    // A byte of codes holds two elements of K.
    let a_stride = match x.dtype {
        DType::U8 => gemm.a_stride.map(|bytes| 2 * bytes),
        _ => gemm.a_stride,
    };
    Ok(canonical(gemm::Problem { a_stride, ..gemm }))
}

/// Returns the operand type of the 16-bit GEMM, which is also the default output type.
fn operand_type(p: &Problem) -> OperandType {
    match p.activations {
        Some(FloatType::Bf16) => OperandType::Bf16,
        _ => OperandType::F16,
    }
}

/// Rejects tensors that TMA cannot address.
pub(crate) fn check_aligned(call: &OpArgs<'_>) -> Result<(), FamilyError> {
    let mut views = call.inputs().chain(call.outs);
    match views.find(|v| !v.is_16_byte_aligned()) {
        Some(view) => call.unsupported_layout(format!(
            "{view} starts at address {:#x}; TMA needs a multiple of 16\nhelp: clone the tensor",
            view.address
        )),
        None => Ok(()),
    }
}

/// Rejects tensors that the problem does not have, and tensors of another type, shape or layout.
fn check_tensors(call: &OpArgs<'_>, p: &Problem) -> Result<(), FamilyError> {
    check_aligned(call)?;
    let rules = TensorRules {
        specs: &p.specs(),
        tensor_scales: p.tensor_scales(),
        scale_layout: p.scale_layout,
    };
    rules.check(call, &TENSORS)
}

/// The rules for the tensors of a call.
pub(crate) struct TensorRules<'a> {
    /// Names, types and shapes of the plan's inputs.
    pub(crate) specs: &'a [TensorSpec],
    /// The inputs that are tensor scales.
    pub(crate) tensor_scales: &'a [&'static str],
    /// The layout of the scales.
    pub(crate) scale_layout: ScaleLayout,
}

impl TensorRules<'_> {
    /// Checks each parameter of `tensors` against the plan input that it binds. The first is x, whose
    /// rows are checked elsewhere.
    pub(crate) fn check(
        &self,
        call: &OpArgs<'_>,
        tensors: &[(&str, &str)],
    ) -> Result<(), FamilyError> {
        for &(name, input) in tensors {
            let spec = self.specs.iter().find(|spec| spec.name == input);
            let (spec, view) = match (spec, call.optional(name)) {
                (None, None) => continue,
                (Some(spec), Some(view)) => (spec, view),
                (Some(_), None) => {
                    let why = match self.tensor_scales.contains(&input) {
                        true => "pass all tensor scales or none",
                        false => "this call needs it",
                    };
                    return call.reject(format!("{name} is missing; {why}"));
                }
                (None, Some(_)) => {
                    return call.reject(format!(
                        "{name} is set without {}; pass both or neither",
                        match name {
                            "up_scales" => "w_up",
                            _ => "an x in codes (u8)",
                        }
                    ));
                }
            };
            if name != "x" {
                self.check_tensor(call, name, spec, view)?;
            }
        }
        Ok(())
    }

    /// Checks type, shape and strides of a tensor other than x.
    fn check_tensor(
        &self,
        call: &OpArgs<'_>,
        name: &str,
        spec: &TensorSpec,
        view: &TensorView,
    ) -> Result<(), FamilyError> {
        let shape = dims(spec);
        let dense = TensorView::dense(view.dtype, &view.shape, 0);
        // Callers store block scales in several shapes, so only the number of elements is checked.
        let has_any_shape = self.scale_layout == ScaleLayout::Block && spec.dtype == DType::E4m3
            || spec.dtype == DType::F32;
        let shape_matches = match has_any_shape {
            true => view.elements() == dense_elements(&shape),
            false => view.shape == shape,
        };
        if view.dtype != spec.dtype || !shape_matches {
            let layout = match spec.dtype {
                DType::E4m3 => format!(" (scale_layout {})", self.scale_layout.keyword()),
                _ => String::new(),
            };
            return call.reject(format!(
                "{name} is {view}; it must be {} {shape:?}{layout}",
                spec.dtype
            ));
        }
        let is_strided = |i: usize| view.shape[i] > 1 && view.strides[i] != dense.strides[i];
        if (0..view.shape.len()).any(is_strided) {
            return call.unsupported_layout(format!(
                "{name} has strides {:?}; it must be contiguous\nhelp: make it contiguous",
                view.strides
            ));
        }
        Ok(())
    }
}

/// Returns the dimensions of a tensor.
fn dims(spec: &TensorSpec) -> Vec<u64> {
    spec.shape.iter().map(|&n| n as u64).collect()
}

fn dense_elements(shape: &[u64]) -> u64 {
    shape.iter().product()
}

const EXAMPLE: &str = "\
>>> w = warpline.nvfp4_quantize(np.full((8, 16), 0.75, np.float32))
>>> x = np.ones((1, 16), np.float16)
>>> warpline.nvfp4_dual_gemm(x, w.codes, w.scales, w.codes, w.scales, gate=\"relu\")
array([[144., 144., 144., 144., 144., 144., 144., 144.]], dtype=float16)";
