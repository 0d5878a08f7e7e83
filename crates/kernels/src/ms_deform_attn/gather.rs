//! What every form is made of: parameters, the records of points, and the gather.

use super::config::{BOX, Config};
use super::lanes::Lanes;
use super::level::{Extent, Level};
use super::problem::Class;
use super::texel::{Number, Texel, Words};
use warpline_ir::build::*;
use warpline_ir::{Swizzle, TensorMapDecl};

/// The parameters of a launch, and how it is solved.
pub(super) struct Line<E, N> {
    pub(super) class: Class,
    pub(super) config: Config,
    pub(super) lanes: Lanes,
    value: Global<E>,
    /// The values as pixels of all heads, where levels are kept.
    map: Option<Map>,
    levels: Vec<Extent>,
    /// Pixels of all levels.
    spatial: Reg<u32>,
    locations: Global<N>,
    weights: Global<N>,
    out: Global<E>,
    queries: Reg<u32>,
    heads: Reg<u32>,
    /// Rounds of all warps over the queries of a part, and how many parts all batches and heads have.
    rounds: Reg<u32>,
    parts: Reg<u32>,
    items: Reg<u32>,
    of_parts: Divisor,
    /// Groups of heads, and slices of channels, of a batch.
    of_batch: Divisor,
    of_slices: Option<Divisor>,
}

/// The map of values as rows of all heads.
pub(super) fn map(class: &Class, lanes: &Lanes) -> TensorMapDecl {
    let pixels = [lanes.heads * class.channels, BOX];
    TensorMapDecl {
        swizzle: Swizzle::None,
        ..TensorMapDecl::tiled(class.value.dtype(), pixels)
    }
}

/// What one CTA works on at a time: some queries of a batch, and of its heads.
#[derive(Clone, Copy)]
pub(super) struct Item {
    pub(super) batch: Reg<u32>,
    /// The first head.
    pub(super) head: Reg<u32>,
    /// The first chunk of a pixel.
    chunk: Option<Reg<u32>>,
    /// The first query.
    first: Reg<u32>,
}

/// A lane's place in its warp.
#[derive(Clone, Copy)]
pub(super) struct Seat {
    /// Which of the queries and heads of the warp.
    item: Reg<u32>,
    /// Which of the lanes that these have.
    within: Reg<u32>,
    /// Which of the 16 bytes of a pixel.
    chunk: Reg<u32>,
    /// Which of the two pixels, where two are read at a time.
    side: Option<Reg<u32>>,
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
}

/// Levels that are kept in shared memory.
pub(super) type Held<E> = Ring<Tile<E>>;

/// Points as they were given: x and y of each, and weights.
pub(super) struct Raw {
    places: Vec<Reg<f32>>,
    weights: Vec<Reg<f32>>,
}

impl<E: Texel, N: Number> Line<E, N> {
    pub(super) fn declare(k: Builder, class: &Class, c: &Config, lanes: Lanes) -> Self {
        let value = k.pointer("value");
        let map = (c.held > 0).then(|| k.tensor_map("pixels", map(class, &lanes)));
        let (locations, weights) = (k.pointer("locations"), k.pointer("weights"));
        let out = k.pointer("out");
        let [spatial, queries, heads] =
            ["spatial", "queries", "heads"].map(|name| k.param::<u32>(name));
        let [rounds, parts, items] = ["rounds", "parts", "items"].map(|name| k.param::<u32>(name));
        Self {
            class: *class,
            config: *c,
            lanes,
            value,
            map,
            levels: Extent::declare(k, class.levels),
            spatial,
            locations,
            weights,
            out,
            queries,
            heads,
            rounds,
            parts,
            items,
            of_parts: k.divisor("of_parts"),
            of_batch: k.divisor("of_batch"),
            of_slices: (lanes.slices > 1).then(|| k.divisor("of_slices")),
        }
    }

    /// The levels that are kept, as pixels of the heads of a warp.
    pub(super) fn held(&self, k: Builder) -> Option<Held<E>> {
        let cols = self.lanes.heads * self.class.channels;
        (self.config.held > 0)
            .then(|| k.ring("held", 1, |s| s.plain::<E>(self.config.held_pixels, cols)))
    }

