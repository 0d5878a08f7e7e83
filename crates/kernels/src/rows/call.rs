//! The op of a family over rows: from a call to a problem.

use super::config::Choice;
use super::op::RowOp;
use super::problem::{Matrix, Problem};
use warpline_family::error::FamilyError;
use warpline_family::float::Float;
use warpline_family::op::layout::walk;
use warpline_family::op::{Call, Kind, Output, Param, Side, Signature, TensorView, Value};

/// The matrix: every op over rows takes it first.
const X: Param = Param::tensor(
    "x",
    "f32, f16 or bf16; the last dimension is the row, dense in memory, and the rows lie at one distance.",
);

/// What callers see of it.
pub(super) fn signature<K: RowOp>() -> Signature {
    Signature {
        name: K::OP,
        about: K::ABOUT,
        params: [&[X], K::PARAMS].concat(),
        outputs: vec![Output {
            name: "y",
            sides: &[Side::All("x")],
            dtype_of: "x",
            dtype_by: None,
        }],
        example: K::EXAMPLE,
    }
}

/// The problem of a call.
pub(super) fn asked<K: RowOp>(
    call: &Call<'_>,
) -> Result<(Problem<K::Options>, Choice), FamilyError> {
    let (x, y) = (call.tensor("x")?, &call.outs[0]);
    let Some(dtype) = Float::of(x.dtype) else {
        return call.refuse(format!("x is f32, f16 or bf16, not {}", x.dtype));
    };
    let Some(&cols) = x.shape.last() else {
        return call.refuse("x has at least one dimension, and this one has none".into());
    };
    let options = K::options(call)?;
    for name in K::vectors(&options) {
        let vector = call.tensor(name)?;
        if vector.dtype != x.dtype || vector.shape != [cols] {
            return call.refuse(format!(
                "{name} is {} [{cols}], as a row of x, not {vector}",
                x.dtype
            ));
        }
        dense(call, name, vector)?;
    }
    dense(call, "x", x)?;
    dense(call, "y", y)?;
    let (rows, strides) = rows(call, x, y)?;
    let other = |stride: i64| (rows > 1 && stride != cols as i64).then_some(stride);
    let matrix = Matrix {
        rows,
        cols,
        dtype,
        x_stride: other(strides[0]),
        y_stride: other(strides[1]),
    };
    let problem = Problem { matrix, options };
    let choice = Choice {
        vectors: (!call.on_16_bytes()).then_some(false),
        ..Choice::default()
    };
    Ok((problem, choice))
}

/// Refuses rows whose elements do not lie side by side.
fn dense(call: &Call<'_>, name: &str, view: &TensorView) -> Result<(), FamilyError> {
    let some = view.elements() > 0;
    match (view.shape.last(), view.strides.last()) {
        (Some(&n), Some(&stride)) if some && n > 1 && stride != 1 => call.refuse(format!(
            "the last dimension of {name} is dense, and its stride here is {stride}: make it contiguous"
        )),
        _ => Ok(()),
    }
}

/// How many rows, and how far from one to the next in `x` and in `y`.
fn rows(call: &Call<'_>, x: &TensorView, y: &TensorView) -> Result<(u64, [i64; 2]), FamilyError> {
    let outer = x.shape.len() - 1;
    let (cols, shape) = (x.shape[outer] as i64, &x.shape[..outer]);
    if x.elements() == 0 {
        let rows = shape.iter().fold(1u64, |n, &m| n.saturating_mul(m));
        return Ok((rows, [cols; 2]));
    }
    let strides = match &walk(shape, &[&x.strides[..outer], &y.strides[..outer]])[..] {
        [] => return Ok((1, [cols; 2])),
        [one] => [one.strides[0], one.strides[1]],
        _ => {
            return call.refuse(format!(
                "the rows of x, and those of y, lie at one distance, which strides {:?} and {:?} \
                 over shape {:?} do not give: make them contiguous",
                x.strides, y.strides, x.shape
            ));
        }
    };
    for (name, stride) in ["x", "y"].into_iter().zip(strides) {
        if stride < cols {
            return call.refuse(format!(
                "the rows of {name} lie apart and follow each other upwards, and rows of {cols} \
                 elements {stride} from each other do not: make it contiguous"
            ));
        }
    }
    Ok((x.elements() / cols as u64, strides))
}

