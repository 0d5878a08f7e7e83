//! B as [N, K], K innermost: the weight of a linear layer.

use super::{
    FillSlot, KTile, LoadPart, Mainloop, box_cols, byte_offset, load_box, load_parts, tiled_map,
};
use crate::gemm::config::Config;
use crate::gemm::problem::{Class, Matrix, Problem};
use crate::gemm::tile_scheduler::Cluster;
use std::ops::Range as Span;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, Buffer, LaunchStep, TensorArg};
use warpline_family::tensor::TensorSpec;
use warpline_ir::Element;
use warpline_ir::builder::*;

/// B with K innermost.
pub(super) struct KMajor {
    b: TensorMap,
}

impl KMajor {
    /// Declares the tensor map; a row of its box has at most 128 bytes.
    pub(super) fn declare(k: Builder, class: &Class, c: &Config) -> Self {
        let rows = c.tile_n / load_parts(c)[1];
        let b = tiled_map(class, class.dtype.b_dtype(), box_cols(class, c), rows);
        Self {
            b: k.tensor_map("b", b),
        }
    }

    /// Binds the rows of B for the columns `cols` of C.
    pub(super) fn bind_args(
        step: LaunchStep,
        p: &Problem,
        inputs: &[TensorSpec],
        cols: &Span<u32>,
        tensor: impl Fn(Address, Matrix) -> TensorArg,
    ) -> Result<LaunchStep, FamilyError> {
        let b = Matrix {
            rows: cols.len() as u64,
            ..p.b()
        };
        let first_byte = byte_offset(p, b, u64::from(cols.start) * b.stride);
        let address = Buffer::named(inputs, "b")?.at(first_byte);
        Ok(step.tensor("b", tensor(address, b)))
    }

    /// Issues the loads of a k-tile.
    #[track_caller]
    pub(super) fn load<A: Element, B: Element>(
        &self,
        mainloop: &Mainloop,
        slot: &FillSlot<A, B>,
        tile: KTile,
        part: LoadPart,
    ) {
        let c = &mainloop.config;
        let (width, rows) = (box_cols(&mainloop.class, c), part.rows(c.tile_n));
        let (multicast, hint) = (c.cluster() == Cluster::Rows, mainloop.b_hint());
        for k in (0..c.tile_k).step_by(width as usize) {
            let to = slot.1.slice(rows.clone(), k..k + width);
            let origin = [tile.k + k, tile.n + rows.start];
            load_box(slot, self.b, to, origin, tile.batch, multicast, hint);
        }
    }
}
