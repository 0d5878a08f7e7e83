//! The residual: a matrix of the type and shape of C, added after the activation.

use super::Out;
use super::elements::{self, GlobalMatrix};
use crate::gemm::offset::Offset;
use crate::gemm::problem::Problem;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Buffer, LaunchStep};
use warpline_family::tensor::TensorSpec;
use warpline_ir::builder::*;

/// The residual in memory.
pub(super) struct Residual<T: Out> {
    pub(super) matrix: GlobalMatrix<T>,
    /// Whether pairs are not aligned.
    pub(super) by_element: bool,
}

impl<T: Out> Residual<T> {
    /// Adds the residual. Out-of-bounds elements are not stored, so a clamped address is enough.
    #[track_caller]
    pub(super) fn apply(
        &self,
        x: Frag,
        offset: Offset,
        [m, n]: [Reg<u32>; 2],
        swap_ab: bool,
    ) -> Frag {
        let (last_row, last_col) = (m - 1, n - 1);
        x.map_pairs(|cell, [x, y]| {
            let [u, v] = match (swap_ab, self.by_element) {
                (false, false) => {
                    let m = (offset.row + cell.row).min(last_row);
                    let n = (offset.col + cell.col).min(last_col - 1);
                    self.matrix.row(m, offset.batch).load_vec::<2>(n)
                }
                (false, true) => {
                    let m = (offset.row + cell.row).min(last_row);
                    let row = self.matrix.row(m, offset.batch);
                    [0, 1].map(|i| row.load((offset.col + cell.col + i).min(last_col)))
                }
                (true, _) => [0, 1].map(|i| {
                    let m = (offset.col + cell.col + i).min(last_row);
                    let n = (offset.row + cell.row).min(last_col);
                    self.matrix.row(m, offset.batch).load(n)
                }),
            };
            [x + T::widen(u), y + T::widen(v)]
        })
    }
}

/// Binds the residual from byte `offset` on.
pub(super) fn bind_args(
    step: LaunchStep,
    p: &Problem,
    inputs: &[TensorSpec],
    offset: u64,
) -> Result<LaunchStep, FamilyError> {
    if !p.residual {
        return Ok(step);
    }
    let address = Buffer::named(inputs, "residual")?.at(offset);
    let batched = p.batch.is_some();
    Ok(elements::bind_args(
        step,
        "residual",
        address,
        p.residual(),
        batched,
    ))
}

/// Returns the sum in float64 and its error bound.
pub(in crate::gemm) fn reference((x, error): (f64, f64), residual: f64) -> (f64, f64) {
    let y = x + residual;
    (y, error + 2f64.powi(-23) * y.abs())
}