/// The arguments that ask a problem, dense.
pub(super) fn args<K: RowOp>(p: &Problem<K::Options>) -> Vec<Value> {
    let dtype = p.matrix.dtype.dtype();
    let mut args = vec![Value::Tensor(TensorView::dense(
        dtype,
        &[p.matrix.rows, p.matrix.cols],
        0,
    ))];
    let (vectors, scalars) = (K::vectors(&p.options), K::scalars(&p.options));
    for param in K::PARAMS {
        let scalar = scalars.iter().find(|(name, _)| *name == param.name);
        args.push(match (param.kind, scalar) {
            (Kind::Tensor, _) if vectors.contains(&param.name) => {
                TensorView::dense(dtype, &[p.matrix.cols], 0).into()
            }
            (Kind::Number, Some(&(_, x))) => {
                // As it was written: 1e-5, and not the f32 next to it.
                let written = x.to_string().parse();
                Value::Number(written.unwrap_or(f64::from(x)))
            }
            _ => param.default.map_or(Value::None, |default| default.value()),
        });
    }
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

    /// Problem and config of a softmax, or the sentence that refuses it.
    fn softmax(x: TensorView, y: TensorView, dim: i64) -> Result<[serde_json::Value; 2], String> {
        let solved = op("softmax").solve(&[x.into(), dim.into()], &[y], &Target::SM_90A);
        let work = solved.map_err(|e| e.to_string())?.unwrap();
        Ok([work.problem(), work.config()])
    }

    #[test]
    fn leading_dimensions_are_rows_where_they_lie_at_one_distance() {
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

        // Two tensors with the same dimensions swapped.
        let swapped = view(DType::F32, &[2, 3, 8], &[8, 16, 1]);
        assert!(softmax(swapped.clone(), swapped.clone(), -1).is_ok());
        let said = softmax(swapped, dense, -1).unwrap_err();
        assert!(
            said.starts_with("softmax: the rows of x, and those of y, lie at one distance"),
            "{said}"
        );
    }

    #[test]
    fn layouts_that_no_kernel_reads_are_refused_by_a_sentence() {
        let y = TensorView::dense(DType::F32, &[4, 8], 0);
        let transposed = view(DType::F32, &[4, 8], &[1, 4]);
        assert_eq!(
            softmax(transposed, y.clone(), -1).unwrap_err(),
            "softmax: the last dimension of x is dense, and its stride here is 4: make it contiguous"
        );
        for stride in [0, 7, -8] {
            let said = softmax(view(DType::F32, &[4, 8], &[stride, 1]), y.clone(), -1).unwrap_err();
            assert!(
                said.contains(&format!("rows of 8 elements {stride} from each other")),
                "{said}"
            );
        }
        let said = softmax(y.clone(), y.clone(), 0).unwrap_err();
        assert_eq!(said, "softmax: dim is the last dimension (-1 or 1), not 0");
        let whole = TensorView::dense(DType::I32, &[4, 8], 0);
        assert_eq!(
            softmax(whole.clone(), whole, -1).unwrap_err(),
            "softmax: x is f32, f16 or bf16, not i32"
        );
        let point = TensorView::dense(DType::F32, &[], 0);
        assert!(
            softmax(point.clone(), point, -1)
                .unwrap_err()
                .contains("at least one dimension")
        );
    }

    #[test]
    fn an_address_that_is_not_on_16_bytes_is_read_by_elements() {
        let at = |address| TensorView::dense(DType::F32, &[4, 1024], address);
        let [_, config] = softmax(at(1 << 20), at(1 << 21), -1).unwrap();
        assert_eq!(config["vectors"], true);
        let [_, config] = softmax(at((1 << 20) + 4), at(1 << 21), -1).unwrap();
        assert_eq!(config["vectors"], false);
    }

    #[test]
    fn weights_are_as_a_row_and_a_bias_comes_with_a_weight() {
        let x = TensorView::dense(DType::F32, &[4, 8], 0);
        let vector = |dtype, n| Value::Tensor(TensorView::dense(dtype, &[n], 0));
        let said = |weight: Value, bias: Value, eps: f64| {
            let args = [Value::Tensor(x.clone()), weight, bias, Value::Number(eps)];
            let solved = op("layer_norm").solve(&args, std::slice::from_ref(&x), &Target::SM_90A);
            solved.map_or_else(|e| e.to_string(), |_| "good".into())
        };
        let good = || vector(DType::F32, 8);
        assert_eq!(said(good(), good(), 1e-5), "good");
        assert_eq!(said(Value::None, Value::None, 1e-5), "good");
        assert_eq!(
            said(vector(DType::F32, 9), Value::None, 1e-5),
            "layer_norm: weight is f32 [8], as a row of x, not f32 [9]"
        );
        assert_eq!(
            said(good(), vector(DType::Bf16, 8), 1e-5),
            "layer_norm: bias is f32 [8], as a row of x, not bf16 [8]"
        );
        assert_eq!(
            said(Value::None, good(), 1e-5),
            "layer_norm: a bias comes with a weight, and none was given"
        );
        assert!(said(good(), good(), -1.0).contains("eps"));
    }
}
