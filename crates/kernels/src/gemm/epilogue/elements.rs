//! A matrix that is addressed element by element.

use crate::gemm::config::Config;
use crate::gemm::problem::{Class, Matrix};
use warpline_family::plan::{Address, Step};
use warpline_ir::build::*;
use warpline_ir::{DType, Element};

/// Is C stored element by element?
pub(super) fn is_by_elements(class: &Class, c: &Config) -> bool {
    c.swap_ab() && class.out.dtype() == DType::F32
}

/// Matrices in global memory.
#[derive(Clone, Copy)]
pub(super) struct Elements<T> {
    first: Global<T>,
    /// Elements from one row to the next.
    stride: Reg<u32>,
    /// Elements from one matrix of a batch to the next.
    step: Option<Reg<u64>>,
}

impl<T: Element> Elements<T> {
    /// Declares matrices of `m` × `n`, as many as `batch`.
    pub(super) fn declare(
        k: Builder,
        name: &str,
        [m, n]: [Reg<u32>; 2],
        batch: Option<Reg<u32>>,
    ) -> Self {
        let first = k.pointer(name);
        let stride = k.param::<u32>(&format!("{name}_stride")).at_least(1);
        let step = batch.map(|_| k.param::<u64>(&format!("{name}_step")));
        let last = (extent(m) - 1u32) * stride + n;
        Self {
            first: first.elements(match step.zip(batch) {
                None => last,
                Some((step, batch)) => last + (extent(batch) - 1u32) * step,
            }),
            stride,
            step,
        }
    }

    /// A row.
    #[track_caller]
    pub(super) fn row(self, row: Reg<u32>, batch: Option<Reg<u32>>) -> Global<T> {
        let start = row.mul_wide(self.stride);
        self.first.offset(match self.step.zip(batch) {
            None => start,
            Some((step, z)) => z.cast::<u64>() * step + start,
        })
    }
}

/// Binds the launch arguments of such a matrix.
pub(super) fn bind_args(step: Step, name: &str, at: Address, m: Matrix, batched: bool) -> Step {
    // Strides are 32 bits wide, as the problem has checked.
    let step = step
        .pointer(name, at)
        .scalar(&format!("{name}_stride"), m.stride as u32);
    match batched {
        true => step.scalar(&format!("{name}_step"), m.step),
        false => step,
    }
}
