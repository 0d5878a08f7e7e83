//! B as [K, N]: a row for each element of K. The tensor cores read 16-bit types across rows.

use super::{Filled, KTile, Mainloop, Part, boxes, bytes_to, copy};
use crate::gemm::config::Config;
use crate::gemm::problem::{Class, Matrix, Problem};
use std::ops::Range as Span;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, Buffer, Step, TensorArg};
use warpline_family::tensor::TensorSpec;
use warpline_ir::Element;
use warpline_ir::build::*;

/// Columns of a panel: 128 bytes of a row.
const PANEL: u32 = 64;

/// B with N innermost.
pub(super) struct NMajor {
    b: Map,
}

impl NMajor {
    /// Declares the tensor map: panels of 64 columns.
    pub(super) fn declare(k: Builder, class: &Class, c: &Config) -> Self {
        let b = boxes(class, class.factor.other(), PANEL, c.tile_k);
        Self {
            b: k.tensor_map("b", b),
        }
    }

    /// Binds some columns of B.
    pub(super) fn bind_args(
        step: Step,
        p: &Problem,
        inputs: &[TensorSpec],
        cols: &Span<u32>,
        tensor: impl Fn(Address, Matrix) -> TensorArg,
    ) -> Result<Step, FamilyError> {
        let b = Matrix {
            cols: cols.len() as u64,
            ..p.b()
        };
        let first = bytes_to(p, b, cols.start.into());
        let at = Buffer::named(inputs, "b")?.at(first);
        Ok(step.tensor("b", tensor(at, b)))
    }

    /// Issues the loads of a k-tile: every `part.of`-th panel.
    #[track_caller]
    pub(super) fn load<A: Element, B: Element>(
        &self,
        mainloop: &Mainloop,
        slot: &Filled<A, B>,
        tile: KTile,
        part: Part,
    ) {
        let (c, hint) = (&mainloop.config, mainloop.stream());
        for (i, col) in (0..).zip((0..c.tile_n).step_by(PANEL as usize)) {
            if i % part.of == part.index {
                let to = slot.1.slice(0..c.tile_k, col..col + PANEL);
                let origin = [tile.n + col, tile.k];
                copy(slot, self.b, to, origin, tile.batch, false, hint);
            }
        }
    }
}
