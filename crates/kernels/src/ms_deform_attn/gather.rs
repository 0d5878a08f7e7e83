//! Weighed sums of what lies around points.

use super::lanes::{BYTES, Lanes};
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
    pub(super) chunk: Reg<u32>,
    /// Which of the pixels, where several are read at a time.
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
            side: (lanes.sides > 1).then(|| within >> lanes.pixel.trailing_zeros()),
        }
    }

    /// The step of the walk that is the lane's, of those of its warp.
    #[track_caller]
    fn step(&self, lanes: &Lanes, first: Reg<u32>) -> Reg<u32> {
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
    fn head(&self, lanes: &Lanes, item: Item) -> Reg<u32> {
        match lanes.heads {
            1 => item.head,
            _ => item.head + self.head_within(lanes),
        }
    }

    /// Which 16 bytes of a pixel are the lane's, and whether there are so many.
    #[track_caller]
    fn chunk_of(&self, lanes: &Lanes, item: Item) -> (Reg<u32>, Option<Reg<bool>>) {
        let chunk = match item.chunk {
            None => self.chunk,
            Some(first) => first + self.chunk,
        };
        let whole = lanes.chunks == lanes.pixel * lanes.slices;
        (chunk, (!whole).then(|| chunk.lt(lanes.chunks)))
    }
}

/// Whose sums a lane writes: the number of its query and head among all, and
/// whether there is such a query.
#[derive(Clone, Copy)]
pub(super) struct Whose {
    pub(super) number: Reg<u32>,
    pub(super) there: Reg<bool>,
}

impl Whose {
    /// The lane's, of those of its warp that start at a step of the walk.
    #[track_caller]
    pub(super) fn new<E: Texel, N: Number>(
        line: &Line<E, N>,
        seat: Seat,
        item: Item,
        first: Reg<u32>,
    ) -> Self {
        let step = seat.step(&line.lanes, first);
        Self::at(line, item, step, seat.head(&line.lanes, item))
    }

    /// Those of a step of the walk and a head.
    #[track_caller]
    pub(super) fn at<E: Texel, N: Number>(
        line: &Line<E, N>,
        item: Item,
        step: Reg<u32>,
        head: Reg<u32>,
    ) -> Self {
        let (query, there) = line.query(step);
        let number = line.number(item, query, head);
        Self { number, there }
    }

    /// As one number: that of a query and head, or none.
    #[track_caller]
    pub(super) fn word(self) -> Reg<u32> {
        select(self.there, self.number, NOBODY)
    }

    /// What a word says.
    #[track_caller]
    pub(super) fn of_word(number: Reg<u32>) -> Self {
        Self {
            number,
            there: number.ne(NOBODY),
        }
    }
}

/// The number of no query.
const NOBODY: u32 = u32::MAX;

/// How the points of a level are read.
struct Reading<E> {
    /// What the lane reads of a point, from its first pixel on: the first byte.
    inside: Reg<u32>,
    /// That corners are apart is the same for all lanes, and costs nothing
    /// where a point is read.
    corners: Vec<Corner<E>>,
}

/// Where a corner of the points of a level is read, from a pixel's place on.
#[derive(Clone, Copy)]
enum Corner<E> {
    /// In all values.
    Far(Global<E>),
    /// In those that are kept, so many bytes further.
    Near(TileRef<E>, Reg<u32>),
}

/// What a lane needs to gather for an item.
pub(super) struct Gather<'a, E, N> {
    line: &'a Line<E, N>,
    seat: Seat,
    item: Item,
    levels: Vec<Reading<E>>,
}

impl<'a, E: Texel, N: Number> Gather<'a, E, N> {
    #[track_caller]
    pub(super) fn new(
        line: &'a Line<E, N>,
        seat: Seat,
        item: Item,
        near: Option<TileRef<E>>,
    ) -> Self {
        let (class, lanes) = (&line.class, &line.lanes);
        // Lanes behind the last channel read the first ones.
        let chunk = match seat.chunk_of(lanes, item) {
            (chunk, None) => chunk,
            (chunk, Some(there)) => select(there, chunk, 0u32),
        };
        let start = item
            .batch
            .mul_wide(line.spatial * line.heads * class.channels)
            + (item.head * class.channels).cast::<u64>();
        let value = line.value.offset(start);
        let inside = seat.head_within(lanes) * class.pixel_bytes() + chunk * BYTES;
        // Bytes from a pixel to the next, in what is kept and in all values.
        let pitches = [lanes.heads.reg(), line.heads].map(|heads| heads * class.pixel_bytes());
        let beside = |step: Reg<u32>| {
            pitches.map(|pitch| match seat.side {
                None => inside,
                Some(side) => inside + side * step * pitch,
            })
        };
        let wide = beside(1u32.reg());
        let level = |level: u32| {
            let [down, right] = line.level_of(level.reg()).steps;
            let steps = match lanes.sides {
                1 => vec![None, Some(right), Some(down), Some(down + right)],
                _ => vec![None, Some(down)],
            };
            let corner = |pixels: Option<Reg<u32>>| match near {
                Some(near) if line.is_kept(level) => {
                    let bytes = lanes.heads * class.pixel_bytes();
                    Corner::Near(near, pixels.map_or(0u32.reg(), |n| n * bytes))
                }
                _ => {
                    let pitch = line.heads * class.channels;
                    Corner::Far(pixels.map_or(value, |n| value.offset(n * pitch)))
                }
            };
            let [near, far] = match class.narrow {
                true => beside(right),
                false => wide,
            };
            let corners: Vec<_> = steps.into_iter().map(corner).collect();
            let inside = match corners[0] {
                Corner::Near(..) => near,
                Corner::Far(_) => far,
            };
            Reading { inside, corners }
        };
        Self {
            line,
            seat,
            item,
            levels: (0..class.levels).map(level).collect(),
        }
    }

