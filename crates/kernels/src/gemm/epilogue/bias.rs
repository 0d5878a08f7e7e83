//! The bias: a value for each column of C.

use super::Out;
use crate::gemm::offset::Offset;
use crate::gemm::problem::Problem;
use std::ops::Range as Span;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Buffer, LaunchStep};
use warpline_family::tensor::TensorSpec;
use warpline_ir::builder::*;

/// The bias in memory.
#[derive(Clone, Copy)]
pub(super) struct Bias<T> {
    values: Global<T>,
    /// Columns of C.
    n: Reg<u32>,
    /// Whether pairs are not aligned.
    by_element: bool,
}

/// The bias of a tile part in registers.
pub(in crate::gemm) enum BiasValues<T: Out> {
    /// No bias.
    None,
    /// One pair for every two columns.
    Cols(Vec<T::Pair>),
    /// One value for each row of the MMA tile, a column of C (swap-AB).
    Rows(RowVector),
}

impl<T: Out> Bias<T> {
    /// Declares the parameter.
    pub(super) fn declare(k: Builder, n: Reg<u32>, by_element: bool) -> Self {
        let values = k.pointer("bias").elements(n);
        Self {
            values,
            n,
            by_element,
        }
    }

    /// Loads the values of `width` columns.
    ///
    /// Out-of-bounds columns are not stored, so a clamped address is enough. If pairs are aligned, N is
    /// even, and a pair is either inside or outside of C.
    #[track_caller]
    pub(super) fn cols(self, offset: Offset, width: u32) -> BiasValues<T> {
        let last = self.n - 1;
        let pair = |col: Reg<u32>| match self.by_element {
            false => T::load_pair(self.values, (offset.col + col).min(last - 1)),
            true => {
                let at = [0, 1].map(|i| (offset.col + col + i).min(last));
                T::load_elements(self.values, at)
            }
        };
        BiasValues::Cols(map_col_pairs(width, pair))
    }

    /// Loads the values of `rows` rows of the MMA tile, which are columns of C (swap-AB).
    #[track_caller]
    pub(super) fn rows(self, offset: Offset, rows: u32) -> BiasValues<T> {
        let last = self.n - 1;
        let load = |row: Reg<u32>| T::widen(self.values.load((offset.row + row).min(last)));
        BiasValues::Rows(RowVector::from_fn(rows, load))
    }
}

/// Binds the bias from byte `offset` on.
pub(super) fn bind_args(
    step: LaunchStep,
    p: &Problem,
    inputs: &[TensorSpec],
    offset: u64,
) -> Result<LaunchStep, FamilyError> {
    match p.bias {
        true => Ok(step.pointer("bias", Buffer::named(inputs, "bias")?.at(offset))),
        false => Ok(step),
    }
}

impl<T: Out> BiasValues<T> {
    /// Adds the bias to a fragment.
    #[track_caller]
    pub(super) fn apply(self, x: Frag) -> Frag {
        match self {
            BiasValues::None => x,
            BiasValues::Rows(rows) => x.zip_rows(&rows, |x, b| x + b),
            BiasValues::Cols(pairs) => {
                let pairs: Vec<_> = pairs.into_iter().map(T::widen_pair).collect();
                x.zip_col_pairs(&pairs, |x, b| x + b)
            }
        }
    }

    /// Returns the pairs; empty without a bias.
    pub(super) fn pairs(self) -> Vec<T::Pair> {
        match self {
            BiasValues::Cols(pairs) => pairs,
            _ => Vec::new(),
        }
    }

    /// Returns the bias of the columns `cols` of a fragment.
    pub(super) fn slice(&self, cols: Span<u32>) -> Self {
        match self {
            BiasValues::Rows(rows) => BiasValues::Rows(rows.clone()),
            BiasValues::Cols(pairs) => {
                BiasValues::Cols(pairs[cols.start as usize / 8..cols.end as usize / 8].to_vec())
            }
            BiasValues::None => BiasValues::None,
        }
    }

    /// Returns the bias of pairs, or no bias if there are none.
    pub(super) fn from_pairs(pairs: Vec<T::Pair>) -> Self {
        match pairs.is_empty() {
            true => BiasValues::None,
            false => BiasValues::Cols(pairs),
        }
    }
}

/// Returns the biased value in float64 and its error bound.
pub(in crate::gemm) fn reference((x, error): (f64, f64), bias: f64) -> (f64, f64) {
    let y = x + bias;
    (y, error + 2f64.powi(-22) * (y.abs() + bias.abs()))
}
