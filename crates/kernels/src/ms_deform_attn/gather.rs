//! Gathering: weighted sums of the corners of sampled points.

use super::context::DeformContext;
use super::lanes::{LANE_BYTES, LaneLayout};
use super::query_order::WorkItem;
use super::record::GatherPoint;
use super::texel::{PointElement, Texel, Words};
use std::collections::VecDeque;
use warpline_ir::builder::*;
use warpline_ir::ops::memory::LoadCache;

/// The position of a lane in its warp.
#[derive(Clone, Copy)]
pub(super) struct LanePosition {
    /// The item (query and head) of the warp.
    pub(super) item: Reg<u32>,
    /// The index among the lanes of the item.
    pub(super) lane_in_query: Reg<u32>,
    /// The 16-byte chunk of a pixel.
    pub(super) chunk: Reg<u32>,
    /// The corner group, if there are several.
    pub(super) corner_group: Option<Reg<u32>>,
}

impl LanePosition {
    #[track_caller]
    pub(super) fn new(lanes: &LaneLayout) -> Self {
        let lane_in_query = lane_id() & (lanes.lanes_per_query() - 1);
        Self {
            item: lane_id() >> lanes.lanes_per_query().trailing_zeros(),
            lane_in_query,
            chunk: lane_in_query & (lanes.lanes_per_pixel - 1),
            corner_group: (lanes.corner_groups > 1)
                .then(|| lane_in_query >> lanes.lanes_per_pixel.trailing_zeros()),
        }
    }

    /// Returns the lane's position in the query order, given the first one of its warp.
    #[track_caller]
    fn position(&self, lanes: &LaneLayout, first: Reg<u32>) -> Reg<u32> {
        match lanes.heads_per_warp {
            1 => first + self.item,
            n => first + (self.item >> n.trailing_zeros()),
        }
    }

    /// Returns the lane's head among the heads of its warp.
    #[track_caller]
    fn head_in_warp(&self, lanes: &LaneLayout) -> Reg<u32> {
        match lanes.heads_per_warp {
            1 => 0u32.reg(),
            n => self.item & (n - 1),
        }
    }

    /// Returns the lane's head.
    #[track_caller]
    fn head(&self, lanes: &LaneLayout, item: WorkItem) -> Reg<u32> {
        match lanes.heads_per_warp {
            1 => item.head,
            _ => item.head + self.head_in_warp(lanes),
        }
    }

    /// Returns the lane's chunk of a pixel, and a range condition if the chunk may be past the last channel.
    #[track_caller]
    fn channel_chunk(&self, lanes: &LaneLayout, item: WorkItem) -> (Reg<u32>, Option<Reg<bool>>) {
        let chunk = match item.chunk {
            None => self.chunk,
            Some(first) => first + self.chunk,
        };
        let fills_lanes = lanes.chunks == lanes.lanes_per_pixel * lanes.channel_slices;
        (chunk, (!fills_lanes).then(|| chunk.lt(lanes.chunks)))
    }
}

/// The output row that a lane contributes to: query and head over all batches, and whether the query
/// is in range.
#[derive(Clone, Copy)]
pub(super) struct OutputRow {
    pub(super) index: Reg<u32>,
    pub(super) in_range: Reg<bool>,
}

impl OutputRow {
    /// Returns the lane's row; `first` is the first position of its warp in the query order.
    #[track_caller]
    pub(super) fn new<E: Texel, N: PointElement>(
        cx: &DeformContext<E, N>,
        lane: LanePosition,
        item: WorkItem,
        first: Reg<u32>,
    ) -> Self {
        let position = lane.position(&cx.lanes, first);
        Self::at(cx, item, position, lane.head(&cx.lanes, item))
    }

    /// Returns the row of a position in the query order and a head.
    #[track_caller]
    pub(super) fn at<E: Texel, N: PointElement>(
        cx: &DeformContext<E, N>,
        item: WorkItem,
        position: Reg<u32>,
        head: Reg<u32>,
    ) -> Self {
        let (query, in_range) = cx.query(position);
        let index = cx.output_row(item, query, head);
        Self { index, in_range }
    }

    /// Encodes the row as one word; out of range becomes [`NO_OUTPUT_ROW`].
    #[track_caller]
    pub(super) fn to_word(self) -> Reg<u32> {
        select(self.in_range, self.index, NO_OUTPUT_ROW)
    }

