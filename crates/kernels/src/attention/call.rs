//! The Python op: signature, and the problem of a call.

use super::bias::BiasStrides;
use super::config::Choice;
use super::problem::{
    AddendType, ElementType, KeyLens, MAX_DIM, MAX_LEN, PITCH_BYTES, Problem, SOFTCAPS,
    is_supported_dim,
};
use super::rows::Strides;
use super::sequence::{KEY_ENDS, LENGTHS, PAGE_ROWS, QUERY_ENDS, TABLE};
use crate::batch_invariant::BATCH_INVARIANT;
use warpline_family::error::FamilyError;
use warpline_family::op::{
    ArgValue, OpArgs, OpOutput, OpParam, OptionalOutput, OutputDim, Signature, TensorView,
};
use warpline_ir::DType;

/// Returns the signature.
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
                "Query i sees the keys up to i + Sk - Sq: the last query sees all keys.",
            ),
            OpParam::optional_pair(
                "window",
                "(left, right): query i sees the keys from i + Sk - Sq - left to i + Sk - Sq + right; -1 for no \
                 limit. With causal, right is 0.",
            ),
            OpParam::optional_number(
                "scale",
                "The factor of the scores, a positive number; 1/√D if omitted.",
            ),
            OpParam::optional_number(
                "softcap",
                "Limits scores: s becomes softcap · tanh(s / softcap), before the bias is added. 0 or None for no \
                 limit.",
            ),
            OpParam::optional(
                "sink",
                "[H] in f32, f16 or bf16: a score for each head that takes its part of the softmax and has no value.",
            ),
            OpParam::optional(
                "bias",
                "Added to the scores; broadcasts to [B, H, Sq, Sk]; f32, f16 or bf16. -inf masks a score. Not with \
                 cu_seqlens or block_table.",
            ),
            OpParam::optional(
                "cu_seqlens_q",
                "int32 [B + 1], ascending from 0: q is [Tq, H, D], and sequence b has its rows from cu_seqlens_q[b] to \
                 cu_seqlens_q[b + 1].",
            ),
            OpParam::optional(
                "cu_seqlens_k",
                "int32 [B + 1]: the same for k and v, [Tk, Hk, D]. With a block table only the number of keys of each \
                 sequence.",
            ),
            OpParam::optional(
                "key_lens",
                "int32 [B]: batch b sees its first key_lens[b] keys only, as in a cache.",
            ),
            OpParam::optional(
                "block_table",
                "int32 [B, N]: k and v are [pages, page, Hk, D]. Key j of batch b is row j % page of page \
                 block_table[b, j // page]. Needs key_lens or cu_seqlens_k.",
            ),
            BATCH_INVARIANT,
        ],
        outputs: vec![OpOutput {
            name: "o",
            dims: &[OutputDim::Leading("q"), OutputDim::Last("v")],
            dtype_of: "q",
            dtype_override: None,
            fixed_dtype: None,
        }],
        optional_output: Some(OptionalOutput {
            variant: "attention_return_lse",
            flag: "return_lse",
            about: "Also returns the natural logarithm of the sum of exponentials of each row's scores, with bias \
                    and sink, in f32 [B, H, Sq], or [H, Tq] with cu_seqlens_q; -inf without a visible key.",
            output: OpOutput {
                name: "lse",
                dims: &[OutputDim::RowsLast("q")],
                dtype_of: "q",
                dtype_override: None,
                fixed_dtype: Some(DType::F32),
            },
        }),
        example: EXAMPLE,
    }
}

/// Returns arguments of a call that has this problem, up to the corner, LSE and the strides of rows.
pub(super) fn args(p: &Problem) -> Vec<ArgValue> {
    let rows = p.rows();
    let tensor = |i: usize| {
        let [len, heads, outer] = rows[i].extents;
        let shape = [outer, len, heads, rows[i].dim.into()];
        let first = usize::from(p.is_packed(&rows[i]));
        ArgValue::Tensor(TensorView::dense(p.dtype.dtype(), &shape[first..], 0))
    };
    let specs = p.sequence_specs();
    let integers = |name: &str| {
        let spec = specs.iter().find(|spec| spec.name == name);
        spec.map_or(ArgValue::None, |spec| {
            let shape: Vec<_> = spec.shape.iter().map(|&n| n as u64).collect();
            ArgValue::Tensor(TensorView::dense(spec.dtype, &shape, 0))
        })
    };
    let number = |x: Option<f32>| x.map_or(ArgValue::None, |x| ArgValue::Number(x.into()));
    let side = |keys: Option<u32>| keys.map_or(-1, i64::from);
    let window = [side(p.window_left), side(p.window_right)];
    let sink = p
        .sink
        .map(|ty| TensorView::dense(ty.dtype(), &[p.heads.into()], 0));
    vec![
        tensor(0),
        tensor(1),
        tensor(2),
        ArgValue::Flag(p.causal),
        match window {
            [-1, -1] => ArgValue::None,
            window => ArgValue::Pair(window),
        },
        number(p.scale),
        number(p.softcap),
        sink.map_or(ArgValue::None, ArgValue::Tensor),
        p.bias_view().map_or(ArgValue::None, ArgValue::Tensor),
        integers(QUERY_ENDS),
        integers(KEY_ENDS),
        integers(LENGTHS),
        integers(TABLE),
        ArgValue::Flag(false),
    ]
}

