//! What is handed from who works out a point to those who gather it.

use super::lanes::Lanes;
use super::problem::Class;
use warpline_ir::build::*;

/// A point as its readers know it.
pub(super) struct Spot {
    /// The first pixel of its window.
    pub(super) pixel: Reg<u32>,
    /// What the corners count that are read, in words.
    pub(super) weights: Vec<Reg<u32>>,
}

/// A point as it was worked out.
pub(super) struct Made {
    /// The first pixel of its window.
    pub(super) pixel: Reg<u32>,
    /// What corners count, in words, for every side of those who read them.
    pub(super) weights: Vec<Vec<Reg<u32>>>,
}

/// What is handed on of some points: their pixels, and their weights for every side.
pub(super) struct Record {
    pixels: Vec<Reg<u32>>,
    weights: Vec<Vec<Reg<u32>>>,
}

/// How a record looks.
#[derive(Clone, Copy)]
pub(super) struct Format {
    /// Points of a record: 1, or 2 or 4, whose pixels have 16 bits each.
    pub(super) points: u32,
    /// Words of a point's weights, for one side.
    pub(super) weights: u32,
}

impl Format {
    /// Words of its pixels.
    fn pixels(&self) -> u32 {
        self.points.div_ceil(2)
    }

    /// The record of some points.
    #[track_caller]
    fn pack(&self, points: &[Made]) -> Record {
        let pixels = points.chunks(2).map(|some| match some {
            [a, b] => b.pixel.mad(1u32 << 16, a.pixel),
            _ => some[0].pixel,
        });
        let side = |i: usize| {
            let all = points.iter().flat_map(|point| &point.weights[i]);
            all.copied().collect()
        };
        Record {
            pixels: pixels.collect(),
            weights: (0..points[0].weights.len()).map(side).collect(),
        }
    }

    /// The records of points that follow each other.
    #[track_caller]
    pub(super) fn records(&self, points: &[Made]) -> Vec<Record> {
        let each = points.chunks(self.points as usize);
        each.map(|some| self.pack(some)).collect()
    }

