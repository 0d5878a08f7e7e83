//! The Python op: signature, and the problem of a call.

use super::config::Choice;
use super::problem::{ElementType, MAX_DIM, PITCH_BYTES, Problem, is_supported_dim};
use super::rows::Strides;
use crate::batch_invariant::BATCH_INVARIANT;
use warpline_family::error::FamilyError;
use warpline_family::op::{ArgValue, OpArgs, OpOutput, OpParam, OutputDim, Signature, TensorView};
use warpline_ir::DType;

/// The dimensions of Q, K, V and O.
const SHAPE: &str = "[B, S, H, D]";

/// Returns the signature `attention(q, k, v, causal, scale, batch_invariant)`.
pub(super) fn signature() -> Signature {
    Signature {
        name: "attention",
        about: "O = softmax(scale · Q Kᵀ) V for every batch and head",
        params: vec![
            OpParam::tensor(
                "q",
                "[B, Sq, H, D] in f16 or bf16; D is a multiple of 8 up to 256. Any strides with a dense last \
                 dimension and rows that start on 16 bytes; other layouts are copied.",
            ),
            OpParam::tensor("k", "[B, Sk, Hk, D]; Hk divides H."),
            OpParam::tensor("v", "[B, Sk, Hk, Dv]; Dv is a multiple of 8 up to 256."),
            OpParam::flag(
                "causal",
                "Masks keys behind the diagonal, which ends at the last query and the last key.",
            ),
            OpParam::optional_number(
                "scale",
                "The factor of the scores, a positive number; 1/√D if omitted.",
            ),
            BATCH_INVARIANT,
        ],
        outputs: vec![OpOutput {
            name: "o",
            dims: &[OutputDim::Leading("q"), OutputDim::Last("v")],
            dtype_of: "q",
            dtype_override: None,
        }],
        example: EXAMPLE,
    }
}

/// Returns dense arguments of a call that has this problem, up to strides, corner and LSE.
pub(super) fn args(p: &Problem) -> Vec<ArgValue> {
    let tensor = |[len, heads, dim]: [u32; 3]| {
        let shape = [p.batch, len, heads, dim].map(u64::from);
        ArgValue::Tensor(TensorView::dense(p.dtype.dtype(), &shape, 0))
    };
    vec![
        tensor([p.queries, p.heads, p.dim]),
        tensor([p.keys, p.kv_heads(), p.dim]),
        tensor([p.keys, p.kv_heads(), p.dim_v()]),
        ArgValue::Flag(p.causal),
        p.scale
            .map_or(ArgValue::None, |scale| ArgValue::Number(scale.into())),
        ArgValue::Flag(false),
    ]
}

/// Returns the problem of a call; the config stays open.
pub(super) fn problem_of_call(call: &OpArgs<'_>) -> Result<(Problem, Choice), FamilyError> {
    let tensors = [call.tensor("q")?, call.tensor("k")?, call.tensor("v")?];
    let [q, k, v] = tensors;
    let [batch, queries, heads, dim] = dims(call, "q", q)?;
    let [k_batch, keys, kv_heads, k_dim] = dims(call, "k", k)?;
    let [v_batch, v_len, v_heads, v_dim] = dims(call, "v", v)?;
    if (k_batch, k_dim) != (batch, dim) {
        return call.reject(format!(
            "k must be [{batch}, Sk, Hk, {dim}] if q is {:?}, not {:?}",
            q.shape, k.shape
        ));
    }
    if [v_batch, v_len, v_heads] != [k_batch, keys, kv_heads] {
        return call.reject(format!(
            "v must be [{batch}, {keys}, {kv_heads}, D] if k is {:?}, not {:?}",
            k.shape, v.shape
        ));
    }
    if kv_heads == 0 && heads > 0 || kv_heads > 0 && !heads.is_multiple_of(kv_heads) {
        return call.reject(format!(
            "q has {heads} heads and k {kv_heads}; the heads of q must be a multiple of those of k"
        ));
    }
    for (name, view) in [("k", k), ("v", v)] {
        if view.dtype != q.dtype {
            return call.reject(format!(
                "{name} must be {} like q, not {}",
                q.dtype, view.dtype
            ));
        }
    }
    let scale = call.optional_number("scale").map(|scale| scale as f32);
    if scale.is_some_and(|scale| scale.is_nan()) {
        return call.reject("scale must be a number, not NaN".into());
    }
    let dtype = supported(call, q.dtype, [dim, v_dim], scale)?;
    let count = |what: &str, n: u64| match u32::try_from(n) {
        Ok(n) => Ok(n),
        Err(_) => call.unsupported(format!(
            "{n} {what} are more than the limit of {}",
            u32::MAX
        )),
    };
    let mut strides = Vec::new();
    for (name, view) in ["q", "k", "v", "o"]
        .into_iter()
        .zip(tensors.into_iter().chain(call.outs))
    {
        strides.push(rows(call, name, view)?);
    }
    let mut problem = Problem {
        dim_v: unless_equal(count("elements", v_dim)?, dim),
        kv_heads: unless_equal(count("heads", kv_heads)?, heads),
        dtype,
        causal: call.flag("causal"),
        scale,
        ..Problem::new(
            count("batches", batch)?,
            count("heads", heads)?,
            [count("queries", queries)?, count("keys", keys)?],
            count("elements", dim)?,
        )
    };
    // K and V may be one head that torch has expanded; no other tensor repeats its rows.
    match [0, 1, 2, 3].map(|i| strides[i].head == 0) {
        [false, true, true, false] => problem.kv_heads = unless_equal(1, heads),
        [false, false, false, false] => (),
        _ => {
            return call.unsupported_layout(
                "the heads of a tensor have stride 0\nhelp: make it contiguous".into(),
            );
        }
    }
    // A dense tensor has the strides that the problem implies.
    let implied = problem.rows().map(|rows| rows.strides);
    let found = |i: usize| (strides[i] != implied[i]).then_some(strides[i]);
    problem.q_strides = found(0);
    problem.k_strides = found(1);
    problem.v_strides = found(2);
    problem.o_strides = found(3);
    let choice = Choice {
        batch_invariant: call.flag("batch_invariant").then_some(true),
        ..Choice::default()
    };
    Ok((problem, choice))
}

