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
    fn pixel_words(&self) -> u32 {
        self.points.div_ceil(2)
    }

    /// Packs points into a record.
    #[track_caller]
    fn pack(&self, points: &[SampledPoint]) -> SampleRecord {
        let pixels = points.chunks(2).map(|pair| match pair {
            [a, b] => b.pixel.mad(1u32 << 16, a.pixel),
            _ => pair[0].pixel,
        });
        let corner_group = |i: usize| {
            let words = points.iter().flat_map(|point| &point.weights[i]);
            words.copied().collect()
        };
        SampleRecord {
            pixels: pixels.collect(),
            weights: (0..points[0].weights.len()).map(corner_group).collect(),
        }
    }

    /// Packs consecutive points into records.
    #[track_caller]
    pub(super) fn records(&self, points: &[SampledPoint]) -> Vec<SampleRecord> {
        let groups = points.chunks(self.points as usize);
        groups.map(|group| self.pack(group)).collect()
    }

    /// Unpacks a record as one corner group reads it: pixel words, then weight words.
    #[track_caller]
    fn unpack(&self, words: &[Reg<u32>]) -> Vec<GatherPoint> {
        let (pixels, weights) = words.split_at(self.pixel_words() as usize);
        let pixels = pixels.iter().flat_map(|&word| match self.points {
            1 => vec![word],
            _ => vec![word & 0xffffu32, word >> 16u32],
        });
        let weights = weights.chunks(self.weights as usize);
        pixels
            .zip(weights)
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
    /// The words of each record that this lane has.
    own_words: Vec<Vec<Reg<u32>>>,
    /// For each record: the lane that has it, and the index among that lane's records.
    owners: Vec<(u32, u32)>,
}

