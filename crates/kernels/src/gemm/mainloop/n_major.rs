//! B as [K, N], N innermost. wgmma reads 16-bit types in this layout too.

use super::{FillSlot, KTile, LoadPart, Mainloop, byte_offset, load_box, tiled_map};
use crate::gemm::config::Config;
use crate::gemm::problem::{Class, Matrix, Problem};
use std::ops::Range as Span;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, Buffer, LaunchStep, TensorArg};
use warpline_family::tensor::TensorSpec;
use warpline_ir::Element;
use warpline_ir::builder::*;

/// Columns of a panel: 128 bytes of a row.
const PANEL: u32 = 64;

/// B with N innermost.
pub(super) struct NMajor {
    b: TensorMap,
}

impl NMajor {
    /// Declares the tensor map: panels of 64 columns.
    pub(super) fn declare(k: Builder, class: &Class, c: &Config) -> Self {
        let b = tiled_map(class, class.dtype.b_dtype(), PANEL, c.tile_k);
        Self {
            b: k.tensor_map("b", b),
        }
    }

    /// Binds the columns `cols` of B.
    pub(super) fn bind_args(
        step: LaunchStep,
        p: &Problem,
        inputs: &[TensorSpec],
        cols: &Span<u32>,
        tensor: impl Fn(Address, Matrix) -> TensorArg,
    ) -> Result<LaunchStep, FamilyError> {
        let b = Matrix {
            cols: cols.len() as u64,
            ..p.b()
        };
        let first_byte = byte_offset(p, b, cols.start.into());
        let address = Buffer::named(inputs, "b")?.at(first_byte);
        Ok(step.tensor("b", tensor(address, b)))
    }

    /// Issues the loads of a k-tile: every `part.count`-th panel.
    #[track_caller]
    pub(super) fn load<A: Element, B: Element>(
        &self,
        mainloop: &Mainloop,
        slot: &FillSlot<A, B>,
        tile: KTile,
        part: LoadPart,
    ) {
        let (c, hint) = (&mainloop.config, mainloop.b_hint());
        for (i, col) in (0..).zip((0..c.tile_n).step_by(PANEL as usize)) {
            if i % part.count == part.index {
                let to = slot.1.slice(0..c.tile_k, col..col + PANEL);
                let origin = [tile.n + col, tile.k];
                load_box(slot, self.b, to, origin, tile.batch, false, hint);
            }
        }
    }
}
