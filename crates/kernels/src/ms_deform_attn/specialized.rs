//! The form in which some warps work out points, and others gather them.
//!
//! ```text
//!   fetch ──► points ──► produce ──► records ──► gather ──► out
//!                          hold ──► held ──────────┘
//! ```

use super::config::{Config, Handed};
use super::gather::{Gather, Seat, Whose};
use super::lanes::Lanes;
use super::level::Level;
use super::line::{Held, Line};
use super::points::{records, spots};
use super::problem::{Class, Problem};
use super::record::{Lent, Shelf};
use super::texel::{Number, Texel};
use super::walk::Item;
use crate::plan::{Buffer, PlanArg};
use warpline_ir::build::*;
use warpline_ir::{Swizzle, TensorMapDecl};

/// Places and weights of the points of a round, as they were given.
type Given<N> = Ring<(Tile<N>, Tile<N>)>;

/// Rows of a thread whose points are read together.
const TOGETHER: usize = 4;

/// Elements of a row of places, and of weights, that a copy brings.
fn cols(class: &Class, lanes: &Lanes) -> [u32; 2] {
    [2, 1].map(|each| lanes.heads * class.all_points() * each)
}

/// The map of places or weights, as rows of the points of all heads.
fn map(class: &Class, rows: u32, cols: u32) -> TensorMapDecl {
    TensorMapDecl {
        swizzle: Swizzle::None,
        ..TensorMapDecl::tiled(class.point.dtype(), [cols, rows])
    }
}

/// Can copies bring the points of so many queries at a time?
pub(super) fn can_copy(p: &Problem, lanes: &Lanes, queries: u32) -> bool {
    let class = p.class();
    let size = class.point.dtype().bytes() as u32;
    let fits = |cols: u32| {
        let row = p.heads / lanes.heads * cols;
        cols <= 256 && (cols * size).is_multiple_of(16) && (row * size).is_multiple_of(16)
    };
    queries <= 256 && cols(&class, lanes).into_iter().all(fits)
}

/// Bytes of the points of a round.
pub(super) fn given_bytes(class: &Class, lanes: &Lanes, queries: u32) -> u32 {
    let cols: u32 = cols(class, lanes).into_iter().sum();
    queries * cols * class.point.dtype().bytes() as u32
}

/// The maps of places and weights that a launch passes.
pub(super) fn args(p: &Problem, c: &Config, lanes: &Lanes) -> Vec<PlanArg> {
    if !c.copied {
        return Vec::new();
    }
    let class = p.class();
    let rows = u64::from(p.batch).max(1) * u64::from(p.num_query).max(1);
    let each = cols(&class, lanes).into_iter().zip([3, 4]);
    each.map(|(cols, input)| {
        let row = u64::from(p.heads / lanes.heads * cols);
        let map = map(&class, c.round(lanes), cols);
        PlanArg::dense(map, Buffer::Input(input), &[row, rows])
    })
    .collect()
}

/// Declares the roles.
pub(super) fn roles<E: Texel, N: Number>(k: Builder, line: &Line<E, N>) {
    let (class, c, lanes) = (&line.class, &line.config, &line.lanes);
    let round = c.round(lanes);
    let held = line.held(k);
    let given = c.copied.then(|| {
        let [places, weights] = cols(class, lanes);
        let maps = [("places", places), ("points_weights", weights)]
            .map(|(name, cols)| k.tensor_map(name, map(class, round, cols)));
        let ring = k.ring("points", c.stages, |s| {
            (s.plain::<N>(round, places), s.plain::<N>(round, weights))
        });
        (maps, ring)
    });
    let shelf = c.shelf(class, lanes);
    let ring = k
        .ring("records", c.stages, |s| s.vector::<u32>(shelf.words()))
        .by_threads();
    let [producing, gathering] = match c.registers {
        Some(counts) => counts.map(Some),
        None => [None, None],
    };
    k.role("produce")
        .warps(c.producing())
        .registers_opt(producing)
        .body(|| Producer::new(line, shelf).work(given.map(|(_, ring)| ring), ring));
    k.role("gather")
        .warps(c.gathering())
        .registers_opt(gathering)
        .body(|| gather(line, held, shelf, ring));
    if let Some(held) = held {
        k.role("hold").warps(1).body(|| line.bring(held));
    }
    if let Some((maps, ring)) = given {
        k.role("fetch").warps(1).body(|| fetch(line, maps, ring));
    }
}

