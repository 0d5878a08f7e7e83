//! The problem: extents, masks, strides, and the tensors of inputs and outputs.

use super::bias::{BiasClass, BiasStrides};
use super::mask::{Mask, MaskClass};
use super::rows::{Rows, Strides};
use super::sequence::SequenceClass;
use std::ops::RangeInclusive;
use warpline_family::error::FamilyError;
use warpline_family::tensor::TensorSpec;
use warpline_family::{fields, keywords};
use warpline_ir::DType;

keywords! {
    /// The element type of Q, K, V and O.
    #[derive(Default)]
    pub enum ElementType {
        /// bfloat16
        #[default]
        Bf16 = "bf16",
        /// IEEE half precision
        F16 = "f16",
    }
}

impl ElementType {
    /// Returns the element type.
    pub const fn dtype(self) -> DType {
        match self {
            ElementType::Bf16 => DType::Bf16,
            ElementType::F16 => DType::F16,
        }
    }
}

keywords! {
    /// The element type of a sink or a bias.
    pub enum AddendType {
        /// IEEE single precision
        F32 = "f32",
        /// bfloat16
        Bf16 = "bf16",
        /// IEEE half precision
        F16 = "f16",
    }
}

impl AddendType {
    /// Returns the element type.
    pub const fn dtype(self) -> DType {
        match self {
            AddendType::F32 => DType::F32,
            AddendType::Bf16 => DType::Bf16,
            AddendType::F16 => DType::F16,
        }
    }
}

keywords! {
    /// The corner of the score matrix at which the diagonal of a mask ends.
    #[derive(Default)]
    pub enum Corner {
        /// The last query sees all keys
        #[default]
        BottomRight = "bottom-right",
        /// The first query sees the first key only
        TopLeft = "top-left",
    }
}

keywords! {
    /// The tensor that has the number of keys of each batch.
    pub enum KeyLens {
        /// Their number
        Lengths = "lengths",
        /// Their ends, as in packed tensors
        Ends = "ends",
    }
}

fields! {
    /// The problem: `O = softmax(scale · Q Kᵀ) V` for every batch and head.
    pub struct Problem {
        /// Batches, or sequences
        pub batch: u32 = 1,
        /// Heads of Q and O
        pub heads: u32,
        /// Heads of K and V, which divide the heads of Q (default: as many)
        pub kv_heads: Option<u32>,
        /// Queries of a head; of all sequences if they are packed
        pub queries: u32,
        /// Keys of a head; of all sequences if they are packed, of the whole cache if it has pages
        pub keys: u32,
        /// The queries of all sequences lie one after the other; cu_seqlens_q has their ends
        pub packed_queries: bool = false,
        /// The keys of all sequences lie one after the other; cu_seqlens_k has their ends
        pub packed_keys: bool = false,
        /// Each batch has its own number of keys, which key_lens or, in a cache with pages, cu_seqlens_k tells
        pub key_lens: Option<KeyLens>,
        /// Keys of a page: block_table has the pages of each batch (default: no pages)
        pub page: Option<u32>,
        /// Columns of block_table: the maximum pages of a batch
        pub max_pages: Option<u32>,
        /// Elements of a row of Q and K: a multiple of 8 up to 256
        pub dim: u32,
        /// Elements of a row of V and O (default: as many)
        pub dim_v: Option<u32>,
        /// Element type of Q, K, V and O
        pub dtype: ElementType = ElementType::Bf16,
        /// Masks keys behind the diagonal
        pub causal: bool = false,
        /// Keys before the diagonal that a query sees at most (default: all)
        pub window_left: Option<u32> [COUNT],
        /// Keys behind the diagonal that a query sees at most (default: all)
        pub window_right: Option<u32> [COUNT],
        /// The corner at which the diagonal ends
        pub corner: Corner = Corner::BottomRight,
        /// The factor of the scores (default: 1/√dim)
        pub scale: Option<f32>,
        /// Limits scores: s becomes softcap · tanh(scale · s / softcap)
        pub softcap: Option<f32>,
        /// Element type of a score for each head that has no value: it takes a part of the sum only
        pub sink: Option<AddendType>,
        /// Element type of a bias [batch, heads, queries, keys] that is added to the scores
        pub bias: Option<AddendType>,
        /// Strides of the bias (default: dense)
        pub bias_strides: Option<BiasStrides> [ELEMENTS],
        /// Also returns the logarithm of the sum of exponentials of each row, in f32
        pub lse: bool = false,
        /// Strides of Q (default: dense, [batch, queries, heads, dim])
        pub q_strides: Option<Strides> [ELEMENTS],
        /// Strides of K (default: dense, [batch, keys, heads, dim])
        pub k_strides: Option<Strides> [ELEMENTS],
        /// Strides of V (default: dense, [batch, keys, heads, dim])
        pub v_strides: Option<Strides> [ELEMENTS],
        /// Strides of O (default: dense, [batch, queries, heads, dim])
        pub o_strides: Option<Strides> [ELEMENTS],
    }
}

