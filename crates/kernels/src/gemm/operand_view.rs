//! Tensors of a call as operands: any strides, any alignment, one or two dimensions, broadcast batches.

use super::problem::{ALayout, OperandLayout};
use warpline_family::error::FamilyError;
use warpline_family::op::layout::merge_dims;
use warpline_family::op::{OpArgs, TensorView};

/// A batch of matrices in memory; strides are in elements.
#[derive(Clone, Debug)]
pub(crate) struct MatrixView {
    /// The dimensions of the batch.
    pub(crate) batch: Vec<u64>,
    batch_strides: Vec<i64>,
    /// Rows and columns.
    pub(crate) shape: [u64; 2],
    strides: [i64; 2],
    /// Alignment of the address in bytes, at most 16.
    align: u32,
}

/// The position of a dimension that a vector gains as a matrix.
#[derive(Clone, Copy)]
pub(crate) enum VectorAs {
    Row,
    Column,
}

/// An operand of a problem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperandView {
    /// Whether the rows in memory have K innermost.
    pub(crate) k_innermost: bool,
    pub(crate) stride: u64,
    pub(crate) inner_stride: u64,
    pub(crate) align: u32,
}

/// Returns the largest power of two, at most 16, that divides an address.
pub(crate) fn alignment(address: u64) -> u32 {
    1 << address.trailing_zeros().min(4)
}

impl MatrixView {
    /// Returns a tensor as matrices; a vector becomes a row or a column.
    pub(crate) fn new(
        call: &OpArgs<'_>,
        name: &str,
        view: &TensorView,
        vector: VectorAs,
    ) -> Result<Self, FamilyError> {
        let (mut shape, mut strides) = (view.shape.clone(), view.strides.clone());
        match (shape.len(), vector) {
            (0, _) => {
                return call.reject(format!("{name} has no dimensions; at least one is needed"));
            }
            (1, VectorAs::Row) => (shape, strides) = (vec![1, shape[0]], vec![0, strides[0]]),
            (1, VectorAs::Column) => (shape, strides) = (vec![shape[0], 1], vec![strides[0], 0]),
            _ => {}
        }
        let outer = shape.len() - 2;
        Ok(Self {
            batch: shape[..outer].to_vec(),
            batch_strides: strides[..outer].to_vec(),
            shape: [shape[outer], shape[outer + 1]],
            strides: [strides[outer], strides[outer + 1]],
            align: alignment(view.address),
        })
    }

    /// Returns the same matrices with rows and columns exchanged.
    pub(crate) fn transposed(mut self) -> Self {
        self.shape.reverse();
        self.strides.reverse();
        self
    }

    /// Returns the same matrices for a batch of more dimensions, which repeats them.
    pub(crate) fn broadcast(&self, batch: &[u64]) -> Self {
        let missing = batch.len() - self.batch.len();
        let stride = |i: usize| match i.checked_sub(missing) {
            Some(own) if self.batch[own] == batch[i] => self.batch_strides[own],
            _ => 0,
        };
        Self {
            batch: batch.to_vec(),
            batch_strides: (0..batch.len()).map(stride).collect(),
            ..self.clone()
        }
    }

    /// Returns the same elements with other rows, which the batch was merged into.
    pub(crate) fn with_rows(mut self, rows: u64, stride: i64) -> Self {
        self.shape[0] = rows;
        self.strides[0] = stride;
        self
    }

    /// Returns the alignment of the address in bytes, at most 16.
    pub(crate) fn align(&self) -> u32 {
        self.align
    }

    /// Returns the stride of the last dimension.
    pub(crate) fn inner_stride(&self) -> i64 {
        self.strides[1]
    }

    /// Returns whether the elements of a row are consecutive.
    pub(crate) fn has_dense_rows(&self) -> bool {
        self.strides[1] == 1 || self.shape[1] <= 1
    }