/// Brings places and weights of the points of every round.
fn fetch<E: Texel, N: Number>(line: &Line<E, N>, maps: [Map; 2], ring: Given<N>) {
    let round = line.config.round(&line.lanes);
    let all = line.class.all_points();
    elect(|| {
        line.each(|item| {
            let first = item.batch * line.queries + item.first;
            steps(line.rounds).each(|i| {
                let slot = ring.acquire();
                let row = first + i * round;
                let (places, weights) = slot.tiles();
                slot.load(maps[0], places, [item.head * (2 * all), row]);
                slot.load(maps[1], weights, [item.head * all, row]);
                slot.commit();
            });
        });
    });
}

/// A thread that works out points.
///
/// The threads of the role are rows of columns: a thread has the same place in
/// every query and head that it works on, and so the same levels.
struct Producer<'a, E, N> {
    line: &'a Line<E, N>,
    shelf: Shelf,
    /// Its columns, each a record of a query and head: the number, whether
    /// there is such a record, where that is not sure, and the level of its
    /// points, where they lie in one.
    columns: Vec<(Reg<u32>, Option<Reg<bool>>, Option<Level>)>,
    /// Its first row.
    row: Reg<u32>,
    /// Rows of all threads at a time.
    rows: u32,
}

impl<'a, E: Texel, N: Number> Producer<'a, E, N> {
    fn new(line: &'a Line<E, N>, shelf: Shelf) -> Self {
        let wide = shelf.records().next_power_of_two().min(32);
        let thread = thread_in_role();
        let (points, each) = (line.class.points, line.format().points);
        let column = |first: u32| {
            let record = (thread & (wide - 1)) + first;
            let there = (first + wide > shelf.records()).then(|| record.lt(shelf.records()));
            let record = match there {
                None => record,
                Some(_) => record.min(shelf.records() - 1),
            };
            let single = points.is_multiple_of(each);
            let level = single.then(|| line.level_of(record * each / points));
            (record, there, level)
        };
        Self {
            line,
            shelf,
            columns: (0..shelf.records())
                .step_by(wide as usize)
                .map(column)
                .collect(),
            row: thread >> wide.trailing_zeros(),
            rows: role_threads() / wide,
        }
    }

    /// Works out the points of every round.
    fn work(&self, given: Option<Given<N>>, out: Ring<Tile<u32>>) {
        let line = self.line;
        line.each(|item| {
            let round = line.config.round(&line.lanes);
            steps(line.rounds).each(|i| {
                let from = given.map(|given| given.wait());
                let tiles = from.as_ref().map(|slot| slot.tiles());
                let first = item.first + i * round;
                let slot = out.acquire();
                let starts: Vec<u32> = (0..self.shelf.rows()).step_by(self.rows as usize).collect();
                // Some are asked for before the first of them is worked out.
                for some in starts.chunks(TOGETHER) {
                    self.some(item, tiles, first, some, slot.tiles());
                }
                slot.commit();
                if let Some(from) = from {
                    from.release();
                }
            });
        });
    }

