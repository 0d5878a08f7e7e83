//! The problem: extents, layouts, and the tensors of inputs and outputs.

use super::context::CODED;
use super::kernel_spec::Outputs;
use super::operands::{AOperand, CodedTensor, Operands};
use super::scale_boxes::ScaleBoxes;
use super::scales::{MAX_THREADS, TILE_BYTES};
use super::shape::Shape;
use super::widen::NUMBERS_PER_THREAD;
use crate::gemm;
use crate::gemm::{Activation, OperandType};
use crate::nvfp4::{BLOCK, ScaleLayout};
use crate::weights::WeightLayout;
use warpline_family::error::FamilyError;
use warpline_family::family::Cost;
use warpline_family::fields;
use warpline_family::float::FloatType;
use warpline_family::plan::{Address, Buffer};
use warpline_family::tensor::TensorSpec;
use warpline_ir::DType;

fields! {
    /// The problem: `C[M, N] = gate(A[M, K] · B₁[N, K]ᵀ) ∘ (A · B₂[N, K]ᵀ)` with weights in NVFP4,
    /// accumulated in f32 and rounded once.
    pub struct Problem {
        /// Rows of A and C
        pub m: u32,
        /// Columns of C, rows of each weight
        pub n: u32,
        /// Columns of A and of the weights: the summed dimension
        pub k: u32,
        /// Memory layout of the scales
        pub scale_layout: ScaleLayout = ScaleLayout::default(),
        /// Element type of A if only the weights are nvfp4: f16 or bf16 (default: A is nvfp4)
        pub activations: Option<FloatType>,
        /// Element type of C (default and only choice: that of A; f16 if A is nvfp4)
        pub out: Option<FloatType>,
        /// Function applied to the gate
        pub gate: Activation = Activation::Silu,
        /// Memory layout of the gate and up weights: separate or concatenated
        pub weights: WeightLayout = WeightLayout::default(),
        /// Reads tensor scales of A, gate and up, one f32 each, from global memory
        pub scales: bool = false,
        /// Row stride of an A in f16 or bf16 (default: dense)
        pub a_stride: Option<u64> [ELEMENTS],
        /// Row stride of C (default: dense)
        pub c_stride: Option<u64> [ELEMENTS],
    }
}

/// Returns the tensor of the codes of `rows` rows.
pub(crate) fn code_spec(name: &'static str, rows: usize, k: usize) -> TensorSpec {
    TensorSpec {
        name,
        dtype: DType::U8,
        shape: vec![rows, k / 2],
    }
}

/// Returns the tensor of the scales of `rows` rows.
pub(crate) fn scale_spec(
    name: &'static str,
    layout: ScaleLayout,
    rows: usize,
    k: usize,
) -> TensorSpec {
    TensorSpec {
        name,
        dtype: DType::E4m3,
        shape: match layout {
            ScaleLayout::Plain => vec![rows, k / BLOCK],
            ScaleLayout::Block => vec![rows.div_ceil(128), k.div_ceil(64), TILE_BYTES as usize],
        },
    }
}

/// Rejects an A that the launch before the GEMM cannot widen or permute.
pub(crate) fn check_a_rows(p: &Shape, a_stride: Option<u64>) -> Result<(), FamilyError> {
    let reject = |text: String| Err(FamilyError::Problem(text));
    if let Some(stride) = a_stride.filter(|stride| !stride.is_multiple_of(8)) {
        return reject(format!(
            "--a-stride is {stride}; it must be a multiple of 8 (16 bytes)"
        ));
    }
    // The widening kernel has one thread per 32 elements of A.
    if u64::from(p.m) * p.padded_k() >= u64::from(NUMBERS_PER_THREAD) << 31 {
        return reject(format!(
            "A has {} x {} elements; with nvfp4 weights it must have fewer than 2^36",
            p.m, p.k
        ));
    }
    Ok(())
}

