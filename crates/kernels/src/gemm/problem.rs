//! The problem of a GEMM.

use super::access::{GatherUnit, OperandAccess};
use crate::weights::WeightLayout;
use warpline_family::error::FamilyError;
use warpline_family::float::FloatType;
use warpline_family::tensor::TensorSpec;
use warpline_family::{fields, keywords};
use warpline_ir::DType;

fields! {
    /// The problem: `C[M, N] = epilogue(A[M, K] · B[N, K]ᵀ)`, for one GEMM or for a batch.
    pub struct Problem {
        /// Rows of A and C
        pub m: u32,
        /// Columns of C
        pub n: u32,
        /// Columns of A and B: the summed dimension
        pub k: u32,
        /// Element type of A and B (e5m2: A in e5m2, B in e4m3)
        pub dtype: OperandType,
        /// Element type of C (default: that of A; bf16 for fp8)
        pub out: Option<FloatType>,
        /// Memory layout of B
        pub layout: OperandLayout = OperandLayout::default(),
        /// Memory layout of A
        pub a_layout: ALayout = ALayout::default(),
        /// Accumulation of fp8
        pub accumulation: Accumulation = Accumulation::default(),
        /// Adds a bias to each column, in the type of C
        pub bias: bool = false,
        /// Function applied to each accumulator
        pub activation: Activation = Activation::default(),
        /// Adds a matrix of the type and shape of C after the activation
        pub residual: bool = false,
        /// Also returns the sum of each row of C before rounding, in f32
        pub row_sums: bool = false,
        /// Also returns the sum of each column of C before rounding, in f32
        pub col_sums: bool = false,
        /// Also returns the maximum of |C| before rounding, in f32
        pub amax: bool = false,
        /// Factor that multiplies every accumulator before bias and activation
        pub scale: Option<f32>,
        /// Reads a scale of A and a scale of B, one f32 each, from global memory
        pub scales: bool = false,
        /// Number of GEMMs, each with its own A, B and C
        pub batch: Option<u32>,
        /// Row stride of A (default: dense)
        pub a_stride: Option<u64> [ELEMENTS],
        /// Row stride of B (default: dense)
        pub b_stride: Option<u64> [ELEMENTS],
        /// Row stride of C (default: dense)
        pub c_stride: Option<u64> [ELEMENTS],
        /// Row stride of the residual (default: that of C)
        pub residual_stride: Option<u64> [ELEMENTS],
        /// Batch stride of A (default: dense; 0: all GEMMs share A)
        pub a_batch_stride: Option<u64> [ELEMENTS],
        /// Batch stride of B (default: dense; 0: all GEMMs share B)
        pub b_batch_stride: Option<u64> [ELEMENTS],
        /// Batch stride of C and of the residual (default: dense)
        pub c_batch_stride: Option<u64> [ELEMENTS],
        /// Distance between neighbors in a row of A (default: 1)
        pub a_inner_stride: Option<u64> [ELEMENTS],
        /// Distance between neighbors in a row of B (default: 1)
        pub b_inner_stride: Option<u64> [ELEMENTS],
        /// Alignment of the address of A (default: 16)
        pub a_align: Option<u32> [BYTES],
        /// Alignment of the address of B (default: 16)
        pub b_align: Option<u32> [BYTES],
        /// Alignment of the address of C (default: 16)
        pub c_align: Option<u32> [BYTES],
        /// Alignment of the addresses of bias and residual (default: 16)
        pub epilogue_align: Option<u32> [BYTES],
        /// Layout of gate and up in a gated GEMM, `activation(A · Bᵀ) ∘ (A · B₂ᵀ)`. The family
        /// `dual-gemm` sets it.
        #[doc(hidden)]
        pub up: Option<WeightLayout>,
        /// Row stride of up (default: that of B).
        #[doc(hidden)]
        pub up_stride: Option<u64>,
    }
}

keywords! {
    /// The element types of A and B.
    pub enum OperandType {
        /// bfloat16
        Bf16 = "bf16",
        /// IEEE binary16
        F16 = "f16" | "fp16",
        /// fp8 with 4 exponent bits
        E4m3 = "e4m3",
        /// fp8 with 5 exponent bits (A only; B is e4m3)
        E5m2 = "e5m2",
        /// f32, rounded to tf32 (10 bits of mantissa) before it is multiplied
        F32 = "f32" | "tf32",
    }
}

