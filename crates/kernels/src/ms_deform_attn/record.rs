//! Sampled records: the pixel and the corner weights of points, shared by the lanes that gather them.

use super::lanes::LaneLayout;
use super::problem::Class;
use warpline_ir::builder::*;

/// A point as one corner group reads it.
pub(super) struct GatherPoint {
    /// The pixel of the first corner.
    pub(super) pixel: Reg<u32>,
    /// Packed weights of the corners of this group.
    pub(super) weights: Vec<Reg<u32>>,
}

/// A sampled point.
pub(super) struct SampledPoint {
    /// The pixel of the first corner.
    pub(super) pixel: Reg<u32>,
    /// Packed corner weights for each corner group.
    pub(super) weights: Vec<Vec<Reg<u32>>>,
}

/// The record of one or more points: pixels, and weights for each corner group.
pub(super) struct SampleRecord {
    pixels: Vec<Reg<u32>>,
    weights: Vec<Vec<Reg<u32>>>,
}

/// The format of a record.
#[derive(Clone, Copy)]
pub(super) struct RecordFormat {
    /// Points per record: 1, 2 or 4. With several points, pixels have 16 bits each.
    pub(super) points: u32,
    /// Words of the weights of a point for one corner group.
    pub(super) weights: u32,
}

impl RecordFormat {
    /// Returns the words of the pixels.
    fn pixels(&self) -> u32 {
        self.points.div_ceil(2)
    }

    /// Packs points into a record.
    #[track_caller]
    fn pack(&self, points: &[SampledPoint]) -> SampleRecord {
        let pixels = points.chunks(2).map(|some| match some {
            [a, b] => b.pixel.mad(1u32 << 16, a.pixel),
            _ => some[0].pixel,
        });
        let corner_group = |i: usize| {
            let all = points.iter().flat_map(|point| &point.weights[i]);
            all.copied().collect()
        };
        SampleRecord {
            pixels: pixels.collect(),
            weights: (0..points[0].weights.len()).map(corner_group).collect(),
        }
    }

    /// Packs consecutive points into records.
    #[track_caller]
    pub(super) fn records(&self, points: &[SampledPoint]) -> Vec<SampleRecord> {
        let each = points.chunks(self.points as usize);
        each.map(|some| self.pack(some)).collect()
    }

    /// Unpacks a record as one corner group reads it: pixel words, then weight words.
    #[track_caller]
    fn unpack(&self, words: &[Reg<u32>]) -> Vec<GatherPoint> {
        let (pixels, weights) = words.split_at(self.pixels() as usize);
        let pixels = pixels.iter().flat_map(|&word| match self.points {
            1 => vec![word],
            _ => vec![word & 0xffffu32, word >> 16u32],
        });
        let each = weights.chunks(self.weights as usize);
        let points_and_weights = pixels.zip(each);
        points_and_weights
            .map(|(pixel, weights)| GatherPoint {
                pixel,
                weights: weights.to_vec(),
            })
            .collect()
    }
}

/// Records in the registers of the lanes of a query, read by shuffles.
pub(super) struct ShuffledRecords {
    format: RecordFormat,
    /// The first lane of the query and corner group.
    first_lane: Reg<u32>,
    /// The words of the records that this lane has.
    own_words: Vec<Vec<Reg<u32>>>,
    /// For each record: the lane that has it, and the index among that lane's records.
    owners: Vec<(u32, u32)>,
}

