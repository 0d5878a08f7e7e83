//! The form in which some warps work out points, and others gather them.
//!
//! ```text
//!   fetch ──► points ──► produce ──► records ──► gather ──► out
//!                          hold ──► held ──────────┘
//! ```

use super::config::{COPIER_REGISTERS, Config, Handed};
use super::gather::{Gather, Seat, Whose};
use super::lanes::Lanes;
use super::level::Level;
use super::line::{Held, Line};
use super::points::made;
use super::problem::{Class, Problem};
use super::record::{Lent, Record, Row, Shelf};
use super::texel::{Number, Texel};
use super::walk::Item;
use crate::roles::helper;
use warpline_family::plan::{Buffer, Step, TensorArg};
use warpline_ir::build::*;
use warpline_ir::{Swizzle, TensorMapDecl};

/// The records of a round, and the number of the query and head of each row.
type Records = Ring<(Tile<u32>, Tile<u32>)>;
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

/// Binds the tensors of places and weights.
pub(super) fn bind_args(mut step: Step, p: &Problem, c: &Config, lanes: &Lanes) -> Step {
    if !c.copied {
        return step;
    }
    let rows = u64::from(p.batch).max(1) * u64::from(p.num_query).max(1);
    let each = MAPS.into_iter().zip(cols(&p.class(), lanes)).zip([3, 4]);
    for ((name, cols), input) in each {
        let row = u64::from(p.heads / lanes.heads * cols);
        step = step.tensor(name, TensorArg::dense(Buffer::Input(input), &[row, rows]));
    }
    step
}

/// The tensors of places and weights, as parameters.
const MAPS: [&str; 2] = ["places", "points_weights"];

/// Declares the roles.
pub(super) fn roles<E: Texel, N: Number>(k: Builder, line: &Line<E, N>) {
    let (class, c, lanes) = (&line.class, &line.config, &line.lanes);
    let round = c.round(lanes);
    let held = line.held(k);
    let given = c.copied.then(|| {
        let [places, weights] = cols(class, lanes);
        let maps = [(MAPS[0], places), (MAPS[1], weights)]
            .map(|(name, cols)| k.tensor_map(name, map(class, round, cols)));
        let ring = k.ring("points", c.stages, |s| {
            (s.plain::<N>(round, places), s.plain::<N>(round, weights))
        });
        (maps, ring)
    });
    let shelf = c.shelf(class, lanes);
    let ring = k
        .ring("records", c.stages, |s| {
            (
                s.vector::<u32>(shelf.words()),
                s.vector::<u32>(shelf.rows()),
            )
        })
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
    let copying = c.registers.map(|_| COPIER_REGISTERS);
    if let Some(held) = held {
        helper(k, "hold", copying).body(|| line.bring(held));
    }
    if let Some((maps, ring)) = given {
        helper(k, "fetch", copying).body(|| fetch(line, maps, ring));
    }
}

