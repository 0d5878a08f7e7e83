//! How the lanes of a warp divide queries, heads, pixels and channels.

use super::problem::Class;
use warpline_family::float::FloatType;
use warpline_family::keywords;

keywords! {
    /// How the lanes of one query load the four corners of a point.
    pub enum CornerReads {
        /// Half of the lanes load the left column, half the right one: best for a single head, whose pixels are adjacent in memory
        Pair = "pair",
        /// All lanes load one corner after another: best if two heads share a cache line
        Pixel = "pixel",
        /// A quarter of the lanes loads each corner of a box that TMA has copied
        #[doc(hidden)]
        Box = "box",
    }
}

/// Bytes that a lane loads of a pixel.
pub(super) const LANE_BYTES: u32 = 16;
/// Fewest and most lanes of a pixel. Channels beyond these become further channel slices.
const LANES_PER_PIXEL: [u32; 2] = [1, 16];
/// The same for TMA boxes: four pixels of a box need at least 128 bytes and at most one warp.
const LANES_PER_BOX_PIXEL: [u32; 2] = [2, 8];

/// The division of a warp's lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LaneLayout {
    /// 16-byte chunks of one head's pixel.
    pub(super) chunks: u32,
    /// Lanes that load one pixel, a power of two.
    pub(super) lanes_per_pixel: u32,
    /// Groups of lanes that load different corners at the same time: 1, 2 or 4.
    pub(super) corner_groups: u32,
    /// Heads that a warp works on at the same time.
    pub(super) heads_per_warp: u32,
    /// Slices of the channels; each is a separate work item.
    pub(super) channel_slices: u32,
}

impl LaneLayout {
    pub(super) fn new(class: &Class, reads: CornerReads, heads: u32) -> Self {
        let chunks = class.pixel_bytes().div_ceil(LANE_BYTES);
        let (corner_groups, heads_per_warp, [min_lanes, max_lanes]) = match reads {
            CornerReads::Pair => (2, 1, LANES_PER_PIXEL),
            CornerReads::Pixel if heads.is_multiple_of(2) => (1, 2, LANES_PER_PIXEL),
            CornerReads::Pixel => (1, 1, LANES_PER_PIXEL),
            CornerReads::Box => (4, 1, LANES_PER_BOX_PIXEL),
        };
        let channel_slices = chunks.div_ceil(max_lanes);
        Self {
            chunks,
            lanes_per_pixel: chunks
                .div_ceil(channel_slices)
                .next_power_of_two()
                .max(min_lanes),
            corner_groups,
            heads_per_warp,
            channel_slices,
        }
    }

    /// Returns the lanes of one query and head.
    pub(super) fn lanes_per_query(&self) -> u32 {
        self.lanes_per_pixel * self.corner_groups
    }

    /// Returns the items (query and head) of a warp.
    pub(super) fn items_per_warp(&self) -> u32 {
        32 / self.lanes_per_query()
    }

    /// Returns the queries of a warp.
    pub(super) fn queries_per_warp(&self) -> u32 {
        self.items_per_warp() / self.heads_per_warp
    }

    /// Returns the points of a query that a lane samples.
    pub(super) fn points_per_lane(&self, class: &Class) -> u32 {
        class.all_points().div_ceil(self.lanes_per_query())
    }

    /// Returns whether a lane samples consecutive points, which it loads at once. Otherwise
    /// neighboring lanes sample consecutive points.
    pub(super) fn has_consecutive_points(&self, class: &Class) -> bool {
        let each = self.points_per_lane(class);
        each.is_power_of_two() && each * self.lanes_per_query() == class.all_points()
    }

    /// Returns the lane that samples a point, and the index among that lane's points.
    pub(super) fn owner_of_point(&self, class: &Class, point: u32) -> (u32, u32) {
        match self.has_consecutive_points(class) {
            true => (
                point / self.points_per_lane(class),
                point % self.points_per_lane(class),
            ),
            false => (
                point % self.lanes_per_query(),
                point / self.lanes_per_query(),
            ),
        }
    }

    /// Returns the number of consecutive points that a lane samples.
    pub(super) fn consecutive_points(&self, class: &Class) -> u32 {
        match self.has_consecutive_points(class) {
            true => self.points_per_lane(class),
            false => 1,
        }
    }

    /// Returns the 32-bit words of the corner weights of a point for one corner group.
    pub(super) fn weight_words(&self, class: &Class) -> u32 {
        match class.value {
            FloatType::F16 => self.corners_per_lane().div_ceil(2),
            _ => self.corners_per_lane(),
        }
    }

    /// Returns the corners of a point that a lane loads.
    pub(super) fn corners_per_lane(&self) -> u32 {
        4 / self.corner_groups
    }
}
