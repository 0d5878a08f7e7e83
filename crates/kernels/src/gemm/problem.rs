//! The problem of a GEMM.

use crate::weights::Weights;
use warpline_family::error::FamilyError;
use warpline_family::float::Float;
use warpline_family::tensor::TensorSpec;
use warpline_family::{fields, words};
use warpline_ir::DType;

fields! {
    /// The problem: `C[M, N] = epilogue(A[M, K] · B[N, K]ᵀ)`, once or for each of a batch.
    pub struct Problem {
        /// Rows of A and C
        pub m: u32,
        /// Columns of C
        pub n: u32,
        /// Elements that each sum runs over
        pub k: u32,
        /// Element type of A and B (e5m2: of A, with B in e4m3)
        pub dtype: Factor,
        /// Element type of C; that of A where not given, bf16 for fp8
        pub out: Option<Float>,
        /// How B lies in memory
        pub layout: Layout = Layout::default(),
        /// How fp8 products are summed
        pub sums: Sums = Sums::default(),
        /// Adds a number to each column, of the type of C
        pub bias: bool = false,
        /// The function of each sum
        pub activation: Activation = Activation::default(),
        /// Adds a matrix of the type and shape of C, after the activation
        pub residual: bool = false,
        /// Gives the sum of each row of C too, in f32, of the values before they are rounded
        pub row_sums: bool = false,
        /// Gives the sum of each column of C too, in f32, of the values before they are rounded
        pub col_sums: bool = false,
        /// Gives the greatest magnitude in C too, in f32, of the values before they are rounded
        pub amax: bool = false,
        /// A number that multiplies every sum first
        pub scale: Option<f32>,
        /// A scale of A and one of B, each a number in memory
        pub scales: bool = false,
        /// Products side by side, each with its own A, B and C
        pub batch: Option<u32>,
        /// Elements from one row of A to the next; dense where not given
        pub a_stride: Option<u64> [ELEMENTS],
        /// Elements from one row of B to the next; dense where not given
        pub b_stride: Option<u64> [ELEMENTS],
        /// Elements from one row of C to the next; dense where not given
        pub c_stride: Option<u64> [ELEMENTS],
        /// Elements from one row of the residual to the next; as in C where not given
        pub residual_stride: Option<u64> [ELEMENTS],
        /// Elements from one A of a batch to the next; without gaps where not given
        pub a_step: Option<u64> [ELEMENTS],
        /// Elements from one B of a batch to the next; without gaps where not given
        pub b_step: Option<u64> [ELEMENTS],
        /// Elements from one C of a batch, and one residual, to the next; without gaps where not given
        pub c_step: Option<u64> [ELEMENTS],
        /// Where B has a second factor beside it, how the two lie: what comes out is
        /// `activation(A · Bᵀ) ∘ (A · B₂ᵀ)`. Asked for by a family of its own.
        #[doc(hidden)]
        pub up: Option<Weights>,
        /// Elements from one row of the second factor to the next; as in B where not given.
        #[doc(hidden)]
        pub up_stride: Option<u64>,
    }
}

words! {
    /// The element type of a factor.
    pub enum Factor {
        /// bfloat16
        Bf16 = "bf16",
        /// IEEE binary16
        F16 = "f16" | "fp16",
        /// 8 bits, 4 of them exponent
        E4m3 = "e4m3",
        /// 8 bits, 5 of them exponent
        E5m2 = "e5m2",
    }
}

impl Factor {
    /// As an element in memory.
    pub fn dtype(self) -> DType {
        match self {
            Factor::Bf16 => DType::Bf16,
            Factor::F16 => DType::F16,
            Factor::E4m3 => DType::E4m3,
            Factor::E5m2 => DType::E5m2,
        }
    }

    /// The element type of B beside it.
    pub fn other(self) -> DType {
        match self {
            Factor::E5m2 => DType::E4m3,
            same => same.dtype(),
        }
    }

    /// Has it 8 bits?
    pub fn is_fp8(self) -> bool {
        self.dtype().bytes() == 1
    }

    /// The one whose elements are of that type, if there is one.
    pub fn of(dtype: DType) -> Option<Self> {
        Self::ALL.iter().copied().find(|f| f.dtype() == dtype)
    }
}

words! {
    /// How B lies in memory.
    #[derive(Default)]
    pub enum Layout {
        /// A row for each column of C: [N, K], as the weights of a linear layer
        #[default]
        Nk = "nk",
        /// A row for each element of a sum: [K, N]; 16-bit types only
        Kn = "kn",
    }
}

