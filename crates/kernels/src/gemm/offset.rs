//! The offset of a tile in C.

use warpline_ir::builder::*;

/// The first row and column of an MMA tile, and its index in the batch. With swap-AB, rows are columns
/// of C.
#[derive(Clone, Copy)]
pub(super) struct Offset {
    pub(super) row: Reg<u32>,
    pub(super) col: Reg<u32>,
    pub(super) batch: Option<Reg<u32>>,
}

impl Offset {
    /// Returns the offset moved by `rows` and `cols`.
    #[track_caller]
    pub(super) fn plus(self, rows: u32, cols: u32) -> Self {
        let add = |x: Reg<u32>, by: u32| if by == 0 { x } else { x + by };
        Self {
            row: add(self.row, rows),
            col: add(self.col, cols),
            ..self
        }
    }
}
