//! The gate and up weights of a gated GEMM, packed into one tensor.

use warpline_family::error::FamilyError;
use warpline_family::keywords;

/// Rows of a block in [`WeightLayout::Interleaved`].
pub const BLOCK_ROWS: usize = 8;

keywords! {
    /// Memory layout of the gate and up weights, each [N, K].
    #[derive(Default)]
    pub enum WeightLayout {
        /// Two tensors [N, K]
        #[default]
        Separate = "separate",
        /// One tensor [2N, K], the gate rows first
        Concatenated = "concatenated",
        /// One tensor [2N, K] of alternating blocks of 8 gate rows and 8 up rows
        Interleaved = "interleaved",
    }
}

fn reject<T>(text: String) -> Result<T, FamilyError> {
    Err(FamilyError::Problem(text))
}

/// Returns the number of rows of `row_len` elements.
fn rows(elements: usize, row_len: usize) -> Result<usize, FamilyError> {
    if row_len == 0 {
        return reject("a weight row has 0 elements; it needs at least 1".into());
    }
    if elements.is_multiple_of(row_len) {
        return Ok(elements / row_len);
    }
    reject(format!(
        "{elements} elements are not a whole number of weight rows of {row_len}"
    ))
}

impl WeightLayout {
    /// Returns the number of elements of one alternating block, for weights of `rows` rows each.
    fn block_len(self, rows: usize, row_len: usize) -> Result<usize, FamilyError> {
        let block_rows = match self {
            WeightLayout::Separate => {
                return reject(
                    "the weight layout is `separate`, which has no packed tensor; use `concatenated` or `interleaved`"
                        .into(),
                );
            }
            WeightLayout::Concatenated => rows,
            WeightLayout::Interleaved if rows.is_multiple_of(BLOCK_ROWS) => BLOCK_ROWS,
            WeightLayout::Interleaved => {
                return reject(format!(
                    "interleaved weights have {rows} rows each; a multiple of {BLOCK_ROWS} is needed"
                ));
            }
        };
        // `slice::chunks` panics if the length is 0.
        Ok(if rows == 0 { 1 } else { block_rows * row_len })
    }
}

/// Packs gate and up, each with rows of `row_len` elements, into one tensor.
///
/// Elements may be numbers, bytes of codes or row-major scales: rows are moved as a whole.
///
/// Rejects [`WeightLayout::Separate`], weights of different lengths, partial rows, and interleaved
/// weights whose row count is not a multiple of 8.
///
/// ```
/// use warpline_kernels::weights::{WeightLayout, pack, unpack};
/// let packed = pack(&[1, 2, 3, 4], &[5, 6, 7, 8], 2, WeightLayout::Concatenated)?;
/// assert_eq!(packed, [1, 2, 3, 4, 5, 6, 7, 8]);
/// let (gate, up) = unpack(&packed, 2, WeightLayout::Concatenated)?;
/// assert_eq!((gate, up), (vec![1, 2, 3, 4], vec![5, 6, 7, 8]));
/// # Ok::<(), warpline_kernels::FamilyError>(())
/// ```
pub fn pack<T: Copy>(
    gate: &[T],
    up: &[T],
    row_len: usize,
    layout: WeightLayout,
) -> Result<Vec<T>, FamilyError> {
    let (gate_len, up_len) = (gate.len(), up.len());
    if gate_len != up_len {
        return reject(format!(
            "gate has {gate_len} elements and up has {up_len}; both must have the same size"
        ));
    }
    let block_len = layout.block_len(rows(gate_len, row_len)?, row_len)?;
    let pairs = gate.chunks(block_len).zip(up.chunks(block_len));
    let blocks = pairs.flat_map(|(gate, up)| [gate, up]);
    Ok(blocks.flatten().copied().collect())
}

/// Unpacks gate and up from one tensor: the inverse of [`pack`].
///
/// Rejects tensors that `pack` cannot return.
pub fn unpack<T: Copy>(
    packed: &[T],
    row_len: usize,
    layout: WeightLayout,
) -> Result<(Vec<T>, Vec<T>), FamilyError> {
    let packed_rows = rows(packed.len(), row_len)?;
    if !packed_rows.is_multiple_of(2) {
        return reject(format!(
            "packed weights have {packed_rows} rows; gate and up together need an even number"
        ));
    }
    let block_len = layout.block_len(packed_rows / 2, row_len)?;
    let (mut gate, mut up) = (Vec::new(), Vec::new());
    for pair in packed.chunks(2 * block_len) {
        gate.extend_from_slice(&pair[..block_len]);
        up.extend_from_slice(&pair[block_len..]);
    }
    Ok((gate, up))
}

