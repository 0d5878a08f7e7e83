//! The problem of a GEMM.

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
        /// Batch stride of A (default: dense)
        pub a_batch_stride: Option<u64> [ELEMENTS],
        /// Batch stride of B (default: dense)
        pub b_batch_stride: Option<u64> [ELEMENTS],
        /// Batch stride of C and of the residual (default: dense)
        pub c_batch_stride: Option<u64> [ELEMENTS],
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
    /// Memory layout of B.
    #[derive(Default)]
    pub enum OperandLayout {
        /// [N, K], K innermost, as the weight of a linear layer
        #[default]
        Nk = "nk",
        /// [K, N], N innermost; 16-bit types only
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
    pub(super) layout: OperandLayout,
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
}

/// A batch of row-major matrices in memory; both strides are in elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Matrix {
    pub(super) name: &'static str,
    pub(super) dtype: DType,
    pub(super) rows: u64,
    pub(super) cols: u64,
    pub(super) stride: u64,
    pub(super) batch: u64,
    pub(super) batch_stride: u64,
}

impl Matrix {
    /// Returns the tensor that holds the matrices, including row padding and gaps between matrices.
    pub(super) fn spec(&self, batched: bool) -> TensorSpec {
        let [batch, rows, stride, batch_stride] =
            [self.batch, self.rows, self.stride, self.batch_stride].map(|n| n as usize);
        TensorSpec {
            name: self.name,
            dtype: self.dtype,
            shape: match batched {
                true if batch_stride == rows * stride => vec![batch, rows, stride],
                true => vec![batch, batch_stride],
                false => vec![rows, stride],
            },
        }
    }

    /// Rejects strides and extents that TMA cannot address.
    fn check(&self, flag: &str) -> Result<(), FamilyError> {
        let reject = |text: String| Err(FamilyError::Problem(text));
        let size = self.dtype.bytes() as u64;
        let (name, dtype) = (self.name, self.dtype);
        let unit = 16 / size;
        if self.stride < self.cols {
            return reject(format!(
                "row stride of {name} is {}, less than its {} columns: rows overlap\n\
                 help: use --{flag} {} or more",
                self.stride, self.cols, self.cols
            ));
        }
        if !(self.cols * size).is_multiple_of(16) || !(self.stride * size).is_multiple_of(16) {
            return reject(format!(
                "{name} has {} columns of {dtype} and row stride {}; TMA needs multiples of {unit} elements \
                 (16 bytes) for both",
                self.cols, self.stride
            ));
        }
        let rows = self.rows.saturating_mul(self.stride);
        if self.batch > 1
            && (self.batch_stride < rows || !(self.batch_stride * size).is_multiple_of(16))
        {
            return reject(format!(
                "batch stride of {name} is {} elements of {dtype}; it must be at least {rows} (no overlap) and a \
                 multiple of {unit} (16 bytes)",
                self.batch_stride
            ));
        }
        let bytes = (self.batch.max(1))
            .checked_mul(self.batch_stride.max(self.stride).max(1))
            .and_then(|n| n.checked_mul(size));
        match bytes {
            Some(n) if n <= MAX_TENSOR_BYTES => Ok(()),
            _ => reject(format!(
                "{name} has {} x {} elements; a tensor has at most {MAX_TENSOR_BYTES} bytes",
                self.batch, self.batch_stride
            )),
        }
    }
}

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
            _ => FloatType::Bf16,
        })
    }

    /// Returns the part of the problem that is compiled in.
    pub(crate) fn class(&self) -> Class {
        Class {
            dtype: self.dtype,
            out: self.out(),
            layout: self.layout,
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

    fn matrix(
        &self,
        name: &'static str,
        dtype: DType,
        shape: [u32; 2],
        stride: Option<u64>,
        batch_stride: Option<u64>,
    ) -> Matrix {
        let [rows, cols] = shape.map(u64::from);
        let stride = stride.unwrap_or(cols);
        // A batch of one has no next matrix.
        let batch_stride = batch_stride.filter(|_| self.batches() > 1);
        Matrix {
            name,
            dtype,
            rows,
            cols,
            stride,
            batch: self.batches(),
            batch_stride: batch_stride.unwrap_or(rows.saturating_mul(stride)),
        }
    }

    pub(super) fn a(&self) -> Matrix {
        let shape = [self.m, self.k];
        self.matrix(
            "a",
            self.dtype.a_dtype(),
            shape,
            self.a_stride,
            self.a_batch_stride,
        )
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
        self.matrix(
            name,
            self.dtype.b_dtype(),
            shape,
            self.b_stride,
            self.b_batch_stride,
        )
    }

    /// Returns the up weight if it is a separate tensor.
    pub(super) fn up(&self) -> Option<Matrix> {
        let stride = self.up_stride.or(self.b_stride);
        let (shape, dtype) = ([self.n, self.k], self.dtype.b_dtype());
        (self.up == Some(WeightLayout::Separate))
            .then(|| self.matrix("up", dtype, shape, stride, None))
    }

    /// Returns the elements of A and of all B operands.
    pub(super) fn operand_elements(&self) -> f64 {
        let columns = f64::from(self.class().b_operands()) * f64::from(self.n);
        (f64::from(self.m) + columns) * f64::from(self.k) * self.batches() as f64
    }

    pub(super) fn c(&self) -> Matrix {
        let shape = [self.m, self.n];
        self.matrix(
            "c",
            self.out().dtype(),
            shape,
            self.c_stride,
            self.c_batch_stride,
        )
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
        if self.dtype.is_fp8() && self.layout == OperandLayout::Kn {
            return reject(format!(
                "B of {} has --layout kn; wgmma reads only 16-bit types with N innermost\nhelp: use --layout nk",
                self.dtype.b_dtype()
            ));
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
        self.c().check("c-stride")?;
        if self.residual {
            self.residual().check("residual-stride")?;
        }
        // The kernel addresses these matrices element by element, with 32-bit strides.
        let mut addressed = vec![];
        addressed.extend((self.out() == FloatType::F32).then(|| ("c-stride", self.c())));
        addressed.extend((self.residual).then(|| ("residual-stride", self.residual())));
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
            || self.batch.is_some()
            || self.accumulation == Accumulation::Promoted
        {
            return reject(
                "a gated GEMM supports neither --layout kn, --batch nor --accumulation promoted"
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