impl OperandType {
    /// Returns the element type of A.
    pub fn a_dtype(self) -> DType {
        match self {
            OperandType::Bf16 => DType::Bf16,
            OperandType::F16 => DType::F16,
            OperandType::E4m3 => DType::E4m3,
            OperandType::E5m2 => DType::E5m2,
            OperandType::F32 => DType::F32,
        }
    }

    /// Returns the element type of B.
    pub fn b_dtype(self) -> DType {
        match self {
            OperandType::E5m2 => DType::E4m3,
            same => same.a_dtype(),
        }
    }

    /// Returns whether the elements are fp8.
    pub fn is_fp8(self) -> bool {
        self.a_dtype().bytes() == 1
    }

    /// Returns the operand type whose A has that element type.
    pub fn from_dtype(dtype: DType) -> Option<Self> {
        Self::ALL.iter().copied().find(|f| f.a_dtype() == dtype)
    }
}

keywords! {
    /// Memory layout of A.
    #[derive(Default)]
    pub enum ALayout {
        /// [M, K], K innermost
        #[default]
        Mk = "mk",
        /// [K, M], M innermost
        Km = "km",
    }
}

keywords! {
    /// Memory layout of B.
    #[derive(Default)]
    pub enum OperandLayout {
        /// [N, K], K innermost, as the weight of a linear layer
        #[default]
        Nk = "nk",
        /// [K, N], N innermost
        Kn = "kn",
    }
}

keywords! {
    /// Accumulation of fp8.
    #[derive(Default)]
    pub enum Accumulation {
        /// The tensor cores accumulate all of K; for fp8 they keep 13 bits below the leading bit of the largest term
        #[default]
        Fast = "fast",
        /// Adds the tensor cores' partial result to an f32 accumulator every 128 elements of K; fp8 only
        Promoted = "promoted",
    }
}

keywords! {
    /// The function applied to each accumulator.
    #[derive(Default)]
    pub enum Activation {
        /// The identity
        #[default]
        None = "none",
        /// max(x, 0)
        Relu = "relu",
        /// x · Φ(x), exact (erf)
        GeluErf = "gelu-erf",
        /// x · Φ(x), tanh approximation
        GeluTanh = "gelu-tanh",
        /// x / (1 + e⁻ˣ)
        Silu = "silu",
        /// 1 / (1 + e⁻ˣ)
        Sigmoid = "sigmoid",
    }
}

/// The epilogue ops that are compiled in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct EpilogueOps {
    /// A launch parameter multiplies the accumulators.
    pub(super) scale: bool,
    /// Scales in memory multiply the accumulators: one of A, and one of each B operand.
    pub(super) scales: bool,
    pub(super) bias: bool,
    pub(super) activation: Activation,
    pub(super) residual: bool,
    pub(super) row_sums: bool,
    pub(super) col_sums: bool,
    pub(super) amax: bool,
    /// Bias and residual are loaded element by element, because pairs are not aligned.
    pub(super) by_element: bool,
}

impl EpilogueOps {
    /// Returns the reductions of C, in the order of the outputs.
    pub(super) fn reductions(&self) -> Vec<Reduction> {
        let all = [
            (self.row_sums, Reduction::RowSums),
            (self.col_sums, Reduction::ColSums),
            (self.amax, Reduction::Amax),
        ];
        let enabled = all.into_iter().filter(|(is_enabled, _)| *is_enabled);
        enabled.map(|(_, reduction)| reduction).collect()
    }
}

/// A reduction of C.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Reduction {
    /// The sum of each row.
    RowSums,
    /// The sum of each column.
    ColSums,
    /// The maximum of |C|.
    Amax,
}

impl Reduction {
    /// Returns the name of the output.
    pub(super) fn name(self) -> &'static str {
        match self {
            Reduction::RowSums => "row_sums",
            Reduction::ColSums => "col_sums",
            Reduction::Amax => "amax",
        }
    }

    /// Returns the elements of the output.
    pub(super) fn len(self, p: &Problem) -> u32 {
        match self {
            Reduction::RowSums => p.m,
            Reduction::ColSums => p.n,
            Reduction::Amax => 1,
        }
    }
}

