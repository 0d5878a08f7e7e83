//! The boxes schedule: TMA copies the 2 × 2 pixels of every point.
//!
//! Each sampling warp feeds one gathering warp through a pair of rings, and waits for no other warp.
//!
//! ```text
//!   sample ──► weights, boxes ──► gather ──► out
//! ```

use super::config::{Config, Schedule};
use super::context::DeformContext;
use super::gather::{LanePosition, OutputRow, store};
use super::lanes::{LANE_BYTES, LaneLayout};
use super::level::LevelGeometry;
use super::problem::{Class, Problem};
use super::query_order::WorkItem;
use super::texel::{PointElement, Texel};
use warpline_family::plan::{Buffer, LaunchStep, TensorArg};
use warpline_ir::builder::*;
use warpline_ir::{Swizzle, TensorMapDecl};

/// Stages of the ring of corner weights.
const WEIGHT_STAGES: u32 = 2;
/// Pixels of a box.
const CORNERS: u32 = 4;

/// The rings between a sampling and a gathering warp.
#[derive(Clone, Copy)]
struct Rings<E: Texel> {
    /// The corner weights of the points of a warp's queries: four words per point.
    weights: Ring<Tile<u32>>,
    /// The boxes of the points of one level.
    boxes: Ring<Tile<E>>,
}

/// Returns the channels of a box.
fn box_cols(class: &Class, lanes: &LaneLayout) -> u32 {
    lanes.lanes_per_pixel * LANE_BYTES / class.value.dtype().bytes() as u32
}

/// Returns the words from the weights of one item to those of the next, padded so that items start in
/// different banks.
fn weight_pitch(class: &Class) -> u32 {
    (class.all_points() + 1) * CORNERS
}

/// Returns the words of the weights of a warp's items.
fn weight_words(class: &Class, lanes: &LaneLayout) -> u32 {
    lanes.items_per_warp() * weight_pitch(class)
}

/// Returns the pixels of a warp's items in one level.
fn pixels_per_level(class: &Class, lanes: &LaneLayout) -> u32 {
    lanes.items_per_warp() * class.points * CORNERS
}

/// Returns the tensor map of a level: channels of all heads, columns, rows, batches.
fn level_map(class: &Class, lanes: &LaneLayout) -> TensorMapDecl {
    TensorMapDecl {
        swizzle: Swizzle::None,
        ..TensorMapDecl::tiled(class.value.dtype(), [box_cols(class, lanes), 2, 2, 1])
    }
}

/// Binds the tensors of all levels.
pub(super) fn bind_args(mut step: LaunchStep, p: &Problem, c: &Config) -> LaunchStep {
    if c.schedule != Schedule::Boxes {
        return step;
    }
    let pixel = u64::from(p.heads * p.class().pixel_bytes());
    let channels = u64::from(p.heads * p.channels);
    for (i, (shape, start)) in p.shapes.0.iter().zip(p.level_starts()).enumerate() {
        let [height, width] = p.stored_size(*shape);
        let extents = vec![channels, width, height, u64::from(p.batch).max(1)];
        let strides = vec![pixel, width * pixel, p.total_pixels() * pixel];
        let level = TensorArg::strided(Buffer::Input(0).at(start * pixel), extents, strides);
        step = step.tensor(&format!("level_{i}"), level);
    }
    step
}

/// Declares the roles.
pub(super) fn roles<E: Texel, N: PointElement>(k: Builder, cx: &DeformContext<E, N>) {
    let (class, c, lanes) = (&cx.class, &cx.config, &cx.lanes);
    let level = |i: u32| k.tensor_map(&format!("level_{i}"), level_map(class, lanes));
    let maps: Vec<TensorMap> = (0..class.levels).map(level).collect();
    let warps = c.gather_warps();
    let weights = k.ring_per_warp("weights", warps, WEIGHT_STAGES, |s| {
        s.vector::<u32>(weight_words(class, lanes))
    });
    let rings = Rings {
        weights: weights.generic_proxy_only(),
        boxes: k.ring_per_warp("boxes", warps, c.stages, |s| {
            s.unswizzled::<E>(pixels_per_level(class, lanes), box_cols(class, lanes))
        }),
    };
    k.role("sample")
        .warps(warps)
        .body(|| BoxSampler::new(cx, &maps).run(rings));
    k.role("gather").warps(warps).body(|| gather(cx, rings));
}

/// Runs `f` for each round of a warp, with its first position in the query order.
fn for_each_round<E: Texel, N: PointElement>(
    cx: &DeformContext<E, N>,
    f: impl Fn(WorkItem, Reg<u32>),
) {
    let lanes = &cx.lanes;
    cx.for_each_item(|item| {
        let first = item.first + warp_in_role() * lanes.queries_per_warp();
        steps(item.rounds)
            .each(|round| f(item, first + round * cx.config.queries_per_round(lanes)));
    });
}

/// A lane that samples some points of its warp's items.
struct BoxSampler<'a, E, N> {
    cx: &'a DeformContext<E, N>,
    maps: &'a [TensorMap],
    points: Vec<BoxPoint>,
}

/// A point of a lane.
struct BoxPoint {
    /// Whether the point exists; `None` if it always does.
    in_range: Option<Reg<bool>>,
    /// The item, and its point.
    item: Reg<u32>,
    point: Reg<u32>,
    level: LevelGeometry,
}

