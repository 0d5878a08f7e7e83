//! The problem: extents, element types, levels, and the distribution of random points.

use serde_json::Value;
use std::fmt;
use std::str::FromStr;
use warpline_family::error::FamilyError;
use warpline_family::field::{FieldKind, FieldValue};
use warpline_family::float::FloatType;
use warpline_family::tensor::TensorSpec;
use warpline_family::{fields, keywords};
use warpline_ir::DType;

fields! {
    /// The problem.
    pub struct Problem {
        /// Batch size
        pub batch: u32,
        /// Queries per batch
        pub num_query: u32,
        /// Heads
        pub heads: u32,
        /// Channels per head, a multiple of 8 up to 256
        pub channels: u32,
        /// Height and width of every level: 92x160,46x80,…
        pub shapes: LevelShapes,
        /// Points of a query per level, up to 16
        pub points: u32,
        /// Element type of the values and the output
        pub dtype: FloatType,
        /// Element type of locations and attention weights (default: that of the values)
        pub point_dtype: Option<FloatType>,
        /// Memory layout of a level
        pub layout: LevelLayout,
        /// Distribution of random points
        pub locations: PointDistribution,
        /// Pixels of all levels, including the borders of layout halo (default: from the shapes)
        pub spatial_size: Option<u32>,
        /// Number of levels (default: from the shapes)
        pub levels: Option<u32>,
        /// Batches that other implementations process at once; ignored
        pub im2col_step: Option<u32>,
    }
}

keywords! {
    /// The memory layout of a level.
    pub enum LevelLayout {
        /// Row-major
        Standard = "standard",
        /// Row-major, with a border of one zero pixel on each side
        Halo = "halo",
    }
}

impl LevelLayout {
    /// Returns the pixels that the border adds to a row or column.
    pub(super) fn border(self) -> u32 {
        match self {
            LevelLayout::Standard => 0,
            LevelLayout::Halo => 2,
        }
    }
}

keywords! {
    /// The distribution of random points.
    pub enum PointDistribution {
        /// Uniform over the map
        Uniform = "uniform",
        /// Around the query's own position: normal with a deviation of 3 pixels of the level
        Grid = "grid",
    }
}

/// Height and width of every level.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LevelShapes(pub Vec<[u32; 2]>);

impl FromStr for LevelShapes {
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
            .ok_or_else(|| "a list of HxW separated by commas (16x12,8x6)".to_owned())
    }
}

impl fmt::Display for LevelShapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = self.0.iter().map(|[h, w]| format!("{h}x{w}")).collect();
        f.write_str(&all.join(","))
    }
}

impl FieldValue for LevelShapes {
    fn kind() -> FieldKind {
        FieldKind::Number { unit: "HxW,…" }
    }
    fn read(text: &str) -> Result<Self, String> {
        text.parse()
    }
    fn json(&self) -> Value {
        self.to_string().into()
    }
}

/// The part of a problem that is compiled in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Class {
    pub(super) value: FloatType,
    pub(super) point: FloatType,
    pub(super) channels: u32,
    pub(super) levels: u32,
    pub(super) points: u32,
    pub(super) layout: LevelLayout,
    /// Whether some level has a single column.
    pub(super) has_single_column: bool,
}

impl Class {
    /// Returns the points of a query over all levels.
    pub(super) fn all_points(&self) -> u32 {
        self.levels * self.points
    }

    /// Returns the bytes of one head's pixel.
    pub(super) fn pixel_bytes(&self) -> u32 {
        self.channels * self.value.dtype().bytes() as u32
    }
}

/// Maximum channels, levels, and points per level.
pub(super) const MAX_EXTENTS: [u32; 3] = [256, 8, 16];
/// The inputs by name, in order.
pub(super) const INPUTS: [&str; 5] = [
    "value",
    "spatial_shapes",
    "level_start_index",
    "sampling_locations",
    "attention_weights",
];
/// Maximum pixels of a level: pixel indices are computed in f32.
pub(super) const MAX_LEVEL_PIXELS: u64 = 1 << 22;
/// Maximum pixels of all levels.
pub(super) const MAX_TOTAL_PIXELS: u32 = MAX_LEVEL_PIXELS as u32 * MAX_EXTENTS[1];
/// Exclusive limit of 32-bit indices: bytes of the values of a batch, and output rows.
pub(super) const INDEX_LIMIT: u64 = 1 << 31;

