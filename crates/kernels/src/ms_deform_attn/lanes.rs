//! How the lanes of a warp share pixels: which of them reads what.

use super::problem::Class;
use warpline_family::float::Float;
use warpline_family::words;

words! {
    /// What the lanes of one query read of a point at a time.
    pub enum Reads {
        /// Two neighbours of a row at a time, half of the lanes each: for one head, whose pixels follow each other
        Pair = "pair",
        /// One pixel at a time: for heads of which two share a line of the cache
        Pixel = "pixel",
        /// The four pixels of a point, a quarter of the lanes each: for those that a copy brings
        #[doc(hidden)]
        Box = "box",
    }
}

/// Bytes that a lane reads of a pixel.
pub(super) const BYTES: u32 = 16;
/// The fewest and the most lanes of a pixel: four of them are 128 bytes where
/// a copy brings them, and no more than a warp; more channels are work of its own.
const PIXEL: [u32; 2] = [1, 16];
const PIXEL_OF_BOX: [u32; 2] = [2, 8];

/// The lanes of a warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lanes {
    /// Of 16 bytes each, of a pixel of one head.
    pub(super) chunks: u32,
    /// Lanes of one pixel, a power of two.
    pub(super) pixel: u32,
    /// Pixels that are read at a time: 1, 2 or 4.
    pub(super) sides: u32,
    /// Heads that a warp works on at a time.
    pub(super) heads: u32,
    /// Parts of the channels, each of which is work of its own.
    pub(super) slices: u32,
}

impl Lanes {
    pub(super) fn new(class: &Class, reads: Reads, heads: u32) -> Self {
        let chunks = class.pixel_bytes().div_ceil(BYTES);
        let (sides, together, [least, most]) = match reads {
            Reads::Pair => (2, 1, PIXEL),
            Reads::Pixel if heads.is_multiple_of(2) => (1, 2, PIXEL),
            Reads::Pixel => (1, 1, PIXEL),
            Reads::Box => (4, 1, PIXEL_OF_BOX),
        };
        let slices = chunks.div_ceil(most);
        Self {
            chunks,
            pixel: chunks.div_ceil(slices).next_power_of_two().max(least),
            sides,
            heads: together,
            slices,
        }
    }

    /// Lanes of a query of one head.
    pub(super) fn group(&self) -> u32 {
        self.pixel * self.sides
    }

    /// Queries of one head each that a warp works on at a time.
    pub(super) fn items(&self) -> u32 {
        32 / self.group()
    }

    /// Queries that a warp works on at a time.
    pub(super) fn queries(&self) -> u32 {
        self.items() / self.heads
    }

    /// Points of a query that a lane works out.
    pub(super) fn per_lane(&self, class: &Class) -> u32 {
        class.all_points().div_ceil(self.group())
    }

    /// Are the points that a lane works out neighbours, which it reads as one?
    /// Else those of neighbouring lanes are.
    pub(super) fn is_dense(&self, class: &Class) -> bool {
        let each = self.per_lane(class);
        each.is_power_of_two() && each * self.group() == class.all_points()
    }

    /// The lane that works out a point, and which of its points that is.
    pub(super) fn worker(&self, class: &Class, point: u32) -> (u32, u32) {
        match self.is_dense(class) {
            true => (point / self.per_lane(class), point % self.per_lane(class)),
            false => (point % self.group(), point / self.group()),
        }
    }

    /// Points that follow each other of those that a lane works out.
    pub(super) fn in_row(&self, class: &Class) -> u32 {
        match self.is_dense(class) {
            true => self.per_lane(class),
            false => 1,
        }
    }

    /// Words of a point's weights that a lane is handed.
    pub(super) fn weight_words(&self, class: &Class) -> u32 {
        match class.value {
            Float::F16 => self.corners().div_ceil(2),
            _ => self.corners(),
        }
    }

    /// Corners of a point that a lane reads.
    pub(super) fn corners(&self) -> u32 {
        4 / self.sides
    }
}