    /// Decodes a word.
    #[track_caller]
    pub(super) fn from_word(word: Reg<u32>) -> Self {
        Self {
            index: word,
            in_range: word.ne(NO_OUTPUT_ROW),
        }
    }
}

/// The word of a query that is out of range.
const NO_OUTPUT_ROW: u32 = u32::MAX;

/// The addressing of the points of a level.
struct LevelReads<E> {
    /// The lane's byte offset from the pixel of a point's first corner.
    lane_offset: Reg<u32>,
    /// The corners that the lane loads. Their offsets are uniform across lanes, so they are added to the base
    /// addresses once per item.
    corners: Vec<CornerSource<E>>,
}

/// The base address of a corner.
#[derive(Clone, Copy)]
enum CornerSource<E> {
    /// In `value`.
    Global(Global<E>),
    /// In the resident levels, plus a byte offset.
    Shared(TileRef<E>, Reg<u32>),
}

/// The state of a lane that gathers the queries of a work item.
pub(super) struct Gather<'a, E, N> {
    cx: &'a DeformContext<E, N>,
    lane: LanePosition,
    item: WorkItem,
    levels: Vec<LevelReads<E>>,
}

impl<'a, E: Texel, N: PointElement> Gather<'a, E, N> {
    #[track_caller]
    pub(super) fn new(
        cx: &'a DeformContext<E, N>,
        lane: LanePosition,
        item: WorkItem,
        resident_tile: Option<TileRef<E>>,
    ) -> Self {
        let (class, lanes) = (&cx.class, &cx.lanes);
        // Lanes past the last channel load the first chunk; they store nothing.
        let chunk = match lane.channel_chunk(lanes, item) {
            (chunk, None) => chunk,
            (chunk, Some(in_range)) => select(in_range, chunk, 0u32),
        };
        let start = item.batch.mul_wide(cx.spatial * cx.heads * class.channels)
            + (item.head * class.channels).cast::<u64>();
        let value = cx.value.offset(start);
        let lane_offset = lane.head_in_warp(lanes) * class.pixel_bytes() + chunk * LANE_BYTES;
        // Bytes from one pixel to the next, in the resident levels and in `value`.
        let pitches =
            [lanes.heads_per_warp.reg(), cx.heads].map(|heads| heads * class.pixel_bytes());
        let lane_offsets = |step: Reg<u32>| {
            pitches.map(|pitch| match lane.corner_group {
                None => lane_offset,
                Some(corner_group) => lane_offset + corner_group * step * pitch,
            })
        };
        let adjacent_offsets = lane_offsets(1u32.reg());
        let level = |level: u32| {
            let [down, right] = cx.level_of(level.reg()).pixel_steps;
            let steps = match lanes.corner_groups {
                1 => vec![None, Some(right), Some(down), Some(down + right)],
                _ => vec![None, Some(down)],
            };
            let corner = |pixels: Option<Reg<u32>>| match resident_tile {
                Some(tile) if cx.is_resident(level) => {
                    let bytes = lanes.heads_per_warp * class.pixel_bytes();
                    CornerSource::Shared(tile, pixels.map_or(0u32.reg(), |n| n * bytes))
                }
                _ => {
                    let pitch = cx.heads * class.channels;
                    CornerSource::Global(pixels.map_or(value, |n| value.offset(n * pitch)))
                }
            };
            let [shared_offset, global_offset] = match class.has_single_column {
                true => lane_offsets(right),
                false => adjacent_offsets,
            };
            let corners: Vec<_> = steps.into_iter().map(corner).collect();
            let lane_offset = match corners[0] {
                CornerSource::Shared(..) => shared_offset,
                CornerSource::Global(_) => global_offset,
            };
            LevelReads {
                lane_offset,
                corners,
            }
        };
        Self {
            cx,
            lane,
            item,
            levels: (0..class.levels).map(level).collect(),
        }
    }

