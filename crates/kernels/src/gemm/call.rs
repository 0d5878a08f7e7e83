//! The ops: from call arguments to a problem.

use super::config::Choice;
use super::problem::Activation;
use super::problem::{OperandLayout, OperandType, Problem};
use super::{Gemm, Linear};
use warpline_family::Op;
use warpline_family::error::FamilyError;
use warpline_family::field::FieldValue;
use warpline_family::float::FloatType;
use warpline_family::op::layout::merge_dims;
use warpline_family::op::{ArgValue, OpArgs, OpOutput, OpParam, OutputDim, Signature, TensorView};
use warpline_ir::DType;

pub(crate) const OUT_DTYPE: OpParam = OpParam::element_type(
    "out_dtype",
    "bf16, f16 or f32; default: the type of the first operand, bf16 for fp8.",
);

pub(crate) const BATCH_INVARIANT: OpParam = OpParam::flag(
    "batch_invariant",
    "The bits of a row do not depend on the other rows or on their number: K is never split.",
);

/// Returns the part of the config that a call fixes.
pub(crate) fn choice(call: &OpArgs<'_>) -> Choice {
    let batch_invariant = call.flag("batch_invariant");
    Choice {
        split_k: batch_invariant.then_some(1),
        stream_k: batch_invariant.then_some(false),
        ..Choice::default()
    }
}

/// `matmul(a, b)`.
pub(super) fn matmul() -> Op<Gemm> {
    Op {
        signature: Signature {
            name: "matmul",
            about: "c = a · b, accumulated in f32",
            params: vec![
                OpParam::tensor(
                    "a",
                    "[…, M, K] in bf16, f16, e4m3 or e5m2; contiguous along K.",
                ),
                OpParam::tensor(
                    "b",
                    "[K, N], or [B, K, N] with an a of [B, M, K]; contiguous along K (the transpose of a weight), \
                     or along N for 16-bit types. Same type as a; e4m3 if a is e5m2.",
                ),
                OpParam::optional("scale_a", "Scale of a: one f32 element."),
                OpParam::optional("scale_b", "Scale of b: one f32 element."),
                OUT_DTYPE,
                BATCH_INVARIANT,
            ],
            outputs: vec![OpOutput {
                name: "c",
                dims: &[OutputDim::Leading("a"), OutputDim::Last("b")],
                dtype_of: "a",
                dtype_override: Some("out_dtype"),
            }],
            example: MATMUL_EXAMPLE,
        },
        problem: |call| {
            let (a, b) = (call.tensor("a")?, call.tensor("b")?);
            let dtype = operand_type(call, ["a", "b"], a, b)?;
            let (k, n) = match b.shape[..] {
                [k, n] | [_, k, n] => (k, n),
                _ => {
                    return call.unsupported(format!(
                        "b has {} dimensions; 2 or 3 are needed",
                        b.shape.len()
                    ));
                }
            };
            let (layout, b_stride) = operand_layout(call, "b", b, k, n)?;
            let p = Problem {
                layout,
                b_stride: Some(b_stride),
                ..problem_of_extents(call, ["a", "b"], a, n, k, dtype)?
            };
            let p = with_scales(call, &["scale_a", "scale_b"], p)?;
            let p = match b.shape.len() {
                2 => with_rows(call, "a", a, p)?,
                _ => with_batch(call, a, b, p)?,
            };
            Ok((canonical(p), choice(call)))
        },
        args: |p| {
            // The call passes B as the transpose of a weight.
            let [m, n, k] = [p.m, p.n, p.k].map(u64::from);
            let mut b = TensorView::dense(p.dtype.b_dtype(), &[k, n], 0);
            if p.layout == OperandLayout::Nk {
                b.strides = vec![1, k as i64];
            }
            let [scale_a, scale_b] = scale_args(p);
            vec![
                TensorView::dense(p.dtype.a_dtype(), &[m, k], 0).into(),
                b.into(),
                scale_a,
                scale_b,
                ArgValue::None,
                ArgValue::Flag(false),
            ]
        },
    }
}