/// Rejects weights that are too large for the launches that copy codes and scales.
pub(crate) fn check_copied_weights(p: &Shape, layout: ScaleLayout) -> Result<(), FamilyError> {
    // The copying kernels have one thread per 8 bytes of codes and per 4 scales.
    let copy_threads =
        (p.needs_aligned_copy()).then(|| u64::from(p.n) * (p.aligned_row_bytes() / 8));
    let scale_threads = || ScaleLayout::Block.bytes(p.n as usize, p.k as usize) as u64 / 4;
    let scale_threads = p.rearranges_scales(layout).then(scale_threads);
    if copy_threads
        .max(scale_threads)
        .is_some_and(|threads| threads > u64::from(MAX_THREADS))
    {
        return Err(FamilyError::Problem(format!(
            "each weight has {} rows of {} elements; with unaligned rows or plain scales it must have fewer than 2^35 elements, counting rows in multiples of 128",
            p.n, p.k
        )));
    }
    Ok(())
}

impl Problem {
    /// Returns SwiGLU with A and separate weights in NVFP4, with plain scales.
    pub fn new(m: u32, n: u32, k: u32) -> Self {
        Self {
            m,
            n,
            k,
            scale_layout: ScaleLayout::Plain,
            activations: None,
            out: None,
            gate: Activation::Silu,
            weights: WeightLayout::Separate,
            scales: false,
            a_stride: None,
            c_stride: None,
        }
    }

    /// Returns the element type of the decoded operands and of C.
    pub(super) fn decoded_type(&self) -> FloatType {
        self.activations.unwrap_or(FloatType::F16)
    }

    /// Returns the gated GEMM of the decoded operands.
    pub(super) fn gated_gemm(&self) -> gemm::Problem {
        let dtype = match self.decoded_type() {
            FloatType::Bf16 => OperandType::Bf16,
            _ => OperandType::F16,
        };
        gemm::Problem {
            out: self.out,
            activation: self.gate,
            up: Some(self.weights),
            scales: self.scales,
            a_stride: self.a_stride,
            c_stride: self.c_stride,
            ..gemm::Problem::new(self.m, self.n, self.k, dtype)
        }
    }

    /// Returns the part on which configs depend.
    pub(super) fn shape(&self) -> Shape {
        Shape {
            m: self.m,
            n: self.n,
            k: self.k,
            a_is_coded: self.a_is_coded(),
            streams_weights: self.gated_gemm().streams_b(),
            bytes: self.cost().bytes,
            scale_boxes: ScaleBoxes::of(self.scale_layout, self.k),
            outputs: Outputs::Gated(self.gate),
        }
    }

    /// Is A in NVFP4?
    pub(super) fn a_is_coded(&self) -> bool {
        self.activations.is_none()
    }

    /// Returns the tensors from which the plan follows. In concatenated weights up follows the gate.
    pub(super) fn operands(&self) -> Result<Operands, FamilyError> {
        let [gate_names, up_names, a_names] = CODED;
        let named = |[codes, scales]: [&str; 2]| -> Result<[Address; 2], FamilyError> {
            Ok([self.input(codes)?, self.input(scales)?])
        };
        let gate = named(gate_names)?;
        let (n, k) = (self.n as usize, self.k as usize);
        let up_offsets = [n * k / 2, self.scale_layout.bytes(n, k)];
        let up = match self.weights {
            WeightLayout::Separate => named(up_names)?,
            _ => [0, 1].map(|i| gate[i].buffer.at(up_offsets[i] as u64)),
        };
        let weight = |names, inputs| CodedTensor {
            names,
            rows: self.n,
            inputs,
        };
        let a = match self.activations {
            None => AOperand::Coded(CodedTensor {
                names: a_names,
                rows: self.m,
                inputs: named(a_names)?,
            }),
            Some(_) => AOperand::Wide {
                address: self.input("a")?,
                stride: self.a_stride.unwrap_or(self.k.into()),
            },
        };
        let tensor_scales = self.tensor_scales();
        let addresses = tensor_scales.iter().map(|name| self.input(name));
        Ok(Operands {
            shape: self.shape(),
            decoded_type: self.decoded_type(),
            scale_layout: self.scale_layout,
            weights: vec![weight(gate_names, gate), weight(up_names, up)],
            a,
            out_stride: self.c_stride.unwrap_or(self.n.into()),
            tensor_scales,
            tensor_scale_addresses: addresses.collect::<Result<_, _>>()?,
            bias: None,
        })
    }