/// The part of a problem that is compiled in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Class {
    pub(super) dtype: OperandType,
    pub(super) out: FloatType,
    pub(super) a: OperandAccess,
    /// Access to B, or to gate and up.
    pub(super) b: OperandAccess,
    /// Whether C is stored element by element, because TMA cannot address it.
    pub(super) c_by_element: bool,
    pub(super) accumulation: Accumulation,
    pub(super) epilogue: EpilogueOps,
    pub(super) batched: bool,
    /// Layout of gate and up in a gated GEMM: separate (also for one concatenated tensor) or
    /// interleaved.
    pub(super) up: Option<WeightLayout>,
}

impl Class {
    /// Returns the number of B operands: 2 for gate and up.
    pub(super) fn b_operands(&self) -> u32 {
        1 + u32::from(self.up.is_some())
    }

    /// Returns whether the producer gathers an operand, instead of loading both by TMA.
    pub(super) fn gathers(&self) -> bool {
        self.a.gather.is_some() || self.b.gather.is_some()
    }
}

/// A batch of row-major matrices in memory; both strides are in elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Matrix {
    pub(super) name: &'static str,
    pub(super) dtype: DType,
    pub(super) rows: u64,
    pub(super) cols: u64,
    pub(super) stride: u64,
    /// Distance between neighbors in a row.
    pub(super) inner_stride: u64,
    pub(super) batch: u64,
    pub(super) batch_stride: u64,
    /// Alignment of the address in bytes.
    pub(super) align: u32,
}

impl Matrix {
    /// Returns whether all GEMMs of the batch share the matrix.
    pub(super) fn is_shared(&self) -> bool {
        self.batch > 1 && self.batch_stride == 0
    }

    /// Returns the number of elements from the first to the last of a row.
    fn row_len(&self) -> u64 {
        match self.cols {
            0 => 0,
            n => (n - 1).saturating_mul(self.inner_stride).saturating_add(1),
        }
    }

    /// Returns the number of elements from the first to the last of one matrix.
    fn matrix_len(&self) -> u64 {
        match self.rows {
            0 => 0,
            n => (n - 1)
                .saturating_mul(self.stride)
                .saturating_add(self.row_len()),
        }
    }

    /// Returns the tensor that holds the matrices, including row padding and gaps between matrices.
    pub(super) fn spec(&self, batched: bool) -> TensorSpec {
        let [batch, rows, stride, batch_stride] =
            [self.batch, self.rows, self.stride, self.batch_stride].map(|n| n as usize);
        let (row_len, matrix_len) = (self.row_len() as usize, self.matrix_len() as usize);
        let matrix = match stride < row_len {
            true => vec![matrix_len],
            false => vec![rows, stride],
        };
        TensorSpec {
            name: self.name,
            dtype: self.dtype,
            shape: match batched && !self.is_shared() {
                true if stride < row_len || batch_stride < rows * stride => {
                    vec![(batch - 1) * batch_stride + matrix_len]
                }
                true if batch_stride == rows * stride => vec![batch, rows, stride],
                true => vec![batch, batch_stride],
                false => matrix,
            },
        }
    }

    /// Returns whether TMA can address the matrices: rows start on 16 bytes and do not overlap.
    pub(super) fn fits_tma(&self) -> bool {
        let bytes = |elements: u64| elements.saturating_mul(self.dtype.bytes() as u64);
        let is_legal_stride = |stride: u64| {
            bytes(stride).is_multiple_of(TMA_ALIGNMENT) && bytes(stride) < MAX_TMA_STRIDE
        };
        let rows = self.rows <= 1 || (is_legal_stride(self.stride) && self.stride >= self.cols);
        let batch = self.batch <= 1 || self.is_shared() || is_legal_stride(self.batch_stride);
        rows && batch
            && self.has_dense_rows()
            && u64::from(self.align).is_multiple_of(TMA_ALIGNMENT)
    }

    /// Returns whether TMA can store the matrices. It writes whole units of 16 bytes, also those that
    /// begin inside of a row and end outside.
    fn fits_tma_store(&self) -> bool {
        self.fits_tma() && (self.cols * self.dtype.bytes() as u64).is_multiple_of(TMA_ALIGNMENT)
    }

    /// Returns whether the elements of a row are consecutive.
    pub(super) fn has_dense_rows(&self) -> bool {
        self.cols <= 1 || self.inner_stride == 1
    }

