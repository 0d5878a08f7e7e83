//! Merging of dimensions that several tensors of one shape share.

/// One merged dimension: its length, and the stride of each tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergedDim {
    /// The number of indices.
    pub len: u64,
    /// The stride of each tensor, in elements.
    pub strides: Vec<i64>,
}

/// Returns the fewest dimensions that iterate over `shape` elementwise, in any order. Dimensions of
/// length 1 are dropped, and dimensions that are contiguous in every tensor are merged. The
/// innermost dimension is last.
///
/// ```
/// use warpline_family::op::layout::merge_dims;
/// // A row-major and a column-major matrix merge to the same dimension.
/// let merged = merge_dims(&[4, 3], &[&[3, 1], &[3, 1]]);
/// assert_eq!((merged.len(), merged[0].len), (1, 12));
/// assert_eq!(merge_dims(&[4, 3], &[&[1, 4], &[1, 4]]), merged);
/// assert_eq!(merge_dims(&[4, 3], &[&[3, 1], &[1, 4]]).len(), 2);
/// ```
pub fn merge_dims(shape: &[u64], strides: &[&[i64]]) -> Vec<MergedDim> {
    let strides_of_dim = |i: usize| strides.iter().map(|s| s[i]).collect();
    let mut dims: Vec<MergedDim> = (shape.iter().enumerate())
        .filter(|&(_, &len)| len != 1)
        .map(|(i, &len)| MergedDim {
            len,
            strides: strides_of_dim(i),
        })
        .collect();
    dims.sort_by(|a, b| b.strides.cmp(&a.strides));
    let mut merged: Vec<MergedDim> = Vec::new();
    for next in dims {
        let is_contiguous = |outer: &MergedDim| {
            let mut pairs = outer.strides.iter().zip(&next.strides);
            let len = i64::try_from(next.len).unwrap_or(i64::MAX);
            pairs.all(|(&outer, &inner)| outer == inner.saturating_mul(len))
        };
        match merged.last_mut() {
            Some(outer) if is_contiguous(outer) => {
                outer.len = outer.len.saturating_mul(next.len);
                outer.strides = next.strides;
            }
            _ => merged.push(next),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_of_length_one_are_dropped() {
        assert_eq!(merge_dims(&[1, 5, 1], &[&[77, 1, -3]]).len(), 1);
        assert!(merge_dims(&[1, 1], &[&[9, 9]]).is_empty());
        assert!(merge_dims(&[], &[&[]]).is_empty());
    }

    #[test]
    fn dimensions_with_gaps_are_not_merged() {
        let padded = merge_dims(&[4, 3], &[&[8, 1]]);
        assert_eq!(padded.len(), 2);
        assert_eq!(padded[1].strides, [1]);
        assert_eq!(merge_dims(&[4, 3], &[&[3, 1], &[8, 1]]).len(), 2);
        assert_eq!(merge_dims(&[2, 4], &[&[16, 4]]), merge_dims(&[8], &[&[4]]));
    }
}
