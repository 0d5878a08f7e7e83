//! The Python op of a row-wise family: the signature, and the problem of a call.

use super::config::Choice;
use super::op::RowOp;
use super::problem::{Matrix, Problem};
use crate::batch_invariant::BATCH_INVARIANT;
use warpline_family::error::FamilyError;
use warpline_family::float::FloatType;
use warpline_family::op::layout::merge_dims;
use warpline_family::op::{
    ArgValue, OpArgs, OpOutput, OpParam, OpParamKind, OutputDim, Signature, TensorView,
};

/// The matrix, the first parameter of every row-wise op.
const X: OpParam = OpParam::tensor(
    "x",
    "f32, f16 or bf16. A layout is copied unless rows are contiguous and have one common stride.",
);

/// Returns the signature of the op.
pub(super) fn signature<K: RowOp>() -> Signature {
    Signature {
        name: K::OP,
        about: K::ABOUT,
        params: [&[X], K::PARAMS, &[BATCH_INVARIANT]].concat(),
        outputs: vec![OpOutput {
            name: "y",
            dims: &[OutputDim::All("x")],
            dtype_of: "x",
            dtype_override: None,
            fixed_dtype: None,
        }],
        optional_output: None,
        example: K::EXAMPLE,
    }
}

/// Returns the problem of a call, and the choice that its addresses require: no 16-byte accesses if a
/// tensor is not 16-byte aligned.
pub(super) fn problem_of_call<K: RowOp>(
    call: &OpArgs<'_>,
) -> Result<(Problem<K::Options>, Choice), FamilyError> {
    let (x, y) = (call.tensor("x")?, &call.outs[0]);
    let Some(dtype) = FloatType::from_dtype(x.dtype) else {
        return call.reject(format!("x must be f32, f16 or bf16, not {}", x.dtype));
    };
    let Some(&cols) = x.shape.last() else {
        return call.reject("x has no dimensions, but needs at least 1".into());
    };
    let options = K::options(call)?;
    if let Err(FamilyError::Problem(text)) = K::check(&options) {
        return call.reject(text);
    }
    for name in K::vectors(&options) {
        let vector = call.tensor(name)?;
        if vector.dtype != x.dtype || vector.shape != [cols] {
            let text = format!(
                "{name} must be {} [{cols}] like a row of x, not {vector}",
                x.dtype
            );
            // Another floating-point type needs converted copies, as a layout does.
            let is_float = FloatType::from_dtype(vector.dtype).is_some();
            return match is_float && vector.shape == [cols] {
                true => call.unsupported_layout(text),
                false => call.reject(text),
            };
        }
        check_contiguous(call, name, vector)?;
    }
    check_contiguous(call, "x", x)?;
    check_contiguous(call, "y", y)?;
    let (rows, strides) = row_strides(call, x, y)?;
    let stride_unless_dense = |stride: i64| (rows > 1 && stride != cols as i64).then_some(stride);
    let matrix = Matrix {
        rows,
        cols,
        dtype,
        x_stride: stride_unless_dense(strides[0]),
        y_stride: stride_unless_dense(strides[1]),
    };
    let problem = Problem { matrix, options };
    let choice = Choice {
        vectors: (!call.is_16_byte_aligned()).then_some(false),
        batch_invariant: call.flag("batch_invariant").then_some(true),
        ..Choice::default()
    };
    Ok((problem, choice))
}

/// Rejects a tensor whose last dimension has a stride other than 1.
fn check_contiguous(call: &OpArgs<'_>, name: &str, view: &TensorView) -> Result<(), FamilyError> {
    let has_elements = view.elements() > 0;
    match (view.shape.last(), view.strides.last()) {
        (Some(&n), Some(&stride)) if has_elements && n > 1 && stride != 1 => call
            .unsupported_layout(format!(
                "the last dimension of {name} must have stride 1, not {stride}: make it contiguous"
            )),
        _ => Ok(()),
    }
}

