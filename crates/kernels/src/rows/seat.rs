//! Where a thread sits: which row of the block is its, and which units of it.

use super::cell::{Cell, VECTOR};
use super::config::{Config, Form};
use super::problem::MOST_SIDE;
use warpline_ir::build::*;

/// The parameters of every kernel over rows.
#[derive(Clone)]
pub(super) struct Io<E> {
    pub(super) rows: Reg<u32>,
    pub(super) cols: Reg<u32>,
    pub(super) x_stride: Reg<u32>,
    pub(super) y_stride: Reg<u32>,
    pub(super) x: Global<E>,
    pub(super) y: Global<E>,
    /// Vectors as long as a row.
    pub(super) vectors: Vec<Global<E>>,
    pub(super) scalars: Vec<Reg<f32>>,
}

impl<E: Cell> Io<E> {
    /// Bytes of an element.
    pub(super) const SIZE: u32 = E::DTYPE.bytes() as u32;

    pub(super) fn declare(
        k: Builder,
        c: &Config,
        vectors: &[&'static str],
        scalars: &[(&'static str, f32)],
    ) -> Self {
        let unit = c.unit(Self::SIZE);
        // Where threads hold a row, all but their last units are inside of it.
        let each = match c.form {
            Form::TwoSweeps => None,
            _ => Some(c.cluster * c.threads),
        };
        let least = each.map_or(1, |each| (c.units - 1) * each + 1) * unit;
        let most = each.map_or(MOST_SIDE, |each| c.units * each * unit);
        let count = |name: &str| k.param::<u32>(name).multiple_of(unit.into());
        let rows = k.param::<u32>("rows").at_most(MOST_SIDE);
        let cols = count("cols").at_least(least).at_most(most.min(MOST_SIDE));
        let [x_stride, y_stride] = ["x_stride", "y_stride"].map(|name| count(name).at_least(least));
        let pointer = |name: &str| match c.vectors {
            true => k.pointer(name).aligned_to(VECTOR.into()),
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

    /// Units of a row.
    pub(super) fn units(&self, c: &Config) -> Reg<u32> {
        match c.vectors {
            true => self.cols >> (VECTOR / Self::SIZE).trailing_zeros(),
            false => self.cols,
        }
    }

    /// How many blocks of rows there are.
    pub(super) fn blocks(&self, c: &Config) -> Reg<u32> {
        self.rows.div_ceil(c.block)
    }

    /// The blocks of rows that fall to this cluster in turn: for each, its first row.
    pub(super) fn each_block(&self, c: &Config, body: impl FnOnce(Reg<u32>)) {
        let blocks = self.blocks(c);
        let (first, step) = match c.cluster {
            1 => (cta_id(), grid_ctas()),
            _ => (cluster_id(), grid_clusters()),
        };
        range(first, blocks).by(step).each(|b| body(b * c.block));
    }
}

/// The units of a row that a CTA of the cluster holds.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// The first.
    pub(super) first: Reg<u32>,
    /// How many; CTAs differ by one at most.
    pub(super) count: Reg<u32>,
}

impl Part {
    pub(super) fn new(units: Reg<u32>, c: &Config) -> Self {
        if c.cluster == 1 {
            return Self {
                first: 0u32.reg(),
                count: units,
            };
        }
        let rank = cluster_rank();
        let (each, more) = (units / c.cluster, units % c.cluster);
        Self {
            first: rank * each + rank.min(more),
            count: (units + ((c.cluster - 1).reg() - rank)) / c.cluster,
        }
    }
}

/// Where a thread sits.
#[derive(Clone, Copy)]
pub(super) struct Seat {
    /// Its row in the block.
    pub(super) row: Reg<u32>,
    /// Its place among the threads of the row.
    pub(super) place: Reg<u32>,
    /// Its last unit, or the last there is.
    last: Reg<u32>,
    /// Is its last unit inside the row?
    inside: Reg<bool>,
}

impl Seat {
    pub(super) fn new(part: Part, c: &Config) -> Self {
        let thread = thread_in_role();
        let (row, place) = match (c.block, c.threads) {
            (1, _) => (0u32.reg(), thread),
            (_, t) if t < 32 => (thread / t, thread % t),
            // The same in every lane.
            (_, t) => (warp_in_role() / (t / 32), thread % t),
        };
        let last = place + (c.units - 1) * c.threads;
        Self {
            row,
            place,
            last: last.min(part.count - part.count.min(1u32)),
            inside: last.lt(part.count),
        }
    }

    /// Where the thread writes: its units, the last one under a condition.
    pub(super) fn places(self, c: &Config) -> Vec<(Unit, Option<Reg<bool>>)> {
        let unit = |i: u32| Unit {
            first: self.place,
            plus: i * c.threads,
        };
        let inside = |i: u32| (i + 1 == c.units).then_some(self.inside);
        (0..c.units).map(|i| (unit(i), inside(i))).collect()
    }

    /// The units that the thread reads, each with whether it is inside the row.
    ///
    /// A thread holds as many units as its busiest neighbour, so all but the
    /// last are inside; the last reads what is there, and does not count.
    pub(super) fn units(self, c: &Config) -> Vec<(Unit, Option<Reg<bool>>)> {
        let early = (0..c.units - 1).map(|i| {
            let unit = Unit {
                first: self.place,
                plus: i * c.threads,
            };
            (unit, None)
        });
        let last = Unit {
            first: self.last,
            plus: 0,
        };
        early.chain([(last, Some(self.inside))]).collect()
    }
}

/// A unit of a part: `first + plus`, the second known when the kernel is written.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    pub(super) first: Reg<u32>,
    pub(super) plus: u32,
}
