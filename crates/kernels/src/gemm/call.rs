//! The ops: from call arguments to a problem.

use super::config::Choice;
use super::operand_view::{MatrixView, Rows, VectorAs, alignment, broadcast_shape};
use super::problem::Activation;
use super::problem::{OperandLayout, OperandType, Problem};
use super::{Gemm, Linear};
use crate::batch_invariant::BATCH_INVARIANT;
use warpline_family::Op;
use warpline_family::error::FamilyError;
use warpline_family::field::FieldValue;
use warpline_family::float::FloatType;
use warpline_family::op::{ArgValue, OpArgs, OpOutput, OpParam, OutputDim, Signature, TensorView};
use warpline_ir::DType;

pub(crate) const OUT_DTYPE: OpParam = OpParam::element_type(
    "out_dtype",
    "bf16, f16 or f32; default: the type of the first operand, bf16 for fp8.",
);

/// Returns the part of the config that a call fixes.
pub(crate) fn choice(call: &OpArgs<'_>) -> Choice {
    Choice {
        batch_invariant: call.flag("batch_invariant").then_some(true),
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
                    "[K] or […, M, K] in bf16, f16, e4m3, e5m2, or f32 (multiplied as tf32).",
                ),
                OpParam::tensor(
                    "b",
                    "[K] or […, K, N]; the batch dimensions broadcast. Same type as a; e4m3 if a is e5m2.",
                ),
                OpParam::optional("scale_a", "Scale of a: one f32 element."),
                OpParam::optional("scale_b", "Scale of b: one f32 element."),
                OUT_DTYPE,
                BATCH_INVARIANT,
            ],
            outputs: vec![OpOutput {
                name: "c",
                dims: &[OutputDim::MatMul("a", "b")],
                dtype_of: "a",
                dtype_override: Some("out_dtype"),
                fixed_dtype: None,
            }],
            optional_output: None,
            example: MATMUL_EXAMPLE,
        },
        problem: |call| {
            let (a, b) = (call.tensor("a")?, call.tensor("b")?);
            let dtype = operand_type(call, ["a", "b"], a, b)?;
            let out = out_type(call)?;
            let (is_row, is_column) = (a.shape.len() == 1, b.shape.len() == 1);
            let a = MatrixView::new(call, "a", a, VectorAs::Row)?;
            let b = MatrixView::new(call, "b", b, VectorAs::Column)?.transposed();
            let c = output_matrix(call, is_row, is_column)?;
            let batch = broadcast_shape(call, &a.batch, &b.batch)?;
            let p = problem_of_matrices(
                call,
                ["a", "b"],
                [a.broadcast(&batch), b.broadcast(&batch), c.clone(), c],
                Problem {
                    out: Some(out),
                    ..Problem::new(0, 0, 0, dtype)
                },
            )?;
            let p = with_scales(call, &["scale_a", "scale_b"], p)?;
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
                    "[…, K] in bf16, f16, e4m3, e5m2, or f32 (multiplied as tf32).",
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
                fixed_dtype: None,
            }],
            optional_output: None,
            example: LINEAR_EXAMPLE,
        },
        problem: |call| {
            let (x, weight) = (call.tensor("x")?, call.tensor("weight")?);
            let dtype = operand_type(call, ["x", "weight"], x, weight)?;
            let [n, _] = weight.shape[..] else {
                return call.reject(format!(
                    "weight has {} dimensions; 2 are needed, [N, K]",
                    weight.shape.len()
                ));
            };
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
                out: Some(out_type(call)?),
                bias: call.optional("bias").is_some(),
                residual: call.optional("residual").is_some(),
                activation: activation(call, "activation")?,
                ..Problem::new(0, 0, 0, dtype)
            };
            let p = layer_problem(call, ["x", "weight"], [x, weight], p)?;
            let p = with_scales(call, &["scale_x", "scale_weight"], p)?;
            Ok((canonical(p), choice(call)))
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