    /// Returns the largest load that the addresses and the row length allow.
    pub(super) fn gather_unit(&self) -> GatherUnit {
        if !self.has_dense_rows() {
            return GatherUnit::Strided;
        }
        let bytes = |elements: u64| elements.wrapping_mul(self.dtype.bytes() as u64);
        let mut all = vec![self.align.into(), bytes(self.cols)];
        all.extend((self.rows > 1).then(|| bytes(self.stride)));
        all.extend((self.batch > 1).then(|| bytes(self.batch_stride)));
        // 0 is a multiple of every unit.
        let divides = |unit: u64| all.iter().all(|n| n.is_multiple_of(unit));
        match () {
            () if divides(16) => GatherUnit::Bytes16,
            () if divides(8) => GatherUnit::Bytes8,
            () if divides(4) => GatherUnit::Bytes4,
            () => GatherUnit::Element,
        }
    }

    /// Rejects strides and extents that no kernel can address.
    fn check(&self, flag: &str) -> Result<(), FamilyError> {
        let reject = |text: String| Err(FamilyError::Problem(text));
        let size = self.dtype.bytes() as u64;
        let name = self.name;
        if !self.align.is_power_of_two()
            || u64::from(self.align) > TMA_ALIGNMENT
            || u64::from(self.align) < size
        {
            return reject(format!(
                "the alignment of {name} is {} bytes; it must be a power of two from {size} (the size of an \
                 element) to {TMA_ALIGNMENT}",
                self.align
            ));
        }
        let bytes = (self.batch.max(1) - 1)
            .checked_mul(self.batch_stride)
            .and_then(|n| n.checked_add(self.matrix_len().max(self.stride)))
            .and_then(|n| n.checked_mul(size));
        if bytes.is_none_or(|n| n > MAX_TENSOR_BYTES) {
            return reject(format!(
                "{name} spans more than {MAX_TENSOR_BYTES} bytes; a tensor has at most that many"
            ));
        }
        // Kernels that address elements have 32-bit strides.
        let max_stride = u64::from(u32::MAX);
        if !self.fits_tma() && self.stride.max(self.inner_stride) > max_stride {
            return reject(format!(
                "--{flag} is {}; it must be at most {max_stride}, because TMA cannot address {name}",
                self.stride.max(self.inner_stride)
            ));
        }
        Ok(())
    }

    /// Rejects strides and extents that TMA cannot address.
    fn check_tma(&self, flag: &str) -> Result<(), FamilyError> {
        let reject = |text: String| Err(FamilyError::Problem(text));
        let (name, dtype, cols, stride) = (self.name, self.dtype, self.cols, self.stride);
        if stride < cols {
            return reject(format!(
                "row stride of {name} is {stride}, less than its {cols} columns: rows overlap\n\
                 help: use --{flag} {cols} or more"
            ));
        }
        if !self.fits_tma_store() || !(stride * dtype.bytes() as u64).is_multiple_of(TMA_ALIGNMENT)
        {
            return reject(format!(
                "{name} has {cols} columns of {dtype} and row stride {stride}; TMA needs multiples of {} elements \
                 (16 bytes) for both",
                TMA_ALIGNMENT / dtype.bytes() as u64
            ));
        }
        Ok(())
    }

    /// Rejects an output whose elements overlap.
    fn check_output(&self, flag: &str) -> Result<(), FamilyError> {
        let reject = |text: String| Err(FamilyError::Problem(text));
        let (name, cols) = (self.name, self.cols);
        if self.rows > 1 && self.stride < cols {
            return reject(format!(
                "row stride of {name} is {}, less than its {cols} columns: rows overlap\n\
                 help: use --{flag} {cols} or more",
                self.stride
            ));
        }
        let elements = self.rows.saturating_mul(self.stride);
        if self.batch > 1 && self.batch_stride < elements {
            return reject(format!(
                "batch stride of {name} is {} elements; it must be at least {elements} (no overlap)",
                self.batch_stride
            ));
        }
        self.check(flag)
    }
}

/// The alignment of the addresses and strides of TMA in bytes.
const TMA_ALIGNMENT: u64 = 16;
/// The first stride in bytes that is too large for TMA.
const MAX_TMA_STRIDE: u64 = 1 << 40;
/// The largest tensor in bytes.
const MAX_TENSOR_BYTES: u64 = 1 << 40;
/// The largest extent: TMA coordinates are signed 32-bit, and edge tiles reach past the extent.
pub(crate) const MAX_EXTENT: u32 = 1 << 30;
/// The maximum number of tiles of a launch: a tile index plus the grid size still fits 32 bits.
pub(super) const MAX_TILES: u64 = (1 << 31) - 1;
/// The maximum number of GEMMs of a batch.
pub(crate) const MAX_BATCH: u32 = 1 << 20;
/// Approximate L2 capacity of H100 and H200.
const L2_BYTES: f64 = (60 << 20) as f64;