/// `linear(x, weight, bias, activation)`.
pub(super) fn linear() -> Op<Linear> {
    Op {
        signature: Signature {
            name: "linear",
            about: "y = activation(x · weightᵀ + bias) + residual, accumulated in f32 and rounded once",
            params: vec![
                OpParam::tensor(
                    "x",
                    "[…, K] in bf16, f16, e4m3 or e5m2; contiguous along K.",
                ),
                OpParam::tensor("weight", "[N, K], same type as x; e4m3 if x is e5m2."),
                OpParam::optional("bias", "[N], same type as y."),
                OpParam::text(
                    "activation",
                    "none",
                    "none, relu, gelu-erf, gelu-tanh, silu or sigmoid.",
                ),
                OpParam::optional("residual", "Same type and shape as y; added last."),
                OpParam::optional("scale_x", "Scale of x: one f32 element."),
                OpParam::optional("scale_weight", "Scale of the weight: one f32 element."),
                OUT_DTYPE,
                BATCH_INVARIANT,
            ],
            outputs: vec![OpOutput {
                name: "y",
                dims: &[OutputDim::Leading("x"), OutputDim::Index("weight", 0)],
                dtype_of: "x",
                dtype_override: Some("out_dtype"),
            }],
            example: LINEAR_EXAMPLE,
        },
        problem: |call| {
            let (x, weight) = (call.tensor("x")?, call.tensor("weight")?);
            let dtype = operand_type(call, ["x", "weight"], x, weight)?;
            let [n, k] = weight.shape[..] else {
                return call.reject(format!(
                    "weight has {} dimensions; 2 are needed, [N, K]",
                    weight.shape.len()
                ));
            };
            let mut transposed = weight.clone();
            transposed.strides.reverse();
            let (layout, b_stride) = operand_layout(call, "weight", &transposed, k, n)?;
            let activation = activation(call, "activation")?;
            let p = problem_of_extents(call, ["x", "weight"], x, n, k, dtype)?;
            let y = &call.outs[0];
            if let Some(bias) = call.optional("bias") {
                let is_valid = bias.shape == [n] && bias.dtype == y.dtype;
                if !is_valid || (n > 1 && bias.strides != [1]) {
                    let text = format!(
                        "bias is {bias} with strides {:?}; it must be {} [{n}], contiguous",
                        bias.strides, y.dtype
                    );
                    return match is_valid {
                        true => call.unsupported_layout(text),
                        false => call.reject(text),
                    };
                }
            }
            if let Some(residual) = call.optional("residual")
                && (residual.dtype, &residual.shape) != (y.dtype, &y.shape)
            {
                return call.reject(format!("residual is {residual}; it must match y, {y}"));
            }
            let p = Problem {
                layout,
                b_stride: Some(b_stride),
                bias: call.optional("bias").is_some(),
                residual: call.optional("residual").is_some(),
                activation,
                ..p
            };
            let p = with_scales(call, &["scale_x", "scale_weight"], p)?;
            Ok((canonical(with_rows(call, "x", x, p)?), choice(call)))
        },
        args: |p| {
            let [m, n, k] = [p.m, p.n, p.k].map(u64::from);
            let out = p.out().dtype();
            let optional = |is_set: bool, shape: &[u64]| match is_set {
                true => TensorView::dense(out, shape, 0).into(),
                false => ArgValue::None,
            };
            let activation = p.activation.keyword();
            let [scale_x, scale_weight] = scale_args(p);
            vec![
                TensorView::dense(p.dtype.a_dtype(), &[m, k], 0).into(),
                TensorView::dense(p.dtype.b_dtype(), &[n, k], 0).into(),
                optional(p.bias, &[n]),
                activation.into(),
                optional(p.residual, &[m, n]),
                scale_x,
                scale_weight,
                ArgValue::None,
                ArgValue::Flag(false),
            ]
        },
    }
}

const MATMUL_EXAMPLE: &str = "\
>>> a = np.eye(16, dtype=np.float16)
>>> warpline.matmul(a, 2 * a)[:2, :4]
array([[2., 0., 0., 0.],
       [0., 2., 0., 0.]], dtype=float16)";