    /// Runs `f` for what a CTA works on.
    pub(super) fn each(&self, f: impl FnOnce(Item)) {
        range(cta_id(), self.items).by(grid_ctas()).each(|i| {
            let group = self.of_parts.of(i);
            let part = i - group * self.parts;
            let batch = self.of_batch.of(group);
            let per_batch = self.per_batch();
            let rest = group - batch * per_batch;
            let (heads, slice) = match self.of_slices {
                None => (rest, None),
                Some(by) => {
                    let heads = by.of(rest);
                    (heads, Some(rest - heads * self.lanes.slices))
                }
            };
            let round = self.config.warps * self.lanes.queries();
            f(Item {
                batch,
                head: heads * self.lanes.heads,
                chunk: slice.map(|s| s * self.lanes.pixel),
                first: part * self.rounds * round,
            });
        });
    }

    /// Groups of heads and slices of a batch.
    #[track_caller]
    fn per_batch(&self) -> Reg<u32> {
        let groups = self.heads >> self.lanes.heads.trailing_zeros();
        groups * self.lanes.slices
    }

    /// The first pixel of the levels that are kept, if any is.
    fn kept(&self) -> Option<Reg<u32>> {
        let first = self.class.levels - self.config.held;
        self.levels.get(first as usize).map(Extent::start)
    }

    /// Brings the levels that are kept, for every item.
    pub(super) fn bring(&self, held: Held<E>) {
        let Some((map, start)) = self.map.zip(self.kept()) else {
            return;
        };
        let cols = self.lanes.heads * self.class.channels;
        elect(|| {
            self.each(|item| {
                let slot = held.acquire();
                let first = item.batch * self.spatial + start;
                let col = item.head * self.class.channels;
                for row in (0..self.config.held_pixels).step_by(BOX as usize) {
                    let to = slot.tiles().slice(row..row + BOX, 0..cols);
                    slot.load(map, to, [col, first + row]);
                }
                slot.commit();
            });
        });
    }

    /// A level as those know it that read it, from shared memory where it is
    /// kept: `here` is where that may be.
    #[track_caller]
    fn level(&self, extent: &Extent, here: Option<Reg<bool>>) -> Level {
        let pitch = self.heads * self.class.channels;
        let (pitch, start) = match here.zip(self.kept()) {
            None => (pitch, extent.start()),
            Some((here, first)) => {
                let near = self.lanes.heads * self.class.channels;
                let start = select(here, extent.start() - first, extent.start());
                (select(here, near, pitch), start)
            }
        };
        Level::new(extent, self.class.layout, pitch, start)
    }

    /// The level of that number.
    #[track_caller]
    fn level_of(&self, level: Reg<u32>) -> Level {
        let extent = Extent::pick(&self.levels, level);
        let first = self.class.levels - self.config.held;
        self.level(&extent, (self.config.held > 0).then(|| level.ge(first)))
    }

    /// The queries of an item, warp by warp: the first of a warp's. All parts
    /// have as many rounds, and the last one queries that there are none of.
    fn rounds(&self, item: Item, f: impl FnOnce(Reg<u32>)) {
        let step = self.lanes.queries();
        let mine = item.first + warp_in_role() * step;
        steps(self.rounds).each(|i| {
            let first = mine + i * (self.config.warps * step);
            if_(first.lt(self.queries), || f(first));
        });
    }

    /// The number of a lane's query and head among all, and whether there is such a query.
    #[track_caller]
    fn number(&self, item: Item, seat: Seat, first: Reg<u32>) -> (Reg<u32>, Reg<bool>) {
        let (query, head) = match self.lanes.heads {
            1 => (first + seat.item, item.head),
            n => (
                first + (seat.item >> n.trailing_zeros()),
                item.head + (seat.item & (n - 1)),
            ),
        };
        let there = query.lt(self.queries);
        let query = query.min(self.queries - 1);
        let number = (item.batch * self.queries + query) * self.heads + head;
        (number, there)
    }