    /// Issues the loads of the lane's corners of a point.
    #[track_caller]
    fn load_corners(&self, level: u32, point: GatherPoint) -> Vec<(Words<E>, E::Weight)> {
        let LevelReads {
            lane_offset,
            corners,
        } = &self.levels[level as usize];
        let heads = match corners[0] {
            CornerSource::Shared(..) => self.cx.lanes.heads_per_warp.reg(),
            CornerSource::Global(_) => self.cx.heads,
        };
        let pitch = heads * self.cx.class.pixel_bytes();
        let offset = point.pixel.mad(pitch, *lane_offset);
        let load = |corner: &CornerSource<E>| match *corner {
            CornerSource::Shared(tile, corner_offset) => tile.load_at_byte(offset + corner_offset),
            CornerSource::Global(value) => value
                .byte_offset(offset)
                .load_cached(0u32, LoadCache::READ_ONLY),
        };
        let words: Vec<Words<E>> = corners.iter().map(load).collect();
        words
            .into_iter()
            .zip(E::unpack_weights(&point.weights))
            .collect()
    }

    /// Gathers the points of a query and stores their weighted sum. `record(p)` returns the points of the
    /// record that starts with point `p`.
    pub(super) fn gather_query(&self, row: OutputRow, record: impl Fn(u32) -> Vec<GatherPoint>) {
        let (class, config) = (&self.cx.class, &self.cx.config);
        let (all, lead) = (class.all_points(), config.points_in_flight);
        let mut sums = Vec::new();
        // Levels alternate, so that slow loads from global memory overlap fast loads from resident levels.
        let records = (0..all).step_by(self.cx.format().points as usize);
        let mut order: Vec<u32> = records.collect();
        order.sort_by_key(|point| (point % class.points, point / class.points));
        let mut order = order.into_iter();
        let mut points = VecDeque::new();
        let mut in_flight = VecDeque::new();
        let mut pending: Vec<(Words<E>, E::Weight)> = Vec::new();
        for step in 0..all + lead {
            if points.is_empty() {
                let first = order.next();
                points.extend(first.into_iter().flat_map(|p| (p..).zip(record(p))));
            }
            let next = points.pop_front();
            in_flight
                .extend(next.map(|(index, point)| self.load_corners(index / class.points, point)));
            if step < lead {
                continue;
            }
            pending.extend(in_flight.pop_front().unwrap_or_default());
            let summed_points = step - lead + 1;
            if summed_points.is_multiple_of(config.promote_every) || summed_points == all {
                E::accumulate(&mut sums, &pending);
                pending.clear();
            }
        }
        store(self.cx, self.lane, self.item, row, sums);
    }
}

/// Combines the sums of the corner groups and stores them.
///
/// In each step two groups exchange halves of their channels: each keeps one half and adds the
/// other group's sums for that half. With fewer than two channels per half, both add all channels and only
/// one stores them.
#[track_caller]
pub(super) fn store<E: Texel, N: PointElement>(
    cx: &DeformContext<E, N>,
    lane: LanePosition,
    item: WorkItem,
    row: OutputRow,
    mut sums: Vec<Reg<f32>>,
) {
    let lanes = &cx.lanes;
    let (chunk, has_channels) = lane.channel_chunk(lanes, item);
    let mut in_range = match has_channels {
        None => row.in_range,
        Some(has_channels) => row.in_range & has_channels,
    };
    let mut first_channel = chunk * (4 * E::CHANNELS_PER_WORD);
    for bit in 0..lanes.corner_groups.trailing_zeros() {
        let Some(corner_group) = lane.corner_group else {
            break;
        };
        let corner_group = match lanes.corner_groups {
            2 => corner_group,
            _ => (corner_group >> bit) & 1,
        };
        let (is_left, lane_distance) = (corner_group.eq(0), lanes.lanes_per_pixel << bit);
        let half = sums.len() / 2;
        if half < 2 {
            sums = (sums.into_iter())
                .map(|sum| sum + shuffle_xor(sum, lane_distance))
                .collect();
            in_range = in_range & is_left;
            continue;
        }
        let halves = (0..half).map(|i| {
            let sent = select(is_left, sums[half + i], sums[i]);
            let kept = select(is_left, sums[i], sums[half + i]);
            kept + shuffle_xor(sent, lane_distance)
        });
        sums = halves.collect();
        first_channel = first_channel + corner_group * half as u32;
    }
    if_(in_range, || {
        let start = row.index.mul_wide(cx.class.channels);
        E::store(cx.out.offset(start), first_channel, &sums);
    });
}