impl ShuffledRecords {
    /// Distributes the records that each lane sampled.
    ///
    /// With two corner groups, a lane exchanges with its partner in the other group, so that each
    /// group has all records with its own weights.
    #[track_caller]
    pub(super) fn from_lanes(
        format: RecordFormat,
        class: &Class,
        lanes: &LaneLayout,
        corner_group: Option<Reg<u32>>,
        sampled: Vec<SampleRecord>,
    ) -> Self {
        let each = sampled.len() as u32;
        let owner = |record: u32| {
            let (by, i) = lanes.owner_of_point(class, record * format.points);
            let i = i / format.points;
            match by < lanes.lanes_per_pixel || lanes.corner_groups == 1 {
                true => (by, i),
                // Records from the other group follow the lane's own.
                false => (by - lanes.lanes_per_pixel, each + i),
            }
        };
        let all = match corner_group {
            None => (sampled.into_iter())
                .map(|record| [record.pixels, record.weights.concat()].concat())
                .collect(),
            Some(corner_group) => {
                let left = corner_group.eq(0);
                let pick = |yes: Reg<u32>, no: Reg<u32>| select(left, yes, no);
                // The words for the lane's own group and for the other, as (left group's, right group's) records.
                let swap = |(mine, other): (Reg<u32>, Reg<u32>)| {
                    let received = shuffle_xor(other, lanes.lanes_per_pixel);
                    (pick(mine, received), pick(received, mine))
                };
                let (mut own, mut others) = (Vec::new(), Vec::new());
                for record in &sampled {
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
            first_lane: Self::first_lane(lanes, corner_group),
            own_words: all,
            owners: (0..class.all_points() / format.points).map(owner).collect(),
        }
    }

    /// Returns the first lane of the query and corner group.
    #[track_caller]
    fn first_lane(lanes: &LaneLayout, corner_group: Option<Reg<u32>>) -> Reg<u32> {
        let start = lane_id() & !(lanes.lanes_per_query() - 1);
        match corner_group {
            None => start,
            Some(corner_group) => start + corner_group * lanes.lanes_per_pixel,
        }
    }

    /// Loads the records of a row from shared memory, some per lane.
    #[track_caller]
    pub(super) fn from_shared(
        layout: &RecordLayout,
        lanes: &LaneLayout,
        from: TileRef<u32>,
        row: RecordRow,
        corner_group: Option<Reg<u32>>,
    ) -> Self {
        let each = layout.records.div_ceil(lanes.lanes_per_pixel);
        let own = (lane_id() & (lanes.lanes_per_pixel - 1)) * each;
        let all = (0..each).map(|i| {
            let record = (own + i).min(layout.records - 1);
            layout.load_words(from, row, corner_group, record, 0)
        });
        Self {
            format: layout.format,
            first_lane: Self::first_lane(lanes, corner_group),
            own_words: all.collect(),
            owners: (0..layout.records).map(|r| (r / each, r % each)).collect(),
        }
    }

    /// Returns the points of the record that starts with `point`.
    #[track_caller]
    pub(super) fn points_of(&self, point: u32) -> Vec<GatherPoint> {
        let (lane, i) = self.owners[(point / self.format.points) as usize];
        let lane = self.first_lane + lane;
        let words = self.own_words[i as usize].iter();
        let words: Vec<_> = words.map(|&word| shuffle_from(word, lane)).collect();
        self.format.unpack(&words)
    }
}

/// The layout of a round's records in shared memory.
///
/// Each plane holds one vector of words of every record. Inside a plane, the vectors of all items of a
/// warp for one record index are adjacent, because the warp reads them together.
#[derive(Clone, Copy)]
pub(super) struct RecordLayout {
    format: RecordFormat,
    corner_groups: u32,
    /// Gathering warps.
    warps: u32,
    /// Items (query and head) of a warp.
    items: u32,
    /// Records of an item.
    records: u32,
}

/// The item of a warp that records belong to.
#[derive(Clone, Copy)]
pub(super) struct RecordRow {
    pub(super) warp: Reg<u32>,
    pub(super) item: Reg<u32>,
}

/// The same words of all records, one vector per record.
struct RecordPlane {
    /// The first word of the plane.
    start: u32,
    /// Words of a vector.
    width: u32,
    /// The first of these words in a record.
    first_word: usize,
    /// Corner groups with a vector each; `None` for pixel words, which all groups share.
    corner_groups: Option<u32>,
}

impl RecordPlane {
    /// Returns the words of one record in the plane.
    fn words_per_record(&self) -> u32 {
        self.width * self.corner_groups.unwrap_or(1)
    }
}

impl RecordLayout {
    pub(super) fn new(format: RecordFormat, class: &Class, lanes: &LaneLayout, warps: u32) -> Self {
        Self {
            format,
            corner_groups: lanes.corner_groups,
            warps,
            items: lanes.items_per_warp(),
            records: class.all_points().div_ceil(format.points),
        }
    }

    /// Returns the records of an item.
    pub(super) fn records(&self) -> u32 {
        self.records
    }

    /// Returns the number of items of a round.
    pub(super) fn rows(&self) -> u32 {
        self.warps * self.items
    }

    /// Returns the row with index `first + offset`.
    #[track_caller]
    pub(super) fn row(&self, first: Reg<u32>, offset: u32) -> RecordRow {
        let whole = offset.is_multiple_of(self.items);
        let (row, warps) = match whole {
            true => (first, offset / self.items),
            false => (first + offset, 0),
        };
        RecordRow {
            warp: (row >> self.items.trailing_zeros()) + warps,
            item: row & (self.items - 1),
        }
    }

    fn planes(&self) -> Vec<RecordPlane> {
        // A vector is 8 bytes with two corner groups, else 16.
        let max_width = 4 / self.corner_groups;
        let cut = |words: u32| {
            let mut from = 0;
            std::iter::from_fn(move || {
                let rest = words - from;
                let width = (rest > 0).then(|| max_width.min(1 << rest.ilog2()))?;
                from += width;
                Some(((from - width) as usize, width))
            })
        };
        let pixels = cut(self.format.pixels()).map(|part| (part, None));
        let weights = cut(self.format.points * self.format.weights);
        let weights = weights.map(|part| (part, Some(self.corner_groups)));
        let mut first = 0;
        let plane = |((from, width), corner_groups)| {
            let plane = RecordPlane {
                start: first,
                width,
                first_word: from,
                corner_groups,
            };
            first += self.rows() * self.records * plane.words_per_record();
            plane
        };
        pixels.chain(weights).map(plane).collect()
    }

    /// Returns the words of all records of a round.
    pub(super) fn words(&self) -> u32 {
        let planes = self.planes();
        let each: u32 = planes.iter().map(RecordPlane::words_per_record).sum();
        (self.rows() * self.records * each).next_multiple_of(4)
    }

    /// Returns the offset of a row inside a plane.
    #[track_caller]
    fn row_offset(&self, plane: &RecordPlane, row: RecordRow) -> Reg<u32> {
        let all = plane.words_per_record();
        row.warp * (self.records * self.items * all) + row.item * all
    }

    /// Returns the words from one record of a row to the next.
    fn pitch(&self, plane: &RecordPlane) -> u32 {
        self.items * plane.words_per_record()
    }

    /// Stores record `number` of a row.
    #[track_caller]
    pub(super) fn store(
        &self,
        to: TileRef<u32>,
        row: RecordRow,
        number: Reg<u32>,
        record: &SampleRecord,
    ) {
        for plane in self.planes() {
            let at = self.row_offset(&plane, row) + number * self.pitch(&plane);
            let words = plane.first_word..plane.first_word + plane.width as usize;
            let all: Vec<_> = match plane.corner_groups {
                None => record.pixels[words].to_vec(),
                Some(_) => (record.weights.iter())
                    .flat_map(|corner_group| corner_group[words.clone()].to_vec())
                    .collect(),
            };
            let to = to.slice(0..1, plane.start..to.cols());
            match *all {
                [a] => to.store_as(0u32, at, [a]),
                [a, b] => to.store_as(0u32, at, [a, b]),
                [a, b, c, d] => to.store_as(0u32, at, [a, b, c, d]),
                _ => {}
            }
        }
    }

    /// Loads a record of a row as one corner group reads it.
    #[track_caller]
    pub(super) fn load(
        &self,
        from: TileRef<u32>,
        row: RecordRow,
        corner_group: Option<Reg<u32>>,
        record: u32,
    ) -> Vec<GatherPoint> {
        let words = self.load_words(from, row, corner_group, 0u32.reg(), record);
        self.format.unpack(&words)
    }

    /// Loads the words of record `first + record`; `record` is known at build time.
    #[track_caller]
    fn load_words(
        &self,
        from: TileRef<u32>,
        row: RecordRow,
        corner_group: Option<Reg<u32>>,
        first: Reg<u32>,
        record: u32,
    ) -> Vec<Reg<u32>> {
        let mut found = Vec::new();
        for plane in self.planes() {
            let start = plane.start + record * self.pitch(&plane);
            let from = from.slice(0..1, start..from.cols());
            let at = self.row_offset(&plane, row) + first * self.pitch(&plane);
            let at = match corner_group.filter(|_| plane.corner_groups.is_some()) {
                None => at,
                Some(corner_group) => at + corner_group * plane.width,
            };
            match plane.width {
                1 => found.extend(from.load_as::<u32, 1>(0u32, at)),
                2 => found.extend(from.load_as::<u32, 2>(0u32, at)),
                _ => found.extend(from.load_as::<u32, 4>(0u32, at)),
            }
        }
        found
    }
}