impl Problem {
    /// Creates an f16 problem with 32 channels, standard layout and uniform points.
    pub fn new(batch: u32, num_query: u32, heads: u32, points: u32, shapes: &[[u32; 2]]) -> Self {
        Self {
            batch,
            num_query,
            heads,
            channels: 32,
            shapes: LevelShapes(shapes.to_vec()),
            points,
            dtype: FloatType::F16,
            point_dtype: None,
            layout: LevelLayout::Standard,
            locations: PointDistribution::Uniform,
            spatial_size: None,
            levels: None,
            im2col_step: None,
        }
    }

    /// Returns the element type of locations and attention weights.
    pub fn point_dtype(&self) -> FloatType {
        self.point_dtype.unwrap_or(self.dtype)
    }

    /// Returns height and width of a level in memory, including its border.
    pub(super) fn stored_size(&self, [height, width]: [u32; 2]) -> [u64; 2] {
        [height, width].map(|side| u64::from(side) + u64::from(self.layout.border()))
    }

    /// Returns the first pixel of every level.
    pub fn level_starts(&self) -> Vec<u64> {
        let mut next = 0;
        let start = |shape: &[u32; 2]| {
            let [height, width] = self.stored_size(*shape);
            let first = next;
            next += height * width;
            first
        };
        self.shapes.0.iter().map(start).collect()
    }

    /// Returns the pixels of all levels.
    pub fn total_pixels(&self) -> u64 {
        let pixels = |shape: &[u32; 2]| self.stored_size(*shape).iter().product::<u64>();
        self.shapes.0.iter().map(pixels).sum()
    }

    /// Returns the part that is compiled in.
    pub(super) fn class(&self) -> Class {
        Class {
            value: self.dtype,
            point: self.point_dtype(),
            channels: self.channels,
            levels: self.shapes.0.len() as u32,
            points: self.points,
            layout: self.layout,
            has_single_column: (self.shapes.0.iter()).any(|shape| self.stored_size(*shape)[1] == 1),
        }
    }

    /// Rejects problems that no schedule supports.
    pub(super) fn check(&self) -> Result<(), FamilyError> {
        let reject = |text: String| Err(FamilyError::Problem(text));
        let [max_channels, max_levels, max_points] = MAX_EXTENTS;
        let (c, levels, points) = (self.channels, self.shapes.0.len(), self.points);
        if c == 0 || !c.is_multiple_of(8) || c > max_channels {
            return reject(format!(
                "--channels must be a multiple of 8 up to {max_channels}, not {c}"
            ));
        }
        if levels == 0 || levels > max_levels as usize {
            return reject(format!(
                "--shapes must have 1 to {max_levels} levels, not {levels}"
            ));
        }
        if points == 0 || points > max_points {
            return reject(format!("--points must be 1 to {max_points}, not {points}"));
        }
        if self.heads == 0 {
            return reject("--heads must be at least 1, not 0".into());
        }
        if let Some(given) = self.levels.filter(|&n| n as usize != levels) {
            return reject(format!(
                "--levels {given} does not match the {levels} levels of --shapes {}",
                self.shapes
            ));
        }
        for (i, shape) in self.shapes.0.iter().enumerate() {
            let [height, width] = shape;
            let [stored_height, stored_width] = self.stored_size(*shape);
            let pixels = stored_height.saturating_mul(stored_width);
            if *height == 0 || *width == 0 || pixels > MAX_LEVEL_PIXELS {
                return reject(format!(
                    "level {i} of --shapes is {height}x{width}, but a level must have 1 to {MAX_LEVEL_PIXELS} pixels"
                ));
            }
        }
        let spatial = self.total_pixels();
        if let Some(given) = self.spatial_size.filter(|&n| u64::from(n) != spatial) {
            return reject(format!(
                "--spatial-size {given} does not match the {spatial} pixels of --shapes {} in layout {}",
                self.shapes,
                self.layout.keyword()
            ));
        }
        let pixel = u64::from(self.heads) * u64::from(self.class().pixel_bytes());
        if spatial * pixel >= INDEX_LIMIT {
            return reject(format!(
                "the values of a batch must have less than 2147483648 bytes, not {} ({spatial} pixels of {} heads)",
                spatial * pixel,
                self.heads
            ));
        }
        // At least one batch: queries and heads of a batch are counted in 32 bits even if there is none.
        let batches = u64::from(self.batch.max(1));
        let items = batches.saturating_mul(u64::from(self.num_query) * u64::from(self.heads));
        if items >= INDEX_LIMIT {
            return reject(format!(
                "batch · queries · heads must be less than 2147483648, not {items}"
            ));
        }
        Ok(())
    }