words! {
    /// How products are summed.
    #[derive(Default)]
    pub enum Sums {
        /// By the tensor cores alone, which keep 13 bits behind the greatest term of fp8
        #[default]
        Fast = "fast",
        /// Every 128 products are added to a sum in f32; fp8 only
        Promoted = "promoted",
    }
}

words! {
    /// The function of each sum.
    #[derive(Default)]
    pub enum Activation {
        /// The sum itself
        #[default]
        None = "none",
        /// max(x, 0)
        Relu = "relu",
        /// x · Φ(x), by the error function
        GeluErf = "gelu-erf",
        /// x · Φ(x), by the hyperbolic tangent
        GeluTanh = "gelu-tanh",
        /// x / (1 + e⁻ˣ)
        Silu = "silu",
        /// 1 / (1 + e⁻ˣ)
        Sigmoid = "sigmoid",
    }
}

/// The ops that are compiled in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct EpilogueOps {
    /// A launch number multiplies the accumulators.
    pub(super) scale: bool,
    /// Numbers in memory multiply them, of A and of each operand beside it.
    pub(super) scales: bool,
    pub(super) bias: bool,
    pub(super) activation: Activation,
    pub(super) residual: bool,
    pub(super) row_sums: bool,
    pub(super) col_sums: bool,
    pub(super) amax: bool,
}

impl EpilogueOps {
    /// What the epilogue computes of C beside C, in the order of the outputs.
    pub(super) fn reductions(&self) -> Vec<Reduction> {
        let all = [
            (self.row_sums, Reduction::RowSums),
            (self.col_sums, Reduction::ColSums),
            (self.amax, Reduction::Amax),
        ];
        let asked = all.into_iter().filter(|(asked, _)| *asked);
        asked.map(|(_, reduction)| reduction).collect()
    }
}

/// A reduction of C.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Reduction {
    /// The sum of each row.
    RowSums,
    /// The sum of each column.
    ColSums,
    /// The greatest magnitude.
    Amax,
}

impl Reduction {
    /// The name of the output.
    pub(super) fn name(self) -> &'static str {
        match self {
            Reduction::RowSums => "row_sums",
            Reduction::ColSums => "col_sums",
            Reduction::Amax => "amax",
        }
    }

    /// Elements of the output.
    pub(super) fn len(self, p: &Problem) -> u32 {
        match self {
            Reduction::RowSums => p.m,
            Reduction::ColSums => p.n,
            Reduction::Amax => 1,
        }
    }
}

/// All of a problem that is compiled in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Class {
    pub(super) factor: Factor,
    pub(super) out: Float,
    pub(super) layout: Layout,
    pub(super) sums: Sums,
    pub(super) epilogue: EpilogueOps,
    pub(super) batched: bool,
    /// Where A is multiplied by two factors, how these lie: apart, also where
    /// they follow each other in one tensor, or interleaved.
    pub(super) up: Option<Weights>,
}

impl Class {
    /// Factors that A is multiplied by.
    pub(super) fn factors(&self) -> u32 {
        1 + u32::from(self.up.is_some())
    }
}

/// Matrices in memory: rows of `cols` elements, `stride` apart, and `batch` of these, `step` apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Matrix {
    pub(super) name: &'static str,
    pub(super) dtype: DType,
    pub(super) rows: u64,
    pub(super) cols: u64,
    pub(super) stride: u64,
    pub(super) batch: u64,
    pub(super) step: u64,
}

impl Matrix {
    /// As a tensor: the padding of rows, and what is between matrices, is part of it.
    pub(super) fn spec(&self, batched: bool) -> TensorSpec {
        let [batch, rows, stride, step] =
            [self.batch, self.rows, self.stride, self.step].map(|n| n as usize);
        TensorSpec {
            name: self.name,
            dtype: self.dtype,
            shape: match batched {
                true if step == rows * stride => vec![batch, rows, stride],
                true => vec![batch, step],
                false => vec![rows, stride],
            },
        }
    }