    /// Asks for the corners of a point, what a lane has of them.
    #[track_caller]
    fn fetch(&self, level: u32, spot: Spot) -> Vec<(Words<E>, E::Weight)> {
        let Reading { inside, corners } = &self.levels[level as usize];
        let heads = match corners[0] {
            Corner::Near(..) => self.line.lanes.heads.reg(),
            Corner::Far(_) => self.line.heads,
        };
        let pitch = heads * self.line.class.pixel_bytes();
        let at = spot.pixel.mad(pitch, *inside);
        let read = |corner: &Corner<E>| match *corner {
            Corner::Near(tile, more) => tile.load_byte(at + more),
            Corner::Far(value) => value
                .byte_offset(at)
                .load_cached(0u32, LoadCache::READ_ONLY),
        };
        let words: Vec<Words<E>> = corners.iter().map(read).collect();
        words.into_iter().zip(E::take(&spot.weights)).collect()
    }

    /// Gathers the points of a query and writes their weighed sum. `record`
    /// gives the points of the record that starts with one.
    pub(super) fn query(&self, whose: Whose, record: impl Fn(u32) -> Vec<Spot>) {
        let (class, config) = (&self.line.class, &self.line.config);
        let (all, ahead) = (class.all_points(), config.ahead);
        let mut sums = Vec::new();
        // Levels take turns: those that are kept answer soon, the others late.
        let records = (0..all).step_by(self.line.format().points as usize);
        let mut order: Vec<u32> = records.collect();
        order.sort_by_key(|point| (point % class.points, point / class.points));
        let mut order = order.into_iter();
        let mut spots = VecDeque::new();
        let mut flying = VecDeque::new();
        let mut some: Vec<(Words<E>, E::Weight)> = Vec::new();
        for step in 0..all + ahead {
            if spots.is_empty() {
                let first = order.next();
                spots.extend(first.into_iter().flat_map(|p| (p..).zip(record(p))));
            }
            let next = spots.pop_front();
            flying.extend(next.map(|(point, spot)| self.fetch(point / class.points, spot)));
            if step < ahead {
                continue;
            }
            some.extend(flying.pop_front().unwrap_or_default());
            let done = step - ahead + 1;
            if done.is_multiple_of(config.sums) || done == all {
                E::add(&mut sums, &some);
                some.clear();
            }
        }
        store(self.line, self.seat, self.item, whose, sums);
    }
}

/// Writes what a lane has of the sums of a query.
///
/// Each of two sides keeps half of the channels, and gets the other's part of
/// them, as long as there are two of them to be kept.
#[track_caller]
pub(super) fn store<E: Texel, N: Number>(
    line: &Line<E, N>,
    seat: Seat,
    item: Item,
    whose: Whose,
    mut sums: Vec<Reg<f32>>,
) {
    let lanes = &line.lanes;
    let (chunk, has) = seat.chunk_of(lanes, item);
    let mut there = match has {
        None => whose.there,
        Some(has) => whose.there & has,
    };
    let mut first = chunk * (4 * E::CHANNELS);
    for bit in 0..lanes.sides.trailing_zeros() {
        let Some(side) = seat.side else { break };
        let side = match lanes.sides {
            2 => side,
            _ => (side >> bit) & 1,
        };
        let (left, apart) = (side.eq(0), lanes.pixel << bit);
        let half = sums.len() / 2;
        if half < 2 {
            sums = (sums.into_iter())
                .map(|sum| sum + shuffle_xor(sum, apart))
                .collect();
            there = there & left;
            continue;
        }
        let kept = (0..half).map(|i| {
            let other = select(left, sums[half + i], sums[i]);
            let own = select(left, sums[i], sums[half + i]);
            own + shuffle_xor(other, apart)
        });
        sums = kept.collect();
        first = first + side * half as u32;
    }
    if_(there, || {
        let number = whose.number.mul_wide(line.class.channels);
        E::store(line.out.offset(number), first, &sums);
    });
}
