//! Scales of the accumulators: a launch parameter, and scales in memory.

use crate::gemm::problem::{Class, Problem, scale_names};
use warpline_family::error::FamilyError;
use warpline_family::plan::{Buffer, LaunchStep};
use warpline_family::tensor::TensorSpec;
use warpline_ir::builder::*;

/// The scale of each accumulator: that of the GEMM, or those of gate and up.
pub(in crate::gemm) type Scales = [Option<Reg<f32>>; 2];

/// The scales of a kernel.
pub(super) struct Scale {
    /// A launch parameter.
    launch: Option<Reg<f32>>,
    /// Scales in memory: one of A, and one of each B operand.
    memory: Vec<Global<f32>>,
}

impl Scale {
    /// Declares the parameters.
    pub(super) fn declare(k: Builder, class: &Class) -> Self {
        let pointer = |name: &&str| k.pointer(name).elements(1u32);
        let ops = class.epilogue;
        Self {
            launch: ops.scale.then(|| k.param("scale")),
            memory: match ops.scales {
                false => Vec::new(),
                true => scale_names(class.up.is_some())
                    .iter()
                    .map(pointer)
                    .collect(),
            },
        }
    }

    /// Binds the launch arguments.
    pub(super) fn bind_args(
        mut step: LaunchStep,
        p: &Problem,
        inputs: &[TensorSpec],
    ) -> Result<LaunchStep, FamilyError> {
        if let Some(scale) = p.scale {
            step = step.scalar("scale", scale);
        }
        if p.scales {
            for name in scale_names(p.up.is_some()) {
                step = step.pointer(name, Buffer::named(inputs, name)?);
            }
        }
        Ok(step)
    }

    /// Loads the scales, once per role.
    #[track_caller]
    pub(super) fn load(&self) -> Scales {
        let mut all = [None; 2];
        if let [a, operands @ ..] = &self.memory[..] {
            let a = a.load(0u32);
            for (scale, operand) in all.iter_mut().zip(operands) {
                *scale = Some(a * operand.load(0u32));
            }
        }
        // Only a plain GEMM has the launch parameter.
        all[0] = match (self.launch, all[0]) {
            (Some(x), Some(y)) => Some(x * y),
            (one, other) => one.or(other),
        };
        all
    }
}

/// Multiplies the accumulators by the scale, if there is one.
#[track_caller]
pub(in crate::gemm) fn apply(x: Frag, scale: Option<Reg<f32>>) -> Frag {
    match scale {
        Some(scale) => x.map(|x| x * scale),
        None => x,
    }
}

/// Returns the scaled sum in float64 and its error bound: the tensor cores truncate up to `unit` of
/// `size`, the sum of magnitudes.
pub(in crate::gemm) fn reference((sum, size): (f64, f64), scale: f64, unit: f64) -> (f64, f64) {
    (scale * sum, unit * scale.abs() * size)
}