/// Returns the number of rows, and their strides in `x` and `y`.
fn row_strides(
    call: &OpArgs<'_>,
    x: &TensorView,
    y: &TensorView,
) -> Result<(u64, [i64; 2]), FamilyError> {
    let outer = x.shape.len() - 1;
    let (cols, shape) = (x.shape[outer] as i64, &x.shape[..outer]);
    if x.elements() == 0 {
        let rows = shape.iter().fold(1u64, |n, &m| n.saturating_mul(m));
        return Ok((rows, [cols; 2]));
    }
    let strides = match &merge_dims(shape, &[&x.strides[..outer], &y.strides[..outer]])[..] {
        [] => return Ok((1, [cols; 2])),
        [one] => [one.strides[0], one.strides[1]],
        _ => {
            return call.unsupported_layout(format!(
                "the rows of x and of y must each have one common stride, but the strides are {:?} \
                 and {:?} over shape {:?}: make them contiguous",
                x.strides, y.strides, x.shape
            ));
        }
    };
    for (name, stride) in ["x", "y"].into_iter().zip(strides) {
        if stride < cols {
            return call.unsupported_layout(format!(
                "the row stride of {name} is {stride}, less than the {cols} elements of a row: make it \
                 contiguous"
            ));
        }
    }
    Ok((x.elements() / cols as u64, strides))
}