/// Returns the problem of a call; the config stays open.
pub(super) fn problem_of_call(call: &OpArgs<'_>) -> Result<(Problem, Choice), FamilyError> {
    let tensors = [call.tensor("q")?, call.tensor("k")?, call.tensor("v")?];
    let [q, k, v] = tensors;
    let layout = Layout::of(call)?;
    let [q_outer, queries, heads, dim] = dims(call, "q", q, layout.packed_queries)?;
    let [k_outer, keys, kv_heads, k_dim] = dims(call, "k", k, layout.packed_keys)?;
    let [v_outer, v_len, v_heads, v_dim] = dims(call, "v", v, layout.packed_keys)?;
    let is_single = !layout.packed_queries && !layout.packed_keys && layout.max_pages.is_none();
    if is_single && k_outer != q_outer || k_dim != dim {
        return call.reject(format!(
            "k must be [{q_outer}, Sk, Hk, {dim}] if q is {:?}, not {:?}",
            q.shape, k.shape
        ));
    }
    if [v_outer, v_len, v_heads] != [k_outer, keys, kv_heads] {
        return call.reject(format!(
            "v must be like k, {:?}, up to the last dimension, not {:?}",
            k.shape, v.shape
        ));
    }
    let batch = layout.batch(
        call,
        [
            (q, layout.packed_queries),
            (k, layout.packed_keys || layout.max_pages.is_some()),
        ],
    )?;
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
    let softcap = call.optional_number("softcap").filter(|&x| x != 0.0);
    if let Some(softcap) = softcap.filter(|&x| !(x > 0.0 && x.is_finite())) {
        return call.reject(format!(
            "softcap must be positive and finite, or 0 for no limit, not {softcap}"
        ));
    }
    let [window_left, window_right] = window(call)?;
    let addends = [
        sink(call, heads)?,
        bias(call, [batch, heads, queries, keys])?,
    ];
    if addends[1].is_some() && !is_single {
        return call.reject("bias does not go with cu_seqlens or block_table".into());
    }
    let dtype = supported(call, q.dtype, [dim, v_dim], scale)?;
    let softcap = softcap.map(|softcap| softcap as f32);
    if let Some(softcap) = softcap.filter(|softcap| !SOFTCAPS.contains(softcap)) {
        return call.unsupported(format!(
            "softcap must be from {:e} to {:e}, not {softcap}",
            SOFTCAPS.start(),
            SOFTCAPS.end()
        ));
    }
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
        window_left,
        window_right,
        scale,
        softcap,
        sink: addends[0],
        bias: addends[1],
        lse: call.outs.len() > 1,
        packed_queries: layout.packed_queries,
        packed_keys: layout.packed_keys,
        key_lens: layout.key_lens,
        page: match layout.max_pages {
            Some(_) => Some(count("keys of a page", keys)?),
            None => None,
        },
        max_pages: match layout.max_pages {
            Some(pages) => Some(count("pages", pages)?),
            None => None,
        },
        ..Problem::new(
            count("batches", batch)?,
            count("heads", heads)?,
            [
                count("queries", queries)?,
                count(
                    "keys",
                    if layout.max_pages.is_some() {
                        keys * k_outer
                    } else {
                        keys
                    },
                )?,
            ],
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
    if let Some(view) = call.optional("bias") {
        let strides = bias_strides(call, view)?;
        problem.bias_strides = (strides != problem.bias_strides()).then_some(strides);
        if problem.loads_pairs_of_biases() && !view.is_16_byte_aligned() {
            return call.unsupported_layout(format!(
                "bias starts at {:#x}, which is not a multiple of 16\nhelp: copy it",
                view.address
            ));
        }
    }
    if let Some(page) = problem
        .page
        .filter(|page| page % PAGE_ROWS != 0 || *page == 0)
    {
        return call.unsupported(format!(
            "a page must have a multiple of {PAGE_ROWS} keys, not {page}"
        ));
    }
    if problem.max_pages == Some(0) {
        return call.unsupported("block_table must have a column".into());
    }
    if let Some(lse) = call.outs.get(1).filter(|lse| !lse.is_dense()) {
        return call.unsupported_layout(format!(
            "lse has strides {:?} over shape {:?}; it must be contiguous\nhelp: make it contiguous",
            lse.strides, lse.shape
        ));
    }
    // A dense tensor has the strides that the problem implies.
    let implied = problem.rows().map(|rows| rows.strides);
    let found = |i: usize| (strides[i] != implied[i]).then_some(strides[i]);
    problem.q_strides = found(0);
    problem.k_strides = found(1);
    problem.v_strides = found(2);
    problem.o_strides = found(3);
    if let Err(text) = problem.check_spans() {
        return call.unsupported_layout(text);
    }
    let choice = Choice {
        batch_invariant: call.flag("batch_invariant").then_some(true),
        ..Choice::default()
    };
    Ok((problem, choice))
}

/// Returns the sides of the window.
fn window(call: &OpArgs<'_>) -> Result<[Option<u32>; 2], FamilyError> {
    let Some(sides) = call.optional_pair("window") else {
        return Ok([None; 2]);
    };
    let side = |keys: i64| match keys {
        -1 => Some(None),
        ..-1 => None,
        // A side beyond all keys limits nothing.
        _ => Some(u32::try_from(keys).ok().filter(|&keys| keys <= MAX_LEN)),
    };
    match sides.map(side) {
        [Some(left), Some(right)] => Ok([left, right]),
        _ => call.reject(format!(
            "window must be (left, right) with whole numbers, or -1 for all keys of a side, not {sides:?}"
        )),
    }
}

/// Returns the element type of the sink.
fn sink(call: &OpArgs<'_>, heads: u64) -> Result<Option<AddendType>, FamilyError> {
    match call.optional("sink") {
        Some(view) if view.shape != [heads] => call.reject(format!(
            "sink must have one element for each of the {heads} heads of q, not the shape {:?}",
            view.shape
        )),
        Some(view) if view.strides != [1] && heads > 1 => call.unsupported_layout(
            "the elements of sink must be contiguous\nhelp: make it contiguous".into(),
        ),
        Some(view) => addend_type(call, "sink", view).map(Some),
        None => Ok(None),
    }
}

/// Returns the element type of the bias, which must broadcast to `shape`.
fn bias(call: &OpArgs<'_>, shape: [u64; 4]) -> Result<Option<AddendType>, FamilyError> {
    let Some(view) = call.optional("bias") else {
        return Ok(None);
    };
    let mut dims = view.shape.iter().rev().zip(shape.iter().rev());
    if view.shape.len() > 4 || !dims.all(|(&dim, &full)| dim == full || dim == 1) {
        return call.reject(format!(
            "bias must broadcast to [B, H, Sq, Sk] = {shape:?}, but its shape is {:?}",
            view.shape
        ));
    }
    addend_type(call, "bias", view).map(Some)
}

fn addend_type(
    call: &OpArgs<'_>,
    name: &str,
    view: &TensorView,
) -> Result<AddendType, FamilyError> {
    let found = AddendType::ALL.iter().find(|ty| ty.dtype() == view.dtype);
    match found {
        Some(&ty) => Ok(ty),
        None => call.reject(format!(
            "{name} must be f32, f16 or bf16, not {}",
            view.dtype
        )),
    }
}

/// Returns the strides of a bias: 0 in broadcast dimensions.
fn bias_strides(call: &OpArgs<'_>, view: &TensorView) -> Result<BiasStrides, FamilyError> {
    let dims = view.shape.iter().zip(&view.strides).rev();
    let strides = dims.map(|(&dim, &stride)| {
        if dim == 1 {
            Ok(0)
        } else {
            u64::try_from(stride)
        }
    });
    let mut strides = strides.chain(std::iter::repeat(Ok(0)));
    let mut next = || strides.next().and_then(Result::ok);
    match [next(), next(), next(), next()] {
        [Some(key), Some(row), Some(head), Some(batch)] => Ok(BiasStrides {
            key,
            row,
            head,
            batch,
        }),
        _ => call.unsupported_layout(format!(
            "bias has negative strides {:?}\nhelp: copy it",
            view.strides
        )),
    }
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

/// Returns the dimensions of a tensor: those outside of rows (batches, pages), rows, heads and elements.
fn dims(
    call: &OpArgs<'_>,
    name: &str,
    view: &TensorView,
    is_packed: bool,
) -> Result<[u64; 4], FamilyError> {
    match (&view.shape[..], is_packed) {
        (&[outer, len, heads, dim], false) => Ok([outer, len, heads, dim]),
        (&[len, heads, dim], true) => Ok([1, len, heads, dim]),
        (_, true) => call.reject(format!(
            "{name} must have 3 dimensions [T, H, D] with cu_seqlens_{}, not {}",
            if name == "q" { "q" } else { "k" },
            view.shape.len()
        )),
        (_, false) => call.reject(format!(
            "{name} must have 4 dimensions {}, not {}",
            match (name, call.optional(TABLE)) {
                ("k" | "v", Some(_)) => "[pages, page, H, D] with block_table",
                _ => "[B, S, H, D]",
            },
            view.shape.len()
        )),
    }
}

/// How the sequences of a call lie in its tensors.
struct Layout {
    packed_queries: bool,
    packed_keys: bool,
    key_lens: Option<KeyLens>,
    /// Columns of the block table.
    max_pages: Option<u64>,
    /// The number of batches that each tensor of integers implies.
    batches: Vec<(&'static str, u64)>,
}

impl Layout {
    fn of(call: &OpArgs<'_>) -> Result<Self, FamilyError> {
        let mut batches = Vec::new();
        for (name, dims) in [(QUERY_ENDS, 1), (KEY_ENDS, 1), (LENGTHS, 1), (TABLE, 2)] {
            let Some(view) = call.optional(name) else {
                continue;
            };
            if view.dtype != DType::I32 {
                return call.reject(format!(
                    "{name} must be int32, not {}\nhelp: convert it with .int()",
                    view.dtype
                ));
            }
            let is_ends = name == QUERY_ENDS || name == KEY_ENDS;
            if view.shape.len() != dims || is_ends && view.shape[0] == 0 {
                return call.reject(format!(
                    "{name} must be {}, not the shape {:?}",
                    match name {
                        TABLE => "[B, N]",
                        LENGTHS => "[B]",
                        _ => "[B + 1]",
                    },
                    view.shape
                ));
            }
            if !view.is_dense() {
                return call.unsupported_layout(format!(
                    "{name} has strides {:?}; it must be contiguous\nhelp: make it contiguous",
                    view.strides
                ));
            }
            batches.push((name, view.shape[0] - u64::from(is_ends)));
        }
        let has = |name| call.optional(name).is_some();
        if has(KEY_ENDS) && has(LENGTHS) {
            return call.reject(
                "cu_seqlens_k and key_lens both tell the number of keys\nhelp: pass one of them"
                    .into(),
            );
        }
        if has(TABLE) && !has(KEY_ENDS) && !has(LENGTHS) {
            return call
                .reject("block_table needs key_lens, the number of keys of each batch".into());
        }
        let packed_keys = has(KEY_ENDS) && !has(TABLE);
        Ok(Self {
            packed_queries: has(QUERY_ENDS),
            packed_keys,
            key_lens: match (has(LENGTHS), has(KEY_ENDS)) {
                (true, _) => Some(KeyLens::Lengths),
                (false, true) if !packed_keys => Some(KeyLens::Ends),
                _ => None,
            },
            max_pages: call.optional(TABLE).map(|table| table.shape[1]),
            batches,
        })
    }

    /// Returns the number of batches, which all tensors must agree about. The flag of a tensor tells
    /// whether its first dimension is not that of batches.
    fn batch(
        &self,
        call: &OpArgs<'_>,
        tensors: [(&TensorView, bool); 2],
    ) -> Result<u64, FamilyError> {
        let own = ["q", "k"].into_iter().zip(tensors);
        let own = own.filter(|(_, (_, is_other))| !is_other);
        let own = own.map(|(name, (view, _))| (name, view.shape[0]));
        let all: Vec<_> = own.chain(self.batches.iter().copied()).collect();
        let (first, batch) = all.first().copied().unwrap_or(("q", 1));
        match all.iter().find(|(_, other)| *other != batch) {
            None => Ok(batch),
            Some((name, other)) => call.reject(format!(
                "{first} has {batch} batches, but {name} has {other}"
            )),
        }
    }
}

/// Returns the strides of a tensor, unless TMA cannot address its rows. The stride of a dimension of
/// length 1 is that of a dense tensor.
fn rows(call: &OpArgs<'_>, name: &str, view: &TensorView) -> Result<Strides, FamilyError> {
    let dense = TensorView::dense(view.dtype, &view.shape, 0).strides;
    let multiple = PITCH_BYTES / view.dtype.bytes() as u64;
    let is_empty = view.elements() == 0;
    // Packed rows have no batches.
    let outer = view.shape.len() - 3;
    let stride = |i: usize| match view.shape[i] {
        _ if is_empty => u64::try_from(dense[i]).ok(),
        1 => u64::try_from(dense[i]).ok(),
        _ => u64::try_from(view.strides[i])
            .ok()
            .filter(|&s| s.is_multiple_of(multiple) && (s > 0 || i == outer + 1)),
    };
    let batch = match outer {
        0 => Some(view.shape.iter().product()),
        _ => stride(0),
    };
    let last = outer + 2;
    let is_dense_row = is_empty || view.shape[last] == 1 || view.strides[last] == 1;
    match (stride(outer), stride(outer + 1), batch) {
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
