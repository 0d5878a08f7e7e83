//! Weighed sums of what lies around points.

use super::lanes::Lanes;
use super::line::Line;
use super::record::Spot;
use super::texel::{Number, Texel, Words};
use super::walk::Item;
use std::collections::VecDeque;
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
    /// Bytes from pixel to pixel.
    pitch: Reg<u32>,
}

impl<'a, E: Texel, N: Number> Gather<'a, E, N> {
    #[track_caller]
    pub(super) fn new(line: &'a Line<E, N>, seat: Seat) -> Self {
        let steps = |level: u32| line.level_of(level.reg()).steps;
        Self {
            line,
            seat,
            steps: (0..line.class.levels).map(steps).collect(),
            pitch: line.heads * line.class.pixel_bytes(),
        }
    }

    /// The weighed sum of a query's points, what a lane has of it. `record`
    /// gives the points of the record that starts with one.
    pub(super) fn sum(
        &self,
        item: Item,
        near: Option<TileRef<E>>,
        record: impl Fn(u32) -> Vec<Spot>,
    ) -> Vec<Reg<f32>> {
        let (line, class, lanes) = (self.line, &self.line.class, &self.line.lanes);
        let channels = 4 * E::CHANNELS;
        // Lanes behind the last channel read the first ones.
        let chunk = match self.seat.chunk(lanes, item) {
            (chunk, None) => chunk,
            (chunk, Some(there)) => select(there, chunk, 0u32),
        };
        let inside = self.seat.head_within(lanes) * class.channels + chunk * channels;
        let start = item
            .batch
            .mul_wide(line.spatial * line.heads * class.channels)
            + (item.head * class.channels + inside).cast::<u64>();
        let value = line.value.offset(start);
        let corner = |level: u32, pixel: Reg<u32>| match near {
            Some(near) if line.is_kept(level) => {
                let pitch = lanes.heads * class.channels;
                near.load_as(0u32, pixel.mad(pitch, inside))
            }
            _ => value
                .row(pixel, self.pitch)
                .load_cached(0u32, LoadCache::READ_ONLY),
        };
        let fetch = |level: u32, spot: Spot| -> Vec<(Words<E>, E::Weight)> {
            let [down, right] = self.steps[level as usize];
            let rows = [spot.pixel, spot.pixel + down];
            let pixels = rows.into_iter().flat_map(|pixel| match lanes.sides {
                1 => vec![pixel, pixel + right],
                _ => vec![pixel],
            });
            let corners: Vec<Words<E>> = pixels.map(|pixel| corner(level, pixel)).collect();
            corners.into_iter().zip(E::take(&spot.weights)).collect()
        };
        let (all, ahead) = (class.all_points(), line.config.ahead);
        let mut sums = vec![0.0f32.reg(); channels as usize];
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
                E::add(&mut sums, &some);
                some.clear();
            }
        }
        sums
    }

    /// Writes what a lane has of the sums of the query and head of that number.
    #[track_caller]
    pub(super) fn store(
        &self,
        item: Item,
        number: Reg<u32>,
        there: Reg<bool>,
        sums: Vec<Reg<f32>>,
    ) {
        let lanes = &self.line.lanes;
        let channels = 4 * E::CHANNELS;
        let (chunk, has) = self.seat.chunk(lanes, item);
        let there = match has {
            None => there,
            Some(has) => there & has,
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
        if_(there, || {
            let to = self
                .line
                .out
                .offset(number.mul_wide(self.line.class.channels));
            E::store(to, first, &sums);
        });
    }
}
