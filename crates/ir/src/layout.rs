//! Shared-memory tile layouts: panels, swizzles, and wgmma descriptors.
//!
//! A swizzled tile is cut into *panels* as wide as the swizzle span (32, 64 or
//! 128 bytes); each panel holds all rows, one span per row, and the panels
//! follow one another. An unswizzled tile is one panel as wide as its rows.
//! Inside a panel the 16-byte chunks of a row are permuted by the row:
//!
//! ```text
//! chunk' = chunk xor (row mod 8)          128 B
//! chunk' = chunk xor (row / 2 mod 4)       64 B
//! chunk' = chunk xor (row / 4 mod 2)       32 B
//! ```
//!
//! All three are one formula on the byte offset: `b ^ ((b >> 3) & mask)`.

use crate::ops::mma::MmaType;
use std::fmt;

/// The permutation of 16-byte chunks that avoids bank conflicts along rows and columns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Default)]
pub enum Swizzle {
    /// Row-major, no permutation.
    #[default]
    None,
    /// Spans of 32 bytes.
    B32,
    /// Spans of 64 bytes.
    B64,
    /// Spans of 128 bytes.
    B128,
}

impl Swizzle {
    /// Returns the span in bytes; `None` without a swizzle.
    pub const fn span(self) -> Option<u32> {
        match self {
            Swizzle::None => None,
            Swizzle::B32 => Some(32),
            Swizzle::B64 => Some(64),
            Swizzle::B128 => Some(128),
        }
    }

    /// Returns the bits of `b >> 3` that are XORed into the byte offset `b`.
    pub const fn mask(self) -> u32 {
        match self {
            Swizzle::None => 0,
            Swizzle::B32 => 0x10,
            Swizzle::B64 => 0x30,
            Swizzle::B128 => 0x70,
        }
    }

    /// Returns the alignment of a stage: the period of the pattern.
    pub const fn align(self) -> u32 {
        match self {
            Swizzle::None => 128,
            Swizzle::B32 => 256,
            Swizzle::B64 => 512,
            Swizzle::B128 => 1024,
        }
    }

    /// Permutes a byte offset of a panel. The permutation is its own inverse.
    ///
    /// ```
    /// use warpline_ir::Swizzle;
    /// assert_eq!(Swizzle::B128.apply(128), 128 + 16); // row 1, chunk 0 → chunk 1
    /// assert_eq!(Swizzle::B128.apply(Swizzle::B128.apply(777)), 777);
    /// ```
    pub const fn apply(self, byte: u32) -> u32 {
        byte ^ ((byte >> 3) & self.mask())
    }
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Swizzle::None => "plain",
            Swizzle::B32 => "swizzle 32B",
            Swizzle::B64 => "swizzle 64B",
            Swizzle::B128 => "swizzle 128B",
        })
    }
}

/// The layout of one stage of a tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TileLayout {
    /// The bytes of one element.
    pub element_bytes: u32,
    /// The number of rows.
    pub rows: u32,
    /// The number of columns, in elements.
    pub cols: u32,
    /// The swizzle.
    pub swizzle: Swizzle,
}

/// The contiguous dimension of a matrix operand in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Major {
    /// K is contiguous: the tile is `[m or n, k]`.
    K,
    /// M or N is contiguous: the tile is `[k, m or n]`.
    Mn,
}

/// The variable part of a wgmma descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WgmmaDescriptor {
    /// The contiguous dimension.
    pub major: Major,
}

impl TileLayout {
    /// Returns the bytes of one row.
    pub const fn row_bytes(&self) -> u32 {
        self.cols.saturating_mul(self.element_bytes)
    }

    /// Returns the bytes of a row inside one panel.
    pub const fn span(&self) -> u32 {
        match self.swizzle.span() {
            None => self.row_bytes(),
            Some(s) => s,
        }
    }

    /// Returns the columns of one panel.
    pub const fn panel_cols(&self) -> u32 {
        self.span() / self.element_bytes
    }

    /// Returns the number of panels.
    pub const fn panels(&self) -> u32 {
        match self.row_bytes().checked_div(self.span()) {
            Some(panels) => panels,
            None => 0,
        }
    }

    /// Returns the bytes of one panel.
    pub const fn panel_bytes(&self) -> u32 {
        self.rows.saturating_mul(self.span())
    }

    /// Returns the bytes from one stage to the next.
    pub const fn stage_bytes(&self) -> u32 {
        let bytes = self.rows.saturating_mul(self.row_bytes());
        match bytes.checked_next_multiple_of(self.swizzle.align()) {
            Some(bytes) => bytes,
            None => u32::MAX,
        }
    }

    /// Returns the unswizzled byte offset of an element, the start address for wgmma and TMA.
    pub const fn unswizzled_offset(&self, row: u32, col: u32) -> u32 {
        let byte = col * self.element_bytes;
        let span = self.span();
        (byte / span) * self.panel_bytes() + row * span + byte % span
    }