impl ShuffledRecords {
    /// Distributes the records that each lane sampled.
    ///
    /// With two corner groups, a lane exchanges words with its partner in the other group, so that each
    /// group has all records with the weights of its corners.
    #[track_caller]
    pub(super) fn from_lanes(
        format: RecordFormat,
        class: &Class,
        lanes: &LaneLayout,
        corner_group: Option<Reg<u32>>,
        sampled: Vec<SampleRecord>,
    ) -> Self {
        let records_per_lane = sampled.len() as u32;
        let owner = |record: u32| {
            let (lane, i) = lanes.owner_of_point(class, record * format.points);
            let i = i / format.points;
            match lane < lanes.lanes_per_pixel || lanes.corner_groups == 1 {
                true => (lane, i),
                // Records of lanes in the left group come first.
                false => (lane - lanes.lanes_per_pixel, records_per_lane + i),
            }
        };
        let own_words = match corner_group {
            None => (sampled.into_iter())
                .map(|record| [record.pixels, record.weights.concat()].concat())
                .collect(),
            Some(corner_group) => {
                let is_left = corner_group.eq(0);
                let pick = |yes: Reg<u32>, no: Reg<u32>| select(is_left, yes, no);
                // Keeps the word for this lane's group and sends the word for the other group. Returns a word
                // of the left lane's record and a word of the right lane's record.
                let exchange = |(kept, sent): (Reg<u32>, Reg<u32>)| {
                    let received = shuffle_xor(sent, lanes.lanes_per_pixel);
                    (pick(kept, received), pick(received, kept))
                };
                let (mut left_records, mut right_records) = (Vec::new(), Vec::new());
                for record in &sampled {
                    let pixels = record.pixels.iter().map(|&word| (word, word));
                    let weights = record.weights[0].iter().zip(&record.weights[1]);
                    let weights = weights.map(|(&l, &r)| (pick(l, r), pick(r, l)));
                    let (left, right) = pixels.chain(weights).map(exchange).unzip();
                    left_records.push(left);
                    right_records.push(right);
                }
                left_records.extend(right_records);
                left_records
            }
        };
        Self {
            format,
            first_lane: Self::first_lane(lanes, corner_group),
            own_words,
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

    /// Loads the records of a row from shared memory and distributes them over the lanes.
    #[track_caller]
    pub(super) fn from_shared(
        layout: &RecordLayout,
        lanes: &LaneLayout,
        from: TileRef<u32>,
        row: RecordRow,
        corner_group: Option<Reg<u32>>,
    ) -> Self {
        let records_per_lane = layout.records.div_ceil(lanes.lanes_per_pixel);
        let first = (lane_id() & (lanes.lanes_per_pixel - 1)) * records_per_lane;
        let own_words = (0..records_per_lane).map(|i| {
            let record = (first + i).min(layout.records - 1);
            layout.load_words(from, row, corner_group, record, 0)
        });
        Self {
            format: layout.format,
            first_lane: Self::first_lane(lanes, corner_group),
            own_words: own_words.collect(),
            owners: (0..layout.records)
                .map(|r| (r / records_per_lane, r % records_per_lane))
                .collect(),
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
        let (row, warps) = match offset.is_multiple_of(self.items) {
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
        let split_into_vectors = |words: u32| {
            let mut end = 0;
            std::iter::from_fn(move || {
                let remaining = words - end;
                let width = (remaining > 0).then(|| max_width.min(1 << remaining.ilog2()))?;
                end += width;
                Some(((end - width) as usize, width))
            })
        };
        let pixels = split_into_vectors(self.format.pixel_words()).map(|vector| (vector, None));
        let weights = split_into_vectors(self.format.points * self.format.weights);
        let weights = weights.map(|vector| (vector, Some(self.corner_groups)));
        let mut start = 0;
        let plane = |((first_word, width), corner_groups)| {
            let plane = RecordPlane {
                start,
                width,
                first_word,
                corner_groups,
            };
            start += self.rows() * self.records * plane.words_per_record();
            plane
        };
        pixels.chain(weights).map(plane).collect()
    }

    /// Returns the words of all records of a round.
    pub(super) fn words(&self) -> u32 {
        let planes = self.planes();
        let words_per_record: u32 = planes.iter().map(RecordPlane::words_per_record).sum();
        (self.rows() * self.records * words_per_record).next_multiple_of(4)
    }

    /// Returns the offset of a row inside a plane.
    #[track_caller]
    fn row_offset(&self, plane: &RecordPlane, row: RecordRow) -> Reg<u32> {
        let words = plane.words_per_record();
        row.warp * (self.records * self.items * words) + row.item * words
    }

    /// Returns the words from one record of a row to the next.
    fn pitch(&self, plane: &RecordPlane) -> u32 {
        self.items * plane.words_per_record()
    }

    /// Stores the record of a row with index `index`.
    #[track_caller]
    pub(super) fn store(
        &self,
        to: TileRef<u32>,
        row: RecordRow,
        index: Reg<u32>,
        record: &SampleRecord,
    ) {
        for plane in self.planes() {
            let offset = self.row_offset(&plane, row) + index * self.pitch(&plane);
            let range = plane.first_word..plane.first_word + plane.width as usize;
            let words: Vec<_> = match plane.corner_groups {
                None => record.pixels[range].to_vec(),
                Some(_) => (record.weights.iter())
                    .flat_map(|corner_group| corner_group[range.clone()].to_vec())
                    .collect(),
            };
            let to = to.slice(0..1, plane.start..to.cols());
            match *words {
                [a] => to.store_as(0u32, offset, [a]),
                [a, b] => to.store_as(0u32, offset, [a, b]),
                [a, b, c, d] => to.store_as(0u32, offset, [a, b, c, d]),
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
        let mut words = Vec::new();
        for plane in self.planes() {
            let start = plane.start + record * self.pitch(&plane);
            let from = from.slice(0..1, start..from.cols());
            let offset = self.row_offset(&plane, row) + first * self.pitch(&plane);
            let offset = match corner_group.filter(|_| plane.corner_groups.is_some()) {
                None => offset,
                Some(corner_group) => offset + corner_group * plane.width,
            };
            match plane.width {
                1 => words.extend(from.load_as::<u32, 1>(0u32, offset)),
                2 => words.extend(from.load_as::<u32, 2>(0u32, offset)),
                _ => words.extend(from.load_as::<u32, 4>(0u32, offset)),
            }
        }
        words
    }
}