    /// The points of a record, as one side knows it: the words of its pixels,
    /// then those of its weights.
    #[track_caller]
    fn unpack(&self, words: &[Reg<u32>]) -> Vec<Spot> {
        let (pixels, weights) = words.split_at(self.pixels() as usize);
        let pixels = pixels.iter().flat_map(|&word| match self.points {
            1 => vec![word],
            _ => vec![word & 0xffffu32, word >> 16u32],
        });
        let each = weights.chunks(self.weights as usize);
        let spots = pixels.zip(each);
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
    /// The words of those that a lane has.
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
        made: Vec<Record>,
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
            None => (made.into_iter())
                .map(|record| [record.pixels, record.weights.concat()].concat())
                .collect(),
            Some(side) => {
                let left = side.eq(0);
                let pick = |yes: Reg<u32>, no: Reg<u32>| select(left, yes, no);
                // What a lane made for its own side and for the other: what is
                // now of the left ones, and of the right ones.
                let swap = |(mine, other): (Reg<u32>, Reg<u32>)| {
                    let given = shuffle_xor(other, lanes.pixel);
                    (pick(mine, given), pick(given, mine))
                };
                let (mut own, mut others) = (Vec::new(), Vec::new());
                for record in &made {
                    let pixels = record.pixels.iter().map(|&word| (word, word));
                    let weights = record.weights[0].iter().zip(&record.weights[1]);
                    let weights = weights.map(|(&l, &r)| (pick(l, r), pick(r, l)));
                    let (left, right) = pixels.chain(weights).map(swap).unzip();
                    own.push(left);
                    others.push(right);
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
        row: Row,
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

/// Where the records of a round lie in shared memory: in planes of vectors that
/// are read at once, and in each those of the same number of all queries of a
/// warp, which it reads together, after each other.
#[derive(Clone, Copy)]
pub(super) struct Shelf {
    format: Format,
    sides: u32,
    /// Warps that gather.
    warps: u32,
    /// Queries and heads of a warp.
    items: u32,
    /// Records of each.
    records: u32,
}

/// Whose records: a query and head of a warp.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) warp: Reg<u32>,
    pub(super) item: Reg<u32>,
}

/// Vectors of the same words of all records.
struct Plane {
    /// Its first word.
    first: u32,
    /// Words of a vector.
    wide: u32,
    /// Which words of a record these are: of its pixels, or of its weights for each side.
    from: usize,
    sides: Option<u32>,
}

impl Plane {
    /// Words that are put at once.
    fn all(&self) -> u32 {
        self.wide * self.sides.unwrap_or(1)
    }
}

impl Shelf {
    pub(super) fn new(format: Format, class: &Class, lanes: &Lanes, warps: u32) -> Self {
        Self {
            format,
            sides: lanes.sides,
            warps,
            items: lanes.items(),
            records: class.all_points().div_ceil(format.points),
        }
    }

    /// Records of a query and head.
    pub(super) fn records(&self) -> u32 {
        self.records
    }

    /// Queries and heads.
    pub(super) fn rows(&self) -> u32 {
        self.warps * self.items
    }

    /// The row of a number, so many behind a first one.
    #[track_caller]
    pub(super) fn row(&self, first: Reg<u32>, behind: u32) -> Row {
        let whole = behind.is_multiple_of(self.items);
        let (row, warps) = match whole {
            true => (first, behind / self.items),
            false => (first + behind, 0),
        };
        Row {
            warp: (row >> self.items.trailing_zeros()) + warps,
            item: row & (self.items - 1),
        }
    }

    fn planes(&self) -> Vec<Plane> {
        // A warp asks for 8 bytes of every query and side at once, or for 16 of every query.
        let most = 4 / self.sides;
        let cut = |words: u32| {
            let mut from = 0;
            std::iter::from_fn(move || {
                let rest = words - from;
                let wide = (rest > 0).then(|| most.min(1 << rest.ilog2()))?;
                from += wide;
                Some(((from - wide) as usize, wide))
            })
        };
        let pixels = cut(self.format.pixels()).map(|part| (part, None));
        let weights = cut(self.format.points * self.format.weights);
        let weights = weights.map(|part| (part, Some(self.sides)));
        let mut first = 0;
        let plane = |((from, wide), sides)| {
            let plane = Plane {
                first,
                wide,
                from,
                sides,
            };
            first += self.rows() * self.records * plane.all();
            plane
        };
        pixels.chain(weights).map(plane).collect()
    }

    /// Words of all.
    pub(super) fn words(&self) -> u32 {
        let planes = self.planes();
        let each: u32 = planes.iter().map(Plane::all).sum();
        (self.rows() * self.records * each).next_multiple_of(4)
    }

    /// Where the vectors of a row start that are behind the first one of its plane.
    #[track_caller]
    fn within(&self, plane: &Plane, row: Row) -> Reg<u32> {
        let all = plane.all();
        row.warp * (self.records * self.items * all) + row.item * all
    }

    /// Words from a record to the next.
    fn pitch(&self, plane: &Plane) -> u32 {
        self.items * plane.all()
    }

    /// Puts the record of a row and number.
    #[track_caller]
    pub(super) fn put(&self, to: TileRef<u32>, row: Row, number: Reg<u32>, record: &Record) {
        for plane in self.planes() {
            let at = self.within(&plane, row) + number * self.pitch(&plane);
            let words = plane.from..plane.from + plane.wide as usize;
            let all: Vec<_> = match plane.sides {
                None => record.pixels[words].to_vec(),
                Some(_) => (record.weights.iter())
                    .flat_map(|side| side[words.clone()].to_vec())
                    .collect(),
            };
            let to = to.slice(0..1, plane.first..to.cols());
            match *all {
                [a] => to.store_as(0u32, at, [a]),
                [a, b] => to.store_as(0u32, at, [a, b]),
                [a, b, c, d] => to.store_as(0u32, at, [a, b, c, d]),
                _ => {}
            }
        }
    }

    /// The points of the record of that number, as a side reads it.
    #[track_caller]
    pub(super) fn take(
        &self,
        from: TileRef<u32>,
        row: Row,
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
        row: Row,
        side: Option<Reg<u32>>,
        first: Reg<u32>,
        record: u32,
    ) -> Vec<Reg<u32>> {
        let mut found = Vec::new();
        for plane in self.planes() {
            let start = plane.first + record * self.pitch(&plane);
            let from = from.slice(0..1, start..from.cols());
            let at = self.within(&plane, row) + first * self.pitch(&plane);
            let at = match side.filter(|_| plane.sides.is_some()) {
                None => at,
                Some(side) => at + side * plane.wide,
            };
            match plane.wide {
                1 => found.extend(from.load_as::<u32, 1>(0u32, at)),
                2 => found.extend(from.load_as::<u32, 2>(0u32, at)),
                _ => found.extend(from.load_as::<u32, 4>(0u32, at)),
            }
        }
        found
    }
}
