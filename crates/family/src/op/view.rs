//! A tensor as its caller has it.

use std::fmt;
use warpline_ir::DType;

/// A tensor as its caller has it: element type, shape, strides, and where it lies.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorView {
    /// Its element type.
    pub dtype: DType,
    /// Its extents, outermost first.
    pub shape: Vec<u64>,
    /// Elements from one index to the next, by dimension.
    pub strides: Vec<i64>,
    /// Where its first element is; 0 where it has no address yet.
    pub address: u64,
}

impl TensorView {
    /// A dense tensor, the last dimension innermost.
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

    /// Does its last dimension but one lie side by side, and not the last? So lies
    /// the transpose of a matrix.
    pub fn is_turned(&self) -> bool {
        match (&self.shape[..], &self.strides[..]) {
            (&[.., rows, cols], &[.., down, along]) => {
                rows > 1 && cols > 1 && down == 1 && along != 1
            }
            _ => false,
        }
    }

    /// Without gaps and without an address, turned where it was.
    pub fn packed(&self) -> Self {
        let mut shape = self.shape.clone();
        let n = shape.len();
        if !self.is_turned() {
            return Self::dense(self.dtype, &shape, 0);
        }
        shape.swap(n - 1, n - 2);
        let mut view = Self::dense(self.dtype, &shape, 0);
        view.shape.swap(n - 1, n - 2);
        view.strides.swap(n - 1, n - 2);
        view
    }

    /// Does it lie without gaps, the last dimension innermost? Strides that lead
    /// nowhere do not matter.
    pub fn is_dense(&self) -> bool {
        let dense = Self::dense(self.dtype, &self.shape, 0);
        let strides = self.strides.iter().zip(dense.strides);
        let mut sides = self.shape.iter().zip(strides);
        self.elements() == 0 || sides.all(|(&n, (&stride, wanted))| n == 1 || stride == wanted)
    }

    /// How many elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |n: u64, &x| n.saturating_mul(x))
    }

    /// Does it start on 16 bytes?
    pub fn on_16_bytes(&self) -> bool {
        self.address.is_multiple_of(16)
    }

    /// The addresses from its lowest byte to behind its highest; none where it
    /// has no element.
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
    /// `bf16 [2, 1024]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.dtype, self.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_view_reach_as_far_as_its_strides() {
        let mut view = TensorView::dense(DType::F32, &[2, 3], 1000);
        assert_eq!(view.bytes(), Some((1000, 1024)));
        view.strides = vec![-8, 2];
        assert_eq!(view.bytes(), Some((1000 - 32, 1000 + 16 + 4)));
        view.shape[0] = 0;
        assert_eq!(view.bytes(), None);
    }
}
