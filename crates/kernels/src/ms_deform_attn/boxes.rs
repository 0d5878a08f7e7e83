//! The form in which a copy brings the four pixels of every point.
//!
//! Each warp that works out points and asks for their boxes hands them to one
//! that takes their sums, and waits for no other.
//!
//! ```text
//!   point ──► weights, boxes ──► gather ──► out
//! ```

use super::config::{Config, Form};
use super::gather::{Seat, Whose, store};
use super::lanes::{BYTES, Lanes};
use super::level::Level;
use super::line::Line;
use super::problem::{Class, Problem};
use super::texel::{Number, Texel};
use super::walk::Item;
use warpline_family::plan::{Buffer, Step, TensorArg};
use warpline_ir::build::*;
use warpline_ir::{Swizzle, TensorMapDecl};

/// Queries whose weights are there at a time.
const WEIGHTS: u32 = 2;
/// Pixels of a box.
const CORNERS: u32 = 4;

/// What a warp hands to another.
#[derive(Clone, Copy)]
struct Rings<E: Texel> {
    /// What the corners of the points of a warp's queries count: four words each.
    weights: Ring<Tile<u32>>,
    /// The pixels of those of one level, a box after another.
    boxes: Ring<Tile<E>>,
}

/// Channels of a box.
fn cols(class: &Class, lanes: &Lanes) -> u32 {
    lanes.pixel * BYTES / class.value.dtype().bytes() as u32
}

/// Words from the weights of a query to those of the next, in other banks.
fn pitch(class: &Class) -> u32 {
    (class.all_points() + 1) * CORNERS
}

/// Words of the weights of a warp's queries.
fn words(class: &Class, lanes: &Lanes) -> u32 {
    lanes.items() * pitch(class)
}

/// Pixels of a warp's queries in one level.
fn pixels(class: &Class, lanes: &Lanes) -> u32 {
    lanes.items() * class.points * CORNERS
}

/// The map of a level: channels of all heads, columns, rows, batches.
fn map(class: &Class, lanes: &Lanes) -> TensorMapDecl {
    TensorMapDecl {
        swizzle: Swizzle::None,
        ..TensorMapDecl::tiled(class.value.dtype(), [cols(class, lanes), 2, 2, 1])
    }
}

/// Binds the tensors of all levels.
pub(super) fn bind_args(mut step: Step, p: &Problem, c: &Config) -> Step {
    if c.form != Form::Boxes {
        return step;
    }
    let pixel = u64::from(p.heads * p.class().pixel_bytes());
    let channels = u64::from(p.heads * p.channels);
    for (i, (shape, start)) in p.shapes.0.iter().zip(p.starts()).enumerate() {
        let [height, width] = p.stored(*shape);
        let extents = vec![channels, width, height, u64::from(p.batch).max(1)];
        let strides = vec![pixel, width * pixel, p.spatial() * pixel];
        let level = TensorArg::strided(Buffer::Input(0).at(start * pixel), extents, strides);
        step = step.tensor(&format!("level_{i}"), level);
    }
    step
}

/// Declares the roles.
pub(super) fn roles<E: Texel, N: Number>(k: Builder, line: &Line<E, N>) {
    let (class, c, lanes) = (&line.class, &line.config, &line.lanes);
    let level = |i: u32| k.tensor_map(&format!("level_{i}"), map(class, lanes));
    let maps: Vec<Map> = (0..class.levels).map(level).collect();
    let lines = c.gathering();
    let weights = k.ring_per_warp("weights", lines, WEIGHTS, |s| {
        s.vector::<u32>(words(class, lanes))
    });
    let rings = Rings {
        weights: weights.by_threads(),
        boxes: k.ring_per_warp("boxes", lines, c.stages, |s| {
            s.plain::<E>(pixels(class, lanes), cols(class, lanes))
        }),
    };
    k.role("point")
        .warps(lines)
        .body(|| Pointer::new(line, &maps).work(rings));
    k.role("gather").warps(lines).body(|| gather(line, rings));
}

/// Runs `f` for all that a warp works on: its first step of the walk.
fn each<E: Texel, N: Number>(line: &Line<E, N>, f: impl Fn(Item, Reg<u32>)) {
    let lanes = &line.lanes;
    line.each(|item| {
        let mine = item.first + warp_in_role() * lanes.queries();
        steps(item.rounds).each(|round| f(item, mine + round * line.config.round(lanes)));
    });
}

/// A lane that works out points: some of those of its warp's queries.
struct Pointer<'a, E, N> {
    line: &'a Line<E, N>,
    maps: &'a [Map],
    points: Vec<Own>,
}

/// A point of a lane.
struct Own {
    /// Whether there is such a point, where that is not sure.
    there: Option<Reg<bool>>,
    /// Which of the queries, and which of its points.
    item: Reg<u32>,
    point: Reg<u32>,
    level: Level,
}

