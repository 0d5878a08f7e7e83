//! The two weights of a gated layer as one tensor.

use warpline_family::error::FamilyError;
use warpline_family::words;

/// How many rows of each follow each other in [`Weights::Interleaved`].
pub const GROUP: usize = 8;

words! {
    /// How the two weights [N, K] of a gated layer lie in memory.
    #[derive(Default)]
    pub enum Weights {
        /// Two tensors
        #[default]
        Apart = "apart",
        /// One tensor [2N, K], gate first
        Concatenated = "concatenated",
        /// One tensor [2N, K], blocks of 8 rows of gate and of up in turn
        Interleaved = "interleaved",
    }
}

fn refuse<T>(text: String) -> Result<T, FamilyError> {
    Err(FamilyError::Problem(text))
}

/// How many rows of `row_len` elements there are.
fn rows(elements: usize, row_len: usize) -> Result<usize, FamilyError> {
    if row_len > 0 && elements.is_multiple_of(row_len) {
        return Ok(elements / row_len);
    }
    let rule = format!("weights are whole rows of {row_len}");
    refuse(format!("{rule}, not {elements} elements"))
}

impl Weights {
    /// How many elements of one weight come before the other's turn, of
    /// weights of `rows` rows each.
    fn part(self, rows: usize, row_len: usize) -> Result<usize, FamilyError> {
        let group = match self {
            Weights::Apart => return refuse("weights that lie apart are not packed".into()),
            Weights::Concatenated => rows,
            Weights::Interleaved if rows.is_multiple_of(GROUP) => GROUP,
            Weights::Interleaved => {
                let rule = format!("interleaved weights have a multiple of {GROUP} rows each");
                return refuse(format!("{rule}, not {rows}"));
            }
        };
        // Without rows there is no part, whatever its length.
        Ok(if rows == 0 { 1 } else { group * row_len })
    }
}

/// The two weights, each of rows of `row_len` elements, as one tensor.
///
/// An element is whatever does not depend on its row: numbers, bytes of codes,
/// scales that lie row by row.
///
/// Refused are weights that lie apart, that differ in length or are not whole
/// rows, and interleaved ones whose rows are no multiple of 8.
///
/// ```
/// use warpline_kernels::weights::{Weights, pack, unpack};
/// let one = pack(&[1, 2, 3, 4], &[5, 6, 7, 8], 2, Weights::Concatenated)?;
/// assert_eq!(one, [1, 2, 3, 4, 5, 6, 7, 8]);
/// let (gate, up) = unpack(&one, 2, Weights::Concatenated)?;
/// assert_eq!((gate, up), (vec![1, 2, 3, 4], vec![5, 6, 7, 8]));
/// # Ok::<(), warpline_kernels::FamilyError>(())
/// ```
pub fn pack<T: Copy>(
    gate: &[T],
    up: &[T],
    row_len: usize,
    weights: Weights,
) -> Result<Vec<T>, FamilyError> {
    let (a, b) = (gate.len(), up.len());
    if a != b {
        let rule = "gate and up are of one size";
        return refuse(format!("{rule}, not {a} and {b} elements"));
    }
    let part = weights.part(rows(a, row_len)?, row_len)?;
    let pairs = gate.chunks(part).zip(up.chunks(part));
    let parts = pairs.flat_map(|(gate, up)| [gate, up]);
    Ok(parts.flatten().copied().collect())
}

/// Gate and up of one tensor: the reverse of [`pack`].
///
/// Refused is what `pack` cannot give.
pub fn unpack<T: Copy>(
    packed: &[T],
    row_len: usize,
    weights: Weights,
) -> Result<(Vec<T>, Vec<T>), FamilyError> {
    let both = rows(packed.len(), row_len)?;
    if !both.is_multiple_of(2) {
        let rule = "gate and up have an even number of rows together";
        return refuse(format!("{rule}, not {both}"));
    }
    let part = weights.part(both / 2, row_len)?;
    let (mut gate, mut up) = (Vec::new(), Vec::new());
    for pair in packed.chunks(2 * part) {
        gate.extend_from_slice(&pair[..part]);
        up.extend_from_slice(&pair[part..]);
    }
    Ok((gate, up))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Weights::{Apart, Concatenated, Interleaved};
    use warpline_family::field::FieldValue;

    /// Elements that say of which weight, row and column they are.
    fn weight(of: char, rows: usize, row_len: usize) -> Vec<(char, usize, usize)> {
        let row = |i| (0..row_len).map(move |j| (of, i, j));
        (0..rows).flat_map(row).collect()
    }

    #[test]
    fn every_row_lies_where_it_should_and_comes_back() -> Result<(), FamilyError> {
        for (n, k) in [(0, 3), (1, 1), (7, 5), (8, 1), (24, 17), (129, 3), (136, 7)] {
            let (gate, up) = (weight('g', n, k), weight('u', n, k));
            for weights in [Concatenated, Interleaved] {
                if weights == Interleaved && n % 8 != 0 {
                    continue;
                }
                let packed = pack(&gate, &up, k, weights)?;
                assert_eq!(packed.len(), 2 * n * k);
                for (at, &element) in packed.iter().enumerate() {
                    let (r, j) = (at / k, at % k);
                    let expected = match weights {
                        Interleaved if r / 8 % 2 == 0 => ('g', r / 16 * 8 + r % 8, j),
                        Interleaved => ('u', r / 16 * 8 + r % 8, j),
                        _ if r < n => ('g', r, j),
                        _ => ('u', r - n, j),
                    };
                    assert_eq!(element, expected, "{weights:?} {n} x {k}");
                }
                assert_eq!(unpack(&packed, k, weights)?, (gate.clone(), up.clone()));
            }
        }
        Ok(())
    }

    #[test]
    fn what_breaks_a_rule_is_refused() {
        fn is<T>(result: Result<T, FamilyError>, text: &str) {
            let refused = result.err().map(|e| e.to_string()).unwrap_or_default();
            assert!(refused.ends_with(text), "{refused:?}, not {text:?}");
        }
        let pack = |a, b, k, weights| pack(&vec![0; a], &vec![0; b], k, weights);
        is(
            pack(6, 9, 3, Concatenated),
            "of one size, not 6 and 9 elements",
        );
        is(
            pack(6, 6, 4, Concatenated),
            "whole rows of 4, not 6 elements",
        );
        is(
            pack(6, 6, 0, Concatenated),
            "whole rows of 0, not 6 elements",
        );
        is(
            pack(24, 24, 2, Interleaved),
            "multiple of 8 rows each, not 12",
        );
        is(pack(16, 16, 2, Apart), "apart are not packed");
        let unpack = |len, k, weights| unpack(&vec![0; len], k, weights);
        is(unpack(16, 2, Apart), "apart are not packed");
        is(unpack(6, 2, Concatenated), "number of rows together, not 3");
        is(unpack(16, 2, Interleaved), "multiple of 8 rows each, not 4");
        is(
            unpack(16, 5, Interleaved),
            "whole rows of 5, not 16 elements",
        );
        for weights in [Concatenated, Interleaved] {
            assert!(pack(0, 0, usize::MAX, weights).is_ok());
            assert!(unpack(0, usize::MAX, weights).is_ok());
        }
    }

    #[test]
    fn they_have_the_same_names_everywhere() {
        let names = ["apart", "concatenated", "interleaved"];
        for (weights, name) in [Apart, Concatenated, Interleaved].into_iter().zip(names) {
            assert_eq!(serde_json::to_value(weights).ok(), Some(name.into()));
            assert_eq!(Weights::read(name), Ok(weights));
        }
    }
}