#[cfg(test)]
mod tests {
    use super::*;
    use WeightLayout::{Concatenated, Interleaved, Separate};
    use warpline_family::field::FieldValue;

    /// Returns elements that name their weight, row and column.
    fn weight(name: char, rows: usize, row_len: usize) -> Vec<(char, usize, usize)> {
        let row = |i| (0..row_len).map(move |j| (name, i, j));
        (0..rows).flat_map(row).collect()
    }

    #[test]
    fn rows_are_packed_in_layout_order_and_unpacked_unchanged() -> Result<(), FamilyError> {
        for (n, k) in [(0, 3), (1, 1), (7, 5), (8, 1), (24, 17), (129, 3), (136, 7)] {
            let (gate, up) = (weight('g', n, k), weight('u', n, k));
            for layout in [Concatenated, Interleaved] {
                if layout == Interleaved && n % 8 != 0 {
                    continue;
                }
                let packed = pack(&gate, &up, k, layout)?;
                assert_eq!(packed.len(), 2 * n * k);
                for (index, &element) in packed.iter().enumerate() {
                    let (r, j) = (index / k, index % k);
                    let expected = match layout {
                        Interleaved if r / 8 % 2 == 0 => ('g', r / 16 * 8 + r % 8, j),
                        Interleaved => ('u', r / 16 * 8 + r % 8, j),
                        _ if r < n => ('g', r, j),
                        _ => ('u', r - n, j),
                    };
                    assert_eq!(element, expected, "{layout:?} {n} x {k}");
                }
                assert_eq!(unpack(&packed, k, layout)?, (gate.clone(), up.clone()));
            }
        }
        Ok(())
    }

    #[test]
    fn bad_sizes_and_layouts_are_rejected() {
        fn assert_message<T>(result: Result<T, FamilyError>, text: &str) {
            let message = result.err().map(|e| e.to_string()).unwrap_or_default();
            assert!(message.ends_with(text), "{message:?}, not {text:?}");
        }
        let pack = |a, b, k, layout| pack(&vec![0; a], &vec![0; b], k, layout);
        assert_message(
            pack(6, 9, 3, Concatenated),
            "gate has 6 elements and up has 9; both must have the same size",
        );
        assert_message(
            pack(6, 6, 4, Concatenated),
            "6 elements are not a whole number of weight rows of 4",
        );
        assert_message(
            pack(6, 6, 0, Concatenated),
            "a weight row has 0 elements; it needs at least 1",
        );
        assert_message(
            pack(24, 24, 2, Interleaved),
            "interleaved weights have 12 rows each; a multiple of 8 is needed",
        );
        assert_message(
            pack(16, 16, 2, Separate),
            "the weight layout is `separate`, which has no packed tensor; use `concatenated` or `interleaved`",
        );
        let unpack = |len, k, layout| unpack(&vec![0; len], k, layout);
        assert_message(
            unpack(16, 2, Separate),
            "the weight layout is `separate`, which has no packed tensor; use `concatenated` or `interleaved`",
        );
        assert_message(
            unpack(6, 2, Concatenated),
            "packed weights have 3 rows; gate and up together need an even number",
        );
        assert_message(
            unpack(16, 2, Interleaved),
            "interleaved weights have 4 rows each; a multiple of 8 is needed",
        );
        assert_message(
            unpack(16, 5, Interleaved),
            "16 elements are not a whole number of weight rows of 5",
        );
        for layout in [Concatenated, Interleaved] {
            assert!(pack(0, 0, usize::MAX, layout).is_ok());
            assert!(unpack(0, usize::MAX, layout).is_ok());
        }
    }

    #[test]
    fn keywords_match_their_json_names() {
        let names = ["separate", "concatenated", "interleaved"];
        for (layout, name) in [Separate, Concatenated, Interleaved].into_iter().zip(names) {
            assert_eq!(serde_json::to_value(layout).ok(), Some(name.into()));
            assert_eq!(WeightLayout::read(name), Ok(layout));
        }
    }
}