    /// Refuses rows that no copy reaches.
    fn check(&self, flag: &str) -> Result<(), FamilyError> {
        let refuse = |text: String| Err(FamilyError::Problem(text));
        let size = self.dtype.bytes() as u64;
        let (name, dtype) = (self.name, self.dtype);
        let unit = 16 / size;
        if self.stride < self.cols {
            return refuse(format!(
                "rows must not overlap: --{flag} is at least the {} columns of {name}, not {}",
                self.cols, self.stride
            ));
        }
        if !(self.cols * size).is_multiple_of(16) || !(self.stride * size).is_multiple_of(16) {
            return refuse(format!(
                "rows start and end on 16 bytes: {name} has {} columns of {dtype} and rows {} apart, \
                 and both must be multiples of {unit}",
                self.cols, self.stride
            ));
        }
        let rows = self.rows.saturating_mul(self.stride);
        if self.batch > 1 && (self.step < rows || !(self.step * size).is_multiple_of(16)) {
            return refuse(format!(
                "the matrices of a batch lie apart and start on 16 bytes: those of {name} are {rows} elements \
                 of {dtype} long and {} apart, and that must be no less and a multiple of {unit}",
                self.step
            ));
        }
        let bytes = (self.batch.max(1))
            .checked_mul(self.step.max(self.stride).max(1))
            .and_then(|n| n.checked_mul(size));
        match bytes {
            Some(n) if n <= MOST_BYTES => Ok(()),
            _ => refuse(format!(
                "{name} of {} x {} elements is more than the {MOST_BYTES} bytes that a tensor may have",
                self.batch, self.step
            )),
        }
    }
}

/// The most bytes of a tensor.
const MOST_BYTES: u64 = 1 << 40;
/// The most of an extent: coordinates are signed, and tiles reach beyond.
pub(crate) const MOST: u32 = 1 << 30;
/// The most tiles of a launch, with room for a step of the grid.
pub(super) const MOST_TILES: u64 = (1 << 31) - 1;
/// The most GEMMs of a batch.
pub(crate) const MOST_BATCH: u32 = 1 << 20;
/// About what the L2 of an H100 or H200 holds.
const L2_BYTES: f64 = (60 << 20) as f64;

/// The inputs that hold scales, that of A first.
pub(super) fn scale_names(gated: bool) -> &'static [&'static str] {
    match gated {
        false => &["scale_a", "scale_b"],
        true => &["scale_a", "scale_gate", "scale_up"],
    }
}

impl Problem {
    /// A bare product of dense matrices.
    pub fn new(m: u32, n: u32, k: u32, dtype: Factor) -> Self {
        Self {
            m,
            n,
            k,
            dtype,
            out: None,
            layout: Layout::Nk,
            sums: Sums::Fast,
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
            a_step: None,
            b_step: None,
            c_step: None,
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

    /// The element type of C.
    pub fn out(&self) -> Float {
        self.out.unwrap_or(match self.dtype {
            Factor::F16 => Float::F16,
            _ => Float::Bf16,
        })
    }

    /// All that is compiled in.
    pub(crate) fn class(&self) -> Class {
        Class {
            factor: self.dtype,
            out: self.out(),
            layout: self.layout,
            sums: self.sums,
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
                Weights::Apart | Weights::Concatenated => Weights::Apart,
                Weights::Interleaved => Weights::Interleaved,
            }),
        }
    }

    /// Products side by side.
    pub(super) fn batches(&self) -> u64 {
        u64::from(self.batch.unwrap_or(1))
    }

    fn matrix(
        &self,
        name: &'static str,
        dtype: DType,
        sides: [u32; 2],
        stride: Option<u64>,
        step: Option<u64>,
    ) -> Matrix {
        let [rows, cols] = sides.map(u64::from);
        let stride = stride.unwrap_or(cols);
        // A batch of one has no next matrix.
        let step = step.filter(|_| self.batches() > 1);
        Matrix {
            name,
            dtype,
            rows,
            cols,
            stride,
            batch: self.batches(),
            step: step.unwrap_or(rows.saturating_mul(stride)),
        }
    }

    pub(super) fn a(&self) -> Matrix {
        let sides = [self.m, self.k];
        self.matrix("a", self.dtype.dtype(), sides, self.a_stride, self.a_step)
    }

    pub(super) fn b(&self) -> Matrix {
        let sides = match (self.up, self.layout) {
            (Some(Weights::Concatenated | Weights::Interleaved), _) => [2 * self.n, self.k],
            (_, Layout::Nk) => [self.n, self.k],
            (_, Layout::Kn) => [self.k, self.n],
        };
        let name = match self.up {
            None => "b",
            Some(Weights::Apart) => "gate",
            Some(_) => "weights",
        };
        self.matrix(name, self.dtype.other(), sides, self.b_stride, self.b_step)
    }

