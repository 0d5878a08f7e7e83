//! The ops: from a call to a problem.

use super::config::Choice;
use super::problem::Activation;
use super::problem::{Factor, Layout, Problem};
use super::{Gemm, Linear};
use warpline_family::Op;
use warpline_family::error::FamilyError;
use warpline_family::field::FieldValue;
use warpline_family::float::Float;
use warpline_family::op::layout::walk;
use warpline_family::op::{Call, Output, Param, Side, Signature, TensorView, Value};
use warpline_ir::DType;

pub(crate) const TYPE: Param = Param::element_type(
    "out_dtype",
    "bf16, f16 or f32; that of the first factor where not given, bf16 for fp8.",
);

pub(crate) const INVARIANT: Param = Param::flag(
    "batch_invariant",
    "A row of the result has the same bits whatever the other rows are and however many: K is never split.",
);

/// What a call fixes of the config.
pub(crate) fn choice(call: &Call<'_>) -> Choice {
    let whole = call.flag("batch_invariant");
    Choice {
        split_k: whole.then_some(1),
        stream_k: whole.then_some(false),
        ..Choice::default()
    }
}

/// `matmul(a, b)`.
pub(super) fn matmul() -> Op<Gemm> {
    Op {
        signature: Signature {
            name: "matmul",
            about: "c = a · b, summed in f32",
            params: vec![
                Param::tensor(
                    "a",
                    "[…, M, K] in bf16, f16, e4m3 or e5m2; K is dense in memory.",
                ),
                Param::tensor(
                    "b",
                    "[K, N], or [B, K, N] beside an a of [B, M, K]: K dense in memory (the transpose of a weight), \
                     or N for 16-bit types. Of the type of a; e4m3 beside e5m2.",
                ),
                Param::optional("scale_a", "A number in memory, f32, that multiplies a."),
                Param::optional("scale_b", "The same for b."),
                TYPE,
                INVARIANT,
            ],
            outputs: vec![Output {
                name: "c",
                sides: &[Side::Leading("a"), Side::Last("b")],
                dtype_of: "a",
                dtype_by: Some("out_dtype"),
            }],
            example: MATMUL,
        },
        problem: |call| {
            let (a, b) = (call.tensor("a")?, call.tensor("b")?);
            let dtype = factor(call, ["a", "b"], a, b)?;
            let (k, n) = match b.shape[..] {
                [k, n] | [_, k, n] => (k, n),
                _ => {
                    return call.refuse(format!("b has 2 or 3 dimensions, not {}", b.shape.len()));
                }
            };
            let (layout, b_stride) = lies(call, "b", b, k, n)?;
            let p = Problem {
                layout,
                b_stride: Some(b_stride),
                ..extents(call, ["a", "b"], a, n, k, dtype)?
            };
            let p = scaled(call, &["scale_a", "scale_b"], p)?;
            let p = match b.shape.len() {
                2 => rows(call, "a", a, p)?,
                _ => batch(call, a, b, p)?,
            };
            Ok((plain(p), choice(call)))
        },
        args: |p| {
            // B as the transpose of a weight.
            let [m, n, k] = [p.m, p.n, p.k].map(u64::from);
            let mut b = TensorView::dense(p.dtype.other(), &[k, n], 0);
            if p.layout == Layout::Nk {
                b.strides = vec![1, k as i64];
            }
            let [scale_a, scale_b] = scales(p);
            vec![
                TensorView::dense(p.dtype.dtype(), &[m, k], 0).into(),
                b.into(),
                scale_a,
                scale_b,
                Value::None,
                Value::Flag(false),
            ]
        },
    }
}