    /// Returns the operand of [MN, K] matrices.
    pub(crate) fn operand(
        &self,
        call: &OpArgs<'_>,
        name: &str,
    ) -> Result<OperandView, FamilyError> {
        let non_negative = |stride: i64| match u64::try_from(stride) {
            Ok(stride) => Ok(stride),
            Err(_) => call.unsupported_layout(format!(
                "{name} has stride {stride}; strides must not be negative\nhelp: make it contiguous"
            )),
        };
        let [mn, k] = self.shape;
        // A dimension of one element may have any stride.
        let is_dense = |i: usize| self.strides[i] == 1 || self.shape[i] <= 1;
        let k_innermost = is_dense(1) || !is_dense(0);
        let ([rows, cols], [stride, inner_stride]) = match k_innermost {
            true => ([mn, k], self.strides),
            false => ([k, mn], [self.strides[1], self.strides[0]]),
        };
        let inner_stride = if cols <= 1 {
            1
        } else {
            non_negative(inner_stride)?
        };
        let stride = match rows {
            0 | 1 => cols.saturating_mul(inner_stride),
            _ => non_negative(stride)?,
        };
        Ok(OperandView {
            k_innermost,
            stride,
            inner_stride,
            align: self.align,
        })
    }
}

/// The common shape of two batches, as torch broadcasts them.
pub(crate) fn broadcast_shape(
    call: &OpArgs<'_>,
    a: &[u64],
    b: &[u64],
) -> Result<Vec<u64>, FamilyError> {
    let len = a.len().max(b.len());
    let dim = |dims: &[u64], i: usize| i.checked_sub(len - dims.len()).map_or(1, |i| dims[i]);
    (0..len)
        .map(|i| match (dim(a, i), dim(b, i)) {
            (x, y) if x == y || y == 1 => Ok(x),
            (1, y) => Ok(y),
            _ => call.reject(format!(
                "the batches {a:?} and {b:?} cannot be broadcast; each dimension must be equal or 1"
            )),
        })
        .collect()
}

/// The rows and the batch of a problem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) m: u64,
    /// The row strides of A, C and the residual.
    pub(crate) strides: [i64; 3],
    /// The number of GEMMs, and the batch strides of A, B, C and the residual.
    pub(crate) batch: Option<(u64, [i64; 4])>,
}

impl Rows {
    /// Merges the batch dimensions into the rows of A, C and the residual. Returns `None` if the rows of
    /// one of them have no common stride.
    pub(crate) fn merge_into_rows(all @ [a, ..]: [&MatrixView; 3]) -> Option<Self> {
        let shape: Vec<_> = a.batch.iter().copied().chain([a.shape[0]]).collect();
        let strides = all.map(|x| {
            let rows = x.batch_strides.iter().copied().chain([x.strides[0]]);
            rows.collect::<Vec<_>>()
        });
        let strides: Vec<_> = strides.iter().map(|s| &s[..]).collect();
        let count = shape.iter().fold(1u64, |n, &m| n.saturating_mul(m));
        match &merge_dims(&shape, &strides)[..] {
            [] => Some(Self::single(count, [0; 3])),
            [one] => {
                let strides = [one.strides[0], one.strides[1], one.strides[2]];
                Some(Self::single(count, strides))
            }
            _ => None,
        }
    }

    /// Merges the batch dimensions, which all tensors have: into the rows if there is one B, else into
    /// one dimension. Returns `None` if the strides do not allow that.
    pub(crate) fn merge([a, b, c, residual]: [&MatrixView; 4]) -> Option<Self> {
        let repeats_b = a
            .batch
            .iter()
            .zip(&b.batch_strides)
            .all(|(&n, &s)| n <= 1 || s == 0);
        let rows = repeats_b.then(|| Self::merge_into_rows([a, c, residual]));
        if let Some(rows) = rows.flatten() {
            return Some(rows);
        }
        let strides = [a, b, c, residual].map(|x| &x.batch_strides[..]);
        let row_strides = [a, c, residual].map(|x| x.strides[0]);
        match &merge_dims(&a.batch, &strides)[..] {
            [] => Some(Self::single(a.shape[0], row_strides)),
            [one] => {
                let strides = [0, 1, 2, 3].map(|i| one.strides[i]);
                Some(Self {
                    m: a.shape[0],
                    strides: row_strides,
                    batch: Some((one.len, strides)),
                })
            }
            _ => None,
        }
    }

    /// Returns the rows of one GEMM.
    fn single(m: u64, strides: [i64; 3]) -> Self {
        Self {
            m,
            strides,
            batch: None,
        }
    }
}

impl OperandView {
    /// Returns the layout of this operand as A.
    pub(crate) fn a_layout(&self) -> ALayout {
        match self.k_innermost {
            true => ALayout::Mk,
            false => ALayout::Km,
        }
    }

    /// Returns the layout of this operand as B.
    pub(crate) fn b_layout(&self) -> OperandLayout {
        match self.k_innermost {
            true => OperandLayout::Nk,
            false => OperandLayout::Kn,
        }
    }
}