impl<'a, E: Texel, N: PointElement> BoxSampler<'a, E, N> {
    fn new(cx: &'a DeformContext<E, N>, maps: &'a [TensorMap]) -> Self {
        let all = cx.class.all_points();
        let count = cx.lanes.items_per_warp() * all;
        let point = |first: u32| {
            let index = lane_id() + first;
            let in_range = (first + 32 > count).then(|| index.lt(count));
            let index = index.min(count - 1);
            let item = index / all;
            let point = index - item * all;
            BoxPoint {
                in_range,
                item,
                point,
                level: cx.level_of(point / cx.class.points),
            }
        };
        Self {
            cx,
            maps,
            points: (0..count).step_by(32).map(point).collect(),
        }
    }

    /// Samples all points of a warp.
    fn run(&self, rings: Rings<E>) {
        for_each_round(self.cx, |item, step| {
            let loaded: Vec<_> = self
                .points
                .iter()
                .map(|p| self.load_point(item, step, p))
                .collect();
            let slot = rings.weights.acquire();
            let to = slot.tiles();
            let mut top_lefts = Vec::new();
            for (point, (location, weight)) in self.points.iter().zip(loaded) {
                let window = point.level.window(location, weight);
                let words = window.weights.as_flattened().iter();
                let words: Vec<_> = words.map(|&w| E::pack_weights(&[w, w])[0]).collect();
                let store_weights = || {
                    let weights = [words[0], words[1], words[2], words[3]];
                    let offset = point.item * weight_pitch(&self.cx.class) + point.point * CORNERS;
                    to.store_as(0u32, offset, weights);
                };
                match point.in_range {
                    None => store_weights(),
                    Some(in_range) => if_(in_range, store_weights),
                }
                top_lefts.push(window.top_left());
            }
            slot.commit();
            for level in 0..self.cx.class.levels {
                self.load_boxes(item, level, &top_lefts, rings.boxes);
            }
        });
    }

    /// Loads the location and attention weight of a point.
    #[track_caller]
    fn load_point(
        &self,
        item: WorkItem,
        step: Reg<u32>,
        point: &BoxPoint,
    ) -> ([Reg<f32>; 2], Reg<f32>) {
        let (cx, all) = (self.cx, self.cx.class.all_points());
        let row = OutputRow::at(cx, item, step + point.item, item.head);
        let locations = cx.locations.offset(row.index.mul_wide(2 * all));
        let weights = cx.weights.offset(row.index.mul_wide(all));
        let location = N::load(locations, point.point * 2, 2);
        (
            [location[0], location[1]],
            N::load_one(weights, point.point),
        )
    }

    /// Loads the boxes of the points of a level; `top_lefts` are the first corners of the lane's points.
    fn load_boxes(
        &self,
        item: WorkItem,
        level: u32,
        top_lefts: &[[Reg<u32>; 2]],
        boxes: Ring<Tile<E>>,
    ) {
        let (cx, points) = (self.cx, self.cx.class.points);
        let first = item.head * cx.class.channels;
        let channel = match item.chunk {
            None => first,
            Some(chunk) => first + chunk * (4 * E::CHANNELS_PER_WORD),
        };
        // All lanes get all corners, because one elected lane issues the copies.
        let point_indices = (0..cx.lanes.items_per_warp()).flat_map(|item| {
            let first = item * cx.class.all_points() + level * points;
            first..first + points
        });
        let corners: Vec<_> = point_indices
            .map(|index| {
                let lane = (index % 32).reg();
                top_lefts[(index / 32) as usize].map(|x| shuffle_from(x, lane))
            })
            .collect();
        elect_lane(|| {
            let slot = boxes.acquire();
            let tile = slot.tiles();
            for (i, [row, col]) in (0..).zip(corners) {
                let to = tile.slice(i * CORNERS..(i + 1) * CORNERS, 0..tile.cols());
                let map = self.maps[level as usize];
                slot.load(map, to, [channel, col, row, item.batch]);
            }
            slot.commit();
        });
    }
}

/// Sums the boxes of a warp.
fn gather<E: Texel, N: PointElement>(cx: &DeformContext<E, N>, rings: Rings<E>) {
    let (class, lanes) = (&cx.class, &cx.lanes);
    let lane = LanePosition::new(lanes);
    let corner_group = lane.corner_group.unwrap_or(0u32.reg());
    let pixel_bytes = lanes.lanes_per_pixel * LANE_BYTES;
    let lane_offset = corner_group * pixel_bytes + lane.chunk * LANE_BYTES;
    let weight_offset = lane.item * weight_pitch(class) + corner_group;
    for_each_round(cx, |item, step| {
        let row = OutputRow::new(cx, lane, item, step);
        let weights_slot = rings.weights.wait();
        let mut sums = Vec::new();
        for level in 0..class.levels {
            let slot = rings.boxes.wait();
            let point = |p: u32| {
                let first = (level * class.points + p) * CORNERS;
                let word = weights_slot.tiles().load(0u32, weight_offset + first);
                let offset = (lane.item * class.points + p) * (CORNERS * pixel_bytes) + lane_offset;
                (
                    slot.tiles().load_at_byte(offset),
                    E::unpack_weights(&[word])[0],
                )
            };
            let points: Vec<u32> = (0..class.points).collect();
            for group in points.chunks(cx.config.promote_every as usize) {
                let corners: Vec<_> = group.iter().map(|&p| point(p)).collect();
                E::accumulate(&mut sums, &corners);
            }
            slot.release();
        }
        weights_slot.release();
        store(cx, lane, item, row, sums);
    });
}