/// Returns a size unless it is the default.
fn unless_equal(size: u32, default: u64) -> Option<u32> {
    (u64::from(size) != default).then_some(size)
}

/// Returns the element type of a call, unless no kernel supports it.
fn supported(
    call: &OpArgs<'_>,
    dtype: DType,
    [dim, v_dim]: [u64; 2],
    scale: Option<f32>,
) -> Result<ElementType, FamilyError> {
    let found = ElementType::ALL.iter().find(|t| t.dtype() == dtype);
    let Some(&found) = found else {
        return match dtype {
            DType::F32 => call.unsupported(format!("q must be f16 or bf16, not {dtype}")),
            _ => call.reject(format!("q must be f16 or bf16, not {dtype}")),
        };
    };
    for (name, dim) in [("q", dim), ("v", v_dim)] {
        if !is_supported_dim(dim) {
            return call.unsupported(format!(
                "rows of {name} must have a multiple of 8 elements up to {MAX_DIM}, not {dim}"
            ));
        }
    }
    match scale {
        Some(scale) if !(scale > 0.0 && scale.is_finite()) => {
            call.unsupported(format!("scale must be positive and finite, not {scale}"))
        }
        _ => Ok(found),
    }
}

/// Returns the dimensions of a tensor.
fn dims(call: &OpArgs<'_>, name: &str, view: &TensorView) -> Result<[u64; 4], FamilyError> {
    match view.shape[..].try_into() {
        Ok(sides) => Ok(sides),
        Err(_) => call.reject(format!(
            "{name} must have 4 dimensions {SHAPE}, not {}",
            view.shape.len()
        )),
    }
}

/// Returns the strides of a tensor, unless TMA cannot address its rows. The stride of a dimension of
/// length 1 is that of a dense tensor.
fn rows(call: &OpArgs<'_>, name: &str, view: &TensorView) -> Result<Strides, FamilyError> {
    let dense = TensorView::dense(view.dtype, &view.shape, 0).strides;
    let multiple = PITCH_BYTES / view.dtype.bytes() as u64;
    let is_empty = view.elements() == 0;
    let stride = |i: usize| match view.shape[i] {
        _ if is_empty => u64::try_from(dense[i]).ok(),
        1 => u64::try_from(dense[i]).ok(),
        _ => u64::try_from(view.strides[i])
            .ok()
            .filter(|&s| s.is_multiple_of(multiple) && (s > 0 || i == 2)),
    };
    let is_dense_row = is_empty || view.shape[3] == 1 || view.strides[3] == 1;
    match (stride(1), stride(2), stride(0)) {
        (Some(row), Some(head), Some(batch)) if is_dense_row && view.is_16_byte_aligned() => {
            Ok(Strides { row, head, batch })
        }
        _ => call.unsupported_layout(format!(
            "{name} starts at {:#x} and has strides {:?} over shape {:?}; its last dimension must be contiguous, \
             and its rows must start on {PITCH_BYTES} bytes\nhelp: make it contiguous",
            view.address, view.strides, view.shape
        )),
    }
}

const EXAMPLE: &str = "\
>>> q, v = np.zeros((1, 1, 2, 64), np.float16), np.ones((1, 3, 1, 64), np.float16)
>>> warpline.attention(q, np.zeros((1, 3, 1, 64), np.float16), np.arange(1, 4, dtype=np.float16)[:, None, None] * v)[0, 0, :, 0]
array([2., 2.], dtype=float16)";
