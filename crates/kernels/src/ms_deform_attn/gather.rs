//! Weighed sums of what lies around points.

use super::config::Adds;
use super::lanes::Lanes;
use super::line::Line;
use super::record::Spot;
use super::sums::{Sums, ones};
use super::texel::{Number, Texel, Words};
use super::walk::Item;
use std::collections::VecDeque;
use warpline_ir::F16x2;
use warpline_ir::build::*;
use warpline_ir::ops::memory::LoadCache;

/// A lane's place in its warp.
#[derive(Clone, Copy)]
pub(super) struct Seat {
    /// Which of the queries and heads of the warp.
    pub(super) item: Reg<u32>,
    /// Which of the lanes that these have.
    pub(super) within: Reg<u32>,
    /// Which of the 16 bytes of a pixel.
    chunk: Reg<u32>,
    /// Which of the two pixels, where two are read at a time.
    pub(super) side: Option<Reg<u32>>,
}

impl Seat {
    #[track_caller]
    pub(super) fn new(lanes: &Lanes) -> Self {
        let within = lane_id() & (lanes.group() - 1);
        Self {
            item: lane_id() >> lanes.group().trailing_zeros(),
            within,
            chunk: within & (lanes.pixel - 1),
            side: (lanes.sides == 2).then(|| within >> lanes.pixel.trailing_zeros()),
        }
    }

    /// The step of the walk that is the lane's, of those of its warp.
    #[track_caller]
    pub(super) fn step(&self, lanes: &Lanes, first: Reg<u32>) -> Reg<u32> {
        match lanes.heads {
            1 => first + self.item,
            n => first + (self.item >> n.trailing_zeros()),
        }
    }

    /// Which of the heads of its warp is the lane's.
    #[track_caller]
    fn head_within(&self, lanes: &Lanes) -> Reg<u32> {
        match lanes.heads {
            1 => 0u32.reg(),
            n => self.item & (n - 1),
        }
    }

    /// The lane's head.
    #[track_caller]
    pub(super) fn head(&self, lanes: &Lanes, item: Item) -> Reg<u32> {
        match lanes.heads {
            1 => item.head,
            _ => item.head + self.head_within(lanes),
        }
    }

    /// Which 16 bytes of a pixel are the lane's, and whether there are so many.
    #[track_caller]
    fn chunk(&self, lanes: &Lanes, item: Item) -> (Reg<u32>, Option<Reg<bool>>) {
        let chunk = match item.chunk {
            None => self.chunk,
            Some(first) => first + self.chunk,
        };
        let whole = lanes.chunks == lanes.pixel * lanes.slices;
        (chunk, (!whole).then(|| chunk.lt(lanes.chunks)))
    }
}

/// What a lane needs to gather.
pub(super) struct Gather<'a, E, N> {
    line: &'a Line<E, N>,
    seat: Seat,
    /// Pixels to the next row and column, by level.
    steps: Vec<[Reg<u32>; 2]>,
    /// Elements from pixel to pixel.
    pitch: Reg<u32>,
    /// What the tensor cores add by.
    ones: Option<[Reg<F16x2>; 4]>,
}

/// Whose sums a lane writes: the number of its query and head among all, and
/// whether there is such a query.
#[derive(Clone, Copy)]
pub(super) struct Whose {
    pub(super) number: Reg<u32>,
    pub(super) there: Reg<bool>,
}

impl<'a, E: Texel, N: Number> Gather<'a, E, N> {
    #[track_caller]
    pub(super) fn new(line: &'a Line<E, N>, seat: Seat) -> Self {
        let steps = |level: u32| line.level_of(level.reg()).steps;
        Self {
            line,
            seat,
            steps: (0..line.class.levels).map(steps).collect(),
            pitch: line.heads * line.class.channels,
            ones: (line.config.adds == Adds::Tensor).then(ones),
        }
    }

    /// Gathers the points of a query and writes their sum. `record` gives the
    /// points of the record that starts with one.
    pub(super) fn query(
        &self,
        item: Item,
        near: Option<TileRef<E>>,
        whose: Whose,
        record: impl Fn(u32) -> Vec<Spot>,
    ) {
        let by_threads = || match self.sum(item, near, Sums::threads::<E>(), &record) {
            Sums::Threads(sums) => self.store(item, whose, sums),
            Sums::Tensor(_) => {}
        };
        if self.ones.is_none() {
            return by_threads();
        }
        let Sums::Tensor(sums) = self.sum(item, near, Sums::tensor(), &record) else {
            return;
        };
        // Zero times what is not finite is none: such a sum is not only in its
        // own channel, so threads add it again.
        let all = sums.iter().flatten().copied().reduce(|a, b| a + b);
        let finite = all.map(|sum| sum.abs().lt(f32::INFINITY));
        let Some(finite) = finite.map(all_lanes) else {
            return;
        };
        if_else(finite, || self.store_products(whose, sums), by_threads);
    }