/// Returns the operand type; rejects other element types.
pub(crate) fn operand_type(
    call: &OpArgs<'_>,
    names: [&str; 2],
    a: &TensorView,
    b: &TensorView,
) -> Result<OperandType, FamilyError> {
    let Some(dtype) = OperandType::from_dtype(a.dtype) else {
        return call.reject(format!(
            "{} is {}; it must be bf16, f16, e4m3, e5m2 or f32",
            names[0], a.dtype
        ));
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
    Ok(dtype)
}

/// Returns the element type of the output.
pub(crate) fn out_type(call: &OpArgs<'_>) -> Result<FloatType, FamilyError> {
    let out = call.outs[0].dtype;
    match FloatType::from_dtype(out) {
        Some(out) => Ok(out),
        None => call.reject(format!("the output is {out}; it must be bf16, f16 or f32")),
    }
}

/// Returns the output of a matmul as matrices; a vector operand has no dimension in the output.
fn output_matrix(
    call: &OpArgs<'_>,
    is_row: bool,
    is_column: bool,
) -> Result<MatrixView, FamilyError> {
    let mut c = call.outs[0].clone();
    if is_column {
        c.shape.push(1);
        c.strides.push(1);
    }
    if is_row {
        let at = c.shape.len() - 1;
        c.shape.insert(at, 1);
        c.strides.insert(at, 0);
    }
    MatrixView::new(call, "c", &c, VectorAs::Row)
}

/// Adds the extents, strides and alignments of a layer, `x · weightᵀ`, to a problem.
pub(crate) fn layer_problem(
    call: &OpArgs<'_>,
    names: [&str; 2],
    [x, weight]: [&TensorView; 2],
    p: Problem,
) -> Result<Problem, FamilyError> {
    let y = &call.outs[0];
    let a = MatrixView::new(call, names[0], x, VectorAs::Row)?;
    let b = MatrixView::new(call, names[1], weight, VectorAs::Row)?.broadcast(&a.batch);
    let c = MatrixView::new(call, "the output", y, VectorAs::Row)?;
    let residual = match call.optional("residual") {
        Some(residual) => MatrixView::new(call, "residual", residual, VectorAs::Row)?,
        None => c.clone(),
    };
    let addresses = ["bias", "residual"].map(|name| call.optional(name).map(|v| v.address));
    let align = addresses.into_iter().flatten().map(alignment).min();
    let p = Problem {
        epilogue_align: align.or(p.epilogue_align),
        ..p
    };
    problem_of_matrices(call, names, [a, b, c, residual], p)
}

/// Adds extents, strides and alignments to a problem: those of A [M, K], B [N, K], C and the residual,
/// all with the same batch.
fn problem_of_matrices(
    call: &OpArgs<'_>,
    names: [&str; 2],
    [a, b, c, residual]: [MatrixView; 4],
    p: Problem,
) -> Result<Problem, FamilyError> {
    let ([_, k], [n, b_k]) = (a.shape, b.shape);
    if k != b_k {
        return call.reject(format!(
            "K differs: {} has {k}, {} has {b_k}",
            names[0], names[1]
        ));
    }
    let n_u32 = extent_u32(call, "N", n)?;
    let p = Problem {
        n: n_u32,
        k: extent_u32(call, "K", k)?,
        ..p
    };
    if call.outs[0].elements() == 0 {
        // Nothing is computed, so only the extents matter.
        let rows = a.batch.iter().fold(a.shape[0], |n, &m| n.saturating_mul(m));
        return Ok(Problem {
            m: extent_u32(call, "M", rows)?,
            ..p
        });
    }
    for (name, view) in [("the output", &c), ("residual", &residual)] {
        if !view.has_dense_rows() {
            return call.unsupported_layout(format!(
                "the last dimension of {name} has stride {}; it must be contiguous\nhelp: make it contiguous",
                view.inner_stride()
            ));
        }
    }
    let Some(rows) = Rows::merge([&a, &b, &c, &residual]) else {
        return call.unsupported_layout(format!(
            "{}, {} and the output have batch strides that do not merge into one dimension\n\
             help: make them contiguous",
            names[0], names[1]
        ));
    };
    let non_negative = |stride: i64| {
        match u64::try_from(stride) {
        Ok(stride) => Ok(stride),
        Err(_) => call.unsupported_layout(format!(
            "a row or batch stride is {stride}; strides must not be negative\nhelp: make it contiguous"
        )),
    }
    };
    let [a_rows, c_rows, residual_rows] = rows.strides;
    let m = extent_u32(call, "M", rows.m)?;
    // K == 0: A and B have no elements, so any strides will do.
    let p = match k {
        0 => p,
        _ => {
            let a = a.with_rows(rows.m, a_rows).operand(call, names[0])?;
            let b = b.operand(call, names[1])?;
            Problem {
                a_layout: a.a_layout(),
                a_stride: Some(a.stride),
                a_inner_stride: Some(a.inner_stride),
                a_align: Some(a.align),
                layout: b.b_layout(),
                b_stride: Some(b.stride),
                b_inner_stride: Some(b.inner_stride),
                b_align: Some(b.align),
                ..p
            }
        }
    };
    let mut p = Problem {
        m,
        c_stride: (m > 1).then(|| non_negative(c_rows)).transpose()?,
        c_align: Some(c.align()),
        residual_stride: match p.residual && m > 1 {
            true => Some(non_negative(residual_rows)?),
            false => None,
        },
        ..p
    };
    if let Some((count, [a, b, c, residual])) = rows.batch {
        if p.residual && residual != c {
            return call.unsupported_layout(format!(
                "the batch stride of residual is {residual}; it must be that of the output, {c}\n\
                 help: make it contiguous"
            ));
        }
        p.batch = Some(extent_u32(call, "the batch", count)?);
        if k > 0 {
            p.a_batch_stride = Some(non_negative(a)?);
            p.b_batch_stride = Some(non_negative(b)?);
        }
        p.c_batch_stride = Some(non_negative(c)?);
    }
    Ok(p)
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

/// Adds M and the row strides of A and of the output to the problem of one GEMM with dense rows.
pub(crate) fn with_rows(
    call: &OpArgs<'_>,
    name: &str,
    a: &TensorView,
    p: Problem,
) -> Result<Problem, FamilyError> {
    let a = MatrixView::new(call, name, a, VectorAs::Row)?;
    let c = MatrixView::new(call, "the output", &call.outs[0], VectorAs::Row)?;
    let is_empty = call.outs[0].elements() == 0;
    let rows = match Rows::merge_into_rows([&a, &c, &c]) {
        Some(rows) if is_empty || c.has_dense_rows() => rows,
        _ => {
            return call.unsupported_layout(format!(
                "the rows of {name} and of the output must each have one common stride, and rows of the \
                 output must be contiguous\nhelp: make them contiguous"
            ));
        }
    };
    let stride = |stride: i64| u64::try_from(stride).ok().filter(|_| rows.m > 1);
    let [a_stride, c_stride, _] = rows.strides.map(stride);
    Ok(Problem {
        m: extent_u32(call, "M", rows.m)?,
        a_stride,
        c_stride,
        ..p
    })
}

/// Drops strides, alignments and types that equal the defaults, so that equal problems compare equal.
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
        a_inner_stride: None,
        b_inner_stride: None,
        a_align: None,
        b_align: None,
        c_align: None,
        epilogue_align: None,
        ..p.clone()
    };
    let unless = |value: Option<u64>, default: u64| value.filter(|&x| x != default);
    let unless_aligned = |align: Option<u32>| align.filter(|&x| x != 16);
    let dense = without_strides(&p);
    let strided = Problem {
        out: p.out.filter(|&out| out != dense.out()),
        a_inner_stride: unless(p.a_inner_stride.filter(|_| dense.a().cols > 1), 1),
        b_inner_stride: unless(p.b_inner_stride.filter(|_| dense.b().cols > 1), 1),
        a_align: unless_aligned(p.a_align),
        b_align: unless_aligned(p.b_align),
        c_align: unless_aligned(p.c_align),
        epilogue_align: unless_aligned(p.epilogue_align.filter(|_| p.bias || p.residual)),
        ..dense
    };
    // The row stride of a single row does not matter.
    let row_stride =
        |value: Option<u64>, rows: u64, default: u64| unless(value.filter(|_| rows > 1), default);
    let strided = Problem {
        a_stride: row_stride(p.a_stride, strided.a().rows, strided.a().stride),
        b_stride: row_stride(p.b_stride, strided.b().rows, strided.b().stride),
        c_stride: row_stride(p.c_stride, strided.c().rows, strided.c().stride),
        ..strided
    };
    Problem {
        residual_stride: row_stride(p.residual_stride, strided.c().rows, strided.c().stride),
        up_stride: row_stride(p.up_stride, strided.b().rows, strided.b().stride),
        a_batch_stride: unless(p.a_batch_stride, strided.a().batch_stride),
        b_batch_stride: unless(p.b_batch_stride, strided.b().batch_stride),
        c_batch_stride: unless(p.c_batch_stride, strided.c().batch_stride),
        ..strided
    }
}
