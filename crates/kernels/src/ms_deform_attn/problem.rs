//! The problem: extents, types, levels, and where the points lie.

use serde_json::Value;
use std::fmt;
use std::str::FromStr;
use warpline_family::error::FamilyError;
use warpline_family::field::{FieldValue, Kind};
use warpline_family::float::Float;
use warpline_family::tensor::TensorSpec;
use warpline_family::{fields, words};
use warpline_ir::DType;

fields! {
    /// The problem.
    pub struct Problem {
        /// Batches
        pub batch: u32,
        /// Queries of a batch
        pub num_query: u32,
        /// Heads
        pub heads: u32,
        /// Channels of a head, a multiple of 8 up to 256
        pub channels: u32,
        /// Height and width of every level: 92x160,46x80,…
        pub shapes: Shapes,
        /// Points of a query in each level, up to 16
        pub points: u32,
        /// Element type of the values and of what comes out
        pub dtype: Float,
        /// Element type of locations and weights; that of the values where not given
        pub point_dtype: Option<Float>,
        /// How a level lies
        pub layout: Layout,
        /// Where the points are that are drawn
        pub locations: Locations,
        /// Pixels of all levels, with their borders in the layout halo; those of the shapes where not given
        pub spatial_size: Option<u32>,
        /// Levels; those of the shapes where not given
        pub levels: Option<u32>,
        /// Batches that others work on at a time: it changes nothing here
        pub im2col_step: Option<u32>,
    }
}

words! {
    /// How a level lies in memory.
    pub enum Layout {
        /// Row by row
        Standard = "standard",
        /// Row by row, with a border of one pixel of zeros around it
        Halo = "halo",
    }
}

impl Layout {
    /// Pixels that a side has more than the map.
    pub(super) fn border(self) -> u32 {
        match self {
            Layout::Standard => 0,
            Layout::Halo => 2,
        }
    }
}

words! {
    /// Where points are that are drawn.
    pub enum Locations {
        /// Anywhere in the map
        Uniform = "uniform",
        /// Around the query's own place: normal, 3 pixels of the level wide
        Grid = "grid",
    }
}

/// Height and width of every level, the first first.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Shapes(pub Vec<[u32; 2]>);

impl FromStr for Shapes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let side = |text: &str| text.trim().parse::<u32>().ok();
        let level = |text: &str| {
            let (height, width) = text.split_once(['x', 'X', '×'])?;
            Some([side(height)?, side(width)?])
        };
        let levels: Option<Vec<_>> = text.split(',').map(level).collect();
        levels
            .map(Self)
            .ok_or_else(|| "levels as HxW, with commas between them (16x12,8x6)".to_owned())
    }
}

impl fmt::Display for Shapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = self.0.iter().map(|[h, w]| format!("{h}x{w}")).collect();
        f.write_str(&all.join(","))
    }
}

impl FieldValue for Shapes {
    fn kind() -> Kind {
        Kind::Number { unit: "HxW,…" }
    }
    fn read(text: &str) -> Result<Self, String> {
        text.parse()
    }
    fn json(&self) -> Value {
        self.to_string().into()
    }
}

/// All of a problem that is compiled in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Class {
    pub(super) value: Float,
    pub(super) point: Float,
    pub(super) channels: u32,
    pub(super) levels: u32,
    pub(super) points: u32,
    pub(super) layout: Layout,
    /// Has a level one column only?
    pub(super) narrow: bool,
}

impl Class {
    /// Points of a query.
    pub(super) fn all_points(&self) -> u32 {
        self.levels * self.points
    }

    /// Bytes of a pixel of one head.
    pub(super) fn pixel_bytes(&self) -> u32 {
        self.channels * self.value.dtype().bytes() as u32
    }
}

/// The most channels, levels, points of a level.
pub(super) const MOST: [u32; 3] = [256, 8, 16];
/// The inputs by name, in order.
pub(super) const INPUTS: [&str; 5] = [
    "value",
    "spatial_shapes",
    "level_start_index",
    "sampling_locations",
    "attention_weights",
];
/// The most pixels of a level: the number of one is computed in f32.
pub(super) const MOST_PIXELS: u64 = 1 << 22;
/// The most pixels of all levels.
pub(super) const MOST_SPATIAL: u32 = MOST_PIXELS as u32 * MOST[1];
/// Bytes of the values of a batch, and queries of all heads and batches, are less.
pub(super) const LIMIT: u64 = 1 << 31;