/// Returns the names of the scale inputs, that of A first.
pub(super) fn scale_names(gated: bool) -> &'static [&'static str] {
    match gated {
        false => &["scale_a", "scale_b"],
        true => &["scale_a", "scale_gate", "scale_up"],
    }
}

impl Problem {
    /// Returns a GEMM of dense matrices without epilogue.
    pub fn new(m: u32, n: u32, k: u32, dtype: OperandType) -> Self {
        Self {
            m,
            n,
            k,
            dtype,
            out: None,
            layout: OperandLayout::Nk,
            accumulation: Accumulation::Fast,
            bias: false,
            activation: Activation::None,
            residual: false,
            row_sums: false,
            col_sums: false,
            amax: false,
            scale: None,
            scales: false,
            batch: None,
            a_stride: None,
            b_stride: None,
            c_stride: None,
            residual_stride: None,
            a_batch_stride: None,
            b_batch_stride: None,
            c_batch_stride: None,
            a_layout: ALayout::Mk,
            a_inner_stride: None,
            b_inner_stride: None,
            a_align: None,
            b_align: None,
            c_align: None,
            epilogue_align: None,
            up: None,
            up_stride: None,
        }
    }

    /// Returns the same problem with other extents.
    pub(crate) fn with_extents(&self, [m, n, k]: [u32; 3]) -> Self {
        Self {
            m,
            n,
            k,
            ..self.clone()
        }
    }

    /// Returns the element type of C.
    pub fn out(&self) -> FloatType {
        self.out.unwrap_or(match self.dtype {
            OperandType::F16 => FloatType::F16,
            OperandType::F32 => FloatType::F32,
            _ => FloatType::Bf16,
        })
    }

    /// Returns the part of the problem that is compiled in.
    pub(crate) fn class(&self) -> Class {
        let c_by_element = !self.c().fits_tma_store();
        // K == 0: the operands are bound to the address of C, which TMA may not address.
        let access = |access: OperandAccess| match self.k {
            0 if c_by_element => access.by_element(),
            _ => access,
        };
        Class {
            dtype: self.dtype,
            out: self.out(),
            a: access(OperandAccess::of(
                self.dtype,
                self.a_layout == ALayout::Mk,
                &[self.a()],
            )),
            b: access(OperandAccess::of(
                self.dtype,
                self.layout == OperandLayout::Nk,
                &[self.b(), self.up().unwrap_or(self.b())],
            )),
            c_by_element,
            accumulation: self.accumulation,
            epilogue: EpilogueOps {
                scale: self.scale.is_some(),
                scales: self.scales,
                bias: self.bias,
                activation: self.activation,
                residual: self.residual,
                row_sums: self.row_sums,
                col_sums: self.col_sums,
                amax: self.amax,
                by_element: (self.bias || self.residual) && !self.has_aligned_pairs(),
            },
            batched: self.batch.is_some(),
            up: self.up.map(|up| match up {
                WeightLayout::Separate | WeightLayout::Concatenated => WeightLayout::Separate,
                WeightLayout::Interleaved => WeightLayout::Interleaved,
            }),
        }
    }

    /// Returns the number of GEMMs.
    pub(super) fn batches(&self) -> u64 {
        u64::from(self.batch.unwrap_or(1))
    }

    /// Returns a matrix with dense rows at an aligned address.
    fn matrix(
        &self,
        name: &'static str,
        dtype: DType,
        shape: [u32; 2],
        stride: Option<u64>,
        batch_stride: Option<u64>,
    ) -> Matrix {
        self.strided_matrix(name, dtype, shape, [stride, batch_stride, None], None)
    }

    /// Returns a matrix; the strides are those of rows, of the batch, and inside a row.
    fn strided_matrix(
        &self,
        name: &'static str,
        dtype: DType,
        shape: [u32; 2],
        [stride, batch_stride, inner_stride]: [Option<u64>; 3],
        align: Option<u32>,
    ) -> Matrix {
        let [rows, cols] = shape.map(u64::from);
        let inner_stride = inner_stride.unwrap_or(1);
        let stride = stride.unwrap_or(cols.saturating_mul(inner_stride));
        // A batch of one has no next matrix.
        let batch_stride = batch_stride.filter(|_| self.batches() > 1);
        Matrix {
            name,
            dtype,
            rows,
            cols,
            stride,
            inner_stride,
            batch: self.batches(),
            batch_stride: batch_stride.unwrap_or(rows.saturating_mul(stride)),
            align: align.unwrap_or(TMA_ALIGNMENT as u32),
        }
    }

