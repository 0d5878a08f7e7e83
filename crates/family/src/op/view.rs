//! Views of the caller's tensors.

use std::fmt;
use warpline_ir::DType;

/// A tensor of the caller: element type, shape, strides and address.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorView {
    /// The element type.
    pub dtype: DType,
    /// The extents, outermost first.
    pub shape: Vec<u64>,
    /// The stride of each dimension, in elements.
    pub strides: Vec<i64>,
    /// The address of the first element; 0 if it has no address yet.
    pub address: u64,
}

impl TensorView {
    /// Returns a dense row-major view.
    ///
    /// ```
    /// use warpline_family::op::TensorView;
    /// use warpline_ir::DType;
    /// assert_eq!(TensorView::dense(DType::F32, &[2, 3, 4], 0).strides, [12, 4, 1]);
    /// ```
    pub fn dense(dtype: DType, shape: &[u64], address: u64) -> Self {
        let mut strides = vec![1; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = (shape[i].max(1) as i64).saturating_mul(strides[i]);
        }
        Self {
            dtype,
            shape: shape.to_vec(),
            strides,
            address,
        }
    }

    /// Returns whether the second-to-last dimension has stride 1 and the last one has not, as in a
    /// transposed matrix.
    pub fn is_transposed(&self) -> bool {
        match (&self.shape[..], &self.strides[..]) {
            (&[.., rows, cols], &[.., row_stride, col_stride]) => {
                rows > 1 && cols > 1 && row_stride == 1 && col_stride != 1
            }
            _ => false,
        }
    }

    /// Returns a dense view of the same shape without an address. A transposed view stays
    /// transposed.
    pub fn packed(&self) -> Self {
        let mut shape = self.shape.clone();
        let n = shape.len();
        if !self.is_transposed() {
            return Self::dense(self.dtype, &shape, 0);
        }
        shape.swap(n - 1, n - 2);
        let mut view = Self::dense(self.dtype, &shape, 0);
        view.shape.swap(n - 1, n - 2);
        view.strides.swap(n - 1, n - 2);
        view
    }

    /// Returns whether the view is dense and row-major. Strides of dimensions of length 1 are
    /// ignored.
    pub fn is_dense(&self) -> bool {
        let dense = Self::dense(self.dtype, &self.shape, 0);
        let strides = self.strides.iter().zip(dense.strides);
        let mut dims = self.shape.iter().zip(strides);
        self.elements() == 0 || dims.all(|(&n, (&stride, expected))| n == 1 || stride == expected)
    }

    /// Returns the number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |n: u64, &x| n.saturating_mul(x))
    }

    /// Returns whether the address is 16-byte aligned.
    pub fn is_16_byte_aligned(&self) -> bool {
        self.address.is_multiple_of(16)
    }

    /// Returns the address range of all elements, end exclusive; `None` if there are no elements.
    pub fn bytes(&self) -> Option<(i128, i128)> {
        if self.elements() == 0 {
            return None;
        }
        let size = self.dtype.bytes() as i128;
        let (mut low, mut high) = (i128::from(self.address), i128::from(self.address));
        for (&n, &stride) in self.shape.iter().zip(&self.strides) {
            let reach = (i128::from(n) - 1) * i128::from(stride) * size;
            low += reach.min(0);
            high += reach.max(0);
        }
        Some((low, high + size))
    }
}

impl fmt::Display for TensorView {
    /// Writes `bf16 [2, 1024]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.dtype, self.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_range_covers_all_strides() {
        let mut view = TensorView::dense(DType::F32, &[2, 3], 1000);
        assert_eq!(view.bytes(), Some((1000, 1024)));
        view.strides = vec![-8, 2];
        assert_eq!(view.bytes(), Some((1000 - 32, 1000 + 16 + 4)));
        view.shape[0] = 0;
        assert_eq!(view.bytes(), None);
    }
}