impl Problem {
    /// fp16, drawn uniformly, levels as they are.
    pub fn new(batch: u32, num_query: u32, heads: u32, points: u32, shapes: &[[u32; 2]]) -> Self {
        Self {
            batch,
            num_query,
            heads,
            channels: 32,
            shapes: Shapes(shapes.to_vec()),
            points,
            dtype: Float::F16,
            point_dtype: None,
            layout: Layout::Standard,
            locations: Locations::Uniform,
            spatial_size: None,
            levels: None,
            im2col_step: None,
        }
    }

    /// The element type of locations and weights.
    pub fn point_dtype(&self) -> Float {
        self.point_dtype.unwrap_or(self.dtype)
    }

    /// Height and width of a level in memory.
    pub(super) fn stored(&self, [height, width]: [u32; 2]) -> [u64; 2] {
        [height, width].map(|side| u64::from(side) + u64::from(self.layout.border()))
    }

    /// The first pixel of every level.
    pub fn starts(&self) -> Vec<u64> {
        let mut next = 0;
        let start = |shape: &[u32; 2]| {
            let [height, width] = self.stored(*shape);
            let first = next;
            next += height * width;
            first
        };
        self.shapes.0.iter().map(start).collect()
    }

    /// Pixels of all levels.
    pub fn spatial(&self) -> u64 {
        let pixels = |shape: &[u32; 2]| self.stored(*shape).iter().product::<u64>();
        self.shapes.0.iter().map(pixels).sum()
    }

    /// All that is compiled in.
    pub(super) fn class(&self) -> Class {
        Class {
            value: self.dtype,
            point: self.point_dtype(),
            channels: self.channels,
            levels: self.shapes.0.len() as u32,
            points: self.points,
            layout: self.layout,
            narrow: (self.shapes.0.iter()).any(|shape| self.stored(*shape)[1] == 1),
        }
    }

    /// Refuses what no form serves.
    pub(super) fn check(&self) -> Result<(), FamilyError> {
        let refuse = |text: String| Err(FamilyError::Problem(text));
        let [most_channels, most_levels, most_points] = MOST;
        let (c, levels, points) = (self.channels, self.shapes.0.len(), self.points);
        if c == 0 || !c.is_multiple_of(8) || c > most_channels {
            return refuse(format!(
                "--channels is a multiple of 8 up to {most_channels}, not {c}"
            ));
        }
        if levels == 0 || levels > most_levels as usize {
            return refuse(format!("there are 1 to {most_levels} levels, not {levels}"));
        }
        if points == 0 || points > most_points {
            return refuse(format!("--points is 1 to {most_points}, not {points}"));
        }
        if self.heads == 0 {
            return refuse("--heads is at least 1, not 0".into());
        }
        if let Some(asked) = self.levels.filter(|&n| n as usize != levels) {
            return refuse(format!(
                "--levels {asked} and the {levels} levels of --shapes {} differ",
                self.shapes
            ));
        }
        for (i, shape) in self.shapes.0.iter().enumerate() {
            let [height, width] = shape;
            let [stored_height, stored_width] = self.stored(*shape);
            let pixels = stored_height.saturating_mul(stored_width);
            if *height == 0 || *width == 0 || pixels > MOST_PIXELS {
                return refuse(format!(
                    "a level has 1 to {MOST_PIXELS} pixels; level {i} of --shapes is {height}x{width}"
                ));
            }
        }
        let spatial = self.spatial();
        if let Some(asked) = self.spatial_size.filter(|&n| u64::from(n) != spatial) {
            return refuse(format!(
                "--spatial-size {asked} and the {spatial} pixels of --shapes {} in layout {} differ",
                self.shapes,
                self.layout.word()
            ));
        }
        let pixel = u64::from(self.heads) * u64::from(self.class().pixel_bytes());
        if spatial * pixel >= LIMIT {
            return refuse(format!(
                "the values of a batch have less than 2147483648 bytes, not {} ({spatial} pixels of {} heads)",
                spatial * pixel,
                self.heads
            ));
        }
        // Of a batch at least, where there is none: they are counted in 32 bits.
        let batches = u64::from(self.batch.max(1));
        let items = batches.saturating_mul(u64::from(self.num_query) * u64::from(self.heads));
        if items >= LIMIT {
            return refuse(format!(
                "there are less than 2147483648 queries of all heads and batches, not {items}"
            ));
        }
        Ok(())
    }