    pub(super) fn a(&self) -> Matrix {
        let shape = match self.a_layout {
            ALayout::Mk => [self.m, self.k],
            ALayout::Km => [self.k, self.m],
        };
        let strides = [self.a_stride, self.a_batch_stride, self.a_inner_stride];
        self.strided_matrix("a", self.dtype.a_dtype(), shape, strides, self.a_align)
    }

    pub(super) fn b(&self) -> Matrix {
        let shape = match (self.up, self.layout) {
            (Some(WeightLayout::Concatenated | WeightLayout::Interleaved), _) => {
                [2 * self.n, self.k]
            }
            (_, OperandLayout::Nk) => [self.n, self.k],
            (_, OperandLayout::Kn) => [self.k, self.n],
        };
        let name = match self.up {
            None => "b",
            Some(WeightLayout::Separate) => "gate",
            Some(_) => "weights",
        };
        let strides = [self.b_stride, self.b_batch_stride, self.b_inner_stride];
        self.strided_matrix(name, self.dtype.b_dtype(), shape, strides, self.b_align)
    }

    /// Returns the up weight if it is a separate tensor.
    pub(super) fn up(&self) -> Option<Matrix> {
        let stride = self.up_stride.or(self.b_stride);
        let (shape, dtype) = ([self.n, self.k], self.dtype.b_dtype());
        (self.up == Some(WeightLayout::Separate))
            .then(|| self.strided_matrix("up", dtype, shape, [stride, None, None], self.b_align))
    }

    /// Returns whether every pair of columns of bias and residual is aligned to its size.
    fn has_aligned_pairs(&self) -> bool {
        let pair = 2 * self.out().dtype().bytes() as u32;
        let residual = self.residual();
        let strides = [residual.stride, residual.batch_stride];
        self.n.is_multiple_of(2)
            && self.epilogue_align.unwrap_or(pair).is_multiple_of(pair)
            && (!self.residual || strides.iter().all(|stride| stride.is_multiple_of(2)))
    }

    /// Returns the elements of A and of all B operands.
    pub(super) fn operand_elements(&self) -> f64 {
        let columns = f64::from(self.class().b_operands()) * f64::from(self.n);
        (f64::from(self.m) + columns) * f64::from(self.k) * self.batches() as f64
    }

    pub(super) fn c(&self) -> Matrix {
        let shape = [self.m, self.n];
        let strides = [self.c_stride, self.c_batch_stride, None];
        self.strided_matrix("c", self.out().dtype(), shape, strides, self.c_align)
    }

    pub(super) fn residual(&self) -> Matrix {
        let (shape, stride) = ([self.m, self.n], self.residual_stride.or(self.c_stride));
        self.matrix(
            "residual",
            self.out().dtype(),
            shape,
            stride,
            self.c_batch_stride,
        )
    }

    /// Returns whether B is the larger operand and both exceed the L2, which should then keep A.
    pub(crate) fn streams_b(&self) -> bool {
        let bytes = self.operand_elements() * self.dtype.a_dtype().bytes() as f64;
        self.n >= self.m && bytes > L2_BYTES
    }

    /// Rejects problems that no schedule serves, and tensors that TMA cannot address.
    pub(crate) fn check_tma(&self) -> Result<(), FamilyError> {
        self.a().check_tma("a-stride")?;
        self.b().check_tma("weight-stride")?;
        self.c().check_tma("c-stride")?;
        self.check()
    }

