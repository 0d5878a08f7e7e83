//! What is handed from who works out a point to those who gather it.

use super::lanes::Lanes;
use super::problem::Class;
use warpline_ir::build::*;

/// A point as one side of its readers knows it.
pub(super) struct Spot {
    /// The first pixel that they read.
    pub(super) pixel: Reg<u32>,
    /// What its corners count, in words.
    pub(super) weights: Vec<Reg<u32>>,
}

/// How a record looks: the pixels of one point or two, then their weights.
#[derive(Clone, Copy)]
pub(super) struct Format {
    /// Points of a record; pixels of two have 16 bits each.
    pub(super) points: u32,
    /// Words of a point's weights.
    pub(super) weights: u32,
}

impl Format {
    /// Words of a record.
    pub(super) fn words(&self) -> u32 {
        1 + self.points * self.weights
    }

    /// The record of some points.
    #[track_caller]
    pub(super) fn pack(&self, spots: &[Spot]) -> Vec<Reg<u32>> {
        let mut words = vec![match spots {
            [a, b] => b.pixel.mad(1u32 << 16, a.pixel),
            _ => spots[0].pixel,
        }];
        words.extend(spots.iter().flat_map(|spot| &spot.weights));
        words
    }

    /// The points of a record.
    #[track_caller]
    pub(super) fn unpack(&self, words: &[Reg<u32>]) -> Vec<Spot> {
        let (pixels, weights) = (words[0], &words[1..]);
        let pixels = match self.points {
            1 => vec![pixels],
            _ => vec![pixels & 0xffffu32, pixels >> 16u32],
        };
        let each = weights.chunks(self.weights as usize);
        let spots = pixels.into_iter().zip(each);
        spots
            .map(|(pixel, weights)| Spot {
                pixel,
                weights: weights.to_vec(),
            })
            .collect()
    }
}

/// Records that the lanes of a warp have, for all of a query and side to know.
pub(super) struct Lent {
    format: Format,
    /// The first lane of a query and side.
    first: Reg<u32>,
    /// Those that a lane has.
    all: Vec<Vec<Reg<u32>>>,
    /// Who has a record, and which of its own that is.
    owners: Vec<(u32, u32)>,
}

impl Lent {
    /// Of records that each lane made, for every side: a lane gets those for
    /// its side of what its neighbour on the other side made, and gives it
    /// those for the other.
    #[track_caller]
    pub(super) fn new(
        format: Format,
        class: &Class,
        lanes: &Lanes,
        side: Option<Reg<u32>>,
        made: Vec<Vec<Vec<Reg<u32>>>>,
    ) -> Self {
        let each = made.len() as u32;
        let owner = |record: u32| {
            let (by, i) = lanes.worker(class, record * format.points);
            let i = i / format.points;
            match by < lanes.pixel || lanes.sides == 1 {
                true => (by, i),
                // What came from the other side is behind what did not.
                false => (by - lanes.pixel, each + i),
            }
        };
        let all = match side {
            None => {
                let only = |mut sides: Vec<_>| sides.swap_remove(0);
                made.into_iter().map(only).collect()
            }
            Some(side) => {
                let left = side.eq(0);
                let pick = |yes: Reg<u32>, no: Reg<u32>| select(left, yes, no);
                let (mut own, mut others) = (Vec::new(), Vec::new());
                for sides in &made {
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
                own
            }
        };
        Self {
            format,
            first: Self::first(lanes, side),
            all,
            owners: (0..class.all_points() / format.points).map(owner).collect(),
        }
    }

    /// The first lane of a query and side.
    #[track_caller]
    fn first(lanes: &Lanes, side: Option<Reg<u32>>) -> Reg<u32> {
        let start = lane_id() & !(lanes.group() - 1);
        match side {
            None => start,
            Some(side) => start + side * lanes.pixel,
        }
    }

    /// Of records on a shelf, of which each lane takes some.
    #[track_caller]
    pub(super) fn taken(
        shelf: &Shelf,
        lanes: &Lanes,
        from: TileRef<u32>,
        row: Reg<u32>,
        side: Option<Reg<u32>>,
    ) -> Self {
        let each = shelf.records.div_ceil(lanes.pixel);
        let own = (lane_id() & (lanes.pixel - 1)) * each;
        let all = (0..each).map(|i| {
            let record = (own + i).min(shelf.records - 1);
            shelf.words_of(from, row, side, record, 0)
        });
        Self {
            format: shelf.format,
            first: Self::first(lanes, side),
            all: all.collect(),
            owners: (0..shelf.records).map(|r| (r / each, r % each)).collect(),
        }
    }

    /// The points of the record that starts with a point.
    #[track_caller]
    pub(super) fn of(&self, point: u32) -> Vec<Spot> {
        let (lane, i) = self.owners[(point / self.format.points) as usize];
        let lane = self.first + lane;
        let words = self.all[i as usize].iter();
        let words: Vec<_> = words.map(|&word| shuffle_from(word, lane)).collect();
        self.format.unpack(&words)
    }
}

/// Where records lie in shared memory: those of one query and head after each
/// other, in planes of vectors that are read at once.
#[derive(Clone, Copy)]
pub(super) struct Shelf {
    format: Format,
    sides: u32,
    /// Queries and heads.
    rows: u32,
    /// Records of each, and side.
    records: u32,
}

impl Shelf {
    pub(super) fn new(format: Format, class: &Class, lanes: &Lanes, rows: u32) -> Self {
        Self {
            format,
            sides: lanes.sides,
            rows,
            records: class.all_points().div_ceil(format.points),
        }
    }

