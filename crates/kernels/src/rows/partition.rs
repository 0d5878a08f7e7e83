//! Launch parameters, and the row and units of a thread.

use super::config::{Config, Schedule};
use super::element::{RowElement, VECTOR_BYTES};
use super::problem::MAX_EXTENT;
use warpline_ir::builder::*;

/// The launch parameters of every row-wise kernel.
#[derive(Clone)]
pub(super) struct RowParams<E> {
    pub(super) rows: Reg<u32>,
    pub(super) cols: Reg<u32>,
    pub(super) x_stride: Reg<u32>,
    pub(super) y_stride: Reg<u32>,
    pub(super) x: Global<E>,
    pub(super) y: Global<E>,
    /// Per-column vectors (weight, bias).
    pub(super) vectors: Vec<Global<E>>,
    pub(super) scalars: Vec<Reg<f32>>,
}

impl<E: RowElement> RowParams<E> {
    /// Bytes of an element.
    pub(super) const SIZE: u32 = E::DTYPE.bytes() as u32;

    pub(super) fn declare(
        k: Builder,
        c: &Config,
        vectors: &[&'static str],
        scalars: &[(&'static str, f32)],
    ) -> Self {
        let unit = c.unit_len(Self::SIZE);
        // Schedules that keep a row in registers compile in the units per thread, so the length of a
        // row is bounded from both sides: only the last unit of a thread can be past the end.
        let threads_per_row = match c.schedule {
            Schedule::TwoPass => None,
            _ => Some(c.cluster * c.threads),
        };
        let min_cols = threads_per_row.map_or(1, |threads| (c.units - 1) * threads + 1) * unit;
        let max_cols = threads_per_row.map_or(MAX_EXTENT, |threads| c.units * threads * unit);
        let count = |name: &str| k.param::<u32>(name).multiple_of(unit.into());
        let rows = k.param::<u32>("rows").at_most(MAX_EXTENT);
        let cols = count("cols")
            .at_least(min_cols)
            .at_most(max_cols.min(MAX_EXTENT));
        let [x_stride, y_stride] =
            ["x_stride", "y_stride"].map(|name| count(name).at_least(min_cols));
        let pointer = |name: &str| match c.vectors {
            true => k.pointer(name).aligned_to(VECTOR_BYTES.into()),
            false => k.pointer(name),
        };
        let matrix = |name: &str, stride: Reg<u32>| {
            pointer(name).elements((extent(rows) - 1u32) * stride + cols)
        };
        let vector = |name: &&'static str| pointer(name).elements(cols);
        Self {
            rows,
            cols,
            x_stride,
            y_stride,
            x: matrix("x", x_stride),
            y: matrix("y", y_stride),
            vectors: vectors.iter().map(vector).collect(),
            scalars: scalars.iter().map(|(name, _)| k.param(name)).collect(),
        }
    }

    /// Returns the units of a row.
    pub(super) fn units(&self, c: &Config) -> Reg<u32> {
        match c.vectors {
            true => self.cols >> (VECTOR_BYTES / Self::SIZE).trailing_zeros(),
            false => self.cols,
        }
    }

    /// Returns the number of blocks of rows.
    pub(super) fn blocks(&self, c: &Config) -> Reg<u32> {
        self.rows.div_ceil(c.block)
    }

    /// Runs `body` with the first row of each block of this cluster (grid-stride).
    pub(super) fn for_each_block(&self, c: &Config, body: impl FnOnce(Reg<u32>)) {
        let blocks = self.blocks(c);
        let (first, step) = match c.cluster {
            1 => (cta_id(), grid_ctas()),
            _ => (cluster_id(), grid_clusters()),
        };
        range(first, blocks)
            .step_by(step)
            .each(|b| body(b * c.block));
    }
}

/// The units of a row that a CTA of the cluster holds.
#[derive(Clone, Copy)]
pub(super) struct RowSegment {
    /// The first unit.
    pub(super) first: Reg<u32>,
    /// The number of units; the CTAs of a cluster differ by at most one.
    pub(super) count: Reg<u32>,
}

impl RowSegment {
    pub(super) fn new(units: Reg<u32>, c: &Config) -> Self {
        if c.cluster == 1 {
            return Self {
                first: 0u32.reg(),
                count: units,
            };
        }
        let rank = cluster_rank();
        let (quotient, remainder) = (units / c.cluster, units % c.cluster);
        Self {
            first: rank * quotient + rank.min(remainder),
            count: (units + ((c.cluster - 1).reg() - rank)) / c.cluster,
        }
    }
}

/// The row and the units of a thread.
#[derive(Clone, Copy)]
pub(super) struct ThreadCoord {
    /// The row inside the block.
    pub(super) row: Reg<u32>,
    /// The index among the threads of the row.
    pub(super) thread_in_row: Reg<u32>,
    /// The last unit to load, clamped to the segment.
    last: Reg<u32>,
    /// Whether the unclamped last unit is inside the segment.
    last_is_inside: Reg<bool>,
}

impl ThreadCoord {
    pub(super) fn new(segment: RowSegment, c: &Config) -> Self {
        let thread = thread_in_role();
        let (row, thread_in_row) = match (c.block, c.threads) {
            (1, _) => (0u32.reg(), thread),
            (_, t) if t < 32 => (thread / t, thread % t),
            // Computed from the warp index, so that it is uniform across the lanes.
            (_, t) => (warp_in_role() / (t / 32), thread % t),
        };
        let last = thread_in_row + (c.units - 1) * c.threads;
        Self {
            row,
            thread_in_row,
            last: last.min(segment.count - segment.count.min(1u32)),
            last_is_inside: last.lt(segment.count),
        }
    }

    /// Returns the units that the thread stores; the last one under a condition.
    pub(super) fn output_units(self, c: &Config) -> Vec<(UnitIndex, Option<Reg<bool>>)> {
        let unit = |i: u32| UnitIndex {
            base: self.thread_in_row,
            offset: i * c.threads,
        };
        let inside = |i: u32| (i + 1 == c.units).then_some(self.last_is_inside);
        (0..c.units).map(|i| (unit(i), inside(i))).collect()
    }

    /// Returns the units that the thread loads, each with a condition if it may be outside the row.
    ///
    /// All threads of a row hold the same number of units, so only the last one can be outside. Its load
    /// is clamped to the end of the segment, and reductions mask it.
    pub(super) fn input_units(self, c: &Config) -> Vec<(UnitIndex, Option<Reg<bool>>)> {
        let inner = (0..c.units - 1).map(|i| {
            let unit = UnitIndex {
                base: self.thread_in_row,
                offset: i * c.threads,
            };
            (unit, None)
        });
        let last = UnitIndex {
            base: self.last,
            offset: 0,
        };
        inner.chain([(last, Some(self.last_is_inside))]).collect()
    }
}

/// The unit `base + offset` of a segment; `offset` is known at build time and becomes an immediate.
#[derive(Clone, Copy)]
pub(super) struct UnitIndex {
    pub(super) base: Reg<u32>,
    pub(super) offset: u32,
}
