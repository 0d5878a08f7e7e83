//! Dimensions of several tensors of one shape, walked as few.

/// Some dimensions, as one: how many indices, and each tensor's stride.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Walk {
    /// Indices.
    pub len: u64,
    /// Elements from one index to the next, by tensor.
    pub strides: Vec<i64>,
}

/// The fewest dimensions that visit what `shape` visits, in any order, each
/// element of every tensor at the same moment as its partners: dimensions of
/// one index are left out, and those are joined that follow each other in
/// every tensor. The innermost comes last.
///
/// ```
/// use warpline_family::op::layout::walk;
/// // Dense, and dense with its dimensions swapped: the same walk.
/// let joined = walk(&[4, 3], &[&[3, 1], &[3, 1]]);
/// assert_eq!((joined.len(), joined[0].len), (1, 12));
/// assert_eq!(walk(&[4, 3], &[&[1, 4], &[1, 4]]), joined);
/// assert_eq!(walk(&[4, 3], &[&[3, 1], &[1, 4]]).len(), 2);
/// ```
pub fn walk(shape: &[u64], strides: &[&[i64]]) -> Vec<Walk> {
    let of = |i: usize| strides.iter().map(|s| s[i]).collect();
    let mut all: Vec<Walk> = (shape.iter().enumerate())
        .filter(|&(_, &len)| len != 1)
        .map(|(i, &len)| Walk {
            len,
            strides: of(i),
        })
        .collect();
    all.sort_by(|a, b| b.strides.cmp(&a.strides));
    let mut joined: Vec<Walk> = Vec::new();
    for next in all {
        let follows = |outer: &Walk| {
            let mut pairs = outer.strides.iter().zip(&next.strides);
            let len = i64::try_from(next.len).unwrap_or(i64::MAX);
            pairs.all(|(&outer, &inner)| outer == inner.saturating_mul(len))
        };
        match joined.last_mut() {
            Some(outer) if follows(outer) => {
                outer.len = outer.len.saturating_mul(next.len);
                outer.strides = next.strides;
            }
            _ => joined.push(next),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_indices_and_strides_of_them_do_not_matter() {
        assert_eq!(walk(&[1, 5, 1], &[&[77, 1, -3]]).len(), 1);
        assert!(walk(&[1, 1], &[&[9, 9]]).is_empty());
        assert!(walk(&[], &[&[]]).is_empty());
    }

    #[test]
    fn what_has_gaps_is_not_joined() {
        let padded = walk(&[4, 3], &[&[8, 1]]);
        assert_eq!(padded.len(), 2);
        assert_eq!(padded[1].strides, [1]);
        assert_eq!(walk(&[4, 3], &[&[3, 1], &[8, 1]]).len(), 2);
        assert_eq!(walk(&[2, 4], &[&[16, 4]]), walk(&[8], &[&[4]]));
    }
}
