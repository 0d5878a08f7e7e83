//! The problem: extents, masks, strides, and the tensors of inputs and outputs.

use serde_json::Value;
use warpline_family::error::FamilyError;
use warpline_family::field::{FieldKind, FieldValue};
use warpline_family::plan::{Address, TensorArg};
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
    /// The corner of the score matrix at which the diagonal of a causal mask ends.
    #[derive(Default)]
    pub enum Corner {
        /// The last query sees all keys
        #[default]
        BottomRight = "bottom-right",
        /// The first query sees the first key only
        TopLeft = "top-left",
    }
}

/// The strides of rows, heads and batches of a tensor, in elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Strides {
    /// From one query or key to the next.
    pub row: u64,
    /// From one head to the next.
    pub head: u64,
    /// From one batch to the next.
    pub batch: u64,
}

impl FieldValue for Strides {
    fn kind() -> FieldKind {
        FieldKind::Number {
            unit: "ROW,HEAD,BATCH",
        }
    }
    fn read(text: &str) -> Result<Self, String> {
        let numbers: Option<Vec<u64>> = text.split(',').map(|x| x.trim().parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[row, head, batch]) => Ok(Self { row, head, batch }),
            _ => Err("three whole numbers with commas: row, head and batch".to_owned()),
        }
    }
    fn json(&self) -> Value {
        format!("{},{},{}", self.row, self.head, self.batch).into()
    }
}

fields! {
    /// The problem: `O = softmax(scale · Q Kᵀ) V` for every batch and head.
    pub struct Problem {
        /// Batches
        pub batch: u32 = 1,
        /// Heads of Q and O
        pub heads: u32,
        /// Heads of K and V, which divide the heads of Q (default: as many)
        pub kv_heads: Option<u32>,
        /// Queries of a head
        pub queries: u32,
        /// Keys of a head
        pub keys: u32,
        /// Elements of a row of Q and K: a multiple of 8 up to 256
        pub dim: u32,
        /// Elements of a row of V and O (default: as many)
        pub dim_v: Option<u32>,
        /// Element type of Q, K, V and O
        pub dtype: ElementType = ElementType::Bf16,
        /// Masks keys behind the diagonal
        pub causal: bool = false,
        /// The corner at which the diagonal ends
        pub corner: Corner = Corner::BottomRight,
        /// The factor of the scores (default: 1/√dim)
        pub scale: Option<f32>,
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
/// The columns of O in a TMA box; rows of a multiple of 64 elements use the double.
const OUT_COLS: u32 = 32;
/// The maximum number of queries or keys of a head.
pub(super) const MAX_LEN: u32 = 1 << 24;
/// The maximum number of heads of all batches.
const MAX_HEADS: u64 = 1 << 20;
/// The maximum number of elements of a tensor.
const MAX_ELEMENTS: u64 = 1 << 38;
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
    pub(super) causal: bool,
    pub(super) lse: bool,
}

impl Class {
    /// Returns the columns of O in a TMA box, which has one swizzle span.
    pub(super) fn out_box(&self) -> u32 {
        match self.cols_v.is_multiple_of(2 * OUT_COLS) {
            true => 2 * OUT_COLS,
            false => OUT_COLS,
        }
    }
}

/// One of the four tensors of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    pub(super) name: &'static str,
    /// Elements of a row.
    pub(super) dim: u32,
    /// Rows, heads and batches.
    pub(super) extents: [u64; 3],
    pub(super) strides: Strides,
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
            dim,
            dim_v: None,
            dtype: ElementType::Bf16,
            causal: false,
            corner: Corner::BottomRight,
            scale: None,
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
            causal: self.causal,
            lse: self.lse,
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

    /// Returns how many keys the first query sees beyond the first one, and how many leading queries see
    /// none, of a causal mask.
    pub(super) fn diagonal(&self) -> [u32; 2] {
        match self.corner {
            Corner::TopLeft => [0, 0],
            Corner::BottomRight => [
                self.keys.saturating_sub(self.queries),
                self.queries.saturating_sub(self.keys),
            ],
        }
    }

    /// Returns the number of keys that a query sees: the first ones.
    pub(super) fn visible_keys(&self, query: u32) -> u32 {
        let [ahead, lead] = self.diagonal();
        match self.causal {
            true => (query + 1 + ahead).saturating_sub(lead).min(self.keys),
            false => self.keys,
        }
    }

    /// Returns Q, K, V and O.
    pub(super) fn rows(&self) -> [Rows; 4] {
        let [q, k] = [
            [self.queries, self.heads, self.batch],
            [self.keys, self.kv_heads(), self.batch],
        ];
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
        for (flag, len) in [("--queries", self.queries), ("--keys", self.keys)] {
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
        self.rows()[..3]
            .iter()
            .map(|rows| self.spec(rows))
            .collect()
    }

    pub(super) fn outputs(&self) -> Vec<TensorSpec> {
        let lse = TensorSpec {
            name: "lse",
            dtype: DType::F32,
            shape: [self.batch, self.heads, self.queries]
                .map(|x| x as usize)
                .into(),
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
                true => vec![batch, len, heads, dim],
                false => vec![rows.elements() as usize],
            },
        }
    }

    /// Returns the floating-point operations of the visible scores.
    pub(super) fn flops(&self) -> f64 {
        let visible = match self.causal {
            false => f64::from(self.queries) * f64::from(self.keys),
            true => {
                let [ahead, lead] = self.diagonal();
                // The rows from `lead` on see ahead + 1, ahead + 2, …, at most all keys.
                let first = f64::from((1 + ahead).min(self.keys));
                let rows = f64::from(self.queries - lead.min(self.queries));
                let growing = rows.min(f64::from(self.keys) - first + 1.0).max(0.0);
                growing * (first + (growing - 1.0) / 2.0) + (rows - growing) * f64::from(self.keys)
            }
        };
        2.0 * visible
            * f64::from(self.dim + self.dim_v())
            * f64::from(self.batch)
            * f64::from(self.heads)
    }
}

