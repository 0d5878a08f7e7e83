//! The problem: extents, layouts, and the tensors of inputs and outputs.

use crate::gemm;
use crate::gemm::OperandType;
use crate::nvfp4::{BLOCK, ScaleLayout};
use crate::nvfp4_dual_gemm::context::LINEAR_WEIGHT;
use crate::nvfp4_dual_gemm::kernel_spec::Outputs;
use crate::nvfp4_dual_gemm::operands::{AOperand, CodedTensor, Operands};
use crate::nvfp4_dual_gemm::problem::{check_a_rows, check_copied_weights, code_spec, scale_spec};
use crate::nvfp4_dual_gemm::scale_boxes::ScaleBoxes;
use crate::nvfp4_dual_gemm::shape::Shape;
use warpline_family::error::FamilyError;
use warpline_family::family::Cost;
use warpline_family::fields;
use warpline_family::float::FloatType;
use warpline_family::plan::{Address, Buffer};
use warpline_family::tensor::TensorSpec;
use warpline_ir::DType;

fields! {
    /// The problem: `C[M, N] = A[M, K] · B[N, K]ᵀ + bias[N]` with B in NVFP4, accumulated in f32 and
    /// rounded once.
    pub struct Problem {
        /// Rows of A and C
        pub m: u32,
        /// Columns of C, rows of the weight
        pub n: u32,
        /// Columns of A and of the weight: the summed dimension
        pub k: u32,
        /// Element type of A, C and the bias: f16 or bf16
        pub dtype: FloatType = FloatType::Bf16,
        /// Memory layout of the scales
        pub scale_layout: ScaleLayout = ScaleLayout::default(),
        /// Reads the tensor scale of the weight, one f32, from global memory
        pub scale: bool = false,
        /// Adds a bias, one value for each column of C
        pub bias: bool = false,
        /// Row stride of A (default: dense)
        pub a_stride: Option<u64> [ELEMENTS],
        /// Row stride of C (default: dense)
        pub c_stride: Option<u64> [ELEMENTS],
    }
}

impl Problem {
    /// Returns a bf16 layer without a bias, with plain scales.
    pub fn new(m: u32, n: u32, k: u32) -> Self {
        Self {
            m,
            n,
            k,
            dtype: FloatType::Bf16,
            scale_layout: ScaleLayout::Plain,
            scale: false,
            bias: false,
            a_stride: None,
            c_stride: None,
        }
    }

    /// Returns the GEMM of the decoded weight.
    pub(super) fn gemm(&self) -> gemm::Problem {
        let dtype = match self.dtype {
            FloatType::F16 => OperandType::F16,
            _ => OperandType::Bf16,
        };
        gemm::Problem {
            bias: self.bias,
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
            a_is_coded: false,
            streams_weights: self.gemm().streams_b(),
            bytes: self.cost().bytes,
            scale_boxes: ScaleBoxes::of(self.scale_layout, self.k),
            outputs: Outputs::Linear { bias: self.bias },
        }
    }

    /// Returns the tensors from which the plan follows.
    pub(super) fn operands(&self) -> Result<Operands, FamilyError> {
        let [codes, scales] = LINEAR_WEIGHT;
        let tensor_scales = self.tensor_scales();
        let addresses = tensor_scales.iter().map(|name| self.input(name));
        Ok(Operands {
            shape: self.shape(),
            decoded_type: self.dtype,
            scale_layout: self.scale_layout,
            weights: vec![CodedTensor {
                names: LINEAR_WEIGHT,
                rows: self.n,
                inputs: [self.input(codes)?, self.input(scales)?],
            }],
            a: AOperand::Wide {
                address: self.input("a")?,
                stride: self.a_stride.unwrap_or(self.k.into()),
            },
            out_stride: self.c_stride.unwrap_or(self.n.into()),
            tensor_scales,
            tensor_scale_addresses: addresses.collect::<Result<_, _>>()?,
            bias: match self.bias {
                true => Some(self.input("bias")?),
                false => None,
            },
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
        if self.dtype == FloatType::F32 {
            return reject(
                "--dtype is f32; with an nvfp4 weight it must be f16 or bf16\nhelp: use --dtype bf16"
                    .into(),
            );
        }
        check_a_rows(&self.shape(), self.a_stride)?;
        self.gemm().check_tma()?;
        check_copied_weights(&self.shape(), self.scale_layout)
    }

    /// Returns the inputs in the order of the plan.
    pub(super) fn specs(&self) -> Vec<TensorSpec> {
        let (m, n, k) = (self.m as usize, self.n as usize, self.k as usize);
        let [codes, scales] = LINEAR_WEIGHT;
        let a = TensorSpec {
            name: "a",
            dtype: self.dtype.dtype(),
            shape: vec![m, self.a_stride.map_or(k, |stride| stride as usize)],
        };
        let mut all = vec![
            a,
            code_spec(codes, n, k),
            scale_spec(scales, self.scale_layout, n, k),
        ];
        all.extend(self.scale.then(|| TensorSpec {
            name: "scale_weight",
            dtype: DType::F32,
            shape: vec![1],
        }));
        all.extend(self.bias.then(|| TensorSpec {
            name: "bias",
            dtype: self.dtype.dtype(),
            shape: vec![n],
        }));
        all
    }

    /// Returns the cost if every tensor moves once.
    pub(super) fn cost(&self) -> Cost {
        let bytes: usize = self.specs().iter().map(TensorSpec::bytes).sum();
        let [m, n, k] = [self.m, self.n, self.k].map(f64::from);
        Cost {
            flops: 2.0 * m * n * k,
            bytes: bytes as f64 + 2.0 * m * n,
        }
    }

    /// Returns the input of that name.
    fn input(&self, name: &str) -> Result<Address, FamilyError> {
        Ok(Buffer::named(&self.specs(), name)?.into())
    }

    /// Returns the names of the tensor scales.
    pub(super) fn tensor_scales(&self) -> &'static [&'static str] {
        match self.scale {
            true => &["scale_weight"],
            false => &[],
        }
    }
}