    /// The inputs, in order.
    pub(super) fn specs(&self) -> [TensorSpec; 5] {
        let class = self.class();
        let [b, q, h, l, p] = [
            self.batch,
            self.num_query,
            self.heads,
            class.levels,
            self.points,
        ]
        .map(|n| n as usize);
        let spec = |i: usize, dtype, shape: &[usize]| TensorSpec {
            name: INPUTS[i],
            dtype,
            shape: shape.to_vec(),
        };
        let value = [b, self.spatial() as usize, h, self.channels as usize];
        let point = class.point.dtype();
        [
            spec(0, self.dtype.dtype(), &value),
            spec(1, DType::I64, &[l, 2]),
            spec(2, DType::I64, &[l]),
            spec(3, point, &[b, q, h, l, p, 2]),
            spec(4, point, &[b, q, h, l, p]),
        ]
    }

    /// What comes out.
    pub(super) fn out(&self) -> TensorSpec {
        let [b, q, hc] = [self.batch, self.num_query, self.heads * self.channels];
        TensorSpec {
            name: "out",
            dtype: self.dtype.dtype(),
            shape: [b, q, hc].map(|n| n as usize).to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem() -> Problem {
        Problem::new(2, 77, 2, 4, &[[16, 12], [8, 6]])
    }

    #[test]
    fn levels_are_written_with_their_sides() {
        let shapes: Shapes = "16x12, 8X6,1×1".parse().unwrap();
        assert_eq!(shapes.0, [[16, 12], [8, 6], [1, 1]]);
        assert_eq!(shapes.to_string(), "16x12,8x6,1x1");
        for bad in [
            "",
            "16",
            "16x",
            "x3",
            "16x12,",
            "16x12;8x6",
            "-1x4",
            "4294967296x1",
        ] {
            let expected = bad.parse::<Shapes>().unwrap_err();
            assert!(expected.contains("HxW"), "{expected}");
        }
    }

    #[test]
    fn starts_follow_from_the_shapes_and_the_layout() {
        let standard = problem();
        assert_eq!((standard.starts(), standard.spatial()), (vec![0, 192], 240));
        let halo = Problem {
            layout: Layout::Halo,
            ..problem()
        };
        assert_eq!((halo.starts(), halo.spatial()), (vec![0, 252], 332));
    }

    #[test]
    fn bad_input_gets_a_sentence() {
        let refused = |problem: Problem, part: &str| {
            let text = problem.check().unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        };
        assert!(problem().check().is_ok());
        let with = |change: &dyn Fn(&mut Problem)| {
            let mut problem = problem();
            change(&mut problem);
            problem
        };
        for channels in [0, 4, 20, 264] {
            let text = format!("a multiple of 8 up to 256, not {channels}");
            refused(with(&|p| p.channels = channels), &text);
        }
        refused(with(&|p| p.points = 0), "--points is 1 to 16, not 0");
        refused(with(&|p| p.points = 17), "--points is 1 to 16, not 17");
        refused(with(&|p| p.heads = 0), "--heads is at least 1, not 0");
        refused(
            with(&|p| p.shapes.0 = vec![[2, 2]; 9]),
            "1 to 8 levels, not 9",
        );
        refused(with(&|p| p.shapes.0.clear()), "1 to 8 levels, not 0");
        refused(
            with(&|p| p.shapes.0[1] = [0, 3]),
            "level 1 of --shapes is 0x3",
        );
        refused(
            with(&|p| {
                p.shapes.0[1] = [u32::MAX; 2];
                p.layout = Layout::Halo;
            }),
            "level 1 of --shapes is 4294967295x4294967295",
        );
        refused(
            with(&|p| p.levels = Some(3)),
            "--levels 3 and the 2 levels of --shapes 16x12,8x6 differ",
        );
        refused(
            with(&|p| p.spatial_size = Some(241)),
            "--spatial-size 241 and the 240 pixels of --shapes 16x12,8x6 in layout standard differ",
        );
        refused(
            with(&|p| {
                p.heads = 1 << 20;
                p.batch = 1 << 10;
            }),
            "bytes, not",
        );
        refused(
            with(&|p| {
                p.num_query = 1 << 30;
                p.heads = 8;
            }),
            "less than 2147483648 queries",
        );
    }
}
