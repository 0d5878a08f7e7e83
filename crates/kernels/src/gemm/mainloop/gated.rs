//! Gate and up projections: A is loaded once for both, and both accumulate side by side.
//!
//! In a slot the rows of gate and of up alternate in blocks, so that the rows
//! that one consumer multiplies are together.

use super::{Filled, KTile, Mainloop, Part, bytes_to, copy, parts, width};
use crate::gemm::config::Config;
use crate::gemm::problem::{Class, Matrix, Problem};
use crate::gemm::tile_scheduler::Cluster;
use crate::weights::Weights;
use std::ops::Range as Span;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, Buffer, Step, TensorArg};
use warpline_family::tensor::TensorSpec;
use warpline_ir::build::*;
use warpline_ir::{Element, TensorMapDecl};

/// Gate and up, each as [N, K].
pub(super) struct Gated {
    /// Gate, then up.
    maps: [Map; 2],
    weights: Weights,
}

impl Gated {
    /// Declares the tensor maps.
    pub(super) fn declare(k: Builder, class: &Class, c: &Config, weights: Weights) -> Self {
        let (dtype, width) = (class.factor.other(), width(class, c));
        let rows = c.tile_n / c.blocks() / parts(c)[1];
        let boxes = match weights {
            Weights::Interleaved => TensorMapDecl::tiled(dtype, [width, 8, rows / 8]),
            _ => TensorMapDecl::tiled(dtype, [width, rows]),
        };
        Self {
            maps: ["gate", "up"].map(|name| k.tensor_map(name, boxes.clone())),
            weights,
        }
    }

    /// Binds the rows of gate and up for some columns of C.
    pub(super) fn bind_args(
        step: Step,
        p: &Problem,
        inputs: &[TensorSpec],
        cols: &Span<u32>,
        weights: Weights,
        tensor: impl Fn(Address, Matrix) -> TensorArg,
    ) -> Result<Step, FamilyError> {
        let rows = cols.len() as u64;
        let gate = Matrix { rows, ..p.b() };
        let up = Matrix {
            rows,
            ..p.up().unwrap_or(gate)
        };
        let of = |name: &str, first: u64, m: Matrix| -> Result<TensorArg, FamilyError> {
            let at = bytes_to(p, m, first * m.stride);
            Ok(tensor(Buffer::named(inputs, name)?.at(at), m))
        };
        let (first, n) = (u64::from(cols.start), u64::from(p.n));
        let mut both = match weights {
            Weights::Apart => [of("gate", first, gate)?, of("up", first, up)?],
            Weights::Concatenated => [of("weights", first, gate)?, of("weights", n + first, gate)?],
            Weights::Interleaved => {
                let both = [2 * first, 2 * first + 8];
                [of("weights", both[0], gate)?, of("weights", both[1], gate)?]
            }
        };
        if weights == Weights::Interleaved {
            // Blocks of 8 rows, of gate and of up in turn.
            for one in &mut both {
                one.extents = vec![one.extents[0], 8, rows / 8];
                one.strides = one.strides.take().map(|s| vec![s[0], 16 * s[0]]);
            }
        }
        let [gate, up] = both;
        Ok(step.tensor("gate", gate).tensor("up", up))
    }

    /// Issues the loads of a k-tile: blocks of gate and of up in turn.
    #[track_caller]
    pub(super) fn load<A: Element, B: Element>(
        &self,
        mainloop: &Mainloop,
        slot: &Filled<A, B>,
        tile: KTile,
        part: Part,
    ) {
        let c = &mainloop.config;
        let (width, height) = (width(&mainloop.class, c), c.tile_n / c.blocks());
        let (shared, hint) = (c.cluster() == Cluster::Rows, mainloop.stream());
        for k in (0..c.tile_k).step_by(width as usize) {
            let blocks = (0..c.tile_n).step_by(height as usize);
            let all = blocks.flat_map(|row| self.maps.map(move |map| (row, map)));
            for (i, (row, map)) in (0..).zip(all) {
                let rows = part.rows(height);
                let to = i * height + rows.start..i * height + rows.end;
                let to = slot.1.slice(to, k..k + width);
                let (x, y) = (tile.k + k, tile.n + (row + rows.start));
                match self.weights {
                    Weights::Interleaved => {
                        // Blocks of 8 rows are counted, not rows.
                        let block = Some(y >> 3u32);
                        copy(slot, map, to, [x, 0u32.reg()], block, shared, hint);
                    }
                    _ => copy(slot, map, to, [x, y], tile.batch, shared, hint),
                }
            }
        }
    }
}
