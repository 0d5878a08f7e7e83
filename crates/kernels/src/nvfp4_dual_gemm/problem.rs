//! The problem: extents, layouts, and the tensors that follow from them.

use super::scales::{MOST_THREADS, TILE};
use super::units;
use super::widen::EACH;
use crate::gemm;
use crate::gemm::{Activation, Factor};
use crate::nvfp4::{BLOCK, ScaleLayout};
use crate::weights::Weights;
use warpline_family::error::FamilyError;
use warpline_family::family::Cost;
use warpline_family::fields;
use warpline_family::float::Float;
use warpline_family::plan::{Address, Buffer};
use warpline_family::tensor::TensorSpec;
use warpline_ir::DType;

fields! {
    /// The problem: `C[M, N] = gate(A[M, K] · B₁[N, K]ᵀ) ∘ (A · B₂[N, K]ᵀ)` with weights in NVFP4,
    /// both summed in f32, with one rounding.
    pub struct Problem {
        /// Rows of A and C
        pub m: u32,
        /// Columns of C, rows of each of the weights
        pub n: u32,
        /// Elements that each sum runs over
        pub k: u32,
        /// How scales lie
        pub scale_layout: ScaleLayout = ScaleLayout::default(),
        /// Element type of A where only the weights are nvfp4: f16 or bf16
        pub activations: Option<Float>,
        /// Element type of C: that of A, f16 where A is nvfp4
        pub out: Option<Float>,
        /// The function of the gate
        pub gate: Activation = Activation::Silu,
        /// How the two weights lie: apart or concatenated
        pub weights: Weights = Weights::default(),
        /// A scale of A and one of each of the weights, each a number in memory
        pub scales: bool = false,
        /// Elements from one row of an A of f16 or bf16 to the next; dense where not given
        pub a_stride: Option<u64> [ELEMENTS],
        /// Elements from one row of C to the next; dense where not given
        pub c_stride: Option<u64> [ELEMENTS],
    }
}

impl Problem {
    /// SwiGLU where A and both weights are NVFP4, in two tensors, with plain scales.
    pub fn new(m: u32, n: u32, k: u32) -> Self {
        Self {
            m,
            n,
            k,
            scale_layout: ScaleLayout::Plain,
            activations: None,
            out: None,
            gate: Activation::Silu,
            weights: Weights::Apart,
            scales: false,
            a_stride: None,
            c_stride: None,
        }
    }

    /// The element type that tensor cores see, and of C.
    pub(super) fn float(&self) -> Float {
        self.activations.unwrap_or(Float::F16)
    }

    /// The gated GEMM that tensor cores see.
    pub(super) fn widened(&self) -> gemm::Problem {
        let factor = match self.float() {
            Float::Bf16 => Factor::Bf16,
            _ => Factor::F16,
        };
        gemm::Problem {
            out: self.out,
            activation: self.gate,
            up: Some(self.weights),
            scales: self.scales,
            a_stride: self.a_stride,
            c_stride: self.c_stride,
            ..gemm::Problem::new(self.m, self.n, self.k, factor)
        }
    }

    /// Is A given in codes?
    pub(super) fn a_is_coded(&self) -> bool {
        self.activations.is_none()
    }

    /// K in whole blocks.
    pub(super) fn whole_k(&self) -> u64 {
        u64::from(self.k.next_multiple_of(units::BLOCK))
    }

    /// Is K a multiple of a block, so that no scale lies behind it?
    pub(super) fn is_whole(&self) -> bool {
        u64::from(self.k) == self.whole_k()
    }

    /// Bytes from one row of codes to the next, as TMA takes them: a multiple of 16.
    pub(super) fn row_bytes(&self) -> u64 {
        u64::from(self.k / 2).next_multiple_of(16)
    }

    /// Do rows of codes start where no TMA box can?
    pub(super) fn moves_rows(&self) -> bool {
        self.row_bytes() != u64::from(self.k / 2)
    }

