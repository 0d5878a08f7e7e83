//! How a tensor lies in a slice.

use crate::error::Error;
use warpline_ir::DType;
use warpline_kernels::FamilyError;
use warpline_kernels::op::TensorView;

/// How a tensor lies in a slice, from its first element on. A shape alone,
/// `&[rows, cols]`, is dense with the last dimension innermost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    shape: Vec<u64>,
    /// None where it is dense.
    strides: Option<Vec<i64>>,
}

impl Layout {
    /// Without gaps, the last dimension innermost.
    pub fn dense(shape: &[usize]) -> Self {
        Self {
            shape: shape.iter().map(|&n| n as u64).collect(),
            strides: None,
        }
    }

    /// With that many elements from one index to the next, by dimension.
    ///
    /// ```
    /// use warpline::ops::interop::Layout;
    /// assert!(Layout::strided(&[37, 1000], &[1024, 1]).is_ok());
    /// let error = Layout::strided(&[37, 1000], &[1024]).unwrap_err();
    /// assert_eq!(error.to_string(), "a layout of shape [37, 1000] has 2 strides, not 1");
    /// ```
    pub fn strided(shape: &[usize], strides: &[usize]) -> Result<Self, Error> {
        if shape.len() != strides.len() {
            let (rank, given) = (shape.len(), strides.len());
            let why = format!("a layout of shape {shape:?} has {rank} strides, not {given}");
            return Err(FamilyError::Problem(why).into());
        }
        // One that is too large for us is too large for every slice as well.
        let stride = |&n: &usize| i64::try_from(n).unwrap_or(i64::MAX);
        Ok(Self {
            strides: Some(strides.iter().map(stride).collect()),
            ..Self::dense(shape)
        })
    }

    /// The tensor in a slice of that many elements, at no address yet; or why
    /// it does not fit, to be said of it.
    pub(super) fn within(self, dtype: DType, len: usize) -> Result<TensorView, String> {
        let mut view = TensorView::dense(dtype, &self.shape, 0);
        if let Some(strides) = self.strides {
            view.strides = strides;
        }
        let reach = reach(&view);
        if reach <= len as u128 {
            return Ok(view);
        }
        let with = match view == TensorView::dense(dtype, &view.shape, 0) {
            true => String::new(),
            false => format!(" with strides {:?}", view.strides),
        };
        Err(format!(
            "is {view}{with}, which reaches over {reach} elements, and its slice has {len}"
        ))
    }
}

impl<const N: usize> From<&[usize; N]> for Layout {
    fn from(shape: &[usize; N]) -> Self {
        Self::dense(shape)
    }
}

impl From<&[usize]> for Layout {
    fn from(shape: &[usize]) -> Self {
        Self::dense(shape)
    }
}

/// How many elements lie from the first one to behind the last one.
///
/// [`TensorView::bytes`] trusts its strides; these may be anything.
fn reach(view: &TensorView) -> u128 {
    if view.elements() == 0 {
        return 0;
    }
    let sides = view.shape.iter().zip(&view.strides);
    let steps = sides.map(|(&n, &stride)| {
        // Where the product of a shape is beyond 63 bits, `dense` has strides below 0.
        let stride = u128::try_from(stride).unwrap_or(u128::MAX);
        u128::from(n - 1).saturating_mul(stride)
    });
    steps.fold(1, u128::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(layout: impl Into<Layout>, len: usize) -> String {
        match layout.into().within(DType::F32, len) {
            Ok(_) => "fits".into(),
            Err(why) => why,
        }
    }

    fn strided(shape: &[usize], strides: &[usize]) -> Layout {
        Layout::strided(shape, strides).unwrap()
    }

    #[test]
    fn a_slice_has_as_many_elements_as_the_shape() {
        assert_eq!(said(&[2, 8], 16), "fits");
        assert_eq!(said(&[2, 8], 17), "fits");
        assert_eq!(
            said(&[2, 8], 15),
            "is f32 [2, 8], which reaches over 16 elements, and its slice has 15"
        );
        assert_eq!(said(&[0usize; 0], 1), "fits");
        assert_eq!(
            said(&[0usize; 0], 0),
            "is f32 [], which reaches over 1 elements, and its slice has 0"
        );
    }

    #[test]
    fn it_need_not_hold_the_gap_behind_the_last_row() {
        assert_eq!(said(strided(&[2, 8], &[10, 1]), 18), "fits");
        assert_eq!(
            said(strided(&[2, 8], &[10, 1]), 17),
            "is f32 [2, 8] with strides [10, 1], which reaches over 18 elements, \
             and its slice has 17"
        );
        assert_eq!(said(strided(&[1, 8], &[usize::MAX, 1]), 8), "fits");
        assert_eq!(said(strided(&[1000, 8], &[0, 1]), 8), "fits");
    }

    #[test]
    fn nothing_reaches_nowhere() {
        assert_eq!(said(&[0, 8], 0), "fits");
        assert_eq!(said(&[usize::MAX, usize::MAX, 0], 0), "fits");
    }

    #[test]
    fn what_no_memory_holds_is_refused_and_does_not_overflow() {
        let most = usize::MAX;
        for layout in [
            Layout::dense(&[most]),
            Layout::dense(&[2, 1 << 63]),
            Layout::dense(&[1 << 32, 1 << 32]),
            Layout::dense(&[3, 1 << 31, 1 << 31, 4]),
            Layout::dense(&[most; 5]),
            strided(&[most, most], &[most, most]),
            strided(&[2, 2], &[most, 1]),
        ] {
            assert!(
                said(layout.clone(), most / 8).contains("reaches over"),
                "{layout:?}"
            );
        }
    }
}