    /// Works out the points of some rows.
    fn some(
        &self,
        item: Item,
        tiles: Option<(TileRef<N>, TileRef<N>)>,
        first: Reg<u32>,
        starts: &[u32],
        to: TileRef<u32>,
    ) {
        let mut todo = Vec::new();
        for &start in starts {
            let (row, all) = (self.row + start, self.shelf.rows());
            let there = (start + self.rows > all).then(|| row.lt(all));
            let row = match there {
                None => row,
                Some(_) => row.min(all - 1),
            };
            for column in 0..self.columns.len() {
                let numbers = self.read(item, tiles, first, row, column);
                todo.push((row, column, there, numbers));
            }
        }
        for (row, column, there, (places, weights)) in todo {
            let (record, is, _) = self.columns[column];
            let made = self.record(column, &places, &weights);
            let put = || self.shelf.put(to, row, record, &made);
            match (there, is) {
                (None, None) => put(),
                (Some(a), None) | (None, Some(a)) => if_(a, put),
                (Some(a), Some(b)) => if_(a & b, put),
            }
        }
    }

    /// Reads the places and weights of a record's points.
    #[track_caller]
    fn read(
        &self,
        item: Item,
        tiles: Option<(TileRef<N>, TileRef<N>)>,
        first: Reg<u32>,
        row: Reg<u32>,
        column: usize,
    ) -> (Vec<Reg<f32>>, Vec<Reg<f32>>) {
        let line = self.line;
        let (all, each) = (line.class.all_points(), line.format().points);
        let heads = line.lanes.heads;
        let (step, head) = match heads {
            1 => (row, None),
            n => (row >> n.trailing_zeros(), Some(row & (n - 1))),
        };
        let point = self.columns[column].0 * each;
        if let Some((places, weights)) = tiles {
            let point = match head {
                None => point,
                Some(head) => head * all + point,
            };
            return (
                N::some_near(places, step, point * 2, 2 * each),
                N::some_near(weights, step, point, each),
            );
        }
        let (query, _) = line.query(first + step);
        let head = head.map_or(item.head, |head| item.head + head);
        let number = line.number(item, query, head);
        let places = line.locations.offset(number.mul_wide(2 * all));
        let weights = line.weights.offset(number.mul_wide(all));
        (
            N::some(places, point * 2, 2 * each),
            N::some(weights, point, each),
        )
    }

    /// The record of some points, for every side.
    #[track_caller]
    fn record(
        &self,
        column: usize,
        places: &[Reg<f32>],
        weights: &[Reg<f32>],
    ) -> Vec<Vec<Reg<u32>>> {
        let line = self.line;
        let (number, _, level) = self.columns[column];
        let each = line.format().points;
        let points = (0..).zip(places.chunks(2).zip(weights));
        let spots = points.map(|(i, (place, &weight))| {
            let level =
                level.unwrap_or_else(|| line.level_of((number * each + i) / line.class.points));
            spots::<E>(line.lanes.sides, &level, [place[0], place[1]], weight)
        });
        records(line.format(), spots.collect()).swap_remove(0)
    }
}

/// Gathers the points of every round.
fn gather<E: Texel, N: Number>(
    line: &Line<E, N>,
    held: Option<Held<E>>,
    shelf: Shelf,
    ring: Ring<Tile<u32>>,
) {
    let lanes = &line.lanes;
    let seat = Seat::new(lanes);
    let row = warp_in_role() * lanes.items() + seat.item;
    let points = line.format().points;
    line.each(|item| {
        let kept = held.map(|held| held.wait());
        let near = kept.as_ref().map(|slot| slot.tiles());
        let gather = Gather::new(line, seat, item, near);
        steps(line.rounds).each(|i| {
            let first =
                item.first + i * line.config.round(lanes) + warp_in_role() * lanes.queries();
            let whose = Whose::new(line, seat, item, first);
            let slot = ring.wait();
            let from = slot.tiles();
            match line.config.handed {
                Handed::Shared => gather.query(whose, |point| {
                    shelf.take(from, row, seat.side, point / points)
                }),
                Handed::Shuffles => {
                    let lent = Lent::taken(&shelf, lanes, from, row, seat.side);
                    gather.query(whose, |point| lent.of(point));
                }
            }
            slot.release();
        });
        if let Some(kept) = kept {
            kept.release();
        }
    });
}
