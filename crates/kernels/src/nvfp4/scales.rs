//! Block scales in e4m3, and their memory layouts.

use super::{BLOCK, check_k, check_len};
use warpline_family::error::FamilyError;
use warpline_family::keywords;
use warpline_family::numbers::{from_fp8, to_fp8};
use warpline_ir::DType;

/// The largest scale.
pub const MAX: f32 = 448.0;

/// Rows, scales per row, and bytes of a tile of [`ScaleLayout::Block`].
const TILE: (usize, usize, usize) = (128, 4, 512);

/// Returns the value of a scale; 0x7f and 0xff are NaN. [`quantize`](super::quantize()) never sets
/// the sign, bit 7.
pub fn decode(scale: u8) -> f64 {
    from_fp8(DType::E4m3, scale)
}

/// Returns the nearest scale, ties to even, saturating to ±448; NaN stays NaN.
///
/// ```
/// use warpline_kernels::nvfp4::scales::{decode, encode};
/// assert_eq!(decode(encode(0.3)), 0.3125);
/// assert_eq!(encode(0.0009), 0);
/// ```
pub fn encode(x: f64) -> u8 {
    to_fp8(DType::E4m3, x)
}

keywords! {
    /// Memory layout of the scales of a tensor.
    #[derive(Default)]
    pub enum ScaleLayout {
        /// Row-major: [rows, K/16]
        #[default]
        Plain = "plain",
        /// cuBLAS's layout: tiles of 128 rows × 4 scales, padded with zeros
        Block = "block",
    }
}

impl ScaleLayout {
    /// Returns the bytes of the scales of `rows` rows of `k` numbers, with padding; `usize::MAX` on
    /// overflow.
    ///
    /// ```
    /// use warpline_kernels::nvfp4::ScaleLayout;
    /// assert_eq!(ScaleLayout::Plain.bytes(129, 80), 645);
    /// assert_eq!(ScaleLayout::Block.bytes(129, 80), 2048);
    /// ```
    pub fn bytes(self, rows: usize, k: usize) -> usize {
        let blocks = k.div_ceil(BLOCK);
        match self {
            ScaleLayout::Plain => rows.saturating_mul(blocks),
            ScaleLayout::Block => {
                let tiles = rows
                    .div_ceil(TILE.0)
                    .saturating_mul(blocks.div_ceil(TILE.1));
                tiles.saturating_mul(TILE.2)
            }
        }
    }

    /// Returns the byte index of the scale of a block of a row, for rows of `k` numbers. It does not
    /// depend on the number of rows.
    ///
    /// A tile of [`Block`](Self::Block) holds four scales each of rows 0, 32, 64 and 96, then of rows
    /// 1, 33 and so on. Tiles of the same rows are consecutive.
    ///
    /// ```
    /// use warpline_kernels::nvfp4::ScaleLayout;
    /// assert_eq!(ScaleLayout::Plain.index(33, 2, 128), 266);
    /// assert_eq!(ScaleLayout::Block.index(33, 2, 128), 16 + 4 + 2);
    /// assert_eq!(ScaleLayout::Block.index(128, 4, 128), 3 * 512);
    /// ```
    pub fn index(self, row: usize, block: usize, k: usize) -> usize {
        let blocks = k.div_ceil(BLOCK);
        match self {
            ScaleLayout::Plain => row * blocks + block,
            ScaleLayout::Block => {
                let tile = row / TILE.0 * blocks.div_ceil(TILE.1) + block / TILE.1;
                let inside = row % 32 * 16 + row % TILE.0 / 32 * 4 + block % TILE.1;
                tile * TILE.2 + inside
            }
        }
    }

    /// Converts plain scales to this layout; padding is zero.
    pub fn arrange(self, plain: &[u8], rows: usize, k: usize) -> Result<Vec<u8>, FamilyError> {
        self.convert(Self::Plain, plain, rows, k)
    }

    /// Converts scales of this layout to plain scales, without padding.
    pub fn to_plain(self, scales: &[u8], rows: usize, k: usize) -> Result<Vec<u8>, FamilyError> {
        Self::Plain.convert(self, scales, rows, k)
    }

    /// Converts scales from another layout to this one.
    fn convert(
        self,
        from: Self,
        scales: &[u8],
        rows: usize,
        k: usize,
    ) -> Result<Vec<u8>, FamilyError> {
        check_k(k)?;
        check_len("scales", from.bytes(rows, k), scales.len())?;
        let mut out = vec![0; self.bytes(rows, k)];
        for row in 0..rows {
            for block in 0..k / BLOCK {
                out[self.index(row, block, k)] = scales[from.index(row, block, k)];
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ScaleLayout::{Block, Plain};
    use warpline_family::field::FieldValue;

    /// Returns odd sizes: rows and K.
    fn sizes() -> impl Iterator<Item = (usize, usize)> {
        let rows = [1, 7, 127, 128, 129, 300].into_iter();
        rows.flat_map(|rows| [16, 48, 64, 80, 1040].map(|k| (rows, k)))
    }

    #[test]
    fn block_layout_matches_cublas() {
        for (rows, k) in sizes() {
            let [tile_rows, tile_columns] = [rows.div_ceil(128), k.div_ceil(64)];
            assert_eq!(
                Block.bytes(rows, k),
                tile_rows * tile_columns * 512,
                "{rows} x {k}"
            );
            for index in 0..tile_rows * tile_columns * 512 {
                let (tile, lane, byte) = (index / 512, index % 512 / 16, index % 16);
                let row = tile / tile_columns * 128 + byte / 4 * 32 + lane;
                let block = tile % tile_columns * 4 + byte % 4;
                assert_eq!(Block.index(row, block, k), index, "{row}, {block} of {k}");
            }
        }
    }

    #[test]
    fn layouts_round_trip_and_padding_is_zero() -> Result<(), FamilyError> {
        for (rows, k) in sizes() {
            let plain: Vec<u8> = (0..rows * k / 16).map(|i| (i % 251 + 1) as u8).collect();
            let tiles = Block.arrange(&plain, rows, k)?;
            let zeros = tiles.iter().filter(|&&scale| scale == 0).count();
            assert_eq!(zeros, tiles.len() - plain.len(), "{rows} x {k}");
            assert_eq!(Block.to_plain(&tiles, rows, k)?, plain);
            assert_eq!(Plain.arrange(&plain, rows, k)?, plain);
        }
        Ok(())
    }

    #[test]
    fn mismatched_lengths_are_rejected() {
        let assert_error = |result: Result<Vec<u8>, FamilyError>, text: &str| {
            assert_eq!(result.map_err(|e| e.to_string()), Err(text.into()));
        };
        let text = "nvfp4: K is 24; it must be a positive multiple of 16";
        assert_error(Block.arrange(&[0; 2], 1, 24), text);
        assert_error(
            Block.arrange(&[0; 5], 2, 48),
            "nvfp4: there are 5 scales; 6 are needed",
        );
        assert_error(
            Block.to_plain(&[0; 6], 2, 48),
            "nvfp4: there are 6 scales; 512 are needed",
        );
        assert!(Block.to_plain(&[], usize::MAX, 1 << 40).is_err());
        assert!(Block.to_plain(&[], usize::MAX, 0).is_err());
    }

    #[test]
    fn keywords_match_their_json_names() {
        for (layout, name) in [(Plain, "plain"), (Block, "block")] {
            assert_eq!(serde_json::to_value(layout).ok(), Some(name.into()));
            assert_eq!(ScaleLayout::read(name), Ok(layout));
        }
    }
}