/// The maximum elements of a row.
pub(super) const MAX_DIM: u32 = 256;
/// The elements of a row that one wgmma multiplies.
const K_STEP: u32 = 16;
/// The columns of O in a TMA box; twice as many if a row has a multiple of 64 elements.
const OUT_COLS: u32 = 32;
/// The maximum number of queries or keys of a head.
pub(super) const MAX_LEN: u32 = 1 << 24;
/// The maximum number of heads of all batches.
pub(super) const MAX_HEADS: u64 = 1 << 20;
/// The maximum number of elements of a tensor.
const MAX_ELEMENTS: u64 = 1 << 38;
/// The range of softcaps. tanh has an absolute error of 2⁻²², which a softcap multiplies.
pub(super) const SOFTCAPS: RangeInclusive<f32> = 1e-4..=1e4;
/// TMA reads rows that start on this many bytes.
pub(super) const PITCH_BYTES: u64 = 16;

/// The part of a problem that is compiled in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Class {
    pub(super) dtype: ElementType,
    /// Columns of Q and K that are multiplied: the elements of a row, and zeros.
    pub(super) cols: u32,
    /// Columns of V and O.
    pub(super) cols_v: u32,
    pub(super) mask: MaskClass,
    pub(super) softcap: bool,
    pub(super) sink: Option<AddendType>,
    pub(super) bias: Option<BiasClass>,
    pub(super) lse: bool,
    /// How sequences lie in the tensors; `None` if all batches have the same extents.
    pub(super) sequences: Option<SequenceClass>,
    /// Whether no block of keys has a masked score: see [`Config::class`](super::config::Config::class).
    pub(super) whole_blocks: bool,
}

impl Class {
    /// Returns whether a query may see some keys only.
    pub(super) fn is_masked(&self) -> bool {
        self.mask != MaskClass::default()
    }

    /// Returns the columns of O in a TMA box, which has one swizzle span.
    pub(super) fn out_box(&self) -> u32 {
        match self.cols_v.is_multiple_of(2 * OUT_COLS) {
            true => 2 * OUT_COLS,
            false => OUT_COLS,
        }
    }
}

/// Returns whether a kernel exists for rows of `dim` elements: TMA reads rows of whole 16 bytes.
pub(super) fn is_supported_dim(dim: u64) -> bool {
    dim.is_multiple_of(8) && (8..=MAX_DIM.into()).contains(&dim)
}

impl Problem {
    /// Returns a full-attention problem with dense tensors.
    pub fn new(batch: u32, heads: u32, [queries, keys]: [u32; 2], dim: u32) -> Self {
        Self {
            batch,
            heads,
            kv_heads: None,
            queries,
            keys,
            packed_queries: false,
            packed_keys: false,
            key_lens: None,
            page: None,
            max_pages: None,
            dim,
            dim_v: None,
            dtype: ElementType::Bf16,
            causal: false,
            window_left: None,
            window_right: None,
            corner: Corner::BottomRight,
            scale: None,
            softcap: None,
            sink: None,
            bias: None,
            bias_strides: None,
            lse: false,
            q_strides: None,
            k_strides: None,
            v_strides: None,
            o_strides: None,
        }
    }

    pub(super) fn class(&self) -> Class {
        Class {
            dtype: self.dtype,
            cols: self.dim.next_multiple_of(K_STEP),
            cols_v: self.dim_v().next_multiple_of(OUT_COLS),
            mask: self.mask_class(),
            softcap: self.softcap.is_some(),
            sink: self.sink,
            bias: self.bias_class(),
            lse: self.lse,
            sequences: self.sequence_class(),
            whole_blocks: false,
        }
    }