impl<'a, E: Texel, N: Number> Pointer<'a, E, N> {
    fn new(line: &'a Line<E, N>, maps: &'a [Map]) -> Self {
        let all = line.class.all_points();
        let count = line.lanes.items() * all;
        let own = |first: u32| {
            let number = lane_id() + first;
            let there = (first + 32 > count).then(|| number.lt(count));
            let number = number.min(count - 1);
            let item = number / all;
            let point = number - item * all;
            Own {
                there,
                item,
                point,
                level: line.level_of(point / line.class.points),
            }
        };
        Self {
            line,
            maps,
            points: (0..count).step_by(32).map(own).collect(),
        }
    }

    /// Works out all points of a warp.
    fn work(&self, rings: Rings<E>) {
        each(self.line, |item, step| {
            let asked: Vec<_> = self
                .points
                .iter()
                .map(|p| self.ask(item, step, p))
                .collect();
            let slot = rings.weights.acquire();
            let to = slot.tiles();
            let mut places = Vec::new();
            for (own, (place, weight)) in self.points.iter().zip(asked) {
                let window = own.level.window(place, weight);
                let words = window.weights.as_flattened().iter();
                let words: Vec<_> = words.map(|&w| E::hand(&[w, w])[0]).collect();
                let put = || {
                    let all = [words[0], words[1], words[2], words[3]];
                    let at = own.item * pitch(&self.line.class) + own.point * CORNERS;
                    to.store_as(0u32, at, all);
                };
                match own.there {
                    None => put(),
                    Some(there) => if_(there, put),
                }
                places.push(window.place());
            }
            slot.commit();
            for level in 0..self.line.class.levels {
                self.bring(item, level, &places, rings.boxes);
            }
        });
    }

    /// Reads the place and weight of a point.
    #[track_caller]
    fn ask(&self, item: Item, step: Reg<u32>, own: &Own) -> ([Reg<f32>; 2], Reg<f32>) {
        let (line, all) = (self.line, self.line.class.all_points());
        let whose = Whose::at(line, item, step + own.item, item.head);
        let places = line.locations.offset(whose.number.mul_wide(2 * all));
        let weights = line.weights.offset(whose.number.mul_wide(all));
        let place = N::some(places, own.point * 2, 2);
        ([place[0], place[1]], N::one(weights, own.point))
    }

    /// Brings the boxes of the points of a level, whose places the lanes have.
    fn bring(&self, item: Item, level: u32, places: &[[Reg<u32>; 2]], boxes: Ring<Tile<E>>) {
        let (line, points) = (self.line, self.line.class.points);
        let first = item.head * line.class.channels;
        let channel = match item.chunk {
            None => first,
            Some(chunk) => first + chunk * (4 * E::CHANNELS),
        };
        // All lanes learn where they are, and one of them asks.
        let of_items = (0..line.lanes.items()).flat_map(|item| {
            let first = item * line.class.all_points() + level * points;
            first..first + points
        });
        let corners: Vec<_> = of_items
            .map(|number| {
                let lane = (number % 32).reg();
                places[(number / 32) as usize].map(|x| shuffle_from(x, lane))
            })
            .collect();
        elect_lane(|| {
            let slot = boxes.acquire();
            let tile = slot.tiles();
            for (i, [row, col]) in (0..).zip(corners) {
                let to = tile.slice(i * CORNERS..(i + 1) * CORNERS, 0..tile.cols());
                let map = self.maps[level as usize];
                slot.load(map, to, [channel, col, row, item.batch]);
            }
            slot.commit();
        });
    }
}

/// Takes the sums of the boxes of a warp.
fn gather<E: Texel, N: Number>(line: &Line<E, N>, rings: Rings<E>) {
    let (class, lanes) = (&line.class, &line.lanes);
    let seat = Seat::new(lanes);
    let side = seat.side.unwrap_or(0u32.reg());
    let row = lanes.pixel * BYTES;
    let inside = side * row + seat.chunk * BYTES;
    let weights = seat.item * pitch(class) + side;
    each(line, |item, step| {
        let whose = Whose::new(line, seat, item, step);
        let counts = rings.weights.wait();
        let mut sums = Vec::new();
        for level in 0..class.levels {
            let slot = rings.boxes.wait();
            let point = |p: u32| {
                let first = (level * class.points + p) * CORNERS;
                let word = counts.tiles().load(0u32, weights + first);
                let at = (seat.item * class.points + p) * (CORNERS * row) + inside;
                (slot.tiles().load_byte(at), E::take(&[word])[0])
            };
            let points: Vec<u32> = (0..class.points).collect();
            for some in points.chunks(line.config.sums as usize) {
                let some: Vec<_> = some.iter().map(|&p| point(p)).collect();
                E::add(&mut sums, &some);
            }
            slot.release();
        }
        counts.release();
        store(line, seat, item, whose, sums);
    });
}
