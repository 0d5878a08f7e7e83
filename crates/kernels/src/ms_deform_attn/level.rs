//! A level as the lanes know it, and what becomes of a point in it.

use super::problem::{Layout, MOST_PIXELS, MOST_SPATIAL};
use warpline_ir::build::*;

/// A number that turns another below it into an integer in the low bits of the
/// sum, rounded to nearest.
const ROUND: f32 = 12_582_912.0; // 1.5 · 2²³
const INTEGER: f32 = 8_388_608.0; // 2²³
const INTEGER_BITS: u32 = 0x4b00_0000;

/// What a point needs to know of its level.
#[derive(Clone, Copy)]
pub(super) struct Level {
    /// Height and width of the map.
    sides: [Reg<f32>; 2],
    /// The last row and column at which a window of two by two starts.
    last: [Reg<f32>; 2],
    /// 1 where the level has a second row, and a second column; else 0.
    second: Option<[Reg<f32>; 2]>,
    /// Pixels of a row in memory.
    stride: Reg<f32>,
    /// Its first pixel, less what an integer's bits are too much.
    first: Reg<u32>,
    /// Pixels from a row to the next, and from a column; 0 where there is none.
    pub(super) steps: [Reg<u32>; 2],
    layout: Layout,
}

/// A point as its corners are read: where the first of them is, and what each counts.
pub(super) struct Window {
    /// The row and column of the first corner.
    place: [Reg<f32>; 2],
    /// Upper and lower row, each left and right.
    pub(super) weights: [[Reg<f32>; 2]; 2],
}

impl Window {
    /// The row and column of the first corner.
    #[track_caller]
    pub(super) fn place(&self) -> [Reg<u32>; 2] {
        let whole = |x: Reg<f32>| (x + INTEGER).bitcast::<u32>() - INTEGER_BITS;
        self.place.map(whole)
    }
}

/// What a launch says of a level.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    /// Height and width of the map.
    sides: [Reg<u32>; 2],
    /// Its first pixel.
    start: Reg<u32>,
}

impl Extent {
    /// Those of all levels.
    pub(super) fn declare(k: Builder, levels: u32) -> Vec<Self> {
        let most = MOST_PIXELS as u32;
        let side = |name: String| k.param::<u32>(&name).at_least(1).at_most(most);
        let one = |level: u32| Self {
            sides: ["height", "width"].map(|name| side(format!("{name}_{level}"))),
            start: k
                .param::<u32>(&format!("start_{level}"))
                .at_most(MOST_SPATIAL),
        };
        (0..levels).map(one).collect()
    }

    /// The one of that number.
    #[track_caller]
    pub(super) fn pick(all: &[Self], level: Reg<u32>) -> Self {
        let mut found = all[0];
        for (i, other) in (1..).zip(&all[1..]) {
            let this = level.eq(i);
            let choose = |yes: Reg<u32>, no: Reg<u32>| select(this, yes, no);
            found = Self {
                sides: [0, 1].map(|j| choose(other.sides[j], found.sides[j])),
                start: choose(other.start, found.start),
            };
        }
        found
    }

    /// Height and width in memory.
    #[track_caller]
    pub(super) fn stored(&self, layout: Layout) -> [Reg<u32>; 2] {
        self.sides.map(|side| match layout.border() {
            0 => side,
            border => side + border,
        })
    }

    /// The first pixel.
    pub(super) fn start(&self) -> Reg<u32> {
        self.start
    }
}

impl Level {
    /// A level whose first pixel is so many from where pixels are counted.
    #[track_caller]
    pub(super) fn new(extent: &Extent, layout: Layout, start: Reg<u32>) -> Self {
        let number = |x: Reg<u32>| x.cast::<f32>();
        let stored = extent.stored(layout);
        let width = stored[1];
        // Arithmetic, and neither a select nor a difference: of those that a
        // launch decides the checker follows both outcomes, level by level,
        // where an address in shared memory follows from them.
        let [has_row, has_column] = stored.map(|side| side.min(2) >> 1);
        let second = [has_row, has_column].map(number);
        let last = stored.map(|side| number(side.max(2) - 2));
        Self {
            sides: extent.sides.map(number),
            last,
            second: (layout == Layout::Standard).then_some(second),
            stride: number(width),
            first: start.mad(1u32, INTEGER_BITS.wrapping_neg()),
            steps: [has_row * width, has_column],
            layout,
        }
    }

    /// One axis of a point: where its window starts, and what both places count.
    ///
    /// What a place counts is 1 less its distance, and nothing from 1 on: that
    /// holds at the border too, where the window is moved inside, and for what
    /// is not a number.
    #[track_caller]
    fn axis(&self, i: usize, at: Reg<f32>) -> (Reg<f32>, [Reg<f32>; 2]) {
        let shift = match self.layout {
            Layout::Standard => -0.5f32,
            Layout::Halo => 0.5,
        };
        let place = at.fma(self.sides[i], shift);
        // Below, or at a whole number either side of it: both count the same.
        let below = (at.fma(self.sides[i], shift - 0.5) + ROUND) - ROUND;
        let start = below.max(0.0f32).min(self.last[i]);
        let from = place - start;
        let near = |distance: Reg<f32>| (1.0f32.reg() - distance.abs()).max(0.0f32);
        let second = near(from - 1.0f32);
        let second = match self.second {
            Some(there) => second * there[i],
            None => second,
        };
        (start, [near(from), second])
    }

    /// Where a point's window lies and what its corners count.
    #[track_caller]
    pub(super) fn window(&self, [x, y]: [Reg<f32>; 2], weight: Reg<f32>) -> Window {
        let (row, rows) = self.axis(0, y);
        let (col, cols) = self.axis(1, x);
        // A point outside has no weight, whatever was given for it.
        let inside = (rows[0] + rows[1]).gt(0.0f32) & (cols[0] + cols[1]).gt(0.0f32);
        let weight = select(inside, weight, 0.0f32);
        let rows = rows.map(|r| r * weight);
        Window {
            place: [row, col],
            weights: rows.map(|r| cols.map(|c| r * c)),
        }
    }

    /// The pixel of the first corner, counted from the first of the values.
    #[track_caller]
    pub(super) fn pixel(&self, window: &Window) -> Reg<u32> {
        let [row, col] = window.place;
        let pixel = row.fma(self.stride, col) + INTEGER;
        pixel.bitcast::<u32>() + self.first
    }
}
