//! Scales of blocks: e4m3, and where they lie in memory.

use super::{BLOCK, exactly, whole_blocks};
use warpline_family::error::FamilyError;
use warpline_family::numbers::{from_fp8, to_fp8};
use warpline_family::words;
use warpline_ir::DType;

/// The greatest scale.
pub const MAX: f32 = 448.0;

/// Rows, scales of a row and bytes of a tile of [`ScaleLayout::Block`].
const TILE: (usize, usize, usize) = (128, 4, 512);

/// The value of a scale: 0x7f and 0xff are NaN. The sign is bit 7, which
/// [`quantise`](super::quantise()) never sets.
pub fn decode(scale: u8) -> f64 {
    from_fp8(DType::E4m3, scale)
}

/// The nearest scale, ties to even, saturating to ±448; NaN stays NaN.
///
/// ```
/// use warpline_kernels::nvfp4::scales::{decode, encode};
/// assert_eq!(decode(encode(0.3)), 0.3125);
/// assert_eq!(encode(0.0009), 0);
/// ```
pub fn encode(x: f64) -> u8 {
    to_fp8(DType::E4m3, x)
}

words! {
    /// How the scales of a tensor lie in memory.
    #[derive(Default)]
    pub enum ScaleLayout {
        /// Row by row: [rows, K/16]
        #[default]
        Plain = "plain",
        /// As cuBLAS takes them: tiles of 128 rows by 4 scales, padded with zeros
        Block = "block",
    }
}

impl ScaleLayout {
    /// How many bytes the scales of `rows` rows of `k` numbers take, with
    /// their padding; `usize::MAX` if they are too many to count.
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

    /// Where the scale of a block of a row lies in a tensor whose rows have
    /// `k` numbers: the same for any number of rows.
    ///
    /// A tile of [`Block`](Self::Block) holds rows 0, 32, 64 and 96 first, four
    /// scales of each, then rows 1, 33 and so on. The tiles of the same rows
    /// follow each other.
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

    /// Plain scales in this layout; padding is zero.
    pub fn arrange(self, plain: &[u8], rows: usize, k: usize) -> Result<Vec<u8>, FamilyError> {
        self.moved(Self::Plain, plain, rows, k)
    }

    /// Scales of this layout as plain ones, without their padding.
    pub fn to_plain(self, scales: &[u8], rows: usize, k: usize) -> Result<Vec<u8>, FamilyError> {
        Self::Plain.moved(self, scales, rows, k)
    }

    /// Scales of another layout in this one.
    fn moved(
        self,
        from: Self,
        scales: &[u8],
        rows: usize,
        k: usize,
    ) -> Result<Vec<u8>, FamilyError> {
        whole_blocks(k)?;
        exactly("scales", from.bytes(rows, k), scales.len())?;
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

    /// Odd sizes: rows, and K.
    fn sizes() -> impl Iterator<Item = (usize, usize)> {
        let rows = [1, 7, 127, 128, 129, 300].into_iter();
        rows.flat_map(|rows| [16, 48, 64, 80, 1040].map(|k| (rows, k)))
    }

    #[test]
    fn tiles_lie_as_cublas_reads_them() {
        for (rows, k) in sizes() {
            let [down, along] = [rows.div_ceil(128), k.div_ceil(64)];
            assert_eq!(Block.bytes(rows, k), down * along * 512, "{rows} x {k}");
            for at in 0..down * along * 512 {
                let (tile, lane, byte) = (at / 512, at % 512 / 16, at % 16);
                let row = tile / along * 128 + byte / 4 * 32 + lane;
                let block = tile % along * 4 + byte % 4;
                assert_eq!(Block.index(row, block, k), at, "{row}, {block} of {k}");
            }
        }
    }

    #[test]
    fn scales_come_back_from_tiles_and_padding_is_zero() -> Result<(), FamilyError> {
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
    fn sizes_that_do_not_fit_are_refused() {
        let is = |result: Result<Vec<u8>, FamilyError>, text: &str| {
            assert_eq!(result.map_err(|e| e.to_string()), Err(text.into()));
        };
        let text = "nvfp4: K is a positive multiple of 16, not 24";
        is(Block.arrange(&[0; 2], 1, 24), text);
        is(
            Block.arrange(&[0; 5], 2, 48),
            "nvfp4: there must be 6 scales, not 5",
        );
        is(
            Block.to_plain(&[0; 6], 2, 48),
            "nvfp4: there must be 512 scales, not 6",
        );
        assert!(Block.to_plain(&[], usize::MAX, 1 << 40).is_err());
        assert!(Block.to_plain(&[], usize::MAX, 0).is_err());
    }

    #[test]
    fn layouts_have_the_same_names_everywhere() {
        for (layout, name) in [(Plain, "plain"), (Block, "block")] {
            assert_eq!(serde_json::to_value(layout).ok(), Some(name.into()));
            assert_eq!(ScaleLayout::read(name), Ok(layout));
        }
    }
}