/// `linear(x, weight, bias, activation)`.
pub(super) fn linear() -> Op<Linear> {
    Op {
        signature: Signature {
            name: "linear",
            about: "y = activation(x · weightᵀ + bias) + residual, summed in f32 and rounded once",
            params: vec![
                Param::tensor(
                    "x",
                    "[…, K] in bf16, f16, e4m3 or e5m2; K is dense in memory.",
                ),
                Param::tensor("weight", "[N, K], of the type of x; e4m3 beside e5m2."),
                Param::optional("bias", "[N], of the type of y."),
                Param::text(
                    "activation",
                    "none",
                    "none, relu, gelu-erf, gelu-tanh, silu or sigmoid.",
                ),
                Param::optional("residual", "Of the type and shape of y; added last."),
                Param::optional("scale_x", "A number in memory, f32, that multiplies x."),
                Param::optional("scale_weight", "The same for the weight."),
                TYPE,
                INVARIANT,
            ],
            outputs: vec![Output {
                name: "y",
                sides: &[Side::Leading("x"), Side::At("weight", 0)],
                dtype_of: "x",
                dtype_by: Some("out_dtype"),
            }],
            example: LINEAR,
        },
        problem: |call| {
            let (x, weight) = (call.tensor("x")?, call.tensor("weight")?);
            let dtype = factor(call, ["x", "weight"], x, weight)?;
            let [n, k] = weight.shape[..] else {
                return call.refuse(format!(
                    "weight has 2 dimensions, [N, K], not {}",
                    weight.shape.len()
                ));
            };
            let mut turned = weight.clone();
            turned.strides.reverse();
            let (layout, b_stride) = lies(call, "weight", &turned, k, n)?;
            let activation = activation(call, "activation")?;
            let p = extents(call, ["x", "weight"], x, n, k, dtype)?;
            let y = &call.outs[0];
            if let Some(bias) = call.optional("bias") {
                let dense = bias.shape == [n] && (n < 2 || bias.strides == [1]);
                if bias.dtype != y.dtype || !dense {
                    return call.refuse(format!(
                        "bias is {} [{n}], dense, as a row of y, not {bias} with strides {:?}",
                        y.dtype, bias.strides
                    ));
                }
            }
            if let Some(residual) = call.optional("residual")
                && (residual.dtype, &residual.shape) != (y.dtype, &y.shape)
            {
                return call.refuse(format!("residual is as y, {y}, not {residual}"));
            }
            let p = Problem {
                layout,
                b_stride: Some(b_stride),
                bias: call.optional("bias").is_some(),
                residual: call.optional("residual").is_some(),
                activation,
                ..p
            };
            let p = scaled(call, &["scale_x", "scale_weight"], p)?;
            Ok((plain(rows(call, "x", x, p)?), choice(call)))
        },
        args: |p| {
            let [m, n, k] = [p.m, p.n, p.k].map(u64::from);
            let out = p.out().dtype();
            let part = |there: bool, shape: &[u64]| match there {
                true => TensorView::dense(out, shape, 0).into(),
                false => Value::None,
            };
            let word = p.activation.word();
            let [scale_x, scale_weight] = scales(p);
            vec![
                TensorView::dense(p.dtype.dtype(), &[m, k], 0).into(),
                TensorView::dense(p.dtype.other(), &[n, k], 0).into(),
                part(p.bias, &[n]),
                word.into(),
                part(p.residual, &[m, n]),
                scale_x,
                scale_weight,
                Value::None,
                Value::Flag(false),
            ]
        },
    }
}

const MATMUL: &str = "\
>>> a = np.eye(16, dtype=np.float16)
>>> warpline.matmul(a, 2 * a)[:2, :4]
array([[2., 0., 0., 0.],
       [0., 2., 0., 0.]], dtype=float16)";