/// Returns dense arguments whose call has the problem `p`.
pub(super) fn args<K: RowOp>(p: &Problem<K::Options>) -> Vec<ArgValue> {
    let dtype = p.matrix.dtype.dtype();
    let mut args = vec![ArgValue::Tensor(TensorView::dense(
        dtype,
        &[p.matrix.rows, p.matrix.cols],
        0,
    ))];
    let (vectors, scalars) = (K::vectors(&p.options), K::scalars(&p.options));
    for param in K::PARAMS {
        let scalar = scalars.iter().find(|(name, _)| *name == param.name);
        args.push(match (param.kind, scalar) {
            (OpParamKind::Tensor, _) if vectors.contains(&param.name) => {
                TensorView::dense(dtype, &[p.matrix.cols], 0).into()
            }
            (OpParamKind::Number, Some(&(_, x))) => {
                // Convert through decimal text: 1e-5_f32 becomes the f64 1e-5; a cast gives 9.99999974e-6.
                let decimal = x.to_string().parse();
                ArgValue::Number(decimal.unwrap_or(f64::from(x)))
            }
            _ => param
                .default
                .map_or(ArgValue::None, |default| default.value()),
        });
    }
    args.push(ArgValue::Flag(false));
    args
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops;
    use warpline_family::AnyOp;
    use warpline_ir::{DType, Target};

    fn op(name: &str) -> AnyOp {
        let op = ops().into_iter().find(|op| op.signature.name == name);
        op.unwrap()
    }

    fn view(dtype: DType, shape: &[u64], strides: &[i64]) -> TensorView {
        TensorView {
            strides: strides.to_vec(),
            ..TensorView::dense(dtype, shape, 0)
        }
    }

    /// Returns problem and config of a softmax, or the error.
    fn softmax(x: TensorView, y: TensorView, dim: i64) -> Result<[serde_json::Value; 2], String> {
        let solved =
            op("softmax").workload(&[x.into(), dim.into(), false.into()], &[y], &Target::SM_90A);
        let work = solved.map_err(|e| e.to_string())?.unwrap();
        Ok([work.problem(), work.config()])
    }

    #[test]
    fn leading_dimensions_with_one_stride_become_rows() {
        let dense = TensorView::dense(DType::F32, &[2, 3, 8], 0);
        let [problem, _] = softmax(dense.clone(), dense.clone(), 2).unwrap();
        assert_eq!(problem["rows"], 6);
        assert!(problem.get("x_stride").is_none());

        let padded = view(DType::F32, &[2, 3, 8], &[30, 10, 1]);
        let [problem, _] = softmax(padded, dense.clone(), -1).unwrap();
        assert_eq!(
            (problem["x_stride"].as_i64(), problem["rows"].as_u64()),
            (Some(10), Some(6))
        );

        // x and y with the same two dimensions swapped.
        let swapped = view(DType::F32, &[2, 3, 8], &[8, 16, 1]);
        assert!(softmax(swapped.clone(), swapped.clone(), -1).is_ok());
        let message = softmax(swapped, dense, -1).unwrap_err();
        assert!(
            message.starts_with("softmax: the rows of x and of y must each have one common stride"),
            "{message}"
        );
    }

    #[test]
    fn unsupported_layouts_are_rejected() {
        let y = TensorView::dense(DType::F32, &[4, 8], 0);
        let transposed = view(DType::F32, &[4, 8], &[1, 4]);
        assert_eq!(
            softmax(transposed, y.clone(), -1).unwrap_err(),
            "softmax: the last dimension of x must have stride 1, not 4: make it contiguous"
        );
        for stride in [0, 7, -8] {
            let message =
                softmax(view(DType::F32, &[4, 8], &[stride, 1]), y.clone(), -1).unwrap_err();
            assert!(
                message.contains(&format!(
                    "row stride of x is {stride}, less than the 8 elements"
                )),
                "{message}"
            );
        }
        let message = softmax(y.clone(), y.clone(), 0).unwrap_err();
        assert_eq!(
            message,
            "softmax: dim must be the last dimension (-1 or 1), not 0"
        );
        let integers = TensorView::dense(DType::I32, &[4, 8], 0);
        assert_eq!(
            softmax(integers.clone(), integers, -1).unwrap_err(),
            "softmax: x must be f32, f16 or bf16, not i32"
        );
        let point = TensorView::dense(DType::F32, &[], 0);
        assert!(
            softmax(point.clone(), point, -1)
                .unwrap_err()
                .contains("no dimensions")
        );
    }

    #[test]
    fn errors_distinguish_wrong_calls_from_unsupported_ones() {
        let x = TensorView::dense(DType::F32, &[4, 8], 0);
        let code = |name: &str, args: &[ArgValue], y: &TensorView| {
            let solved = op(name).workload(args, std::slice::from_ref(y), &Target::SM_90A);
            solved.map_or_else(|e| e.code(), |_| "ok")
        };
        let softmax = |x: &TensorView, dim: i64| {
            code("softmax", &[x.clone().into(), dim.into(), false.into()], x)
        };
        assert_eq!(softmax(&x, -1), "ok");
        assert_eq!(softmax(&x, 2), "bad-problem");
        assert_eq!(softmax(&x, 0), "unsupported-layout");
        assert_eq!(
            softmax(&view(DType::F32, &[4, 8], &[1, 4]), -1),
            "unsupported-layout"
        );
        let long = TensorView::dense(DType::F32, &[1, 1 << 31], 0);
        assert_eq!(softmax(&long, -1), "unsupported");
        let rms_norm = |weight: TensorView, eps: f64| {
            code(
                "rms_norm",
                &[x.clone().into(), weight.into(), eps.into(), false.into()],
                &x,
            )
        };
        let weight = |dtype, n| TensorView::dense(dtype, &[n], 0);
        assert_eq!(rms_norm(weight(DType::F32, 8), 1e-6), "ok");
        assert_eq!(rms_norm(weight(DType::Bf16, 8), 1e-6), "unsupported-layout");
        assert_eq!(rms_norm(weight(DType::Bf16, 7), 1e-6), "bad-problem");
        assert_eq!(rms_norm(weight(DType::I32, 8), 1e-6), "bad-problem");
        assert_eq!(rms_norm(weight(DType::F32, 8), -1.0), "bad-problem");
    }

    #[test]
    fn unaligned_addresses_are_accessed_by_elements() {
        let view_at = |address| TensorView::dense(DType::F32, &[4, 1024], address);
        let [_, config] = softmax(view_at(1 << 20), view_at(1 << 21), -1).unwrap();
        assert_eq!(config["vectors"], true);
        let [_, config] = softmax(view_at((1 << 20) + 4), view_at(1 << 21), -1).unwrap();
        assert_eq!(config["vectors"], false);
    }

    #[test]
    fn weight_and_bias_match_a_row_and_bias_needs_weight() {
        let x = TensorView::dense(DType::F32, &[4, 8], 0);
        let vector = |dtype, n| ArgValue::Tensor(TensorView::dense(dtype, &[n], 0));
        let message = |weight: ArgValue, bias: ArgValue, eps: f64| {
            let args = [
                ArgValue::Tensor(x.clone()),
                weight,
                bias,
                ArgValue::Number(eps),
                ArgValue::Flag(false),
            ];
            let solved =
                op("layer_norm").workload(&args, std::slice::from_ref(&x), &Target::SM_90A);
            solved.map_or_else(|e| e.to_string(), |_| "ok".into())
        };
        let valid = || vector(DType::F32, 8);
        assert_eq!(message(valid(), valid(), 1e-5), "ok");
        assert_eq!(message(ArgValue::None, ArgValue::None, 1e-5), "ok");
        assert_eq!(
            message(vector(DType::F32, 9), ArgValue::None, 1e-5),
            "layer_norm: weight must be f32 [8] like a row of x, not f32 [9]"
        );
        assert_eq!(
            message(valid(), vector(DType::Bf16, 8), 1e-5),
            "layer_norm: bias must be f32 [8] like a row of x, not bf16 [8]"
        );
        assert_eq!(
            message(ArgValue::None, valid(), 1e-5),
            "layer_norm: bias requires weight, which is missing"
        );
        assert!(message(valid(), valid(), -1.0).contains("eps"));
    }
}