    /// Returns the heads of K and V.
    pub(super) fn kv_heads(&self) -> u32 {
        self.kv_heads.unwrap_or(self.heads)
    }

    /// Returns the elements of a row of V and O.
    pub(super) fn dim_v(&self) -> u32 {
        self.dim_v.unwrap_or(self.dim)
    }

    /// Returns the factor of the scores.
    pub(super) fn scale(&self) -> f64 {
        match self.scale {
            Some(scale) => scale.into(),
            None => 1.0 / f64::from(self.dim).sqrt(),
        }
    }

    /// Returns the maximum distance of a key behind the diagonal.
    pub(super) fn right(&self) -> Option<u32> {
        match self.causal {
            true => Some(0),
            false => self.window_right,
        }
    }

    /// Returns the mask of `causal` and the window for a batch of these extents.
    pub(super) fn mask(&self, [queries, keys]: [u32; 2]) -> Mask {
        let corner = match self.corner {
            Corner::TopLeft => 0,
            Corner::BottomRight => i64::from(keys) - i64::from(queries),
        };
        let first = self.window_left.map(|left| corner - i64::from(left));
        let end = self.right().map(|right| corner + i64::from(right) + 1);
        Mask::new(first, end, queries, keys)
    }

    fn mask_class(&self) -> MaskClass {
        match self.sequence_class() {
            None => self.mask([self.queries, self.keys]).into(),
            // The extents of a sequence decide what a diagonal restricts.
            Some(_) => MaskClass {
                first: self.window_left.is_some(),
                end: self.right().is_some(),
            },
        }
    }

    /// Returns the queries and keys of a batch: their mean if sequences are packed, the maximum of keys if
    /// the cache has pages.
    pub(super) fn typical_extents(&self) -> [u32; 2] {
        let mean = |all: u32, is_packed: bool| match is_packed {
            true => all.div_ceil(self.batch.max(1)),
            false => all,
        };
        let keys = mean(self.max_keys(), self.packed_keys);
        [mean(self.queries, self.packed_queries), keys]
    }

    /// Returns the maximum number of keys of a batch.
    pub(super) fn max_keys(&self) -> u32 {
        match (self.page, self.max_pages) {
            (Some(page), Some(pages)) => page.saturating_mul(pages).min(MAX_LEN),
            _ => self.keys,
        }
    }

    /// Returns the keys that a query sees in the mean.
    pub(super) fn visible_keys(&self) -> f64 {
        let [queries, _] = self.typical_extents();
        self.visible_scores() / f64::from(queries.max(1))
    }

    /// Returns the visible scores of all queries of a head in one batch.
    pub(super) fn visible_scores(&self) -> f64 {
        let extents = self.typical_extents();
        let [queries, keys] = extents;
        self.mask(extents).visible_scores(queries, keys)
    }

    /// Returns Q, K, V and O.
    pub(super) fn rows(&self) -> [Rows; 4] {
        let q = match self.packed_queries {
            true => [self.queries, self.heads, 1],
            false => [self.queries, self.heads, self.batch],
        };
        let k = match self.page {
            Some(page) => [page, self.kv_heads(), self.keys / page.max(1)],
            None if self.packed_keys => [self.keys, self.kv_heads(), 1],
            None => [self.keys, self.kv_heads(), self.batch],
        };
        let rows = |name, dim: u32, extents: [u32; 3], strides: Option<Strides>| {
            let extents = extents.map(u64::from);
            let [len, heads, _] = extents;
            let row = u64::from(dim);
            let dense = Strides {
                row: heads * row,
                head: row,
                batch: len * heads * row,
            };
            Rows {
                name,
                dim,
                extents,
                strides: strides.unwrap_or(dense),
            }
        };
        [
            rows("q", self.dim, q, self.q_strides),
            rows("k", self.dim, k, self.k_strides),
            rows("v", self.dim_v(), k, self.v_strides),
            rows("o", self.dim_v(), q, self.o_strides),
        ]
    }

