//! Loading and sampling of the points of a lane.

use super::context::DeformContext;
use super::lanes::LaneLayout;
use super::level::LevelGeometry;
use super::problem::Class;
use super::record::{SampleRecord, SampledPoint};
use super::texel::{PointElement, Texel};
use warpline_ir::builder::*;

/// Loaded points: x and y of each, then attention weights; packed words, or one f32 per word.
#[derive(Clone)]
pub(super) struct PointWords {
    pub(super) words: Vec<Reg<u32>>,
    /// The number of location words; the others are attention weights.
    location_words: usize,
}

impl PointWords {
    /// Returns the same layout with other words.
    pub(super) fn with_words(&self, words: Vec<Reg<u32>>) -> Self {
        Self {
            words,
            location_words: self.location_words,
        }
    }
}

/// The points that a lane samples when the lanes of a query divide them.
pub(super) struct LaneSampler<'a, E, N> {
    cx: &'a DeformContext<E, N>,
    /// The lane's index among the lanes of its query.
    lane_in_query: Reg<u32>,
    /// The level of the lane's points, if they are all in one.
    level: Option<LevelGeometry>,
}

impl<'a, E: Texel, N: PointElement> LaneSampler<'a, E, N> {
    #[track_caller]
    pub(super) fn new(cx: &'a DeformContext<E, N>, lane_in_query: Reg<u32>) -> Self {
        let (class, lanes) = (&cx.class, &cx.lanes);
        let each = lanes.points_per_lane(class);
        let has_single_level =
            lanes.has_consecutive_points(class) && class.points.is_multiple_of(each);
        let level = has_single_level
            .then(|| cx.level_of(point_index(class, lanes, lane_in_query, 0) / class.points));
        Self {
            cx,
            lane_in_query,
            level,
        }
    }

    /// Loads the lane's points of an output row.
    #[track_caller]
    pub(super) fn load(&self, index: Reg<u32>) -> PointWords {
        let (class, lanes) = (&self.cx.class, &self.cx.lanes);
        let (all, each) = (class.all_points(), lanes.points_per_lane(class));
        let locations = self.cx.locations.offset(index.mul_wide(2 * all));
        let weights = self.cx.weights.offset(index.mul_wide(all));
        if self.reads_whole_words() {
            let first = self.lane_in_query * each;
            let mut words = N::load_words(locations, first * 2, 2 * each);
            let count = words.len();
            words.extend(N::load_words(weights, first, each));
            return PointWords {
                words,
                location_words: count,
            };
        }
        let load_word =
            |from: Global<N>, index: Reg<u32>| N::load_one(from, index).bitcast::<u32>();
        let points = (0..each).map(|i| point_index(class, lanes, self.lane_in_query, i));
        let points: Vec<_> = points.collect();
        let mut words: Vec<_> = (points.iter())
            .flat_map(|&p| [load_word(locations, p * 2), load_word(locations, p * 2 + 1)])
            .collect();
        words.extend(points.iter().map(|&p| load_word(weights, p)));
        PointWords {
            words,
            location_words: 2 * each as usize,
        }
    }

    /// Returns whether a lane loads its points as whole words.
    fn reads_whole_words(&self) -> bool {
        let (class, lanes) = (&self.cx.class, &self.cx.lanes);
        lanes.has_consecutive_points(class)
            && lanes.points_per_lane(class).is_multiple_of(N::PER_WORD)
    }

    /// Computes the records of the lane's points.
    #[track_caller]
    pub(super) fn sample(&self, raw: &PointWords) -> Vec<SampleRecord> {
        let (class, lanes) = (&self.cx.class, &self.cx.lanes);
        let numbers = |words: &[Reg<u32>]| -> Vec<Reg<f32>> {
            match self.reads_whole_words() {
                true => words.iter().flat_map(|&w| N::unpack_word(w)).collect(),
                false => words.iter().map(|w| w.bitcast()).collect(),
            }
        };
        let (locations, weights) = raw.words.split_at(raw.location_words);
        let (locations, weights) = (numbers(locations), numbers(weights));
        let points: Vec<SampledPoint> = (locations.chunks(2).zip(weights).enumerate())
            .map(|(i, (location, weight))| {
                let level = self.level.unwrap_or_else(|| {
                    let point = point_index(class, lanes, self.lane_in_query, i as u32);
                    self.cx.level_of(point / class.points)
                });
                sample_point::<E>(
                    lanes.corner_groups,
                    &level,
                    [location[0], location[1]],
                    weight,
                )
            })
            .collect();
        self.cx.format().records(&points)
    }
}

/// Returns point `i` of a lane. A lane has consecutive points, or every n-th one; an index past the last is
/// clamped, and its result is never used.
#[track_caller]
fn point_index(class: &Class, lanes: &LaneLayout, lane_in_query: Reg<u32>, i: u32) -> Reg<u32> {
    match lanes.has_consecutive_points(class) {
        true => lane_in_query * lanes.points_per_lane(class) + i,
        false => (lane_in_query + i * lanes.lanes_per_query()).min(class.all_points() - 1),
    }
}

/// Computes the pixel and the corner weights of a point for each corner group.
#[track_caller]
pub(super) fn sample_point<E: Texel>(
    corner_groups: u32,
    level: &LevelGeometry,
    location: [Reg<f32>; 2],
    weight: Reg<f32>,
) -> SampledPoint {
    let window = level.window(location, weight);
    let [upper, lower] = window.weights;
    let weights = match corner_groups {
        1 => vec![E::pack_weights(&[upper[0], upper[1], lower[0], lower[1]])],
        _ => (0..2)
            .map(|i| E::pack_weights(&[upper[i], lower[i]]))
            .collect(),
    };
    SampledPoint {
        pixel: level.pixel_index(&window),
        weights,
    }
}