    /// Rejects a problem that no schedule serves.
    pub(super) fn check(&self) -> Result<(), FamilyError> {
        let reject = |text: String| Err(FamilyError::Problem(text));
        if self.k == 0 || !(self.k as usize).is_multiple_of(BLOCK) {
            return reject(format!(
                "K is {}; nvfp4 needs a positive multiple of {BLOCK} (one scale per {BLOCK} elements)",
                self.k
            ));
        }
        if self.activations == Some(FloatType::F32) {
            return reject(
                "--activations is f32; with nvfp4 weights it must be f16 or bf16\n\
                 help: use --activations bf16, or leave it out for an A in nvfp4"
                    .into(),
            );
        }
        let float = self.decoded_type();
        if let Some(out) = self.out.filter(|&out| out != float) {
            let why = match self.a_is_coded() {
                true => "the type that A is decoded to",
                false => "the type of A",
            };
            return reject(format!(
                "the output is {}; it must be {}, {why}",
                out.dtype(),
                float.dtype()
            ));
        }
        if self.weights == WeightLayout::Interleaved {
            return reject(
                "nvfp4 weights cannot be interleaved\nhelp: use --weights separate or concatenated"
                    .into(),
            );
        }
        let concatenates_block_scales =
            self.scale_layout == ScaleLayout::Block && self.weights == WeightLayout::Concatenated;
        if concatenates_block_scales && !self.n.is_multiple_of(128) {
            return reject(format!(
                "N is {}; concatenated weights with --scale-layout block need a multiple of 128 (rows of a scale block)",
                self.n
            ));
        }
        if self.a_is_coded() && self.a_stride.is_some() {
            return reject(
                "--a-stride needs an A in f16 or bf16; rows of nvfp4 codes are dense\n\
                 help: leave --a-stride out, or add --activations"
                    .into(),
            );
        }
        check_a_rows(&self.shape(), self.a_stride)?;
        self.gated_gemm().check_tma()?;
        check_copied_weights(&self.shape(), self.scale_layout)
    }

    /// Returns the inputs in the order of the plan: codes, scales, tensor scales.
    pub(super) fn specs(&self) -> Vec<TensorSpec> {
        let (m, n, k) = (self.m as usize, self.n as usize, self.k as usize);
        let codes = |name, rows| code_spec(name, rows, k);
        let scales = |name, rows| scale_spec(name, self.scale_layout, rows, k);
        let tensor_scale = |name| TensorSpec {
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
            WeightLayout::Separate => all.extend([
                codes("gate", n),
                scales("gate_scales", n),
                codes("up", n),
                scales("up_scales", n),
            ]),
            _ => all.extend([codes("gate", 2 * n), scales("gate_scales", 2 * n)]),
        }
        all.extend(self.a_is_coded().then(|| scales("a_scales", m)));
        if self.scales {
            all.extend(self.a_is_coded().then(|| tensor_scale("scale_a")));
            all.extend(["scale_gate", "scale_up"].map(tensor_scale));
        }
        all
    }

    /// Returns the cost if every tensor moves once.
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

    /// Returns the names of the tensor scales.
    pub(super) fn tensor_scales(&self) -> &'static [&'static str] {
        match (self.scales, self.activations) {
            (false, _) => &[],
            (true, None) => &["scale_gate", "scale_up", "scale_a"],
            (true, Some(_)) => &["scale_gate", "scale_up"],
        }
    }
}