    pub(super) fn check(&self) -> Result<(), FamilyError> {
        let reject = |text: String| Err(FamilyError::Problem(text));
        for (flag, dim) in [("--dim", self.dim), ("--dim-v", self.dim_v())] {
            if !is_supported_dim(dim.into()) {
                return reject(format!(
                    "{flag} is {dim}; it must be a multiple of 8 from 8 to {MAX_DIM}"
                ));
            }
        }
        let kv_heads = self.kv_heads();
        if kv_heads == 0 && self.heads > 0 || kv_heads > 0 && !self.heads.is_multiple_of(kv_heads) {
            return reject(format!(
                "--heads is {}, --kv-heads {kv_heads}; heads must be a multiple of kv-heads",
                self.heads
            ));
        }
        if !self.scale().is_finite() || self.scale() <= 0.0 {
            return reject(format!(
                "--scale is {}; it must be a positive number",
                self.scale()
            ));
        }
        if let Some(softcap) = self.softcap.filter(|x| !SOFTCAPS.contains(x)) {
            return reject(format!(
                "--softcap is {softcap}; it must be from {:e} to {:e}",
                SOFTCAPS.start(),
                SOFTCAPS.end()
            ));
        }
        self.check_bias()?;
        self.check_sequences()?;
        // The pages of a cache may have more keys than a batch can see.
        let keys = if self.page.is_some() { 0 } else { self.keys };
        for (flag, len) in [("--queries", self.queries), ("--keys", keys)] {
            if len > MAX_LEN {
                return reject(format!("{flag} is {len}; it must be at most {MAX_LEN}"));
            }
        }
        let heads = u64::from(self.batch) * u64::from(self.heads);
        if heads > MAX_HEADS {
            return reject(format!(
                "--batch times --heads is {heads}; it must be at most {MAX_HEADS}"
            ));
        }
        self.rows()
            .iter()
            .try_for_each(|rows| self.check_rows(rows))
    }

    /// Rejects rows that overlap, or that TMA cannot address.
    fn check_rows(&self, rows: &Rows) -> Result<(), FamilyError> {
        let reject = |text: String| Err(FamilyError::Problem(text));
        let (name, Strides { row, head, batch }) = (rows.name, rows.strides);
        let size = self.dtype.dtype().bytes() as u64;
        for (what, stride) in [("row", row), ("head", head), ("batch", batch)] {
            if !(stride * size).is_multiple_of(PITCH_BYTES) {
                return reject(format!(
                    "the {what} stride of {name} is {stride} elements; it must be a multiple of {}",
                    PITCH_BYTES / size
                ));
            }
        }
        if name == "o" && !rows.is_disjoint() {
            return reject(format!(
                "the rows of o overlap: strides {row}, {head} and {batch} for rows, heads and batches of {} elements",
                rows.dim
            ));
        }
        if rows.elements() > MAX_ELEMENTS {
            return reject(format!("{name} has more than {MAX_ELEMENTS} elements"));
        }
        Ok(())
    }

    pub(super) fn inputs(&self) -> Vec<TensorSpec> {
        let sink = self
            .sink
            .map(|sink| TensorSpec::new("sink", sink.dtype(), &[self.heads]));
        let rows = self.rows();
        let rows = rows[..3].iter().map(|rows| self.spec(rows));
        let addends = sink.into_iter().chain(self.bias_spec());
        rows.chain(addends).chain(self.sequence_specs()).collect()
    }

    pub(super) fn outputs(&self) -> Vec<TensorSpec> {
        let [len, heads, batch] = self.rows()[3].extents;
        let lse = match self.packed_queries {
            true => TensorSpec::new("lse", DType::F32, &[heads, len]),
            false => TensorSpec::new("lse", DType::F32, &[batch, heads, len]),
        };
        let o = self.spec(&self.rows()[3]);
        std::iter::once(o).chain(self.lse.then_some(lse)).collect()
    }

    fn spec(&self, rows: &Rows) -> TensorSpec {
        let [len, heads, batch] = rows.extents.map(|x| x as usize);
        let dim = rows.dim as usize;
        let strides = rows.strides;
        let dense = strides.head == dim as u64
            && strides.row == (heads * dim) as u64
            && strides.batch == (len * heads * dim) as u64;
        TensorSpec {
            name: rows.name,
            dtype: self.dtype.dtype(),
            shape: match dense {
                true if self.is_packed(rows) => vec![len, heads, dim],
                true => vec![batch, len, heads, dim],
                false => vec![rows.elements() as usize],
            },
        }
    }

    /// Returns the floating-point operations of the visible scores.
    pub(super) fn flops(&self) -> f64 {
        2.0 * self.visible_scores()
            * f64::from(self.dim + self.dim_v())
            * f64::from(self.batch)
            * f64::from(self.heads)
    }
}