    /// Returns the specs of the inputs, in order.
    pub(super) fn input_specs(&self) -> [TensorSpec; 5] {
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
        let value = [b, self.total_pixels() as usize, h, self.channels as usize];
        let point = class.point.dtype();
        [
            spec(0, self.dtype.dtype(), &value),
            spec(1, DType::I64, &[l, 2]),
            spec(2, DType::I64, &[l]),
            spec(3, point, &[b, q, h, l, p, 2]),
            spec(4, point, &[b, q, h, l, p]),
        ]
    }

    /// Returns the spec of the output.
    pub(super) fn output_spec(&self) -> TensorSpec {
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
    fn level_shapes_round_trip_as_text() {
        let shapes: LevelShapes = "16x12, 8X6,1×1".parse().unwrap();
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
            let message = bad.parse::<LevelShapes>().unwrap_err();
            assert!(message.contains("HxW"), "{message}");
        }
    }

    #[test]
    fn level_starts_follow_from_shapes_and_layout() {
        let standard = problem();
        assert_eq!(
            (standard.level_starts(), standard.total_pixels()),
            (vec![0, 192], 240)
        );
        let halo = Problem {
            layout: LevelLayout::Halo,
            ..problem()
        };
        assert_eq!(
            (halo.level_starts(), halo.total_pixels()),
            (vec![0, 252], 332)
        );
    }

    #[test]
    fn bad_problems_are_rejected() {
        let rejected = |problem: Problem, part: &str| {
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
            rejected(with(&|p| p.channels = channels), &text);
        }
        rejected(with(&|p| p.points = 0), "--points must be 1 to 16, not 0");
        rejected(with(&|p| p.points = 17), "--points must be 1 to 16, not 17");
        rejected(with(&|p| p.heads = 0), "--heads must be at least 1, not 0");
        rejected(
            with(&|p| p.shapes.0 = vec![[2, 2]; 9]),
            "1 to 8 levels, not 9",
        );
        rejected(with(&|p| p.shapes.0.clear()), "1 to 8 levels, not 0");
        rejected(
            with(&|p| p.shapes.0[1] = [0, 3]),
            "level 1 of --shapes is 0x3",
        );
        rejected(
            with(&|p| {
                p.shapes.0[1] = [u32::MAX; 2];
                p.layout = LevelLayout::Halo;
            }),
            "level 1 of --shapes is 4294967295x4294967295",
        );
        rejected(
            with(&|p| p.levels = Some(3)),
            "--levels 3 does not match the 2 levels of --shapes 16x12,8x6",
        );
        rejected(
            with(&|p| p.spatial_size = Some(241)),
            "--spatial-size 241 does not match the 240 pixels of --shapes 16x12,8x6 in layout standard",
        );
        rejected(
            with(&|p| {
                p.heads = 1 << 20;
                p.batch = 1 << 10;
            }),
            "bytes, not",
        );
        rejected(
            with(&|p| {
                p.num_query = 1 << 30;
                p.heads = 8;
            }),
            "heads must be less than 2147483648",
        );
    }
}