    /// Reads a lane's points of its query.
    #[track_caller]
    fn read(&self, seat: Seat, number: Reg<u32>) -> Raw {
        let (all, each) = (self.class.all_points(), self.lanes.per_lane(&self.class));
        let places = self.locations.offset(number.mul_wide(2 * all));
        let weights = self.weights.offset(number.mul_wide(all));
        if self.lanes.is_dense(&self.class) {
            let first = seat.within * each;
            return Raw {
                places: N::some(places, first * 2, 2 * each),
                weights: N::some(weights, first, each),
            };
        }
        let mut raw = Raw {
            places: Vec::new(),
            weights: Vec::new(),
        };
        for i in 0..each {
            // What is behind the last is worked out, and not read by anyone.
            let point = (seat.within + i * self.lanes.group()).min(all - 1);
            raw.places.extend(N::some(places, point * 2, 2));
            raw.weights.push(N::one(weights, point));
        }
        raw
    }

    /// Gathers all queries that a CTA works on.
    pub(super) fn gather(&self, held: Option<Held<E>>) {
        let seat = Seat::new(&self.lanes);
        let (class, lanes) = (&self.class, &self.lanes);
        let each = lanes.per_lane(class);
        // A lane's points lie in one level, or each in its own.
        let dense = lanes.is_dense(class);
        let level_of = |i: u32| {
            let point = match dense {
                true => seat.within * each + i,
                false => (seat.within + i * lanes.group()).min(class.all_points() - 1),
            };
            self.level_of(point / class.points)
        };
        let single = dense && class.points.is_multiple_of(each);
        let own = single.then(|| level_of(0));
        let steps: Vec<[Reg<u32>; 2]> = (0..class.levels)
            .map(|level| self.level_of(level.reg()).steps)
            .collect();
        self.each(|item| {
            let slot = held.map(|held| held.wait());
            let near = slot.as_ref().map(|slot| slot.tiles());
            self.rounds(item, |first| {
                let (number, there) = self.number(item, seat, first);
                let raw = self.read(seat, number);
                let records = (0..each).map(|i| {
                    let level = own.unwrap_or_else(|| level_of(i));
                    let place = [0, 1].map(|axis| raw.places[(2 * i + axis) as usize]);
                    let window = level.window(place, raw.weights[i as usize]);
                    self.record(&level, &window)
                });
                let records = Records::new(class, lanes, seat, records.collect());
                let sums = self.sum(item, seat, near, &steps, |point| records.of(point));
                self.store(item, seat, number, there, sums);
            });
            if let Some(slot) = slot {
                slot.release();
            }
        });
    }

    /// The records of a point: for each side where it starts, and what it counts.
    #[track_caller]
    fn record(&self, level: &Level, window: &super::level::Window) -> Vec<Vec<Reg<u32>>> {
        let [up, down] = window.weights;
        match self.lanes.sides {
            1 => {
                let weights = E::hand(&[up[0], up[1], down[0], down[1]]);
                vec![[vec![window.first], weights].concat()]
            }
            _ => [0, 1]
                .map(|side| {
                    let first = match side {
                        0 => window.first,
                        _ => window.first + level.steps[1],
                    };
                    [vec![first], E::hand(&[up[side], down[side]])].concat()
                })
                .into(),
        }
    }

    /// The weighed sum of a query's points, what a lane has of it.
    fn sum(
        &self,
        item: Item,
        seat: Seat,
        near: Option<TileRef<E>>,
        steps: &[[Reg<u32>; 2]],
        record: impl Fn(u32) -> Vec<Reg<u32>>,
    ) -> Vec<Reg<f32>> {
        let (class, lanes) = (&self.class, &self.lanes);
        let channels = 4 * E::CHANNELS;
        let head = match lanes.heads {
            1 => item.head,
            n => item.head + (seat.item & (n - 1)),
        };
        // Lanes behind the last channel read the first ones.
        let chunk = match item.chunk {
            None => seat.chunk,
            Some(first) => first + seat.chunk,
        };
        let chunk = match lanes.chunks == lanes.pixel * lanes.slices {
            true => chunk,
            false => select(chunk.lt(lanes.chunks), chunk, 0u32),
        };
        let start = item
            .batch
            .mul_wide(self.spatial * self.heads * class.channels)
            + (head * class.channels + chunk * channels).cast::<u64>();
        let value = self.value.offset(start);
        let inside = match lanes.heads {
            1 => chunk * channels,
            n => (seat.item & (n - 1)) * class.channels + chunk * channels,
        };
        let fetch = |point: u32| -> Vec<(Words<E>, E::Weight)> {
            let words = record(point);
            let level = point / class.points;
            let [down, right] = steps[level as usize];
            let mut firsts = vec![words[0]];
            if lanes.sides == 1 {
                firsts.push(words[0] + right);
            }
            firsts.push(words[0] + down);
            if lanes.sides == 1 {
                firsts.push(words[0] + down + right);
            }
            let corner = |&first: &Reg<u32>| match near {
                Some(near) if level >= class.levels - self.config.held => {
                    near.load_as(0u32, first + inside)
                }
                _ => value.load_as(first),
            };
            let corners: Vec<Words<E>> = firsts.iter().map(corner).collect();
            let weights = E::take(&words[1..]);
            corners.into_iter().zip(weights).collect()
        };
        let mut sums = vec![0.0f32.reg(); channels as usize];
        let mut flying: std::collections::VecDeque<_> = Default::default();
        let mut some: Vec<(Words<E>, E::Weight)> = Vec::new();
        let all = class.all_points();
        for point in 0..all + self.config.ahead {
            if point < all {
                flying.push_back(fetch(point));
            }
            if point < self.config.ahead {
                continue;
            }
            some.extend(flying.pop_front().unwrap_or_default());
            let done = point - self.config.ahead + 1;
            if done.is_multiple_of(self.config.sums) || done == all {
                E::add(&mut sums, &some);
                some.clear();
            }
        }
        sums
    }

