//! Matrices that the epilogue addresses element by element, without a tensor map.

use super::{Epilogue, Out};
use crate::gemm::config::Config;
use crate::gemm::offset::Offset;
use crate::gemm::problem::{Class, Matrix};
use warpline_family::plan::{Address, LaunchStep};
use warpline_ir::builder::*;
use warpline_ir::{DType, Element};

/// Returns whether C is stored element by element: TMA cannot address it, or `stmatrix` cannot transpose
/// its f32 elements.
pub(super) fn stores_elements(class: &Class, c: &Config) -> bool {
    class.c_by_element || c.swap_ab() && class.out.dtype() == DType::F32
}

impl<T: Out> Epilogue<T> {
    /// Stores the elements of a fragment that are inside of C.
    #[track_caller]
    pub(super) fn store_elements(&self, values: &Frag, offset: Offset) {
        let Some(c) = self.elements else { return };
        values.each_pair(|cell, pair| {
            for (i, x) in (0..).zip(pair) {
                let (row, col) = (offset.row + cell.row, offset.col + cell.col + i);
                let [m, n] = match self.config.swap_ab() {
                    false => [row, col],
                    true => [col, row],
                };
                if_(n.lt(self.n) & m.lt(self.m), || {
                    c.row(m, offset.batch).store(n, T::round(x));
                });
            }
        });
    }
}

/// A batch of matrices in global memory.
#[derive(Clone, Copy)]
pub(super) struct GlobalMatrix<T> {
    first: Global<T>,
    /// Row stride in elements.
    stride: Reg<u32>,
    /// Batch stride in elements.
    batch_stride: Option<Reg<u64>>,
}

impl<T: Element> GlobalMatrix<T> {
    /// Declares `batch` matrices of `m` × `n`.
    pub(super) fn declare(
        k: Builder,
        name: &str,
        [m, n]: [Reg<u32>; 2],
        batch: Option<Reg<u32>>,
    ) -> Self {
        let first = k.pointer(name);
        let stride = k.param::<u32>(&format!("{name}_stride")).at_least(1);
        let batch_stride = batch.map(|_| k.param::<u64>(&format!("{name}_batch_stride")));
        let len = (extent(m) - 1u32) * stride + n;
        Self {
            first: first.elements(match batch_stride.zip(batch) {
                None => len,
                Some((batch_stride, batch)) => len + (extent(batch) - 1u32) * batch_stride,
            }),
            stride,
            batch_stride,
        }
    }

    /// Returns a row.
    #[track_caller]
    pub(super) fn row(self, row: Reg<u32>, batch: Option<Reg<u32>>) -> Global<T> {
        let start = row.mul_wide(self.stride);
        self.first.offset(match self.batch_stride.zip(batch) {
            None => start,
            Some((batch_stride, z)) => z.cast::<u64>() * batch_stride + start,
        })
    }
}

/// Binds the launch arguments of a [`GlobalMatrix`].
pub(super) fn bind_args(
    step: LaunchStep,
    name: &str,
    address: Address,
    m: Matrix,
    batched: bool,
) -> LaunchStep {
    // `Problem::check` rejects row strides of more than 32 bits.
    let step = step
        .pointer(name, address)
        .scalar(&format!("{name}_stride"), m.stride as u32);
    match batched {
        true => step.scalar(&format!("{name}_batch_stride"), m.batch_stride),
        false => step,
    }
}