    /// The second factor, where it is a tensor of its own.
    pub(super) fn up(&self) -> Option<Matrix> {
        let stride = self.up_stride.or(self.b_stride);
        let (sides, dtype) = ([self.n, self.k], self.dtype.other());
        (self.up == Some(Weights::Apart)).then(|| self.matrix("up", dtype, sides, stride, None))
    }

    /// Elements of A and of all that it is multiplied by.
    pub(super) fn factor_elements(&self) -> f64 {
        let columns = f64::from(self.class().factors()) * f64::from(self.n);
        (f64::from(self.m) + columns) * f64::from(self.k) * self.batches() as f64
    }

    pub(super) fn c(&self) -> Matrix {
        let sides = [self.m, self.n];
        self.matrix("c", self.out().dtype(), sides, self.c_stride, self.c_step)
    }

    pub(super) fn residual(&self) -> Matrix {
        let (sides, stride) = ([self.m, self.n], self.residual_stride.or(self.c_stride));
        self.matrix("residual", self.out().dtype(), sides, stride, self.c_step)
    }

    /// Is B the larger factor, and more than the L2 can keep beside A? Then it
    /// keeps A.
    pub(crate) fn streams_b(&self) -> bool {
        let bytes = self.factor_elements() * self.dtype.dtype().bytes() as f64;
        self.n >= self.m && bytes > L2_BYTES
    }

    /// Refuses what no form serves.
    pub(crate) fn check(&self) -> Result<(), FamilyError> {
        let refuse = |text: String| Err(FamilyError::Problem(text));
        for (name, extent) in [("M", self.m), ("N", self.n)] {
            if extent == 0 || extent > MOST {
                return refuse(format!("{name} is 1 to {MOST}, not {extent}"));
            }
        }
        if self.k > MOST {
            return refuse(format!("K is at most {MOST}, not {}", self.k));
        }
        let batch = self.batch.unwrap_or(1);
        if batch == 0 || batch > MOST_BATCH {
            return refuse(format!(
                "a batch is 1 to {MOST_BATCH} products, not {batch}"
            ));
        }
        if self.dtype.is_fp8() && self.layout == Layout::Kn {
            return refuse(format!(
                "B of {} lies as [N, K], not as [K, N]: only 16-bit types are read across their rows",
                self.dtype.other()
            ));
        }
        if !self.dtype.is_fp8() && self.sums == Sums::Promoted {
            return refuse(format!(
                "--sums promoted is for fp8: products of {} are summed in f32 already",
                self.dtype.dtype()
            ));
        }
        if let Some(x) = self.scale.filter(|x| !x.is_finite()) {
            return refuse(format!("a scale is a finite number, not {x}"));
        }
        if self.batch.is_some() && !self.class().epilogue.reductions().is_empty() {
            return refuse(
                "--row-sums, --col-sums and --amax are those of one product: not with --batch"
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
        // These are addressed by elements, and strides are 32 bits wide there.
        let mut addressed = vec![];
        addressed.extend((self.out() == Float::F32).then(|| ("c-stride", self.c())));
        addressed.extend((self.residual).then(|| ("residual-stride", self.residual())));
        for (flag, matrix) in addressed {
            if matrix.stride > u64::from(u32::MAX) {
                return refuse(format!(
                    "--{flag} is at most {}, not {}",
                    u32::MAX,
                    matrix.stride
                ));
            }
        }
        Ok(())
    }

    /// Refuses second factors that no form serves.
    fn check_up(&self) -> Result<(), FamilyError> {
        let Some(up) = self.up else { return Ok(()) };
        let refuse = |text: String| Err(FamilyError::Problem(text));
        if up == Weights::Interleaved && !self.n.is_multiple_of(8) {
            return refuse(format!(
                "gate and up are interleaved in blocks of 8 rows, so N is a multiple of 8, not {}",
                self.n
            ));
        }
        if self.layout == Layout::Kn || self.batch.is_some() || self.sums == Sums::Promoted {
            return refuse(
                "two factors lie as [N, K], are multiplied once, and summed by the tensor cores alone".into(),
            );
        }
        Ok(())
    }

    /// What goes in, in the order of a plan's inputs.
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

    /// What comes out: C, and what is reduced from it.
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

    /// What the scales in memory are called, that of A first.
    pub(super) fn scale_names(&self) -> &'static [&'static str] {
        scale_names(self.up.is_some())
    }

    /// Which input has that name.
    pub(super) fn input(&self, name: &str) -> Option<usize> {
        self.inputs().iter().position(|spec| spec.name == name)
    }
}