    /// Returns the swizzled byte offset of an element.
    ///
    /// ```
    /// use warpline_ir::{Swizzle, TileLayout};
    /// let t = TileLayout { element_bytes: 2, rows: 64, cols: 128, swizzle: Swizzle::B128 };
    /// assert_eq!(t.offset(0, 64), 64 * 128);       // second panel
    /// assert_eq!(t.offset(1, 0), 128 + 16);        // row 1, first chunk moved by one
    /// ```
    pub const fn offset(&self, row: u32, col: u32) -> u32 {
        self.swizzle.apply(self.unswizzled_offset(row, col))
    }

    /// Returns whether a rectangle is aligned to swizzle atoms, so that TMA and wgmma can use it
    /// as a tile.
    pub fn is_atom_aligned(&self, row: u32, rows: u32, col: u32, cols: u32) -> bool {
        let chunk = match self.swizzle {
            Swizzle::None => 1,
            _ => 16 / self.element_bytes.min(16),
        };
        let atom = if self.swizzle == Swizzle::None { 1 } else { 8 };
        let starts_panel = col.is_multiple_of(self.panel_cols());
        let is_inside_panel = col % self.panel_cols() + cols <= self.panel_cols();
        row.is_multiple_of(atom)
            && (rows.is_multiple_of(atom) || row + rows == self.rows)
            && col.is_multiple_of(chunk)
            && cols.is_multiple_of(chunk)
            && (starts_panel || is_inside_panel)
    }

    /// Returns the constant part of a wgmma descriptor: the low word without the start address,
    /// and the high word.
    ///
    /// K-major: the leading-dimension byte offset is ignored (encoded 1), the stride byte offset
    /// is 8 rows of a span. MN-major: the leading offset is the distance between panels, the
    /// stride offset the distance between groups of 8 k-rows.
    ///
    /// ```
    /// use warpline_ir::{WgmmaDescriptor, Major, Swizzle, TileLayout};
    /// let t = TileLayout { element_bytes: 2, rows: 128, cols: 64, swizzle: Swizzle::B128 };
    /// assert_eq!(t.descriptor(WgmmaDescriptor { major: Major::K }), (1 << 16, (1024 >> 4) | 1 << 30));
    /// ```
    pub const fn descriptor(&self, d: WgmmaDescriptor) -> (u32, u32) {
        let code = match self.swizzle {
            Swizzle::None => 0,
            Swizzle::B128 => 1,
            Swizzle::B64 => 2,
            Swizzle::B32 => 3,
        };
        let stride = 8 * self.span();
        let leading = match d.major {
            Major::K => 16,
            Major::Mn => self.panel_bytes(),
        };
        (
            ((leading >> 4) & 0x3fff) << 16,
            ((stride >> 4) & 0x3fff) | code << 30,
        )
    }
}

/// Returns the `(row, col)` of the value that register `i` of `lane` in `warp` holds in a
/// wgmma accumulator of 64 rows.
///
/// ```
/// assert_eq!(warpline_ir::accumulator_at(1, 5, 6), (16 + 1 + 8, 8 + 2));
/// ```
pub const fn accumulator_at(warp: u32, lane: u32, i: u32) -> (u32, u32) {
    (
        warp * 16 + lane / 4 + (i / 2 % 2) * 8,
        (i / 4) * 8 + (lane % 4) * 2 + i % 2,
    )
}

/// Returns the `(row, k)` of the first element that register `i` of `lane` holds of an A
/// operand of 16 rows by [`MmaType::k`]; the other elements of the register follow along K.
///
/// `mma.sync` and wgmma with A in registers use the same layout; each warp of a warpgroup
/// holds 16 rows.
///
/// ```
/// use warpline_ir::{mma_a_at, ops::mma::MmaType};
/// assert_eq!(mma_a_at(MmaType::Bf16, 5, 3), (1 + 8, 2 + 8));
/// ```
pub const fn mma_a_at(ty: MmaType, lane: u32, i: u32) -> (u32, u32) {
    let word = lane % 4 + i / 2 * 4;
    (lane / 4 + i % 2 * 8, word * ty.per_reg())
}

/// Returns the `(k, col)` of the first element that register `i` of `lane` holds of a B
/// operand of `mma.sync`, [`MmaType::k`] by 8 columns; the other elements of the register
/// follow along K.
///
/// ```
/// use warpline_ir::{mma_b_at, ops::mma::MmaType};
/// assert_eq!(mma_b_at(MmaType::E4m3, 5, 1), (4 + 16, 1));
/// ```
pub const fn mma_b_at(ty: MmaType, lane: u32, i: u32) -> (u32, u32) {
    let word = lane % 4 + i * 4;
    (word * ty.per_reg(), lane / 4)
}