    /// Writes what a lane has of a query's sums.
    #[track_caller]
    fn store(
        &self,
        item: Item,
        seat: Seat,
        number: Reg<u32>,
        there: Reg<bool>,
        sums: Vec<Reg<f32>>,
    ) {
        let lanes = &self.lanes;
        let channels = 4 * E::CHANNELS;
        let chunk = match item.chunk {
            None => seat.chunk,
            Some(first) => first + seat.chunk,
        };
        let there = match lanes.chunks == lanes.pixel * lanes.slices {
            true => there,
            false => there & chunk.lt(lanes.chunks),
        };
        let (first, sums) = match seat.side {
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
            let to = self.out.offset(number.mul_wide(self.class.channels));
            E::store(to, first, &sums);
        });
    }
}

/// The records of a warp's points, each in a lane of its query, and of its side.
struct Records {
    /// The first lane of a query and side.
    first: Reg<u32>,
    class: Class,
    lanes: Lanes,
    /// Those that a lane has, each some words.
    all: Vec<Vec<Reg<u32>>>,
}

impl Records {
    /// Of points that each lane worked out, for both sides: a lane gets the
    /// records for its side of what its neighbour on the other side worked out,
    /// and gives it those for the other.
    #[track_caller]
    fn new(class: &Class, lanes: &Lanes, seat: Seat, points: Vec<Vec<Vec<Reg<u32>>>>) -> Self {
        let start = lane_id() & !(lanes.group() - 1);
        let Some(side) = seat.side else {
            let all = points.into_iter().map(|mut sides| sides.swap_remove(0));
            return Self {
                first: start,
                class: *class,
                lanes: *lanes,
                all: all.collect(),
            };
        };
        let left = side.eq(0);
        let pick = |yes: Reg<u32>, no: Reg<u32>| select(left, yes, no);
        let mut own = Vec::new();
        let mut others = Vec::new();
        for sides in &points {
            let (mut of_left, mut of_right) = (Vec::new(), Vec::new());
            for (&l, &r) in sides[0].iter().zip(&sides[1]) {
                let mine = pick(l, r);
                let given = shuffle_xor(pick(r, l), lanes.pixel);
                of_left.push(pick(mine, given));
                of_right.push(pick(given, mine));
            }
            own.push(of_left);
            others.push(of_right);
        }
        own.extend(others);
        Self {
            first: start + side * lanes.pixel,
            class: *class,
            lanes: *lanes,
            all: own,
        }
    }

    /// The record of a point, known to all lanes of its query and side.
    #[track_caller]
    fn of(&self, point: u32) -> Vec<Reg<u32>> {
        let (by, i) = self.lanes.worker(&self.class, point);
        let (lane, i) = match by < self.lanes.pixel || self.lanes.sides == 1 {
            true => (by, i),
            // What came from the other side is behind what did not.
            false => (by - self.lanes.pixel, self.lanes.per_lane(&self.class) + i),
        };
        let lane = self.first + lane;
        let words = self.all[i as usize].iter();
        words.map(|&word| shuffle_from(word, lane)).collect()
    }
}