    /// Rejects problems that no schedule serves.
    pub(crate) fn check(&self) -> Result<(), FamilyError> {
        let reject = |text: String| Err(FamilyError::Problem(text));
        for (name, extent) in [("M", self.m), ("N", self.n)] {
            if extent == 0 || extent > MAX_EXTENT {
                return reject(format!("{name} is {extent}; it must be 1 to {MAX_EXTENT}"));
            }
        }
        if self.k > MAX_EXTENT {
            return reject(format!("K is {}; it must be at most {MAX_EXTENT}", self.k));
        }
        let batch = self.batch.unwrap_or(1);
        if batch == 0 || batch > MAX_BATCH {
            return reject(format!("--batch is {batch}; it must be 1 to {MAX_BATCH}"));
        }
        if !self.dtype.is_fp8() && self.accumulation == Accumulation::Promoted {
            return reject(format!(
                "--accumulation promoted needs fp8 operands; {} already accumulates in f32\n\
                 help: leave --accumulation out",
                self.dtype.a_dtype()
            ));
        }
        if let Some(x) = self.scale.filter(|x| !x.is_finite()) {
            return reject(format!("--scale is {x}; it must be finite"));
        }
        if self.batch.is_some() && !self.class().epilogue.reductions().is_empty() {
            return reject(
                "--row-sums, --col-sums and --amax do not support --batch\nhelp: leave --batch out"
                    .into(),
            );
        }
        self.check_up()?;
        self.a().check("a-stride")?;
        self.b().check(match self.up {
            None => "b-stride",
            Some(_) => "weight-stride",
        })?;
        if let Some(up) = self.up() {
            up.check("up-stride")?;
        }
        self.c().check_output("c-stride")?;
        if self.residual {
            self.residual().check("residual-stride")?;
        }
        // The kernel addresses these matrices element by element, with 32-bit strides.
        let mut addressed = vec![];
        let c_by_element = self.out() == FloatType::F32 || !self.c().fits_tma_store();
        addressed.extend(c_by_element.then(|| ("c-stride", self.c())));
        addressed.extend((self.residual).then(|| ("residual-stride", self.residual())));
        let class = self.class();
        addressed.extend((class.a.gather.is_some()).then(|| ("a-stride", self.a())));
        addressed.extend((class.b.gather.is_some()).then(|| ("b-stride", self.b())));
        for (flag, matrix) in addressed {
            if matrix.stride > u64::from(u32::MAX) {
                return reject(format!(
                    "--{flag} is {}; it must be at most {} (the kernel addresses {} element by element)",
                    matrix.stride,
                    u32::MAX,
                    matrix.name
                ));
            }
        }
        Ok(())
    }

    /// Rejects gated problems that no schedule serves.
    fn check_up(&self) -> Result<(), FamilyError> {
        let Some(up) = self.up else { return Ok(()) };
        let reject = |text: String| Err(FamilyError::Problem(text));
        if up == WeightLayout::Interleaved && !self.n.is_multiple_of(8) {
            return reject(format!(
                "N is {}; interleaved weights need a multiple of 8 (blocks of 8 rows)",
                self.n
            ));
        }
        if self.layout == OperandLayout::Kn
            || self.a_layout == ALayout::Km
            || self.batch.is_some()
            || self.accumulation == Accumulation::Promoted
        {
            return reject(
                "a gated GEMM supports neither --layout kn, --a-layout km, --batch nor --accumulation promoted"
                    .into(),
            );
        }
        Ok(())
    }

    /// Returns the inputs, in the order of the plan.
    pub(super) fn inputs(&self) -> Vec<TensorSpec> {
        let batched = self.batch.is_some();
        let vector = |name, dtype, n: u32| TensorSpec {
            name,
            dtype,
            shape: vec![n as usize],
        };
        let mut all = vec![self.a().spec(batched), self.b().spec(batched)];
        all.extend(self.up().map(|up| up.spec(false)));
        if self.bias {
            all.push(vector("bias", self.out().dtype(), self.n));
        }
        if self.residual {
            all.push(self.residual().spec(batched));
        }
        if self.scales {
            all.extend((self.scale_names().iter()).map(|name| vector(name, DType::F32, 1)));
        }
        all
    }

    /// Returns the outputs: C and its reductions.
    pub(super) fn outputs(&self) -> Vec<TensorSpec> {
        let reduced = |reduction: Reduction| TensorSpec {
            name: reduction.name(),
            dtype: DType::F32,
            shape: vec![reduction.len(self) as usize],
        };
        let mut all = vec![self.c().spec(self.batch.is_some())];
        all.extend(self.class().epilogue.reductions().into_iter().map(reduced));
        all
    }

    /// Returns the names of the scale inputs, that of A first.
    pub(super) fn scale_names(&self) -> &'static [&'static str] {
        scale_names(self.up.is_some())
    }

    /// Returns the index of the input with that name.
    pub(super) fn input(&self, name: &str) -> Option<usize> {
        self.inputs().iter().position(|spec| spec.name == name)
    }
}