    /// The weighed sum of a query's points, what a lane has of it.
    fn sum(
        &self,
        item: Item,
        near: Option<TileRef<E>>,
        mut sums: Sums,
        record: impl Fn(u32) -> Vec<Spot>,
    ) -> Sums {
        let (line, class, lanes) = (self.line, &self.line.class, &self.line.lanes);
        // Lanes behind the last channel read the first ones.
        let chunk = match self.seat.chunk(lanes, item) {
            (chunk, None) => chunk,
            (chunk, Some(there)) => select(there, chunk, 0u32),
        };
        let inside = self.seat.head_within(lanes) * class.channels + chunk * (4 * E::CHANNELS);
        let start = item
            .batch
            .mul_wide(line.spatial * line.heads * class.channels)
            + (item.head * class.channels).cast::<u64>();
        let value = line.value.offset(start);
        let fetch = |level: u32, spot: Spot| -> Vec<(Words<E>, E::Weight)> {
            // Elements of all values, or bytes of those that are kept.
            let near = near.filter(|_| line.is_kept(level));
            let (pitch, inside) = match near {
                None => (self.pitch, inside),
                Some(_) => (
                    (lanes.heads * class.pixel_bytes()).reg(),
                    inside * E::DTYPE.bytes() as u32,
                ),
            };
            let [down, right] = self.steps[level as usize].map(|step| step * pitch);
            let first = spot.pixel.mad(pitch, inside);
            let rows = [first, first + down];
            let places = rows.into_iter().flat_map(|at| match lanes.sides {
                1 => vec![at, at + right],
                _ => vec![at],
            });
            let corner = |at: Reg<u32>| match near {
                Some(near) => near.load_byte(at),
                None => value.load_cached(at, LoadCache::READ_ONLY),
            };
            let corners: Vec<Words<E>> = places.map(corner).collect();
            corners.into_iter().zip(E::take(&spot.weights)).collect()
        };
        let (all, ahead) = (class.all_points(), line.config.ahead);
        let mut spots = VecDeque::new();
        let mut flying = VecDeque::new();
        let mut some: Vec<(Words<E>, E::Weight)> = Vec::new();
        for point in 0..all + ahead {
            if point < all {
                if spots.is_empty() {
                    spots.extend(record(point));
                }
                let spot = spots.pop_front();
                flying.extend(spot.map(|spot| fetch(point / class.points, spot)));
            }
            if point < ahead {
                continue;
            }
            some.extend(flying.pop_front().unwrap_or_default());
            let done = point - ahead + 1;
            if done.is_multiple_of(line.config.sums) || done == all {
                sums.add::<E>(self.ones, &some);
                some.clear();
            }
        }
        sums
    }

    /// Writes what a lane has of the sums of its own query.
    #[track_caller]
    fn store(&self, item: Item, whose: Whose, sums: Vec<Reg<f32>>) {
        let lanes = &self.line.lanes;
        let channels = 4 * E::CHANNELS;
        let (chunk, has) = self.seat.chunk(lanes, item);
        let there = match has {
            None => whose.there,
            Some(has) => whose.there & has,
        };
        let (first, sums) = match self.seat.side {
            None => (chunk * channels, sums),
            Some(side) => {
                // Each side keeps half of the channels, and gets the other's part of them.
                let half = sums.len() / 2;
                let left = side.eq(0);
                let kept = (0..half).map(|i| {
                    let other = select(left, sums[half + i], sums[i]);
                    let own = select(left, sums[i], sums[half + i]);
                    own + shuffle_xor(other, lanes.pixel)
                });
                let first = chunk * channels + side * (channels / 2);
                (first, kept.collect())
            }
        };
        if_(there, || self.write(whose.number, first, &sums));
    }

    /// Writes what a lane has of products: four channels of the queries and
    /// heads, or of the sides, of two columns.
    #[track_caller]
    fn store_products(&self, whose: Whose, [even, odd]: [[Reg<f32>; 4]; 2]) {
        let (class, lanes) = (&self.line.class, &self.line.lanes);
        let (first, columns) = ((lane_id() >> 2) * 4, (lane_id() & 3) * 2);
        let has = first.lt(class.channels);
        let none = u32::MAX;
        let number = select(whose.there, whose.number, none);
        let write = |column: Reg<u32>, sums: [Reg<f32>; 4]| {
            let number = shuffle_from(number, column * 4);
            if_(number.ne(none) & has, || self.write(number, first, &sums));
        };
        let column = |i: usize| [even[i], even[i + 2], odd[i], odd[i + 2]];
        match lanes.sides {
            1 => {
                write(columns, column(0));
                write(columns + 1, column(1));
            }
            _ => {
                let (left, right) = (column(0), column(1));
                write(columns, std::array::from_fn(|i| left[i] + right[i]));
            }
        }
    }

    /// Writes channels of a query and head.
    #[track_caller]
    fn write(&self, number: Reg<u32>, first: Reg<u32>, channels: &[Reg<f32>]) {
        let to = self
            .line
            .out
            .offset(number.mul_wide(self.line.class.channels));
        E::store(to, first, channels);
    }
}