const LINEAR: &str = "\
>>> x, weight = np.full((1, 8), 0.5, np.float16), np.eye(8, dtype=np.float16)
>>> warpline.linear(x, weight, bias=np.arange(8, dtype=np.float16) - 4, activation=\"relu\")
array([[0. , 0. , 0. , 0. , 0.5, 1.5, 2.5, 3.5]], dtype=float16)";

/// The function that a parameter names.
pub(crate) fn activation(call: &Call<'_>, name: &str) -> Result<Activation, FamilyError> {
    let word = call.text(name)?;
    match Activation::read(word) {
        Ok(activation) => Ok(activation),
        Err(_) => call.refuse(format!(
            "{name} is none, relu, gelu-erf, gelu-tanh, silu or sigmoid, not {word:?}"
        )),
    }
}

/// The type of both factors.
pub(crate) fn factor(
    call: &Call<'_>,
    names: [&str; 2],
    a: &TensorView,
    b: &TensorView,
) -> Result<Factor, FamilyError> {
    let Some(factor) = Factor::of(a.dtype) else {
        return call.refuse(format!(
            "{} is bf16, f16, e4m3 or e5m2, not {}",
            names[0], a.dtype
        ));
    };
    if b.dtype != factor.other() {
        return call.refuse(format!(
            "beside {} of {} comes {} of {}, not of {}",
            names[0],
            a.dtype,
            names[1],
            factor.other(),
            b.dtype
        ));
    }
    if let Some(view) = call.inputs().chain(call.outs).find(|v| !v.on_16_bytes()) {
        return call.refuse(format!(
            "tensors start on 16 bytes, and {view} starts at {:#x}: clone it",
            view.address
        ));
    }
    Ok(factor)
}

/// How a tensor of K and N lies, and how far its rows are apart.
pub(crate) fn lies(
    call: &Call<'_>,
    name: &str,
    b: &TensorView,
    k: u64,
    n: u64,
) -> Result<(Layout, u64), FamilyError> {
    let [.., of_k, of_n] = b.strides[..] else {
        return call.refuse(format!("{name} has 2 or 3 dimensions"));
    };
    // A side of one element may have any stride.
    let along = |stride: i64, extent: u64| stride == 1 || extent <= 1;
    let apart = |stride: i64, rows: u64, cols: u64| match rows {
        0 | 1 => Some(cols),
        _ => u64::try_from(stride).ok().filter(|&s| s >= cols),
    };
    let found = if b.elements() == 0 {
        Some((Layout::Nk, k))
    } else if along(of_k, k) && apart(of_n, n, k).is_some() {
        apart(of_n, n, k).map(|stride| (Layout::Nk, stride))
    } else if along(of_n, n) {
        apart(of_k, k, n).map(|stride| (Layout::Kn, stride))
    } else {
        None
    };
    match found {
        Some(found) => Ok(found),
        None => call.refuse(format!(
            "{name} is dense along one of its last two dimensions and its rows lie apart, which strides {:?} do not give: \
             make it contiguous",
            b.strides
        )),
    }
}

/// A problem of those extents.
pub(crate) fn extents(
    call: &Call<'_>,
    names: [&str; 2],
    a: &TensorView,
    n: u64,
    k: u64,
    dtype: Factor,
) -> Result<Problem, FamilyError> {
    let Some(&last) = a.shape.last() else {
        return call.refuse(format!(
            "{} has at least one dimension, and this one has none",
            names[0]
        ));
    };
    if last != k {
        return call.refuse(format!(
            "both factors have the same K: {} has {last} and {} has {k}",
            names[0], names[1]
        ));
    }
    if last > 1 && a.elements() > 0 && a.strides.last() != Some(&1) {
        return call.refuse(format!(
            "the last dimension of {} is dense, and its stride here is {}: make it contiguous",
            names[0],
            a.strides.last().unwrap_or(&0)
        ));
    }
    let out = call.outs[0].dtype;
    let Some(out) = Float::of(out) else {
        return call.refuse(format!("what comes out is bf16, f16 or f32, not {out}"));
    };
    let [n, k] = [side(call, "N", n)?, side(call, "K", k)?];
    Ok(Problem {
        out: Some(out),
        ..Problem::new(0, n, k, dtype)
    })
}

pub(crate) fn side(call: &Call<'_>, name: &str, n: u64) -> Result<u32, FamilyError> {
    match u32::try_from(n) {
        Ok(n) => Ok(n),
        Err(_) => call.refuse(format!("{name} is less than 2^32, not {n}")),
    }
}

/// The scales, where they are given: all or none.
pub(crate) fn scaled(call: &Call<'_>, names: &[&str], p: Problem) -> Result<Problem, FamilyError> {
    let given = names.iter().map(|name| (name, call.optional(name)));
    let given: Vec<_> = given
        .filter_map(|(name, view)| Some((name, view?)))
        .collect();
    for (name, view) in &given {
        if view.dtype != DType::F32 || view.elements() != 1 {
            return call.refuse(format!("{name} is one number of f32, not {view}"));
        }
    }
    match given.len() {
        0 => Ok(p),
        n if n == names.len() => Ok(Problem { scales: true, ..p }),
        _ => call.refuse(format!(
            "{} are given together or not at all",
            names.join(" and ")
        )),
    }
}

fn scales(p: &Problem) -> [Value; 2] {
    [0, 1].map(|_| match p.scales {
        true => TensorView::dense(DType::F32, &[1], 0).into(),
        false => Value::None,
    })
}

/// Leading dimensions as rows, one distance apart.
pub(crate) fn rows(
    call: &Call<'_>,
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
        m: side(call, "M", count)?,
        ..p
    };
    if out.elements() == 0 {
        return Ok(p);
    }
    for (who, view) in [("the output", out), ("residual", residual)] {
        if p.n > 1 && view.strides.last() != Some(&1) {
            return call.refuse(format!(
                "the last dimension of {who} is dense, and its stride here is {:?}: make it contiguous",
                view.strides.last()
            ));
        }
    }
    let strides = [a, out, residual].map(|v| &v.strides[..outer]);
    let [a_stride, c_stride, residual_stride] = match &walk(&a.shape[..outer], &strides)[..] {
        [] => [u64::from(p.k), u64::from(p.n), u64::from(p.n)].map(|n| n as i64),
        [one] => [one.strides[0], one.strides[1], one.strides[2]],
        _ => {
            return call.refuse(format!(
                "the rows of {name}, and those of what comes out, lie at one distance, which strides {:?} and {:?} \
                 over shape {:?} do not give: make them contiguous",
                a.strides, out.strides, a.shape
            ));
        }
    };
    let apart = |who: &str, stride: i64| {
        match u64::try_from(stride) {
        Ok(stride) => Ok(Some(stride)),
        Err(_) => call.refuse(format!(
            "the rows of {who} follow each other upwards, and a stride of {stride} does not: make it contiguous"
        )),
    }
    };
    Ok(Problem {
        a_stride: match p.k {
            // Without a column there is nothing between rows.
            0 => None,
            _ => apart(name, a_stride)?,
        },
        c_stride: apart("what comes out", c_stride)?,
        residual_stride: match p.residual {
            true => apart("residual", residual_stride)?,
            false => None,
        },
        ..p
    })
}