impl Rows {
    /// Returns the elements from the first to the last one.
    pub(super) fn elements(&self) -> u64 {
        let Strides { row, head, batch } = self.strides;
        let reach = |extent: u64, stride: u64| (extent - 1).saturating_mul(stride);
        let [rows, heads, batches] = self.extents;
        match self.extents.contains(&0) {
            true => 0,
            false => reach(rows, row)
                .saturating_add(reach(heads, head))
                .saturating_add(reach(batches, batch))
                .saturating_add(self.dim.into()),
        }
    }

    /// Returns whether no two rows share an element; interleaved dimensions count as shared.
    fn is_disjoint(&self) -> bool {
        if self.extents.contains(&0) {
            return true;
        }
        let Strides { row, head, batch } = self.strides;
        let mut dims: Vec<_> = self.extents.into_iter().zip([row, head, batch]).collect();
        dims.retain(|&(extent, _)| extent > 1);
        dims.sort_by_key(|&(_, stride)| stride);
        let mut reach = u64::from(self.dim);
        dims.into_iter().all(|(extent, stride)| {
            let is_disjoint = stride >= reach;
            reach = reach.saturating_add((extent - 1).saturating_mul(stride));
            is_disjoint
        })
    }

    /// Returns the index of the first element of a row.
    pub(super) fn index(&self, [row, head, batch]: [usize; 3]) -> usize {
        let s = self.strides;
        row * s.row as usize + head * s.head as usize + batch * s.batch as usize
    }

    /// Returns the tensor map's run-time part. A tensor without elements has one row of 16 bytes at `empty`.
    pub(super) fn tensor(&self, at: Address, empty: Address, dtype: DType) -> TensorArg {
        let size = dtype.bytes() as u64;
        if self.extents.contains(&0) {
            return TensorArg::strided(
                empty,
                vec![PITCH_BYTES / size, 1, 1, 1],
                vec![PITCH_BYTES; 3],
            );
        }
        let Strides { row, head, batch } = self.strides;
        let mut extents = vec![self.dim.into()];
        extents.extend(self.extents);
        // The stride of a single row, head or batch does not matter, but must be legal.
        let strides = self.extents.iter().zip([row, head, batch]);
        let strides = strides.map(|(&extent, stride)| match extent {
            1 => u64::from(self.dim) * size,
            _ => stride * size,
        });
        TensorArg::strided(at, extents, strides.collect())
    }
}
