//! Gate and up projections: A is loaded once for both, and both accumulate side by side.
//!
//! In a slot the rows of gate and up alternate in blocks, so that the rows of one consumer are
//! contiguous.

use super::gather::{KDim, SPAN};
use super::source::{Extents, LoadBy, Side, Source};
use super::{FillSlot, KTile, LoadPart, Mainloop, advance, box_cols, byte_offset, load_parts};
use crate::gemm::config::Config;
use crate::gemm::problem::{Class, Matrix, Problem};
use crate::weights::WeightLayout;
use std::ops::Range as Span;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, LaunchStep, TensorArg};
use warpline_ir::builder::*;
use warpline_ir::{Element, TensorMapDecl};

/// Gate and up, each as [N, K].
pub(super) struct Gated {
    /// Gate, then up.
    sources: [Source; 2],
    weights: WeightLayout,
}

impl Gated {
    /// Declares the parameters.
    pub(super) fn declare(
        k: Builder,
        class: &Class,
        c: &Config,
        weights: WeightLayout,
        extents: Extents,
    ) -> Self {
        let width = box_cols(class, c);
        let rows = c.tile_n / c.b_blocks() / load_parts(c)[1];
        let boxes = |dtype| match weights {
            WeightLayout::Interleaved => TensorMapDecl::tiled(dtype, [width, 8, rows / 8]),
            _ => TensorMapDecl::tiled(dtype, [width, rows]),
        };
        let source = |name| {
            let source = Source::declare(k, class, (Side::B, name), boxes, extents).of_pair();
            match weights {
                WeightLayout::Interleaved => source.with_interleaved_rows(),
                _ => source,
            }
        };
        Self {
            sources: ["gate", "up"].map(source),
            weights,
        }
    }

    /// Binds the rows of gate and up for the columns `cols` of C.
    pub(super) fn bind_args(
        step: LaunchStep,
        p: &Problem,
        address: impl Fn(&str) -> Result<Address, FamilyError>,
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
        let (first, n) = (u64::from(cols.start), u64::from(p.n));
        let [gate_at, up_at] = match weights {
            WeightLayout::Separate => [("gate", first), ("up", first)],
            WeightLayout::Concatenated => [("weights", first), ("weights", n + first)],
            WeightLayout::Interleaved => [("weights", 2 * first), ("weights", 2 * first + 8)],
        };
        // Gate and up alternate in blocks of 8 rows.
        let tensor = |address: Address, m: Matrix| {
            let mut arg = tensor(address, m);
            if weights == WeightLayout::Interleaved {
                arg.extents = vec![arg.extents[0], 8, rows / 8];
                arg.strides = arg.strides.take().map(|s| vec![s[0], 16 * s[0]]);
            }
            arg
        };
        let class = &p.class();
        let bind = |step, name: &str, (input, first_row): (&str, u64), m: Matrix| {
            let offset = byte_offset(p, m, first_row * m.stride);
            let source = (advance(address(input)?, offset), m);
            let step = Source::bind_args(step, class, (Side::B, name), source, true, tensor);
            Ok::<_, FamilyError>(step)
        };
        let step = bind(step, "gate", gate_at, gate)?;
        bind(step, "up", up_at, up)
    }

    /// Loads a k-tile into a tile of the slot: blocks of gate and up alternate.
    #[track_caller]
    pub(super) fn load<A: Element, B: Element, E: Element>(
        &self,
        mainloop: &Mainloop,
        (slot, tiles): (&FillSlot<A, B>, TileRef<E>),
        tile: KTile,
        part: LoadPart,
        by: LoadBy,
    ) {
        let c = &mainloop.config;
        let (width, block_rows) = (box_cols(&mainloop.class, c), c.tile_n / c.b_blocks());
        if by == LoadBy::AllThreads {
            return self.gather(mainloop, tiles, tile);
        }
        for k in (0..c.tile_k).step_by(width as usize) {
            let blocks = (0..c.tile_n).step_by(block_rows as usize);
            let all = blocks.flat_map(|row| self.sources.map(move |source| (row, source)));
            for (i, (row, source)) in (0..).zip(all) {
                let rows = part.rows(block_rows);
                let to = i * block_rows + rows.start..i * block_rows + rows.end;
                let to = tiles.slice(to, k..k + width);
                let (x, y) = (tile.k + k, tile.n + (row + rows.start));
                let (origin, block) = match self.weights {
                    // The third coordinate counts blocks of 8 rows.
                    WeightLayout::Interleaved => {
                        let block = y >> 3u32;
                        ([x, 0u32.reg()], Some(block))
                    }
                    _ => ([x, y], tile.batch),
                };
                mainloop.load_box(slot, (Side::B, source), to, origin, block, by);
            }
        }
    }

    /// Gathers a k-tile into a tile of the slot.
    #[track_caller]
    fn gather<E: Element>(&self, mainloop: &Mainloop, tiles: TileRef<E>, tile: KTile) {
        let c = &mainloop.config;
        let block_rows = c.tile_n / c.b_blocks();
        let blocks = (0..c.tile_n).step_by(block_rows as usize);
        let all = blocks.flat_map(|row| self.sources.map(move |source| (row, source)));
        for (i, (row, source)) in (0..).zip(all) {
            let Some(gather) = source.gather(LoadBy::AllThreads) else {
                continue;
            };
            let to = tiles.slice(i * block_rows..(i + 1) * block_rows, 0..c.tile_k);
            let origin = [tile.n + row, tile.k];
            gather.load((to, 2 * c.tile_n * SPAN), origin, tile.batch, KDim::Cols);
        }
    }
}