/// Brings places and weights of the points of every round.
fn fetch<E: Texel, N: Number>(line: &Line<E, N>, maps: [Map; 2], ring: Given<N>) {
    let round = line.config.round(&line.lanes);
    let all = line.class.all_points();
    elect(|| {
        line.each(|item| {
            let first = item.batch * line.queries + item.first;
            steps(item.rounds).each(|i| {
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
    /// Its columns.
    columns: Vec<Column>,
    /// Rows of a warp at a time: as many as columns leave lanes for.
    at_once: u32,
    /// Its first row.
    row: Reg<u32>,
    /// Rows of all threads at a time.
    rows: u32,
}

/// What a thread has of every query and head.
#[derive(Clone, Copy)]
struct Column {
    /// Which record.
    record: Reg<u32>,
    /// Whether there is such a record, where that is not sure.
    there: Option<Reg<bool>>,
    /// The level of its points, where they lie in one.
    level: Option<Level>,
}

/// Whose row one is.
struct Name {
    row: Reg<u32>,
    whose: Whose,
}

/// Points of a row that were asked for.
struct Asked {
    place: Row,
    /// Whether there is such a row, where that is not sure.
    there: Option<Reg<bool>>,
    column: usize,
    places: Vec<Reg<f32>>,
    weights: Vec<Reg<f32>>,
}

impl<'a, E: Texel, N: Number> Producer<'a, E, N> {
    fn new(line: &'a Line<E, N>, shelf: Shelf) -> Self {
        let wide = shelf.records().next_power_of_two().min(32);
        let at_once = 32 / wide;
        let (points, each) = (line.class.points, line.format().points);
        let column = |first: u32| {
            // Neighbours in a row of places lie as far apart as rows do: lanes
            // that work at the same time have other columns in other rows.
            let apart = wide / at_once;
            let turned = (lane_id() & (at_once - 1)) * apart;
            let record = ((lane_id() >> at_once.trailing_zeros()) ^ turned) + first;
            let there = (first + wide > shelf.records()).then(|| record.lt(shelf.records()));
            let record = match there {
                None => record,
                Some(_) => record.min(shelf.records() - 1),
            };
            let single = points.is_multiple_of(each);
            let level = single.then(|| line.level_of(record * each / points));
            Column {
                record,
                there,
                level,
            }
        };
        Self {
            line,
            shelf,
            columns: (0..shelf.records())
                .step_by(wide as usize)
                .map(column)
                .collect(),
            at_once,
            row: warp_in_role() * at_once + (lane_id() & (at_once - 1)),
            rows: role_threads() / wide,
        }
    }

    /// Works out the points of every round.
    fn work(&self, given: Option<Given<N>>, out: Records) {
        let line = self.line;
        line.each(|item| {
            let round = line.config.round(&line.lanes);
            steps(item.rounds).each(|i| {
                let from = given.map(|given| given.wait());
                let tiles = from.as_ref().map(|slot| slot.tiles());
                let names = self.names(item, item.first + i * round);
                let starts: Vec<u32> = (0..self.shelf.rows()).step_by(self.rows as usize).collect();
                let mut some = starts.chunks(TOGETHER);
                let ask = |starts: &[u32]| self.ask(tiles, &names, starts);
                // They are on their way while there is no room for them.
                let mut asked = some.next().map(ask);
                let slot = out.acquire();
                let (to, to_names) = slot.tiles();
                self.put_names(to_names, &names);
                while let Some(points) = asked {
                    self.put(to, points);
                    asked = some.next().map(ask);
                }
                slot.commit();
                if let Some(from) = from {
                    from.release();
                }
            });
        });
    }

    /// Works out whose rows a warp has, each lane some of them.
    fn names(&self, item: Item, first: Reg<u32>) -> Vec<Name> {
        let line = self.line;
        let heads = line.lanes.heads;
        let at_once = self.at_once;
        let count = self.shelf.rows().div_ceil(self.rows) * at_once;
        let some = |from: u32| {
            let i = lane_id() + from;
            let (pass, within) = (i >> at_once.trailing_zeros(), i & (at_once - 1));
            let row = warp_in_role() * at_once + within + pass * self.rows;
            let (step, head) = match heads {
                1 => (row, item.head),
                n => (row >> n.trailing_zeros(), item.head + (row & (n - 1))),
            };
            let whose = Whose::at(line, item, first + step, head);
            Name { row, whose }
        };
        (0..count).step_by(32).map(some).collect()
    }

    /// Puts whose rows these are.
    fn put_names(&self, to: TileRef<u32>, names: &[Name]) {
        for Name { row, whose } in names {
            if_(row.lt(self.shelf.rows()), || {
                to.store(0u32, *row, whose.word());
            });
        }
    }

    /// Asks for the points of some rows.
    fn ask(
        &self,
        tiles: Option<(TileRef<N>, TileRef<N>)>,
        names: &[Name],
        starts: &[u32],
    ) -> Vec<Asked> {
        let mut asked = Vec::new();
        for &start in starts {
            let (row, all) = (self.row + start, self.shelf.rows());
            let there = (start + self.rows > all).then(|| row.lt(all));
            let (row, place) = match there {
                None => (row, self.shelf.row(self.row, start)),
                Some(_) => {
                    let row = row.min(all - 1);
                    (row, self.shelf.row(row, 0))
                }
            };
            for column in 0..self.columns.len() {
                let (places, weights) = match tiles {
                    Some(tiles) => self.near(tiles, row, column),
                    None => self.far(names, start / self.rows, column),
                };
                asked.push(Asked {
                    place,
                    there,
                    column,
                    places,
                    weights,
                });
            }
        }
        asked
    }

    /// Works out points, and puts them.
    fn put(&self, to: TileRef<u32>, points: Vec<Asked>) {
        for asked in points {
            let Column { record, there, .. } = self.columns[asked.column];
            let made = self.record(asked.column, &asked.places, &asked.weights);
            let put = || self.shelf.put(to, asked.place, record, &made);
            match (asked.there, there) {
                (None, None) => put(),
                (Some(a), None) | (None, Some(a)) => if_(a, put),
                (Some(a), Some(b)) => if_(a & b, put),
            }
        }
    }

    /// Reads the places and weights of a record's points from what copies brought.
    #[track_caller]
    fn near(
        &self,
        (places, weights): (TileRef<N>, TileRef<N>),
        row: Reg<u32>,
        column: usize,
    ) -> (Vec<Reg<f32>>, Vec<Reg<f32>>) {
        let (all, each) = (self.line.class.all_points(), self.line.format().points);
        let point = self.columns[column].record * each;
        let (step, point) = match self.line.lanes.heads {
            1 => (row, point),
            n => (row >> n.trailing_zeros(), (row & (n - 1)) * all + point),
        };
        (
            N::some_near(places, step, point * 2, 2 * each),
            N::some_near(weights, step, point, each),
        )
    }

    /// Reads the places and weights of a record's points, at a pass over rows.
    #[track_caller]
    fn far(&self, names: &[Name], pass: u32, column: usize) -> (Vec<Reg<f32>>, Vec<Reg<f32>>) {
        let line = self.line;
        let (all, each) = (line.class.all_points(), line.format().points);
        let first = pass * self.at_once;
        let lane = (lane_id() & (self.at_once - 1)) + first % 32;
        let number = shuffle_from(names[(first / 32) as usize].whose.number, lane);
        let point = self.columns[column].record * each;
        let places = line.locations.offset(number.mul_wide(2 * all));
        let weights = line.weights.offset(number.mul_wide(all));
        (
            N::some(places, point * 2, 2 * each),
            N::some(weights, point, each),
        )
    }

    /// The record of some points.
    #[track_caller]
    fn record(&self, column: usize, places: &[Reg<f32>], weights: &[Reg<f32>]) -> Record {
        let line = self.line;
        let Column { record, level, .. } = self.columns[column];
        let each = line.format().points;
        let points = (0..).zip(places.chunks(2).zip(weights));
        let points = points.map(|(i, (place, &weight))| {
            let level =
                level.unwrap_or_else(|| line.level_of((record * each + i) / line.class.points));
            made::<E>(line.lanes.sides, &level, [place[0], place[1]], weight)
        });
        let points: Vec<_> = points.collect();
        line.format().records(&points).swap_remove(0)
    }
}

/// Gathers the points of every round.
fn gather<E: Texel, N: Number>(
    line: &Line<E, N>,
    held: Option<Held<E>>,
    shelf: Shelf,
    ring: Records,
) {
    let lanes = &line.lanes;
    let seat = Seat::new(lanes);
    let row = Row {
        warp: warp_in_role(),
        item: seat.item,
    };
    let name = row.warp * lanes.items() + row.item;
    let points = line.format().points;
    line.each(|item| {
        let kept = held.map(|held| held.wait());
        let near = kept.as_ref().map(|slot| slot.tiles());
        let gather = Gather::new(line, seat, item, near);
        steps(item.rounds).each(|_| {
            let slot = ring.wait();
            let (from, names) = slot.tiles();
            let whose = Whose::of_word(names.load(0u32, name));
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
