//! B as [N, K], as the weights of a linear layer: a row for each column of C.

use super::{Filled, KTile, Mainloop, Part, boxes, bytes_to, copy, parts, width};
use crate::gemm::config::Config;
use crate::gemm::problem::{Class, Matrix, Problem};
use crate::gemm::tile_scheduler::Cluster;
use std::ops::Range as Span;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, Buffer, Step, TensorArg};
use warpline_family::tensor::TensorSpec;
use warpline_ir::Element;
use warpline_ir::build::*;

/// B with K innermost.
pub(super) struct KMajor {
    b: Map,
}

impl KMajor {
    /// Declares the tensor map: boxes of rows of 128 bytes.
    pub(super) fn declare(k: Builder, class: &Class, c: &Config) -> Self {
        let rows = c.tile_n / parts(c)[1];
        let b = boxes(class, class.factor.other(), width(class, c), rows);
        Self {
            b: k.tensor_map("b", b),
        }
    }

    /// Binds the rows of B for some columns of C.
    pub(super) fn bind_args(
        step: Step,
        p: &Problem,
        inputs: &[TensorSpec],
        cols: &Span<u32>,
        tensor: impl Fn(Address, Matrix) -> TensorArg,
    ) -> Result<Step, FamilyError> {
        let b = Matrix {
            rows: cols.len() as u64,
            ..p.b()
        };
        let first = bytes_to(p, b, u64::from(cols.start) * b.stride);
        let at = Buffer::named(inputs, "b")?.at(first);
        Ok(step.tensor("b", tensor(at, b)))
    }

    /// Issues the loads of a k-tile.
    #[track_caller]
    pub(super) fn load<A: Element, B: Element>(
        &self,
        mainloop: &Mainloop,
        slot: &Filled<A, B>,
        tile: KTile,
        part: Part,
    ) {
        let c = &mainloop.config;
        let (width, rows) = (width(&mainloop.class, c), part.rows(c.tile_n));
        let (shared, hint) = (c.cluster() == Cluster::Rows, mainloop.stream());
        for k in (0..c.tile_k).step_by(width as usize) {
            let to = slot.1.slice(rows.clone(), k..k + width);
            let origin = [tile.k + k, tile.n + rows.start];
            copy(slot, self.b, to, origin, tile.batch, shared, hint);
        }
    }
}