    /// Rejects a problem that no schedule serves.
    pub(super) fn check(&self) -> Result<(), FamilyError> {
        let reject = |text: String| Err(FamilyError::Problem(text));
        if self.k == 0 || !(self.k as usize).is_multiple_of(BLOCK) {
            return reject(format!(
                "nvfp4 has a scale for every {BLOCK} elements of K, so K is a positive multiple of {BLOCK}, not {}",
                self.k
            ));
        }
        if self.activations == Some(Float::F32) {
            return reject("beside weights of nvfp4 A is nvfp4, f16 or bf16, not f32".into());
        }
        let float = self.float();
        if let Some(out) = self.out.filter(|&out| out != float) {
            let decoded = if self.a_is_coded() { " decoded to" } else { "" };
            return reject(format!(
                "what comes out is {} here, as A is{decoded}, not {}",
                float.dtype(),
                out.dtype()
            ));
        }
        if self.weights == Weights::Interleaved {
            return reject(
                "weights of nvfp4 are two tensors or one concatenated (--weights apart, concatenated), not interleaved".into(),
            );
        }
        let in_blocks =
            self.scale_layout == ScaleLayout::Block && self.weights == Weights::Concatenated;
        if in_blocks && !self.n.is_multiple_of(128) {
            return reject(format!(
                "scales of both weights in blocks of 128 rows lie apart where N is a multiple of 128, not {}",
                self.n
            ));
        }
        if self.a_is_coded() && self.a_stride.is_some() {
            return reject(
                "rows of codes lie without gaps: --a-stride needs an A of f16 or bf16\n\
                 help: leave --a-stride out, or add --activations"
                    .into(),
            );
        }
        if let Some(stride) = self.a_stride.filter(|stride| !stride.is_multiple_of(8)) {
            return reject(format!(
                "rows of A start on 16 bytes, so --a-stride is a multiple of 8, not {stride}"
            ));
        }
        // A thread for every 32 numbers of A.
        if u64::from(self.m) * self.whole_k() >= u64::from(EACH) << 31 {
            return reject(format!(
                "A beside weights of nvfp4 has less than 2^36 elements, not {} x {}",
                self.m, self.k
            ));
        }
        self.widened().check()?;
        // A thread for every 8 bytes of rows that are moved, and for every 4 scales that are.
        let moved = (self.moves_rows()).then(|| u64::from(self.n) * (self.row_bytes() / 8));
        let arranged = || ScaleLayout::Block.bytes(self.n as usize, self.k as usize) as u64 / 4;
        let arranged = (self.scale_layout == ScaleLayout::Plain).then(arranged);
        let most = u64::from(MOST_THREADS);
        if moved.max(arranged).is_some_and(|threads| threads > most) {
            return reject(format!(
                "weights of nvfp4 whose rows or scales are rearranged have less than 2^35 elements each, not {} x {}",
                self.n, self.k
            ));
        }
        Ok(())
    }

    /// Describes the inputs in the order of a plan's: codes, scales, and scales of whole tensors.
    pub(super) fn specs(&self) -> Vec<TensorSpec> {
        let (m, n, k) = (self.m as usize, self.n as usize, self.k as usize);
        let codes = |name, rows| TensorSpec {
            name,
            dtype: DType::U8,
            shape: vec![rows, k / 2],
        };
        let scales = |name, rows| TensorSpec {
            name,
            dtype: DType::E4m3,
            shape: match self.scale_layout {
                ScaleLayout::Plain => vec![rows, k / BLOCK],
                ScaleLayout::Block => vec![rows.div_ceil(128), k.div_ceil(64), TILE as usize],
            },
        };
        let number = |name| TensorSpec {
            name,
            dtype: DType::F32,
            shape: vec![1],
        };
        let a = match self.activations {
            None => codes("a", m),
            Some(float) => TensorSpec {
                name: "a",
                dtype: float.dtype(),
                shape: vec![m, self.a_stride.map_or(k, |stride| stride as usize)],
            },
        };
        let mut all = vec![a];
        match self.weights {
            Weights::Apart => all.extend([
                codes("gate", n),
                scales("gate_scales", n),
                codes("up", n),
                scales("up_scales", n),
            ]),
            _ => all.extend([codes("gate", 2 * n), scales("gate_scales", 2 * n)]),
        }
        all.extend(self.a_is_coded().then(|| scales("a_scales", m)));
        if self.scales {
            all.extend(self.a_is_coded().then(|| number("scale_a")));
            all.extend(["scale_gate", "scale_up"].map(number));
        }
        all
    }

    /// Returns the cost of a solution that moves every tensor once.
    pub(super) fn cost(&self) -> Cost {
        let bytes: usize = self.specs().iter().map(TensorSpec::bytes).sum();
        let [m, n, k] = [self.m, self.n, self.k].map(f64::from);
        Cost {
            flops: 4.0 * m * n * k,
            bytes: bytes as f64 + 2.0 * m * n,
        }
    }

    /// Returns the input of that name.
    pub(super) fn input(&self, name: &str) -> Result<Address, FamilyError> {
        Ok(Buffer::named(&self.specs(), name)?.into())
    }

    /// Names the inputs that multiply whole tensors.
    pub(super) fn tensor_scales(&self) -> &'static [&'static str] {
        match (self.scales, self.activations) {
            (false, _) => &[],
            (true, None) => &["scale_gate", "scale_up", "scale_a"],
            (true, Some(_)) => &["scale_gate", "scale_up"],
        }
    }
}