    /// Records of a query and head, and side.
    pub(super) fn records(&self) -> u32 {
        self.records
    }

    /// Queries and heads.
    pub(super) fn rows(&self) -> u32 {
        self.rows
    }

    /// The vectors that a record is cut into: the first word of each, and how many.
    fn planes(&self) -> Vec<(u32, u32)> {
        let mut planes = Vec::new();
        let mut from = 0;
        while from < self.format.words() {
            let rest = self.format.words() - from;
            // All sides are put at once.
            let wide = (4 / self.sides).min(1 << rest.ilog2());
            planes.push((from, wide));
            from += wide;
        }
        planes
    }

    /// Words from a row to the next in a plane of such vectors: rows that are
    /// read together lie in other banks.
    fn pitch(&self, wide: u32) -> u32 {
        (self.records + 1) * self.sides * wide
    }

    /// Words of all.
    pub(super) fn words(&self) -> u32 {
        let plane = |(_, wide): (u32, u32)| self.rows * self.pitch(wide);
        let all: u32 = self.planes().into_iter().map(plane).sum();
        all.next_multiple_of(4)
    }

    /// Runs `f` for each vector: the words of the record, and where the one of
    /// a row and record starts: constant and in a register.
    fn each(&self, row: Reg<u32>, mut f: impl FnMut(std::ops::Range<usize>, u32, Reg<u32>, u32)) {
        let mut plane = 0;
        for (from, wide) in self.planes() {
            let words = from as usize..(from + wide) as usize;
            f(words, plane, row * self.pitch(wide), wide);
            plane += self.rows * self.pitch(wide);
        }
    }

    /// Puts the records of a row, for all sides, at a place in its row.
    #[track_caller]
    pub(super) fn put(
        &self,
        to: TileRef<u32>,
        row: Reg<u32>,
        record: Reg<u32>,
        sides: &[Vec<Reg<u32>>],
    ) {
        self.each(row, |words, plane, at, wide| {
            let at = at + record * (self.sides * wide);
            let all: Vec<_> = sides
                .iter()
                .flat_map(|s| s[words.clone()].to_vec())
                .collect();
            let to = to.slice(0..1, plane..to.cols());
            match *all {
                [a] => to.store_as(0u32, at, [a]),
                [a, b] => to.store_as(0u32, at, [a, b]),
                [a, b, c, d] => to.store_as(0u32, at, [a, b, c, d]),
                _ => {}
            }
        });
    }

    /// The points of the record of that number, as a side reads it.
    #[track_caller]
    pub(super) fn take(
        &self,
        from: TileRef<u32>,
        row: Reg<u32>,
        side: Option<Reg<u32>>,
        record: u32,
    ) -> Vec<Spot> {
        let words = self.words_of(from, row, side, 0u32.reg(), record);
        self.format.unpack(&words)
    }

    /// The words of a record: so many behind that of a number.
    #[track_caller]
    fn words_of(
        &self,
        from: TileRef<u32>,
        row: Reg<u32>,
        side: Option<Reg<u32>>,
        first: Reg<u32>,
        record: u32,
    ) -> Vec<Reg<u32>> {
        let mut found = Vec::new();
        self.each(row, |_, plane, at, wide| {
            let start = plane + record * self.sides * wide;
            let from = from.slice(0..1, start..from.cols());
            let at = at + first * (self.sides * wide);
            let at = match side {
                None => at,
                Some(side) => at + side * wide,
            };
            match wide {
                1 => found.extend(from.load_as::<u32, 1>(0u32, at)),
                2 => found.extend(from.load_as::<u32, 2>(0u32, at)),
                _ => found.extend(from.load_as::<u32, 4>(0u32, at)),
            }
        });
        found
    }
}
