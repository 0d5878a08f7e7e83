//! Level geometry: from a normalized location to a pixel index and corner weights.

use super::problem::{LevelLayout, MAX_LEVEL_PIXELS, MAX_TOTAL_PIXELS};
use warpline_ir::builder::*;

/// Adding and subtracting 1.5 · 2²³ rounds an f32 below 2²² to the nearest integer.
const ROUNDING_BIAS: f32 = 12_582_912.0; // 1.5 · 2²³
/// Adding 2²³ to a whole f32 below 2²³ puts its integer into the low mantissa bits; subtracting [`BIAS_BITS`]
/// from all bits then gives the integer as a u32.
const BIAS: f32 = 8_388_608.0; // 2²³
const BIAS_BITS: u32 = 0x4b00_0000;

/// The values of one level from which sampling computes pixel indices and weights.
#[derive(Clone, Copy)]
pub(super) struct LevelGeometry {
    /// Height and width, without a border.
    size: [Reg<f32>; 2],
    /// The last row and column at which a 2 × 2 window can start.
    last_start: [Reg<f32>; 2],
    /// 1 if the level has a second row and column, else 0; `None` if it always has (layout halo).
    has_second: Option<[Reg<f32>; 2]>,
    /// Pixels of a row in memory.
    stride: Reg<f32>,
    /// The index of the first pixel, minus [`BIAS_BITS`].
    start_minus_bias: Reg<u32>,
    /// Pixels to the next row and to the next column; 0 if there is no second one.
    pub(super) pixel_steps: [Reg<u32>; 2],
    layout: LevelLayout,
}

/// The 2 × 2 window of a point.
pub(super) struct BilinearWindow {
    /// Row and column of the first corner.
    top_left: [Reg<f32>; 2],
    /// Corner weights: upper and lower row, each left and right.
    pub(super) weights: [[Reg<f32>; 2]; 2],
}

impl BilinearWindow {
    /// Returns row and column of the first corner.
    #[track_caller]
    pub(super) fn top_left(&self) -> [Reg<u32>; 2] {
        let to_integer = |x: Reg<f32>| (x + BIAS).bitcast::<u32>() - BIAS_BITS;
        self.top_left.map(to_integer)
    }
}

/// The launch parameters of a level.
#[derive(Clone, Copy)]
pub(super) struct LevelExtent {
    /// Height and width, without a border.
    size: [Reg<u32>; 2],
    /// The index of the first pixel.
    start: Reg<u32>,
}

impl LevelExtent {
    /// Declares the parameters of all levels.
    pub(super) fn declare(k: Builder, levels: u32) -> Vec<Self> {
        let max_side = MAX_LEVEL_PIXELS as u32;
        let side = |name: String| k.param::<u32>(&name).at_least(1).at_most(max_side);
        let extent = |level: u32| Self {
            size: ["height", "width"].map(|name| side(format!("{name}_{level}"))),
            start: k
                .param::<u32>(&format!("start_{level}"))
                .at_most(MAX_TOTAL_PIXELS),
        };
        (0..levels).map(extent).collect()
    }

    /// Returns the extent of the level with index `level`.
    #[track_caller]
    pub(super) fn select_level(all: &[Self], level: Reg<u32>) -> Self {
        let mut found = all[0];
        for (i, other) in (1..).zip(&all[1..]) {
            let is_level = level.eq(i);
            let choose = |yes: Reg<u32>, no: Reg<u32>| select(is_level, yes, no);
            found = Self {
                size: [0, 1].map(|j| choose(other.size[j], found.size[j])),
                start: choose(other.start, found.start),
            };
        }
        found
    }

    /// Returns height and width in memory, including a border.
    #[track_caller]
    pub(super) fn stored_size(&self, layout: LevelLayout) -> [Reg<u32>; 2] {
        self.size.map(|side| match layout.border() {
            0 => side,
            border => side + border,
        })
    }

    /// Returns the index of the first pixel.
    pub(super) fn start(&self) -> Reg<u32> {
        self.start
    }
}

impl LevelGeometry {
    /// Creates the geometry of a level. `start` replaces the first pixel of `extent`: a resident level counts
    /// pixels from the first resident one.
    #[track_caller]
    pub(super) fn new(extent: &LevelExtent, layout: LevelLayout, start: Reg<u32>) -> Self {
        let to_float = |x: Reg<u32>| x.cast::<f32>();
        let stored = extent.stored_size(layout);
        let width = stored[1];
        // `min` and a shift compute `has_row` and `has_column`, because shared-memory addresses depend on both:
        // for each level, the checker would follow both outcomes of a select or of a subtraction that may wrap.
        let [has_row, has_column] = stored.map(|side| side.min(2) >> 1);
        let second = [has_row, has_column].map(to_float);
        let last_start = stored.map(|side| to_float(side.max(2) - 2));
        Self {
            size: extent.size.map(to_float),
            last_start,
            has_second: (layout == LevelLayout::Standard).then_some(second),
            stride: to_float(width),
            start_minus_bias: start.mad(1u32, BIAS_BITS.wrapping_neg()),
            pixel_steps: [has_row * width, has_column],
            layout,
        }
    }

    /// Returns the start of a point's window on one axis, and the weights of its two pixels.
    ///
    /// The weight of a pixel is `max(0, 1 - distance)`. This also holds at the border, where the window
    /// is clamped into the level, and for NaN locations, whose weights are 0.
    #[track_caller]
    fn axis_weights(&self, i: usize, location: Reg<f32>) -> (Reg<f32>, [Reg<f32>; 2]) {
        let shift = match self.layout {
            LevelLayout::Standard => -0.5f32,
            LevelLayout::Halo => 0.5,
        };
        let pixel = location.fma(self.size[i], shift);
        // floor(pixel). For an integer `pixel`, also `pixel - 1`: each pixel of the level keeps its weight.
        let start_unclamped =
            (location.fma(self.size[i], shift - 0.5) + ROUNDING_BIAS) - ROUNDING_BIAS;
        let start = start_unclamped.max(0.0f32).min(self.last_start[i]);
        let distance_from_start = pixel - start;
        let weight_at = |distance: Reg<f32>| (1.0f32.reg() - distance.abs()).max(0.0f32);
        let second = weight_at(distance_from_start - 1.0f32);
        let second = match self.has_second {
            Some(exists) => second * exists[i],
            None => second,
        };
        (start, [weight_at(distance_from_start), second])
    }

    /// Returns the window of a point at location `[x, y]` with an attention weight.
    #[track_caller]
    pub(super) fn window(&self, [x, y]: [Reg<f32>; 2], weight: Reg<f32>) -> BilinearWindow {
        let (row, rows) = self.axis_weights(0, y);
        let (col, cols) = self.axis_weights(1, x);
        // A point outside contributes nothing, even if its attention weight is infinite or NaN.
        let inside = (rows[0] + rows[1]).gt(0.0f32) & (cols[0] + cols[1]).gt(0.0f32);
        let weight = select(inside, weight, 0.0f32);
        let rows = rows.map(|r| r * weight);
        BilinearWindow {
            top_left: [row, col],
            weights: rows.map(|r| cols.map(|c| r * c)),
        }
    }

    /// Returns the index of the first corner's pixel.
    #[track_caller]
    pub(super) fn pixel_index(&self, window: &BilinearWindow) -> Reg<u32> {
        let [row, col] = window.top_left;
        let index = row.fma(self.stride, col) + BIAS;
        index.bitcast::<u32>() + self.start_minus_bias
    }
}