const LINEAR_EXAMPLE: &str = "\
>>> x, weight = np.full((1, 8), 0.5, np.float16), np.eye(8, dtype=np.float16)
>>> warpline.linear(x, weight, bias=np.arange(8, dtype=np.float16) - 4, activation=\"relu\")
array([[0. , 0. , 0. , 0. , 0.5, 1.5, 2.5, 3.5]], dtype=float16)";

/// Reads the activation function that a parameter names.
pub(crate) fn activation(call: &OpArgs<'_>, name: &str) -> Result<Activation, FamilyError> {
    let keyword = call.text(name)?;
    match Activation::read(keyword) {
        Ok(activation) => Ok(activation),
        Err(_) => call.reject(format!(
            "{name} is {keyword:?}; it must be none, relu, gelu-erf, gelu-tanh, silu or sigmoid"
        )),
    }
}

/// Returns the operand type; rejects other element types and misaligned tensors.
pub(crate) fn operand_type(
    call: &OpArgs<'_>,
    names: [&str; 2],
    a: &TensorView,
    b: &TensorView,
) -> Result<OperandType, FamilyError> {
    let Some(dtype) = OperandType::from_dtype(a.dtype) else {
        let text = format!(
            "{} is {}; it must be bf16, f16, e4m3 or e5m2",
            names[0], a.dtype
        );
        return match a.dtype {
            DType::F32 => call.unsupported(text),
            _ => call.reject(text),
        };
    };
    if b.dtype != dtype.b_dtype() {
        return call.reject(format!(
            "{} is {}; with {} of {} it must be {}",
            names[1],
            b.dtype,
            names[0],
            a.dtype,
            dtype.b_dtype()
        ));
    }
    if let Some(view) = call
        .inputs()
        .chain(call.outs)
        .find(|v| !v.is_16_byte_aligned())
    {
        return call.unsupported_layout(format!(
            "{view} starts at address {:#x}; TMA needs a multiple of 16\nhelp: clone the tensor",
            view.address
        ));
    }
    Ok(dtype)
}

/// Returns the memory layout and the row stride of a [K, N] tensor.
pub(crate) fn operand_layout(
    call: &OpArgs<'_>,
    name: &str,
    b: &TensorView,
    k: u64,
    n: u64,
) -> Result<(OperandLayout, u64), FamilyError> {
    let [.., k_stride, n_stride] = b.strides[..] else {
        return call.reject(format!(
            "{name} has {} dimensions; 2 or 3 are needed",
            b.shape.len()
        ));
    };
    // A dimension of one element may have any stride.
    let is_contiguous = |stride: i64, extent: u64| stride == 1 || extent <= 1;
    let row_stride = |stride: i64, rows: u64, cols: u64| match rows {
        0 | 1 => Some(cols),
        _ => u64::try_from(stride).ok().filter(|&s| s >= cols),
    };
    let found = if b.elements() == 0 {
        Some((OperandLayout::Nk, k))
    } else if is_contiguous(k_stride, k) && row_stride(n_stride, n, k).is_some() {
        row_stride(n_stride, n, k).map(|stride| (OperandLayout::Nk, stride))
    } else if is_contiguous(n_stride, n) {
        row_stride(k_stride, k, n).map(|stride| (OperandLayout::Kn, stride))
    } else {
        None
    };
    match found {
        Some(found) => Ok(found),
        None => call.unsupported_layout(format!(
            "{name} has strides {:?}; one of its last two dimensions must be contiguous, and rows must not overlap\n\
             help: make it contiguous",
            b.strides
        )),
    }
}

/// Returns a problem with extents N and K; the caller sets M.
pub(crate) fn problem_of_extents(
    call: &OpArgs<'_>,
    names: [&str; 2],
    a: &TensorView,
    n: u64,
    k: u64,
    dtype: OperandType,
) -> Result<Problem, FamilyError> {
    let Some(&last) = a.shape.last() else {
        return call.reject(format!(
            "{} has no dimensions; at least one is needed",
            names[0]
        ));
    };
    if last != k {
        return call.reject(format!(
            "K differs: {} has {last}, {} has {k}",
            names[0], names[1]
        ));
    }
    if last > 1 && a.elements() > 0 && a.strides.last() != Some(&1) {
        return call.unsupported_layout(format!(
            "the last dimension of {} has stride {}; it must be contiguous\nhelp: make it contiguous",
            names[0],
            a.strides.last().unwrap_or(&0)
        ));
    }
    let out = call.outs[0].dtype;
    let Some(out) = FloatType::from_dtype(out) else {
        return call.reject(format!("the output is {out}; it must be bf16, f16 or f32"));
    };
    let [n, k] = [extent_u32(call, "N", n)?, extent_u32(call, "K", k)?];
    Ok(Problem {
        out: Some(out),
        ..Problem::new(0, n, k, dtype)
    })
}

pub(crate) fn extent_u32(call: &OpArgs<'_>, name: &str, n: u64) -> Result<u32, FamilyError> {
    match u32::try_from(n) {
        Ok(n) => Ok(n),
        Err(_) => call.reject(format!("{name} is {n}; it must be less than 2^32")),
    }
}

/// Adds the scales to the problem; the caller passes all or none.
pub(crate) fn with_scales(
    call: &OpArgs<'_>,
    names: &[&str],
    p: Problem,
) -> Result<Problem, FamilyError> {
    let scales = names.iter().map(|name| (name, call.optional(name)));
    let scales: Vec<_> = scales
        .filter_map(|(name, view)| Some((name, view?)))
        .collect();
    for (name, view) in &scales {
        if view.dtype != DType::F32 || view.elements() != 1 {
            return call.reject(format!("{name} is {view}; it must be one f32 element"));
        }
    }
    match scales.len() {
        0 => Ok(p),
        n if n == names.len() => Ok(Problem { scales: true, ..p }),
        _ => call.reject(format!(
            "only some of {} are set; pass all of them or none",
            names.join(", ")
        )),
    }
}

fn scale_args(p: &Problem) -> [ArgValue; 2] {
    [0, 1].map(|_| match p.scales {
        true => TensorView::dense(DType::F32, &[1], 0).into(),
        false => ArgValue::None,
    })
}

/// Merges the leading dimensions into M; rejects them if they have no common row stride.
pub(crate) fn with_rows(
    call: &OpArgs<'_>,
    name: &str,
    a: &TensorView,
    p: Problem,
) -> Result<Problem, FamilyError> {
    let (out, outer) = (&call.outs[0], a.shape.len() - 1);
    let residual = call.optional("residual").unwrap_or(out);
    let count = a.shape[..outer]
        .iter()
        .fold(1u64, |n, &m| n.saturating_mul(m));
    let p = Problem {
        m: extent_u32(call, "M", count)?,
        ..p
    };
    if out.elements() == 0 {
        return Ok(p);
    }
    for (name, view) in [("the output", out), ("residual", residual)] {
        if p.n > 1 && view.strides.last() != Some(&1) {
            return call.unsupported_layout(format!(
                "the last dimension of {name} has stride {}; it must be contiguous\nhelp: make it contiguous",
                view.strides.last().unwrap_or(&0)
            ));
        }
    }
    let strides = [a, out, residual].map(|v| &v.strides[..outer]);
    let [a_stride, c_stride, residual_stride] = match &merge_dims(&a.shape[..outer], &strides)[..] {
        [] => [u64::from(p.k), u64::from(p.n), u64::from(p.n)].map(|n| n as i64),
        [one] => [one.strides[0], one.strides[1], one.strides[2]],
        _ => {
            return call.unsupported_layout(format!(
                "{name} has strides {:?} and the output has {:?} over shape {:?}; the leading dimensions must \
                 have one row stride\nhelp: make them contiguous",
                a.strides, out.strides, a.shape
            ));
        }
    };
    let non_negative = |name: &str, stride: i64| {
        match u64::try_from(stride) {
        Ok(stride) => Ok(Some(stride)),
        Err(_) => call.unsupported_layout(format!(
            "the row stride of {name} is {stride}; it must not be negative\nhelp: make it contiguous"
        )),
    }
    };
    Ok(Problem {
        a_stride: match p.k {
            // K == 0: A has no elements, so any stride will do.
            0 => None,
            _ => non_negative(name, a_stride)?,
        },
        c_stride: non_negative("the output", c_stride)?,
        residual_stride: match p.residual {
            true => non_negative("residual", residual_stride)?,
            false => None,
        },
        ..p
    })
}

/// Adds the batch dimension: a, b and c have 3 dimensions.
fn with_batch(
    call: &OpArgs<'_>,
    a: &TensorView,
    b: &TensorView,
    p: Problem,
) -> Result<Problem, FamilyError> {
    let c = &call.outs[0];
    let [count, m, _] = a.shape[..] else {
        return call.unsupported(format!(
            "a has {} dimensions; a batched b needs 3",
            a.shape.len()
        ));
    };
    if b.shape[0] != count {
        return call.unsupported(format!(
            "a has {count} matrices and b has {}; the batch must be the same",
            b.shape[0]
        ));
    }
    let p = Problem {
        m: extent_u32(call, "M", m)?,
        batch: Some(extent_u32(call, "a batch", count)?),
        ..p
    };
    if c.elements() == 0 || p.k == 0 {
        return Ok(p);
    }
    if p.n > 1 && c.strides[2] != 1 {
        return call.unsupported_layout(format!(
            "the last dimension of c has stride {}; it must be contiguous\nhelp: make it contiguous",
            c.strides[2]
        ));
    }
    let non_negative =
        |name: &str, view: &TensorView, i: usize| match u64::try_from(view.strides[i]) {
            Ok(stride) => Ok(Some(stride)),
            Err(_) => call.unsupported_layout(format!(
                "{name} has stride {}; strides must not be negative\nhelp: make it contiguous",
                view.strides[i]
            )),
        };
    let batch_stride = |name: &str, view: &TensorView| match count {
        1 => Ok(None),
        _ => non_negative(name, view, 0),
    };
    let row_stride = |name: &str, view: &TensorView| match m {
        1 => Ok(None),
        _ => non_negative(name, view, 1),
    };
    Ok(Problem {
        a_stride: row_stride("a", a)?,
        c_stride: row_stride("c", c)?,
        a_batch_stride: batch_stride("a", a)?,
        b_batch_stride: batch_stride("b", b)?,
        c_batch_stride: batch_stride("c", c)?,
        ..p
    })
}

/// Drops strides and types that equal the defaults, so that equal problems compare equal.
pub(crate) fn canonical(p: Problem) -> Problem {
    let without_strides = |p: &Problem| Problem {
        out: None,
        a_stride: None,
        b_stride: None,
        c_stride: None,
        residual_stride: None,
        up_stride: None,
        a_batch_stride: None,
        b_batch_stride: None,
        c_batch_stride: None,
        ..p.clone()
    };
    let dense = without_strides(&p);
    let unless_default = |value: Option<u64>, default: u64| value.filter(|&x| x != default);
    // The row stride of a single row does not matter.
    let row_stride = |value: Option<u64>, rows: u64, default: u64| {
        unless_default(value.filter(|_| rows > 1), default)
    };
    let strided = Problem {
        out: p.out.filter(|&out| out != dense.out()),
        a_stride: row_stride(p.a_stride, dense.a().rows, dense.a().stride),
        b_stride: row_stride(p.b_stride, dense.b().rows, dense.b().stride),
        c_stride: row_stride(p.c_stride, dense.c().rows, dense.c().stride),
        ..dense
    };
    Problem {
        residual_stride: row_stride(p.residual_stride, strided.c().rows, strided.c().stride),
        up_stride: row_stride(p.up_stride, strided.b().rows, strided.b().stride),
        a_batch_stride: unless_default(p.a_batch_stride, strided.a().batch_stride),
        b_batch_stride: unless_default(p.b_batch_stride, strided.b().batch_stride),
        c_batch_stride: unless_default(p.c_batch_stride, strided.c().batch_stride),
        ..strided
    }
}