/// A batch: each of three dimensions.
fn batch(
    call: &Call<'_>,
    a: &TensorView,
    b: &TensorView,
    p: Problem,
) -> Result<Problem, FamilyError> {
    let c = &call.outs[0];
    let [count, m, _] = a.shape[..] else {
        return call.refuse(format!(
            "beside b of 3 dimensions a has 3, not {}",
            a.shape.len()
        ));
    };
    if b.shape[0] != count {
        return call.refuse(format!(
            "a and b have as many matrices, not {count} and {}",
            b.shape[0]
        ));
    }
    let p = Problem {
        m: side(call, "M", m)?,
        batch: Some(side(call, "a batch", count)?),
        ..p
    };
    if c.elements() == 0 || p.k == 0 {
        return Ok(p);
    }
    if p.n > 1 && c.strides[2] != 1 {
        return call.refuse(format!(
            "the last dimension of c is dense, and its stride here is {}: make it contiguous",
            c.strides[2]
        ));
    }
    let up = |name: &str, view: &TensorView, i: usize| match u64::try_from(view.strides[i]) {
        Ok(stride) => Ok(Some(stride)),
        Err(_) => call.refuse(format!(
            "the strides of {name} are not negative, as {} is: make it contiguous",
            view.strides[i]
        )),
    };
    let step = |name: &str, view: &TensorView| match count {
        1 => Ok(None),
        _ => up(name, view, 0),
    };
    let row = |name: &str, view: &TensorView| match m {
        1 => Ok(None),
        _ => up(name, view, 1),
    };
    Ok(Problem {
        a_stride: row("a", a)?,
        c_stride: row("c", c)?,
        a_step: step("a", a)?,
        b_step: step("b", b)?,
        c_step: step("c", c)?,
        ..p
    })
}

/// Says nothing of what is as it would be anyway, so that equal problems are the same.
pub(crate) fn plain(p: Problem) -> Problem {
    let bare = |p: &Problem| Problem {
        out: None,
        a_stride: None,
        b_stride: None,
        c_stride: None,
        residual_stride: None,
        up_stride: None,
        a_step: None,
        b_step: None,
        c_step: None,
        ..p.clone()
    };
    let dense = bare(&p);
    let other = |given: Option<u64>, usual: u64| given.filter(|&x| x != usual);
    // One row is as far from the next as it is long.
    let rows = |given: Option<u64>, rows: u64, usual: u64| other(given.filter(|_| rows > 1), usual);
    let strided = Problem {
        out: p.out.filter(|&out| out != dense.out()),
        a_stride: rows(p.a_stride, dense.a().rows, dense.a().stride),
        b_stride: rows(p.b_stride, dense.b().rows, dense.b().stride),
        c_stride: rows(p.c_stride, dense.c().rows, dense.c().stride),
        ..dense
    };
    Problem {
        residual_stride: rows(p.residual_stride, strided.c().rows, strided.c().stride),
        up_stride: rows(p.up_stride, strided.b().rows, strided.b().stride),
        a_step: other(p.a_step, strided.a().step),
        b_step: other(p.b_step, strided.b().step),
        c_step: other(p.c_step, strided.c().step),
        ..strided
    }
}
