//! Layouts of tensors in slices.

use crate::error::Error;
use warpline_ir::DType;
use warpline_kernels::FamilyError;
use warpline_kernels::op::TensorView;

/// The layout of a tensor in a slice, from its first element. A shape alone, `&[rows, cols]`, is dense
/// and row-major.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SliceLayout {
    shape: Vec<u64>,
    /// The strides; `None` for a dense layout.
    strides: Option<Vec<i64>>,
}

impl SliceLayout {
    /// Returns a dense row-major layout.
    pub fn dense(shape: &[usize]) -> Self {
        Self {
            shape: shape.iter().map(|&n| n as u64).collect(),
            strides: None,
        }
    }

    /// Returns a layout with strides in elements, by dimension.
    ///
    /// ```
    /// use warpline::ops::interop::SliceLayout;
    /// assert!(SliceLayout::strided(&[37, 1000], &[1024, 1]).is_ok());
    /// let error = SliceLayout::strided(&[37, 1000], &[1024]).unwrap_err();
    /// assert_eq!(error.to_string(), "a layout of shape [37, 1000] needs 2 strides, not 1");
    /// ```
    pub fn strided(shape: &[usize], strides: &[usize]) -> Result<Self, Error> {
        if shape.len() != strides.len() {
            let (rank, given) = (shape.len(), strides.len());
            let why = format!("a layout of shape {shape:?} needs {rank} strides, not {given}");
            return Err(FamilyError::Problem(why).into());
        }
        // A stride that does not fit into i64 exceeds every slice.
        let stride = |&n: &usize| i64::try_from(n).unwrap_or(i64::MAX);
        Ok(Self {
            strides: Some(strides.iter().map(stride).collect()),
            ..Self::dense(shape)
        })
    }

    /// Returns the tensor in a slice of `len` elements, without an address. The error completes a
    /// sentence that starts with the tensor's name.
    pub(super) fn within(self, dtype: DType, len: usize) -> Result<TensorView, String> {
        let mut view = TensorView::dense(dtype, &self.shape, 0);
        if let Some(strides) = self.strides {
            view.strides = strides;
        }
        let span = span(&view);
        if span <= len as u128 {
            return Ok(view);
        }
        let strides = match view == TensorView::dense(dtype, &view.shape, 0) {
            true => String::new(),
            false => format!(" with strides {:?}", view.strides),
        };
        Err(format!(
            "is {view}{strides}, which spans {span} elements, but its slice has {len}"
        ))
    }
}

impl<const N: usize> From<&[usize; N]> for SliceLayout {
    fn from(shape: &[usize; N]) -> Self {
        Self::dense(shape)
    }
}

impl From<&[usize]> for SliceLayout {
    fn from(shape: &[usize]) -> Self {
        Self::dense(shape)
    }
}

/// Returns the number of elements from the first to the last, inclusive.
///
/// [`TensorView::bytes`] trusts its strides; these are unchecked.
fn span(view: &TensorView) -> u128 {
    if view.elements() == 0 {
        return 0;
    }
    let dims = view.shape.iter().zip(&view.strides);
    let steps = dims.map(|(&n, &stride)| {
        // `dense` has negative strides if the product of the shape exceeds 63 bits.
        let stride = u128::try_from(stride).unwrap_or(u128::MAX);
        u128::from(n - 1).saturating_mul(stride)
    });
    steps.fold(1, u128::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(layout: impl Into<SliceLayout>, len: usize) -> String {
        match layout.into().within(DType::F32, len) {
            Ok(_) => "fits".into(),
            Err(why) => why,
        }
    }

    fn strided(shape: &[usize], strides: &[usize]) -> SliceLayout {
        SliceLayout::strided(shape, strides).unwrap()
    }

    #[test]
    fn a_slice_must_have_the_elements_of_the_shape() {
        assert_eq!(check(&[2, 8], 16), "fits");
        assert_eq!(check(&[2, 8], 17), "fits");
        assert_eq!(
            check(&[2, 8], 15),
            "is f32 [2, 8], which spans 16 elements, but its slice has 15"
        );
        assert_eq!(check(&[0usize; 0], 1), "fits");
        assert_eq!(
            check(&[0usize; 0], 0),
            "is f32 [], which spans 1 elements, but its slice has 0"
        );
    }

    #[test]
    fn the_padding_after_the_last_row_is_not_needed() {
        assert_eq!(check(strided(&[2, 8], &[10, 1]), 18), "fits");
        assert_eq!(
            check(strided(&[2, 8], &[10, 1]), 17),
            "is f32 [2, 8] with strides [10, 1], which spans 18 elements, \
             but its slice has 17"
        );
        assert_eq!(check(strided(&[1, 8], &[usize::MAX, 1]), 8), "fits");
        assert_eq!(check(strided(&[1000, 8], &[0, 1]), 8), "fits");
    }

    #[test]
    fn an_empty_shape_spans_nothing() {
        assert_eq!(check(&[0, 8], 0), "fits");
        assert_eq!(check(&[usize::MAX, usize::MAX, 0], 0), "fits");
    }

    #[test]
    fn huge_layouts_are_rejected_without_overflow() {
        let max = usize::MAX;
        for layout in [
            SliceLayout::dense(&[max]),
            SliceLayout::dense(&[2, 1 << 63]),
            SliceLayout::dense(&[1 << 32, 1 << 32]),
            SliceLayout::dense(&[3, 1 << 31, 1 << 31, 4]),
            SliceLayout::dense(&[max; 5]),
            strided(&[max, max], &[max, max]),
            strided(&[2, 2], &[max, 1]),
        ] {
            assert!(
                check(layout.clone(), max / 8).contains("spans"),
                "{layout:?}"
            );
        }
    }
}
