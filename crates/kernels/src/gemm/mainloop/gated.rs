//! Gate and up projections: A is loaded once for both, and both accumulate side by side.
//!
//! In a slot the rows of gate and up alternate in blocks, so that the rows of one consumer are
//! contiguous.

use super::{FillSlot, KTile, LoadPart, Mainloop, box_cols, byte_offset, load_box, load_parts};
use crate::gemm::config::Config;
use crate::gemm::problem::{Class, Matrix, Problem};
use crate::gemm::tile_scheduler::Cluster;
use crate::weights::WeightLayout;
use std::ops::Range as Span;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, Buffer, LaunchStep, TensorArg};
use warpline_family::tensor::TensorSpec;
use warpline_ir::builder::*;
use warpline_ir::{Element, TensorMapDecl};

/// Gate and up, each as [N, K].
pub(super) struct Gated {
    /// Gate, then up.
    maps: [TensorMap; 2],
    weights: WeightLayout,
}

impl Gated {
    /// Declares the tensor maps.
    pub(super) fn declare(k: Builder, class: &Class, c: &Config, weights: WeightLayout) -> Self {
        let (dtype, width) = (class.dtype.b_dtype(), box_cols(class, c));
        let rows = c.tile_n / c.b_blocks() / load_parts(c)[1];
        let boxes = match weights {
            WeightLayout::Interleaved => TensorMapDecl::tiled(dtype, [width, 8, rows / 8]),
            _ => TensorMapDecl::tiled(dtype, [width, rows]),
        };
        Self {
            maps: ["gate", "up"].map(|name| k.tensor_map(name, boxes.clone())),
            weights,
        }
    }

    /// Binds the rows of gate and up for the columns `cols` of C.
    pub(super) fn bind_args(
        step: LaunchStep,
        p: &Problem,
        inputs: &[TensorSpec],
        cols: &Span<u32>,
        weights: WeightLayout,
        tensor: impl Fn(Address, Matrix) -> TensorArg,
    ) -> Result<LaunchStep, FamilyError> {
        let rows = cols.len() as u64;
        let gate = Matrix { rows, ..p.b() };
        let up = Matrix {
            rows,
            ..p.up().unwrap_or(gate)
        };
        let weight = |name: &str, first: u64, m: Matrix| -> Result<TensorArg, FamilyError> {
            let offset = byte_offset(p, m, first * m.stride);
            Ok(tensor(Buffer::named(inputs, name)?.at(offset), m))
        };
        let (first, n) = (u64::from(cols.start), u64::from(p.n));
        let mut args = match weights {
            WeightLayout::Separate => [weight("gate", first, gate)?, weight("up", first, up)?],
            WeightLayout::Concatenated => [
                weight("weights", first, gate)?,
                weight("weights", n + first, gate)?,
            ],
            WeightLayout::Interleaved => {
                let [gate_row, up_row] = [2 * first, 2 * first + 8];
                [
                    weight("weights", gate_row, gate)?,
                    weight("weights", up_row, gate)?,
                ]
            }
        };
        if weights == WeightLayout::Interleaved {
            // Gate and up alternate in blocks of 8 rows.
            for arg in &mut args {
                arg.extents = vec![arg.extents[0], 8, rows / 8];
                arg.strides = arg.strides.take().map(|s| vec![s[0], 16 * s[0]]);
            }
        }
        let [gate, up] = args;
        Ok(step.tensor("gate", gate).tensor("up", up))
    }

    /// Issues the loads of a k-tile: blocks of gate and up alternate.
    #[track_caller]
    pub(super) fn load<A: Element, B: Element>(
        &self,
        mainloop: &Mainloop,
        slot: &FillSlot<A, B>,
        tile: KTile,
        part: LoadPart,
    ) {
        let c = &mainloop.config;
        let (width, block_rows) = (box_cols(&mainloop.class, c), c.tile_n / c.b_blocks());
        let (multicast, hint) = (c.cluster() == Cluster::Rows, mainloop.b_hint());
        for k in (0..c.tile_k).step_by(width as usize) {
            let blocks = (0..c.tile_n).step_by(block_rows as usize);
            let all = blocks.flat_map(|row| self.maps.map(move |map| (row, map)));
            for (i, (row, map)) in (0..).zip(all) {
                let rows = part.rows(block_rows);
                let to = i * block_rows + rows.start..i * block_rows + rows.end;
                let to = slot.1.slice(to, k..k + width);
                let (x, y) = (tile.k + k, tile.n + (row + rows.start));
                match self.weights {
                    WeightLayout::Interleaved => {
                        // The third coordinate counts blocks of 8 rows.
                        let block = Some(y >> 3u32);
                        load_box(slot, map, to, [x, 0u32.reg()], block, multicast, hint);
                    }
                    _ => load_box(slot, map, to, [x, y], tile.batch, multicast, hint),
                }
            }
        }
    }
}
